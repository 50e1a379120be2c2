import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from handed_over import GIVEN, NEW, SURE, pixels, read_table, tree, write_pictures
from labelmend.errors import LabelmendWarning
from labelmend.export.folders import Names, safe_name
from labelmend.inputs.pictures.find import find_pictures
from labelmend.result import Source
from labelmend.storage.source import picture_source


def test_every_picture_lies_in_the_folder_of_its_new_label(photos):
    out = photos.export("folders", "sorted")
    found = tree(out)
    for index, (old, new) in enumerate(zip(GIVEN, NEW, strict=True)):
        source = Path("photos", old or "", f"{index}.png")
        assert found[f"{new}/{index}.png"] == source.read_bytes()  # also the one that is no picture
    rows = read_table(out / "labels.csv")
    assert [row["file"] for row in rows] == [f"{new}/{index}.png" for index, new in enumerate(NEW)]
    assert [row["id"] for row in rows] == photos.ids.tolist()
    assert float(rows[1]["confidence"]) == SURE[1]
    assert rows[7]["confidence"] == ""
    again = find_pictures(out)
    assert dict(zip(again.ids, again.given, strict=True)) == {f"{new}/{i}.png": new for i, new in enumerate(NEW)}


def test_links_are_hard_or_else_symbolic(photos, monkeypatch):
    out = photos.export("folders", "hard", link=True)
    assert os.path.samefile(out / "ant/1.png", "photos/bee/1.png")
    assert not (out / "ant/1.png").is_symlink()

    def other_disk(*_, **__):
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", other_disk)
    out = photos.export("folders", "soft", link=True)
    assert (out / "ant/1.png").is_symlink()
    assert (out / "ant/1.png").read_bytes() == Path("photos/bee/1.png").read_bytes()


def test_pictures_without_a_label_lie_in_no_class_folder(make):
    names = write_pictures()
    new = [*NEW[:2], None, *NEW[3:]]
    out = make(picture_source(Path("photos")), names, new=new).export("folders", "out")
    assert (out / "2.png").is_file()
    assert read_table(out / "labels.csv")[2]["label"] == ""


def test_of_two_with_one_name_the_second_gets_a_number(make):
    for folder in ("ant", "bee", "cat"):
        Path("photos", folder).mkdir(parents=True)
    names = ["ant/a.png", "ant/a-2.png", "bee/a.png", "cat/A.PNG"]
    for index, name in enumerate(names):
        Image.fromarray(pixels(index)).save(Path("photos", name))
    given = [name.split("/")[0] for name in names]
    source = picture_source(Path("photos"))
    result = make(source, names, given=given, new=["ant"] * 4, status=["corrected"] * 4, sure=[0.9] * 4)
    rows = read_table(result.export("folders", "out") / "labels.csv")
    assert [row["file"] for row in rows] == ["ant/a.png", "ant/a-2.png", "ant/a-3.png", "ant/A-4.PNG"]
    for index, row in enumerate(rows):
        assert np.array_equal(np.asarray(Image.open(Path("out", row["file"]))), pixels(index))


def test_what_cannot_be_copied_is_listed_with_the_reason(photos):
    for name in ("ant/0.png", "bee/1.png"):
        Path("photos", name).rename(name.replace("/", "-"))
    os.mkfifo("photos/ant/0.png")
    os.symlink("nowhere", "photos/bee/1.png")
    try:
        with pytest.warns(LabelmendWarning, match=r"2 picture.*ant/0\.png.*pipe"):
            out = photos.export("folders", "out")
        left = {row["id"]: row["reason"] for row in read_table(out / "left_out.csv")}
        assert left == {
            "ant/0.png": "it is a pipe, socket or device, not a file",
            "bee/1.png": "it is a link that points nowhere",
        }
        assert len(read_table(out / "labels.csv")) == 6
    finally:
        for name in ("ant/0.png", "bee/1.png"):
            Path("photos", name).unlink()
            Path(name.replace("/", "-")).rename(Path("photos", name))


NASTY = [
    "a/b",
    "..",
    ".hidden",
    "CON",
    "con.txt",
    "",
    " ",
    "a\\b",
    "a_b",
    "A_B",
    "x" * 400,
    "naïve 漢字",
    "line\nbreak",
]


def test_no_class_name_leads_out_of_the_folder(make):
    names = [f"{index}.png" for index in range(len(NASTY))]
    Path("flat").mkdir()
    for index, name in enumerate(names):
        Image.fromarray(pixels(index)).save(Path("flat", name))
    files = tuple(os.path.abspath(f"flat/{name}") for name in names)
    n, classes = len(NASTY), np.array(NASTY, dtype=object)
    result = make(
        Source("pictures", files=files),
        names,
        given=NASTY,
        new=NASTY,
        status=["kept"] * n,
        sure=[0.9] * n,
        classes=classes,
    )
    with pytest.warns(LabelmendWarning, match=r"class\(es\) cannot be the name of a folder"):
        out = result.export("folders", "out")
    rows = read_table(out / "labels.csv")
    assert [row["label"] for row in rows] == NASTY
    folders = [row["file"].rsplit("/", 1)[0] for row in rows]
    assert len({name.casefold() for name in folders}) == n
    assert folders[8] == "a_b"  # a name that can stay does
    assert sorted(os.listdir(".")) == ["flat", "out"]
    for index, row in enumerate(rows):
        assert (out / row["file"]).resolve().parent.parent == out.resolve()
        assert np.array_equal(np.asarray(Image.open(out / row["file"])), pixels(index))
    assert len(find_pictures(out)) == n  # none of them hidden


def test_pictures_inside_an_archive_are_written(make):
    np.savez("p.npz", images=np.stack([pixels(i) for i in range(8)]), labels=[g or "" for g in GIVEN])
    out = make(picture_source(Path("p.npz")), [str(i) for i in range(8)]).export("folders", "out")
    for index, new in enumerate(NEW):
        assert np.array_equal(np.asarray(Image.open(out / new / f"{index}.png")), pixels(index))


@pytest.mark.parametrize("wanted", [*NASTY, "nul.png", "a:b", "end.", "end "])
def test_safe_names_are_single_visible_and_stay_what_they_are(wanted):
    name = safe_name(wanted)
    assert safe_name(name) == name
    assert Path(name).name == name
    assert name not in (".", "..")
    assert not name.startswith(".")
    assert not name.endswith((".", " "))
    assert len(name.encode()) <= 255


def test_names_are_given_once():
    names = Names()
    assert [names.take(n) for n in ("a.b", "A.B", "a.b-2", "1.png", "1.png")] == [
        "a.b",
        "A.B-2",
        "a.b-2-2",
        "1.png",
        "1-2.png",
    ]

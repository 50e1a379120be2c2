import csv
import dataclasses
import io
import json
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import labelmend
from blobs import QUICK, blobs, plant
from blobs import as_options as options_of
from coloured import COLOURS, TINY, TinyBackbone, coloured, write_folders
from labelmend.api import correct_images
from labelmend.cli.main import main
from labelmend.config import as_arguments
from labelmend.report.html import media_type
from labelmend.result import Source
from labelmend.storage.originals import open_originals, thumbnail
from labelmend.storage.source import digest, picture_source, table_source

pytestmark = pytest.mark.usefixtures("in_an_empty_folder")
NAMES = np.array(["ant", "bee", "cat"])


def as_options(parameters):
    return options_of(parameters)


FAST = as_options({**QUICK, "n_rounds": 1, "hidden": 8, "warmup_passes": 1})
TRAIN = as_options({**TINY, "n_rounds": 1})


def some_rows():
    features, true = blobs(60)
    return features, NAMES[plant(true, 0.1)[0]]


def write_csv(path, header=("p0", "p1", "p2", "p3", "kind"), columns=None, lines="\n"):
    features, labels = some_rows()
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator=lines)
        writer.writerow(header)
        writer.writerows(columns or [[*row, label] for row, label in zip(features, labels, strict=True)])
    return path


def run(*words, fast=FAST):
    assert main(["correct", *map(str, words), "--out", "run", "--quiet", *fast]) == 0
    return labelmend.load("run")


def opened(result, **how):
    return open_originals(Path("run"), result, **how)


# Tables


def test_a_row_comes_back_as_it_stands_in_the_csv():
    write_csv("t.csv")
    result = run("t.csv", "--labels", "kind")
    assert result.source.kind == "table"
    assert result.source.path == os.path.abspath("t.csv")
    found = opened(result)
    features, labels = some_rows()
    assert (found.kind, found.reason) == ("rows", "")
    assert found.row(7) == [*((f"p{i}", str(features[7][i])) for i in range(4)), ("kind", labels[7])]
    assert found.picture(7) is None
    assert found.path(7) is None


def test_rows_with_line_breaks_blank_lines_and_other_separators_are_found_again():
    features, labels = some_rows()
    note = ['line\nbreak, "quote"' if i % 3 else "naïve 漢字\r\n" for i in range(60)]
    with open("t.csv", "w", newline="", encoding="utf-8-sig") as file:
        writer = csv.writer(file, delimiter=";", lineterminator="\r\n")
        writer.writerow(["p0", "p1", "p2", "p3", "kind", "note"])
        for i, (row, label) in enumerate(zip(features, labels, strict=True)):
            writer.writerow([*row, label, note[i]])
            file.write("\r\n" * (i % 2))
    found = opened(run("t.csv", "--labels", "kind", "--ignore", "note"))
    for index in range(60):
        assert found.row(index)[3:] == [("p3", str(features[index][3])), ("kind", labels[index]), ("note", note[index])]


def test_dropped_rows_do_not_shift_the_others():
    features, labels = some_rows()
    rows = [[*row, label] for row, label in zip(features, labels, strict=True)]
    for bad in (0, 5, 41):
        rows[bad][1] = "inf"
    result = run(write_csv("t.csv", columns=rows), "--labels", "kind", "--drop-bad-rows")
    assert len(result) == 57
    found, kept = opened(result), np.delete(np.arange(60), [0, 5, 41])
    assert [found.row(i)[0][1] for i in range(57)] == [str(features[place][0]) for place in kept]


@pytest.mark.parametrize("ending", ["parquet", "npz", "npy"])
def test_rows_of_other_files(ending):
    features, labels = some_rows()
    names = [f"row {i}" for i in range(60)]
    whole = np.rint(features).astype(np.float32)
    if ending == "parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        columns = {"name": names, "half": pa.array(features[:, 0], pa.float32()), "x": features[:, 1], "kind": labels}
        pq.write_table(pa.table(columns), "t.parquet")
        found = opened(run("t.parquet", "--labels", "kind", "--id", "name"))
        expected = [("name", "row 9"), ("half", str(np.float32(features[9, 0]))), ("x", str(features[9, 1]))]
        assert found.row(9) == [*expected, ("kind", labels[9])]
    elif ending == "npz":
        np.savez("t.npz", X=whole, y=labels, names=names)
        found = opened(run("t.npz", "--labels", "y", "--id", "names"))
        expected = [(f"X[{i}]", f"{whole[9, i]:.0f}") for i in range(4)]
        assert found.row(9) == [("y", labels[9]), ("names", "row 9"), *expected]
    else:
        np.save("X.npy", whole)
        np.save("y.npy", labels)
        found = opened(run("X.npy", "--labels", "y.npy"))
        assert found.row(9) == [("label", labels[9]), *((str(i), f"{whole[9, i]:.0f}") for i in range(4))]
    assert found.reason == ""


def test_a_table_that_changed_is_noticed():
    write_csv("t.csv")
    result = run("t.csv", "--labels", "kind")
    lines = Path("t.csv").read_text().splitlines(keepends=True)
    for changed in ([lines[0], *reversed(lines[1:])], lines[:-1], [*lines, lines[-1]]):
        Path("t.csv").write_text("".join(changed))
        found = opened(result)
        assert found.kind == "none"
        assert "They have changed" in found.reason
        assert found.row(3) == []


def test_rows_with_ids_are_found_by_them_in_a_table_that_changed():
    features, labels = some_rows()
    rows = [[f"n{i}", *row, label] for i, (row, label) in enumerate(zip(features, labels, strict=True))]
    header = ("name", "p0", "p1", "p2", "p3", "kind")
    result = run(write_csv("t.csv", header, rows), "--labels", "kind", "--id", "name")
    write_csv("t.csv", header, [["new", 1, 2, 3, 4, "ant"], *reversed(rows[1:])])
    assert (opened(result).kind, "--data" in opened(result).reason) == ("none", True)
    table = Path("t.csv").resolve()
    found = opened(result, data=table)
    assert (found.kind, found.reason) == ("rows", f"1 of 60 are not at {table} any more")
    assert found.row(0) == []
    assert [found.row(i)[0] for i in range(1, 60)] == [("name", f"n{i}") for i in range(1, 60)]
    write_csv("t.csv", header, [[f"other{i}", *row[1:]] for i, row in enumerate(rows)])
    assert "They hold others" in opened(result, data=table).reason


def test_a_table_that_changes_while_it_is_open_shows_the_rows_it_had():
    found = opened(run(write_csv("t.csv"), "--labels", "kind"))
    row = found.row(3)
    with open("t.csv", "w") as file:
        file.write("1,2,3,4,ant\n")
    assert row
    assert found.row(3) == row


def test_data_that_moved_are_found_beside_the_run_or_where_one_says():
    result = run(write_csv("t.csv"), "--labels", "kind")
    row = opened(result).row(3)
    os.mkdir("elsewhere")
    os.rename("t.csv", "elsewhere/t.csv")
    found = opened(result)
    assert found.kind == "none"
    assert "say where they are with --data" in found.reason
    for place in (Path("elsewhere"), Path("elsewhere/t.csv")):
        assert opened(result, data=place).row(3) == row
    os.rename("run", "elsewhere/run")
    assert open_originals(Path("elsewhere/run"), result).row(3) == row
    os.rename("elsewhere/t.csv", "elsewhere/renamed.csv")
    assert opened(result, data=Path("elsewhere/renamed.csv")).row(3) == row


def test_arrays_are_not_kept():
    features, labels = some_rows()
    result = labelmend.correct(features, labels, expert=QUICK)
    assert result.source == Source("arrays")
    result.save("run")
    found = opened(labelmend.load("run"))
    assert (found.kind, found.row(0), found.picture(0), found.path(0)) == ("none", [], None, None)
    assert "arrays in Python" in found.reason
    assert "older version" in opened(dataclasses.replace(result, source=None)).reason


# Pictures


@pytest.fixture
def photos():
    """Class folders: 60 pictures, 4 of them in the wrong one; and their pixels by name."""
    pixels, true = coloured()
    given, _ = plant(true, 0.07)
    paths = write_folders(Path("photos"), pixels, np.array(COLOURS)[given])
    return {path.relative_to("photos").as_posix(): picture for path, picture in zip(paths, pixels, strict=True)}


def train(*words):
    return run(*words, "--mode", "train", fast=TRAIN)


def same(picture, pixels):
    return picture.mode == "RGB" and np.array_equal(np.asarray(picture), pixels)


def test_pictures_of_class_folders_come_back_also_beside_unreadable_ones(photos):
    Path("photos/red/000.png").write_bytes(b"no picture")
    result = train("photos")
    assert result.source == Source("pictures", os.path.abspath("photos"), digest(Path("photos")), read_back=True)
    found = opened(result)
    assert (found.kind, found.reason, found.row(0)) == ("pictures", "", [])
    for index, name in enumerate(result.ids):
        assert found.path(index) == Path("photos", name).resolve()
        if name == "red/000.png":
            assert found.picture(index) is None
        else:
            assert same(found.picture(index), photos[name])


def test_a_folder_that_changed_shows_no_picture_under_the_name_of_another(photos):
    result = train("photos")
    os.rename("photos/red/000.png", "photos/blue/000.png")
    Image.new("RGB", (8, 8)).save("photos/red/0000.png")
    assert (opened(result).kind, "--data" in opened(result).reason) == ("none", True)
    found = opened(result, data=Path("photos"))
    assert found.reason.startswith("1 of 60 are not at")
    for index, name in enumerate(result.ids):
        picture = found.picture(index)
        assert picture is None if name == "red/000.png" else same(picture, photos[name])
    os.rename("photos", "others")
    write_folders(Path("photos"), coloured(n=9)[0], [f"k{i % 2}" for i in range(9)])
    assert "They hold others" in opened(result, data=Path("photos")).reason
    assert opened(result, data=Path("others")).kind == "pictures"


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz", "saved"])
def test_pictures_listed_in_rows(photos, ending):
    names, pixels = list(photos), np.stack(list(photos.values()))
    labels, paths = [name.split("/")[0] for name in names], [f"photos/{name}" for name in names]
    if ending == "csv":
        Path("t.csv").write_text("path,label\n" + "".join(f"{p},{k}\n" for p, k in zip(paths, labels, strict=True)))
    elif ending == "parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table({"path": paths, "label": labels}), "t.parquet")
    elif ending == "npz":
        np.savez("t.npz", images=pixels, labels=labels)
    else:
        datasets = pytest.importorskip("datasets")
        features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("string")})
        rows = {"image": [Image.fromarray(p) for p in pixels], "label": labels}
        datasets.Dataset.from_dict(rows, features=features).save_to_disk("t.saved")
    source = f"t.{ending}"
    result = train(source)
    found = opened(result)
    assert (found.kind, found.reason) == ("pictures", "")
    assert all(same(found.picture(index), pixels[index]) for index in range(60))
    has_files = ending in ("csv", "parquet")
    assert [found.path(i) for i in (0, 59)] == [Path(paths[i]).resolve() if has_files else None for i in (0, 59)]
    if ending == "npz":
        np.savez("t.npz", images=pixels[::-1], labels=labels)
    elif ending == "saved":
        state = json.loads(Path("t.saved/state.json").read_text())
        Path("t.saved/state.json").write_text(json.dumps({**state, "_fingerprint": "0"}))
    if not has_files:
        assert "They have changed" in opened(result).reason


def test_pictures_given_in_python(photos):
    how = {"mode": "embed", "backbone": TinyBackbone(), "size": 8, **TINY, "n_rounds": 1}
    paths, labels = [f"photos/{name}" for name in photos], [name.split("/")[0] for name in photos]
    result = correct_images(paths, labels, ids=list(range(60)), **as_arguments(how))
    assert all(same(opened(result).picture(i), pixels) for i, pixels in enumerate(photos.values()))
    os.rename("photos", "moved")
    assert "say where they are" in opened(result).reason
    assert same(opened(result, data=Path("moved")).picture(59), list(photos.values())[59])
    assert correct_images("moved", **as_arguments(how)).source.path == os.path.abspath("moved")
    assert correct_images(np.stack(list(photos.values())), labels, **as_arguments(how)).source == Source("arrays")


def test_the_demo_can_show_its_pictures():
    from labelmend.cli.demo import clothes, demo

    demo(Path("run"), 0, True, n_rows=200)
    found = opened(labelmend.load("run"))
    assert np.array_equal(np.asarray(found.picture(150).convert("L")), clothes().pictures[150])


# Pictures for people


def test_a_picture_is_upright_and_on_white():
    exif = Image.Exif()
    exif[0x0112] = 6  # turned a quarter
    pixels = np.zeros((20, 40, 3), dtype=np.uint8)
    pixels[:, :20] = 255
    folders = [Path("p/a"), Path("p/b")]
    for folder in folders:
        folder.mkdir(parents=True)
        for i in range(6):
            Image.fromarray(pixels).save(folder / f"{i}.jpg", exif=exif, quality=95)
    Image.new("RGBA", (30, 10), (0, 0, 0, 0)).save("p/b/clear.png")
    source = Source("pictures", os.path.abspath("p"))
    names = [*(f"{k}/{i}.jpg" for k in "ab" for i in range(6)), "b/clear.png"]
    features, true = blobs(13, 2)
    result = dataclasses.replace(labelmend.correct(features, true, ids=names, expert=QUICK), source=source)
    found = opened(result)
    assert found.picture(0).size == (20, 40)
    assert found.picture(0).getpixel((10, 2)) == (255, 255, 255)
    assert found.picture(12).getpixel((5, 5)) == (255, 255, 255)


def test_a_thumbnail_is_small_and_a_tiny_picture_stays_as_it_is():
    random = np.random.default_rng(0)
    tiny = Image.fromarray(random.integers(0, 255, (14, 14, 3), dtype=np.uint8))
    encoded = thumbnail(tiny, 128)
    assert media_type(encoded) == "image/png"
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(encoded))), np.asarray(tiny))
    large = Image.fromarray(random.integers(0, 255, (300, 400, 3), dtype=np.uint8))
    encoded = thumbnail(large, 100)
    assert media_type(encoded) == "image/jpeg"
    assert Image.open(io.BytesIO(encoded)).size == (100, 75)
    assert large.size == (400, 300)


# A run of somebody else's


def tampered(**changes):
    source = json.loads(Path("run/source.json").read_text())
    Path("run/source.json").write_text(json.dumps({**source, **changes}))
    return labelmend.load("run")


def test_another_table_with_the_same_ids_is_not_opened():
    features, labels = some_rows()
    rows = [[f"n{i}", *row, label] for i, (row, label) in enumerate(zip(features, labels, strict=True))]
    header = ("name", "p0", "p1", "p2", "p3", "kind")
    run(write_csv("t.csv", header, rows), "--labels", "kind", "--id", "name")
    Path("private").mkdir()
    write_csv("private/t.csv", header, [[row[0], 1, 2, 3, 4, "ant"] for row in rows])
    for changes in ({}, {"digest": None}, {"digest": "0" * 64}):
        found = opened(tampered(path=os.path.abspath("private/t.csv"), **changes))
        assert (found.kind, found.row(3)) == ("none", [])
        assert "--data" in found.reason
    assert opened(labelmend.load("run"), data=Path("private/t.csv")).row(3)[1] == ("p0", "1")


def test_pictures_of_another_folder_are_not_opened(photos):
    train("photos")
    write_folders(Path("private"), np.stack(list(photos.values())) // 2, [name.split("/")[0] for name in photos])
    for changes in ({}, {"digest": None}):
        found = opened(tampered(path=os.path.abspath("private"), **changes))
        assert (found.kind, found.picture(0)) == ("none", None)
    assert opened(labelmend.load("run"), data=Path("private")).picture(0) is not None


@pytest.mark.parametrize("way", ["absolute", "..", "link"])
def test_a_picture_outside_of_the_data_is_not_opened_without_data(photos, way):
    """Also where table and digest are right: whoever made the run may have made them too."""
    Image.new("RGB", (8, 8), "red").save("secret.png")
    Path("set").mkdir()
    names = list(photos)
    first = {"absolute": os.path.abspath("secret.png"), "..": "../secret.png", "link": "link.png"}[way]
    os.symlink(os.path.abspath("secret.png"), "set/link.png")
    for name in names[1:]:
        Path("set", name).parent.mkdir(exist_ok=True, parents=True)
        Image.fromarray(photos[name]).save(Path("set", name))
    table = Path("set/photos.csv")
    paths = zip([first, *names[1:]], names, strict=True)
    lines = [f"{number},{path},{name.split('/')[0]}" for number, (path, name) in enumerate(paths)]
    table.write_text("\n".join(["id,path,label", *lines]) + "\n")
    result = train(str(table))
    now = opened(result)
    assert (now.picture(0), now.path(0)) == (None, None)
    assert now.picture(1) is not None
    assert ("not in" in now.reason) == (way != "link")
    named = opened(result, data=table)
    assert named.picture(0) is not None
    if way == "link":
        assert opened(result, follow_links=True).picture(0) is not None
    fresh = dataclasses.replace(result, source=picture_source(table))  # of this very process
    assert opened(fresh).picture(0) is not None


def test_files_that_a_run_folder_lists_are_not_opened_without_data(photos):
    paths = [Path("photos", name) for name in photos]
    given = [name.split("/")[0] for name in photos]
    result = correct_images(paths, given, mode="train", **as_arguments({**TINY, "n_rounds": 1}))
    assert opened(result).picture(0) is not None
    result.save("run")
    found = opened(labelmend.load("run"))
    assert (found.kind, "--data" in found.reason) == ("none", True)
    assert opened(labelmend.load("run"), data=Path("photos")).picture(0) is not None


def test_labels_of_an_npy_lie_beside_it():
    features, labels = some_rows()
    Path("set").mkdir()
    np.save("set/X.npy", features.astype(np.float32))
    np.save("set/y.npy", labels)
    np.save("secret.npy", labels)
    result = run("set/X.npy", "--labels", "set/y.npy")
    assert opened(result).kind == "rows"
    assert opened(tampered(labels=os.path.abspath("secret.npy"))).kind == "none"


def test_where_the_data_came_from_is_written_without_saying_that_it_was_read_back():
    source = table_source(Path(write_csv("t.csv")), "kind")
    assert "read_back" not in source.plain()

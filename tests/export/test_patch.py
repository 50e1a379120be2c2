import dataclasses
import json
import os
from pathlib import Path

import numpy as np
import pytest

from handed_over import CHANGED, GIVEN, NEW, SURE, read_table, tree, write_pictures, write_table
from labelmend.cli.main import main
from labelmend.errors import ConfigError, DataError, RunFolderError
from labelmend.export.patch import Columns, undo
from labelmend.storage.source import picture_source, table_source


def undone(given, out="back.csv", **how):
    undo(Path("p.json"), Path(given), Path(out), **how)
    return Path(out)


def test_a_patch_says_what_changed_and_whose_it_is(table):
    patch = json.loads(table.export("patch", "p.json").read_text())
    assert patch["changes"] == [{"id": str(i), "old": GIVEN[i], "new": NEW[i], "confidence": SURE[i]} for i in CHANGED]
    assert (patch["format"], patch["format_version"], patch["samples"]) == ("labelmend patch", 1, 8)
    assert (patch["fingerprint"], patch["data"], patch["labels"]) == (table.fingerprint, "t.csv", "kind")


def test_doubtful_labels_that_stay_are_no_changes(table):
    changes = json.loads(table.export("patch", "p.json", review="given").read_text())["changes"]
    assert [change["id"] for change in changes] == ["1", "2", "6"]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("with_data", [False, True])
def test_a_table_has_its_old_labels_back(table, kind, with_data):
    parquet = pytest.importorskip("pyarrow.parquet")
    table.export("patch", "p.json")
    table.export(kind, f"new.{kind}", with_data=with_data)
    back, column = undone(f"new.{kind}", f"back.{kind}"), "kind" if with_data else "label"
    if kind == "csv":
        rows, new = read_table(back), read_table("new.csv")
        assert [row[column] for row in rows] == [label or "" for label in GIVEN]
        others = [name for name in new[0] if name != column]
        assert [[row[name] for name in others] for row in rows] == [[row[name] for name in others] for row in new]
    else:
        found, new = parquet.read_table(back), parquet.read_table("new.parquet")
        assert found.schema == new.schema
        assert found.column(column).to_pylist() == GIVEN


def test_what_stood_for_no_label_comes_back(make):
    given = [label or "-1" for label in GIVEN]
    source = dataclasses.replace(table_source(write_table(given=given), "kind"), missing="-1")
    result = make(source)
    result.export("patch", "p.json")
    result.export("csv", "new.csv", with_data=True)
    assert [row["kind"] for row in read_table(undone("new.csv"))] == given


@pytest.mark.parametrize("named", [True, False])
def test_rows_are_found_by_their_names_in_another_order(make, named):
    names = [f"n{i}" for i in range(8)]
    paths = [f"photos/{name}" for name in write_pictures()]
    if named:
        result = make(table_source(write_table(name=names), "kind", "name"), names)
    else:
        result = make(picture_source(write_table("m.csv", file=paths, label=[g or "" for g in GIVEN])), paths)
    result.export("patch", "p.json")
    result.export("csv", "new.csv", with_data=True)
    lines = Path("new.csv").read_text().splitlines(keepends=True)
    Path("new.csv").write_text("".join([lines[0], *reversed(lines[1:])]))
    column = "kind" if named else "label"
    assert [row[column] for row in read_table(undone("new.csv"))] == [label or "" for label in reversed(GIVEN)]


def test_labels_that_are_others_by_now_are_named_and_nothing_is_written(table):
    table.export("patch", "p.json")
    table.export("csv", "new.csv", with_data=True)
    text = Path("new.csv").read_text().replace("0.5,ant", "0.5,wasp")
    Path("new.csv").write_text(text)
    with pytest.raises(DataError, match=r"1 of 4.*'wasp'.*'ant'"):
        undone("new.csv")
    with pytest.raises(DataError, match=r"4 of 4 are not"):
        undone("t.csv")  # the table as it was given has the old labels already
    assert not Path("back.csv").exists()


def test_samples_that_are_not_there_are_named(table):
    table.export("patch", "p.json")
    table.export("csv", "new.csv")
    lines = Path("new.csv").read_text().splitlines(keepends=True)
    Path("new.csv").write_text("".join(lines[:-2]))
    with pytest.raises(DataError, match="1 are not there: 6"):
        undone("new.csv")
    with pytest.raises(DataError, match="no such column: 'nothing'"):
        undone("new.csv", columns=Columns(id="nothing"))
    with pytest.raises(DataError, match="no such column: 'nothing'"):
        undone("new.csv", columns=Columns(labels="nothing"))
    with pytest.raises(DataError, match="must name every row once"):
        undone("new.csv", columns=Columns(id="status"))


def test_other_columns_can_be_named(table):
    table.export("patch", "p.json")
    table.export("csv", "new.csv")
    text = Path("new.csv").read_text().replace("id,label,", "number,species,", 1)
    Path("new.csv").write_text(text)
    rows = read_table(undone("new.csv", columns=Columns("species", "number")))
    assert [row["species"] for row in rows] == [label or "" for label in GIVEN]


def test_the_input_and_the_target_are_safe(table):
    table.export("patch", "p.json")
    table.export("csv", "new.csv")
    before = Path("new.csv").read_bytes()
    with pytest.raises(RunFolderError, match="must not be a run or the data"):
        undone("new.csv", "new.csv", force=True)
    Path("back.csv").write_text("mine")
    with pytest.raises(RunFolderError, match="must not exist"):
        undone("new.csv")
    assert (Path("new.csv").read_bytes(), Path("back.csv").read_text()) == (before, "mine")


def test_class_folders_are_as_they_were(photos):
    photos.export("patch", "p.json")
    photos.export("folders", "sorted")
    before = tree("sorted")
    for link in (False, True):
        back = tree(undone("sorted", f"back{link}", link=link))
        pictures = {name: content for name, content in back.items() if name.endswith(".png")}
        assert pictures == tree("photos")
    assert tree("sorted") == before
    assert [row["label"] for row in read_table("backTrue/labels.csv")] == [label or "" for label in GIVEN]
    index = Path("sorted/labels.csv")
    text = index.read_text()
    index.write_text(text.replace("ant/0.png,", "../photos/ant/0.png,", 1))
    with pytest.raises(DataError, match="must name files of its folder"):
        undone("sorted", "again")
    index.write_text(text)
    os.remove("sorted/ant/1.png")
    with pytest.raises(DataError, match=r"1\.png.*no such file"):
        undone("sorted", "again")
    with pytest.raises(DataError, match=r"export --to folders` made\. photos are others"):
        undone("photos", "again")
    with pytest.raises(ConfigError, match="Class folders have none"):
        undone("sorted", "again", columns=Columns("label"))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": "labelmend patch", "format_version": 1, "changes": [{}]}']
)
def test_what_is_no_patch_is_refused(text):
    Path("p.json").write_text(text)
    with pytest.raises(DataError, match="must be a patch that"):
        undone("t.csv")
    with pytest.raises(DataError, match="no such file"):
        undo(Path("nowhere.json"), Path("t.csv"), Path("out"))


def test_another_version_is_refused(table):
    patch = json.loads(table.export("patch", "p.json").read_text())
    Path("p.json").write_text(json.dumps({**patch, "format_version": 9}))
    with pytest.raises(DataError, match="must be of format 1"):
        undone("t.csv")


def test_classes_of_a_hugging_face_column_stay_numbers(make):
    datasets = pytest.importorskip("datasets")
    names = ["bee", "cat", "ant"]
    features = datasets.Features({"x": datasets.Value("float64"), "label": datasets.ClassLabel(names=names)})
    codes = [None if g is None else names.index(g) for g in GIVEN]
    datasets.Dataset.from_dict({"x": np.arange(8.0), "label": codes}, features=features).to_parquet("t.parquet")
    parquet = pytest.importorskip("pyarrow.parquet")
    numbers = {"ant": 2, "bee": 0, "cat": 1, None: None}
    as_read = make(  # a table of numbers is read without its features: the labels are the numbers
        table_source(Path("t.parquet"), "label"),
        given=[numbers[g] for g in GIVEN],
        new=[numbers[n] for n in NEW],
        classes=np.array([0, 1, 2]),
    )
    as_read.export("patch", "p.json")
    as_read.export("parquet", "new.parquet", with_data=True)
    assert parquet.read_table("new.parquet").column("label").to_pylist() == [numbers[n] for n in NEW]
    assert datasets.Dataset.from_parquet("new.parquet").features["label_given"] == features["label"]
    assert parquet.read_table(undone("new.parquet", "b.parquet")).column("label").to_pylist() == codes


def test_the_command_tells_how_many(table, capsys):
    table.export("patch", "p.json")
    table.export("csv", "new.csv")
    assert main(["undo", "p.json", "--in", "new.csv", "--out", "back.csv"]) == 0
    assert "back.csv: 4 labels" in capsys.readouterr().out
    assert main(["undo", "p.json", "--in", "t.csv", "--out", "other.csv"]) == 2
    assert main(["undo", "p.json", "--in", "nowhere.csv", "--out", "other.csv"]) == 2
    assert "or not there" in capsys.readouterr().err

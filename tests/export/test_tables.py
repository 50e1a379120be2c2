import dataclasses
import datetime
from pathlib import Path

import numpy as np
import pytest

from handed_over import GIVEN, NEW, STATUS, SURE, read_table, write_pictures, write_table
from labelmend.errors import DataError, LabelmendWarning
from labelmend.storage.source import picture_source, table_source

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def test_csv_holds_every_sample_in_order(make):
    rows = read_table(make(ids=[f"n{i}" for i in range(8)]).export("csv", "out.csv"))
    assert list(rows[0]) == ["id", "label", "label_given", "status", "confidence"]
    assert [row["id"] for row in rows] == [f"n{i}" for i in range(8)]
    assert [row["label"] for row in rows] == NEW
    assert [row["label_given"] for row in rows] == [label or "" for label in GIVEN]
    assert [row["status"] for row in rows] == STATUS
    assert [float(row["confidence"]) for row in rows] == SURE


def test_doubtful_labels_may_stay_as_they_were_and_then_nothing_is_said_about_them(make):
    rows = read_table(make().export("csv", "out.csv", review="given"))
    assert [row["label"] for row in rows] == [*NEW[:3], "ant", *NEW[4:]]  # 3 was changed, 5 was doubtful all the same
    assert (rows[3]["confidence"], rows[5]["confidence"]) == ("", "0.55")


def test_nothing_is_said_about_a_picture_that_could_not_be_read(photos):
    assert read_table(photos.export("csv", "out.csv"))[7]["confidence"] == ""


def test_parquet_keeps_the_type_of_the_labels(make):
    numbers = {"ant": 3, "bee": 5, "cat": 1, None: None}
    given, new = [numbers[label] for label in GIVEN], [numbers[label] for label in NEW]
    found = parquet.read_table(make(given=given, new=new, classes=np.array([1, 3, 5])).export("parquet", "out.parquet"))
    assert found.column("label").type == pyarrow.int64()
    assert found.column("label").to_pylist() == new
    assert found.column("label_given").to_pylist() == given
    assert found.column("confidence").to_pylist() == [np.float32(value) for value in SURE]


def test_labels_without_a_common_type_become_text(make):
    classes = np.array([1, "two", 3.5], dtype=object)
    mixed = {"ant": 1, "bee": "two", "cat": 3.5, None: None}
    result = make(given=[mixed[g] for g in GIVEN], new=[mixed[n] for n in NEW], classes=classes)
    found = parquet.read_table(result.export("parquet", "out.parquet"))
    assert found.column("label").to_pylist() == [str(mixed[n]) for n in NEW]


def test_what_looks_like_a_formula_is_written_as_it_is_and_told(make):
    classes = np.array(["=1+1", "-1", "@cmd"], dtype=object)
    names = {"ant": "=1+1", "bee": "-1", "cat": "@cmd", None: None}
    result = make(given=[names[g] for g in GIVEN], new=[names[n] for n in NEW], classes=classes)
    with pytest.warns(LabelmendWarning, match=r"2 id\(s\) or label\(s\) begin like a formula"):
        rows = read_table(result.export("csv", "out.csv"))
    assert [row["label"] for row in rows] == [names[n] for n in NEW]


# The user's own table


def test_the_users_table_has_its_label_column_replaced_and_nothing_else(table):
    before, after = read_table("t.csv"), read_table(table.export("csv", "out.csv", with_data=True))
    assert list(after[0]) == ["x", "kind", "note", "label_given", "label_confidence"]
    for index in range(8):
        assert {k: after[index][k] for k in ("x", "note")} == {k: before[index][k] for k in ("x", "note")}
        assert after[index]["kind"] == NEW[index]
        assert after[index]["label_given"] == before[index]["kind"]
        assert float(after[index]["label_confidence"]) == SURE[index]


def test_separators_and_rows_left_out_stay(make):
    path = write_table(separator=";", note=["1,5"] * 8)
    kept = [0, 1, 2, 3, 5, 6, 7]  # row 4 was left out by --drop-bad-rows
    take = {name: [values[i] for i in kept] for name, values in {"given": GIVEN, "new": NEW, "status": STATUS}.items()}
    result = make(table_source(path, "kind"), ids=kept, sure=[SURE[i] for i in kept], **take)
    rows = read_table(result.export("csv", "out.csv", with_data=True), separator=";")
    assert [row["kind"] for row in rows] == NEW
    assert [row["note"] for row in rows] == ["1,5"] * 8
    assert rows[4]["label_confidence"] == ""


def test_a_table_as_parquet_has_numbers_where_there_were_numbers(table):
    found = parquet.read_table(table.export("parquet", "out.parquet", with_data=True))
    assert found.column("x").to_pylist() == [0.5 * i for i in range(8)]
    assert found.column("note").to_pylist()[:2] == ["007", "=1+1"]
    assert found.column("kind").to_pylist() == NEW
    assert found.column("label_given").to_pylist() == GIVEN


@pytest.mark.parametrize("kind", ["int8", "dictionary", "date"])
def test_columns_of_a_parquet_file_keep_their_types(make, kind):
    days = [datetime.date(2020, 1, day) for day in (1, 2, 3)]
    classes = {"int8": [1, 2, 3], "dictionary": ["ant", "bee", "cat"], "date": [str(day) for day in days]}[kind]
    of = dict(zip(("ant", "bee", "cat"), classes, strict=True)) | {None: None}
    types = {"int8": pyarrow.int8(), "dictionary": pyarrow.dictionary(pyarrow.int32(), pyarrow.string())}
    column = pyarrow.array([of[g] for g in GIVEN], types.get(kind, pyarrow.string()))
    if kind == "date":
        column = pyarrow.array([None if g is None else days["abc".index(g[0])] for g in GIVEN])
    lists = pyarrow.array([[i] for i in range(8)])
    parquet.write_table(
        pyarrow.table({"kind": column, "x": pyarrow.array(range(8), pyarrow.int16()), "l": lists}), "t.parquet"
    )
    source = table_source(Path("t.parquet"), "kind")
    result = make(
        source, given=[of[g] for g in GIVEN], new=[of[n] for n in NEW], classes=np.array(classes, dtype=object)
    )
    found = parquet.read_table(result.export("parquet", "out.parquet", with_data=True))
    assert found.column("x").type == pyarrow.int16()
    assert found.column("l").to_pylist() == [[i] for i in range(8)]
    assert [None if v is None else str(v) for v in found.column("kind").to_pylist()] == [str(of[n]) for n in NEW]
    assert found.column("label_given").type == column.type
    if kind != "date":  # a run knows dates by their text
        assert found.column("kind").type == column.type


def test_arrays_become_a_table_too(make):
    np.savez("t.npz", X=np.arange(16).reshape(8, 2), y=[g or "" for g in GIVEN])
    result = make(table_source(Path("t.npz"), "y"))
    rows = read_table(result.export("csv", "out.csv", with_data=True))
    assert list(rows[0]) == ["y", "X[0]", "X[1]", "label_given", "label_confidence"]
    assert [row["y"] for row in rows] == NEW
    assert [row["X[1]"] for row in rows] == [str(2 * i + 1) for i in range(8)]
    found = parquet.read_table(result.export("parquet", "out.parquet", with_data=True))
    assert found.column("X[0]").to_pylist() == list(range(0, 16, 2))


def test_a_manifest_of_pictures_is_a_table_as_well(make):
    paths = [f"photos/{name}" for name in write_pictures()]
    path = write_table("m.csv", file=paths, label=[g or "" for g in GIVEN], note="abcdefgh")
    rows = read_table(make(picture_source(path), paths).export("csv", "out.csv", with_data=True))
    assert [(row["label"], row["note"]) for row in rows] == list(zip(NEW, "abcdefgh", strict=True))


def test_why_there_is_no_table_is_told(make, photos, table):
    for result, why in [
        (make(), "given as arrays"),
        (photos, "pictures without a table"),
        (dataclasses.replace(table, source=dataclasses.replace(table.source, path="/nowhere/u.csv")), "There are none"),
    ]:
        with pytest.raises(DataError, match=f"--with-data needs a run on a table.*{why}"):
            result.export("csv", "out.csv", with_data=True)


def test_a_column_that_would_be_added_must_not_be_there(make):
    result = make(table_source(write_table(label_given=range(8)), "kind"))
    with pytest.raises(DataError, match="no column 'label_given'"):
        result.export("csv", "out.csv", with_data=True)


def test_a_changed_table_is_told_and_rows_are_found_by_their_ids(make):
    names = [f"n{i}" for i in range(8)]
    source = table_source(write_table(name=names), "kind", "name")
    write_table(given=[*reversed(GIVEN[:7]), "ant"], name=[*reversed(names[:7]), "new"])
    with pytest.warns(LabelmendWarning, match="1 of 8 are not at"):
        rows = read_table(make(source, names).export("csv", "out.csv", with_data=True))
    assert {row["name"]: row["kind"] for row in rows} == dict(zip(names[:7], NEW[:7], strict=True)) | {"new": "ant"}

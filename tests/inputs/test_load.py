import sys

import numpy as np
import pytest

from labelmend.errors import DataError, MissingExtraError
from labelmend.inputs import frames
from labelmend.inputs.tables import drop_bad_rows, load_table

FEATURES = np.array([[1.0, 2.0], [3.0, 4.5], [-5.0, 0.0]], dtype=np.float32)


def csv_file(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode(encoding))
    return path


def csv_table(tmp_path, text, *args, **kwargs):
    return load_table(csv_file(tmp_path, text), *args, **kwargs)


def parquet_table(tmp_path, columns, *args, **kwargs):
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(columns), tmp_path / "table.parquet")
    return load_table(tmp_path / "table.parquet", *args, **kwargs)


def npz_table(tmp_path, arrays, *args, **kwargs):
    np.savez(tmp_path / "data.npz", **arrays)
    return load_table(tmp_path / "data.npz", *args, **kwargs)


def npy_table(tmp_path, array, *args, **kwargs):
    np.save(tmp_path / "X.npy", array)
    return load_table(tmp_path / "X.npy", *args, **kwargs)


# CSV


def test_a_csv_gives_numbers_and_the_text_of_its_labels_and_ids(tmp_path):
    text = 'a,kind,b,name,checked\n1,cat,2,x 1,yes\n3,"dog, big",4.5,x2,no\n-5,007,0,x3,\n'
    table = csv_table(tmp_path, text, "kind", "name", "checked")
    np.testing.assert_array_equal(table.features, FEATURES, strict=True)
    assert table.feature_names == ["a", "b"]
    assert table.labels.tolist() == ["cat", "dog, big", "007"]
    assert table.ids.tolist() == ["x 1", "x2", "x3"]
    assert table.trusted.tolist() == [True, False, False]
    assert table.notes == []


def test_an_empty_label_is_missing(tmp_path):
    assert csv_table(tmp_path, "a,y\n1,u\n2,\n3,v\n", "y").labels.tolist() == ["u", None, "v"]


def test_a_column_may_be_label_and_id_at_once(tmp_path):
    table = csv_table(tmp_path, "a,y\n1,u\n2,\n", "y", "y")
    assert table.ids.tolist() == ["u", ""]
    assert table.labels.tolist() == ["u", None]


def test_an_ignored_column_may_hold_anything(tmp_path):
    assert csv_table(tmp_path, "a,y,c\n1,u,text\n", "y", ignore=["c"]).feature_names == ["a"]


def test_blanks_are_nan_and_truth_values_are_numbers(tmp_path):
    table = csv_table(tmp_path, "a,b,c,y\n,NA,True,u\n1e3, 2 ,FALSE,u\nnan,inf,0,u\n", "y")
    np.testing.assert_array_equal(table.features, [[np.nan, np.nan, 1], [1000, 2, 0], [np.nan, np.inf, 0]])


def test_rows_are_the_same_in_whatever_chunks_they_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(frames, "CHUNK_ROWS", 2)
    rows = "".join(f"{i},c{i},{i * i}\n" for i in range(5))
    table = csv_table(tmp_path, "a,y,b\n" + rows, "y")
    np.testing.assert_array_equal(table.features, [[i, i * i] for i in range(5)])
    assert table.labels.tolist() == [f"c{i}" for i in range(5)]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separators_of_spreadsheets_are_recognised(tmp_path, separator):
    text = "a,b,y\n1,2,u\n3,4.5,v\n-5,0,w\n".replace(",", separator)
    np.testing.assert_array_equal(csv_table(tmp_path, text, "y").features, FEATURES)


def test_a_byte_order_mark_blank_lines_and_windows_line_ends_do_no_harm(tmp_path):
    path = csv_file(tmp_path, "a,y\r\n1,u\r\n\r\n2,v\r\n", "utf-8-sig")
    assert load_table(path, "y").features.tolist() == [[1], [2]]
    assert load_table(path, "y").feature_names == ["a"]


def test_columns_of_the_same_name_are_read_each_in_its_place(tmp_path):
    assert csv_table(tmp_path, "a,a,y\n1,2,u\n", "y").features.tolist() == [[1, 2]]


def test_a_label_column_that_is_there_twice_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"there must be one column named 'y'\. There are 2"):
        csv_table(tmp_path, "a,y,y\n1,u,v\n", "y")


@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
def test_a_saved_index_is_no_feature_and_the_user_is_told(tmp_path, name):
    table = csv_table(tmp_path, f"{name},a,y\n0,7,u\n1,8,v\n", "y")
    assert table.feature_names == ["a"]
    assert table.notes == [f"left out the column {name!r}, which looks like a saved index"]


def test_a_saved_index_can_be_the_id(tmp_path):
    table = csv_table(tmp_path, "Unnamed: 0,a,y\n10,7,u\n11,8,v\n", "y", "Unnamed: 0")
    assert table.ids.tolist() == ["10", "11"]
    assert table.notes == []


def test_a_number_too_large_is_an_infinity_without_a_fuss(tmp_path):
    assert np.isinf(csv_table(tmp_path, "a,y\n1e300,u\n", "y").features).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must hold data. It is empty"),
        ("\ufeff", "must begin with a line that names its columns"),
        ("a,y\n", "must hold rows"),
        ("a,y\n1,u\n1,2,3\n", "line 3 must have 2 cells like the header. Got 3 instead"),
        ("a,b,c,y\n1,red,x,u\n2,3,y,v\n", r"must be numbers. Got something else in: b, c\. .*--ignore NAME"),
        ('a,y\n1,"u\n2,v\n', "Could not read it: unexpected end of data"),
    ],
)
def test_a_csv_that_cannot_be_used_is_refused(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        csv_table(tmp_path, text, "y")


def test_a_csv_in_another_encoding_is_refused(tmp_path):
    with pytest.raises(DataError, match="must be a CSV file in UTF-8"):
        load_table(csv_file(tmp_path, "a,y\n1,café\n", "latin-1"), "y")


# Names


@pytest.mark.parametrize(("wrong", "right"), [("speces", "species"), ("SPECIES", "species"), ("Kind", "kind")])
def test_the_nearest_column_is_suggested(tmp_path, wrong, right):
    with pytest.raises(DataError, match=f"there must be a column named '{wrong}'. Did you mean '{right}'"):
        csv_table(tmp_path, "a,species,kind\n1,u,v\n", wrong)


def test_without_a_near_one_the_columns_are_listed_first_and_last(tmp_path):
    header = ",".join([f"p{i}" for i in range(64)] + ["species"])
    with pytest.raises(DataError, match=r"There are: 'p0', .*'p11', \.\.\., 'p59', .*, 'species'\."):
        csv_table(tmp_path, header + "\n", "zzz")


@pytest.mark.parametrize("option", [{"id_column": "nme"}, {"trusted_column": "nme"}, {"ignore": ["nme"]}])
def test_every_named_column_must_be_there(tmp_path, option):
    with pytest.raises(DataError, match=r"named 'nme'\. Did you mean 'name'"):
        csv_table(tmp_path, "a,name,y\n1,2,u\n", "y", **option)


def test_a_feature_array_has_no_meaning_in_a_table(tmp_path):
    with pytest.raises(DataError, match=r"--features names an array of an \.npz"):
        csv_table(tmp_path, "a,y\n1,u\n", "y", features="a")


@pytest.mark.parametrize("name", ["data.txt", "data", "data.csv.gz"])
def test_an_unknown_ending_is_refused(tmp_path, name):
    with pytest.raises(DataError, match=r"must end in \.csv, \.parquet, \.npz, \.npy\. Got "):
        load_table(tmp_path / name, "y")


def test_a_file_that_is_not_there_or_is_a_folder_is_refused(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    for name, words in (("nowhere.csv", "no such file"), ("folder.csv", "It is a folder")):
        with pytest.raises(DataError, match=words):
            load_table(tmp_path / name, "y")


def test_a_file_the_system_will_not_open_is_refused(tmp_path, monkeypatch):
    def deny(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    path = csv_file(tmp_path, "a,y\n1,u\n")
    monkeypatch.setattr(type(path), "open", deny)
    with pytest.raises(DataError, match=r"must be readable\. Got: Permission denied"):
        load_table(path, "y")


# Parquet


def test_a_parquet_table_keeps_the_types_of_its_labels(tmp_path):
    columns = {
        "a": [1, 3, -5],
        "y": [2, None, 7],
        "b": [2.0, 4.5, 0.0],
        "name": ["u", "v", "w"],
        "ok": [True, None, False],
    }
    table = parquet_table(tmp_path, columns, "y", "name", "ok")
    np.testing.assert_array_equal(table.features, FEATURES, strict=True)
    assert table.feature_names == ["a", "b"]
    assert table.labels.tolist() == [2, None, 7]
    assert table.ids.tolist() == ["u", "v", "w"]
    assert table.trusted.tolist() == [True, False, False]


def test_a_null_in_a_feature_is_nan(tmp_path):
    table = parquet_table(tmp_path, {"a": [1, None], "b": [None, True], "y": ["u", "v"]}, "y")
    np.testing.assert_array_equal(table.features, [[1, np.nan], [np.nan, 1]])


def test_a_parquet_column_of_text_is_refused_unless_it_is_ignored(tmp_path):
    columns = {"a": [1, 2], "c": ["red", "blue"], "y": ["u", "v"]}
    with pytest.raises(DataError, match=r"must be numbers\. Got something else in: c"):
        parquet_table(tmp_path, columns, "y")
    assert parquet_table(tmp_path, columns, "y", ignore=["c"]).feature_names == ["a"]


def test_a_row_without_an_id_is_refused(tmp_path):
    with pytest.raises(DataError, match="id column must have a value in every row"):
        parquet_table(tmp_path, {"a": [1, 2], "n": ["x", None], "y": ["u", "v"]}, "y", "n")


def test_an_empty_or_broken_parquet_file_is_refused(tmp_path):
    with pytest.raises(DataError, match="must hold rows"):
        parquet_table(tmp_path, {"a": np.array([]), "y": np.array([])}, "y")
    (tmp_path / "table.parquet").write_bytes(b"PAR1 and so on")
    with pytest.raises(DataError, match="must be a Parquet file"):
        load_table(tmp_path / "table.parquet", "y")


def test_without_pyarrow_the_line_to_install_it_is_told(tmp_path, monkeypatch):
    (tmp_path / "table.parquet").write_bytes(b"x")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r'needs pyarrow. Install it with: pip install "labelmend\[tables\]"'):
        load_table(tmp_path / "table.parquet", "y")


# numpy files


def test_an_npz_gives_its_arrays(tmp_path):
    arrays = {"X": FEATURES.astype(np.float64), "y": [4, 5, 6], "names": ["a", "b", "c"], "ok": [1, 0, 1]}
    table = npz_table(tmp_path, arrays, "y", "names", "ok")
    np.testing.assert_array_equal(table.features, FEATURES, strict=True)
    np.testing.assert_array_equal(table.labels, np.array([4, 5, 6]), strict=True)
    assert table.ids.tolist() == ["a", "b", "c"]
    assert table.trusted.tolist() == [True, False, True]


def test_bytes_are_read_as_text(tmp_path):
    labels = np.array(["Bär", "cat", "cat"])
    table = npz_table(tmp_path, {"X": FEATURES, "y": np.char.encode(labels, "utf-8")}, "y")
    assert table.labels.tolist() == labels.tolist()


@pytest.mark.parametrize(
    ("arrays", "options"),
    [
        ({"embedding": FEATURES, "scores": np.ones(3)}, {}),
        ({"X": FEATURES, "raw": np.ones((3, 9))}, {}),
        ({"X": np.ones((3, 9)), "mine": FEATURES}, {"features": "mine"}),
        ({"raw": np.ones((3, 9)), "mine": FEATURES}, {"ignore": ["raw"]}),
    ],
)
def test_the_feature_array_is_found(tmp_path, arrays, options):
    table = npz_table(tmp_path, {**arrays, "y": [1, 2, 3]}, "y", **options)
    np.testing.assert_array_equal(table.features, FEATURES)


@pytest.mark.parametrize("arrays", [{"a": FEATURES, "b": FEATURES}, {"a": np.ones(3)}, {}])
def test_without_one_clear_feature_array_the_option_is_named(tmp_path, arrays):
    with pytest.raises(DataError, match=r"two-dimensional.*--features"):
        npz_table(tmp_path, {**arrays, "y": [1, 2, 3]}, "y")


@pytest.mark.parametrize("matrix", [np.ones(3), np.ones((3, 2, 2)), np.array([["a"], ["b"], ["c"]]), np.eye(3) * 1j])
def test_features_that_are_no_table_of_numbers_are_refused(tmp_path, matrix):
    with pytest.raises(DataError, match=r"'X' must be a two-dimensional array of numbers\. Got"):
        npz_table(tmp_path, {"X": matrix, "y": [1, 2, 3]}, "y")
    with pytest.raises(DataError, match=r"must be a two-dimensional array of numbers\. Got"):
        npy_table(tmp_path, matrix, "0")


@pytest.mark.parametrize(("name", "what"), [("y", "labels"), ("ids", "ids"), ("ok", "trusted marks")])
def test_lengths_that_differ_are_refused(tmp_path, name, what):
    arrays = {"X": FEATURES, "y": [1, 2, 3], "ids": [1, 2, 3], "ok": [1, 0, 1]}
    arrays[name] = arrays[name][:2]
    with pytest.raises(DataError, match=rf"features and {what} must have the same length. Got 3 rows and .*\(2,\)"):
        npz_table(tmp_path, arrays, "y", "ids", "ok")


def test_an_npy_takes_its_labels_from_another_file_or_a_column(tmp_path):
    np.save(tmp_path / "y.npy", np.array(["u", "v", "u"]))
    table = npy_table(tmp_path, FEATURES, str(tmp_path / "y.npy"))
    np.testing.assert_array_equal(table.features, FEATURES)
    assert table.labels.tolist() == ["u", "v", "u"]
    with_labels = np.insert(FEATURES, 1, [7, 8, 7], axis=1)
    for column in ("1", "-2"):
        table = npy_table(tmp_path, with_labels, column)
        np.testing.assert_array_equal(table.features, FEATURES)
        np.testing.assert_array_equal(table.labels, np.array([7, 8, 7]), strict=True)
        assert table.feature_names == ["0", "2"]


@pytest.mark.parametrize("labels", ["2", "-3", "digit", "nowhere.npy"])
def test_labels_an_npy_does_not_have_are_refused(tmp_path, labels):
    with pytest.raises(DataError, match=r"column number below 2|no such file"):
        npy_table(tmp_path, FEATURES, labels)


def test_an_npy_has_no_named_columns(tmp_path):
    with pytest.raises(DataError, match=r"an \.npy has no names for --id"):
        npy_table(tmp_path, FEATURES, "0", trusted_column="1")


def test_python_objects_in_numpy_files_are_refused(tmp_path):
    objects = np.array(["a", None, 3], dtype=object)
    with pytest.raises(DataError, match="not read because they can run code; save text as"):
        npz_table(tmp_path, {"X": FEATURES, "y": objects}, "y")
    np.save(tmp_path / "y.npy", objects)
    with pytest.raises(DataError, match="not read because they can run code"):
        npy_table(tmp_path, FEATURES, str(tmp_path / "y.npy"))


@pytest.mark.parametrize("name", ["data.npz", "data.npy"])
@pytest.mark.parametrize("damage", [lambda whole: whole[:-40], lambda whole: b"hello", lambda whole: whole[:4]])
def test_damaged_numpy_files_are_refused(tmp_path, name, damage):
    path = tmp_path / name
    np.savez(path, X=FEATURES, y=[1, 2, 3]) if name.endswith("npz") else np.save(path, FEATURES)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match="must be a numpy file of numbers or text"):
        load_table(path, "0")


def test_numpy_files_under_each_others_name_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", FEATURES)
    (tmp_path / "a.npy").rename(tmp_path / "a.npz")
    with pytest.raises(DataError, match="must be a numpy file"):
        load_table(tmp_path / "a.npz", "y")
    np.savez(tmp_path / "b.npz", X=FEATURES)
    (tmp_path / "b.npz").rename(tmp_path / "b.npy")
    with pytest.raises(DataError, match=r"It is an \.npz; give it that ending"):
        load_table(tmp_path / "b.npy", "0")


# Marks and bad rows


def test_trusted_marks_are_what_people_write(tmp_path):
    marks = ["1", "0", "yes", "No", "TRUE", " f ", "", "1.0", "none"]
    text = "a,y,ok\n" + "".join(f"1,u,{mark}\n" for mark in marks)
    trusted = csv_table(tmp_path, text, "y", trusted_column="ok").trusted
    assert trusted.tolist() == [True, False, True, False, True, False, False, True, False]


def test_another_mark_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"trusted .*'ok'.*'maybe'"):
        csv_table(tmp_path, "a,y,ok\n1,u,maybe\n", "y", trusted_column="ok")


def test_bad_rows_are_dropped_everywhere_and_named(tmp_path):
    text = "a,y,n,ok\n1,u,r1,yes\nnan,v,r2,yes\n3,w,r3,no\ninf,x,r4,no\n"
    table = drop_bad_rows(csv_table(tmp_path, text, "y", "n", "ok"))
    assert table.features.tolist() == [[1], [3]]
    assert table.labels.tolist() == ["u", "w"]
    assert table.ids.tolist() == ["r1", "r3"]
    assert table.trusted.tolist() == [True, False]
    assert table.notes == ["left out 2 row(s) with NaN or infinity (ids: r2, r4)"]


def test_rows_without_ids_keep_their_positions_when_others_are_dropped(tmp_path):
    rows = "".join(f"{'nan' if i < 7 else i},u\n" for i in range(9))
    table = drop_bad_rows(csv_table(tmp_path, "a,y\n" + rows, "y"))
    assert table.ids.tolist() == [7, 8]
    assert table.trusted is None
    assert table.notes == ["left out 7 row(s) with NaN or infinity (rows counted from 0: 0, 1, 2, 3, 4, ...)"]


def test_a_table_without_bad_rows_stays_as_it_is(tmp_path):
    table = csv_table(tmp_path, "a,y\n1,u\n", "y")
    assert drop_bad_rows(table) is table


def test_a_csv_column_of_measurements_is_refused_as_labels(tmp_path):
    path = tmp_path / "prices.csv"
    path.write_text("a,price\n" + "".join(f"{i},{1.5 + i % 3}\n" for i in range(12)), encoding="utf-8")
    with pytest.raises(DataError, match="continuous"):
        load_table(path, "price")

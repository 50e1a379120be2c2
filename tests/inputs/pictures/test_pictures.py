import builtins
import io
import json
import os
import sys

import numpy as np
import pytest

from labelmend.errors import DataError, MissingExtraError
from labelmend.inputs.pictures import folders as picture_folder
from labelmend.inputs.pictures.find import find_pictures, holds_pictures

PNG = b"\x89PNG not looked at while finding"


def folder_of(root, *names):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(PNG)
    return root


def table_of(root, text, name="photos.csv"):
    (root / name).write_text(text, encoding="utf-8")
    return root / name


# Class folders


def test_the_first_folder_is_the_label_and_the_order_is_sorted(tmp_path):
    found = find_pictures(folder_of(tmp_path, "dog/b.PNG", "cat/2.jpg", "cat/2020/may/1.jpeg", "dog/a.webp"))
    assert found.ids.tolist() == ["cat/2.jpg", "cat/2020/may/1.jpeg", "dog/a.webp", "dog/b.PNG"]
    assert found.given == ["cat", "cat", "dog", "dog"]
    assert found.trusted is None
    assert found.sources == [tmp_path / name for name in found.ids]
    assert found.notes == []


def test_what_is_no_picture_is_counted(tmp_path):
    folder_of(tmp_path, "cat/1.jpg", "dog/1.jpg", "dog/notes.txt", "cat/README", "x.txt", "dog/._1.jpg", ".git/cat.jpg")
    found = find_pictures(tmp_path)
    assert found.ids.tolist() == ["cat/1.jpg", "dog/1.jpg"]
    assert found.notes == [
        "left out 3 file(s) that are no pictures by their names: 2 .txt, 1 without ending",
        "left out 2 hidden file(s) or folder(s), whose names begin with a dot",
    ]


def test_a_picture_in_no_class_folder_has_no_label(tmp_path):
    found = find_pictures(folder_of(tmp_path, "cat/1.jpg", "dog/1.jpg", "loose.jpg"))
    assert dict(zip(found.ids, found.given, strict=True)) == {"cat/1.jpg": "cat", "dog/1.jpg": "dog", "loose.jpg": None}
    assert found.notes == ["1 picture(s) lie in no class folder and have no label"]


def test_an_empty_class_folder_is_told(tmp_path):
    folder_of(tmp_path, "cat/1.jpg", "dog/1.jpg", "bird/notes.txt")
    assert "1 folder(s) hold no picture: bird" in find_pictures(tmp_path).notes


def test_of_splits_train_is_taken_and_a_table_beside_class_folders_is_no_label(tmp_path):
    folder_of(tmp_path, "train/cat/1.jpg", "train/dog/1.jpg", "test/cat/2.jpg", "train/metadata.csv")
    found = find_pictures(tmp_path)
    assert found.ids.tolist() == ["train/cat/1.jpg", "train/dog/1.jpg"]
    assert found.given == ["cat", "dog"]
    assert found.notes[0] == f"took the split 'train'; left out test: for these give {tmp_path / 'test'}"


def test_classes_named_like_splits_are_classes(tmp_path):
    found = find_pictures(folder_of(tmp_path, "train/1.jpg", "test/1.jpg"))
    assert found.given == ["test", "train"]


def test_folders_that_link_to_each_other_are_read_once(tmp_path):
    folder_of(tmp_path, "cat/1.jpg", "dog/big/old/1.jpg")
    (tmp_path / "cat/loop").symlink_to(tmp_path)
    (tmp_path / "a").symlink_to(tmp_path / "dog/big/old")
    (tmp_path / "self").symlink_to(tmp_path / "self")
    found = find_pictures(tmp_path)
    assert found.ids.tolist() == ["cat/1.jpg", "dog/big/old/1.jpg"], "the folder's own name comes before a link to it"
    assert any(note.startswith("left out 2 link(s) to folders read already") for note in found.notes)


def test_links_to_pictures_and_to_other_folders_are_followed(tmp_path):
    folder_of(tmp_path, "store/b/1.jpg", "photos/cat/1.jpg", "photos/dog/1.jpg")
    (tmp_path / "photos/bird").symlink_to(tmp_path / "store/b")
    (tmp_path / "photos/cat/2.jpg").symlink_to(tmp_path / "store/b/1.jpg")
    assert find_pictures(tmp_path / "photos").given == ["bird", "cat", "cat", "dog"]


def test_pipes_and_dead_links_are_found_without_opening_and_folders_named_like_pictures_are_folders(tmp_path):
    folder_of(tmp_path, "cat/1.jpg", "dog/x.jpg/2.jpg")
    os.mkfifo(tmp_path / "cat/pipe.jpg")
    (tmp_path / "cat/dead.jpg").symlink_to("nowhere")
    found = find_pictures(tmp_path)
    assert found.ids.tolist() == ["cat/1.jpg", "cat/dead.jpg", "cat/pipe.jpg", "dog/x.jpg/2.jpg"]


def test_names_in_any_script_and_none_stay_apart_and_can_be_written(tmp_path):
    folder_of(tmp_path, "кот/猫.jpg", "dög/🐕.jpg", "dög/\udcff.jpg", "dög/\\udcff.jpg", "dög/\\\\udcff.jpg")
    found = find_pictures(tmp_path)
    assert set(found.given) == {"кот", "dög"}
    assert "кот/猫.jpg" in found.ids.tolist()
    assert r"dög/\udcff.jpg" in found.ids.tolist()
    assert len(set(found.ids.tolist())) == 5
    "".join(found.ids).encode("utf-8")
    assert all(path.exists() for path in found.sources)


def test_a_folder_that_cannot_be_opened_is_told(tmp_path, monkeypatch):
    folder_of(tmp_path, "cat/1.jpg", "dog/1.jpg", "dog/closed/1.jpg")
    scandir = os.scandir

    def refuse(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(picture_folder.os, "scandir", refuse)
    assert find_pictures(tmp_path).notes == [
        f"could not open 1 folder(s): {tmp_path / 'dog/closed'} (Permission denied)"
    ]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ((), r"must hold at least two class folders.*Found no picture: it is empty"),
        (("cat/a.txt",), r"Found no picture: left out 1 file\(s\) that are no pictures by their names: 1 \.txt"),
        (("1.jpg", "2.jpg"), r"Found 2 picture\(s\) directly in it and no class folder.*columns path and label"),
        (("cat/1.jpg", "cat/2.jpg"), r"Found only 'cat'\."),
        (("all/cat/1.jpg", "all/dog/1.jpg"), r"Found only 'all'; did you mean .*all\?"),
    ],
)
def test_folders_without_classes_are_refused(tmp_path, names, message):
    with pytest.raises(DataError, match=message):
        find_pictures(folder_of(tmp_path, *names))


def test_what_is_not_there_or_of_another_kind_is_refused(tmp_path):
    with pytest.raises(DataError, match="there must be a folder or file"):
        find_pictures(tmp_path / "nothing")
    with pytest.raises(DataError, match=r"\.csv, \.parquet, \.npz.*'a\.zip'"):
        find_pictures(folder_of(tmp_path, "a.zip") / "a.zip")
    folder_of(tmp_path, "cat/1.jpg", "dog/1.jpg")
    with pytest.raises(DataError, match="columns can be named for tables only"):
        find_pictures(tmp_path, labels="kind")


# Tables


def test_a_csv_lists_paths_from_where_it_is(tmp_path):
    table = table_of(tmp_path, "path,label,id,trusted\na/1.jpg,cat,u,yes\n/b/2.jpg,dog,v,no\n,,w,\n")
    found = find_pictures(table)
    assert found.ids.tolist() == ["u", "v", "w"]
    assert found.given == ["cat", "dog", None]
    assert found.trusted.tolist() == [True, False, False]
    assert [path and path.as_posix() for path in found.sources] == [f"{tmp_path}/a/1.jpg", "/b/2.jpg", None]


def test_columns_can_be_named(tmp_path):
    table = table_of(tmp_path, "file;kind;key;sure\n1.jpg;cat;7;1\n2.jpg;dog;8;0\n")
    found = find_pictures(table, labels="kind", ids="key", trusted="sure")
    assert (found.given, found.ids.tolist(), found.trusted.tolist()) == (["cat", "dog"], ["7", "8"], [True, False])


def test_without_an_id_the_path_is_the_id_and_rows_are_counted_where_it_repeats(tmp_path):
    assert find_pictures(table_of(tmp_path, "path,label\n1.jpg,a\n2.jpg,b\n")).ids.tolist() == ["1.jpg", "2.jpg"]
    found = find_pictures(table_of(tmp_path, "path,label\n1.jpg,a\n1.jpg,b\n"))
    assert found.ids.tolist() == ["0", "1"]
    assert found.notes == ["rows are named by their numbers, from 0: their paths or ids repeat or are empty"]


@pytest.mark.parametrize(
    ("text", "names", "message"),
    [
        ("path,Lable\n1.jpg,a\n", {}, r"there must be a column named 'label'\. Did you mean 'Lable'\?"),
        ("pth,label\n1.jpg,a\n", {}, r"there must be a column named 'path'\. Did you mean 'pth'\?"),
        ("path,kind\n1.jpg,a\n", {"labels": "knid"}, r"named 'knid'\. Did you mean 'kind'\?"),
        ("path,label,label\n1.jpg,a,b\n", {}, r"there must be one column named 'label'\. There are 2"),
        ("path,label\n", {}, "must hold rows"),
        ("", {}, "there must be a column named 'label'"),
        ("path,label\n1.jpg\n", {}, r"line 2 must have 2 cells"),
        ("path,label\n1.jpg,a\n2.jpg,a\n", {}, r"at least two classes\. Got only the class 'a'"),
        ("path,label\n1.jpg,0.5\n2.jpg,1.5\n", {}, "continuous numbers such as 0.5"),
        ("path,label,k\n1.jpg,a,u\n2.jpg,b,u\n", {"ids": "k"}, r"ids must be unique\. Got 'u' more than once"),
        ("path,label,trusted\n1.jpg,a,maybe\n", {}, "must hold true/false"),
    ],
)
def test_tables_that_cannot_be_used_are_refused(tmp_path, text, names, message):
    with pytest.raises(DataError, match=message):
        find_pictures(table_of(tmp_path, text), **names)


def test_a_folder_without_classes_is_read_by_its_metadata(tmp_path):
    folder_of(tmp_path, "1.jpg", "2.jpg")
    table_of(tmp_path, "file_name,label\n1.jpg,cat\n2.jpg,dog\n", "metadata.csv")
    found = find_pictures(tmp_path)
    assert (found.given, found.sources) == (["cat", "dog"], [tmp_path / "1.jpg", tmp_path / "2.jpg"])


def test_a_parquet_table_of_paths(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(
        pyarrow.table({"path": ["1.jpg", None], "label": [3, 4], "trusted": [True, None]}), tmp_path / "t.parquet"
    )
    found = find_pictures(tmp_path / "t.parquet")
    assert (found.given, found.trusted.tolist()) == ([3, 4], [True, False])
    assert found.sources == [tmp_path / "1.jpg", None]
    assert found.ids.tolist() == ["0", "1"]


# Datasets of Hugging Face


FEATURES = {"image": {"_type": "Image"}, "label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}


def arrow_table(images=(b"one", b"two", b"three")):
    pyarrow = pytest.importorskip("pyarrow")
    rows = [{"bytes": image, "path": None} for image in images]
    kind = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    return pyarrow.table({"image": pyarrow.array(rows, kind), "label": [1, -1, 0][: len(rows)]})


def saved_dataset(folder, *tables):
    """As save_to_disk writes it, one file per table."""
    pyarrow = pytest.importorskip("pyarrow")
    folder.mkdir(parents=True)
    names = [f"data-{i:05}.arrow" for i in range(len(tables))]
    for name, table in zip(names, tables, strict=True):
        with pyarrow.ipc.new_stream(str(folder / name), table.schema) as stream:
            stream.write_table(table)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))
    (folder / "dataset_info.json").write_text(json.dumps({"features": FEATURES}))
    return folder


def test_a_saved_dataset_gives_encoded_pictures_and_the_names_of_its_labels(tmp_path):
    found = find_pictures(saved_dataset(tmp_path / "ds", arrow_table(), arrow_table((b"four",))))
    assert found.given == ["dog", None, "cat", "dog"]
    assert [found.sources[i] for i in range(4)] == [b"one", b"two", b"three", b"four"]
    assert found.ids.tolist() == ["0", "1", "2", "3"]


def test_of_saved_splits_train_is_taken(tmp_path):
    saved_dataset(tmp_path / "train", arrow_table())
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["test", "train"]}')
    found = find_pictures(tmp_path)
    assert (len(found), found.notes) == (3, ["took the split 'train'; left out test"])
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["a", "b"]}')
    with pytest.raises(DataError, match=r"must have a split named 'train'\. It has a, b"):
        find_pictures(tmp_path)


def test_a_parquet_file_of_encoded_pictures(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    table = arrow_table().replace_schema_metadata({"huggingface": json.dumps({"info": {"features": FEATURES}})})
    parquet.write_table(table, tmp_path / "t.parquet")
    found = find_pictures(tmp_path / "t.parquet")
    assert (found.given, found.sources[2]) == (["dog", None, "cat"], b"three")


def test_what_the_library_itself_saves_can_be_read(tmp_path):
    datasets = pytest.importorskip("datasets")
    image = pytest.importorskip("PIL.Image").new("RGB", (4, 4), "red")
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])})
    data = datasets.Dataset.from_dict({"image": [image] * 4, "label": [0, 1, 1, 1]}, features=features)
    datasets.disable_progress_bars()
    datasets.DatasetDict({"train": data.select([3, 0])}).save_to_disk(tmp_path / "ds")
    found = find_pictures(tmp_path / "ds")
    assert found.given == ["dog", "cat"]
    assert pytest.importorskip("PIL.Image").open(io.BytesIO(found.sources[0])).size == (4, 4)


def test_a_dataset_without_pyarrow_gives_the_line_that_installs_it(tmp_path, monkeypatch):
    saved_dataset(tmp_path / "ds", arrow_table())
    for name in ("pyarrow", "pyarrow.ipc", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r'pip install "labelmend\[tables\]"'):
        find_pictures(tmp_path / "ds")


def test_a_saved_dataset_is_read_without_the_library_that_saved_it(tmp_path, monkeypatch):
    saved_dataset(tmp_path / "ds", arrow_table())
    importing = builtins.__import__

    def refuse(name, *args, **kwargs):
        assert name.split(".")[0] != "datasets"
        return importing(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert len(find_pictures(tmp_path / "ds")) == 3


def test_damaged_datasets_and_columns_of_another_kind_are_refused(tmp_path):
    saved_dataset(tmp_path / "ds", arrow_table())
    (tmp_path / "ds/data-00000.arrow").write_bytes(b"no arrow")
    with pytest.raises(DataError, match=r"save_to_disk.*damaged"):
        find_pictures(tmp_path / "ds")
    numbers = arrow_table().drop_columns("image").append_column("image", [[1, 2, 3]])
    with pytest.raises(DataError, match=r"'image' .*int64"):
        find_pictures(saved_dataset(tmp_path / "numbers", numbers))


# Arrays


@pytest.mark.parametrize("shape", [(4, 5, 6), (4, 5, 6, 1), (4, 5, 6, 3)])
def test_an_npz_of_pictures(tmp_path, shape):
    pixels = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    np.savez(tmp_path / "a.npz", x=pixels, y=np.array([[1], [0], [1], [1]]))
    found = find_pictures(tmp_path / "a.npz")
    np.testing.assert_array_equal(found.sources, pixels)
    assert (found.given, found.ids.tolist(), found.trusted) == ([1, 0, 1, 1], ["0", "1", "2", "3"], None)


def test_arrays_can_be_named_and_a_label_can_be_missing(tmp_path):
    arrays = {"kind": np.array([0, np.nan, 1]), "name": np.array([b"u", b"v", b"w"]), "sure": np.array([1, 0, 0])}
    np.savez(tmp_path / "a.npz", images=np.zeros((3, 2, 2), np.uint8), **arrays)
    found = find_pictures(tmp_path / "a.npz", labels="kind", ids="name", trusted="sure")
    assert (found.given, found.ids.tolist()) == ([0, None, 1], ["u", "v", "w"])
    assert found.trusted.tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.zeros((2, 3, 8, 8), np.uint8)}, r"\(N, H, W, 3\)\. Got uint8 of shape \(2, 3, 8, 8\).*channels last"),
        ({"x": np.zeros((2, 8, 8, 4), np.uint8)}, r"Got uint8 of shape \(2, 8, 8, 4\) instead\.$"),
        ({"x": np.zeros((2, 8, 8), np.float32)}, "Got float32"),
        ({"x": np.zeros((3, 8, 8), np.uint8)}, r"'y' must hold one value per picture \(3\)\. Got shape \(2,\)"),
        ({"imagse": np.zeros((2, 8, 8), np.uint8)}, r"an? array named 'images'\. Did you mean 'imagse'\?"),
        ({"x": np.array([None, {}])}, "holds Python objects"),
    ],
)
def test_arrays_of_another_kind_are_refused(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", y=np.array([0, 1]), **arrays)
    with pytest.raises(DataError, match=message):
        find_pictures(tmp_path / "a.npz")


# Pictures or vectors


@pytest.mark.parametrize(
    ("text", "other", "expected"),
    [
        ("path,label\ncat/1.jpg,cat\n", (), True),
        ("x;file_name;label\n1;cat/1.PNG;cat\n", (), True),
        ("path,label\ncat/1.jpg,cat\n", ("path",), False),  # it names the rows
        ("path,label\nC:,cat\n", (), False),
        ("image,label\n12.5,cat\n", (), False),  # a feature with such a name
        ("picture,label\ncat/1.jpg,cat\n", (), False),
        ("path,label\n", (), False),
        ("", (), False),
        ('path,label\n"cat/1.jpg,cat\n', (), False),
    ],
)
def test_a_table_holds_pictures_if_a_usual_column_names_files_of_pictures(tmp_path, text, other, expected):
    assert holds_pictures(table_of(tmp_path, text), other) is expected


def test_a_parquet_holds_pictures_by_path_or_inside(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for name, column, expected in [
        ("paths", ["a.jpg"], True),
        ("inside", [{"bytes": b"x", "path": None}], True),
        ("numbers", [0.5], False),
    ]:
        parquet.write_table(pyarrow.table({"image": column, "label": ["cat"]}), tmp_path / f"{name}.parquet")
        assert holds_pictures(tmp_path / f"{name}.parquet") is expected
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1 no")
    assert not holds_pictures(tmp_path / "damaged.parquet")


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.zeros((4, 8, 8), np.uint8), True),
        (np.zeros((4, 8, 8, 3), np.uint8), True),
        (np.zeros((4, 8), np.uint8), False),
        (np.zeros((4, 8, 8), np.float32), False),
        (np.zeros((4, 8, 8, 7), np.uint8), False),
    ],
)
def test_an_npz_holds_pictures_by_type_and_shape(tmp_path, array, expected):
    np.savez(tmp_path / "data.npz", X=array, y=[0, 1, 0, 1])
    assert holds_pictures(tmp_path / "data.npz") is expected
    assert not holds_pictures(tmp_path / "data.npz", ("X",))


def test_folders_hold_pictures_and_what_is_not_there_or_damaged_does_not(tmp_path):
    assert holds_pictures(tmp_path)
    assert not holds_pictures(tmp_path / "nowhere.csv")
    (tmp_path / "damaged.npz").write_bytes(b"PK no")
    (tmp_path / "X.npy").write_bytes(b"no")
    assert not holds_pictures(tmp_path / "damaged.npz")
    assert not holds_pictures(tmp_path / "X.npy")

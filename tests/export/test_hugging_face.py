from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from handed_over import CLASSES, GIVEN, NEW, SURE, pixels, write_pictures, write_table
from labelmend.errors import DataError, LabelmendWarning
from labelmend.storage.source import ARRAYS, picture_source, table_source

datasets = pytest.importorskip("datasets")


def codes(labels, names=("ant", "bee", "cat")):
    return [None if label is None else list(names).index(label) for label in labels]


def exported(result, **how):
    return datasets.load_from_disk(str(result.export("huggingface", "out", **how)))


def sure(found):
    return [value if value is None else np.float32(value) for value in found["label_confidence"]]


@pytest.mark.parametrize("link", [False, True])
def test_class_folders_become_pictures_with_classes(photos, link):
    with pytest.warns(LabelmendWarning, match=r"1 picture.*row 7"):
        found = exported(photos, link=link)
    assert found.features["label"] == datasets.ClassLabel(names=CLASSES.tolist())
    assert found.features["label_given"] == found.features["label"]
    assert list(found["label"]) == codes(NEW)
    assert list(found["label_given"]) == codes(GIVEN)
    assert sure(found) == [*(np.float32(value) for value in SURE[:7]), None]
    assert list(found["id"]) == photos.ids.tolist()
    for index in range(7):
        assert np.array_equal(np.asarray(found[index]["image"]), pixels(index))
    assert found[7]["image"] is None
    raw = found.cast_column("image", datasets.Image(decode=False))[0]["image"]
    assert (raw["bytes"] is None) == link


def test_a_table_keeps_its_columns(table):
    found = exported(table)
    assert found.column_names == ["x", "kind", "note", "label_given", "label_confidence"]
    assert list(found["x"]) == [0.5 * i for i in range(8)]
    assert list(found["kind"]) == NEW
    assert list(found["label_given"]) == GIVEN
    assert sure(found) == [np.float32(value) for value in SURE]


def test_a_saved_dataset_keeps_its_features(make):
    names = ["cat", "bee", "ant", "dog"]
    features = datasets.Features(
        {
            "image": datasets.Image(),
            "label": datasets.ClassLabel(names=names),
            "box": datasets.List(datasets.Value("float32"), length=4),
            "about": {"who": datasets.Value("string")},
        }
    )
    columns = {
        "image": [Image.fromarray(pixels(i)) for i in range(8)],
        "label": codes(GIVEN, names),
        "box": [[i, 0, 1, 2] for i in range(8)],
        "about": [{"who": f"w{i}"} for i in range(8)],
    }
    saved = datasets.Dataset.from_dict(columns, features=features)
    datasets.DatasetDict({"train": saved}).save_to_disk("saved")
    found = exported(make(picture_source(Path("saved"))))
    assert found.features == {
        **features,
        "label_given": features["label"],
        "label_confidence": datasets.Value("float32"),
    }
    assert list(found["label"]) == codes(NEW, names)
    assert list(found["label_given"]) == codes(GIVEN, names)
    assert found[3]["box"] == [3, 0, 1, 2]
    assert found[3]["about"] == {"who": "w3"}
    assert np.array_equal(np.asarray(found[5]["image"]), pixels(5))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_manifest_gets_an_image_column(make, ending):
    paths = [f"photos/{name}" for name in write_pictures()]
    path = write_table("m.csv", file=paths, label=[g or "" for g in GIVEN], year=range(8))
    note = None
    if ending == "parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        odd = pa.array([[i] for i in range(8)])
        columns = {"file": paths, "label": pa.array(GIVEN), "year": pa.array(range(8), pa.int16()), "odd": odd}
        pq.write_table(pa.table(columns), "m.parquet")
        path, note = Path("m.parquet"), "left out the column.s. odd"
    result = make(picture_source(path), paths)
    if note:
        with pytest.warns(LabelmendWarning, match=note):
            found = exported(result)
    else:
        found = exported(result)
    assert list(found["label"]) == NEW
    assert list(found["year"]) == list(range(8))
    assert list(found["file"]) == paths
    assert all(np.array_equal(np.asarray(found[i]["image"]), pixels(i)) for i in range(8))


def test_pictures_inside_a_parquet_file_stay_there(make):
    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("string")})
    columns = {"image": [Image.fromarray(pixels(i)) for i in range(8)], "label": GIVEN}
    datasets.Dataset.from_dict(columns, features=features).to_parquet("t.parquet")
    found = exported(make(picture_source(Path("t.parquet"))))
    assert found.features["image"] == datasets.Image()
    assert list(found["label"]) == NEW
    assert np.array_equal(np.asarray(found[5]["image"]), pixels(5))


def test_pictures_of_an_archive(make):
    np.savez("p.npz", images=np.stack([pixels(i)[:, :, 0] for i in range(8)]), labels=[g or "" for g in GIVEN])
    found = exported(make(picture_source(Path("p.npz")), [str(i) for i in range(8)]))
    assert np.array_equal(np.asarray(found[5]["image"]), pixels(5)[:, :, 0])


def test_of_arrays_there_are_only_the_labels_and_that_is_told(make):
    with pytest.warns(LabelmendWarning, match="only the labels are in it"):
        found = exported(make(ARRAYS))
    assert found.column_names == ["id", "label", "label_given", "label_confidence"]
    assert list(found["label"]) == codes(NEW)


def test_data_that_are_gone_are_asked_for(make):
    path = write_table()
    result = make(table_source(path, "kind"))
    path.rename("moved.csv")
    with pytest.raises(DataError, match=r"keeps the data of the run.*--data"):
        exported(result)
    assert list(exported(result, data="moved.csv")["kind"]) == NEW


def test_many_rows_are_written_in_parts(make, monkeypatch):
    monkeypatch.setattr("labelmend.export.hugging_face.PICTURES_AT_ONCE", 3)
    names = write_pictures()
    found = exported(make(picture_source(Path("photos")), names))
    assert len(found) == 8
    assert all(np.array_equal(np.asarray(found[i]["image"]), pixels(i)) for i in range(8))


@pytest.mark.filterwarnings("ignore::labelmend.errors.LabelmendWarning")
def test_other_labels_have_another_fingerprint_by_which_the_library_caches(make):
    found = [datasets.load_from_disk(str(make().export("huggingface", r, review=r))) for r in ("corrected", "given")]
    assert found[0]._fingerprint != found[1]._fingerprint

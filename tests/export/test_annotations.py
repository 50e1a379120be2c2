"""Label Studio, COCO, FiftyOne. COCO is read by pycocotools; the others are too large to install for a test: they are
held against their published formats, and the libraries read them where somebody has installed them."""

import contextlib
import io
import json
import os
from pathlib import Path
from urllib.parse import parse_qs, urlparse
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from handed_over import CLASSES, GIVEN, NEW, SURE, pixels, write_pictures
from labelmend.errors import DataError, LabelmendWarning
from labelmend.storage.source import picture_source


def archive(make):
    np.savez("p.npz", images=np.stack([pixels(i) for i in range(8)]), labels=[g or "" for g in GIVEN])
    return make(picture_source(Path("p.npz")), [str(i) for i in range(8)])


# Label Studio


def studio(result, name="out"):
    folder = result.export("label-studio", name)
    return json.loads((folder / "tasks.json").read_text()), (folder / "config.xml").read_text(), folder


def check_interface(tasks, config):
    """What Label Studio asks of an import: tags with their data, predictions that name a control and its choices."""
    view = ElementTree.fromstring(config)
    choices = view.find("Choices")
    shown = view.find("Image") if view.find("Image") is not None else view.find("Table")
    allowed = [choice.get("value") for choice in choices]
    assert choices.get("toName") == shown.get("name")
    for task in tasks:
        assert task["data"][shown.get("value").removeprefix("$")]
        for prediction in task.get("predictions", []):
            assert 0 <= prediction.get("score", 0) <= 1
            (region,) = prediction["result"]
            assert (region["from_name"], region["to_name"]) == (choices.get("name"), shown.get("name"))
            assert region["type"] == "choices"
            assert set(region["value"]["choices"]) <= set(allowed)
    return allowed


def predicted(tasks):
    return [task["predictions"][0]["result"][0]["value"]["choices"][0] for task in tasks]


def test_tasks_have_the_labels_as_predictions(photos):
    tasks, config, folder = studio(photos)
    assert check_interface(tasks, config) == CLASSES.tolist()
    assert predicted(tasks) == NEW
    assert [task["predictions"][0].get("score") for task in tasks] == [*SURE[:7], None]
    assert [task["data"]["given"] for task in tasks] == [g or "" for g in GIVEN]
    root = (folder / "README.md").read_text().split("DOCUMENT_ROOT=")[1].split()[0]
    for task, name in zip(tasks, photos.ids, strict=True):
        place = parse_qs(urlparse(task["data"]["image"]).query)["d"][0]
        assert os.path.samefile(os.path.join(root, place), Path("photos", name))


def test_pictures_without_a_file_are_written_for_label_studio(make):
    tasks, config, folder = studio(archive(make))
    check_interface(tasks, config)
    root = (folder / "README.md").read_text().split("DOCUMENT_ROOT=")[1].split()[0]
    place = parse_qs(urlparse(tasks[5]["data"]["image"]).query)["d"][0]
    assert np.array_equal(np.asarray(Image.open(os.path.join(root, place))), pixels(5))


def test_a_picture_that_is_gone_is_no_task(make):
    paths = [Path("photos", name) for name in write_pictures()]
    Path("list.csv").write_text("path,label\n" + "".join(f"{path},{path.parts[1]}\n" for path in paths))
    result = make(picture_source(Path("list.csv")), [str(path) for path in paths])
    paths[4].unlink()
    with pytest.warns(LabelmendWarning, match=r"1 picture.*no such file"):
        tasks, _, folder = studio(result)
    assert [task["data"]["id"] for task in tasks] == [str(path) for path in paths if path != paths[4]]
    assert not (folder / "images").exists()


def test_rows_are_shown_as_tables(table):
    tasks, config, _ = studio(table)
    check_interface(tasks, config)
    assert tasks[3]["data"]["row"] == {"x": "1.5", "kind": "ant", "note": "line\nbreak"}
    assert predicted(tasks) == NEW


def test_odd_class_names_are_the_same_in_tasks_and_interface(make):
    classes = np.array(['<a href="x">&', "nul\x00", "new\nline"], dtype=object)
    of = dict(zip(CLASSES, classes, strict=True)) | {None: None}
    names = write_pictures()
    result = make(picture_source(Path("photos")), names, [of[g] for g in GIVEN], [of[n] for n in NEW], classes=classes)
    tasks, config, _ = studio(result)
    assert check_interface(tasks, config) == ['<a href="x">&', "nul\\x00", "new\nline"]


def test_the_real_library_accepts_tasks_and_interface(photos, table):
    interface = pytest.importorskip("label_studio_sdk.label_interface", reason="500 MB, and it pins an older numpy")
    for result, name in ((photos, "a"), (table, "b")):
        tasks, config, _ = studio(result, name)
        parsed = interface.LabelInterface(config)
        parsed.validate()
        for task in tasks:
            assert parsed.validate_task({"data": task["data"]})
            assert parsed.validate_prediction(task["predictions"][0], return_errors=True) == []


# COCO


def read_coco(path):
    coco = pytest.importorskip("pycocotools.coco")
    with contextlib.redirect_stdout(io.StringIO()):  # it talks
        return coco.COCO(str(path))


def test_pycocotools_reads_classes_and_scores(photos):
    with pytest.warns(LabelmendWarning, match=r"1 picture.*cat/7\.png"):
        found = read_coco(photos.export("coco", "out.json"))
    assert [category["name"] for category in found.loadCats(found.getCatIds())] == CLASSES.tolist()
    images = found.loadImgs(found.getImgIds())
    assert [image["file_name"] for image in images] == photos.ids.tolist()[:7]
    assert {(image["width"], image["height"]) for image in images} == {(9, 6)}
    for index, image in enumerate(images):
        (annotation,) = found.loadAnns(found.getAnnIds(imgIds=[image["id"]]))
        assert found.cats[annotation["category_id"]]["name"] == NEW[index]
        assert (annotation["score"], annotation["given"]) == (SURE[index], GIVEN[index] or "")
    assert len(found.getImgIds(catIds=found.getCatIds(catNms=["cat"]))) == 3
    assert os.path.samefile(found.dataset["info"]["root"], "photos")


def test_an_unlabelled_picture_has_no_annotation(make):
    names = write_pictures()
    result = make(picture_source(Path("photos")), names, new=[*NEW[:2], None, *NEW[3:]])
    found = read_coco(result.export("coco", "out.json"))
    assert (len(found.getImgIds()), len(found.getAnnIds())) == (8, 7)


def test_coco_needs_files(make):
    with pytest.raises(DataError, match="coco needs pictures that are files"):
        archive(make).export("coco", "out.json")


# FiftyOne


@pytest.mark.parametrize("link", [False, True])
def test_fiftyone_finds_every_label_and_its_picture(photos, link):
    folder = photos.export("fiftyone", "out", link=link)
    labels = json.loads((folder / "labels.json").read_text())
    files = {path.stem: path for path in (folder / "data").iterdir()}
    assert set(labels) == {"classes", "labels"}
    assert set(labels["labels"]) == set(files)
    for index, (uuid, target) in enumerate(sorted(labels["labels"].items())):
        assert labels["classes"][target["label"]] == NEW[index]
        assert target.get("confidence") == (SURE[index] if index < 7 else None)
        about = {"sample": photos.ids[index], "given": GIVEN[index] or "", "status": photos.status[index]}
        assert target["attributes"] == about
        assert files[uuid].read_bytes() == Path("photos", photos.ids[index]).read_bytes()
        assert os.path.samefile(files[uuid], Path("photos", photos.ids[index])) == link


def test_the_importer_of_fiftyone_reads_it(photos):
    data = pytest.importorskip("fiftyone.utils.data", reason="1 GB, with a database")
    importer = data.FiftyOneImageClassificationDatasetImporter(dataset_dir=str(photos.export("fiftyone", "out")))
    importer.setup()
    assert [label.label for _, _, label in importer] == NEW


def test_fiftyone_takes_pictures_out_of_an_archive(make):
    result = archive(make)
    folder = result.export("fiftyone", "out")
    assert np.array_equal(np.asarray(Image.open(folder / "data/000005.png")), pixels(5))


def test_an_unlabelled_picture_is_null_for_fiftyone(make):
    names = write_pictures()
    result = make(picture_source(Path("photos")), names, new=[*NEW[:2], None, *NEW[3:]])
    labels = json.loads((result.export("fiftyone", "out") / "labels.json").read_text())["labels"]
    assert labels["000002"] is None

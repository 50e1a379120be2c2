import os
from pathlib import Path

import pytest

from handed_over import tree
from labelmend.errors import ConfigError, DataError, RunFolderError
from labelmend.export.formats import FORMATS
from labelmend.storage.source import ARRAYS


def names():
    return sorted(os.listdir("."))


@pytest.mark.parametrize("to", FORMATS)
def test_what_is_there_stays_without_force(photos, to):
    Path("out").mkdir() if FORMATS[to].folder else Path("out").write_text("mine")
    before = tree("."), names()
    with pytest.raises(RunFolderError, match=r"must not exist\. out does"):
        photos.export(to, "out")
    assert (tree("."), names()) == before


@pytest.mark.filterwarnings("ignore::labelmend.errors.LabelmendWarning")
@pytest.mark.parametrize("to", FORMATS)
def test_force_replaces_an_earlier_export_and_leaves_nothing_behind(photos, to):
    photos.export(to, "out")
    before = tree("out") if FORMATS[to].folder else Path("out").read_bytes()
    again = photos.export(to, "out", force=True)
    assert (tree(again) if FORMATS[to].folder else again.read_bytes()) == before
    assert names() == ["out", "photos"]


@pytest.mark.filterwarnings("ignore::labelmend.errors.LabelmendWarning")
def test_force_replaces_no_folder_that_somebody_made_or_added_to(photos):
    Path("thesis").mkdir()
    Path("thesis/chapter.txt").write_text("mine")
    photos.export("folders", "out")
    Path("out/ant/mine.txt").write_text("mine")
    for target in ("thesis", "out"):
        with pytest.raises(RunFolderError, match="--force replaces folders that an export made"):
            photos.export("folders", target, force=True)
    with pytest.raises(RunFolderError, match="--force replaces plain files only"):
        photos.export("csv", "thesis", force=True)
    Path("mine.txt").write_text("mine")
    os.symlink("mine.txt", "link.csv")
    with pytest.raises(RunFolderError, match="--force replaces plain files only"):
        photos.export("csv", "link.csv", force=True)
    assert Path("thesis/chapter.txt").read_text() == Path("out/ant/mine.txt").read_text() == "mine"


def test_the_data_and_the_run_are_never_written_to(table, photos):
    os.link("t.csv", "other_name.csv")
    table.save("run")
    for result, to, target in [
        (table, "csv", "t.csv"),
        (table, "csv", "other_name.csv"),
        (photos, "folders", "photos/sorted"),
        (photos, "csv", "photos/labels.csv"),
        (photos, "csv", "run/labels.csv"),
        (photos, "fiftyone", "run/new"),
        (photos, "csv", "photos/ant/../labels.csv"),
    ]:
        with pytest.raises(RunFolderError, match="must not be a run or the data"):
            result.export(to, target, force=True)


@pytest.mark.parametrize("to", ["csv", "huggingface"])
def test_what_fails_on_the_way_leaves_nothing(photos, to, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("labelmend.export.tables.csv.writer", fail)
    monkeypatch.setattr("labelmend.export.hugging_face._fingerprint", fail)
    with pytest.raises(RunFolderError, match=r"new/deep/out.*No space left on device"):
        photos.export(to, "new/deep/out")
    assert names() == ["photos"]


def test_formats_that_need_pictures_say_so(table, make):
    for to in ("folders", "coco", "fiftyone"):
        with pytest.raises(DataError, match="this format needs the pictures of the run"):
            table.export(to, "out")
    for to in ("folders", "label-studio"):
        with pytest.raises(DataError, match="given as arrays in Python"):
            make(ARRAYS).export(to, "out")
    assert names() == ["t.csv"]


def test_options_that_mean_nothing_are_refused(table):
    for to, option in [("csv", "link"), ("folders", "with_data"), ("coco", "link"), ("patch", "with_data")]:
        with pytest.raises(ConfigError, match=f"--{option.replace('_', '-')} can be used with"):
            table.export(to, "out", **{option: True})
    with pytest.raises(ConfigError, match="review must be"):
        table.export("csv", "out", review="kept")
    with pytest.raises(ConfigError, match="did you mean huggingface"):
        table.export("hugging-face", "out")

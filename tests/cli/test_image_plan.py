"""A dry run says what the run does: one place resolves the configuration for both."""

import dataclasses
import json
from functools import partial

import numpy as np
import pytest
from PIL import Image

from coloured import COLOURS, TINY, TinyBackbone, coloured, write_folders
from labelmend.api import correct_images
from labelmend.cli.dry_run import plan
from labelmend.config import PHOTOGRAPHS, make_config
from labelmend.inputs.pictures.find import find_pictures
from labelmend.runs.pictures import PictureSetting, picture_task


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))


@pytest.fixture
def photos(tmp_path):
    """30 pictures, one of which cannot be read."""
    pixels, classes = coloured(n=30)
    paths = write_folders(tmp_path / "photos", pixels, np.array(COLOURS)[classes])
    paths[4].write_bytes(b"no picture")
    return tmp_path / "photos"


def enlarge(photos, side=80):
    for path in photos.rglob("*.png"):
        if path.read_bytes() != b"no picture":
            with Image.open(path) as picture:
                larger = picture.resize((side, side))
            larger.save(path)


def of(config):
    return json.loads(json.dumps(dataclasses.asdict(config)))


def planned(pictures, **how):
    return json.loads(json.dumps(plan(pictures, **how)["parameters"]))


@pytest.mark.parametrize("preset", ["default", "paper"])
@pytest.mark.parametrize("large", [False, True])
def test_the_dry_run_has_the_parameters_of_the_training_run(photos, large, preset):
    if large:
        enlarge(photos)
    pictures = find_pictures(photos)
    ready = picture_task(pictures, "train", partial(make_config, preset, device="cpu", n_branches=3))
    assert len(ready.readable.rows) == 29
    expected = planned(pictures, mode="train", preset=preset, device="cpu", n_branches=3)
    assert of(ready.task.settings) == expected
    if large:
        assert expected["lr"] == PHOTOGRAPHS["lr"]
        assert expected["batch_size"] == expected["branch_batch_size"] == PHOTOGRAPHS["batch_size"]


def test_the_dry_run_has_the_parameters_of_the_embedding_run(photos):
    pictures, how = find_pictures(photos), {"backbone": TinyBackbone(), "size": 8}
    ready = picture_task(pictures, "embed", partial(make_config, "default", device="cpu"), **how)
    assert of(ready.task.settings) == planned(pictures, mode="embed", device="cpu", **how)


@pytest.mark.filterwarnings("ignore::labelmend.errors.LabelmendWarning")
def test_the_dry_run_has_the_parameters_of_the_result(photos):
    pictures = find_pictures(photos)
    result = correct_images(pictures, mode="train", expert=TINY)
    assert of(result.config) == planned(pictures, mode="train", **TINY)


class Many:
    """A hundred thousand pictures, of which nothing but the size is asked."""

    def __init__(self, side):
        self.sources = np.broadcast_to(np.uint8(0), (100_000, side, side, 3))


@pytest.mark.parametrize(("side", "batch"), [(32, 5 * 256), (80, 64)])
def test_photographs_are_trained_in_batches_of_their_own(side, batch):
    """Full batches of all branches are for small pictures: of 224 pixels they would be 320 a step."""
    settings = PictureSetting.of("train", Many(side), None, partial(make_config, "default")).resolved(100_000, 10)
    assert settings.branch_batch_size == batch

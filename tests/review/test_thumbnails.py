import io
import os

import pytest
from made import picture_run
from PIL import Image

from labelmend.review.thumbnails import FOLDER, SIDES, Thumbnails
from labelmend.storage.originals import Originals, open_originals
from labelmend.storage.run_folder import read_run


@pytest.fixture
def made(tmp_path):
    run, photos = picture_run(tmp_path, 12)
    return run, photos, open_originals(run, read_run(run))


def test_a_picture_is_made_small_once_and_kept(made, monkeypatch):
    run, photos, originals = made
    calls = []
    whole = originals.picture
    monkeypatch.setattr(originals, "picture", lambda *a: calls.append(a) or whole(*a))
    first = Thumbnails(originals, run / FOLDER, [photos])
    found = first.get(0, "small")
    assert Image.open(io.BytesIO(found)).size == (80, 40)
    assert first.get(0, "small") == found
    assert Thumbnails(originals, run / FOLDER, [photos]).get(0, "small") == found
    assert len(calls) == 1
    assert len(list((run / FOLDER).iterdir())) == 1


def test_large_pictures_are_made_no_larger_than_the_side(made):
    run, photos, originals = made
    path = originals.path(0)
    Image.new("RGB", (3000, 1500)).save(path)
    thumbnails = Thumbnails(originals, run / FOLDER, [photos])
    for size, side in SIDES.items():
        assert Image.open(io.BytesIO(thumbnails.get(0, size))).size == (side, side // 2)


def test_a_picture_that_changed_is_made_small_again(made):
    run, photos, originals = made
    thumbnails = Thumbnails(originals, run / FOLDER, [photos])
    before = thumbnails.get(0, "small")
    Image.new("RGB", (80, 40), (255, 0, 0)).save(originals.path(0))
    os.utime(originals.path(0), ns=(1, 1))
    assert thumbnails.get(0, "small") != before


def test_what_cannot_be_read_any_more_is_none(made):
    run, photos, originals = made
    thumbnails = Thumbnails(originals, run / FOLDER, [photos])
    originals.path(0).unlink()
    originals.path(1).write_bytes(b"no picture")
    assert thumbnails.get(0, "small") is None
    assert thumbnails.get(1, "small") is None


def test_links_that_lead_out_of_the_data_are_not_followed(made, tmp_path):
    run, photos, originals = made
    secret = tmp_path / "secret.png"
    originals.path(0).rename(secret)
    os.symlink(secret, originals.path(0))
    assert Thumbnails(originals, run / FOLDER, [photos]).get(0, "small") is None
    followed = open_originals(run, read_run(run), photos)
    assert Thumbnails(followed, run / FOLDER, [photos], follow_links=True).get(0, "small") is not None


def test_the_disk_they_take_is_bounded(made):
    run, photos, originals = made
    thumbnails = Thumbnails(originals, run / FOLDER, [photos])
    one = len(thumbnails.get(0, "small"))
    thumbnails.disk_bytes = 6 * one
    for sample in range(12):
        thumbnails.get(sample, "small")
    assert sum(path.stat().st_size for path in (run / FOLDER).iterdir()) <= 6 * one + 100


def test_nothing_is_written_beside_the_pictures(made):
    run, photos, originals = made
    before = sorted(photos.rglob("*"))
    Thumbnails(originals, run / FOLDER, [photos]).get(0, "small")
    assert sorted(photos.rglob("*")) == before


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(made):
    run, photos, originals = made
    (run / FOLDER).write_text("in the way")
    assert Thumbnails(originals, run / FOLDER, [photos]).get(0, "small") is not None


def test_where_there_are_no_pictures_there_is_none(tmp_path):
    assert Thumbnails(Originals("given as arrays"), tmp_path / FOLDER, []).get(0, "small") is None
    assert not (tmp_path / FOLDER).exists()

import io

import numpy as np
import pytest
from PIL import Image
from result_by_hand import Painted

from labelmend.report import map as map_module
from labelmend.report.map import SHEET_BYTES, make_atlas
from labelmend.storage.originals import Originals


class Plain(Originals):
    """Each picture has a shade of its own."""

    kind = "pictures"

    def __init__(self, size):
        super().__init__()
        self.size = size

    def picture(self, index, side=None):
        return Image.new("RGB", self.size, (index, 0, 255 - index))


def middle(atlas, place):
    """The colour in the middle of the cell of a sample."""
    sheet, cell = Image.open(io.BytesIO(atlas.sheet)), atlas.cells[place]
    at = cell % atlas.columns * atlas.side, cell // atlas.columns * atlas.side
    return np.array(sheet.getpixel((at[0] + atlas.side // 2, at[1] + atlas.side // 2)))


@pytest.mark.parametrize("size", [(14, 14), (28, 20), (300, 200)])
def test_every_sample_finds_its_own_picture(size):
    indices = np.arange(0, 250, 10)
    atlas = make_atlas(Plain(size), indices)
    for place, index in enumerate(indices):
        assert np.abs(middle(atlas, place) - (index, 0, 255 - index)).max() <= 6


def test_tiny_pictures_stay_as_they_are():
    atlas = make_atlas(Plain((14, 14)), np.arange(5))
    assert atlas.side == 14
    assert atlas.sheet.startswith(b"\x89PNG")


def test_blocks_of_a_jpeg_do_not_reach_over_the_edge_of_a_cell():
    atlas = make_atlas(Plain((300, 300)), np.arange(5))
    assert atlas.side % 8 == 0
    assert atlas.sheet.startswith(b"\xff\xd8")


def test_pictures_that_cannot_be_read_have_no_cell():
    atlas = make_atlas(Painted(), np.arange(10))
    assert [cell >= 0 for cell in atlas.cells] == [i % 5 != 4 for i in range(10)]
    assert make_atlas(Painted(), np.array([4, 9])) is None


def test_the_sheet_stays_within_its_bytes_even_of_noise():
    assert len(make_atlas(Painted(64), np.arange(2_000)).sheet) <= SHEET_BYTES


def test_when_time_runs_out_the_last_samples_have_theirs(monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr(map_module.time, "monotonic", lambda: next(clock))
    atlas = make_atlas(Plain((14, 14)), np.arange(10), seconds=4)
    assert [cell >= 0 for cell in atlas.cells] == [False] * 6 + [True] * 4
    assert np.abs(middle(atlas, 9) - (9, 0, 246)).max() <= 6

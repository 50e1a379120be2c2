"""Changes to pictures: by hand with fixed draws, against numpy's padding, and that the generator decides everything."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from labelmend import samples as augment
from labelmend.samples import centre_crop, crop_and_flip, cut_out, distort, recolour, reshape

NEVER, ALWAYS = 1.0, 0.0  # first draw of a change: it happens below APPLIED


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def numbered(height, width, n=1):
    """Pictures of one channel whose pixel in row r and column c is 10 r + c."""
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    return (10 * rows + columns).to(torch.uint8).expand(n, height, width).unsqueeze(3)


def random_batch(n=4, channels=3, size=8, seed=0):
    return torch.rand(n, channels, size, size, generator=generator(seed))


def ramps(size):
    """One picture of two channels: the x and the y coordinate of each pixel's middle, between -1 and 1."""
    at = (2 * torch.arange(size) + 1) / size - 1
    return torch.stack([at.expand(size, size), at.unsqueeze(1).expand(size, size)]).unsqueeze(0)


def fix_draws(monkeypatch, *values):
    """The next draws, one value or one list of the right shape each; one draw too many is an error."""
    left = list(values)
    monkeypatch.setattr(
        torch, "rand", lambda *shape, **_: torch.as_tensor(left.pop(0), dtype=torch.float32).expand(shape)
    )
    return left


def change(share):
    """Draws of one change that happens, with the number share * largest."""
    return [[ALWAYS], [(share + 1) / 2]]


UNCHANGED = [[NEVER], [1.0]]


# Crops


def test_centre_crop_by_hand():
    assert centre_crop(numbered(4, 5), 2)[0, :, :, 0].tolist() == [[11, 12], [21, 22]]
    assert_close(centre_crop(numbered(3, 3), 3), numbered(3, 3))


@pytest.mark.parametrize(
    ("row", "column", "flip", "expected"),
    [
        # 4 + 2 - 3 = 3 places further for rows, 4 for columns; both begin one before the edge.
        (0.0, 0.999, 0.5, [[13, 14, 13], [3, 4, 3], [13, 14, 13]]),  # rows -1 0 1, columns 3 4 5: both mirrored
        (0.999, 0.0, 0.9, [[21, 20, 21], [31, 30, 31], [21, 20, 21]]),  # rows 2 3 4, columns -1 0 1
        (0.25, 0.5, 0.9, [[1, 2, 3], [11, 12, 13], [21, 22, 23]]),
        (0.25, 0.5, 0.49, [[3, 2, 1], [13, 12, 11], [23, 22, 21]]),
        (0.49, 0.39, 0.9, [[0, 1, 2], [10, 11, 12], [20, 21, 22]]),
        (0.5, 0.4, 0.9, [[11, 12, 13], [21, 22, 23], [31, 32, 33]]),
        (1.0, 0.2, 0.9, [[20, 21, 22], [30, 31, 32], [20, 21, 22]]),  # rounding up to 1 stays inside
    ],
)
def test_crop_and_flip_by_hand(monkeypatch, row, column, flip, expected):
    left = fix_draws(monkeypatch, row, column, flip)
    assert crop_and_flip(numbered(4, 5), 3, 1, generator())[0, :, :, 0].tolist() == expected
    assert left == []


def test_every_picture_has_its_own_window_and_flip(monkeypatch):
    fix_draws(monkeypatch, [[0.0], [0.5]], [[0.5], [0.0]], [[0.9], [0.1]])
    got = crop_and_flip(torch.stack([numbered(3, 3)[0], 100 + numbered(3, 3)[0]]), 2, 0, generator())
    assert got[..., 0].tolist() == [[[1, 2], [11, 12]], [[111, 110], [121, 120]]]


@given(
    height=st.integers(3, 7),
    width=st.integers(3, 7),
    crop=st.integers(1, 7),
    margin=st.integers(0, 2),
    seed=st.integers(0, 99),
)
def test_a_crop_is_a_window_of_the_mirrored_picture_or_its_mirror_image(height, width, crop, margin, seed):
    crop = min(crop, height, width)
    pixels = torch.randint(256, (3, height, width, 2), generator=generator(seed), dtype=torch.uint8)
    got = crop_and_flip(pixels, crop, margin, generator(seed))
    assert got.dtype == torch.uint8
    assert got.shape == (3, crop, crop, 2)
    for picture, found in zip(pixels.numpy(), got.numpy(), strict=True):
        wide = np.pad(picture, ((margin, margin), (margin, margin), (0, 0)), mode="reflect")
        windows = np.lib.stride_tricks.sliding_window_view(wide, (crop, crop), axis=(0, 1)).reshape(-1, 2, crop, crop)
        candidates = np.concatenate([windows, windows[..., ::-1]]).transpose(0, 2, 3, 1)
        assert (candidates == found).all(axis=(1, 2, 3)).any()


def test_all_windows_and_flips_are_equally_frequent():
    n, n_kinds = 18_000, 3 * 3 * 2
    found = crop_and_flip(numbered(4, 4, n), 2, 0, generator())[:, 0, :, 0]  # the first row tells window and flip
    kinds, counts = found.unique(dim=0, return_counts=True)
    assert len(kinds) == n_kinds
    spread = math.sqrt(n / n_kinds * (1 - 1 / n_kinds))
    assert (counts - n / n_kinds).abs().max() < 5 * spread


# Strong changes


@pytest.mark.parametrize("change_all", [distort, reshape, recolour, cut_out])
def test_strong_changes_keep_shape_and_range_and_are_decided_by_the_generator(change_all):
    batch = random_batch()
    before = batch.clone()
    got = change_all(batch, generator(1))
    assert got.shape == batch.shape
    assert got.dtype == batch.dtype
    assert got.min() >= 0
    assert got.max() <= 1
    assert not torch.equal(got, batch)
    assert torch.equal(got, change_all(batch, generator(1)))
    assert not torch.equal(got, change_all(batch, generator(2)))
    assert torch.equal(batch, before), "the batch itself stays as it was"


def test_distort_is_shape_then_colour_then_a_square():
    batch, source = random_batch(), generator(1)
    assert torch.equal(distort(batch, generator(1)), cut_out(recolour(reshape(batch, source), source), source))


@pytest.mark.parametrize("change_all", [reshape, recolour])
def test_pictures_without_a_draw_stay_as_they_were(monkeypatch, change_all):
    monkeypatch.setattr(augment, "APPLIED", 0.0)
    batch = random_batch()
    assert_close(change_all(batch, generator()), batch, rtol=0, atol=1e-6)


def test_a_change_happens_half_the_time_and_is_uniform_up_to_the_largest():
    drawn = augment._Draws(40_000, torch.device("cpu"), generator()).maybe(0.3)
    changed = drawn[drawn != 0]
    assert len(changed) == pytest.approx(20_000, abs=5 * 100)
    assert changed.abs().max() <= 0.3
    tenths = torch.histc(changed, 10, -0.3, 0.3)
    assert (tenths - len(changed) / 10).abs().max() < 5 * math.sqrt(len(changed) * 0.09)


def test_a_shift_by_hand(monkeypatch):
    # A fifth of half of ten pixels: one pixel. What leaves the picture is mirrored in.
    batch = random_batch(n=1, size=10)
    fix_draws(monkeypatch, UNCHANGED, UNCHANGED, change(1.0), change(-1.0), UNCHANGED)
    at = torch.arange(10)
    expected = batch[:, :, (at - 1).clamp(min=0)][..., (at + 1).clamp(max=9)]
    assert_close(reshape(batch, generator()), expected, rtol=0, atol=1e-5)


def test_a_quarter_turn_by_hand(monkeypatch):
    monkeypatch.setattr(augment, "ROTATION", math.pi / 2)
    batch = random_batch(n=1)
    fix_draws(monkeypatch, change(1.0), *[UNCHANGED] * 4)
    assert_close(reshape(batch, generator()), torch.rot90(batch, 1, dims=(2, 3)), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("draws", "matrix"),
    [
        ([UNCHANGED, change(0.5), UNCHANGED, UNCHANGED, UNCHANGED], [[1, 0.15], [0, 1]]),  # shear 0.3 / 2
        ([UNCHANGED, UNCHANGED, UNCHANGED, UNCHANGED, change(-1.0)], [[0.8, 0], [0, 0.8]]),
        (
            [change(1.0), UNCHANGED, UNCHANGED, UNCHANGED, UNCHANGED],
            [[math.sqrt(3) / 2, -0.5], [0.5, math.sqrt(3) / 2]],
        ),
    ],
    ids=["shear", "zoom", "rotation"],
)
def test_places_are_read_through_the_matrix(monkeypatch, draws, matrix):
    """A picture of its own coordinates shows where each pixel was read."""
    fix_draws(monkeypatch, *draws)
    picture = ramps(16)
    read = torch.einsum("ij,njhw->nihw", torch.tensor(matrix), picture)
    inside = (read.abs() <= 1 - 1 / 16).all(dim=1)  # further out it is mirrored
    assert inside.float().mean() > 0.5
    got = reshape(picture, generator())
    assert_close(got.movedim(1, 3)[inside], read.movedim(1, 3)[inside], rtol=0, atol=1e-5)


GREY_AND_RED = torch.tensor([[0.2, 0.8], [0.2, 0.4], [0.2, 0.0]]).view(1, 3, 1, 2)  # a grey pixel, a red one


@pytest.mark.parametrize(
    ("draws", "expected"),
    [
        ([change(0.5), UNCHANGED, UNCHANGED], [[0.26, 1.0], [0.26, 0.52], [0.26, 0.0]]),  # times 1.3, cut at 1
        ([UNCHANGED, change(-0.5), UNCHANGED], [[0.23, 0.65], [0.23, 0.37], [0.23, 0.09]]),  # 0.3 + 0.7 (x - 0.3)
        ([UNCHANGED, UNCHANGED, change(0.5)], [[0.2, 0.92], [0.2, 0.4], [0.2, 0.0]]),  # 0.4 + 1.3 (x - 0.4), cut at 0
        ([UNCHANGED, UNCHANGED, UNCHANGED], [[0.2, 0.8], [0.2, 0.4], [0.2, 0.0]]),
    ],
    ids=["brightness", "contrast", "saturation", "nothing"],
)
def test_colours_by_hand(monkeypatch, draws, expected):
    fix_draws(monkeypatch, *draws)
    assert_close(recolour(GREY_AND_RED, generator()), torch.tensor(expected).view(1, 3, 1, 2), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("row", "column", "rows", "columns"),
    [
        (0.5, 0.5, [2, 3, 4, 5], [2, 3, 4, 5]),
        (0.0, 1.0, [0, 1], [6, 7]),  # over the edge on both sides alike
        (0.55, 0.3, [2, 3, 4, 5], [0, 1, 2, 3]),
    ],
)
def test_cut_out_by_hand(monkeypatch, row, column, rows, columns):
    fix_draws(monkeypatch, [[[[row]]], [[[column]]]])
    grey = cut_out(torch.ones(1, 2, 8, 8), generator())
    expected = torch.ones(1, 2, 8, 8)
    expected[:, :, rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] = 0.5
    assert_close(grey, expected)


def test_squares_are_all_over_the_pictures():
    covered = (cut_out(torch.ones(8_000, 1, 8, 8), generator()) == 0.5).float().mean(dim=0)[0]
    assert covered.min() > 0
    assert_close(covered, covered.flip(0), rtol=0, atol=0.03)
    assert_close(covered, covered.flip(1), rtol=0, atol=0.03)
    assert_close(covered, covered.T, rtol=0, atol=0.03)

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from labelmend import samples as module
from labelmend.samples import ImageSamples, VectorSamples, at_once, colour_statistics, crop_and_flip, distort

CPU = torch.device("cpu")
AUGMENTS = ("none", "weak", "strong")


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def random_pixels(n=5, height=8, width=8, channels=3, seed=0):
    return torch.randint(256, (n, height, width, channels), generator=generator(seed), dtype=torch.uint8)


def plain(pixels, crop):
    """Pictures that are not normalised: values stay between 0 and 1."""
    channels = pixels.shape[3]
    return ImageSamples(pixels, torch.zeros(channels), torch.ones(channels), crop, CPU)


def as_batch(pixels):
    return pixels.movedim(3, 1) / 255


def test_vectors_come_as_they_are_in_the_order_of_the_indices():
    rows = torch.arange(8.0).view(4, 2)
    data, source = VectorSamples(rows), generator()
    before = source.get_state()
    for augment in AUGMENTS:
        assert_close(data.batch(torch.tensor([2, 0, 2]), augment, source), rows[[2, 0, 2]])
    assert torch.equal(source.get_state(), before)
    assert (len(data), data.device) == (4, CPU)


def test_pixels_are_normalised_by_hand():
    # 51 / 255 = 0.2, 102 / 255 = 0.4
    pixels = torch.tensor([51, 102], dtype=torch.uint8).view(1, 1, 1, 2)
    data = ImageSamples(pixels, torch.tensor([0.1, 0.5]), torch.tensor([0.5, 0.2]), 1, CPU)
    got = data.batch(torch.tensor([0]), "none", None)
    assert_close(got, torch.tensor([0.2, -0.5]).view(1, 2, 1, 1))


def test_pictures_come_in_the_order_of_the_indices_channels_first():
    pixels = random_pixels()
    data = plain(pixels, 8)
    assert_close(data.batch(torch.tensor([3, 0, 3]), "none", None), as_batch(pixels[[3, 0, 3]]))
    assert (len(data), data.device) == (5, CPU)


@pytest.mark.parametrize(
    ("height", "width", "crop", "top", "left"), [(8, 8, 4, 2, 2), (6, 9, 6, 0, 1), (7, 5, 4, 1, 0)]
)
def test_without_augmentation_the_middle_is_shown(height, width, crop, top, left):
    pixels = random_pixels(height=height, width=width)
    got = plain(pixels, crop).batch(torch.arange(5), "none", None)
    assert_close(got, as_batch(pixels[:, top : top + crop, left : left + crop]))


def test_weak_augmentation_is_a_crop_and_a_flip_decided_by_the_generator():
    pixels = random_pixels(n=20)
    data = plain(pixels, 8)
    got = data.batch(torch.arange(20), "weak", generator(1))
    assert_close(got, as_batch(crop_and_flip(pixels, 8, 1, generator(1))))  # over the edge by an eighth
    assert not torch.equal(got, data.batch(torch.arange(20), "weak", generator(2)))


def test_a_smaller_crop_moves_inside_the_pictures():
    pixels = random_pixels(n=20, height=9, width=10)
    got = plain(pixels, 8).batch(torch.arange(20), "weak", generator(1))
    assert_close(got, as_batch(crop_and_flip(pixels, 8, 0, generator(1))))


def test_strong_augmentation_distorts_the_weak_one_before_normalising():
    pixels, source = random_pixels(n=20), generator(1)
    mean, spread = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0.5, 0.6, 0.7])
    got = ImageSamples(pixels, mean, spread, 8, CPU).batch(torch.arange(20), "strong", generator(1))
    changed = distort(as_batch(crop_and_flip(pixels, 8, 1, source)), source)
    assert_close(got, (changed - mean.view(1, 3, 1, 1)) / spread.view(1, 3, 1, 1), rtol=0, atol=1e-5)


@pytest.mark.parametrize("augment", AUGMENTS)
def test_batches_are_float_and_keep_channels_last(augment):
    got = plain(random_pixels(), 8).batch(torch.arange(5), augment, generator())
    assert got.dtype == torch.float32
    assert got.shape == (5, 3, 8, 8)
    assert got.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("augment", AUGMENTS)
def test_grey_pictures_work_too(augment):
    got = plain(random_pixels(channels=1), 8).batch(torch.arange(5), augment, generator())
    assert got.shape == (5, 1, 8, 8)
    assert torch.isfinite(got).all()


def test_pixels_may_stay_in_a_file(tmp_path):
    pixels = random_pixels()
    np.save(tmp_path / "pixels.npy", pixels.numpy())
    mapped = torch.from_numpy(np.load(tmp_path / "pixels.npy", mmap_mode="c"))
    assert_close(
        plain(mapped, 8).batch(torch.tensor([4, 1]), "weak", generator()),
        plain(pixels, 8).batch(torch.tensor([4, 1]), "weak", generator()),
    )


def test_colour_statistics_by_hand():
    # First channel: two of four pixels full, mean 1/2, spread 1/2; second: constant, its spread is kept from 0.
    pixels = torch.tensor([[0, 51], [255, 51], [255, 51], [0, 51]], dtype=torch.uint8).view(2, 2, 1, 2)
    mean, spread = colour_statistics(pixels)
    assert_close(mean, torch.tensor([0.5, 0.2]))
    assert_close(spread, torch.tensor([0.5, 1e-3]))


@pytest.mark.parametrize("at_once", [1, 100, 2**24])
def test_colour_statistics_are_those_of_all_pixels(monkeypatch, at_once):
    monkeypatch.setattr(module, "COUNTED_AT_ONCE", at_once)
    pixels = random_pixels(n=7, height=5, width=6)
    values = pixels.double().flatten(0, 2) / 255
    mean, spread = colour_statistics(pixels)
    assert_close(mean, values.mean(dim=0).float())
    assert_close(spread, values.std(dim=0, correction=0).float())


def test_normalised_pictures_have_mean_zero_and_spread_one():
    pixels = random_pixels(n=7)
    batch = ImageSamples(pixels, *colour_statistics(pixels), 8, CPU).batch(torch.arange(7), "none", None)
    assert_close(batch.mean(dim=(0, 2, 3)), torch.zeros(3), rtol=0, atol=1e-5)
    assert_close(batch.std(dim=(0, 2, 3), correction=0), torch.ones(3), rtol=0, atol=1e-5)


def test_statistics_of_many_pictures_come_from_evenly_spaced_ones(monkeypatch):
    monkeypatch.setattr(module, "STATISTICS_FROM", 3)
    pixels = random_pixels(n=7)
    assert_close(colour_statistics(pixels), colour_statistics(pixels[[0, 2, 4, 6]]))


def test_fewer_large_samples_are_read_at_once():
    vectors = VectorSamples(torch.zeros(2, 5))
    pictures = plain(torch.zeros(2, 300, 260, 3, dtype=torch.uint8), 224)
    assert (vectors.n_values, pictures.n_values) == (5, 224 * 224 * 3)
    assert pictures.batch(torch.arange(1), "none", None).numel() == pictures.n_values
    assert at_once(vectors, 4096) == 4096
    assert at_once(pictures, 4096) == 83  # 50 MB

"""What training sees of a data set: its length and its batches, pictures changed at random on their device.

Knows vectors, uint8 pixels (n, H, W, C) and float batches (n, C, H, W); labels live elsewhere. Every draw comes from
the generator, which lives on the device of the data.
"""

from __future__ import annotations

import math
from typing import Literal, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

VALUES_AT_ONCE = 4096 * 3 * 32 * 32  # numbers of one block of samples: 50 MB of float32
STATISTICS_FROM = 10_000  # pictures whose colours give mean and spread
COUNTED_AT_ONCE = 2**24  # of their pixels


class Samples(Protocol):
    @property
    def device(self) -> torch.device: ...

    @property
    def n_values(self) -> int:
        """Numbers of one sample, as a net sees it."""
        ...

    def __len__(self) -> int: ...

    def batch(self, indices: Tensor, augment: Augment, generator: torch.Generator | None) -> Tensor:
        """The samples at `indices`, ready for a net; random changes only where `augment` is not "none"."""
        ...


def at_once(samples: Samples, most: int) -> int:
    """How many samples to read at a time: `most`, or fewer of large ones."""
    return max(1, min(most, VALUES_AT_ONCE // max(samples.n_values, 1)))


class VectorSamples:
    """Rows of a matrix, already scaled. Nothing to augment."""

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows

    @property
    def device(self) -> torch.device:
        return self.rows.device

    @property
    def n_values(self) -> int:
        return self.rows.shape[1:].numel()

    def __len__(self) -> int:
        return len(self.rows)

    def batch(self, indices: Tensor, augment: Augment, generator: torch.Generator | None) -> Tensor:
        return self.rows[indices]


class ImageSamples:
    """Pictures (n, H, W, C) of uint8, cropped to a square for the net and normalised by `mean` and `spread`.

    A crop smaller than the pictures moves inside them; one as large moves over the edge by an eighth. Pixels may stay
    in memory or in a file while batches go to `device`.
    """

    def __init__(self, pixels: Tensor, mean: Tensor, spread: Tensor, crop: int, device: torch.device) -> None:
        self.pixels, self.crop, self._device = pixels, crop, device
        self.mean, self.spread = (colour.to(device).view(1, -1, 1, 1) for colour in (mean, spread))
        self.margin = crop // 8 if crop == min(pixels.shape[1:3]) else 0

    @property
    def device(self) -> torch.device:
        return self._device

    @property
    def n_values(self) -> int:
        return self.crop**2 * self.pixels.shape[3]

    def __len__(self) -> int:
        return len(self.pixels)

    def batch(self, indices: Tensor, augment: Augment, generator: torch.Generator | None) -> Tensor:
        chosen = self.pixels[indices.to(self.pixels.device)].to(self.device, non_blocking=True)
        if augment == "none":
            chosen = centre_crop(chosen, self.crop)
        else:
            assert generator is not None
            chosen = crop_and_flip(chosen, self.crop, self.margin, generator)
        batch = chosen.permute(0, 3, 1, 2).float() / 255  # a view: the layout stays channels last
        if augment == "strong":
            assert generator is not None
            batch = distort(batch, generator).contiguous(memory_format=torch.channels_last)
        return (batch - self.mean) / self.spread


def colour_statistics(pixels: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of every channel, in 0..1, from evenly spaced pictures."""
    some, n_channels = pixels[:: max(1, len(pixels) // STATISTICS_FROM)], pixels.shape[3]
    # Counted, not converted: 10,000 pictures of 224 x 224 would be 12 GB of doubles.
    counts = torch.zeros(n_channels, 256, dtype=torch.float64, device=pixels.device)
    for part in some.split(max(1, COUNTED_AT_ONCE // some[0].numel())):
        for channel in range(n_channels):
            counts[channel] += torch.bincount(part[..., channel].flatten(), minlength=256)
    shares = counts / counts.sum(dim=1, keepdim=True)
    level = torch.arange(256, dtype=torch.float64, device=pixels.device) / 255
    mean = (shares * level).sum(dim=1)
    variance = (shares * (level - mean.unsqueeze(1)) ** 2).sum(dim=1)
    return mean.float(), variance.sqrt().clamp(min=1e-3).float()


Augment = Literal["none", "weak", "strong"]
ROTATION, SHEAR, SHIFT, ZOOM = math.pi / 6, 0.3, 0.2, 0.2  # largest changes of shape; shifts in half widths
COLOUR = 0.6  # brightness, contrast and saturation are multiplied by 1 - COLOUR .. 1 + COLOUR
APPLIED = 0.5  # probability of each change


def centre_crop(pixels: Tensor, crop: int) -> Tensor:
    top, left = (pixels.shape[1] - crop) // 2, (pixels.shape[2] - crop) // 2
    return pixels[:, top : top + crop, left : left + crop]


def crop_and_flip(pixels: Tensor, crop: int, margin: int, generator: torch.Generator) -> Tensor:
    """A random window of `crop` x `crop` of each picture, mirrored at the edges up to `margin`, flipped half the time.

    One gather on uint8: offsets and flips only change which row and column is read.
    """
    n, height, width, _ = pixels.shape
    rows = _window(n, height, crop, margin, pixels.device, generator)
    columns = _window(n, width, crop, margin, pixels.device, generator)
    flipped = torch.rand(n, 1, generator=generator, device=pixels.device) < 0.5
    columns = torch.where(flipped, columns.flip(1), columns)
    picture = torch.arange(n, device=pixels.device).view(n, 1, 1)
    return pixels[picture, rows.unsqueeze(2), columns.unsqueeze(1)]


def distort(batch: Tensor, generator: torch.Generator) -> Tensor:
    """Strong augmentation of pictures in 0..1: shape, colours, then a square of grey."""
    return cut_out(recolour(reshape(batch, generator), generator), generator)


def reshape(batch: Tensor, generator: torch.Generator) -> Tensor:
    """Rotate, shear, shift and zoom; each change half the time, what leaves the picture is mirrored in."""
    draw = _Draws(len(batch), batch.device, generator)
    angle, shear = draw.maybe(ROTATION), draw.maybe(SHEAR)
    shift_x, shift_y = draw.maybe(SHIFT), draw.maybe(SHIFT)
    zoom = 1 + draw.maybe(ZOOM)
    cos, sin = angle.cos() * zoom, angle.sin() * zoom
    top = torch.stack([cos, shear * cos - sin, shift_x], dim=1)
    bottom = torch.stack([sin, shear * sin + cos, shift_y], dim=1)
    grid = F.affine_grid(torch.stack([top, bottom], dim=1), list(batch.shape), align_corners=False)
    return F.grid_sample(batch, grid, mode="bilinear", padding_mode="reflection", align_corners=False)


def recolour(batch: Tensor, generator: torch.Generator) -> Tensor:
    """Brightness, contrast and saturation, each half the time."""
    draw = _Draws(len(batch), batch.device, generator)
    brightness, contrast, saturation = ((1 + draw.maybe(COLOUR)).view(-1, 1, 1, 1) for _ in range(3))
    batch = batch * brightness
    middle = batch.mean(dim=(1, 2, 3), keepdim=True)
    batch = middle + (batch - middle) * contrast
    grey = batch.mean(dim=1, keepdim=True)
    return (grey + (batch - grey) * saturation).clamp(0, 1)


def cut_out(batch: Tensor, generator: torch.Generator) -> Tensor:
    """A grey square of half the width somewhere in every picture; it may reach over the edge."""
    n, _, height, width = batch.shape
    draw = torch.rand(2, n, 1, 1, generator=generator, device=batch.device)
    rows = torch.arange(height, device=batch.device).view(1, height, 1) + 0.5  # middles of the pixels
    columns = torch.arange(width, device=batch.device).view(1, 1, width) + 0.5
    inside = ((rows - draw[0] * height).abs() < height / 4) & ((columns - draw[1] * width).abs() < width / 4)
    return batch.masked_fill(inside.unsqueeze(1), 0.5)


def _window(n: int, length: int, crop: int, margin: int, device: torch.device, generator: torch.Generator) -> Tensor:
    """(n, crop) positions along one side: a run that starts at random, mirrored where it leaves the picture."""
    room = length + 2 * margin - crop
    first = (torch.rand(n, 1, generator=generator, device=device) * (room + 1)).long().clamp_(max=room) - margin
    at = (first + torch.arange(crop, device=device)).abs()
    return torch.where(at >= length, 2 * (length - 1) - at, at)


class _Draws:
    def __init__(self, n: int, device: torch.device, generator: torch.Generator) -> None:
        self.n, self.device, self.generator = n, device, generator

    def maybe(self, largest: float) -> Tensor:
        """One number per picture between -largest and largest; 0 for those left alone."""
        draw = torch.rand(2, self.n, generator=self.generator, device=self.device)
        return torch.where(draw[0] < APPLIED, (2 * draw[1] - 1) * largest, 0.0)

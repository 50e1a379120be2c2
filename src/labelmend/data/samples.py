"""What training sees of a data set: its length and its batches. Labels live elsewhere.

Knows tensors; does not know files, labels or nets. Vectors and images differ here and nowhere else.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from labelmend.training.augment import Augment, centre_crop, crop_and_flip, distort

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

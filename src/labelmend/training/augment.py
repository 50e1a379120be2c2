"""Random changes to a batch of pictures, all pictures at once and on their device: no worker processes.

Knows uint8 pixels (n, H, W, C) and float batches (n, C, H, W); does not know files, labels or nets.
Every draw comes from the generator, which lives on the device of the pixels.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

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

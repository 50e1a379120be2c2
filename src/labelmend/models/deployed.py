"""From raw input to logits in one module: what the models predict with, and what is exported.

Knows tensors; does not know files or class names. Pictures come as uint8 (n, height, width, 3) at the model's size.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from labelmend.samples import centre_crop


class Scale(nn.Module):
    """A `Scaler` as a layer: project where there is a projection, then centre and scale."""

    mean: Tensor
    scale: Tensor
    projection: Tensor | None

    def __init__(
        self, mean: NDArray[np.float32], scale: NDArray[np.float32], projection: NDArray[np.float32] | None = None
    ) -> None:
        super().__init__()
        self.register_buffer("mean", torch.from_numpy(np.array(mean)))
        self.register_buffer("scale", torch.from_numpy(np.array(scale)))
        self.register_buffer("projection", None if projection is None else torch.from_numpy(np.array(projection)))

    @property
    def n_columns(self) -> int:
        return len(self.mean) if self.projection is None else len(self.projection)

    def forward(self, rows: Tensor) -> Tensor:
        if self.projection is not None:
            rows = rows @ self.projection
        return (rows - self.mean) / self.scale


class VectorClassifier(nn.Module):
    """float32 (n, columns) -> logits."""

    def __init__(self, scale: Scale, net: nn.Module) -> None:
        super().__init__()
        self.scale, self.net = scale, net

    @property
    def n_columns(self) -> int:
        return self.scale.n_columns

    def forward(self, rows: Tensor) -> Tensor:
        logits: Tensor = self.net(self.scale(rows))[1]
        return logits


class Colours(nn.Module):
    """uint8 (n, height, width, 3) -> float32 (n, 3, height, width), normalised; the layout stays channels last."""

    mean: Tensor
    spread: Tensor

    def __init__(self, mean: Tensor, spread: Tensor, divisor: float) -> None:
        super().__init__()
        self.divisor = divisor  # of pixel values, before they are normalised
        self.register_buffer("mean", mean.detach().cpu().float().reshape(1, 3, 1, 1).clone())
        self.register_buffer("spread", spread.detach().cpu().float().reshape(1, 3, 1, 1).clone())

    def forward(self, pixels: Tensor) -> Tensor:
        return (pixels.permute(0, 3, 1, 2).float() / self.divisor - self.mean) / self.spread


class PictureClassifier(nn.Module):
    """Pictures -> logits by a net that was trained on pictures."""

    def __init__(self, colours: Colours, crop: int, net: nn.Module) -> None:
        super().__init__()
        self.colours, self.crop, self.net = colours, crop, net

    def forward(self, pixels: Tensor) -> Tensor:
        logits: Tensor = self.net(self.colours(centre_crop(pixels, self.crop)))[1]
        return logits


class EmbeddedClassifier(nn.Module):
    """Pictures -> features of a frozen backbone -> logits."""

    def __init__(self, colours: Colours, backbone: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.colours, self.backbone, self.head = colours, backbone, head

    def forward(self, pixels: Tensor) -> Tensor:
        out = self.backbone(self.colours(pixels))
        features: Tensor = out[0] if isinstance(out, tuple) else out
        logits: Tensor = self.head(features.float())
        return logits

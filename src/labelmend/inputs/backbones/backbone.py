"""A frozen net that turns pictures into features, and how its input must look."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labelmend.errors import ConfigError

Colour = tuple[float, float, float]
IMAGENET_MEAN: Colour = (0.485 * 255, 0.456 * 255, 0.406 * 255)
IMAGENET_STD: Colour = (0.229 * 255, 0.224 * 255, 0.225 * 255)


@dataclass(frozen=True)
class Backbone:
    """`open` gives the net when it is first needed, so that features found in a cache need no weights in memory.

    name: for people. size: side in pixels of the square pictures it wants.
    identity: the same for the same features, on every machine; a hash of the weights is part of it.
    mean, std: normalisation of pixel values between 0 and 255.
    """

    name: str
    size: int
    identity: str
    open: Callable[[], nn.Module]
    mean: Colour = IMAGENET_MEAN
    std: Colour = IMAGENET_STD

    @cached_property
    def net(self) -> nn.Module:
        """Maps a normalised batch (n, 3, size, size) to features (n, d) or to (features, logits)."""
        return self.open().eval()

    @cached_property
    def dimension(self) -> int:
        """Number of features; found by trying, on a grey picture."""
        parameter = next(self.net.parameters(), torch.empty(0))
        grey = torch.full((1, self.size, self.size, 3), 128, dtype=torch.uint8, device=parameter.device)
        return self.features(grey).shape[1]

    def preprocess(self, pixels: Tensor) -> Tensor:
        """uint8 (n, H, W, 3) -> float32 (n, 3, size, size), in the layout that is fast: channels last in memory."""
        batch = pixels.permute(0, 3, 1, 2).float()  # a view, then a copy that keeps its order
        if batch.shape[2:] != (self.size, self.size):
            batch = F.interpolate(batch, (self.size, self.size), mode="bilinear", antialias=True)
        mean, std = (batch.new_tensor(colour).view(1, 3, 1, 1) for colour in (self.mean, self.std))
        return batch.sub_(mean).div_(std)

    @torch.inference_mode()
    def features(self, pixels: Tensor) -> Tensor:
        """uint8 (n, H, W, 3), on the device of the net -> float32 (n, d)."""
        out = self.net(self.preprocess(pixels))
        features = out[0] if isinstance(out, tuple) else out
        if not isinstance(features, Tensor) or features.ndim != 2 or len(features) != len(pixels):
            got = tuple(features.shape) if isinstance(features, Tensor) else type(features).__name__
            raise ConfigError(
                f"the backbone {self.name} must map a batch of {len(pixels)} pictures to features of shape "
                f"({len(pixels)}, d), or to (features, logits). Got {got} instead."
            )
        return features.float()


def hash_weights(net: nn.Module) -> str:
    """SHA-256 of all parameters and buffers, and of the layers as torch prints them."""
    digest = hashlib.sha256(repr(net).encode())
    for name, value in net.state_dict().items():
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()

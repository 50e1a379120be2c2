"""The deployed classifier for pictures: `predict` on paths, folders or pixels.

Trained on pictures, it is one net. Embedded, it is the head of a model for vectors behind a frozen backbone, whose
weights are not saved with it: the model stores which backbone it was, and asks for the same one again.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from labelmend.errors import ConfigError, DataError, RunFolderError
from labelmend.inputs.backbones import Backbone, load_backbone
from labelmend.inputs.pictures.cache import decoded, in_three_colours
from labelmend.inputs.pictures.find import check_pixels
from labelmend.inputs.pictures.folders import pictures_below, spelled
from labelmend.inputs.pictures.pixels import Sources
from labelmend.models.pooled import Pooled
from labelmend.models.vectors import (
    Head,
    describe_head,
    describe_net,
    head_tensors,
    net_tensors,
    probabilities,
    write_model,
)
from labelmend.samples import centre_crop

TRAINED, EMBEDDED, EMBEDDED_POOLED = "pictures-trained", "pictures-embedded", "pictures-embedded-pooled"
BATCH_PIXELS = 2**21  # of all pictures that a net sees at once
MOST, LEAST = 512, 8  # pictures at once
NAMED = 3  # unreadable pictures named in a message


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


@dataclass(frozen=True)
class ImageModel(ABC):
    """A classifier for pictures: `predict`, `predict_proba`."""

    classes: NDArray[Any]
    device: torch.device

    @property
    @abstractmethod
    def size(self) -> tuple[int, int]:
        """(height, width) to which every picture is fitted."""

    @abstractmethod
    def classifier(self) -> nn.Module:
        """uint8 (n, height, width, 3) at `size` -> logits (n, C)."""

    @abstractmethod
    def save(self, folder: Path) -> None: ...

    def predict_proba(self, pictures: Any) -> NDArray[np.float64]:
        """(n, C) class probabilities, columns in the order of `classes`.

        pictures: a path, a list of paths or of uint8 arrays, a folder (all pictures below it, sorted by path), or one
        uint8 array (n, H, W[, 1 or 3]). All are fitted to `size`, as for training.
        """
        sources = picture_sources(pictures)
        with closing(_batches(sources, self.size)) as batches:
            return probabilities(self.classifier(), batches, len(self.classes), self.device)

    def predict(self, pictures: Any) -> NDArray[Any]:
        labels: NDArray[Any] = self.classes[self.predict_proba(pictures).argmax(axis=1)]
        return labels


@dataclass(frozen=True)
class TrainedImageModel(ImageModel):
    net: nn.Module
    mean: Tensor  # of the colours, between 0 and 1
    spread: Tensor
    decoded_size: tuple[int, int]
    crop: int  # side of the square in the middle that the net sees

    @property
    def size(self) -> tuple[int, int]:
        return self.decoded_size

    def classifier(self) -> nn.Module:
        return PictureClassifier(Colours(self.mean, self.spread, divisor=255.0), self.crop, self.net)

    def save(self, folder: Path) -> None:
        about = {"kind": TRAINED, **describe_net(self.net), "size": list(self.size), "crop": self.crop}
        colours = {"colours.mean": self.mean, "colours.spread": self.spread}
        write_model(folder, {**net_tensors(self.net), **colours}, about)


@dataclass(frozen=True)
class NamedBackbone:
    """Which backbone it is. It is looked for when pictures are to be judged: labels can be read without it."""

    name: str
    side: int
    identity: str
    source: Any  # what `load_backbone` takes; None: the name

    @classmethod
    def of(cls, backbone: Backbone) -> NamedBackbone:
        return cls(backbone.name, backbone.size, backbone.identity, backbone)

    @cached_property
    def loaded(self) -> Backbone:
        try:
            backbone = load_backbone(self.name if self.source is None else self.source, self.side)
        except ConfigError as error:
            raise RunFolderError(
                f"this model judges pictures by the backbone {self.name}, which is not saved with it and must be "
                f"there. Got this instead: {error} Pass it again: labelmend.load(folder, backbone=...)."
            ) from error
        if (backbone.identity, backbone.size) != (self.identity, self.side):
            raise RunFolderError(
                f"this model judges pictures by the backbone {self.name} at {self.side} pixels, with the weights it "
                f"was made with. Got {backbone.name} at {backbone.size} pixels with other weights instead."
            )
        return backbone


@dataclass(frozen=True)
class EmbeddedImageModel(ImageModel):
    head: Head  # features of the backbone -> logits
    backbone: NamedBackbone

    @property
    def size(self) -> tuple[int, int]:
        return self.backbone.side, self.backbone.side

    def classifier(self) -> nn.Module:
        backbone = self.backbone.loaded
        colours = Colours(torch.tensor(backbone.mean), torch.tensor(backbone.std), divisor=1.0)
        return EmbeddedClassifier(colours, backbone.net, self.head)

    def save(self, folder: Path) -> None:
        about = {
            "kind": EMBEDDED_POOLED if isinstance(self.head, Pooled) else EMBEDDED,
            **describe_head(self.head),
            "backbone": {"name": self.backbone.name, "size": self.backbone.side, "identity": self.backbone.identity},
        }
        write_model(folder, head_tensors(self.head), about)


def picture_sources(pictures: Any) -> Sources:
    """What people hand over, as sources that can be read."""
    if isinstance(pictures, str | os.PathLike):
        path = Path(pictures)
        return pictures_below(path) if path.is_dir() else [path]
    if isinstance(pictures, Sequence):
        return [_one_source(picture) for picture in pictures]
    array = np.asarray(pictures)
    if len(array) == 0 and array.ndim in (3, 4):
        return []
    return check_pixels(array, "pictures")


def _one_source(picture: Any) -> Path | NDArray[np.uint8]:
    if isinstance(picture, str | os.PathLike):
        return Path(picture)
    pixels: NDArray[np.uint8] = check_pixels(np.asarray(picture)[None], "pictures")[0]
    return pixels


def _batches(sources: Sources, size: tuple[int, int]) -> Generator[Tensor, None, None]:
    n = max(LEAST, min(MOST, BATCH_PIXELS // (size[0] * size[1])))
    if isinstance(sources, np.ndarray) and sources.shape[1:3] == size:
        for start in range(0, len(sources), n):
            yield torch.from_numpy(np.array(in_three_colours(sources[start : start + n])))
        return
    unreadable: dict[int, str] = {}
    block: list[NDArray[np.uint8]] = []
    with closing(decoded(sources, size)) as all_pixels:
        for place, pixels in enumerate(all_pixels):
            if isinstance(pixels, str):
                unreadable[place] = pixels
            else:
                block.append(pixels)
            if unreadable:
                continue  # nothing will be answered; the others are looked at to name them all
            if len(block) == n:
                yield torch.from_numpy(np.stack(block))
                block = []
    if unreadable:
        named = "; ".join(f"{_name(sources[place], place)}: {why}" for place, why in list(unreadable.items())[:NAMED])
        more = "; ..." if len(unreadable) > NAMED else ""
        raise DataError(f"pictures must be readable. {len(unreadable)} of {len(sources)} are not: {named}{more}.")
    if block:
        yield torch.from_numpy(np.stack(block))


def _name(source: Any, place: int) -> str:
    return spelled(str(source)) if isinstance(source, Path) else f"picture {place}"

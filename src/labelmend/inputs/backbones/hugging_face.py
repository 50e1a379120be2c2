"""Vision models of Hugging Face `transformers` as backbones, from a local folder or by name from the hub.

Only configuration and safetensors are read, and from the hub only these are fetched: nothing that comes with a model is
executed.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from labelmend.errors import ConfigError, MissingExtraError
from labelmend.inputs.backbones.backbone import Backbone, Colour

FILES = ("config.json", "preprocessor_config.json", "processor_config.json", "model*.safetensors", "model*.index.json")


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


def from_hub(name: str, size: int | None) -> Backbone:
    _require()
    try:
        folder = importlib.import_module("huggingface_hub").snapshot_download(name, allow_patterns=list(FILES))
    except (OSError, ValueError, RuntimeError) as error:
        raise ConfigError(
            f"hf:{name} must name a vision model that the hub or its cache on this machine has. Got this instead: "
            f"{_first_line(error)} Without a connection, give the path of a folder that holds the model."
        ) from error
    return from_folder(Path(folder), size, f"hf:{name}")


def from_folder(folder: Path, size: int | None, name: str | None = None) -> Backbone:
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
        name, side, f"transformers {_hash_files(folder)}", lambda: _open(transformers, folder, name, side), mean, std
    )


def _open(transformers: Any, folder: Path, name: str, side: int) -> nn.Module:
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

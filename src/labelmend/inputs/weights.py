"""Pretrained weights for a net of this library, from a file. Nothing in the file is executed.

Knows state dicts; does not know pictures or training. The last layer belongs to the classes of whoever trained the
weights, so it is left as the net drew it.
"""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from labelmend.errors import ConfigError

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

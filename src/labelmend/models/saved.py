"""Saved models read back, of every kind. Loading executes nothing: safetensors and JSON."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from labelmend.errors import RunFolderError
from labelmend.files.reading import read_json, regular_file
from labelmend.models.pictures import EMBEDDED_POOLED, TRAINED, EmbeddedImageModel, NamedBackbone, TrainedImageModel
from labelmend.models.pooled import Pooled, part
from labelmend.models.vectors import (
    DESCRIPTION,
    OUR_NETS,
    POOLED,
    VECTORS,
    WEIGHTS,
    Head,
    NetFactory,
    Scale,
    VectorClassifier,
    VectorModel,
)


def load_model(folder: Path, classes: NDArray[Any], make_net: NetFactory | None, backbone: Any = None) -> Any:
    """A net that is not ours needs the factory that built it, and so does a backbone."""
    try:
        about, tensors = read_json(folder / DESCRIPTION), load_file(regular_file(folder / WEIGHTS))
        return _model(_Saved(folder, about, tensors, len(classes), make_net), classes, backbone)
    except (SafetensorError, RuntimeError, TypeError, KeyError) as error:
        raise RunFolderError(
            f"the model in {folder} must hold the weights of its net. Got this instead: {error}. "
            "A net of your own needs the same factory as in the run; otherwise the folder is damaged."
        ) from error


@dataclass(frozen=True)
class _Saved:
    """What is in the two files of a model, and what is needed to build it."""

    folder: Path
    about: dict[str, Any]
    tensors: dict[str, Tensor]
    n_classes: int
    make_net: NetFactory | None

    def head(self) -> Head:
        if self.about["kind"] in (POOLED, EMBEDDED_POOLED):
            return Pooled(part(self.tensors, "head"))
        scale = Scale(**{name: value.numpy() for name, value in part(self.tensors, "scaler").items()})
        return VectorClassifier(scale, self.net(len(scale.mean)))

    def net(self, n_inputs: int) -> nn.Module:
        name = self.about["net"].replace("labelmend.ensemble.nets.", "labelmend.nets.")
        if self.make_net is not None:
            net = self.make_net(n_inputs, self.n_classes)
        elif name in OUR_NETS:
            net = OUR_NETS[name][0](**self.about.get("shape", {}))
        else:
            raise RunFolderError(
                f"the model in {self.folder} is a {name}, which this library cannot build. "
                "Pass the factory that made it: labelmend.load(folder, net=...)."
            )
        net.load_state_dict(part(self.tensors, "net"))
        return net.eval()


def _model(saved: _Saved, classes: NDArray[Any], backbone: Any) -> Any:
    about, device = saved.about, torch.device("cpu")
    if about["kind"] in (VECTORS, POOLED):
        return VectorModel(saved.head(), classes, device)
    if about["kind"] == TRAINED:
        colours = part(saved.tensors, "colours")
        mean, spread, (height, width) = colours["mean"], colours["spread"], about["size"]
        return TrainedImageModel(classes, device, saved.net(3), mean, spread, (height, width), about["crop"])
    which = about["backbone"]
    named = NamedBackbone(which["name"], which["size"], which["identity"], backbone)
    return EmbeddedImageModel(classes, device, saved.head(), named)

"""The deployed classifier: the corrected-label branch with everything it needs to judge new rows.

Saved as safetensors and JSON; loading executes nothing. The description says which `kind` it is: vectors, which are
here, or pictures-trained and pictures-embedded, which are in `image_model.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from labelmend.data.features import Scaler, check_finite, read_features
from labelmend.data.json_file import read_json
from labelmend.data.regular_file import regular_file
from labelmend.data.samples import VectorSamples
from labelmend.embed import embed
from labelmend.errors import DataError, RunFolderError
from labelmend.nets.mlp import MLP
from labelmend.nets.preact_resnet import PreActResNet
from labelmend.nets.resnet import ResNet50

NetFactory = Callable[[int, int], nn.Module]  # (number of inputs, number of classes) -> net: batch -> features, logits
WEIGHTS, DESCRIPTION = "model.safetensors", "model.json"
VECTORS = "vectors"


@dataclass(frozen=True)
class VectorModel:
    """A classifier for feature vectors: `predict`, `predict_proba`."""

    net: nn.Module
    scaler: Scaler
    classes: NDArray[Any]
    device: torch.device

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """(n, C) class probabilities, columns in the order of `classes`."""
        matrix = read_features(X)
        if matrix.shape[1] != self.scaler.n_columns:
            raise DataError(f"features must have {self.scaler.n_columns} columns. Got {matrix.shape[1]} instead.")
        check_finite(matrix)
        rows = torch.from_numpy(self.scaler(matrix)).to(self.device)
        logits = embed(self.net, VectorSamples(rows))[1].double()
        probabilities: NDArray[np.float64] = logits.softmax(dim=1).cpu().numpy()
        return probabilities

    def predict(self, X: Any) -> NDArray[Any]:
        labels: NDArray[Any] = self.classes[self.predict_proba(X).argmax(axis=1)]
        return labels

    def save(self, folder: Path) -> None:
        about = {"kind": VECTORS, **describe_net(self.net), "n_classes": len(self.classes)}
        write_model(folder, {**net_tensors(self.net), **scaler_tensors(self.scaler)}, about)


@dataclass(frozen=True)
class SavedModel:
    """What is in the two files of a model."""

    folder: Path
    about: dict[str, Any]
    tensors: dict[str, Tensor]

    def part(self, name: str) -> dict[str, Tensor]:
        return {
            key.removeprefix(f"{name}."): value for key, value in self.tensors.items() if key.startswith(f"{name}.")
        }

    def scaler(self) -> Scaler:
        return Scaler(**{name: value.numpy() for name, value in self.part("scaler").items()})

    def net(self, n_inputs: int, n_classes: int, make_net: NetFactory | None) -> nn.Module:
        """A net that is not ours needs the factory that built it."""
        name, shape = self.about["net"], self.about.get("shape", {})
        if make_net is not None:
            net = make_net(n_inputs, n_classes)
        elif name in OUR_NETS:
            net = OUR_NETS[name](**shape)
        else:
            raise RunFolderError(
                f"the model in {self.folder} is a {name}, which this library cannot build. "
                "Pass the factory that made it: labelmend.load(folder, net=...)."
            )
        net.load_state_dict(self.part("net"))
        return net.eval()


def load_model(folder: Path, classes: NDArray[Any], make_net: NetFactory | None, backbone: Any = None) -> Any:
    """The saved model. A net that is not ours needs the factory that built it, and so does a backbone."""
    from labelmend import image_model

    try:
        saved = SavedModel(folder, read_json(folder / DESCRIPTION), load_file(regular_file(folder / WEIGHTS)))
        if saved.about["kind"] != VECTORS:
            return image_model.from_saved(saved, classes, make_net, backbone)
        scaler = saved.scaler()
        net = saved.net(scaler.n_inputs, len(classes), make_net)
        return VectorModel(net, scaler, classes, torch.device("cpu"))
    except (SafetensorError, RuntimeError, TypeError) as error:
        raise RunFolderError(
            f"the model in {folder} must hold the weights of its net. Got this instead: {error}. "
            "A net of your own needs the same factory as in the run; otherwise the folder is damaged."
        ) from error


def write_model(folder: Path, tensors: dict[str, Tensor], about: dict[str, Any]) -> None:
    (folder / DESCRIPTION).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    stored = {name: value.detach().cpu().clone().contiguous() for name, value in tensors.items()}
    try:
        save_file(stored, folder / WEIGHTS)
    except SafetensorError as error:  # a full disk, for example
        raise RunFolderError(f"{folder / WEIGHTS} must be writable. Got: {error}.") from error
    (folder / WEIGHTS).chmod((folder / DESCRIPTION).stat().st_mode)  # for the same people: safetensors has its own way


def net_tensors(net: nn.Module) -> dict[str, Tensor]:
    return {f"net.{name}": value for name, value in net.state_dict().items()}


def scaler_tensors(scaler: Scaler) -> dict[str, Tensor]:
    parts = {name: getattr(scaler, name) for name in ("mean", "scale", "projection")}
    return {f"scaler.{name}": torch.from_numpy(np.array(value)) for name, value in parts.items() if value is not None}


def describe_net(net: nn.Module) -> dict[str, Any]:
    """Its full name, so that a class of the same name elsewhere is not taken for ours; of ours the shape as well."""
    shape: dict[str, Any] = {}
    if type(net) is MLP:
        shape = {
            "n_inputs": net.hidden.in_features,
            "n_hidden": net.hidden.out_features,
            "n_classes": net.head.out_features,
        }
    elif type(net) is PreActResNet:
        shape = {
            "n_channels": net.stem.in_channels,
            "n_classes": net.head.out_features,
            "width": net.stem.out_channels,
        }
    elif type(net) is ResNet50:
        shape = {"n_classes": net.fc.out_features, "width": net.conv1.out_channels}
    return {"net": full_name(type(net)), **({"shape": shape} if shape else {})}


def full_name(kind: type[nn.Module]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


OUR_NETS: dict[str, Callable[..., nn.Module]] = {full_name(kind): kind for kind in (MLP, PreActResNet, ResNet50)}

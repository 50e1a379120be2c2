"""The deployed classifier: the corrected-label branch with everything it needs to judge new rows.

Saved as safetensors and JSON; loading executes nothing.
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
from torch import nn

from labelmend.data.features import Scaler, check_finite, read_features
from labelmend.data.samples import VectorSamples
from labelmend.embed import embed
from labelmend.errors import DataError, RunFolderError
from labelmend.nets.mlp import MLP

NetFactory = Callable[[int, int], nn.Module]  # (number of inputs, number of classes) -> net: batch -> features, logits
WEIGHTS, DESCRIPTION = "model.safetensors", "model.json"


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
        tensors = {
            f"net.{name}": value.detach().cpu().clone().contiguous() for name, value in self.net.state_dict().items()
        }
        for name in ("mean", "scale", "projection"):
            if (value := getattr(self.scaler, name)) is not None:
                tensors[f"scaler.{name}"] = torch.from_numpy(np.ascontiguousarray(value))
        save_file(tensors, folder / WEIGHTS)
        shape = {}
        if isinstance(self.net, MLP):
            shape = {"n_inputs": self.scaler.n_inputs, "n_hidden": self.net.hidden.out_features}
        description = {"net": type(self.net).__name__, **shape, "n_classes": len(self.classes)}
        (folder / DESCRIPTION).write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")


def load_model(folder: Path, classes: NDArray[Any], make_net: NetFactory | None) -> VectorModel:
    """The saved model. A net that is not ours needs the factory that built it."""
    try:
        return _load_model(folder, classes, make_net)
    except (SafetensorError, RuntimeError, TypeError) as error:
        raise RunFolderError(
            f"the model in {folder} must hold the weights of its net. Got this instead: {error}. "
            "A net of your own needs the same factory as in the run; otherwise the folder is damaged."
        ) from error


def _load_model(folder: Path, classes: NDArray[Any], make_net: NetFactory | None) -> VectorModel:
    description = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
    tensors = load_file(folder / WEIGHTS)
    scaler = Scaler(**{name[7:]: value.numpy() for name, value in tensors.items() if name.startswith("scaler.")})
    if make_net is not None:
        net = make_net(scaler.n_inputs, len(classes))
    elif description["net"] == "MLP":
        net = MLP(description["n_inputs"], description["n_hidden"], description["n_classes"])
    else:
        raise RunFolderError(
            f"the model in {folder} is a {description['net']}, which this library cannot build. "
            "Pass the factory that made it: labelmend.load(folder, net=...)."
        )
    net.load_state_dict({name[4:]: value for name, value in tensors.items() if name.startswith("net.")})
    return VectorModel(net.eval(), scaler, classes, torch.device("cpu"))

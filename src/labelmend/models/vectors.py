"""The classifier of a run for feature vectors, with everything it needs to predict for new rows.

It is one module from raw rows to logits, a `head`: either fitted to the decided labels (`pooled.py`), or a net of the
run behind its scaling: the user's own, or that of the corrected-label branch. The head of embedded pictures is the same
behind a backbone. Saved as safetensors and JSON; `saved.py` reads them back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from labelmend.ensemble.nets import MLP, PreActResNet, ResNet50
from labelmend.errors import DataError, RunFolderError
from labelmend.evidence.preparation import Preparation, dense, seen_columns
from labelmend.inputs.features import Scaler, check_finite, read_features
from labelmend.models.fit import fit_classifier
from labelmend.models.pooled import Pooled

NetFactory = Callable[[int, int], nn.Module]  # (number of inputs, number of classes) -> net: batch -> features, logits
WEIGHTS, DESCRIPTION = "model.safetensors", "model.json"
VECTORS, POOLED = "vectors", "vectors-pooled"
AT_ONCE = 2**24  # numbers held at once: columns of the rows, and leaves of a hundred trees by class
FEWEST_AT_ONCE, MOST_AT_ONCE = 16, 4096


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


Head = VectorClassifier | Pooled


@dataclass(frozen=True)
class VectorModel:
    """A classifier for feature vectors: `predict`, `predict_proba`."""

    head: Head  # float32 (n, columns) -> logits
    classes: NDArray[Any]
    device: torch.device

    @property
    def net(self) -> nn.Module:
        """The net of the run, where it is the model; else all of the head."""
        return self.head if isinstance(self.head, Pooled) else self.head.net

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """(n, C) class probabilities, columns in the order of `classes`."""
        matrix, n_columns = read_features(X), self.head.n_columns
        if matrix.shape[1] != n_columns:
            raise DataError(f"features must have {n_columns} columns. Got {matrix.shape[1]} instead.")
        check_finite(matrix)
        return probabilities(self.head, _batches(matrix, len(self.classes)), len(self.classes), self.device)

    def predict(self, X: Any) -> NDArray[Any]:
        labels: NDArray[Any] = self.classes[self.predict_proba(X).argmax(axis=1)]
        return labels

    def save(self, folder: Path) -> None:
        kind = POOLED if isinstance(self.head, Pooled) else VECTORS
        about = {"kind": kind, **describe_head(self.head), "n_classes": len(self.classes)}
        write_model(folder, head_tensors(self.head), about)


def net_model(net: nn.Module, scaler: Scaler, classes: NDArray[Any], device: torch.device) -> VectorModel:
    """The model that predicts with a net of the run."""
    return VectorModel(VectorClassifier(Scale(scaler.mean, scaler.scale, scaler.projection), net), classes, device)


def fit_vector_model(
    matrix: Any,
    preparation: Preparation,
    scaler: Scaler,
    decided: NDArray[np.int64],
    classes: NDArray[Any],
    device: torch.device,
    seed: int,
) -> VectorModel:
    """The model that is fitted to the decided labels (codes; -1: none).

    matrix: as `read_features` gives it; preparation: learned on `seen_columns(matrix, scaler.projection)`.
    """
    columns = seen_columns(matrix, scaler.projection)
    fitted = fit_classifier(columns, preparation, decided, len(classes), seed, scaler.projection)
    return VectorModel(fitted, classes, device)


def probabilities(
    classifier: nn.Module, batches: Iterable[Tensor], n_classes: int, device: torch.device
) -> NDArray[np.float64]:
    judge = classifier.to(device).eval()
    parts = [torch.zeros((0, n_classes), dtype=torch.float64)]
    with torch.inference_mode():
        parts += [judge(batch.to(device)).double().softmax(dim=1).cpu() for batch in batches]
    found: NDArray[np.float64] = torch.cat(parts).numpy()
    return found


def _batches(matrix: Any, n_classes: int) -> Iterator[Tensor]:
    n = max(FEWEST_AT_ONCE, min(MOST_AT_ONCE, AT_ONCE // (matrix.shape[1] + 100 * n_classes)))
    for first in range(0, matrix.shape[0], n):
        yield torch.from_numpy(np.array(dense(matrix[first : first + n]), dtype=np.float32))


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


def head_tensors(head: Head) -> dict[str, Tensor]:
    if isinstance(head, Pooled):
        return {f"head.{name}": value for name, value in head.state_dict().items()}
    return {**net_tensors(head.net), **{f"scaler.{name}": value for name, value in head.scale.state_dict().items()}}


def describe_head(head: Head) -> dict[str, Any]:
    """Tensors say all about a pooled head; a net needs its name."""
    return {} if isinstance(head, Pooled) else describe_net(head.net)


# Names in model.json, which stay although the classes move; and where a net shows the shape it was built with.
OUR_NETS: dict[str, tuple[type[nn.Module], dict[str, str]]] = {
    "labelmend.nets.mlp.MLP": (
        MLP,
        {"n_inputs": "hidden.in_features", "n_hidden": "hidden.out_features", "n_classes": "head.out_features"},
    ),
    "labelmend.nets.preact_resnet.PreActResNet": (
        PreActResNet,
        {"n_channels": "stem.in_channels", "n_classes": "head.out_features", "width": "stem.out_channels"},
    ),
    "labelmend.nets.resnet.ResNet50": (ResNet50, {"n_classes": "fc.out_features", "width": "conv1.out_channels"}),
}


def describe_net(net: nn.Module) -> dict[str, Any]:
    """Its full name, so that a class of the same name elsewhere is not taken for ours; of ours the shape as well."""
    for name, (kind, shape) in OUR_NETS.items():
        if type(net) is kind:
            return {"net": name, "shape": {key: attrgetter(place)(net) for key, place in shape.items()}}
    return {"net": f"{type(net).__module__}.{type(net).__qualname__}"}

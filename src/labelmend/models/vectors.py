"""The classifier of a run with everything it needs to judge new rows.

It is one module from raw rows to logits, a `head`: either fitted to the decided labels (`nets/pooled.py`), or a net of
the run behind its scaling: the user's own, or that of the corrected-label branch. The head of embedded pictures is the
same behind a backbone. Saved as safetensors and JSON; loading executes nothing. The description says which `kind` it
is: vectors-pooled and vectors, which are here, or the kinds of pictures, which are in `image_model.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from labelmend.ensemble.nets.mlp import MLP
from labelmend.ensemble.nets.preact_resnet import PreActResNet
from labelmend.ensemble.nets.resnet import ResNet50
from labelmend.errors import DataError, RunFolderError
from labelmend.evidence.preparation import Preparation, dense, seen_columns
from labelmend.files.reading import read_json, regular_file
from labelmend.inputs.features import Scaler, check_finite, read_features
from labelmend.models.deployed import Scale, VectorClassifier
from labelmend.models.fit import fit_classifier
from labelmend.models.pooled import Pooled, part

NetFactory = Callable[[int, int], nn.Module]  # (number of inputs, number of classes) -> net: batch -> features, logits
WEIGHTS, DESCRIPTION = "model.safetensors", "model.json"
VECTORS, POOLED = "vectors", "vectors-pooled"
AT_ONCE = 2**24  # numbers held at once: columns of the rows, and leaves of a hundred trees by class
FEWEST_AT_ONCE, MOST_AT_ONCE = 16, 4096

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
        judge = self.head.to(self.device).eval()
        parts = [torch.zeros((0, len(self.classes)), dtype=torch.float64)]
        with torch.inference_mode():
            parts += [
                judge(rows.to(self.device)).double().softmax(dim=1).cpu()
                for rows in _batches(matrix, len(self.classes))
            ]
        probabilities: NDArray[np.float64] = torch.cat(parts).numpy()
        return probabilities

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


def _batches(matrix: Any, n_classes: int) -> Iterator[Tensor]:
    n = max(FEWEST_AT_ONCE, min(MOST_AT_ONCE, AT_ONCE // (matrix.shape[1] + 100 * n_classes)))
    for first in range(0, matrix.shape[0], n):
        yield torch.from_numpy(np.array(dense(matrix[first : first + n]), dtype=np.float32))


@dataclass(frozen=True)
class SavedModel:
    """What is in the two files of a model."""

    folder: Path
    about: dict[str, Any]
    tensors: dict[str, Tensor]

    def part(self, name: str) -> dict[str, Tensor]:
        return part(self.tensors, name)

    def head(self, pooled: bool, n_classes: int, make_net: NetFactory | None) -> Head:
        if pooled:
            return Pooled(self.part("head"))
        scale = Scale(**{name: value.numpy() for name, value in self.part("scaler").items()})
        return VectorClassifier(scale, self.net(len(scale.mean), n_classes, make_net))

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
    from labelmend.models import pictures as image_model

    try:
        saved = SavedModel(folder, read_json(folder / DESCRIPTION), load_file(regular_file(folder / WEIGHTS)))
        kind = saved.about["kind"]
        if kind not in (VECTORS, POOLED):
            return image_model.from_saved(saved, classes, make_net, backbone)
        return VectorModel(saved.head(kind == POOLED, len(classes), make_net), classes, torch.device("cpu"))
    except (SafetensorError, RuntimeError, TypeError, KeyError) as error:
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


def head_tensors(head: Head) -> dict[str, Tensor]:
    if isinstance(head, Pooled):
        return {f"head.{name}": value for name, value in head.state_dict().items()}
    return {**net_tensors(head.net), **{f"scaler.{name}": value for name, value in head.scale.state_dict().items()}}


def describe_head(head: Head) -> dict[str, Any]:
    """Tensors say all about a pooled head; a net needs its name."""
    return {} if isinstance(head, Pooled) else describe_net(head.net)


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

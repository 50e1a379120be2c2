"""`export_model`: the classifier of a run as one ONNX file, compared with the original before it takes its name.

The contract of the file: one input, one output, any number of samples.

    pixels (n, height, width, 3) uint8, at the model's size  ->  probabilities (n, C) float32      pictures
    rows (n, columns) float32, not scaled                    ->  probabilities (n, C) float32      vectors

Normalisation, cropping, scaling and the backbone are part of the graph; fitting a picture to the size is not. The
metadata hold `classes`, a JSON list in the order of the columns, and `kind`; those of pictures also `size`, [h, w].
"""

from __future__ import annotations

import copy
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import util
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from labelmend.errors import LabelmendError, MissingExtraError, RunFolderError
from labelmend.files.writing import whole_file
from labelmend.models.pictures import EMBEDDED, TRAINED, ImageModel, TrainedImageModel
from labelmend.models.pooled import Pooled
from labelmend.models.vectors import VECTORS, VectorModel
from labelmend.result import plain_value

OPSET = 18
NEEDED = ("onnx", "onnxscript", "onnxruntime")
TOLERANCE = 1e-4  # between probabilities
TRIED = (1, 3)  # batches the two are compared on


class Probabilities(nn.Module):
    def __init__(self, classifier: nn.Module) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.classifier(x)
        return logits.softmax(dim=1)


def export_model(model: ImageModel | VectorModel, target: str | Path, force: bool = False) -> Path:
    """Write `target`; an existing file is replaced only with `force`, and only by one that gave the same answers."""
    target = Path(target)
    refuse_target(target, force)
    try:
        with whole_file(target) as partial:
            _write(model, partial)
            _compare(model, partial)
    except OSError as error:
        if isinstance(error, LabelmendError):
            raise
        raise RunFolderError(f"{target} must be writable. Got: {error.strerror or error}.") from error
    return target


def refuse_target(target: Path, force: bool) -> None:
    """All that can be told before any work."""
    if absent := [name for name in NEEDED if util.find_spec(name) is None]:
        raise MissingExtraError(f"exporting a model needs {', '.join(absent)}", "onnx")
    if target.is_dir() or ((target.exists() or target.is_symlink()) and not force):
        raise RunFolderError(f"the file to write must not exist. {target} does; choose another name or use --force.")
    if not target.resolve().parent.is_dir():
        raise RunFolderError(f"no such folder: {target.resolve().parent}")


def _write(model: ImageModel | VectorModel, path: Path) -> None:
    import onnx

    graph = Probabilities(copy.deepcopy(_classifier(model))).cpu().float().eval()
    name = _input_name(model)
    with _quiet():
        program = torch.onnx.export(
            graph,
            (torch.from_numpy(_examples(model, 2)),),
            dynamo=True,
            dynamic_shapes=({0: torch.export.Dim("n")},),
            input_names=[name],
            output_names=["probabilities"],
            opset_version=OPSET,
            verbose=False,
        )
    assert program is not None
    written = program.model_proto
    onnx.helper.set_model_props(written, _metadata(model))
    onnx.save(written, path)


def _compare(model: ImageModel | VectorModel, path: Path) -> None:
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for n in TRIED:
        examples = _examples(model, n)
        expected = model.predict_proba(examples)
        found = session.run(None, {_input_name(model): examples})[0]
        worst = float(np.abs(found - expected).max())
        if not worst <= TOLERANCE:
            raise LabelmendError(
                f"the exported model must give the probabilities of the original. They differ by {worst:.2g}; "
                "nothing was written. This is not a mistake of yours: please report it."
            )


def _classifier(model: ImageModel | VectorModel) -> nn.Module:
    return model.classifier() if isinstance(model, ImageModel) else model.head


def _input_name(model: ImageModel | VectorModel) -> str:
    return "pixels" if isinstance(model, ImageModel) else "rows"


def _examples(model: ImageModel | VectorModel, n: int) -> NDArray[Any]:
    random = np.random.default_rng(n)
    if isinstance(model, ImageModel):
        return random.integers(0, 256, (n, *model.size, 3), dtype=np.uint8)
    head = model.head
    if isinstance(head, Pooled):
        rows, projection = _between_knots(head, n, random), head.projection
    else:
        mean, spread, projection = head.scale.mean.cpu().numpy(), head.scale.scale.cpu().numpy(), head.scale.projection
        rows = random.normal(size=(n, len(mean))).astype(np.float32) * spread + mean
    # The way back through a projection: its columns are orthonormal.
    return rows if projection is None else (rows @ projection.cpu().numpy().T).astype(np.float32)


def _between_knots(head: Pooled, n: int, random: np.random.Generator) -> NDArray[np.float32]:
    """Rows whose columns lie between the least and the greatest value of the run."""
    n_columns = head.n_columns if head.projection is None else head.projection.shape[1]
    rows = np.zeros((n, n_columns), np.float32)
    low, high = head.prepare.ends.cpu().numpy().astype(np.float64)
    share = random.uniform(size=(n, len(low)))
    rows[:, head.prepare.columns.cpu().numpy()] = low * (1 - share) + high * share
    return rows


def _metadata(model: ImageModel | VectorModel) -> dict[str, str]:
    classes = json.dumps([plain_value(value) for value in model.classes])
    if isinstance(model, VectorModel):
        return {"classes": classes, "kind": VECTORS}
    kind = TRAINED if isinstance(model, TrainedImageModel) else EMBEDDED
    return {"classes": classes, "kind": kind, "size": json.dumps(list(model.size))}


@contextmanager
def _quiet() -> Iterator[None]:
    """torch's exporter warns of its own deprecations and of libraries that are not needed here."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)

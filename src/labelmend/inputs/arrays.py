"""What a user hands over as arrays, checked before any work: features, labels, trusted marks, annotators, names.

Knows containers and codes; does not know runs.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from labelmend.config import Settings
from labelmend.errors import DataError
from labelmend.evidence.inputs import PredProbs
from labelmend.inputs.annotators import read_annotated, settled, with_consensus
from labelmend.inputs.containers import values_of
from labelmend.inputs.features import check_features, read_features
from labelmend.inputs.labels import check_classes, read_labels
from labelmend.inputs.pred_probs import read_pred_probs
from labelmend.labels import Labels


def read_all(
    X: Any, y: Any, trusted: Any, missing: Any, annotators: Any, pred_probs: Any
) -> tuple[Any, Labels, NDArray[np.bool_], PredProbs | None]:
    """The same with probabilities of the user's own models, which are the features where there are no others."""
    if y is None and annotators is None:
        raise DataError("there must be labels: y, or a table of them as annotators. Got neither.")
    if X is None and pred_probs is None:
        raise DataError("there must be features X, or probabilities as pred_probs. Got neither.")
    labels = read_labels(y, missing) if annotators is None else read_annotated(y, annotators, missing)
    probabilities = None
    if pred_probs is not None:
        probabilities, labels = read_pred_probs(pred_probs, labels)
    matrix = probabilities.features() if X is None and probabilities is not None else read_features(X)
    if len(labels.codes) != matrix.shape[0]:
        raise DataError(
            "features and labels must have the same length. "
            f"Got {matrix.shape[0]} rows and {len(labels.codes)} labels instead."
        )
    check_features(matrix)
    return matrix, *checked_labels(labels, trusted), probabilities


def checked_labels(labels: Labels, trusted: Any) -> tuple[Labels, NDArray[np.bool_]]:
    """The labels, with their consensus where several people gave them, and which of them are certain."""
    if labels.annotations is None:
        check_classes(labels)
        return labels, read_trusted(trusted, labels)
    certain = read_trusted(trusted, settled(labels))
    labels = with_consensus(labels, certain)
    check_classes(labels)
    return labels, certain


def read_trusted(trusted: Any, labels: Labels) -> NDArray[np.bool_]:
    """Which labels are certain; none of them where nothing is said."""
    if trusted is None:
        return np.zeros(len(labels.codes), dtype=bool)
    certain = _read_mask(trusted, len(labels.codes))
    if (certain & (labels.codes < 0)).any():
        row = int(np.flatnonzero(certain & (labels.codes < 0))[0])
        raise DataError(f"trusted rows must have a label. Row {row} has none; remove the mark or fill the label.")
    return certain


def _read_mask(mask: Any, n: int) -> NDArray[np.bool_]:
    array = values_of(mask, "trusted")
    try:
        numbers = array.astype(float)
    except (TypeError, ValueError):
        numbers = np.full(array.shape, np.nan)
    if array.shape != (n,) or not np.isin(numbers, (0.0, 1.0)).all():
        raise DataError(
            f"trusted must be one true or false per row ({n}). Got {array.dtype} values of shape {array.shape} instead."
        )
    return numbers.astype(bool)


def read_ids(ids: Any, n: int) -> NDArray[Any]:
    """Names of the rows; their positions where none are given."""
    if ids is None:
        return np.arange(n)
    array = values_of(ids, "ids")
    if array.shape != (n,):
        raise DataError(f"ids must be one per row ({n}). Got an array of shape {array.shape} instead.")
    if (repeated := n - len(set(array.tolist()))) > 0:
        raise DataError(f"ids must be unique. Got {repeated} repeated ones instead.")
    return array


def notice(labels: Labels, duplicates: list[list[int]], settings: Settings) -> list[str]:
    """What is handled, and the user should know."""
    notes = list(labels.notes)
    sizes = np.bincount(labels.codes[labels.codes >= 0], minlength=len(labels.classes))
    # A class that only pred_probs name has no labels to keep; one that annotators name and nobody's label is tiny.
    counted = (sizes > 0) | (labels.annotations is not None)
    tiny = [str(c) for c in labels.classes[counted & (sizes < settings.min_class_size)]]
    small = int((counted & (sizes < settings.n_branches)).sum())
    if tiny:
        notes.append(
            f"{len(tiny)} class(es) have fewer than {settings.min_class_size} samples and keep their labels, "
            f"for review: {', '.join(tiny[:5])}{', ...' if len(tiny) > 5 else ''}."
        )
    if small:
        notes.append(f"{small} class(es) have fewer samples than there are branches; some subsets go without them.")
    if duplicates:
        notes.append(
            f"{len(duplicates)} group(s) of identical rows have different labels, for example rows "
            f"{', '.join(map(str, duplicates[0][:5]))}; see `duplicates` in the result."
        )
    return notes


def fingerprint(matrix: Any, labels: Labels, pred_probs: PredProbs | None = None) -> str:
    """SHA-256 of features, labels, who gave them and models' probabilities: whether a run belongs to these data."""
    digest = hashlib.sha256()
    parts = (matrix.data, matrix.indices, matrix.indptr) if scipy.sparse.issparse(matrix) else (matrix,)
    for part in (*parts, labels.codes):
        digest.update(np.ascontiguousarray(part).data)
    if labels.annotations is not None:
        digest.update(labels.annotations.digest().encode())
    if pred_probs is not None:
        digest.update(pred_probs.digest().encode())
    return digest.hexdigest()

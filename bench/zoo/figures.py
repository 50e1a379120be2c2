"""How good one answer to a cell is, in percent, measured against the truth."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from bench.datasets import Dataset, FloatArray, IntArray

Figures = dict[str, float]


def of_labels(data: Dataset, labels: IntArray) -> Figures:
    """Labels right; their mean over the true classes; good labels broken, and kept in the class that keeps fewest."""
    right, good = labels == data.true_labels, data.given_labels == data.true_labels
    by_class = [np.flatnonzero(data.true_labels == c) for c in np.unique(data.true_labels)]
    kept = [float(right[rows][good[rows]].mean()) for rows in by_class if good[rows].any()]
    shares = {
        "right": float(right.mean()),
        "balanced": float(np.mean([right[rows].mean() for rows in by_class])),
        "broken": float(1 - right[good].mean()) if good.any() else 0.0,
        "kept": min(kept, default=1.0),
    }
    return {name: percent(share) for name, share in shares.items()}


def of_ranking(data: Dataset, suspicion: FloatArray | None) -> Figures:
    """Area under the ROC curve and average precision of finding wrong labels; none where all are right or wrong."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    wrong: NDArray[np.bool_] = data.given_labels != data.true_labels
    if suspicion is None or not wrong.any() or wrong.all():
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        area, precision = roc_auc_score(wrong, suspicion), average_precision_score(wrong, suspicion)
    return {"auroc": percent(area), "precision": percent(precision)}


def percent(share: float) -> float:
    return round(100 * float(share), 4)

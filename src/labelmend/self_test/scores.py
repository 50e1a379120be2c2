"""How good corrected labels are, measured against the truth."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Figures = dict[str, float | None]  # None: not defined here, such as the F1 of finding errors where there are none


def score(true_labels: ArrayLike, given_labels: ArrayLike, labels: ArrayLike) -> Figures:
    """Finding errors means labels != given, against given != true; F1, precision and recall are those of finding."""
    true, given, final = np.asarray(true_labels), np.asarray(given_labels), np.asarray(labels)
    wrong, changed = given != true, final != given
    found = int((wrong & changed).sum())
    return {
        "given_accuracy": float((~wrong).mean()),
        "label_accuracy": float((final == true).mean()),
        "f1": _ratio(2 * found, int(wrong.sum() + changed.sum())) if wrong.any() else None,
        "precision": _ratio(found, int(changed.sum())),
        "recall": _ratio(found, int(wrong.sum())),
        "wrongly_changed": float((changed & ~wrong).mean()),  # good labels broken, as a share of all rows
        "true_noise_rate": float(wrong.mean()),
    }


def score_review(true_labels: ArrayLike, labels: ArrayLike, in_review: NDArray[np.bool_]) -> Figures:
    """How much a person has to look at, and how many of the errors that remain are among it."""
    errors: NDArray[Any] = np.asarray(labels) != np.asarray(true_labels)
    return {
        "review_share": float(in_review.mean()),
        "errors_in_review": _ratio(int((errors & in_review).sum()), int(errors.sum())),
    }


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None

"""labelmend and its neighbours behind one signature, features and given labels in, labels out; how good labels are.

Each gets what a user would give it, and none sees the truth. cleanlab is used as its tutorials do for feature vectors:
out-of-fold probabilities of a logistic regression, flagged labels replaced by the most probable class.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelmend.errors import MissingExtraError

Figures = dict[str, float | None]  # None: not defined here, such as the F1 of finding errors where there are none


@dataclass(frozen=True)
class Corrected:
    labels: NDArray[Any]
    noise_rate: float | None = None  # estimated
    in_review: NDArray[np.bool_] | None = None


def labelmend(features: NDArray[Any], given: NDArray[Any], neighbours: int, seed: int) -> Corrected:
    from labelmend.api import correct

    result = correct(features, given, seed=seed)
    return Corrected(np.asarray(result.labels), result.noise_rate, result.status == "review")


def cleanlab(features: NDArray[Any], given: NDArray[Any], neighbours: int, seed: int) -> Corrected:
    """LogisticRegression(max_iter=200), 5 folds, find_label_issues; its noise rate is the share it flags."""
    find_label_issues = _import_cleanlab()
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    classes, codes = np.unique(given, return_inverse=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 200 iterations are often not enough to converge; that is part of the recipe
        model = LogisticRegression(max_iter=200)
        probabilities = cross_val_predict(model, features, codes, cv=5, method="predict_proba")
        # In this process: one that is forked beside running threads may wait for ever.
        flagged = find_label_issues(codes, probabilities, n_jobs=1)
    labels = np.where(flagged, classes[probabilities.argmax(axis=1)], given)
    return Corrected(labels, float(np.mean(flagged)))


def knn_vote(features: NDArray[Any], given: NDArray[Any], neighbours: int, seed: int) -> Corrected:
    """Every sample takes the majority label of its nearest neighbours, itself not among them."""
    from scipy.stats import mode
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=min(neighbours, len(given) - 1)).fit(features)
    nearest = search.kneighbors(return_distance=False)
    return Corrected(np.asarray(mode(given[nearest], axis=1).mode))


METHODS: dict[str, Callable[[NDArray[Any], NDArray[Any], int, int], Corrected]] = {
    "labelmend": labelmend,
    "cleanlab": cleanlab,
    "k-NN vote": knn_vote,
}


def prepare(method: str) -> None:
    """Import what a method needs, so that its time is that of its work; MissingExtraError where that fails."""
    if method == "labelmend":
        import labelmend.api  # noqa: F401
    elif method == "cleanlab":
        _import_cleanlab()
        import sklearn.linear_model
    else:
        import sklearn.neighbors  # noqa: F401


def _import_cleanlab() -> Callable[..., Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from cleanlab.filter import find_label_issues
    except ImportError as error:
        raise MissingExtraError("cleanlab is not installed", "compare") from error
    return find_label_issues  # type: ignore[no-any-return]


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

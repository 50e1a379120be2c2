"""`LabelCorrector`: the scikit-learn contract over `labelmend.correct`, and nothing else.

Knows scikit-learn's conventions; does not know the method.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from labelmend.api import correct
from labelmend.config import RunConfig
from labelmend.errors import ConfigError, DataError
from labelmend.inputs.features import MIN_ROWS
from labelmend.inputs.labels import read_labels
from labelmend.models.vectors import NetFactory

FORMER = ("n_rounds", "n_branches", "packages_per_branch", "graph_k", "alpha", "hidden")


class LabelCorrector(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Corrects the labels it is fitted on, and predicts with the net that learned the corrected ones.

    Every label must be there: samples without one are for `labelmend.correct`, which fills them in.

    Parameters
    ----------
    preset : "default" (what measured best) or "paper" (as the text has it).
    assume, review_below, precision, budget, audit, device, net, config, expert : as in `labelmend.correct`.
    random_state : int, RandomState or None; an int gives the same result each time.
    n_rounds, n_branches, packages_per_branch, graph_k, alpha, hidden, parameters : former names for entries of
        `expert`; gone with the next release.

    Attributes
    ----------
    classes_ : classes, sorted.
    corrected_labels_ : labels of the fitted samples, in the container y came in.
    certainty_, confidence_, status_ : per sample, see `Correction`.
    noise_rate_, transition_, history_ : of the whole data set, see `Correction`.
    correction_ : the `Correction` itself, with votes, run folder and model.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn.
    """

    def __init__(
        self,
        preset: str = "default",
        *,
        assume: str | None = None,
        review_below: float | None = None,
        precision: float = 0.0,
        budget: int = 0,
        audit: float = 0.0,
        random_state: Any = None,
        device: str = "auto",
        net: NetFactory | None = None,
        config: RunConfig | None = None,
        expert: dict[str, Any] | None = None,
        n_rounds: int | None = None,
        n_branches: int | None = None,
        packages_per_branch: int | None = None,
        graph_k: int | None = None,
        alpha: float | None = None,
        hidden: int | None = None,
        parameters: dict[str, Any] | None = None,
    ) -> None:
        self.preset = preset
        self.assume = assume
        self.review_below = review_below
        self.precision = precision
        self.budget = budget
        self.audit = audit
        self.random_state = random_state
        self.device = device
        self.net = net
        self.config = config
        self.expert = expert
        self.n_rounds = n_rounds
        self.n_branches = n_branches
        self.packages_per_branch = packages_per_branch
        self.graph_k = graph_k
        self.alpha = alpha
        self.hidden = hidden
        self.parameters = parameters

    def fit(self, X: Any, y: Any, trusted: Any = None) -> LabelCorrector:
        """Correct the labels `y` of `X`. `trusted` marks rows whose label is certain."""
        matrix = validate_data(
            self,
            X,
            "no_validation" if y is not None else None,  # None: scikit-learn's own words for a missing y
            accept_sparse="csr",
            dtype=np.float32,
            ensure_all_finite=False,  # `correct` names the rows
            ensure_min_samples=MIN_ROWS,
        )
        result = correct(matrix, _read_y(y), trusted=trusted, **self._arguments())
        self.correction_ = result
        self.classes_ = result.classes
        self.corrected_labels_ = result.labels
        self.certainty_ = result.certainty
        self.confidence_ = result.confidence
        self.status_ = result.status
        self.noise_rate_ = result.noise_rate
        self.transition_ = result.transition
        self.history_ = result.history
        return self

    def fit_correct(self, X: Any, y: Any, trusted: Any = None) -> Any:
        """Fit, and return the corrected labels in the container of `y`."""
        return self.fit(X, y, trusted).corrected_labels_

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """(n, C) class probabilities, columns in the order of `classes_`."""
        check_is_fitted(self)
        matrix = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float32, ensure_all_finite=False)
        probabilities: NDArray[np.float64] = self.correction_.model.predict_proba(matrix)
        return probabilities

    def predict(self, X: Any) -> NDArray[Any]:
        best = self.predict_proba(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def _arguments(self) -> dict[str, Any]:
        """Of `correct`."""
        names = ("preset", "assume", "review_below", "precision", "budget", "audit", "device", "net", "config")
        former = {name: getattr(self, name) for name in FORMER if getattr(self, name) is not None}
        former |= self.parameters or {}
        expert = self.expert or {}
        if twice := sorted({*expert} & ({*names, "seed"} - {"device"})):
            raise ConfigError(
                f"expert must hold fields that have no argument of their own. Got {', '.join(twice)} instead "
                "(the seed is random_state)."
            )
        seed = {} if self.config is not None and self.random_state is None else {"seed": _seed(self.random_state)}
        return {**{name: getattr(self, name) for name in names}, **seed, **former, "expert": expert or None}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _read_y(y: Any) -> Any:
    """`y`, refused where a label is missing; a column is made flat, with scikit-learn's warning."""
    if getattr(y, "ndim", 1) == 2:
        y = column_or_1d(y, warn=True)
    absent = int((read_labels(y).codes < 0).sum())
    if absent:
        raise DataError(
            f"labels must all be there. Got NaN or None in {absent} of them instead; `labelmend.correct` fills them in."
        )
    return y


def _seed(random_state: Any) -> int:
    """An int is the seed of `correct`; anything else draws one, the way scikit-learn does."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))

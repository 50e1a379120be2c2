"""The members of the pool: simple predictors, each of which scores a row without that row's own label.

    ridge      linear, exact leave-one-out            rbf    kernel ridge on landmarks, exact leave-one-out
    logistic   linear, out of fold                    knn    vote of the nearest rows, the row itself not among them
    trees      extremely randomised, out of bag       boosting   of trees, out of fold, on small tables only

The score of a row does not change when its own given label alone changes: exactly with penalty, width and class shares
held fixed. Folds are drawn without looking at labels. Copies of a row share its fold and are left out
with it. Scores are in the scale of log-probabilities; the pool weighs them.

What a member costs grows with rows, columns and classes; `Sizes` is the one rule for what is fitted on a part of the
rows or left out. A linear and a tree member always stay: the joining needs their support.

Knows inputs and labels by number, -1 where there is none: such a row is scored and teaches nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.evidence.preparation import Groups, deal_into_folds
from labelmend.evidence.regression import LANDMARKS, Linear, Taught, centred, fit_kernel, fit_regression

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Scores = NDArray[np.float32]

LINEAR, TREES = ("ridge", "logistic"), ("trees", "boosting")
NEIGHBOURS, FOLDS = 10, 5
MANY_ROWS, FEWER_LANDMARKS = 12_000, 400
SMOOTHING = {"trees": 50.0, "logistic": 200.0, "boosting": 200.0}  # rows' worth of the answer against one of the shares


@dataclass(frozen=True)
class Sizes:
    """What is fitted on a part of the rows, or left out, for being too costly."""

    trees: int = 200
    tree_rows: int = 12_000  # trees learn from so many rows at most
    leaf_entries: float = 2e8  # leaves of all trees times classes
    logistic_work: float = 3e8  # rows x columns x classes, else left out: ridge is linear too
    boosting_work: float = 1.2e6
    boosting_columns: int = 130
    boosting_classes: int = 4  # each has trees of its own: of 1,500 rows of 10 classes they took 10 s, all else 2 s


@dataclass(frozen=True)
class Ground:
    """What members learn from."""

    raw: NDArray[Any]  # columns as they are, for trees
    inputs: Floats  # prepared columns
    given: Codes  # -1: none
    n_classes: int
    groups: Groups  # copies share one
    neighbours: Codes  # (n, >= NEIGHBOURS) nearest rows in the space of `inputs`, nearest first
    seed: int
    shares: Floats  # of the classes among the given labels, smoothed

    @property
    def labelled(self) -> NDArray[np.bool_]:
        return self.given >= 0

    @property
    def has_copies(self) -> bool:
        return bool(self.groups.max() + 1 < len(self.groups))

    @property
    def taught(self) -> Taught:
        return Taught(self.given, self.n_classes, self.groups)


def class_shares(given: Codes, n_classes: int) -> Floats:
    sizes = np.bincount(given[given >= 0], minlength=n_classes) + 0.5
    return np.asarray(sizes / sizes.sum())


def member_scores(ground: Ground, sizes: Sizes | None = None) -> dict[str, Scores]:
    """name -> (n, C) scores."""
    sizes = sizes or Sizes()
    n, work = len(ground.given), len(ground.given) * ground.raw.shape[1] * ground.n_classes
    members: dict[str, Callable[[Ground], Floats]] = {"ridge": ridge, "rbf": rbf, "knn": knn}
    if n * ground.inputs.shape[1] * ground.n_classes <= sizes.logistic_work:
        members["logistic"] = logistic
    members["trees"] = partial(trees, sizes=sizes)
    narrow = ground.raw.shape[1] <= sizes.boosting_columns and ground.n_classes <= sizes.boosting_classes
    if work <= sizes.boosting_work and narrow and n >= 2 * FOLDS:
        members["boosting"] = boosting
    return {name: score(ground).astype(np.float32) for name, score in members.items()}


def ridge(ground: Ground) -> Floats:
    taught = ground.taught
    return centred(fit_regression(ground.inputs, taught, [Linear.of(ground.inputs)]).without_own(taught))


def rbf(ground: Ground) -> Floats:
    """Fewer landmarks where there are many rows: what they teach is smooth enough, and a landmark costs every row."""
    most = LANDMARKS if len(ground.given) <= MANY_ROWS else FEWER_LANDMARKS
    return centred(fit_kernel(ground.inputs, ground.taught, ground.seed, most).without_own(ground.taught))


# ---- neighbours, and models of scikit-learn -------------------------------------------------------------------------


def knn(ground: Ground) -> Floats:
    """Log of the smoothed shares of the classes among the nearest rows that are no copies."""
    near = ground.neighbours
    counted = (ground.given[near] >= 0) & (ground.groups[near] != ground.groups[:, None])
    counted &= np.cumsum(counted, axis=1) <= NEIGHBOURS
    votes = np.zeros((len(near), ground.n_classes))
    rows = np.broadcast_to(np.arange(len(near))[:, None], near.shape)
    np.add.at(votes, (rows[counted], ground.given[near][counted]), 1.0)
    return np.asarray(np.log((votes + ground.shares) / (votes.sum(axis=1, keepdims=True) + 1)))


def logistic(ground: Ground) -> Floats:
    from sklearn.linear_model import LogisticRegression

    found = out_of_fold(partial(LogisticRegression, C=0.03, max_iter=100), ground.inputs, ground)
    return smoothed_log(found, ground.shares, SMOOTHING["logistic"])


def boosting(ground: Ground) -> Floats:
    from sklearn.ensemble import HistGradientBoostingClassifier as Boosting

    seed = ground.seed % 2**32
    found = out_of_fold(partial(Boosting, max_iter=60, early_stopping=False, random_state=seed), ground.raw, ground)
    return smoothed_log(found, ground.shares, SMOOTHING["boosting"])


def trees(ground: Ground, sizes: Sizes) -> Floats:
    return tree_scores(ground, sizes, None if ground.has_copies else grow_trees(ground, sizes))


def grow_trees(ground: Ground, sizes: Sizes) -> Any:
    learners = _tree_learners(ground, sizes)
    return _tree_maker(ground, sizes)(bootstrap=True, oob_score=True).fit(ground.raw[learners], ground.given[learners])


def tree_scores(ground: Ground, sizes: Sizes, forest: Any) -> Floats:
    """Out of bag; rows beyond those the trees learn from are judged by all trees. With copies: out of fold."""
    learners = _tree_learners(ground, sizes)
    if ground.has_copies:
        found = out_of_fold(_tree_maker(ground, sizes), ground.raw, ground, learners)
        return smoothed_log(found, ground.shares, SMOOTHING["trees"])
    found = np.zeros((len(ground.given), ground.n_classes))
    found[np.ix_(learners, forest.classes_)] = np.nan_to_num(forest.oob_decision_function_)
    others = np.setdiff1d(np.arange(len(found)), learners)
    if len(others):
        found[np.ix_(others, forest.classes_)] = forest.predict_proba(ground.raw[others])
    return smoothed_log(found, ground.shares, SMOOTHING["trees"])


def _tree_learners(ground: Ground, sizes: Sizes) -> Codes:
    labelled = np.flatnonzero(ground.labelled)
    if len(labelled) <= sizes.tree_rows:
        return labelled
    return np.sort(np.random.default_rng(ground.seed).permutation(labelled)[: sizes.tree_rows])


def _tree_maker(ground: Ground, sizes: Sizes) -> Callable[..., Any]:
    from sklearn.ensemble import ExtraTreesClassifier

    most = int(sizes.leaf_entries / (sizes.trees * ground.n_classes))
    leaves = None if most > len(ground.given) else max(most, 16)
    seed = ground.seed % 2**32
    return partial(ExtraTreesClassifier, sizes.trees, min_samples_leaf=2, max_leaf_nodes=leaves, random_state=seed)


def out_of_fold(make: Callable[[], Any], inputs: NDArray[Any], ground: Ground, learners: Codes | None = None) -> Floats:
    """(n, C) probabilities by models that saw neither the row nor its copies."""
    folds = deal_into_folds(ground.groups, min(FOLDS, int(ground.groups.max()) + 1), ground.seed)
    may_teach = ground.labelled.copy()
    if learners is not None:
        may_teach[:] = False
        may_teach[learners] = True
    out = np.zeros((len(folds), ground.n_classes))
    for fold in np.unique(folds):
        judged, taught = np.flatnonzero(folds == fold), np.flatnonzero((folds != fold) & may_teach)
        present = np.unique(ground.given[taught])
        if len(present) == 1:
            out[judged, present[0]] = 1
        if len(present) < 2:
            continue
        model = make().fit(inputs[taught], ground.given[taught])
        out[np.ix_(judged, model.classes_)] = model.predict_proba(inputs[judged])
    return out


def smoothed_log(probabilities: Floats, shares: Floats, rows: float) -> Floats:
    """Logs of probabilities with the class shares mixed in as one row against `rows`."""
    total = np.maximum(probabilities.sum(axis=1, keepdims=True), 1e-12)
    return np.asarray(np.log((probabilities / total * rows + shares) / (rows + 1)))

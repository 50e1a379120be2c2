"""The members of the pool: simple predictors, each of which scores a row without that row's own label.

    ridge      linear, exact leave-one-out            rbf    kernel ridge on landmarks, exact leave-one-out
    logistic   linear, out of fold                    knn    vote of the nearest rows, the row itself not among them
    trees      extremely randomised, out of bag       boosting   of trees, out of fold, on small tables only

The score of a row does not change when its own given label alone changes: exactly with penalty, width and class shares
held fixed. Folds are drawn without looking at labels. Copies of a row (`copies.py`) share its fold and are left out
with it. Scores are in the scale of log-probabilities; the pool weighs them.

What a member costs grows with rows, columns and classes; `Sizes` is the one rule for what is fitted on a part of the
rows or left out. A linear and a tree member always stay: the joining needs their support.

Knows inputs and labels by number, -1 where there is none: such a row is scored and teaches nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.evidence.copies import Groups, deal_into_folds

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Scores = NDArray[np.float32]

LINEAR, TREES = ("ridge", "logistic"), ("trees", "boosting")
PENALTIES = 10.0 ** np.arange(-2, 3.1, 0.5)
WIDTHS = (0.3, 1.0)  # of the kernel, as multiples of the median squared distance
LANDMARKS, NEIGHBOURS, FOLDS = 800, 10, 5
MANY_ROWS, FEWER_LANDMARKS = 12_000, 400  # what the rows teach is smoother then
CENTRED_SCALE = 5.0  # of centred regression answers, which lie between -1 and 1
LEAST_LEFT = 0.02  # of a row's own leverage: beyond, a row is hardly told by the others
SMOOTHING = {"trees": 50.0, "logistic": 200.0, "boosting": 200.0}  # rows' worth of the answer against one of the shares
BLOCK = 4096  # rows whose features are held at once
JUDGED = 5_000  # rows on which penalties and widths are compared


@dataclass(frozen=True)
class Sizes:
    """What is fitted on a part of the rows, or left out, for being too costly."""

    tree_rows: int = 12_000  # trees learn from so many rows at most
    leaf_entries: float = 2e8  # leaves of all trees times classes
    logistic_work: float = 3e8  # rows x columns x classes, else left out: ridge is linear too
    boosting_work: float = 1.2e6
    boosting_columns: int = 130


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

    def onehot(self) -> Floats:
        out = np.zeros((len(self.given), self.n_classes))
        rows = np.flatnonzero(self.labelled)
        out[rows, self.given[rows]] = 1
        return out


def class_shares(given: Codes, n_classes: int) -> Floats:
    sizes = np.bincount(given[given >= 0], minlength=n_classes) + 0.5
    return np.asarray(sizes / sizes.sum())


def member_scores(ground: Ground, sizes: Sizes | None = None) -> dict[str, Scores]:
    """name -> (n, C) scores."""
    sizes = sizes or Sizes()
    n, work = len(ground.given), len(ground.given) * ground.raw.shape[1] * ground.n_classes
    members: dict[str, Callable[[], Floats]] = {"ridge": lambda: _centred(ridge(ground)), "rbf": lambda: _rbf(ground)}
    members["knn"] = lambda: knn(ground)
    if len(ground.given) * ground.inputs.shape[1] * ground.n_classes <= sizes.logistic_work:
        members["logistic"] = lambda: logistic(ground)
    members["trees"] = lambda: trees(ground, sizes)
    if work <= sizes.boosting_work and ground.raw.shape[1] <= sizes.boosting_columns and n >= 2 * FOLDS:
        members["boosting"] = lambda: boosting(ground)
    return {name: score().astype(np.float32) for name, score in members.items()}


# ---- ridge regression on one-hot labels, with or without a kernel ---------------------------------------------------


@dataclass(frozen=True)
class Features:
    """Rows of features by blocks, so that wide ones need not be held for all rows."""

    n: int
    rows: Callable[[slice | Codes], Floats]

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        for first in range(0, self.n, BLOCK):
            block = slice(first, min(first + BLOCK, self.n))
            yield block, self.rows(block)


def linear_features(inputs: Floats) -> Features:
    level = constant_column(inputs)
    return Features(len(inputs), lambda rows: with_constant(inputs[rows], level))


def constant_column(inputs: Floats) -> float:
    """As long as a usual row, so that the penalty hardly reaches it."""
    return float(np.sqrt((inputs**2).sum(axis=1).mean()))


def with_constant(inputs: Floats, level: float) -> Floats:
    return np.hstack([inputs, np.full((len(inputs), 1), level)])


@dataclass(frozen=True)
class Kernel:
    """exp(-squared distance / width) to some landmarks, turned so that inner products are those of the kernel."""

    landmarks: Floats
    width: float
    turn: Floats
    level: float

    def __call__(self, inputs: Floats) -> Floats:
        return with_constant(np.exp(-squared_distances(inputs, self.landmarks) / self.width) @ self.turn, self.level)


def squared_distances(rows: Floats, others: Floats) -> Floats:
    found = (rows**2).sum(axis=1)[:, None] + (others**2).sum(axis=1)[None] - 2 * rows @ others.T
    return np.asarray(np.maximum(found, 0))


def kernels(inputs: Floats, seed: int) -> list[Kernel]:
    number = LANDMARKS if len(inputs) <= MANY_ROWS else FEWER_LANDMARKS
    chosen = np.random.default_rng(seed).permutation(len(inputs))[:number]
    landmarks = inputs[chosen]
    between = squared_distances(landmarks, landmarks)
    usual = float(np.median(between[between > 1e-9])) if (between > 1e-9).any() else 1.0
    out = []
    for width in WIDTHS:
        values, vectors = np.linalg.eigh(np.exp(-between / (usual * width)))
        keep = values > 1e-5 * values[-1]
        turn = vectors[:, keep] / np.sqrt(values[keep])
        out.append(Kernel(landmarks, usual * width, turn, 1.0))  # rows of a Gaussian kernel have length one
    return out


def ridge(ground: Ground) -> Floats:
    return leave_one_out([linear_features(ground.inputs)], ground)


def _rbf(ground: Ground) -> Floats:
    found = [
        Features(len(ground.inputs), lambda rows, k=kernel: k(ground.inputs[rows]))  # type: ignore[misc]
        for kernel in kernels(ground.inputs, ground.seed)
    ]
    return _centred(leave_one_out(found, ground))


def _centred(answers: Floats) -> Floats:
    return np.asarray(CENTRED_SCALE * (answers - answers.mean(axis=1, keepdims=True)))


@dataclass(frozen=True)
class Solved:
    """A ridge regression for every penalty at once: eigenvalues of the Gram matrix, and labels in its basis."""

    features: Features
    values: Floats
    vectors: Floats
    labels: Floats  # (directions, C)

    @classmethod
    def of(cls, features: Features, ground: Ground) -> Solved:
        gram, moment, onehot = None, None, ground.onehot()
        for block, rows in features.blocks():
            known = rows[ground.labelled[block]]
            one, other = known.T @ known, rows.T @ onehot[block]
            gram = one if gram is None else gram + one
            moment = other if moment is None else moment + other
        assert gram is not None
        assert moment is not None
        values, vectors = np.linalg.eigh(gram)
        keep = values > 1e-6 * values[-1]  # rounding in tiny directions would carry a row's own label
        values, vectors = values[keep], vectors[:, keep]
        return cls(features, values, vectors, vectors.T @ moment)

    def penalties(self) -> Floats:
        return np.asarray(PENALTIES * self.values.mean())

    def weights(self, penalty: float) -> Floats:
        """(columns, C)"""
        return np.asarray(self.vectors @ (self.labels / (self.values + penalty)[:, None]))

    def answers(self, rows: Floats, penalties: Floats) -> list[tuple[Floats, Floats]]:
        """For every penalty the answers for some rows, and how much of each is the row itself."""
        turned = rows @ self.vectors
        squared = turned**2
        return [
            ((turned / (self.values + penalty)) @ self.labels, squared @ (1 / (self.values + penalty)))
            for penalty in penalties
        ]


def leave_one_out(choices: list[Features], ground: Ground) -> Floats:
    """Exact answers without the row and its copies, for the features and penalty with the smallest error."""
    judged = _judged(ground)
    best: tuple[float, Solved, float] | None = None
    for features in choices:
        solved = Solved.of(features, ground)
        part = features.rows(judged)
        for penalty, (answers, own) in zip(solved.penalties(), solved.answers(part, solved.penalties()), strict=True):
            labels = _labels_at(ground, judged)
            error = float((((answers - own[:, None] * labels) / _left(own) - labels) ** 2).mean())
            if best is None or error < best[0]:
                best = (error, solved, float(penalty))
    assert best is not None
    return _without_own(best[1], best[2], ground)


def _left(own: Floats, count: Floats | float = 1.0) -> Floats:
    return np.asarray(np.maximum(1 - count * own, LEAST_LEFT))[:, None]


def _judged(ground: Ground) -> Codes:
    labelled = np.flatnonzero(ground.labelled)
    if len(labelled) <= JUDGED:
        return labelled
    return np.sort(np.random.default_rng(0).permutation(labelled)[:JUDGED])


def _labels_at(ground: Ground, rows: Codes) -> Floats:
    out = np.zeros((len(rows), ground.n_classes))
    out[np.arange(len(rows)), ground.given[rows]] = 1
    return out


def _without_own(solved: Solved, penalty: float, ground: Ground) -> Floats:
    """Of g copies with leverage h and residuals e, the answer without all of them is f - h / (1 - g h) sum e."""
    n = len(ground.given)
    answers, own = np.empty((n, ground.n_classes)), np.empty(n)
    for block, rows in solved.features.blocks():
        answers[block], own[block] = solved.answers(rows, np.array([penalty]))[0]
    residual = np.where(ground.labelled[:, None], ground.onehot() - answers, 0.0)
    count = ground.labelled.astype(float)
    if ground.has_copies:
        count, residual = _sum_by(ground.groups, count), _sum_by(ground.groups, residual)
    return np.asarray(answers - own[:, None] / _left(own, count) * residual)


def _sum_by(groups: Groups, values: Floats) -> Floats:
    totals = np.zeros((int(groups.max()) + 1, *values.shape[1:]))
    np.add.at(totals, groups, values)
    return np.asarray(totals[groups])


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

    found = out_of_fold(lambda: LogisticRegression(C=0.03, max_iter=100), ground.inputs, ground)
    return smoothed_log(found, ground.shares, SMOOTHING["logistic"])


def boosting(ground: Ground) -> Floats:
    from sklearn.ensemble import HistGradientBoostingClassifier

    seed = ground.seed % 2**32
    found = out_of_fold(
        lambda: HistGradientBoostingClassifier(max_iter=60, early_stopping=False, random_state=seed), ground.raw, ground
    )
    return smoothed_log(found, ground.shares, SMOOTHING["boosting"])


def trees(ground: Ground, sizes: Sizes) -> Floats:
    """Out of bag; rows beyond those the trees learn from are judged by all trees. With copies: out of fold."""
    labelled = np.flatnonzero(ground.labelled)
    if len(labelled) > sizes.tree_rows:
        labelled = np.sort(np.random.default_rng(ground.seed).permutation(labelled)[: sizes.tree_rows])
    make = _tree_maker(ground, sizes)
    if ground.has_copies:
        return smoothed_log(
            out_of_fold(lambda: make(bootstrap=False), ground.raw, ground, labelled),
            ground.shares,
            SMOOTHING["trees"],
        )
    forest = make(bootstrap=True, oob_score=True).fit(ground.raw[labelled], ground.given[labelled])
    found = np.zeros((len(ground.given), ground.n_classes))
    found[np.ix_(labelled, forest.classes_)] = np.nan_to_num(forest.oob_decision_function_)
    others = np.setdiff1d(np.arange(len(found)), labelled)
    if len(others):
        found[np.ix_(others, forest.classes_)] = forest.predict_proba(ground.raw[others])
    return smoothed_log(found, ground.shares, SMOOTHING["trees"])


def _tree_maker(ground: Ground, sizes: Sizes) -> Callable[..., Any]:
    from sklearn.ensemble import ExtraTreesClassifier

    number = 200
    most = int(sizes.leaf_entries / (number * ground.n_classes))
    limit = {} if most > len(ground.given) else {"max_leaf_nodes": max(most, 16)}

    def make(**options: Any) -> Any:
        return ExtraTreesClassifier(number, min_samples_leaf=2, random_state=ground.seed % 2**32, **limit, **options)

    return make


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

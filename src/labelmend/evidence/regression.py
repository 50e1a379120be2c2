"""Ridge regression on one-hot labels, with or without a kernel, and its exact answers without a row's own label.

The answer for row i of a regression that was fitted without it is f_i - h_i e_i / (1 - h_i), where h_i is how much of
f_i is the row itself and e_i = y_i - f_i: one fit gives all of them. A Gaussian kernel is a regression on its values at
some landmarks. Penalty and width are those with the smallest error of these answers.

Knows inputs and labels by number, -1 where there is none; does not know what the answers are for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from labelmend.evidence.preparation import Groups

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

PENALTIES = 10.0 ** np.arange(-2, 3.1, 0.5)
WIDTHS = (0.3, 1.0)  # of the kernel, as multiples of the median squared distance
LANDMARKS, FEW_LANDMARKS = 800, 200
CENTRED_SCALE = 5.0  # of centred regression answers, which lie between -1 and 1
LEAST_LEFT = 0.02  # of a row's own leverage: beyond, the other rows hardly determine it
BLOCK = 4096  # rows whose features are held at once
JUDGED = 5_000  # rows on which penalties and widths are compared


@dataclass(frozen=True)
class Taught:
    """The labels a regression learns."""

    given: Codes  # -1: none
    n_classes: int
    groups: Groups  # copies share one

    @cached_property
    def counts(self) -> Floats:
        """(n,) 1 where a row teaches, 0 where it has no label."""
        return (self.given >= 0).astype(float)

    def onehot(self, rows: slice | Codes) -> Floats:
        given = self.given[rows]
        out = np.zeros((len(given), self.n_classes))
        labelled = np.flatnonzero(given >= 0)
        out[labelled, given[labelled]] = 1
        return out

    def with_copies(self, rows: slice | Codes) -> tuple[Floats, Floats]:
        """How often some rows and their copies teach together, in all and (rows, C) of each class."""
        if self.groups.max() + 1 == len(self.groups):
            return self.counts[rows], self.counts[rows, None] * self.onehot(rows)
        labels = _sum_by(self.groups, self.counts[:, None] * self.onehot(slice(None)))
        return _sum_by(self.groups, self.counts)[rows], labels[rows]

    def judged(self) -> Codes:
        """Labelled rows, at most JUDGED."""
        labelled = np.flatnonzero(self.counts > 0)
        if len(labelled) <= JUDGED:
            return labelled
        return np.sort(np.random.default_rng(0).permutation(labelled)[:JUDGED])


@dataclass(frozen=True)
class Features:
    """Rows of features by blocks, so that wide ones need not be held for all rows."""

    n: int
    rows: Callable[[slice | Codes], Floats]

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        for first in range(0, self.n, BLOCK):
            block = slice(first, min(first + BLOCK, self.n))
            yield block, self.rows(block)


@dataclass(frozen=True)
class Linear:
    """The inputs and a constant."""

    level: float

    @classmethod
    def of(cls, inputs: Floats) -> Linear:
        """The constant is as long as a usual row, so that the penalty hardly reaches it."""
        return cls(float(np.sqrt((inputs**2).sum(axis=1).mean())))

    def __call__(self, inputs: Floats) -> Floats:
        return with_constant(inputs, self.level)


@dataclass(frozen=True)
class Kernel:
    """exp(-squared distance / width) to some landmarks, turned so that inner products are those of the kernel."""

    landmarks: Floats
    width: float
    turn: Floats
    level: float

    def __call__(self, inputs: Floats) -> Floats:
        return with_constant(np.exp(-squared_distances(inputs, self.landmarks) / self.width) @ self.turn, self.level)


def with_constant(inputs: Floats, level: float) -> Floats:
    return np.hstack([inputs, np.full((len(inputs), 1), level)])


def squared_distances(rows: Floats, others: Floats) -> Floats:
    found = (rows**2).sum(axis=1)[:, None] + (others**2).sum(axis=1)[None] - 2 * rows @ others.T
    return np.asarray(np.maximum(found, 0))


def kernels(inputs: Floats, seed: int, most: int = LANDMARKS, widths: Sequence[float] = WIDTHS) -> list[Kernel]:
    chosen = np.random.default_rng(seed).permutation(len(inputs))[:most]
    landmarks = inputs[chosen]
    between = squared_distances(landmarks, landmarks)
    usual = float(np.median(between[between > 1e-9])) if (between > 1e-9).any() else 1.0
    out = []
    for width in widths:
        values, vectors = np.linalg.eigh(np.exp(-between / (usual * width)))
        keep = values > 1e-5 * values[-1]
        turn = vectors[:, keep] / np.sqrt(values[keep])
        out.append(Kernel(landmarks, usual * width, turn, 1.0))  # rows of a Gaussian kernel have length one
    return out


def fit_kernel(inputs: Floats, taught: Taught, seed: int, most: int = LANDMARKS) -> Regression:
    """The width is chosen with few landmarks, which is nearly as good and takes little more than half the time."""
    tried = kernels(inputs, seed, FEW_LANDMARKS)
    best = fit_regression(inputs, taught, tried)
    if len(inputs) <= FEW_LANDMARKS:
        return best
    width = next(width for width, kernel in zip(WIDTHS, tried, strict=True) if kernel is best.basis)
    return fit_regression(inputs, taught, kernels(inputs, seed, most, [width]))


@dataclass(frozen=True)
class Solved:
    """A ridge regression for every penalty at once: eigenvalues of the Gram matrix, and labels in its basis."""

    features: Features
    values: Floats
    vectors: Floats
    labels: Floats  # (directions, C)

    @classmethod
    def of(cls, features: Features, taught: Taught) -> Solved:
        gram, moment = None, None
        for block, rows in features.blocks():
            known = rows * taught.counts[block, None]
            one, other = known.T @ rows, known.T @ taught.onehot(block)
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
        """For every penalty the answers for some rows, and how much of each is the row itself, counted once."""
        turned = rows @ self.vectors
        squared = turned**2
        return [
            ((turned / (self.values + penalty)) @ self.labels, squared @ (1 / (self.values + penalty)))
            for penalty in penalties
        ]


Basis = Linear | Kernel


@dataclass(frozen=True)
class Regression:
    """The regression whose answers without the row itself have the smallest error."""

    basis: Basis
    solved: Solved
    penalty: float

    @property
    def weights(self) -> Floats:
        """(columns of the basis, C): what judges any row."""
        return self.solved.weights(self.penalty)

    def __call__(self, inputs: Floats) -> Floats:
        return np.asarray(self.basis(inputs) @ self.weights)

    def without_own(self, taught: Taught) -> Floats:
        """(n, C). Of g copies with leverage h and labels y, the answer without them is (f - h sum y) / (1 - g h).

        No label of theirs is left in f - h sum y, also where the divisor is bounded.
        """
        n = self.solved.features.n
        answers, own = np.empty((n, taught.n_classes)), np.empty(n)
        for block, rows in self.solved.features.blocks():
            answers[block], own[block] = self.solved.answers(rows, np.array([self.penalty]))[0]
        count, labels = taught.with_copies(slice(None))
        return np.asarray((answers - own[:, None] * labels) / _left(own, count))


def fit_regression(inputs: Floats, taught: Taught, bases: Sequence[Basis]) -> Regression:
    """With the basis and the penalty with the smallest error of the answers without the row and its copies."""
    judged = taught.judged()
    labels, (count, taken_out) = taught.onehot(judged), taught.with_copies(judged)
    best: tuple[float, Regression] | None = None
    for basis in bases:
        features = Features(len(inputs), lambda rows, basis=basis: basis(inputs[rows]))  # type: ignore[misc]
        solved = Solved.of(features, taught)
        found = solved.answers(features.rows(judged), solved.penalties())
        for penalty, (answers, own) in zip(solved.penalties(), found, strict=True):
            errors = ((answers - own[:, None] * taken_out) / _left(own, count) - labels) ** 2
            error = float(np.average(errors.mean(axis=1), weights=taught.counts[judged]))
            if best is None or error < best[0]:
                best = (error, Regression(basis, solved, float(penalty)))
    assert best is not None
    return best[1]


def centred(answers: Floats) -> Floats:
    return np.asarray(CENTRED_SCALE * (answers - answers.mean(axis=1, keepdims=True)))


def _left(own: Floats, count: Floats) -> Floats:
    return np.asarray(np.maximum(1 - count * own, LEAST_LEFT))[:, None]


def _sum_by(groups: Groups, values: Floats) -> Floats:
    totals = np.zeros((int(groups.max()) + 1, *values.shape[1:]))
    np.add.at(totals, groups, values)
    return np.asarray(totals[groups])

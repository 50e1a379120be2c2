"""Features as the members of the pool see them, by one rule for these rows and new ones; and which rows are copies.

Every column is brought to a normal shape by its ranks and to unit variance, so that units, skew and heavy tails do not
matter; more than WIDE columns are projected on their leading principal components. Trees see the columns as they are.
Learned once and kept as knots, so that a row of tomorrow goes the way of the rows of today.

Knows a dense matrix; does not know labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

Matrix = NDArray[np.float64]
Groups = NDArray[np.int64]

WIDE = 256  # columns above which principal components take their place
KNOTS = 512  # of a column with more distinct values than that
FITTED = 20_000  # rows from which components are learned at most
ROUNDED = 1e-300  # the logarithm of nothing


@dataclass(frozen=True)
class Preparation:
    """How raw columns become inputs. Columns that never vary are left out."""

    columns: NDArray[np.int64]  # of the raw matrix, those that vary
    starts: NDArray[np.int64]  # knots of column j are values[starts[j] : starts[j + 1]]
    values: NDArray[np.float64]  # ascending within a column
    scores: NDArray[np.float64]  # the normal score of each, centred and scaled
    components: NDArray[np.float64] | None  # (columns, WIDE)

    def __call__(self, matrix: Any) -> Matrix:
        raw = dense(matrix)
        out = np.empty((len(raw), len(self.columns)))
        for place, column in enumerate(self.columns):
            knots = slice(self.starts[place], self.starts[place + 1])
            out[:, place] = np.interp(raw[:, column], self.values[knots], self.scores[knots])
        return out if self.components is None else np.asarray(out @ self.components)


def dense(matrix: Any) -> NDArray[Any]:
    return np.asarray(matrix.toarray() if scipy.sparse.issparse(matrix) else matrix)


def seen_columns(matrix: Any, projection: NDArray[np.float32] | None) -> NDArray[Any]:
    """Dense columns that the preparation is learned on and trees see; wide sparse rows are projected."""
    return dense(matrix if projection is None else matrix @ projection)


def fit_preparation(matrix: NDArray[Any]) -> Preparation:
    columns = np.flatnonzero(matrix.max(axis=0) > matrix.min(axis=0))
    values, scores, starts = [], [], [0]
    for column in columns:
        at, score = _knots(matrix[:, column].astype(np.float64))
        values.append(at)
        scores.append(score)
        starts.append(starts[-1] + len(at))
    plain = Preparation(columns, np.array(starts), np.concatenate(values), np.concatenate(scores), None)
    if len(columns) <= WIDE:
        return plain
    return replace(plain, components=_components(plain(matrix[_some(len(matrix))])))


def _knots(column: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values and the normal scores of their mean ranks; of many distinct values those at even steps of the score."""
    n = len(column)
    values, counts = np.unique(column, return_counts=True)
    ranks = np.cumsum(counts) - counts / 2
    scores = ndtri(ranks / n)
    mean = (scores * counts).sum() / n
    spread = np.sqrt(((scores - mean) ** 2 * counts).sum() / n)
    scores = (scores - mean) / max(spread, 1e-12)
    if len(values) > KNOTS:
        even = ndtr(np.linspace(ndtri(0.5 / n), ndtri(1 - 0.5 / n), KNOTS))
        places = np.unique(np.searchsorted(ranks / n, even).clip(0, len(values) - 1))
        places = np.union1d(places, [0, len(values) - 1])
        values, scores = values[places], scores[places]
    return values, scores


def _components(prepared: Matrix) -> Matrix:
    from sklearn.utils.extmath import randomized_svd

    # The columns are centred already. A fixed seed: the same data always give the same inputs.
    _, _, directions = randomized_svd(prepared, min(WIDE, len(prepared) - 1), random_state=0)
    return np.ascontiguousarray(directions.T)


def _some(n: int) -> NDArray[np.int64]:
    """At most FITTED rows, in no pattern that their order may have."""
    if n <= FITTED:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).permutation(n)[:FITTED])


def groups_of_copies(matrix: NDArray[Any]) -> Groups:
    """(n,) the group of every row; rows that are copies of one another share one.

    Copies must not judge each other: each carries the other's label. But in a table of few distinct rows identical rows
    are different people, who do judge each other. So identical rows count as copies where coincidence is improbable.
    """
    n = len(matrix)
    alone = np.arange(n)
    rows = np.ascontiguousarray(matrix) + 0.0  # minus zero is zero
    as_bytes = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first, group = np.unique(as_bytes, return_index=True, return_inverse=True)
    if len(first) == n or not _improbable(rows, n):
        return alone
    return np.asarray(group.ravel(), dtype=np.int64)


def _improbable(rows: NDArray[Any], n: int) -> bool:
    """The chance that two rows share all values, column by column, times the number of pairs, is below one."""
    log_chance = 0.0
    for column in rows.T:
        _, counts = np.unique(column, return_counts=True)
        log_chance += np.log(max(float(((counts / n) ** 2).sum()), ROUNDED))
    return bool(log_chance + 2 * np.log(n) < 0)


def deal_into_folds(groups: Groups, n_folds: int, seed: int) -> NDArray[np.int64]:
    """(n,) the fold of every row, drawn without looking at labels; copies share one."""
    n_groups = int(groups.max()) + 1 if len(groups) else 0
    order = np.random.default_rng(seed).permutation(n_groups)
    fold_of_group = np.empty(n_groups, dtype=np.int64)
    fold_of_group[order] = np.arange(n_groups) % n_folds
    return np.asarray(fold_of_group[groups])

"""Features as the members of the pool see them: one rule, learned on the data, the same for new rows.

Every column is brought to a normal shape by its ranks and to unit variance, so that units, skew and heavy tails do not
matter; more than WIDE columns are projected on their leading principal components. Trees see the columns as they are.
Learned once and kept as knots, so that a row of tomorrow goes the way of the rows of today.

Knows a dense matrix; does not know labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

Matrix = NDArray[np.float64]

WIDE = 256  # columns above which principal components take their place
KNOTS = 512  # of a column with more distinct values than that
FITTED = 20_000  # rows from which components are learned at most
NAMED = 10  # columns that are listed by name


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

    @property
    def n_outputs(self) -> int:
        return len(self.columns) if self.components is None else int(self.components.shape[1])


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
    return Preparation(
        columns, plain.starts, plain.values, plain.scores, _components(plain(matrix[_some(len(matrix))]))
    )


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


def odd_columns(matrix: NDArray[Any], names: list[str] | None = None) -> dict[str, list[str]]:
    """Columns that a person should know of, by name or position: constant ones, copies of another, row counters."""
    called = [str(place) for place in range(matrix.shape[1])] if names is None else names
    constant = matrix.max(axis=0) == matrix.min(axis=0)
    found: dict[str, list[str]] = {"constant": [], "copies": [], "counters": []}
    seen: dict[bytes, int] = {}
    for place in range(matrix.shape[1]):
        column = np.ascontiguousarray(matrix[:, place])
        if constant[place]:
            found["constant"].append(called[place])
        elif (first := seen.setdefault((column + 0.0).tobytes(), place)) != place:
            found["copies"].append(f"{called[place]} (of {called[first]})")
        elif _counts(column):
            found["counters"].append(called[place])
    return {kind: columns for kind, columns in found.items() if columns}


def _counts(column: NDArray[Any]) -> bool:
    """Whether it goes on by the same step from row to row, as a row number does."""
    steps = np.diff(column.astype(np.float64))
    return len(steps) > 2 and steps[0] != 0 and bool((steps == steps[0]).all())

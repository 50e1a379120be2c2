"""Samples on a plane, near ones near: a picture of a space of features for people to look at.

A layout of the nearest-neighbour graph by pulls along its edges and pushes between random pairs, after UMAP (McInnes,
Healy, Melville 2018) with the forces of a = b = 1. Ours, because it must be quick beside the run it shows, and the same
for the same seed: every step moves all points at once, with sums in a fixed order.
Features of 5,000 rows take 0.6 s, 500 steps of scikit-learn's t-SNE 13 s (docs/experiments.md).

Knows rows of features; does not know labels.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

Floats = NDArray[np.float64]

NEIGHBORS = 12
DIRECTIONS = 40  # principal ones that are kept: distances along the others are mostly chance
STEPS = 200
PUSHES = 6  # random others that push a point in a step
PUSH_AS_MANY = 5.0  # edges' worth of push for each edge of pull
SPAN = 10.0  # of the first positions
FARTHEST = 4.0  # that a point moves in a step of full size
BLOCK = 1024  # rows compared with all others at a time


def lay_out(rows: NDArray[np.floating], seed: int) -> NDArray[np.float32]:
    """Positions (n, 2) in a square from 0 to 1."""
    if len(rows) < 3:
        return np.linspace(0, 1, max(2 * len(rows), 1), dtype=np.float32)[: 2 * len(rows)].reshape(-1, 2)
    reduced = principal(rows)
    start = SPAN * _into_square(_two_columns(reduced))
    generator = np.random.default_rng(seed)
    start += generator.normal(scale=1e-2, size=start.shape)  # identical rows must be able to part
    positions = _settle(start, neighbor_graph(reduced, min(NEIGHBORS, len(rows) - 1)), generator)
    return _into_square(positions).astype(np.float32)


def principal(rows: NDArray[np.floating]) -> Floats:
    """The rows in their own directions of greatest spread, by angle: lengths of features say little."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = rows.astype(np.float64) / np.where(lengths > 0, lengths, 1)
    unit -= unit.mean(axis=0)
    _, directions = np.linalg.eigh(unit.T @ unit)  # ascending
    directions = directions[:, ::-1][:, :DIRECTIONS]
    signs = np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(directions.shape[1])])
    # Sums of another order, with another number of threads, differ far behind this digit: the map must not.
    reduced: Floats = (unit @ (directions * signs)).round(5)
    return reduced


def neighbor_graph(rows: Floats, k: int) -> scipy.sparse.csr_matrix:
    """Weights 1/2 and 1: each of two samples is among the k nearest of the other, or of one of them only."""
    squares = (rows**2).sum(axis=1)
    nearest = np.empty((len(rows), k), dtype=np.int64)
    for begin in range(0, len(rows), BLOCK):
        block = slice(begin, begin + BLOCK)
        distances = squares - 2 * rows[block] @ rows.T
        distances[np.arange(len(distances)), np.arange(begin, begin + len(distances))] = np.inf
        nearest[block] = np.argpartition(distances, k - 1, axis=1)[:, :k]
    ends = np.arange(0, k * len(rows) + 1, k)
    graph = scipy.sparse.csr_matrix((np.ones(nearest.size), nearest.ravel(), ends), shape=(len(rows), len(rows)))
    both = ((graph + graph.T) / 2).tocsr()
    both.sort_indices()
    return both


def _settle(positions: Floats, graph: scipy.sparse.csr_matrix, generator: np.random.Generator) -> Floats:
    """Pulls and pushes until the points have found their places; those are complex numbers, one array for a plane."""
    points = positions[:, 0] + 1j * positions[:, 1]
    n, everyone = len(points), np.arange(len(points))
    sources, targets = np.repeat(everyone, np.diff(graph.indptr)), graph.indices
    begins = graph.indptr[:-1]
    degree = np.add.reduceat(graph.data, begins)  # every sample has neighbours
    for step in range(STEPS):
        gaps = points[targets] - points[sources]
        pull = np.add.reduceat(gaps * (2 * graph.data / (1 + _squares(gaps))), begins)
        others = (everyone + generator.integers(1, n, size=(PUSHES, 1))) % n
        gaps = points - points[others]
        squares = _squares(gaps)
        push = (gaps * (2 / ((1e-2 + squares) * (1 + squares)))).mean(axis=0)
        move = pull / degree + PUSH_AS_MANY * push
        cut = np.clip(move.real, -FARTHEST, FARTHEST) + 1j * np.clip(move.imag, -FARTHEST, FARTHEST)
        points = points + (1 - step / STEPS) * cut
    return np.column_stack([points.real, points.imag])


def _squares(gaps: NDArray[np.complex128]) -> Floats:
    squares: Floats = gaps.real**2 + gaps.imag**2
    return squares


def _two_columns(rows: Floats) -> Floats:
    return rows[:, :2] if rows.shape[1] > 1 else np.column_stack([rows[:, 0], np.zeros(len(rows))])


def _into_square(positions: Floats) -> Floats:
    """One scale for both axes, in the middle."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    span = (high - low).max()
    square: Floats = (positions - (low + high) / 2) / (span if span > 0 else 1) + 0.5
    return square

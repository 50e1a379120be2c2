"""The map of a run: some of its samples on a plane, near ones near, as the classifier it hands over sees them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray

from labelmend.ensemble.fit import embed
from labelmend.ensemble.state import Problem, RoundState

Floats = NDArray[np.float64]

NEIGHBORS = 12
DIRECTIONS = 40  # principal ones that are kept: distances along the others are mostly chance
STEPS = 200
PUSHES = 6  # random others that push a point in a step
PUSH_AS_MANY = 5.0  # edges' worth of push for each edge of pull
SPAN = 10.0  # of the first positions
FARTHEST = 4.0  # that a point moves in a step of full size
BLOCK = 1024  # rows compared with all others at a time
MOST = 5_000  # samples on a map


@dataclass(frozen=True)
class SampleMap:
    """Some of the samples on a plane, near ones near."""

    indices: NDArray[np.int64]  # their positions among the samples, ascending
    positions: NDArray[np.float32]  # (n, 2), from 0 to 1


def lay_out(rows: NDArray[np.floating], seed: int) -> NDArray[np.float32]:
    """Positions (n, 2) in a square from 0 to 1."""
    if len(rows) < 3:
        return np.linspace(0, 1, max(2 * len(rows), 1), dtype=np.float32)[: 2 * len(rows)].reshape(-1, 2)
    reduced = principal(rows)
    start = SPAN * _into_square(reduced[:, :2] if reduced.shape[1] > 1 else np.pad(reduced, ((0, 0), (0, 1))))
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


def _into_square(positions: Floats) -> Floats:
    """One scale for both axes, in the middle."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    span = (high - low).max()
    square: Floats = (positions - (low + high) / 2) / (span if span > 0 else 1) + 0.5
    return square


def draw_map(
    state: RoundState, problem: Problem, labels: NDArray[np.int64], status: NDArray[np.int64], seed: int
) -> SampleMap:
    """Positions from the features of the deployed net. The same seed gives the same map."""
    indices = choose_samples(labels, status, MOST, np.random.default_rng(seed))
    chosen = torch.from_numpy(indices).to(problem.samples.device)
    features = embed(state.deployed_net, problem.samples, indices=chosen)[0]
    return SampleMap(indices, lay_out(features.float().cpu().numpy(), seed))


def choose_samples(
    labels: NDArray[np.int64], status: NDArray[np.int64], most: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """All samples; of more than `most`, as many of each status as the root of its size says, evenly over the classes.

    The root lets the few that were corrected or are doubtful be seen beside the many that were kept.
    """
    if len(labels) <= most:
        return np.arange(len(labels))
    kinds, sizes = np.unique(status, return_counts=True)
    parts = []
    for kind, places in zip(kinds, _places(sizes, most), strict=True):
        members = generator.permutation(np.flatnonzero(status == kind))
        by_class = members[np.argsort(labels[members], kind="stable")]
        parts.append(by_class[np.arange(places) * len(members) // max(places, 1)])
    return np.sort(np.concatenate(parts))


def _places(sizes: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """`most` dealt out by the roots of the sizes, but to nobody more than its size."""
    places = np.zeros_like(sizes)
    while (left := most - places.sum()) > 0:
        open_to = places < sizes
        shares = np.sqrt(sizes) * open_to
        more = np.floor(left * shares / shares.sum()).astype(np.int64)
        if not more.any():
            more[np.argmax(shares)] = 1
        places = np.minimum(places + more, sizes)
    return places

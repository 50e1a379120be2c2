"""How far apart a labelling's classes lie: how often near rows carry different labels, against chance.

Mixing = share of pairs (row, one of its nearest rows at a distance above 0) whose labels differ, over its mean for
random partitions with the same class sizes. 0: neighbours never differ; 1: as often as in a random partition. It proves
nothing, and is infinite, where a class vanished or where most neighbours are duplicates.

Knows a space and labels by number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

NEAREST = 10
PARTITIONS, DIRECTIONS, BALANCING = 6, 40, 60
APART = 1e-9  # distance from which two rows are different
DUPLICATES = 0.5  # share of neighbours at a distance above 0 below which mixing proves nothing
LOOKED_AT = 10_000  # rows on which spaces are compared and mixing is measured, at most
BEATEN = 0.005  # by which another space must meet the labels better than that of ranks
WIDEST = 256  # columns of a space


@dataclass(frozen=True)
class Space:
    """Some of the rows in the space where their neighbours meet the given labels best."""

    rows: Codes  # positions among all rows
    points: Floats
    near: Codes  # (rows, NEAREST) places in `rows`, nearest first
    name: str

    @property
    def apart(self) -> NDArray[np.bool_]:
        return np.asarray(((self.points[self.near] - self.points[:, None]) ** 2).sum(axis=2) > APART**2)


def best_space(raw: NDArray[Any], prepared: Floats, given: Codes, seed: int = 0) -> Space:
    """Of ranked, standardised, raw and unit-length columns: embeddings, for one, must not be standardised."""
    from sklearn.neighbors import NearestNeighbors

    rows = np.flatnonzero(given >= 0)
    if len(rows) > LOOKED_AT:
        rows = np.sort(np.random.default_rng(seed).permutation(rows)[:LOOKED_AT])
    best: tuple[float, Space] | None = None
    for name, points in _spaces(raw[rows].astype(np.float64), prepared[rows]):
        search = NearestNeighbors(n_neighbors=min(NEAREST, len(rows) - 1)).fit(points)
        near = search.kneighbors(return_distance=False)
        right = _vote_meets(given[rows], near)
        if best is None or right > best[0] + BEATEN:
            best = right, Space(rows, points, near, name)
    assert best is not None
    return best[1]


def _spaces(raw: Floats, prepared: Floats) -> list[tuple[str, Floats]]:
    raw = raw[:, raw.std(axis=0) > 0]
    centred = raw - raw.mean(axis=0)
    lengths = np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), APART)
    spaces = [("standardised", centred / raw.std(axis=0)), ("raw", centred), ("unit length", centred / lengths)]
    return [("ranks", prepared), *((name, _narrow(points)) for name, points in spaces)]


def _narrow(points: Floats) -> Floats:
    if points.shape[1] <= WIDEST:
        return points
    from sklearn.utils.extmath import randomized_svd

    centred = points - points.mean(axis=0)
    u, s, _ = randomized_svd(centred, min(WIDEST, len(points) - 1), random_state=0)
    return np.asarray(u * s)


def _vote_meets(given: Codes, near: Codes) -> float:
    """How often most neighbours carry the given label; of equally many the given one wins."""
    votes = np.zeros((len(given), int(given.max()) + 1))
    places = np.broadcast_to(np.arange(len(given))[:, None], near.shape)
    np.add.at(votes, (places, given[near]), 1.0)
    votes[np.arange(len(given)), given] += 1e-3
    return float((votes.argmax(axis=1) == given).mean())


def mixing(labels: Codes, given: Codes, space: Space, seed: int = 0) -> float:
    """Of a labelling of all rows, -1 where it names no class; `given` says which classes there are to lose."""
    named, apart = labels[space.rows], space.apart
    sizes = np.bincount(np.maximum(named, 0), minlength=int(given.max()) + 1).astype(float)
    classes = np.unique(given[space.rows])
    if (sizes[classes] == 0).any() or apart.mean() < DUPLICATES:
        return float("inf")
    rng = np.random.default_rng(seed)
    u, s, _ = np.linalg.svd(space.points - space.points.mean(axis=0), full_matrices=False)
    scores = (u * s)[:, :DIRECTIONS]
    partitions = (
        random_partition(scores @ rng.normal(size=(scores.shape[1], len(sizes))), sizes) for _ in range(PARTITIONS)
    )
    chance = float(np.mean([cut(found, space.near, apart) for found in partitions]))
    return cut(named, space.near, apart) / max(chance, 1e-6)


def cut(labels: Codes, near: Codes, apart: NDArray[np.bool_]) -> float:
    """Share of the pairs at a distance whose labels differ."""
    return float(((labels[near] != labels[:, None]) & apart).sum() / max(apart.sum(), 1))


def random_partition(scores: Floats, sizes: Floats) -> Codes:
    """argmax of linear scores, shifted until the classes have the sizes asked for."""
    n, n_classes = scores.shape
    scores = scores / (scores.std(axis=0) + 1e-12)
    shift = np.zeros(n_classes)
    for _ in range(BALANCING):
        have = np.bincount((scores + shift).argmax(axis=1), minlength=n_classes) / n
        shift += 0.5 * (np.log(sizes / n + 1e-3) - np.log(have + 1e-3))
    return np.asarray((scores + shift).argmax(axis=1))

"""Pool and ensemble joined: the ensemble proposes, members that have not seen a row's own label support it or not.

Two explanations compete for every label that looks wrong: the sample lies where classes overlap, or the label is an
error. The pool is safe on nearly any data and gives up where errors sit together. The paper's ensemble finds those, but
assumes that classes are smooth and apart; where they are not, it destroys good labels. In a mislabelled neighbourhood
the near-sighted members have swallowed the errors and the far-sighted ones, linear models and trees, have not; where a
class simply has several clusters these side with the given label. So their support tells the two apart.

    disputed   rows whose label the pool keeps and the ensemble changes
    support    of the disputed rows for which some members name one of the two labels: how often the ensemble's

Mixing = share of pairs (row, one of its nearest rows at a distance above 0) whose labels differ, over its mean for
random partitions with the same class sizes. 0: neighbours never differ; 1: as often as in a random partition. It proves
nothing, and is infinite, where a class vanished or where most neighbours are duplicates.

Knows labels by number and the pool's probabilities; does not know features. The measurements are in
docs/experiments.md; no limit is sensitive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.decision.pool import Pool
from labelmend.decision.verdict import APART, CANNOT_TELL, OVERLAPPING, Verdict
from labelmend.evidence.members import LINEAR, TREES

Floats = NDArray[np.float64]

NEAREST = 10
PARTITIONS, DIRECTIONS, BALANCING = 6, 40, 60
DISTINCT = 1e-9  # distance from which two rows are different
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
        return np.asarray(((self.points[self.near] - self.points[:, None]) ** 2).sum(axis=2) > DISTINCT**2)


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
    lengths = np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), DISTINCT)
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


Codes = NDArray[np.int64]
Mask = NDArray[np.bool_]

AUTO = "auto"
UNPREDICTABLE = 0.35  # overlap from which more than two classes cannot be told apart
FLAT = 0.35  # two classes: an interval of the noise rate that reaches it leaves open what is wrong
RECOGNISED = 0.05  # of a class's rows that p must name, else its labels stay
DISPUTED = 0.03  # share of the rows: votes contradict a few clean labels wherever classes touch
WELL_APART, STILL_APART = 0.25, 0.5  # mixing of the votes
LINEAR_SUPPORT, TREE_SUPPORT = 0.45, 1 / 3  # where classes are well apart; linear ones beyond the mixing
MORE_LINEAR, MORE_TREES = 0.65, 0.5  # where they are still apart


@dataclass(frozen=True)
class Proposals:
    """The ensemble's labels for all rows; -1: none."""

    labels: Codes
    weighed: Codes  # what is left of them once the graphs' evidence is weighed against how labels go wrong
    share: NDArray[np.float32]  # of the evidence, for `labels`
    mixing: float  # of `labels`
    least: float = DISPUTED  # share of the rows that must be disputed


@dataclass(frozen=True)
class Joined:
    labels: Codes
    adopted: Mask  # rows that took the ensemble's label
    left_alone: Mask  # rows whose label stays for want of evidence: the pool or the ensemble would change it
    verdict: Verdict
    pool_labels: Codes  # the pool's alone
    proposed: Codes  # the ensemble's
    agreed: Mask  # disputed rows that the weaker of the rules lets in


def join(pool: Pool, given: Codes, fixed: Mask, proposals: Proposals, assume: str) -> Joined:
    """Labels for all rows; those that are `fixed` keep theirs."""
    labelled, n_classes = given >= 0, pool.probs.shape[1]
    best = (pool.probs if assume == APART else pool.posterior).argmax(axis=1).astype(np.int64)
    best = np.where(fixed, given, best)
    base = best if assume == APART else keep_unrecognised(pool, given, best)
    proposed = np.where(proposals.labels >= 0, proposals.labels, base)
    disputed = labelled & ~fixed & (base == given) & (proposed != given)
    preferred = disputed & prefers(pool, proposed, given)
    agreed = preferred & (proposals.weighed == proposed)
    dispute = _Dispute(
        rows=disputed,
        many=int(disputed.sum()) > proposals.least * int(labelled.sum()),
        mixing=proposals.mixing,
        linear=support(pool, LINEAR, disputed, proposed, given),
        trees=support(pool, TREES, disputed, proposed, given),
    )
    if assume == AUTO and pool.overlap > UNPREDICTABLE and n_classes > 2:
        labels, adopted, classes = np.where(labelled, given, base), np.zeros_like(disputed), CANNOT_TELL
    else:
        adopted = dispute.let_in(agreed, assume)
        labels, classes = np.where(adopted, proposed, base), dispute.classes(pool, assume)
    if assume != APART:
        labels = np.where(fixed, given, keep_unrecognised(pool, given, labels))
        adopted = adopted & (labels == proposed)
    left_alone = labelled & ~fixed & ~adopted & ((labels != best) | preferred)
    low, high = pool.interval
    verdict = Verdict(
        classes=classes,
        assume=assume,
        n_classes=n_classes,
        labelled=int(labelled.sum()),
        overlap=pool.overlap,
        noise_low=low,
        noise_high=high,
        mixing=dispute.mixing,
        disputed=int(disputed.sum()),
        linear=dispute.linear,
        trees=dispute.trees,
        adopted=int(adopted.sum()),
        waiting=int(left_alone.sum()),
        members=pool.weights,
    )
    return Joined(labels, adopted, left_alone, verdict, base, proposed, agreed)


@dataclass(frozen=True)
class _Dispute:
    """Labels that the pool keeps and the ensemble would change, and how far members support the ensemble there."""

    rows: Mask
    many: bool  # enough of them to be worth a doubt
    mixing: float  # of the ensemble's labels
    linear: float
    trees: float

    @property
    def supported(self) -> bool:
        """Classes are well apart, and linear models and trees are with the ensemble."""
        return self.mixing < WELL_APART and self.linear > LINEAR_SUPPORT + self.mixing and self.trees > TREE_SUPPORT

    def let_in(self, agreed: Mask, assume: str) -> Mask:
        """Which disputed rows take the ensemble's label: all, those on which graphs and pool agree, or none."""
        if assume == APART:
            everywhere = self.mixing < STILL_APART and self.linear > LINEAR_SUPPORT and self.trees > TREE_SUPPORT
        else:
            everywhere = assume == AUTO and self.supported
        if self.many and everywhere:
            return self.rows
        somewhere = WELL_APART <= self.mixing < STILL_APART and self.linear > MORE_LINEAR and self.trees > MORE_TREES
        return agreed if self.many and assume == AUTO and somewhere else np.zeros_like(agreed)

    def classes(self, pool: Pool, assume: str) -> str:
        """Clusters of the inputs need not be classes: apart are those where little is disputed, or with support."""
        if assume != AUTO:
            return assume
        if pool.probs.shape[1] == 2 and pool.interval[1] >= FLAT:
            return CANNOT_TELL
        undisputed = self.mixing < WELL_APART and not self.many
        return APART if undisputed or self.supported else OVERLAPPING


def prefers(pool: Pool, proposed: Codes, given: Codes) -> Mask:
    """Where the pool, without the given label, holds the proposed label more probable than the given one."""
    rows = np.arange(len(given))
    return np.asarray(pool.probs[rows, proposed] > pool.probs[rows, np.maximum(given, 0)])


def keep_unrecognised(pool: Pool, given: Codes, labels: Codes) -> Codes:
    """No class is emptied that the pool cannot recognise.

    Useless features and a clean class of 6 % look exactly like 6 % errors. A class that p names for fewer than one in
    twenty of its given rows keeps its rows.
    """
    n_classes = pool.probs.shape[1]
    labelled = given >= 0
    named = np.bincount(pool.probs.argmax(axis=1)[labelled], minlength=n_classes)
    sizes = np.bincount(given[labelled], minlength=n_classes)
    unrecognised = labelled & (named < RECOGNISED * sizes)[np.maximum(given, 0)]
    return np.where(unrecognised, given, labels)


def support(pool: Pool, names: tuple[str, ...], rows: Mask, proposed: Codes, given: Codes) -> float:
    """Of the rows for which these members name one of the two labels: how often the proposed one."""
    named = [labels[rows] for name, labels in pool.member_labels.items() if name in names]
    for_it = sum(int((labels == proposed[rows]).sum()) for labels in named)
    against = sum(int((labels == given[rows]).sum()) for labels in named)
    return (for_it + 0.5) / (for_it + against + 1)

"""Pool and ensemble joined: the ensemble proposes, members that have not seen a row's own label support it or not.

Two explanations compete for every label that looks wrong: the sample lies where classes overlap, or the label is an
error. The pool is safe on nearly any data and gives up where errors sit together. The paper's ensemble finds those, but
assumes that classes are smooth and apart; where they are not, it destroys good labels. In a mislabelled neighbourhood
the near-sighted members have swallowed the errors and the far-sighted ones, linear models and trees, have not; where a
class simply has several clusters these side with the given label. So their support tells the two apart.

    disputed   rows whose label the pool keeps and the ensemble changes
    support    of the disputed rows for which some members name one of the two labels: how often the ensemble's

Knows labels by number and the pool's probabilities; does not know features. The measurements are in
docs/experiments.md; no limit is sensitive.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelmend.decision.pool import Pool
from labelmend.decision.verdict import APART, CANNOT_TELL, OVERLAPPING, Verdict
from labelmend.evidence.members import LINEAR, TREES

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

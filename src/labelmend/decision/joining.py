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

from dataclasses import dataclass, replace

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
    """What the ensemble says of every row; -1: nothing."""

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


def join(pool: Pool, given: Codes, fixed: Mask, proposals: Proposals | None, assume: str) -> Joined:
    """Labels for all rows; those that are `fixed` keep theirs. Without proposals the pool decides alone."""
    labelled = given >= 0
    best = (pool.probs if assume == APART else pool.posterior).argmax(axis=1).astype(np.int64)
    best = np.where(fixed, given, best)
    base = best if assume == APART else keep_unrecognised(pool, given, best)
    proposed = base if proposals is None else np.where(proposals.labels >= 0, proposals.labels, base)
    disputed = labelled & ~fixed & (base == given) & (proposed != given)
    preferred = disputed & prefers(pool, proposed, given)
    agreed = preferred if proposals is None else preferred & (proposals.weighed == proposed)
    facts = _facts(pool, given, proposals, proposed, disputed, assume)
    labels, adopted, classes = base, np.zeros_like(disputed), CANNOT_TELL
    if assume == AUTO and pool.overlap > UNPREDICTABLE and pool.posterior.shape[1] > 2:
        labels = np.where(labelled, given, base)
    else:
        least = DISPUTED if proposals is None else proposals.least
        adopted, classes = disputed & _let_in(facts, assume, agreed, least), _classes(facts, assume, least)
        labels = np.where(adopted, proposed, base)
    if assume != APART:
        labels = np.where(fixed, given, keep_unrecognised(pool, given, labels))
        adopted = adopted & (labels == proposed)
    left_alone = labelled & ~fixed & ~adopted & ((labels != best) | preferred)
    verdict = replace(facts, classes=classes, adopted=int(adopted.sum()), waiting=int(left_alone.sum()))
    return Joined(labels, adopted, left_alone, verdict, base, proposed, agreed)


def prefers(pool: Pool, proposed: Codes, given: Codes) -> Mask:
    """Where the pool's members, the given label unheard, hold the proposed label more probable than the given one."""
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
    said = [found[rows] for name, found in pool.member_labels.items() if name in names]
    for_it = sum(int((labels == proposed[rows]).sum()) for labels in said)
    against = sum(int((labels == given[rows]).sum()) for labels in said)
    return (for_it + 0.5) / (for_it + against + 1)


def _facts(
    pool: Pool, given: Codes, proposals: Proposals | None, proposed: Codes, disputed: Mask, assume: str
) -> Verdict:
    low, high = pool.interval
    labelled = given >= 0
    return Verdict(
        classes="",
        assume=assume,
        n_classes=pool.probs.shape[1],
        labelled=int(labelled.sum()),
        overlap=pool.overlap,
        noise_low=low,
        noise_high=high,
        mixing=None if proposals is None else proposals.mixing,
        disputed=int(disputed.sum()),
        linear=support(pool, LINEAR, disputed, proposed, given),
        trees=support(pool, TREES, disputed, proposed, given),
        adopted=0,
        waiting=0,
        members=pool.weights,
    )


def _let_in(facts: Verdict, assume: str, agreed: Mask, least: float) -> Mask:
    """Which disputed rows take the ensemble's label: all, those on which graphs and pool agree, or none."""
    everywhere, nowhere = np.ones_like(agreed), np.zeros_like(agreed)
    mixed, linear, trees = facts.mixing, facts.linear, facts.trees
    if mixed is None or assume == OVERLAPPING or facts.disputed <= least * facts.labelled:
        return nowhere
    if assume == APART:
        return everywhere if mixed < STILL_APART and linear > LINEAR_SUPPORT and trees > TREE_SUPPORT else nowhere
    if _supported(facts):
        return everywhere
    if WELL_APART <= mixed < STILL_APART and linear > MORE_LINEAR and trees > MORE_TREES:
        return agreed
    return nowhere


def _supported(facts: Verdict) -> bool:
    """Classes are well apart, and linear models and trees are with the ensemble."""
    mixed = facts.mixing
    if mixed is None or mixed >= WELL_APART:
        return False
    return facts.linear > LINEAR_SUPPORT + mixed and facts.trees > TREE_SUPPORT


def _classes(facts: Verdict, assume: str, least: float) -> str:
    """Clusters of the inputs need not be classes: they are apart where nobody disputes it, or members support it."""
    if assume != AUTO:
        return assume
    if facts.n_classes == 2 and facts.noise_high >= FLAT:
        return CANNOT_TELL
    undisputed = facts.mixing is not None and facts.mixing < WELL_APART and facts.disputed <= least * facts.labelled
    return APART if undisputed or _supported(facts) else OVERLAPPING

"""From a finished run to labels: proposals of the ensemble, probabilities of the pool, and both joined.

    vectors, preset default    pool of members + proposals of the ensemble, joined (`joining.py`)
    preset paper               every winning vote
    nets trained on pictures   graphs and deployed net together against the given labels (`posterior.py`)

Up to config.LARGE rows the ensemble proposes its votes. Above, cross-fitted nets judge every sample together with the
graphs (`ensemble_evidence.py`); they are members of the pool too.

Evidence is gathered once, labels can be decided from it again for other given labels: an audit takes its planted
errors back that way. Knows a problem and the state of its run; does not know files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from labelmend.config import Settings
from labelmend.decision.annotators import AnnotatedPosterior, annotated_posterior
from labelmend.decision.ensemble_evidence import (
    GRAPHS_ALONE,
    NETS,
    EnsembleEvidence,
    cross_fitted,
    deployed_evidence,
    fill_unlabelled,
    graph_evidence,
    label_posterior,
    together,
    vote_share,
)
from labelmend.decision.joining import Joined, Proposals, best_space, join, mixing
from labelmend.decision.pool import Pool, fit_pool
from labelmend.decision.posterior import FLOOR, Posterior, score_of, transition_of, weighted_product
from labelmend.decision.verdict import APART, Parts, Verdict
from labelmend.ensemble.state import Problem, RoundState
from labelmend.evidence.inputs import ALONE, Inputs, looks_in_sample


@dataclass(frozen=True)
class Decided:
    """What became of every label, and all that is known about it."""

    labels: Tensor  # (n,) -1: no label and no evidence
    probabilities: Tensor  # (n, C) of the true class; the decided one is the most probable, but where it is left alone
    predicted: Tensor  # (n, C) p(c | x) without the row's own label
    score: Tensor  # (n,) posterior probability of the given label: low is suspicious
    left_alone: Tensor  # rows whose label stays for want of evidence, for review
    transition: Tensor  # (C, C) P(given | true)
    noise_rate: float  # of all labels, the certain ones included
    interval: tuple[float, float] | None  # of the noise rate, 90 %
    verdict: Verdict | None = None
    weights: dict[str, float] | None = None  # of the members
    notes: tuple[str, ...] = ()  # for the user
    confusion: Tensor | None = None  # (annotators, C, C)
    parts: Parts | None = None  # None: no pool decided


Decide = Callable[[Problem], Decided]


def decider(
    state: RoundState,
    problem: Problem,
    inputs: Inputs | None,
    make_net: Callable[[], nn.Module],
    config: Settings,
) -> Decide:
    """Gathers evidence of a finished run; what comes back decides labels from it, for these given labels or others."""
    graphs, net = graph_evidence(state, problem), deployed_evidence(state, problem)
    graphs = fill_unlabelled(graphs, net, problem)
    if config.decide == "votes":
        return lambda asked: by_votes(state, graphs, asked)
    if inputs is None:
        together = weighted_product([graphs, net], [1.0, config.net_power])
        return lambda asked: by_posterior(together, asked)
    assert state.vote is not None
    share = vote_share(state)
    nets = None
    if config.held_out_passes:
        near = torch.from_numpy(inputs.neighbour_votes(problem.given_labels.cpu().numpy(), problem.n_classes))
        nets = cross_fitted(graphs, near.to(graphs.device), state, problem, make_net, config)
    evidence = EnsembleEvidence(graphs, state.vote.labels, share, nets)
    return lambda asked: by_pool(evidence, inputs, asked, config)


def by_posterior(predicted: Tensor, problem: Problem) -> Decided:
    """Of nets that were trained on pictures: they and the graphs decide, whatever else could be known."""
    return _of_posterior(label_posterior(predicted, problem), predicted, problem)


def by_votes(state: RoundState, graphs: Tensor, problem: Problem) -> Decided:
    """The paper takes every winning vote; its confidence in them is that of the graphs weighed against the labels."""
    assert state.vote is not None
    found = _of_posterior(label_posterior(graphs, problem), graphs, problem)
    return replace(found, labels=torch.where(state.vote.labels >= 0, state.vote.labels, found.labels))


def _of_posterior(found: Posterior, predicted: Tensor, problem: Problem) -> Decided:
    given = problem.labels_in_use
    return Decided(
        labels=found.probabilities.argmax(dim=1),
        probabilities=found.probabilities,
        predicted=predicted,
        score=score_of(found.probabilities, given),
        left_alone=torch.zeros_like(problem.trusted),
        transition=found.transition,
        noise_rate=found.noise_rate,
        interval=None,
        confusion=found.confusion if isinstance(found, AnnotatedPosterior) else None,
    )


@dataclass(frozen=True)
class Rows:
    """Labels of the problem as arrays."""

    learned: NDArray[np.int64]  # that members learn: given, or the consensus of the annotators
    in_use: NDArray[np.int64]  # that are kept or corrected
    fixed: NDArray[np.bool_]

    @classmethod
    def of(cls, problem: Problem) -> Rows:
        return cls(*(part.cpu().numpy() for part in (problem.given_labels, problem.labels_in_use, problem.trusted)))

    @property
    def in_question(self) -> float:
        """Share of the labels that are not certain."""
        labelled = self.in_use >= 0
        return float((~self.fixed)[labelled].mean()) if labelled.any() else 1.0


@dataclass(frozen=True)
class Noise:
    rate: float
    interval: tuple[float, float]
    transition: Tensor


def by_pool(evidence: EnsembleEvidence, inputs: Inputs, problem: Problem, config: Settings) -> Decided:
    device, rows, apart = problem.given_labels.device, Rows.of(problem), config.assume == APART
    pool, predicted, annotated = pool_of(evidence, inputs, rows, problem, apart)
    proposals = proposed(evidence, inputs, problem)
    joined = join(pool, rows.in_use, rows.fixed, proposals, config.assume)
    probabilities = joined_probabilities(pool, joined, proposals, rows, apart)
    sure = pool.probs if apart else pool.posterior
    noise = noise_of(pool, joined, rows, probabilities, inputs, apart, annotated)
    score = score_of(torch.from_numpy(sure).to(device), problem.labels_in_use)
    return Decided(
        labels=torch.from_numpy(joined.labels).to(device),
        probabilities=torch.from_numpy(probabilities).to(device),
        predicted=torch.from_numpy(predicted).to(device),
        score=score,
        left_alone=torch.from_numpy(joined.left_alone).to(device),
        transition=noise.transition.to(device),
        noise_rate=noise.rate,
        interval=noise.interval,
        verdict=replace(joined.verdict, note=ALONE) if inputs.alone else joined.verdict,
        weights=pool.weights,
        notes=tuple(seen_before(inputs, pool, rows.learned, rows.fixed)),
        confusion=None if annotated is None else annotated.confusion,
        parts=Parts(joined.pool_labels, pool.probs, joined.proposed, joined.agreed),
    )


def pool_of(
    evidence: EnsembleEvidence, inputs: Inputs, rows: Rows, problem: Problem, apart: bool
) -> tuple[Pool, NDArray[np.float32], AnnotatedPosterior | None]:
    """The pool, p(c | x) as the labels are decided by it, and what every annotator's word makes of it."""
    scores = inputs.scores(rows.learned, problem.n_classes)
    if evidence.nets is not None:
        scores[NETS] = evidence.nets.clamp(min=FLOOR).log().cpu().numpy()
    pool = fit_pool(scores, rows.learned, rows.fixed, inputs.known(rows.learned, problem.n_classes))
    if apart and evidence.nets is not None:
        # The pool explains the given labels; nets that learned the decided ones know more, if classes are apart.
        pool = replace(pool, probs=together(evidence.graphs, evidence.nets).float().cpu().numpy())
    if problem.opinions is None:
        return pool, pool.probs, None
    predicted = torch.from_numpy(pool.probs).to(problem.given_labels.device)
    annotated = annotated_posterior(predicted, problem.opinions, problem.given_labels, problem.trusted)
    found = annotated.probabilities.cpu().numpy()
    return replace(pool, posterior=found, probs=found if apart else pool.probs), pool.probs, annotated


def noise_of(
    pool: Pool,
    joined: Joined,
    rows: Rows,
    probabilities: NDArray[np.float32],
    inputs: Inputs,
    apart: bool,
    annotated: AnnotatedPosterior | None,
) -> Noise:
    """The pool's, with the labels that were adopted beside it, and those of classes that no label names."""
    n_classes, labelled = pool.probs.shape[1], rows.in_use >= 0
    if apart and annotated is None:
        rate, interval = contradicted(joined.labels, rows.in_use, pool.overlap)
        return Noise(rate, interval, counted(joined.labels, rows.learned, n_classes))
    unnamed = inputs.known(rows.learned, n_classes) & (
        np.bincount(rows.learned[rows.learned >= 0], minlength=n_classes) == 0
    )
    beyond = float(pool.posterior[labelled][:, unnamed].sum(axis=1).mean()) if unnamed.any() else 0.0
    expected = pool.posterior[np.arange(len(labelled)), np.maximum(rows.in_use, 0)]
    added = float((probabilities.max(axis=1) - 1 + expected)[joined.adopted].clip(min=0).sum()) / max(labelled.sum(), 1)
    low, high = (end * rows.in_question for end in pool.interval)
    rate, transition = pool.noise_rate * rows.in_question + beyond, torch.from_numpy(pool.transition)
    if annotated is not None:
        rate, transition = annotated.noise_rate, annotated.transition
    return Noise(min(rate + added, 1.0), (low, min(high + beyond + added, 1.0)), transition)


def contradicted(
    labels: NDArray[np.int64], given: NDArray[np.int64], overlap: float
) -> tuple[float, tuple[float, float]]:
    """Noise rate where the best guess is taken as right, and how far its own expected errors can move it."""
    labelled = given >= 0
    share = float((labels != given)[labelled].mean()) if labelled.any() else 0.0
    return share, (max(share - overlap, 0.0), share + overlap)


def counted(labels: NDArray[np.int64], given: NDArray[np.int64], n_classes: int) -> Tensor:
    """P(given | true) where the decided labels are taken as true."""
    rows = np.flatnonzero(given >= 0)
    counts = np.zeros((n_classes, n_classes))
    np.add.at(counts, (labels[rows], given[rows]), 1.0)
    return transition_of(torch.from_numpy(counts))


def seen_before(inputs: Inputs, pool: Pool, given: NDArray[np.int64], fixed: NDArray[np.bool_]) -> list[str]:
    """Which of the user's models look as if they had learned the labels they judge."""
    if not inputs.given_scores:
        return []
    theirs = {name: pool.member_labels[name] for name in inputs.given_scores}
    ours = {name: found for name, found in pool.member_labels.items() if name not in theirs}
    return looks_in_sample(theirs, {} if inputs.alone else ours, given, (given >= 0) & ~fixed)


def proposed(evidence: EnsembleEvidence, inputs: Inputs, problem: Problem) -> Proposals:
    """The ensemble's labels. Those of cross-fitted nets were weighed against the given labels before: none is rash."""
    learned = problem.given_labels.cpu().numpy()
    space = best_space(inputs.raw, inputs.prepared, learned)
    if evidence.nets is None:
        weighed = label_posterior(weighted_product([evidence.graphs], [GRAPHS_ALONE]), problem).probabilities
        votes, share = evidence.votes.cpu().numpy(), evidence.share.float().cpu().numpy()
        return Proposals(votes, weighed.argmax(dim=1).cpu().numpy(), share, mixing(votes, learned, space))
    surest = label_posterior(together(evidence.graphs, evidence.nets), problem).probabilities.max(dim=1)
    labels, share = surest.indices.cpu().numpy(), surest.values.float().cpu().numpy()
    return Proposals(labels, labels, share, mixing(labels, learned, space), least=0.0)


def joined_probabilities(
    pool: Pool, joined: Joined, proposals: Proposals, rows: Rows, apart: bool
) -> NDArray[np.float32]:
    """(n, C) the pool's; a label adopted from the ensemble has the share of evidence behind it."""
    out = (pool.probs if apart else pool.posterior).copy()
    adopted = np.flatnonzero(joined.adopted)
    at = np.arange(len(adopted)), joined.labels[adopted]
    confidence = adopted_confidence(joined.verdict, proposals.share[adopted])
    rest = out[adopted]
    rest[at] = 0
    rest *= ((1 - confidence) / np.maximum(rest.sum(axis=1), FLOOR))[:, None]
    rest[at] = confidence
    out[adopted] = rest
    certain = np.flatnonzero(rows.fixed)
    out[certain] = 0
    out[certain, rows.in_use[certain]] = 1
    return out


def adopted_confidence(verdict: Verdict, share: NDArray[np.float32]) -> NDArray[np.float32]:
    """How often such a label is right: by the support of the members, and this row's own share of the votes."""
    backed = (verdict.linear + verdict.trees) / 2
    return np.asarray(np.clip(0.5 + 0.5 * backed * share, 0.5, 0.99), dtype=np.float32)

"""From a finished run to labels: what the ensemble proposes, what the pool says, and both joined.

    vectors, preset default    pool of members + proposals of the ensemble, joined (`joining.py`)
    preset paper               every winning vote
    nets trained on pictures   graphs and deployed net together against the given labels (`decide.posterior`)

Up to LARGE rows the ensemble proposes its votes. Above, fresh nets that learned the decided labels of other folds
(`evidence/cross_fit.py`) judge every sample, together with the graphs; they are members of the pool too.

Evidence is gathered once, labels can be decided from it again for other given labels: an audit takes its planted
errors back that way. Knows a problem and the state of its run; does not know files.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from labelmend.config import RunConfig
from labelmend.decide import (
    FLOOR,
    Posterior,
    agreement,
    as_distribution,
    posterior,
    transition_of,
    weighted_product,
)
from labelmend.decision.joining import Joined, Proposals, join
from labelmend.decision.mixing import best_space, mixing
from labelmend.decision.pool import Pool, fit_pool
from labelmend.decision.verdict import APART, Verdict
from labelmend.embed import embed
from labelmend.evidence.cross_fit import held_out_probabilities
from labelmend.evidence.inputs import Inputs
from labelmend.evidence.pred_probs import ALONE, looks_in_sample
from labelmend.state import Problem, RoundState
from labelmend.trust.annotators import AnnotatedPosterior, annotated_posterior

BESIDE_NETS = 0.4  # power of the graphs beside cross-fitted nets, which learned most of what graphs know
GRAPHS_ALONE = 1.5  # and where they are weighed against the labels without nets
STANDARD_ERRORS = 2.0  # by which nets must meet the labels worse than graphs to be left out
NETS = "nets"


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


@dataclass(frozen=True)
class EnsembleEvidence:
    """What graphs, votes and nets say of every sample; none of it changes with the labels that are decided again."""

    graphs: Tensor  # (n, C) from other samples' labels
    votes: Tensor  # (n,) the winning vote
    share: Tensor  # (n,) of the suggestions, for it
    nets: Tensor | None  # (n, C) of cross-fitted nets


Decide = Callable[[Problem], Decided]


def decider(
    state: RoundState,
    problem: Problem,
    inputs: Inputs | None,
    make_net: Callable[[], nn.Module],
    config: RunConfig,
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
        nets = cross_fitted(graphs, state, problem, make_net, config)
    evidence = EnsembleEvidence(graphs, state.vote.labels, share, nets)
    return lambda asked: by_pool(evidence, inputs, asked, config)


def graph_evidence(state: RoundState, problem: Problem) -> Tensor:
    """p(c | x) of the graphs from other samples' labels.

    Propagation starts every class with the same mass, so what comes out is p(x | c) up to a factor: class sizes are put
    back.
    """
    given = problem.given_labels
    sizes = torch.bincount(given[given >= 0], minlength=problem.n_classes).to(state.held_out.dtype)
    return as_distribution(state.held_out * sizes if state.scaled_columns else state.held_out)


def deployed_evidence(state: RoundState, problem: Problem) -> Tensor:
    return embed(state.deployed_net, problem.samples)[1].softmax(dim=1)


def fill_unlabelled(graphs: Tensor, net: Tensor, problem: Problem) -> Tensor:
    """Where no graph reaches a sample without a label, the deployed net speaks; it never saw a label of it either."""
    flat = (graphs.amax(dim=1) - graphs.amin(dim=1) <= FLOOR) & (problem.given_labels < 0)
    return torch.where(flat.unsqueeze(1), net, graphs)


def vote_share(state: RoundState) -> Tensor:
    """(n,) share of the suggestions for the winning label."""
    assert state.vote is not None
    share, labels = state.vote.share, state.vote.labels.cpu()
    starts, columns, values = share.crow_indices(), share.col_indices(), share.values()
    rows = torch.repeat_interleave(torch.arange(len(labels)), starts.diff())
    out = torch.zeros(len(labels), dtype=values.dtype)
    won = columns == labels[rows]
    out[rows[won]] = values[won]
    return out.to(state.vote.labels.device)


def cross_fitted(
    graphs: Tensor, state: RoundState, problem: Problem, make_net: Callable[[], nn.Module], config: RunConfig
) -> Tensor | None:
    """(n, C) of fresh nets that learned the decided labels of other folds; each turn decides anew."""
    given = problem.given_labels
    found = best_labels(weighted_product([graphs], [GRAPHS_ALONE]), problem, config.assume)
    answers: list[Tensor] = []
    for number in range(config.examinations):
        decided = torch.where(problem.trusted, given, found)
        answer = examine(state, problem, make_net, config, decided, number)
        if clearly_worse(answer, graphs, given):
            break  # nets with too few samples a class
        answers.append(answer)
        found = best_labels(together(graphs, mean_of(answers)), problem, config.assume)
    return mean_of(answers) if answers else None


def best_labels(predicted: Tensor, problem: Problem, assume: str) -> Tensor:
    """(n,) where classes are apart the best guess is taken as it is, else it is weighed against the given label."""
    if assume == APART and problem.opinions is None:
        return predicted.argmax(dim=1)
    return label_posterior(predicted, problem).probabilities.argmax(dim=1)


def mean_of(answers: list[Tensor]) -> Tensor:
    """The first was of poorer labels, and is left out as soon as there is another."""
    return torch.stack(answers[1:] or answers).mean(dim=0)


def together(graphs: Tensor, nets: Tensor) -> Tensor:
    return weighted_product([nets, graphs], [1.0, BESIDE_NETS])


def clearly_worse(one: Tensor, other: Tensor, given: Tensor) -> bool:
    """Whether one meets the given labels, which neither saw, less often than the other, beyond chance."""
    labelled = given >= 0
    difference = ((one.argmax(dim=1) == given).double() - (other.argmax(dim=1) == given).double())[labelled]
    error = float(difference.std()) / math.sqrt(max(len(difference), 1)) if len(difference) > 1 else 0.0
    return agreement(one, given) < agreement(other, given) - STANDARD_ERRORS * error


def examine(
    state: RoundState,
    problem: Problem,
    make_net: Callable[[], nn.Module],
    config: RunConfig,
    labels: Tensor,
    number: int,
) -> Tensor:
    """What fresh nets that learned `labels` say about the samples they did not learn from.

    Every other turn mixes the samples: nets of both sorts together are right more often than those of either.
    """
    folds = torch.randint(config.held_out_folds, labels.shape, generator=state.generator, device=labels.device)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed + number)
        nets = [make_net().to(labels.device) for _ in range(config.held_out_folds)]
    # Twice the batch: as good, in half the time. But small classes need many small steps: of 1,000 classes of 20
    # samples, batches of 512 teach a net 22 %, of 128 87 %. The learning rate goes with the root of the batch.
    usual = config.batch_size or 1
    batch_size = min(2 * usual, max(64, round(6.4 * len(labels) / problem.n_classes)))
    return held_out_probabilities(
        nets,
        problem.samples,
        labels,
        folds,
        problem.n_classes,
        config.held_out_passes or 0,
        batch_size,
        4 * config.lr * math.sqrt(batch_size / (2 * usual)),
        config.momentum,
        config.weight_decay,
        state.generator,
        mixup=number % 2 == 0,
    )


def label_posterior(predicted: Tensor, problem: Problem) -> Posterior:
    """p(c | x) against the given labels, or against what every annotator said."""
    if problem.opinions is None:
        return posterior(predicted, problem.given_labels, problem.trusted)
    return annotated_posterior(predicted, problem.opinions, problem.given_labels, problem.trusted)


def by_posterior(predicted: Tensor, problem: Problem) -> Decided:
    """Of nets that were trained on pictures: they and the graphs decide, whatever else could be known."""
    return _of_posterior(label_posterior(predicted, problem), predicted, problem)


def by_votes(state: RoundState, graphs: Tensor, problem: Problem) -> Decided:
    """The paper takes every winning vote; how sure it is of them is what the graphs say against the labels."""
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


def score_of(probabilities: Tensor, given: Tensor) -> Tensor:
    """(n,) probability of the given label; 0 where there is none."""
    return probabilities.gather(1, given.clamp(min=0).unsqueeze(1)).squeeze(1).masked_fill(given < 0, 0.0)


def by_pool(evidence: EnsembleEvidence, inputs: Inputs, problem: Problem, config: RunConfig) -> Decided:
    device = problem.given_labels.device
    learned, in_use = (part.cpu().numpy() for part in (problem.given_labels, problem.labels_in_use))
    fixed = problem.trusted.cpu().numpy()
    scores = inputs.scores(learned, problem.n_classes)
    if evidence.nets is not None:
        scores[NETS] = evidence.nets.clamp(min=FLOOR).log().cpu().numpy()
    known = inputs.known(learned, problem.n_classes)
    pool = fit_pool(scores, learned, fixed, known)
    in_question = float((~fixed)[in_use >= 0].mean()) if (in_use >= 0).any() else 1.0
    unnamed = known & (np.bincount(learned[learned >= 0], minlength=problem.n_classes) == 0)
    beyond = float(pool.posterior[in_use >= 0][:, unnamed].sum(axis=1).mean()) if unnamed.any() else 0.0
    transition, noise_rate, confusion = torch.from_numpy(pool.transition), pool.noise_rate * in_question + beyond, None
    apart = config.assume == APART
    if apart and evidence.nets is not None:
        # The pool explains the given labels; nets that learned the decided ones know more, if classes are apart.
        pool = replace(pool, probs=together(evidence.graphs, evidence.nets).float().cpu().numpy())
    predicted = pool.probs
    if problem.opinions is not None:
        annotated = annotated_posterior(
            torch.from_numpy(predicted).to(device), problem.opinions, problem.given_labels, problem.trusted
        )
        found = annotated.probabilities.cpu().numpy()
        pool = replace(pool, posterior=found, probs=found if apart else predicted)
        transition, noise_rate, confusion = annotated.transition, annotated.noise_rate, annotated.confusion
    proposals = proposed(evidence, inputs, problem)
    joined = join(pool, in_use, fixed, proposals, config.assume)
    probabilities = joined_probabilities(pool, joined, proposals, in_use, fixed, config.assume)
    expected = (pool.probs if apart else pool.posterior)[np.arange(len(fixed)), np.maximum(in_use, 0)]
    added = float((probabilities.max(axis=1) - 1 + expected)[joined.adopted].clip(min=0).sum())
    added /= max(int((in_use >= 0).sum()), 1)
    low, high = pool.interval
    noise_rate, interval = noise_rate + added, (low * in_question, high * in_question + beyond + added)
    if apart and problem.opinions is None:
        noise_rate, interval = contradicted(joined.labels, in_use, pool.overlap)
        transition = counted(joined.labels, learned, problem.n_classes)
    return Decided(
        labels=torch.from_numpy(joined.labels).to(device),
        probabilities=torch.from_numpy(probabilities).to(device),
        predicted=torch.from_numpy(predicted).to(device),
        score=score_of(torch.from_numpy(pool.probs if apart else pool.posterior).to(device), problem.labels_in_use),
        left_alone=torch.from_numpy(joined.left_alone).to(device),
        transition=transition.to(device),
        noise_rate=min(noise_rate, 1.0),
        interval=(interval[0], min(interval[1], 1.0)),
        verdict=replace(joined.verdict, note=ALONE) if inputs.alone else joined.verdict,
        weights=pool.weights,
        notes=tuple(seen_before(inputs, pool, learned, fixed)),
        confusion=confusion,
    )


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
    pool: Pool, joined: Joined, proposals: Proposals, given: NDArray[np.int64], fixed: NDArray[np.bool_], assume: str
) -> NDArray[np.float32]:
    """(n, C) the pool's; a label adopted from the ensemble has the share of evidence behind it."""
    out = (pool.probs if assume == APART else pool.posterior).copy()
    rows = np.flatnonzero(joined.adopted)
    labels = joined.labels[rows]
    confidence = adopted_confidence(pool, joined.verdict, labels, given[rows], rows, proposals.share[rows])
    rest = out[rows]
    rest[np.arange(len(rows)), labels] = 0
    rest *= ((1 - confidence) / np.maximum(rest.sum(axis=1), FLOOR))[:, None]
    rest[np.arange(len(rows)), labels] = confidence
    out[rows] = rest
    certain = np.flatnonzero(fixed)
    out[certain] = 0
    out[certain, given[certain]] = 1
    return out


def adopted_confidence(
    pool: Pool,
    verdict: Verdict,
    labels: NDArray[np.int64],
    given: NDArray[np.int64],
    rows: NDArray[np.int64],
    share: NDArray[np.float32],
) -> NDArray[np.float32]:
    """How often such a label is right: by the support of the members, and this row's own share of the votes."""
    backed = (verdict.linear + verdict.trees) / 2
    return np.asarray(np.clip(0.5 + 0.5 * backed * share, 0.5, 0.99), dtype=np.float32)

"""Who is heard about a sample, and what is decided: the steps after the rounds, configuration unpacked for them.

Knows nets, graphs' evidence and given labels; what follows from probabilities is `decide.py`, how nets come to speak
about samples they have not seen is `held_out.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from labelmend.config import REVIEW_BELOW, RunConfig
from labelmend.data.samples import VectorSamples
from labelmend.decide import (
    KEPT,
    Decision,
    Posterior,
    agreement,
    as_distribution,
    calibrated_posterior,
    decide,
    disagreement,
    draw,
    posterior,
    weighted_product,
    with_noise_of,
    witness_error,
)
from labelmend.embed import embed
from labelmend.graph.knn import neighbors_of, normalize_rows
from labelmend.held_out import held_out_probabilities
from labelmend.state import Problem, RoundState
from labelmend.trust.annotators import annotated_posterior, calibrated_annotated_posterior
from labelmend.trust.kinds import KINDS, noise_kinds
from labelmend.trust.limits import at_precision, within_budget
from labelmend.trust.testimony import gather

# Power of the graphs beside nets that judge samples they have not seen; what they know is mostly in the labels that the
# nets learned from.
BESIDE_NETS = 0.4
# Power of those nets where the noise is measured. Labels are best decided by nets as sure as they are, but these leave
# errors alone that a surer one finds: human labels, 9 to 40 % wrong, seem to have 2 points fewer errors than they do.
MEASURING, NO_NOISE = 1.4, 0.002
NEAREST = 10
ASKED = 5_000  # samples whose surroundings tell how good a witness is


def decide_labels(
    state: RoundState, problem: Problem, make_net: Callable[[], nn.Module], config: RunConfig
) -> tuple[Posterior, Decision]:
    """Witnesses who do not start from the sample's own label, against that label; see `decide.py`."""
    given, trusted = problem.given_labels, problem.trusted
    graphs, net = witnesses(state, problem)
    found = witness_posterior(graphs, net, state, problem, config)
    if not config.held_out_passes and not config.net_power and problem.opinions is None:
        found = witness_posterior(graphs, net, state, problem, config, share_at_borders(found, state, problem, config))
    answers: list[Tensor] = []
    for number in range(config.examinations if config.held_out_passes else 0):
        decided = torch.where(trusted, given, found.probabilities.argmax(dim=1))
        answer = examine(state, problem, make_net, config, decided, number)
        # Neither witness saw the label it is compared with, so the one that meets it more often is the better one. Nets
        # that have too few samples a class are worse than the graphs, and are not listened to.
        if agreement(answer, given) < agreement(graphs, given):
            break
        answers.append(answer)
        # The mean of the examinations is steadier, and better by 0.1 points; the first was of poorer labels.
        nets = torch.stack(answers[1:] or answers).mean(dim=0)
        found = label_posterior(weighted_product([nets, graphs], [1.0, BESIDE_NETS]), problem)
    if answers and found.noise_rate > NO_NOISE:  # clean labels stay clean
        measured = label_posterior(weighted_product([nets, graphs], [MEASURING, BESIDE_NETS]), problem)
        found = with_noise_of(measured, found)
    return found, final_decision(found.probabilities, state, problem, config)


def final_decision(probabilities: Tensor, state: RoundState, problem: Problem, config: RunConfig) -> Decision:
    """What the posterior `probabilities` make of the labels of `problem`, within what the user asked for."""
    assert state.vote is not None
    given, trusted = problem.labels_in_use, problem.trusted
    labels = probabilities.argmax(dim=1)
    if config.decide == "votes":
        labels = torch.where(state.vote.labels >= 0, state.vote.labels, labels)
    sizes = torch.bincount(given[given >= 0], minlength=problem.n_classes)
    too_few = sizes[given.clamp(min=0)] < config.min_class_size
    left_alone = (given >= 0) & ~trusted & (too_few | (state.held_out.sum(dim=1) <= 0))
    review_below = REVIEW_BELOW if config.review_below is None else config.review_below
    decision = decide(probabilities, labels, given, left_alone, review_below)
    if config.precision:
        decision = at_precision(decision, probabilities, given, left_alone, config.precision, review_below)
    return within_budget(decision, given, trusted, config.budget) if config.budget else decision


def share_at_borders(found: Posterior, state: RoundState, problem: Problem, config: RunConfig) -> float:
    """Which share of the wrong labels is of the confusing kind, as far as the posterior `found` can tell."""
    given, likely = problem.given_labels, found.probabilities.argmax(dim=1)
    decision = decide(found.probabilities, likely, given, torch.zeros_like(problem.trusted), REVIEW_BELOW)
    kinds = noise_kinds(gather(state, problem, found, decision, KEPT), np.random.default_rng(config.seed))
    return 0.0 if kinds is None else kinds.shares[KINDS.index("confusing")]


def label_posterior(
    witness: Tensor, problem: Problem, error: float | None = None, at_borders: float = 0.0
) -> Posterior:
    """The witness against the labels, at the sharpness at which it is wrong in a share `error`; None: as it is."""
    given, trusted, said = problem.given_labels, problem.trusted, problem.opinions
    if said is None:
        if error is None:
            return posterior(witness, given, trusted)
        return calibrated_posterior(witness, error, given, trusted, at_borders)
    if error is None:
        return annotated_posterior(witness, said, given, trusted)
    return calibrated_annotated_posterior(witness, error, said, given, trusted)


def witness_posterior(
    graphs: Tensor, net: Tensor, state: RoundState, problem: Problem, config: RunConfig, at_borders: float = 0.0
) -> Posterior:
    """The posterior after what graphs and deployed net say about every sample.

    A net that was trained against its own memory (averages, strong changes) is a second witness as good as the graphs:
    on CIFAR-10's human labels their product was right in 94.5 and 90.3 % (random1, worst), graphs in 93.4 and 89.2 %.
    """
    if config.net_power:
        # Expected to be wrong as often as its two parts disagree. On CIFAR-10 as good as the bare product; of 2,000
        # pictures 98.2 instead of 97.1 % of clean labels are left alone, 95.0 instead of 94.6 % right at 20 % noise.
        together = weighted_product([graphs, net], [1.0, config.net_power])
        return label_posterior(together, problem, disagreement(graphs, net))
    error = witness_error(graphs, *surroundings(state, problem), net)
    return label_posterior(graphs, problem, error, at_borders)


def surroundings(state: RoundState, problem: Problem) -> tuple[Tensor, Tensor]:
    """Samples, and the nearest ones of each: in the input, or in the space of a branch where there are only pictures.

    What the graphs say is smooth in the space they were built in; the input is another view of the same samples.
    """
    n, device = len(problem.given_labels), problem.given_labels.device
    if not isinstance(problem.samples, VectorSamples):
        assert state.neighbors is not None
        return torch.arange(n, device=device), state.neighbors
    asked = draw(n, ASKED, device)
    return asked, neighbors_of(asked, normalize_rows(problem.samples.rows), NEAREST).indices


def witnesses(state: RoundState, problem: Problem) -> tuple[Tensor, Tensor]:
    """What the graphs say about every sample without its own label, and what the deployed net says."""
    net = embed(state.deployed_net, problem.samples)[1].softmax(dim=1)
    # Where no graph reaches an unlabelled sample, the net is the only witness; it never saw a label of it either.
    silent = (state.held_out.sum(dim=1) <= 0) & (problem.given_labels < 0)
    return torch.where(silent.unsqueeze(1), net, as_distribution(state.held_out)), net


def examine(
    state: RoundState,
    problem: Problem,
    make_net: Callable[[], nn.Module],
    config: RunConfig,
    labels: Tensor,
    number: int,
) -> Tensor:
    """What fresh nets that learned `labels` say about the samples they did not learn from.

    Every other examination mixes the samples: nets of both sorts together are right more often than those of either.
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

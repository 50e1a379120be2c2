"""The ensemble's evidence on every sample: graphs, votes, the deployed net and, above LARGE rows, cross-fitted nets.

Graphs judge a sample by other samples' labels. Cross-fitted nets are fresh ones that learned the decided labels of
other folds: each turn decides anew, and nets learn from that. Folds are random, not made of packages: dealt by packages
the nets lost 2 points on CIFAR-10 features.

Knows a problem and the state of its run; does not know the pool.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labelmend.config import Settings
from labelmend.decision.annotators import annotated_posterior
from labelmend.decision.posterior import FLOOR, Posterior, agreement, as_distribution, posterior, weighted_product
from labelmend.decision.verdict import APART
from labelmend.ensemble import losses
from labelmend.ensemble.fit import embed, net_step, train_pass
from labelmend.ensemble.run import Relabel
from labelmend.ensemble.state import Problem, RoundState
from labelmend.ensemble.stepper import set_rate, sgd
from labelmend.samples import Samples

MIXED = 10  # the other sample's share is half a uniform number to this power, much like that of Beta(.1, .1)


def held_out_probabilities(
    nets: Sequence[nn.Module],
    samples: Samples,
    labels: Tensor,
    fold_of: Tensor,
    n_classes: int,
    n_passes: int,
    batch_size: int,
    lr: float,
    momentum: float,
    weight_decay: float,
    generator: torch.Generator,
    mixup: bool = False,
) -> Tensor:
    """(n, C) class probabilities by fresh nets, one per fold; the learning rate falls to zero over the passes.

    With `mixup` every sample is mixed with another, mostly a little: such nets are less sure of what they say.
    """

    def loss(net: nn.Module, indices: Tensor, x: Tensor) -> Tensor:
        if not mixup:
            return F.cross_entropy(net(x)[1], labels[indices])
        share = 1 - 0.5 * torch.rand((), generator=generator, device=x.device) ** MIXED
        goal = F.one_hot(labels[indices], n_classes).to(x.dtype)
        return F.cross_entropy(net(losses.mix(x, share))[1], losses.mix(goal, share))

    answers = torch.zeros(len(labels), n_classes, device=labels.device)
    for fold, net in enumerate(nets):
        judged = torch.nonzero(fold_of == fold).squeeze(1)
        learners = torch.nonzero((fold_of != fold) & (labels >= 0)).squeeze(1)
        step = net_step(net, sgd(net.parameters(), lr, momentum, weight_decay), loss, generator)
        for number in range(n_passes):
            set_rate(step.optimizer, lr * (1 - number / n_passes))
            train_pass(net, step, samples, learners, batch_size, generator)
        answers[judged] = embed(net, samples, indices=judged)[1].softmax(dim=1)
    return answers


BESIDE_NETS = 0.4  # power of the graphs beside cross-fitted nets, which learned most of what graphs know
GRAPHS_ALONE = 1.5  # and where they are weighed against the labels without nets
STANDARD_ERRORS = 2.0  # by which nets must meet the labels worse than graphs to be left out
NETS = "nets"


@dataclass(frozen=True)
class EnsembleEvidence:
    """Class probabilities by graphs, votes and nets; none of it changes with the labels that are decided again."""

    graphs: Tensor  # (n, C) from other samples' labels
    votes: Tensor  # (n,) the winning vote
    share: Tensor  # (n,) of the suggestions, for it
    nets: Tensor | None  # (n, C) of cross-fitted nets


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
    """Where no graph reaches a sample without a label, the deployed net counts; it never saw a label of it either."""
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
    graphs: Tensor,
    votes: Tensor,
    state: RoundState,
    problem: Problem,
    make_net: Callable[[], nn.Module],
    config: Settings,
) -> Tensor | None:
    """(n, C) of fresh nets that learned the decided labels of other folds; each turn decides anew.

    None where they know less than the `votes` of near rows. Graphs are no measure: the nets they are made from have
    seen the labels.
    """
    given = problem.given_labels
    found = best_labels(weighted_product([graphs], [GRAPHS_ALONE]), problem, config.assume)
    answers: list[Tensor] = []
    for number in range(config.cross_fits):
        decided = torch.where(problem.trusted, given, found)
        answer = cross_fit(state, problem, make_net, config, decided, number)
        if clearly_worse(answer, votes, given):
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


def cross_fit(
    state: RoundState,
    problem: Problem,
    make_net: Callable[[], nn.Module],
    config: Settings,
    labels: Tensor,
    number: int,
) -> Tensor:
    """(n, C) by fresh nets that learned `labels`, for the samples they did not learn from.

    Every other turn mixes the samples: nets of both sorts together are right more often than those of either.
    """
    folds = torch.randint(config.held_out_folds, labels.shape, generator=state.generator, device=labels.device)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed + number)
        nets = [make_net().to(labels.device) for _ in range(config.held_out_folds)]
    # Twice the batch: as good, in half the time. But small classes need many small steps: of 1,000 classes of 20
    # samples, batches of 512 teach a net 22 %, of 128 87 %. The learning rate goes with the root of the batch.
    usual = config.batch_size
    batch_size = min(2 * usual, max(64, round(6.4 * len(labels) / problem.n_classes)))
    return held_out_probabilities(
        nets,
        problem.samples,
        labels,
        folds,
        problem.n_classes,
        config.held_out_passes,
        batch_size,
        4 * config.lr * math.sqrt(batch_size / (2 * usual)),
        config.momentum,
        config.weight_decay,
        state.generator,
        mixup=number % 2 == 0,
    )


def posterior_labels(net_power: float) -> Relabel:
    """Labels for the rounds to learn: argmax and maximum of the posterior of graphs and deployed net."""

    def relabel(state: RoundState, problem: Problem) -> tuple[Tensor, Tensor]:
        evidence = [graph_evidence(state, problem), deployed_evidence(state, problem)]
        surest = label_posterior(weighted_product(evidence, [1.0, net_power]), problem).probabilities.max(dim=1)
        return surest.indices, surest.values

    return relabel


def label_posterior(predicted: Tensor, problem: Problem) -> Posterior:
    """p(c | x) against the given labels, or against every annotator's."""
    if problem.opinions is None:
        return posterior(predicted, problem.given_labels, problem.trusted)
    return annotated_posterior(predicted, problem.opinions, problem.given_labels, problem.trusted)

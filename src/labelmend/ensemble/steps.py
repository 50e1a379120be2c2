"""The steps of a round: each unpacks the configuration and calls a stage with plain numbers.

`loop.py` says in which order. Below the API, `RunConfig` is read here, there, and where the nets are made (`state.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labelmend.config import RunConfig
from labelmend.decision.ensemble_evidence import deployed_evidence, graph_evidence, label_posterior
from labelmend.decision.posterior import weighted_product
from labelmend.engines.base import Engine
from labelmend.ensemble import losses, sgd
from labelmend.ensemble.embed import embed
from labelmend.ensemble.fit import balanced, net_step, train_groups_pass, train_pass
from labelmend.ensemble.graphs import (
    Cells,
    Neighbors,
    cell_neighbors,
    exact_neighbors,
    normalize_rows,
    normalized_graph,
)
from labelmend.ensemble.nets.averages import FollowingNet, interpolate, refresh_batch_norm
from labelmend.ensemble.propagate import ABSTAIN, SolverReport, Suggestions, propagate, starting_rows
from labelmend.ensemble.state import Problem, RoundState
from labelmend.ensemble.stepper import Stepper, side_by_side
from labelmend.ensemble.targets import Recipe, corrected_loss, semi_supervised_loss, sharpened, soft_targets, split_loss
from labelmend.ensemble.vote import Vote, vote
from labelmend.samples import Augment, Samples

NEAREST = 10
EXACT_ROWS_CUDA = 500_000
BY_GROUPS = ("cross-entropy-mae", "split")  # losses that are one thing for kept samples, another for changed ones
RAMP = 0.08  # share of the rounds in which changed samples come to count fully in the semi-supervised step
FINE_TUNE_RATE = 0.1  # share of the learning rate: the net is trained already


def warm_up(state: RoundState, problem: Problem, config: RunConfig) -> None:
    """Plain cross entropy on the given labels; ours, the paper starts from pretrained nets."""
    given = problem.given_labels

    def loss(net: nn.Module, indices: Tensor, x: Tensor) -> Tensor:
        logits = net(x)[1]
        value = F.cross_entropy(logits, given[indices])
        return value + config.warmup_penalty * losses.confidence(logits) if config.warmup_penalty else value

    step = net_step(state.noisy_net, state.noisy_optimizer, loss, state.generator)
    for _ in range(config.warmup_passes):
        _pass(state.noisy_net, step, state, problem, config, given)
    state.corrected_net.load_state_dict(state.noisy_net.state_dict())
    if config.average_decay:
        state.average = FollowingNet(state.corrected_net, config.average_decay)


def set_learning_rate(state: RoundState, config: RunConfig) -> float:
    passed = state.round_index / max(config.n_rounds or 1, 1)
    lr = sgd.learning_rate(config.lr, passed, config.lr_schedule, config.lr_milestones)
    for optimizer in (state.noisy_optimizer, state.corrected_optimizer):
        sgd.set_learning_rate(optimizer, lr)
    return lr


def is_fine(state: RoundState, config: RunConfig) -> bool:
    """Rounds that correct go by turns: fine ones have small packages and near neighbours, others large ones and far."""
    return state.round_index // config.correct_every % 2 == 0


def packages_per_branch(state: RoundState, config: RunConfig) -> int:
    """B of this round."""
    return (config.fine_packages if is_fine(state, config) else config.packages_per_branch) or 1


def graph_k(state: RoundState, config: RunConfig) -> int:
    """Neighbours in the graphs of this round."""
    return (config.fine_graph_k if is_fine(state, config) else config.graph_k) or 1


def alpha(state: RoundState, config: RunConfig) -> float:
    """Reach of propagation in this round."""
    return (config.fine_alpha if is_fine(state, config) else config.alpha) or 0.5


def train_branches(state: RoundState, problem: Problem, config: RunConfig, engine: Engine) -> float:
    """Equation (1), then one pass of every branch over its own subset in step with the others."""
    assert state.split is not None
    given, targets = problem.given_labels, state.targets
    other = state.noisy_net if config.noisy_branch else state.deployed_net
    shares = torch.rand(config.n_branches, generator=state.generator, device=state.generator.device).tolist()
    for net, share in zip(state.branch_nets, shares, strict=True):
        last = net if config.persistent_branches and state.round_index else other
        interpolate(net, state.deployed_net, last, share)
        refresh_batch_norm(net, problem.samples, state.generator)
    subsets = [state.split.members(m) for m in range(config.n_branches)]
    if config.branch_samples == "kept" and config.branch_loss not in BY_GROUPS:
        kept = state.corrected_labels == given
        subsets = [subset[kept[subset]] for subset in subsets]
    if config.balanced:
        subsets = [balanced(subset, state.corrected_labels[subset], state.generator) for subset in subsets]
    active = [m for m, subset in enumerate(subsets) if len(subset)]
    if not active:  # no label was kept: nothing to learn from
        return 0.0
    targets.set(state.corrected_labels, state.omega)

    def loss(features: Tensor, logits: Tensor, indices: Tensor) -> Tensor:
        labels = targets.labels[indices]
        return losses.branch_loss(
            config.branch_loss,
            features,
            logits,
            labels,
            labels == given[indices],
            targets.omega[indices],
            config.smoothness_scale,
            config.ce_factor,
            config.mae_factor,
        )

    nets = [state.branch_nets[m] for m in active]

    def make() -> Stepper:
        parameters = [p for net in nets for p in net.parameters()]
        optimizer = sgd.sgd(parameters, config.lr, config.momentum, config.weight_decay)
        return engine.branches_step(nets, optimizer, loss, state.generator)

    step = state.stepper(("branches", *active), make)
    step.forget()
    sgd.set_learning_rate(step.optimizer, set_learning_rate(state, config))
    return float(
        engine.train_branches(
            nets, step, problem.samples, [subsets[m] for m in active], config.branch_batch_size or 1, state.generator
        )
    )


@dataclass(frozen=True)
class BranchGraph:
    weights: Tensor  # W of equation (2)
    similarity: float  # mean cosine over the edges
    nearest: Tensor  # (n, <= NEAREST) the closest neighbours, for people to look at
    labels: Tensor  # (n,) what the branch says
    answers: Tensor | None  # (n, C) how probable it holds each class, if somebody learns from that


def build_graph(
    net: nn.Module, samples: Samples, cells: Cells | None, k: int, gamma: float, answers: bool = False
) -> BranchGraph:
    features, logits = embed(net, samples)
    neighbors = find_neighbors(normalize_rows(features), cells, k)
    return BranchGraph(
        normalized_graph(neighbors, gamma),
        float(neighbors.similarities.mean()),
        neighbors.indices[:, :NEAREST].clone(),
        logits.argmax(dim=1),
        logits.softmax(dim=1) if answers else None,
    )


def note_answers(state: RoundState, graphs: list[BranchGraph]) -> None:
    """What the branches said while they were embedded: soft labels need no forward pass of their own."""
    state.branch_labels = torch.stack([graph.labels for graph in graphs])
    if state.targets.answers is not None:
        said = [graph.answers for graph in graphs if graph.answers is not None]
        state.targets.answers.copy_(torch.stack(said).mean(dim=0))


def exact_rows(rows: Tensor, config: RunConfig) -> int:
    """Rows up to which every pair is compared; a GPU does that faster than it could look for a short cut."""
    return EXACT_ROWS_CUDA if rows.is_cuda else config.exact_rows


def find_neighbors(rows: Tensor, cells: Cells | None, k: int) -> Neighbors:
    return exact_neighbors(rows, k) if cells is None else cell_neighbors(rows, cells, k)


def suggest(
    state: RoundState, problem: Problem, config: RunConfig, graphs: list[BranchGraph]
) -> tuple[Suggestions, SolverReport]:
    """2 M^2 suggestions: M graphs x M subsets x (given, corrected) labels."""
    given, corrected = problem.given_labels, state.corrected_labels
    # Before the first vote both sources are the same, and so are their votes.
    sources = [given] if bool((given == corrected).all()) else [given, corrected]
    if config.corrected_source == "same-round":
        first, _ = propagate_all(graphs, [given], state, problem, config)
        sources = [given, count_votes(first, state, problem, config).labels]
    return propagate_all(graphs, sources, state, problem, config)


def propagate_all(
    graphs: list[BranchGraph], sources: list[Tensor], state: RoundState, problem: Problem, config: RunConfig
) -> tuple[Suggestions, SolverReport]:
    assert state.split is not None
    subset_of = state.split.branch_of
    # An unlabelled sample belongs to no subset and starts nothing, even after a vote has filled it in.
    starts = [starting_rows(labels, subset_of, m) for labels in sources for m in range(config.n_branches)]
    labels, certainty, own, reports = [], [], [], []
    held_out = torch.zeros_like(state.held_out)  # one n x C array, not one per graph
    for graph in graphs:
        found, report = propagate(
            graph.weights,
            starts,
            problem.n_classes,
            alpha(state, config),
            config.scale_columns,
            config.tolerance,
            config.max_iter,
        )
        labels.append(found.labels)
        certainty.append(found.certainty)
        own.append(found.own)
        held_out.add_(found.held_out, alpha=1 / len(graphs))
        reports.append(report)
    together = Suggestions(torch.cat(labels, dim=1), torch.cat(certainty, dim=1), torch.cat(own, dim=1), held_out)
    worst = max(report.worst_residual for report in reports)
    return together, SolverReport(max(r.iterations for r in reports), worst, all(r.converged for r in reports))


def count_votes(suggestions: Suggestions, state: RoundState, problem: Problem, config: RunConfig) -> Vote:
    labels = suggestions.labels
    if not config.own_subset_votes:
        labels = labels.masked_fill(suggestions.own, ABSTAIN)
    return vote(
        labels,
        suggestions.certainty,
        problem.given_labels,
        state.corrected_labels,
        problem.n_classes,
        problem.trusted,
        (config.low_percentile, config.high_percentile),
    )


def labels_to_learn(state: RoundState, problem: Problem, config: RunConfig) -> tuple[Tensor, Tensor]:
    """The labels and weights of the next passes: the vote's, or those of the posterior (ours)."""
    assert state.vote is not None
    if config.round_labels == "vote" or state.round_index < (config.n_rounds or 0) / 2:
        return state.vote.labels, state.vote.certainty
    predicted = weighted_product(
        [graph_evidence(state, problem), deployed_evidence(state, problem)], [1.0, config.net_power]
    )
    surest = label_posterior(predicted, problem).probabilities.max(dim=1)
    return surest.indices, surest.values


def train_nets(
    state: RoundState, problem: Problem, config: RunConfig, labels: Tensor, omega: Tensor, noisy_too: bool
) -> tuple[float, float | None]:
    """One pass of the corrected-label branch and, if asked for, one of the noisy branch; the mean losses."""
    state.targets.set(labels, omega)
    train = train_semi_supervised if config.corrected_loss == "semi-supervised" else train_corrected
    jobs = [partial(train, state, problem, config, labels, omega)]
    if noisy_too:
        jobs.append(partial(train_noisy, state, problem, config))
    if {"corrected", "noisy"} <= state.steppers.keys():
        found = side_by_side(jobs, problem.samples.device)
    else:  # a GPU records the steps in their first pass, and while it does nothing else may run
        found = [job() for job in jobs]
    means = [float(value) for value in found]
    return means[0], means[1] if noisy_too else None


def train_corrected(state: RoundState, problem: Problem, config: RunConfig, labels: Tensor, omega: Tensor) -> Tensor:
    """One pass of the net that is deployed: equation (9), or the ablation's soft labels, with or without mixup.

    With `consistency` it is also asked for its average's answer on strongly changed pictures (ours).
    """
    targets, recipe = state.targets, corrected_recipe(config)
    if targets.soft is not None:
        targets.soft.copy_(soft_labels(state, problem, config, labels, omega))

    def loss(net: nn.Module, indices: Tensor, x: Tensor, *strong: Tensor) -> Tensor:
        if config.corrected_loss == "split":
            value = split_loss(net, x, indices, targets, problem.given_labels, recipe, state.generator)
        else:
            value = corrected_loss(
                net, x, indices, targets, config.mixup, recipe.ce_factor, recipe.changed_factor, state.generator
            )
        for changed in strong:
            with torch.no_grad():
                teacher = state.deployed_net(x)[1]
            value = value + config.consistency * losses.consistency(
                net(changed)[1], teacher, config.consistency_threshold
            )
        return value

    after = None if state.average is None else state.average.follow
    step = state.stepper(
        "corrected", lambda: net_step(state.corrected_net, state.corrected_optimizer, loss, state.generator, after)
    )
    views: tuple[Augment, ...] = ("weak", "strong") if config.consistency else ("weak",)
    return _pass(state.corrected_net, step, state, problem, config, labels, views)


def soft_labels(state: RoundState, problem: Problem, config: RunConfig, labels: Tensor, omega: Tensor) -> Tensor:
    """Decision 22: between the voted label, or the net's own answer, and the mean answer of the branches."""
    answers = state.targets.answers
    assert answers is not None
    voted = F.one_hot(labels.clamp(min=0), problem.n_classes).to(answers.dtype)
    first = embed(state.corrected_net, problem.samples)[1].softmax(dim=1) if config.soft_source == "net" else voted
    found = sharpened(soft_targets(first, answers, omega), config.soft_temperature)
    return torch.where(problem.trusted.unsqueeze(1), voted, found)


def corrected_recipe(config: RunConfig) -> Recipe:
    return Recipe(
        config.soft_ce_factor,
        config.soft_mse_factor,
        config.mixup_shape if config.mixup else 0,
        config.soft_temperature,
        config.class_penalty,
    )


def train_semi_supervised(
    state: RoundState, problem: Problem, config: RunConfig, labels: Tensor, omega: Tensor
) -> Tensor:
    """One pass of the deployed net over the kept samples, in every step beside as many changed ones, in two views."""
    given, targets, recipe = problem.given_labels, state.targets, corrected_recipe(config)
    assert targets.ramp is not None
    targets.ramp.fill_(min(1.0, state.round_index / (RAMP * (config.n_rounds or 1))))

    def loss(net: nn.Module, indices: Tensor, *views: Tensor) -> Tensor:
        return semi_supervised_loss(net, views, indices, targets, given, recipe, state.generator)

    after = None if state.average is None else state.average.follow
    step = state.stepper(
        "corrected", lambda: net_step(state.corrected_net, state.corrected_optimizer, loss, state.generator, after)
    )
    groups = [torch.nonzero((labels >= 0) & ((labels == given) == kept)).squeeze(1) for kept in (True, False)]
    if config.balanced:
        groups = [balanced(group, labels[group], state.generator) for group in groups]
    kept, changed = groups
    if len(kept) == 0:  # there is nothing to hold on to
        return torch.zeros((), device=given.device)
    groups = [kept, changed if len(changed) else kept]
    views: tuple[Augment, ...] = ("weak", "weak")
    return train_groups_pass(
        state.corrected_net, step, problem.samples, groups, config.batch_size or 2, state.generator, views
    )


def train_noisy(state: RoundState, problem: Problem, config: RunConfig) -> Tensor:
    """Equation (10): the given labels, weighted by how much the vote agrees with them."""
    given, targets = problem.given_labels, state.targets

    def loss(net: nn.Module, indices: Tensor, x: Tensor) -> Tensor:
        weights = losses.noisy_weights(targets.omega[indices], given[indices], targets.labels[indices])
        return losses.weighted_cross_entropy(net(x)[1], given[indices], weights)

    step = state.stepper("noisy", lambda: net_step(state.noisy_net, state.noisy_optimizer, loss, state.generator))
    return _pass(state.noisy_net, step, state, problem, config, given)


def fine_tune(state: RoundState, problem: Problem, config: RunConfig) -> None:
    """The paper's hybrid setting: the deployed net learns from the trusted samples alone, gently, at the end."""
    given = problem.given_labels
    optimizer = sgd.sgd(
        state.deployed_net.parameters(), FINE_TUNE_RATE * config.lr, config.momentum, config.weight_decay
    )

    def loss(net: nn.Module, indices: Tensor, x: Tensor) -> Tensor:
        return F.cross_entropy(net(x)[1], given[indices])

    certain = given.masked_fill(~problem.trusted, -1)
    step = net_step(state.deployed_net.requires_grad_(True), optimizer, loss, state.generator)
    for _ in range(config.fine_tune_passes):
        _pass(state.deployed_net, step, state, problem, config, certain)


def _pass(
    net: nn.Module,
    step: Stepper,
    state: RoundState,
    problem: Problem,
    config: RunConfig,
    labels: Tensor,
    views: tuple[Augment, ...] = ("weak",),
) -> Tensor:
    """One pass over the samples that have one of `labels`."""
    indices = torch.nonzero(labels >= 0).squeeze(1)
    if config.balanced:
        indices = balanced(indices, labels[indices], state.generator)
    return train_pass(net, step, problem.samples, indices, config.batch_size or 1, state.generator, views)

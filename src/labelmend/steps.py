"""The steps of a round: each unpacks the configuration and calls a stage with plain numbers.

`loop.py` says in which order. Below the API, `RunConfig` is read here, there, and where the nets are made (`state.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labelmend.config import RunConfig
from labelmend.data.samples import Samples
from labelmend.decide import (
    Decision,
    Posterior,
    as_distribution,
    calibrated_posterior,
    decide,
    posterior,
    weighted_product,
    witness_error,
)
from labelmend.embed import embed
from labelmend.engines.base import Engine
from labelmend.graph.affinity import normalized_graph
from labelmend.graph.knn import Cells, Neighbors, cell_neighbors, exact_neighbors, normalize_rows
from labelmend.graph.propagate import ABSTAIN, SolverReport, Suggestions, propagate, starting_rows
from labelmend.held_out import held_out_probabilities
from labelmend.nets.interpolate import interpolate, refresh_batch_norm
from labelmend.state import Problem, RoundState
from labelmend.training import losses
from labelmend.training.fit import sgd, train_pass
from labelmend.training.targets import CorrectedTargets, corrected_loss, soft_targets
from labelmend.vote import Vote, vote

NEAREST = 10
FINE_TUNE_RATE = 0.1  # share of the learning rate: the net is trained already


def warm_up(state: RoundState, problem: Problem, config: RunConfig) -> None:
    """Plain cross entropy on the given labels; ours, the paper starts from pretrained nets."""
    given = problem.given_labels

    def loss(net: nn.Module, x: Tensor, indices: Tensor) -> Tensor:
        return F.cross_entropy(net(x)[1], given[indices])

    for _ in range(config.warmup_passes):
        train_pass(
            state.noisy_net,
            state.noisy_optimizer,
            problem.samples,
            _labelled(given),
            config.batch_size or 1,
            loss,
            state.generator,
        )
    state.corrected_net.load_state_dict(state.noisy_net.state_dict())


def set_learning_rate(state: RoundState, config: RunConfig) -> None:
    passed = state.round_index / max(config.n_rounds or 1, 1)
    lr = config.lr * 0.1 ** sum(passed >= milestone for milestone in config.lr_milestones)
    for optimizer in (state.noisy_optimizer, state.corrected_optimizer):
        for group in optimizer.param_groups:
            group["lr"] = lr


def train_branches(state: RoundState, problem: Problem, config: RunConfig, engine: Engine) -> float:
    """Equation (1), then one pass of every branch over its own subset in step with the others."""
    assert state.split is not None
    labels, omega, given = state.corrected_labels, state.omega, problem.given_labels
    other = state.noisy_net if config.noisy_branch else state.corrected_net
    for net, share in zip(state.branch_nets, torch.rand(config.n_branches, generator=state.generator), strict=True):
        interpolate(net, state.corrected_net, other, float(share))
        refresh_batch_norm(net, problem.samples, state.generator)
    kept = labels == given
    subsets = [state.split.members(m) for m in range(config.n_branches)]
    if config.branch_samples == "kept" and config.branch_loss != "cross-entropy-mae":
        subsets = [subset[kept[subset]] for subset in subsets]

    def loss(features: Tensor, logits: Tensor, indices: Tensor) -> Tensor:
        return losses.branch_loss(
            config.branch_loss,
            features,
            logits,
            labels[indices],
            kept[indices],
            omega[indices],
            config.smoothness_scale,
            config.ce_factor,
            config.mae_factor,
        )

    parameters = [p for net in state.branch_nets for p in net.parameters()]
    lr = state.corrected_optimizer.param_groups[0]["lr"]
    optimizer = sgd(parameters, lr, config.momentum, config.weight_decay)
    return engine.train_branches(
        state.branch_nets, optimizer, problem.samples, subsets, config.batch_size or 1, loss, state.generator
    )


@dataclass(frozen=True)
class BranchGraph:
    weights: Tensor  # W of equation (2)
    similarity: float  # mean cosine over the edges
    nearest: Tensor  # (n, <= NEAREST) the closest neighbours, for people to look at


def build_graph(net: nn.Module, samples: Samples, cells: Cells | None, config: RunConfig) -> BranchGraph:
    neighbors = find_neighbors(normalize_rows(embed(net, samples)[0]), cells, config.graph_k or 1)
    weights = normalized_graph(neighbors, config.gamma)
    return BranchGraph(weights, float(neighbors.similarities.mean()), neighbors.indices[:, :NEAREST].clone())


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
            config.alpha or 0.5,
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


def train_corrected(state: RoundState, problem: Problem, config: RunConfig, labels: Tensor, omega: Tensor) -> float:
    """One pass of the deployed net: equation (9), or the ablation's soft labels, with or without mixup."""
    targets = CorrectedTargets(labels, omega, problem.n_classes)
    if config.soft_labels:
        own = embed(state.corrected_net, problem.samples)[1].softmax(dim=1)
        branches = [embed(net, problem.samples)[1].softmax(dim=1) for net in state.branch_nets]
        first = own if config.soft_source == "net" else F.one_hot(labels.clamp(min=0), problem.n_classes).to(own.dtype)
        targets.soft = soft_targets(first, branches, omega)
        targets.soft[problem.trusted] = F.one_hot(labels[problem.trusted], problem.n_classes).to(own.dtype)

    def loss(net: nn.Module, x: Tensor, indices: Tensor) -> Tensor:
        return corrected_loss(
            net, x, indices, targets, config.mixup, config.soft_ce_factor, config.soft_mse_factor, state.generator
        )

    return train_pass(
        state.corrected_net,
        state.corrected_optimizer,
        problem.samples,
        _labelled(labels),
        config.batch_size or 1,
        loss,
        state.generator,
    )


def train_noisy(state: RoundState, problem: Problem, config: RunConfig, labels: Tensor, omega: Tensor) -> float:
    """Equation (10): the given labels, weighted by how much the vote agrees with them."""
    given = problem.given_labels
    weights = losses.noisy_weights(omega, given, labels)

    def loss(net: nn.Module, x: Tensor, indices: Tensor) -> Tensor:
        return losses.weighted_cross_entropy(net(x)[1], given[indices], weights[indices])

    return train_pass(
        state.noisy_net,
        state.noisy_optimizer,
        problem.samples,
        _labelled(given),
        config.batch_size or 1,
        loss,
        state.generator,
    )


def fine_tune(state: RoundState, problem: Problem, config: RunConfig) -> None:
    """The paper's hybrid setting: the deployed net learns from the trusted samples alone, gently, at the end."""
    given = problem.given_labels
    optimizer = sgd(state.corrected_net.parameters(), FINE_TUNE_RATE * config.lr, config.momentum, config.weight_decay)

    def loss(net: nn.Module, x: Tensor, indices: Tensor) -> Tensor:
        return F.cross_entropy(net(x)[1], given[indices])

    trusted = torch.nonzero(problem.trusted).squeeze(1)
    for _ in range(config.fine_tune_passes):
        train_pass(
            state.corrected_net, optimizer, problem.samples, trusted, config.batch_size or 1, loss, state.generator
        )


def _labelled(labels: Tensor) -> Tensor:
    return torch.nonzero(labels >= 0).squeeze(1)


def decide_labels(
    state: RoundState, problem: Problem, make_net: Callable[[], nn.Module], config: RunConfig
) -> tuple[Posterior, Decision]:
    """Witnesses who do not start from the sample's own label, against that label; see `decide.py`."""
    assert state.vote is not None
    given, trusted = problem.given_labels, problem.trusted
    net = embed(state.corrected_net, problem.samples)[1].softmax(dim=1)
    reached = state.held_out.sum(dim=1) > 0
    # Where no graph reaches an unlabelled sample, the net is the only witness; it never saw a label of it either.
    graphs = torch.where((~reached & (given < 0)).unsqueeze(1), net, as_distribution(state.held_out))
    error = witness_error(graphs[reached], net[reached])
    del net
    found = calibrated_posterior(graphs, error, given, trusted)
    answers: list[Tensor] = []
    for _ in range(config.examinations if config.held_out_passes else 0):
        decided = torch.where(trusted, given, found.probabilities.argmax(dim=1))
        answers = [*answers[-1:], examine(state, problem, make_net, config, decided)]
        # The mean of the last two examinations is steadier, and better by 0.1 points. The graphs count for less: what
        # they know is mostly in the labels the nets learned from.
        nets = (answers[0] + answers[-1]) / 2
        found = posterior(weighted_product([nets, graphs], [1.0, 0.4]), given, trusted)
    labels = found.probabilities.argmax(dim=1)
    if config.decide == "votes":
        labels = torch.where(state.vote.labels >= 0, state.vote.labels, labels)
    sizes = torch.bincount(given[given >= 0], minlength=problem.n_classes)
    too_few = sizes[given.clamp(min=0)] < config.min_class_size
    left_alone = (given >= 0) & ~trusted & (too_few | ~reached)
    return found, decide(found.probabilities, labels, given, left_alone, config.review_below)


def examine(
    state: RoundState, problem: Problem, make_net: Callable[[], nn.Module], config: RunConfig, labels: Tensor
) -> Tensor:
    folds = torch.randint(config.held_out_folds, labels.shape, generator=state.generator).to(labels.device)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        nets = [make_net().to(labels.device) for _ in range(config.held_out_folds)]
    return held_out_probabilities(
        nets,
        problem.samples,
        labels,
        folds,
        problem.n_classes,
        config.held_out_passes or 0,
        2 * (config.batch_size or 1),  # twice the batch and the learning rate: as good, in half the time
        2 * config.lr,
        config.momentum,
        config.weight_decay,
        state.generator,
    )

"""Training the branches on their subsets, equation (1) and Sec. III-E, and the graph that each of them makes.

Unpacks the settings and calls `fit.py`, `losses.py` and `graphs.py` with plain numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from labelmend.config import Settings
from labelmend.ensemble import losses
from labelmend.ensemble.fit import balanced, branches_step, embed, train_branches_pass
from labelmend.ensemble.graphs import (
    Cells,
    cell_neighbors,
    exact_neighbors,
    make_cells,
    normalize_rows,
    normalized_graph,
)
from labelmend.ensemble.nets import interpolate, refresh_batch_norm
from labelmend.ensemble.state import Problem, RoundState, set_learning_rate
from labelmend.ensemble.stepper import Stepper, set_rate, sgd
from labelmend.samples import Samples

NEAREST = 10
EXACT_ROWS_CUDA = 500_000  # a GPU compares every pair faster than it could look for a short cut
BY_GROUPS = ("cross-entropy-mae", "split")  # losses that are one thing for kept samples, another for changed ones


def train_branches(state: RoundState, problem: Problem, settings: Settings) -> float:
    """Equation (1), then one pass of every branch over its own subset in step with the others."""
    assert state.split is not None
    given, targets = problem.given_labels, state.targets
    other = state.noisy_net if settings.noisy_branch else state.deployed_net
    shares = torch.rand(settings.n_branches, generator=state.generator, device=state.generator.device).tolist()
    for net, share in zip(state.branch_nets, shares, strict=True):
        last = net if settings.persistent_branches and state.round_index else other
        interpolate(net, state.deployed_net, last, share)
        refresh_batch_norm(net, problem.samples, state.generator)
    subsets = [state.split.members(m) for m in range(settings.n_branches)]
    if settings.branch_samples == "kept" and settings.branch_loss not in BY_GROUPS:
        kept = state.corrected_labels == given
        subsets = [subset[kept[subset]] for subset in subsets]
    if settings.balanced:
        subsets = [balanced(subset, state.corrected_labels[subset], state.generator) for subset in subsets]
    active = [m for m, subset in enumerate(subsets) if len(subset)]
    if not active:  # no label was kept: nothing to learn from
        return 0.0
    targets.set(state.corrected_labels, state.omega)

    def loss(features: Tensor, logits: Tensor, indices: Tensor) -> Tensor:
        labels = targets.labels[indices]
        return losses.branch_loss(
            settings.branch_loss,
            features,
            logits,
            labels,
            labels == given[indices],
            targets.omega[indices],
            settings.smoothness_scale,
            settings.ce_factor,
            settings.mae_factor,
        )

    nets = [state.branch_nets[m] for m in active]

    def make() -> Stepper:
        parameters = [p for net in nets for p in net.parameters()]
        optimizer = sgd(parameters, settings.lr, settings.momentum, settings.weight_decay)
        return branches_step(nets, optimizer, loss, state.generator)

    step = state.stepper(("branches", *active), make)
    step.forget()
    set_rate(step.optimizer, set_learning_rate(state, settings))
    return float(
        train_branches_pass(
            nets, step, problem.samples, [subsets[m] for m in active], settings.branch_batch_size, state.generator
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
    rows = normalize_rows(features)
    neighbors = exact_neighbors(rows, k) if cells is None else cell_neighbors(rows, cells, k)
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


def cells_of(rows: Tensor, settings: Settings, generator: torch.Generator) -> Cells | None:
    """Cells to search for neighbours in; None where every pair is compared."""
    exact = EXACT_ROWS_CUDA if rows.is_cuda else settings.exact_rows
    return make_cells(rows, settings.n_probe, generator) if len(rows) > exact else None

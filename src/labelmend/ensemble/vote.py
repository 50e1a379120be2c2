"""Phase 3 of the paper (Sec. III-D): the majority label of all suggestions and its certainty, equations (6) and (7).

Knows suggested labels and certainties; does not know graphs or nets.

Differs from the paper in: ties go to the larger sum of certainties, then to the current corrected label, then to the
given one, then to the lowest class, so the vote is deterministic; where every suggestion abstains the given label
stays with certainty 0; trusted samples keep their label with certainty 1 and do not take part in the min-max.

`suggest` makes the 2 M^2 suggestions for every sample: M graphs x M subsets x (given, corrected) labels.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from labelmend.config import Settings
from labelmend.ensemble.propagate import ABSTAIN, SolverReport, Suggestions, propagate, starting_rows
from labelmend.ensemble.state import Problem, RoundState

if TYPE_CHECKING:
    from labelmend.ensemble.branches import BranchGraph


BLOCK_ENTRIES = 2**24


@dataclass(frozen=True)
class Vote:
    labels: Tensor  # (n,) majority class; the given label where nobody votes, -1 if there is none
    certainty: Tensor  # (n,) omega, equation (6)
    share: Tensor  # (n, C) sparse CSR: share of the suggestions for each class


def vote(
    suggested: Tensor,
    certainty: Tensor,
    given: Tensor,
    current: Tensor,
    n_classes: int,
    fixed: Tensor,
    percentiles: tuple[float, float],
) -> Vote:
    """Count the suggestions (n, s). `fixed` marks trusted samples; `percentiles` (0, 1) is the paper's min-max."""
    labels = torch.empty_like(given)
    raw = torch.empty(len(given), dtype=certainty.dtype, device=given.device)
    crow, columns, values = [torch.zeros(1, dtype=torch.long)], [], []
    for rows in torch.arange(len(given), device=given.device).split(max(1, BLOCK_ENTRIES // n_classes)):
        counts, sums = _tally(suggested[rows], certainty[rows], n_classes)
        labels[rows] = _winner(counts, sums, current[rows], given[rows])
        raw[rows] = sums.gather(1, labels[rows].clamp(min=0).unsqueeze(1)).squeeze(1) / suggested.shape[1]
        held = counts > 0
        crow.append(held.sum(dim=1).cumsum(dim=0).cpu() + crow[-1][-1])
        columns.append(held.nonzero()[:, 1].cpu())
        values.append((counts[held] / suggested.shape[1]).cpu())
    labels = torch.where(fixed, given, labels)
    omega = torch.where((suggested >= 0).any(dim=1), stretch(raw, ~fixed, percentiles), 0.0)
    omega = torch.where(fixed, 1.0, omega)
    omega = torch.where(labels < 0, 0.0, omega)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Ss]parse.*")  # torch: "CSR support is in beta state"
        share = torch.sparse_csr_tensor(
            torch.cat(crow), torch.cat(columns), torch.cat(values), size=(len(given), n_classes), check_invariants=False
        )
    return Vote(labels, omega, share)


def stretch(raw: Tensor, counted: Tensor, percentiles: tuple[float, float]) -> Tensor:
    """Equation (6): map [low, high] of the counted samples to [0, 1]; all ones where they are all equal."""
    if not bool(counted.any()):
        return torch.ones_like(raw)
    ordered = raw[counted].sort().values
    low, high = (ordered[round(q * (len(ordered) - 1))] for q in percentiles)
    if high <= low:
        return torch.ones_like(raw)
    return ((raw - low) / (high - low)).clamp(0, 1)


def _tally(suggested: Tensor, certainty: Tensor, n_classes: int) -> tuple[Tensor, Tensor]:
    """Votes and summed certainties per class; abstentions (-1) count for nobody."""
    votes = suggested >= 0
    at = suggested.clamp(min=0)
    shape = (len(suggested), n_classes)
    counts = torch.zeros(shape, dtype=certainty.dtype, device=certainty.device)
    sums = torch.zeros_like(counts)
    counts.scatter_add_(1, at, votes.to(certainty.dtype))
    sums.scatter_add_(1, at, certainty * votes)
    return counts, sums


def _winner(counts: Tensor, sums: Tensor, current: Tensor, given: Tensor) -> Tensor:
    """The class that wins by (votes, certainty, is current, is given, lowest index), decided one key at a time."""
    alive = counts == counts.amax(dim=1, keepdim=True)
    ranked = sums.masked_fill(~alive, -torch.inf)
    alive &= ranked == ranked.amax(dim=1, keepdim=True)
    for preferred in (current, given):
        holds = (preferred >= 0) & alive.gather(1, preferred.clamp(min=0).unsqueeze(1)).squeeze(1)
        only = torch.zeros_like(alive).scatter_(1, preferred.clamp(min=0).unsqueeze(1), True)
        alive = torch.where(holds.unsqueeze(1), only, alive)
    winner = alive.to(torch.int8).argmax(dim=1)
    return torch.where(counts.sum(dim=1) > 0, winner, given)


def suggest(
    state: RoundState, problem: Problem, settings: Settings, graphs: list[BranchGraph], alpha: float
) -> tuple[Suggestions, SolverReport]:
    """2 M^2 suggestions: M graphs x M subsets x (given, corrected) labels."""
    given, corrected = problem.given_labels, state.corrected_labels
    # Before the first vote both sources are the same, and so are their votes.
    sources = [given] if bool((given == corrected).all()) else [given, corrected]
    if settings.corrected_source == "same-round":
        first, _ = propagate_all(graphs, [given], alpha, state, problem, settings)
        sources = [given, count_votes(first, state, problem, settings).labels]
    return propagate_all(graphs, sources, alpha, state, problem, settings)


def propagate_all(
    graphs: list[BranchGraph],
    sources: list[Tensor],
    alpha: float,
    state: RoundState,
    problem: Problem,
    settings: Settings,
) -> tuple[Suggestions, SolverReport]:
    assert state.split is not None
    subset_of = state.split.branch_of
    # An unlabelled sample belongs to no subset and starts nothing, even after a vote has filled it in.
    starts = [starting_rows(labels, subset_of, m) for labels in sources for m in range(settings.n_branches)]
    labels, certainty, own, reports = [], [], [], []
    held_out = torch.zeros_like(state.held_out)  # one n x C array, not one per graph
    for graph in graphs:
        found, report = propagate(
            graph.weights,
            starts,
            problem.n_classes,
            alpha,
            settings.scale_columns,
            settings.tolerance,
            settings.max_iter,
        )
        labels.append(found.labels)
        certainty.append(found.certainty)
        own.append(found.own)
        held_out.add_(found.held_out, alpha=1 / len(graphs))
        reports.append(report)
    together = Suggestions(torch.cat(labels, dim=1), torch.cat(certainty, dim=1), torch.cat(own, dim=1), held_out)
    worst = max(report.worst_residual for report in reports)
    return together, SolverReport(max(r.iterations for r in reports), worst, all(r.converged for r in reports))


def count_votes(suggestions: Suggestions, state: RoundState, problem: Problem, settings: Settings) -> Vote:
    labels = suggestions.labels
    if not settings.own_subset_votes:
        labels = labels.masked_fill(suggestions.own, ABSTAIN)
    return vote(
        labels,
        suggestions.certainty,
        problem.given_labels,
        state.corrected_labels,
        problem.n_classes,
        problem.trusted,
        (settings.low_percentile, settings.high_percentile),
    )

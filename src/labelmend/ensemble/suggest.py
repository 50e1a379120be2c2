"""2 M^2 suggestions for every sample, and the vote over them: M graphs x M subsets x (given, corrected) labels.

Unpacks the settings and calls `propagate.py` and `vote.py` with plain numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from labelmend.config import Settings
from labelmend.ensemble.propagate import ABSTAIN, SolverReport, Suggestions, propagate, starting_rows
from labelmend.ensemble.state import Problem, RoundState
from labelmend.ensemble.vote import Vote, vote

if TYPE_CHECKING:
    from labelmend.ensemble.branches import BranchGraph


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

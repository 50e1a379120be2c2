"""What the decided labels become within what the user asked for: a precision of the changes, a number of looks.

Tiny classes and labels without evidence are left alone.

No harm: where planted errors (`audit`) show that no more labels are right after the run than before, every label stays
as it was given, and those that would have changed are for review. By the run's own posterior a change always gains.

Precision: of the labels that would change, the largest set, surest first, that is expected to reach that precision;
the others keep their given label and are for review. A change that is made is not for review.
Budget: exactly so many samples are for review, those whose label is most probably wrong: what one look is expected to
put right. All others are kept or corrected as they are; `review_below` is not used. Trusted labels are not looked at,
and filled ones stay filled.

Knows a decision and its probabilities; does not know where they come from. Both are as good as the probabilities are.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from labelmend.config import Settings
from labelmend.decision.deciding import Decided
from labelmend.decision.posterior import CORRECTED, FILLED, KEPT, REVIEW, Decision, decide
from labelmend.ensemble.state import Problem


def without_changes(decision: Decision, probabilities: Tensor, given: Tensor, review_below: float) -> Decision:
    """Every label as it was given; what would have changed is for review."""
    return decide(probabilities, decision.labels, given, (decision.labels != given) & (given >= 0), review_below)


def at_precision(
    decision: Decision,
    probabilities: Tensor,
    given: Tensor,
    left_alone: Tensor,
    precision: float,
    review_below: float,
) -> Decision:
    changed = torch.nonzero((decision.labels != given) & (given >= 0)).squeeze(1)
    sure, order = decision.confidence[changed].double().sort(descending=True, stable=True)
    means = sure.cumsum(0) / torch.arange(1, len(sure) + 1, device=sure.device)
    made = changed[order[: int((means >= precision).sum())]]  # the mean falls along the order: a prefix
    refused = torch.zeros_like(left_alone)
    refused[changed] = True
    refused[made] = False
    limited = decide(probabilities, decision.labels, given, left_alone | refused, review_below)
    status = limited.status.clone()
    status[made] = CORRECTED
    return replace(limited, status=status)


def within_budget(decision: Decision, given: Tensor, trusted: Tensor, budget: int) -> Decision:
    status = torch.where(decision.labels == given, KEPT, CORRECTED)
    status = torch.where(given < 0, FILLED, status)
    open_ = (given >= 0) & ~trusted
    doubt = (1 - decision.confidence).masked_fill(~open_, -1.0)
    shown = doubt.sort(descending=True, stable=True).indices[: min(budget, int(open_.sum()))]
    status[shown] = REVIEW
    return replace(decision, status=status)


def final_decision(decided: Decided, problem: Problem, settings: Settings) -> Decision:
    """Tiny classes and labels without evidence are left alone; then precision and budget."""
    given, trusted, probabilities = problem.labels_in_use, problem.trusted, decided.probabilities
    sizes = torch.bincount(given[given >= 0], minlength=problem.n_classes)
    too_few = sizes[given.clamp(min=0)] < settings.min_class_size
    left_alone = (given >= 0) & ~trusted & (too_few | decided.left_alone)
    decision = decide(probabilities, decided.labels, given, left_alone, settings.review_below)
    if settings.precision:
        decision = at_precision(decision, probabilities, given, left_alone, settings.precision, settings.review_below)
    return within_budget(decision, given, trusted, settings.budget) if settings.budget else decision

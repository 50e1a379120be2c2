"""What the decided labels become within what the user asked for: kept, corrected, for review."""

from __future__ import annotations

import torch

from labelmend.config import Settings
from labelmend.decision.deciding import Decided
from labelmend.decision.limits import at_precision, within_budget
from labelmend.decision.posterior import Decision, decide
from labelmend.ensemble.state import Problem


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

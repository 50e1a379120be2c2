"""What limits the decision: no harm, and what the user asked for, a precision of the changes or a number of looks.

No harm: where the changes all together are not expected to gain anything, every label stays as it was given, and those
that would have changed are for review. By the run's own posterior a change always gains; planted errors may tell
otherwise (`audit`): so many labels are right after the run, so many were before.

Precision: of the labels that would change, the largest set, surest first, that is expected to be right in the share
asked for; the others keep their given label and are for review. A change that is made is not for review.
Budget: exactly so many samples are for review, those whose label is most probably wrong: what one look is expected to
put right. All others are kept or corrected as they are; `review_below` is not used. Trusted labels are not looked at,
and filled ones stay filled.

Knows a decision and its probabilities; does not know where they come from. Both are as good as the probabilities are.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from labelmend.decide import CORRECTED, FILLED, KEPT, REVIEW, Decision, decide


def expected_gain(decision: Decision, given: Tensor, noise_rate: float, right_after: float | None) -> float:
    """Share of the labels that is right after the changes less the share that was before.

    `right_after` is known where errors were planted; None: by the posterior.
    """
    if right_after is not None:
        return right_after - (1 - noise_rate)
    changed = (decision.labels != given) & (given >= 0)
    gained = (decision.confidence - decision.given_confidence)[changed].double().sum()
    return float(gained) / max(int((given >= 0).sum()), 1)


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

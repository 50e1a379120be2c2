"""From probabilities to labels: EM for how labels go wrong, and what becomes of each: kept, corrected, for review.

posterior(c | x, g) ~ p(c | x) T[c, g]: what is known of x, times how labels go wrong, with
T[c, g] = P(given = g | true = c) estimated by EM from the data themselves. No noise rate is assumed. p is taken as it
is: where it is sure, a label that contradicts it is an error. That is the assumption that classes are apart; where it
is not made, labels are decided by the pool (`decision/pool.py`).

Knows class probabilities and given labels; does not know nets or graphs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

KEPT, CORRECTED, REVIEW, FILLED = range(4)
STATUS_NAMES = ("kept", "corrected", "review", "filled")
BLOCK_ENTRIES = 2**23
PRIOR_ROWS = 2.0  # rows' worth of the common noise rate in every row of T: most cells are empty at 1,000 classes
FLOOR = 1e-6  # least probability: nothing is impossible
EM_PASSES = 20
# Errors of p look like a little noise, which EM amplifies: rates well below this are treated as zero.
SCEPTICAL_BELOW = 0.01


@dataclass(frozen=True)
class Posterior:
    probabilities: Tensor  # (n, C)
    transition: Tensor  # (C, C) P(given | true)
    noise_rate: float


@dataclass(frozen=True)
class Decision:
    labels: Tensor  # (n,) argmax of the posterior, or the vote
    confidence: Tensor  # (n,) its probability
    runner_up: Tensor  # (n,) second class
    status: Tensor  # (n,) KEPT, CORRECTED, REVIEW or FILLED
    given_confidence: Tensor  # (n,) probability of the given label; 0 where there is none


def as_distribution(predicted: Tensor) -> Tensor:
    """Rows that sum to one; a row of zeros knows nothing."""
    total = predicted.sum(dim=1, keepdim=True)
    shares = predicted / total.clamp(min=torch.finfo(predicted.dtype).tiny)
    return torch.where(total > 0, shares, 1 / predicted.shape[1])


def weighted_product(parts: list[Tensor], powers: list[float]) -> Tensor:
    """Several class probabilities as one: the product of their powers, renormalised. A power is 1 / temperature."""
    log_product = torch.zeros_like(parts[0])
    for predicted, power in zip(parts, powers, strict=True):
        log_product.add_(predicted.clamp(min=FLOOR).log_(), alpha=power)
    return log_product.softmax(dim=1)


def agreement(predicted: Tensor, given: Tensor) -> float:
    """How often the most probable class is the given label, among the samples that have one."""
    labelled = given >= 0
    return float((predicted.argmax(dim=1) == given)[labelled].double().mean()) if bool(labelled.any()) else 0.0


def posterior(predicted: Tensor, given: Tensor, fixed: Tensor, n_passes: int = EM_PASSES) -> Posterior:
    """EM for T and the posterior. `fixed` samples have a certain label; given -1 means there is none.

    T is of the labels that may be wrong: certain ones show nothing about how the others go wrong.
    """
    n_classes = predicted.shape[1]
    labelled = given >= 0
    in_question = labelled & ~fixed
    counted = in_question if bool(in_question.any()) else labelled
    blocks = torch.arange(len(given), device=given.device).split(max(1, BLOCK_ENTRIES // n_classes))
    counts = torch.zeros(n_classes, n_classes, dtype=torch.float64, device=given.device)
    start = torch.where(fixed, given, predicted.argmax(dim=1))
    counts.index_put_((start[counted], given[counted]), counts.new_ones(()), accumulate=True)
    transition = transition_of(counts)
    probabilities = torch.empty_like(predicted)
    for _ in range(n_passes):
        counts_by_given = torch.zeros_like(counts)
        likelihood = transition.T.to(predicted.dtype).contiguous()
        for rows in blocks:
            block = _posterior_rows(predicted[rows], given[rows], fixed[rows], likelihood)
            probabilities[rows] = block
            known = counted[rows]
            counts_by_given.index_add_(0, given[rows][known], block[known].to(counts.dtype))
        transition = transition_of(sceptical(counts_by_given.T))
    agree = score_of(probabilities, given)[labelled]
    noise_rate = 1 - float(agree.double().mean()) if len(agree) else 0.0
    return Posterior(probabilities, transition, noise_rate)


def decide(probabilities: Tensor, labels: Tensor, given: Tensor, left_alone: Tensor, review_below: float) -> Decision:
    """What became of the labels: `labels` are the decided ones; `left_alone` samples keep theirs and are for review."""
    two = probabilities.topk(min(2, probabilities.shape[1]), dim=1)
    labels = torch.where(left_alone, given, labels)
    runner_up = torch.where(labels == two.indices[:, 0], two.indices[:, -1], two.indices[:, 0])
    confidence = probabilities.gather(1, labels.unsqueeze(1)).squeeze(1)
    status = torch.where(labels == given, KEPT, CORRECTED)
    status = torch.where((confidence < review_below) | left_alone, REVIEW, status)
    status = torch.where(given < 0, FILLED, status)
    return Decision(labels, confidence, runner_up, status, score_of(probabilities, given))


def score_of(probabilities: Tensor, given: Tensor) -> Tensor:
    """(n,) probability of the given label; 0 where there is none."""
    return probabilities.gather(1, given.clamp(min=0).unsqueeze(1)).squeeze(1).masked_fill(given < 0, 0.0)


def _posterior_rows(predicted: Tensor, given: Tensor, fixed: Tensor, likelihood: Tensor) -> Tensor:
    """`likelihood` is T transposed: one row per given label."""
    joint = likelihood[given.clamp(min=0)]
    joint[given < 0] = 1.0
    joint.mul_(predicted)
    joint.div_(joint.sum(dim=1, keepdim=True).clamp_(min=torch.finfo(joint.dtype).tiny))
    joint[fixed] = torch.nn.functional.one_hot(given[fixed], predicted.shape[1]).to(joint.dtype)
    return joint


def sceptical(counts: Tensor) -> Tensor:
    """Counts by (true, given) class with fewer errors, the fewer there are: with SCEPTICAL_BELOW wrong, half of them.

    Repeated, no noise rate below twice that lasts unless p insists.
    """
    off = counts - counts.diagonal().diag()
    noise = float(off.sum() / counts.sum().clamp(min=1))
    believed = off * (noise**2 / (noise**2 + SCEPTICAL_BELOW**2))
    return believed + (counts.sum(dim=1) - believed.sum(dim=1)).diag()


def transition_of(counts: Tensor) -> Tensor:
    """Rows of counts as probabilities, smoothed towards the common off-diagonal rate."""
    n_classes = len(counts)
    noise = 1 - float(counts.diagonal().sum() / counts.sum().clamp(min=1))
    common = counts.new_full((n_classes, n_classes), noise / max(n_classes - 1, 1))
    common.fill_diagonal_(1 - noise)
    smoothed = counts + PRIOR_ROWS * common + FLOOR
    return smoothed / smoothed.sum(dim=1, keepdim=True)

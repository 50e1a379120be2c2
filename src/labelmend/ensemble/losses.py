"""The losses of the paper (Sec. III-E and its ablation), one function per equation.

Knows logits, features, labels and weights of one batch; does not know nets, optimisers or data sets.
Every loss is a mean over its batch or its pairs, so the learning rate does not depend on the batch size.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from labelmend.config import SMOOTHNESS


def weighted_cross_entropy(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """Equation (9), L_pseudo: mean of omega * cross entropy."""
    return (weights * F.cross_entropy(logits, labels, reduction="none")).mean()


def noisy_weights(omega: Tensor, given: Tensor, corrected: Tensor) -> Tensor:
    """Weights of equation (10), L_noisy: omega where the given label was kept, 1 - omega where it was changed."""
    return torch.where(given == corrected, omega, 1 - omega)


def graph_smoothness(
    points: Tensor, labels: Tensor, weights: Tensor, scale: float, distance: str = "l2", epsilon: float = 1e-12
) -> Tensor:
    """Equation (11), L_G: mean over pairs of different label of sqrt(w_s w_t) exp(-scale * dist(s, t)).

    `points` are probability vectors (or features, with "l2"); ordered pairs, so "kl" counts both directions.
    """
    different = labels.unsqueeze(0) != labels.unsqueeze(1)
    n_pairs = different.sum().clamp(min=1)  # without a pair the sum is 0 too; asking would wait for the GPU
    pair_weight = (weights.unsqueeze(0) * weights.unsqueeze(1)).sqrt()
    kernel = torch.exp(-scale * _pairwise(points, distance, epsilon))
    return (pair_weight * kernel * different).sum() / n_pairs


def _pairwise(points: Tensor, distance: str, epsilon: float) -> Tensor:
    if distance == "l2":
        norms = (points * points).sum(dim=1)
        squared = norms.unsqueeze(0) + norms.unsqueeze(1) - 2 * points @ points.T
        return (squared.clamp(min=0) + epsilon).sqrt()  # epsilon: the root has no gradient at 0
    log_points = points.clamp(min=epsilon).log()
    if distance == "kl":
        return (points * log_points).sum(dim=1, keepdim=True) - points @ log_points.T
    middle = (points.unsqueeze(0) + points.unsqueeze(1)) / 2
    entropy = -(points * log_points).sum(dim=1)
    middle_entropy = -(middle * middle.clamp(min=epsilon).log()).sum(dim=2)
    return middle_entropy - (entropy.unsqueeze(0) + entropy.unsqueeze(1)) / 2


def cross_entropy_and_mae(
    logits: Tensor, labels: Tensor, kept: Tensor, weights: Tensor, ce_factor: float, mae_factor: float
) -> Tensor:
    """The ablation's branch loss: cross entropy on kept samples + (1 - p(label)) on changed ones."""
    ce = (F.cross_entropy(logits, labels, reduction="none") * weights * kept).mean()
    mae = ((1 - _probability_of(logits, labels)) * weights * ~kept).mean()
    return ce_factor * ce + mae_factor * mae


def branch_loss(
    name: str,
    features: Tensor,
    logits: Tensor,
    labels: Tensor,
    kept: Tensor,
    weights: Tensor,
    scale: float,
    ce_factor: float,
    mae_factor: float,
) -> Tensor:
    """The loss of all branches in one step, by its name in the graph-smoothness and ablation tables."""
    if name == "cross-entropy":
        return weighted_cross_entropy(logits, labels, weights)
    if name == "cross-entropy-mae":
        return cross_entropy_and_mae(logits, labels, kept, weights, ce_factor, mae_factor)
    if name == "split":
        return split_mae(logits, F.one_hot(labels, logits.shape[1]).to(logits.dtype), kept, ce_factor, mae_factor)
    space, distance, weighted = SMOOTHNESS[name]
    points = logits.softmax(dim=1) if space == "softmax" else features
    return graph_smoothness(points, labels, weights if weighted else torch.ones_like(weights), scale, distance)


def soft_label_loss(logits: Tensor, targets: Tensor, ce_factor: float, mse_factor: float) -> Tensor:
    """The ablation's loss of the corrected-label branch on soft targets: cor_ce + factor * cor_mse."""
    ce = F.cross_entropy(logits, targets)
    mse = F.mse_loss(logits.softmax(dim=1), targets)
    return ce_factor * ce + mse_factor * mse


def split_mae(logits: Tensor, goal: Tensor, kept: Tensor, ce_factor: float, mae_factor: float | Tensor) -> Tensor:
    """The ablation's loss by groups: cross entropy of the kept samples + factor * (1 - <goal, p>) of the changed ones.

    Each group has a mean of its own and omega has no part in it: what is kept is nearly all right, and a kept sample
    that is hard has a low omega.
    """
    distance = 1 - (goal * logits.softmax(dim=1)).sum(dim=1)
    return _split(logits, goal, kept, distance, ce_factor, mae_factor)


def split_mse(logits: Tensor, goal: Tensor, kept: Tensor, ce_factor: float, mse_factor: float | Tensor) -> Tensor:
    """The same with the squared error of the changed samples, a mean over classes, in the place of 1 - <goal, p>."""
    distance = (logits.softmax(dim=1) - goal).square().mean(dim=1)
    return _split(logits, goal, kept, distance, ce_factor, mse_factor)


def _split(
    logits: Tensor, goal: Tensor, kept: Tensor, distance: Tensor, ce_factor: float, changed_factor: float | Tensor
) -> Tensor:
    ce = F.cross_entropy(logits, goal, reduction="none")
    return ce_factor * _mean_over(kept, ce) + changed_factor * _mean_over(~kept, distance)


def _mean_over(members: Tensor, values: Tensor) -> Tensor:
    """0 where there are none; to ask would be to wait for the GPU."""
    return (values * members).sum() / members.sum().clamp(min=1)


def class_imbalance(logits: Tensor) -> Tensor:
    """Divergence of the batch's mean answer from one that has all classes alike: sum 1/C log((1/C) / mean p)."""
    mean = logits.softmax(dim=1).mean(dim=0)
    return -math.log(len(mean)) - mean.clamp(min=1e-12).log().mean()


def confidence(logits: Tensor) -> Tensor:
    """Mean of sum p log p: 0 where the net is sure of every sample, -log C where it is of none."""
    logs = logits.log_softmax(dim=1)
    return (logs.exp() * logs).sum(dim=1).mean()


def mix(values: Tensor, share: Tensor) -> Tensor:
    """Mixup: share * values + (1 - share) * those of its neighbour; batches are in random order."""
    return share * values + (1 - share) * values.roll(1, dims=0)


def consistency(logits: Tensor, teacher: Tensor, threshold: float) -> Tensor:
    """Cross entropy of the logits with what the teacher holds most probable, where it is surer than `threshold`."""
    surest = teacher.softmax(dim=1).max(dim=1)
    return (F.cross_entropy(logits, surest.indices, reduction="none") * (surest.values > threshold)).mean()


def soft_cross_entropy(logits: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Equation (9) for targets that are distributions, as mixup makes them."""
    return (weights * F.cross_entropy(logits, targets, reduction="none")).mean()


def _probability_of(logits: Tensor, labels: Tensor) -> Tensor:
    return logits.softmax(dim=1).gather(1, labels.unsqueeze(1)).squeeze(1)

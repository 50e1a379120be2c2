"""The losses of the paper (Sec. III-E and its ablation), one function per equation; and what they are taken against.

Targets are hard or soft, mixed or not: the rows of the ablation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
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


@dataclass(frozen=True)
class Targets:
    """What the nets of a round learn from. The tensors stay where they are: recorded steps read them there."""

    labels: Tensor
    omega: Tensor
    n_classes: int
    soft: Tensor | None = None  # (n, C); takes the place of labels and omega
    answers: Tensor | None = None  # (n, C), mean of the branches' probabilities; only where something learns from them
    ramp: Tensor | None = None  # how much changed samples count in the semi-supervised step, from 0 to 1

    def set(self, labels: Tensor, omega: Tensor) -> None:
        self.labels.copy_(labels)
        self.omega.copy_(omega)


@dataclass(frozen=True)
class Recipe:
    """Numbers of the corrected-label branch's loss."""

    ce_factor: float = 1.0
    changed_factor: float = 1.0
    mixup_shape: int = 0  # a of Beta(a, a); 0: no mixup
    temperature: float = 1.0  # of soft targets that are made in the step
    class_penalty: float = 0.0


def soft_targets(first: Tensor, second: Tensor, omega: Tensor) -> Tensor:
    """omega * first + (1 - omega) * second; in the paper's rows the second is the mean answer of the branches."""
    weight = omega.unsqueeze(1).to(first.dtype)
    return weight * first + (1 - weight) * second


def sharpened(targets: Tensor, temperature: float) -> Tensor:
    if temperature == 1:
        return targets
    powers = targets ** (1 / temperature)
    return powers / powers.sum(dim=1, keepdim=True)


def mixing_share(shape: int, generator: torch.Generator) -> Tensor:
    """A draw from Beta(shape, shape), which is the median of 2 * shape - 1 uniform draws."""
    if shape == 1:
        return torch.rand((), generator=generator, device=generator.device)
    draws = torch.rand(2 * shape - 1, generator=generator, device=generator.device)
    return draws.sort().values[shape - 1]


def corrected_loss(
    net: nn.Module,
    x: Tensor,
    indices: Tensor,
    targets: Targets,
    mixup: bool,
    ce_factor: float,
    mse_factor: float,
    generator: torch.Generator,
) -> Tensor:
    """The loss of one batch of `corrected_net`, all of it for all samples."""
    if targets.soft is None and not mixup:
        return weighted_cross_entropy(net(x)[1], targets.labels[indices], targets.omega[indices])
    weights, goal = targets.omega[indices], _goal(targets, indices, x.dtype)
    if mixup:
        share = mixing_share(1, generator)
        x, goal, weights = (mix(values, share) for values in (x, goal, weights))
    logits = net(x)[1]
    if targets.soft is None:
        return soft_cross_entropy(logits, goal, weights)
    return soft_label_loss(logits, goal, ce_factor, mse_factor)


def split_loss(
    net: nn.Module,
    x: Tensor,
    indices: Tensor,
    targets: Targets,
    given: Tensor,
    recipe: Recipe,
    generator: torch.Generator,
) -> Tensor:
    """The loss of one batch by groups: cross entropy on kept samples, absolute or squared error on changed ones.

    In mixup a sample has the larger share, and belongs to its own group.
    """
    goal, kept = _goal(targets, indices, x.dtype), targets.labels[indices] == given[indices]
    if recipe.mixup_shape:
        share = _larger(mixing_share(recipe.mixup_shape, generator))
        x, goal = mix(x, share), mix(goal, share)
    logits = net(x)[1]
    by_groups = split_mae if targets.soft is None else split_mse
    return by_groups(logits, goal, kept, recipe.ce_factor, recipe.changed_factor) + _penalty(logits, recipe)


def semi_supervised_loss(
    net: nn.Module,
    views: tuple[Tensor, ...],
    indices: Tensor,
    targets: Targets,
    given: Tensor,
    recipe: Recipe,
    generator: torch.Generator,
) -> Tensor:
    """The loss of one batch whose first half was kept and whose second half was changed, seen in several views.

    Soft targets come from the net's mean answer to the views: beside the given label for kept samples, beside the mean
    answer of the branches for changed ones. They are sharpened, and all views of all samples are mixed with one
    another.
    """
    assert targets.answers is not None
    assert targets.ramp is not None
    x = torch.cat(views)
    with torch.no_grad():  # in training mode, as the method it comes from
        answers = net(x)[1].softmax(dim=1).view(len(views), len(indices), -1).mean(dim=0)
        kept = torch.arange(len(indices), device=x.device) < len(indices) // 2
        labels = F.one_hot(given[indices].clamp(min=0), targets.n_classes).to(answers.dtype)
        first = torch.where(kept.unsqueeze(1), labels, answers)
        second = torch.where(kept.unsqueeze(1), answers, targets.answers[indices])
        goal = sharpened(soft_targets(first, second, targets.omega[indices]), recipe.temperature)
        goal, kept = goal.repeat(len(views), 1), kept.repeat(len(views))
        if recipe.mixup_shape:
            share = _larger(mixing_share(recipe.mixup_shape, generator))
            partner = torch.rand(len(x), generator=generator, device=x.device).argsort()
            x, goal = (share * values + (1 - share) * values[partner] for values in (x, goal))
    logits = net(x)[1]
    loss = split_mse(logits, goal, kept, recipe.ce_factor, recipe.changed_factor * targets.ramp)
    return loss + _penalty(logits, recipe)


def _goal(targets: Targets, indices: Tensor, dtype: torch.dtype) -> Tensor:
    if targets.soft is not None:
        return targets.soft[indices]
    return F.one_hot(targets.labels[indices], targets.n_classes).to(dtype)


def _larger(share: Tensor) -> Tensor:
    return torch.maximum(share, 1 - share)


def _penalty(logits: Tensor, recipe: Recipe) -> Tensor | float:
    return recipe.class_penalty * class_imbalance(logits) if recipe.class_penalty else 0.0

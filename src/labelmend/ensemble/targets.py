"""What the corrected-label branch learns from: hard or soft targets, mixed or not (the ablation's rows).

Knows labels, certainty and one net's batch; does not know votes or graphs. The text leaves open which samples each of
the two losses of that branch is for; the readings are "all" (both, for all samples), "split" (cross entropy for
samples whose label was kept, the other loss for changed ones, as it says of the branches) and "semi-supervised" (the
step of DivideMix, Li, Socher, Hoi 2020, with kept and changed samples as its two groups).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labelmend.ensemble import losses


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
        return losses.weighted_cross_entropy(net(x)[1], targets.labels[indices], targets.omega[indices])
    weights, goal = targets.omega[indices], _goal(targets, indices, x.dtype)
    if mixup:
        share = mixing_share(1, generator)
        x, goal, weights = (losses.mix(values, share) for values in (x, goal, weights))
    logits = net(x)[1]
    if targets.soft is None:
        return losses.soft_cross_entropy(logits, goal, weights)
    return losses.soft_label_loss(logits, goal, ce_factor, mse_factor)


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
        x, goal = losses.mix(x, share), losses.mix(goal, share)
    logits = net(x)[1]
    by_groups = losses.split_mae if targets.soft is None else losses.split_mse
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
    loss = losses.split_mse(logits, goal, kept, recipe.ce_factor, recipe.changed_factor * targets.ramp)
    return loss + _penalty(logits, recipe)


def _goal(targets: Targets, indices: Tensor, dtype: torch.dtype) -> Tensor:
    if targets.soft is not None:
        return targets.soft[indices]
    return F.one_hot(targets.labels[indices], targets.n_classes).to(dtype)


def _larger(share: Tensor) -> Tensor:
    return torch.maximum(share, 1 - share)


def _penalty(logits: Tensor, recipe: Recipe) -> Tensor | float:
    return recipe.class_penalty * losses.class_imbalance(logits) if recipe.class_penalty else 0.0

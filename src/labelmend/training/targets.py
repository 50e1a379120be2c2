"""What the corrected-label branch learns from: hard or soft targets, mixed or not (the ablation's rows).

Knows labels, certainty and one net's batch; does not know votes or graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labelmend.training import losses


@dataclass(frozen=True)
class Targets:
    """What the nets of a round learn from. The tensors stay where they are: recorded steps read them there."""

    labels: Tensor
    omega: Tensor
    n_classes: int
    soft: Tensor | None = None  # (n, C); takes the place of labels and omega

    def set(self, labels: Tensor, omega: Tensor) -> None:
        self.labels.copy_(labels)
        self.omega.copy_(omega)


def soft_targets(first: Tensor, branches: Sequence[Tensor], omega: Tensor) -> Tensor:
    """omega * p_corrected + (1 - omega) * mean of the branches' probabilities."""
    weight = omega.unsqueeze(1).to(first.dtype)
    return weight * first + (1 - weight) * torch.stack(list(branches)).mean(dim=0)


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
    """The loss of one batch of `corrected_net`."""
    if targets.soft is None and not mixup:
        return losses.weighted_cross_entropy(net(x)[1], targets.labels[indices], targets.omega[indices])
    weights = targets.omega[indices]
    if targets.soft is None:
        goal = F.one_hot(targets.labels[indices], targets.n_classes).to(x.dtype)
    else:
        goal = targets.soft[indices]
    if mixup:
        share = torch.rand((), generator=generator, device=x.device)  # Beta(1, 1)
        x, goal, weights = (losses.mix(values, share) for values in (x, goal, weights))
    logits = net(x)[1]
    if targets.soft is None:
        return losses.soft_cross_entropy(logits, goal, weights)
    return losses.soft_label_loss(logits, goal, ce_factor, mse_factor)

"""A run ends where its numbers are numbers no more: what nets of NaN would say of labels is worth nothing.

Knows nets and losses; does not know what they are for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from torch import nn

from labelmend.errors import TrainingError

LARGEST_WEIGHT = 1e12  # no net that learned something is near it


def refuse_diverged(stage: str, lr: float, nets: Iterable[nn.Module], losses: Iterable[float | None] = ()) -> None:
    """An error that says what to change. `stage`: after what, in words."""
    if all(loss is None or math.isfinite(loss) for loss in losses) and all(map(has_finite_weights, nets)):
        return
    raise TrainingError(
        f"weights and losses must stay finite. After {stage} some are infinite, NaN or beyond all use; make lr smaller "
        f"(it is {lr:g}, the default is 0.05), or look for features or weights that are far too large."
    )


def has_finite_weights(net: nn.Module) -> bool:
    """Also of a size that a product of a few layers stays finite."""
    return all(bool((weight.detach().abs() < LARGEST_WEIGHT).all()) for weight in net.parameters())  # NaN is not

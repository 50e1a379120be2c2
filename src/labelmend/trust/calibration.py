"""Confidence that means what it says: reliability, its error in one number, and the temperature that mends it.

A temperature divides all log probabilities of a sample: above 1 it softens them, and the most probable class stays the
most probable. Knows probabilities and shares; does not know where they come from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from labelmend.trust.audit_record import Bin

BINS = 10  # of equal width, as in most of the literature
TEMPERATURES = (0.5, 2.5)  # human labels ask for 1.5 to 1.9; what asks for more is not a matter of temperature
HALVINGS = 30
LEAST = 1e-12  # probability: nothing is impossible


def calibration_error(bins: Sequence[Bin]) -> float:
    """Expected calibration error: the mean distance between confidence and share of right labels."""
    return sum(one.share * abs(one.confidence - one.right) for one in bins)


def bin_of(confidence: Tensor) -> Tensor:
    return (confidence * BINS).long().clamp(max=BINS - 1)


def reliability(confidence: Tensor, right: Tensor) -> tuple[Bin, ...]:
    """The curve where it is known which labels are right; empty bins are left out."""
    where, found = bin_of(confidence), []
    for number in range(BINS):
        inside = where == number
        if bool(inside.any()):
            values = inside, confidence[inside], right[inside]
            found.append(Bin(*(float(value.double().mean()) for value in values)))
    return tuple(found)


def temper(probabilities: Tensor, temperature: float, fixed: Tensor) -> Tensor:
    """Probabilities at a temperature; rows of `fixed` samples, which are certain, stay as they are."""
    tempered = (probabilities.clamp(min=LEAST).log() / temperature).softmax(dim=1)
    return torch.where(fixed.unsqueeze(1), probabilities, tempered)


def temperature_for(probabilities: Tensor, labels: Tensor, right: float) -> float:
    """The temperature at which the mean probability of the labels is the share of them that is right.

    The mean falls as the temperature rises; bisection on a logarithmic scale between TEMPERATURES.
    """
    none_fixed = torch.zeros_like(labels, dtype=torch.bool)
    low, high = TEMPERATURES
    for _ in range(HALVINGS):
        middle = math.sqrt(low * high)
        mean = float(temper(probabilities, middle, none_fixed).gather(1, labels.unsqueeze(1)).double().mean())
        low, high = (middle, high) if mean > right else (low, middle)
    return math.sqrt(low * high)

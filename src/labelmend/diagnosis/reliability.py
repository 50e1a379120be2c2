"""How far a figure can be trusted: 90 % intervals, reliability of confidence and the temperature that mends it.

Wilson's interval for a share of counted cases, Student's over repetitions. Records are plain and know JSON.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from scipy.special import ndtri, stdtrit  # scipy.stats says the same and takes most of a second to load
from torch import Tensor


@dataclass(frozen=True)
class Share:
    """A part of a whole, with its 90 % interval; all None where the whole is empty."""

    value: float | None
    low: float | None
    high: float | None
    count: int  # cases the part was counted among


@dataclass(frozen=True)
class Bin:
    """Samples of about the same confidence."""

    share: float  # of all samples
    confidence: float  # on average
    right: float  # share of right labels among them


@dataclass(frozen=True)
class Audit:
    """What became of errors that were planted, and what follows for all labels."""

    share: float  # of the labels that was asked for
    planted: int
    found: Share  # planted errors that got another label; Wilson's interval
    mended: Share  # that got the label back that was there; likewise
    broken: Share  # good labels changed, as a share of all good ones; the interval follows from that of found
    right: float  # estimated share of labels that are right after the run
    temperature: float | None  # None: too few errors to fit one, confidence is as the run had it
    calibration_error_before: float  # expected calibration error, by the planted errors
    calibration_error: float  # after the temperature
    curve: tuple[Bin, ...]  # reliability of the confidence in the result


def audit_from(record: Mapping[str, Any]) -> Audit:
    """An audit from its JSON."""
    shares = {name: Share(**record[name]) for name in ("found", "mended", "broken")}
    return Audit(**{**record, **shares, "curve": tuple(Bin(**one) for one in record["curve"])})


LEVEL = 0.90


def wilson(part: int, whole: int, level: float = LEVEL) -> Share:
    """Wilson's score interval: right also near 0 and 1, where the usual one is too narrow or leaves [0, 1]."""
    if whole == 0:
        return Share(None, None, None, 0)
    z = float(ndtri((1 + level) / 2))
    share, extra = part / whole, z * z / whole
    centre = (share + extra / 2) / (1 + extra)
    half = z * math.sqrt(share * (1 - share) / whole + extra / (4 * whole)) / (1 + extra)
    # The ends are exact where nothing, or everything, was counted; rounding must not leave the value outside.
    return Share(share, min(max(0.0, centre - half), share), max(min(1.0, centre + half), share), whole)


def over_repetitions(shares: Sequence[float | None], count: int, level: float = LEVEL) -> Share:
    """Mean of the shares of several repetitions, and Student's interval of that mean, cut to [0, 1]."""
    values = [share for share in shares if share is not None]
    if not values:
        return Share(None, None, None, 0)
    mean = sum(values) / len(values)
    if len(values) == 1:
        return Share(mean, None, None, count)
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    half = float(stdtrit(len(values) - 1, (1 + level) / 2)) * math.sqrt(variance / len(values))
    return Share(mean, max(0.0, mean - half), min(1.0, mean + half), count)


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

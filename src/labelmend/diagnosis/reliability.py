"""How far a figure can be trusted: 90 % intervals, reliability of the confidence and the temperature that corrects it.

Wilson's interval for a share of counted cases, Student's over repetitions, Jeffreys' for expected counts. Records are
plain and know JSON.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri, stdtrit  # scipy.stats says the same and takes most of a second to load
from torch import Tensor

LEVEL = 0.90  # probability of every interval
BINS = 10  # of equal width, as in most of the literature
TEMPERATURES = (0.5, 2.5)  # human labels need 1.5 to 1.9; what needs more is not a matter of temperature
HALVINGS = 30
LEAST = 1e-12  # probability: nothing is impossible
Floats = NDArray[np.floating]


@dataclass(frozen=True)
class Interval:
    """An estimate and its 90 % interval."""

    value: float
    low: float
    high: float
    count: int | None = None  # cases among which a share was counted

    @classmethod
    def around(cls, value: float, low: float, high: float) -> Interval:
        """The ends never exclude the value."""
        return cls(float(value), float(min(low, value)), float(max(high, value)))


@dataclass(frozen=True)
class Bin:
    """Samples of about the same confidence."""

    share: float  # of all samples
    confidence: float  # on average
    right: float  # share of right labels among them


@dataclass(frozen=True)
class Audit:
    """What became of errors that were planted, and what follows for all labels."""

    share: float  # of the labels in which errors were to be planted
    planted: int
    found: Interval  # planted errors that got another label; Wilson's interval
    mended: Interval  # that got their label back; likewise
    broken: Interval  # good labels changed, as a share of all good ones; the interval follows from that of found
    right: float  # estimated share of labels that are right after the run
    temperature: float | None  # None: too few errors to fit one, confidence is as the run had it
    calibration_error_before: float  # expected calibration error, by the planted errors
    calibration_error: float  # after the temperature
    curve: tuple[Bin, ...]  # reliability of the confidence in the result


def audit_from(record: Mapping[str, Any]) -> Audit:
    """An audit from its JSON."""
    shares = {name: Interval(**record[name]) for name in ("found", "mended", "broken")}
    return Audit(**{**record, **shares, "curve": tuple(Bin(**one) for one in record["curve"])})


def wilson(part: int, whole: int) -> Interval:
    """Wilson's score interval: right also near 0 and 1, where the usual one is too narrow or leaves [0, 1]."""
    z = float(ndtri((1 + LEVEL) / 2))
    share, extra = part / whole, z * z / whole
    centre = (share + extra / 2) / (1 + extra)
    half = z * math.sqrt(share * (1 - share) / whole + extra / (4 * whole)) / (1 + extra)
    # The ends are exact where nothing, or everything, was counted; rounding must not leave the value outside.
    return Interval(share, min(max(0.0, centre - half), share), max(min(1.0, centre + half), share), whole)


def over_repetitions(shares: Sequence[float], count: int) -> Interval:
    """Mean of the shares of two or more repetitions, and Student's interval of that mean, cut to [0, 1]."""
    mean = sum(shares) / len(shares)
    variance = sum((share - mean) ** 2 for share in shares) / (len(shares) - 1)
    half = float(stdtrit(len(shares) - 1, (1 + LEVEL) / 2)) * math.sqrt(variance / len(shares))
    return Interval(mean, max(0.0, mean - half), min(1.0, mean + half), count)


def jeffreys(counts: Floats, totals: Floats) -> Floats:
    """Lower and upper ends of shares counts / totals: quantiles of Jeffreys' posterior; less than one may be none."""
    tail = (1 - LEVEL) / 2
    a, b = counts + 0.5, np.maximum(totals - counts, 0) + 0.5
    low = np.where(counts < 1, 0.0, betaincinv(a, b, tail))
    return np.stack([low, betaincinv(a, b, 1 - tail)])


def calibration_error(bins: Sequence[Bin]) -> float:
    """Expected calibration error: the mean distance between confidence and share of right labels."""
    return sum(one.share * abs(one.confidence - one.right) for one in bins)


def bin_of(confidence: Tensor) -> Tensor:
    return (confidence * BINS).long().clamp(max=BINS - 1)


def temper(probabilities: Tensor, temperature: float) -> Tensor:
    return (probabilities.clamp(min=LEAST).log() / temperature).softmax(dim=1)


def temperature_for(probabilities: Tensor, labels: Tensor, right: float) -> float:
    """The temperature at which the mean probability of the labels is the share of them that is right.

    The mean falls as the temperature rises; bisection on a logarithmic scale between TEMPERATURES.
    """
    low, high = TEMPERATURES
    for _ in range(HALVINGS):
        middle = math.sqrt(low * high)
        mean = float(temper(probabilities, middle).gather(1, labels.unsqueeze(1)).double().mean())
        low, high = (middle, high) if mean > right else (low, middle)
    return math.sqrt(low * high)

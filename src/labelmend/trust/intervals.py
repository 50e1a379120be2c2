"""How far a figure can be trusted: 90 % intervals. Wilson's for a share of counted cases, Student's over repetitions.

Knows numbers; does not know what was counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.special import ndtri, stdtrit  # scipy.stats says the same and takes most of a second to load

from labelmend.trust.audit_record import Share

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

"""Means over cells with their standard error over families: sets of one family err together, whatever their number."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Mean:
    value: float
    error: float | None  # None: a single family
    n: int  # cells
    families: int

    def text(self, decimals: int = 1, sign: bool = False, bare: bool = False) -> str:
        number = f"{self.value:{'+' if sign else ''}.{decimals}f}"
        return number if bare or self.error is None else f"{number} ±{self.error:.{decimals}f}"


def mean_over_families(pairs: Iterable[tuple[str, float]]) -> Mean | None:
    """Of (family, value) pairs: every cell weighs alike, and a family's deviations are summed before they are squared.

    The cluster-robust error of a mean: sqrt(G / (G - 1) * sum over families of (sum of its deviations)^2) / cells.
    """
    known: Sequence[tuple[str, float]] = list(pairs)
    if not known:
        return None
    mean = sum(value for _, value in known) / len(known)
    sums: dict[str, float] = {}
    for family, value in known:
        sums[family] = sums.get(family, 0.0) + value - mean
    g = len(sums)
    if g == 1:
        return Mean(mean, None, len(known), 1)
    error = math.sqrt(g / (g - 1) * sum(total**2 for total in sums.values())) / len(known)
    return Mean(mean, error, len(known), g)

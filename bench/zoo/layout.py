"""A table of the zoo: means and words under headings, as text for the terminal and as plain values for JSON.

Means over cells have a standard error over families: sets of one family err together, whatever their number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

NOTHING = "-"


@dataclass(frozen=True)
class Mean:
    value: float
    error: float | None  # None: a single family
    n: int  # cells
    families: int

    def text(self, decimals: int = 1, sign: bool = False, bare: bool = False) -> str:
        number = f"{self.value:{'+' if sign else ''}.{decimals}f}"
        return number if bare or self.error is None else f"{number} ±{self.error:.{decimals}f}"


Entry = Mean | float | int | str | None


@dataclass(frozen=True)
class Table:
    title: str
    head: Sequence[str]  # of the columns after the first
    rows: Sequence[tuple[str, Sequence[Entry]]]
    decimals: int = 1
    sign: bool = False  # of means: they are differences
    notes: Sequence[str] = field(default_factory=tuple)

    def lines(self) -> list[str]:
        grid = [["", *self.head], *([name, *map(self.text, entries)] for name, entries in self.rows)]
        widths = [max(len(row[i]) for row in grid) for i in range(len(grid[0]))]
        body = [
            "  ".join(
                text.ljust(width) if i == 0 else text.rjust(width)
                for i, (text, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in grid
        ]
        return [self.title, *(body if any(self.head) else body[1:]), *self.notes]

    def text(self, entry: Entry) -> str:
        if isinstance(entry, Mean):
            return entry.text(self.decimals, self.sign)
        if isinstance(entry, float):
            return f"{entry:.{self.decimals}f}"
        return NOTHING if entry is None else str(entry)

    def plain(self) -> dict[str, Any]:
        rows = [{"name": name, "values": [plain_entry(entry) for entry in entries]} for name, entries in self.rows]
        return {"title": self.title, "head": list(self.head), "rows": rows, "notes": list(self.notes)}


def plain_entry(entry: Entry) -> Any:
    if not isinstance(entry, Mean):
        return round(entry, 6) if isinstance(entry, float) else entry
    error = None if entry.error is None else round(entry.error, 6)
    return {"mean": round(entry.value, 6), "error": error, "cells": entry.n, "families": entry.families}


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

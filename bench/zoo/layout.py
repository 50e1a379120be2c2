"""A table of the zoo: means and words under headings, as text for the terminal and as plain values for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.zoo.families import Mean

NOTHING = "-"
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

"""Results as Markdown tables, the paper's figures beside ours. Prints only what was measured or stands in the paper."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.paper.experiment import Result
from bench.paper.rows import TITLES

NOT_RUN = "not run"
NOTHING = "-"


@dataclass(frozen=True)
class Shape:
    """What a table shows. Figures are shares, shown in per cent and joined by " / "."""

    rows: Sequence[str]
    columns: Mapping[str, Sequence[str]]  # of each data set
    figures: Sequence[str]
    legend: str  # what the figures are
    paper: Mapping[tuple[str, str], Sequence[float]] = field(default_factory=dict)  # (row, column) -> in per cent
    paper_rows: Mapping[str, float] = field(default_factory=dict)  # for a row, on data of the paper's own
    paper_data: str = ""  # which
    row_heading: str = ""
    epochs_by_row: bool = False  # rows have epochs of their own, and share a table all the same


@dataclass(frozen=True)
class Group:
    """Results that belong into one table: the same data, epochs and settings common to all rows."""

    data: str
    epochs: int | None
    common: str
    results: Sequence[Result]
    column: str = ""  # where it is of one column only

    @property
    def title(self) -> str:
        shared = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in json.loads(self.common).items())
        epochs = None if self.epochs is None else f"{self.epochs} epochs"
        return ", ".join(part for part in (self.data, epochs, shared, self.column) if part)


def show_tables(shape: Shape, results: Sequence[Result]) -> str:
    """A table per data set and kind of run; a data set without results is a table of "not run"."""
    parts = []
    groups = grouped(results, not shape.epochs_by_row)
    for data in dict.fromkeys([*shape.columns, *(group.data for group in groups)]):
        here = [group for group in groups if group.data == data]
        parts += [f"**{group.title}**\n\n{table(shape, data, group.results)}" for group in here]
        if not here:
            parts.append(f"**{data}**\n\n{table(shape, data, ())}")
    return "\n\n".join([*parts, *closing_lines(shape.legend, results)])


def grouped(results: Sequence[Result], by_epochs: bool = True) -> list[Group]:
    """By data, epochs and common settings; of two runs of one cell the later one counts."""
    groups: dict[tuple[str, int | None, str], dict[tuple[str, str, int], Result]] = {}
    for result in results:
        cell = result.cell
        common = json.dumps({k: v for k, v in cell.settings.get("common", {}).items() if v is not None}, sort_keys=True)
        key = (cell.data, cell.epochs if by_epochs else None, common)
        groups.setdefault(key, {})[cell.row, cell.column, cell.seed] = result
    return [Group(*key, list(found.values())) for key, found in groups.items()]


def table(shape: Shape, data: str, results: Sequence[Result]) -> str:
    columns = list(dict.fromkeys([*shape.columns.get(data, ()), *(r.cell.column for r in results)]))
    rows = list(dict.fromkeys([*shape.rows, *(r.cell.row for r in results)]))
    usual = max((len(cell_results(results, row, c)) for row in rows for c in columns), default=0)
    beside = bool(shape.paper)
    head = [
        shape.row_heading,
        *([""] if beside else []),
        *columns,
        *(["epochs"] if shape.epochs_by_row else []),
        "seconds",
    ]
    head += [f"paper, {shape.paper_data}"] if shape.paper_rows else []
    lines = [head, ["---"] * len(head)]
    for row in rows:
        ours = [cell_text(shape.figures, cell_results(results, row, column), usual) for column in columns]
        epochs = [epochs_text(results, row)] if shape.epochs_by_row else []
        line = [TITLES.get(row, row), *(["ours"] if beside else []), *ours, *epochs, seconds_text(results, row)]
        line += [f"{shape.paper_rows[row]:.2f}" if row in shape.paper_rows else NOTHING] if shape.paper_rows else []
        lines.append(line)
        theirs = [shape.paper.get((row, column)) for column in columns]
        if any(theirs):
            lines.append(["", "paper", *(paper_text(figures) for figures in theirs), ""])
    return markdown(lines)


def cell_results(results: Sequence[Result], row: str, column: str) -> list[Result]:
    return [result for result in results if (result.cell.row, result.cell.column) == (row, column)]


def cell_text(figures: Sequence[str], results: Sequence[Result], usual: int) -> str:
    """Mean ± spread of each figure in per cent; n where it is not that of the others."""
    if not results:
        return NOT_RUN
    texts = []
    for figure in figures:
        values = [100 * value for r in results if (value := r.figures.get(figure)) is not None]
        texts.append(spread_text(values) if values else NOTHING)
    return " / ".join(texts) + ("" if len(results) == usual else f" (n = {len(results)})")


def spread_text(values: Sequence[float]) -> str:
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.1f}{spread}"


def paper_text(figures: Sequence[float] | None) -> str:
    """With the one or two decimals that the paper prints."""
    return NOTHING if figures is None else " / ".join(f"{value:.2f}".removesuffix("0") for value in figures)


def seconds_text(results: Sequence[Result], row: str) -> str:
    known = [s for r in results if r.cell.row == row and (s := r.figures.get("seconds")) is not None]
    if not known:
        return NOTHING
    mean = statistics.fmean(known)
    return f"{mean:,.0f}" if mean >= 10 else f"{mean:.1f}"


def epochs_text(results: Sequence[Result], row: str) -> str:
    """0 is a method that has none."""
    found = sorted({r.cell.epochs for r in results if r.cell.row == row} - {0})
    return ", ".join(map(str, found)) or NOTHING


def closing_lines(legend: str, results: Sequence[Result]) -> list[str]:
    """What the figures are, how many runs, on which machine, with which versions."""
    if not results:
        return [f"{legend} Nothing of it has been run."]
    places = dict.fromkeys(_place(result) for result in results)
    seeds: dict[str, set[int]] = {}
    for result in results:
        seeds.setdefault(result.cell.data, set()).add(result.cell.seed)
    n = ", ".join(f"{data} {len(found)}" for data, found in seeds.items())
    return [f"{legend} n = {n}. Seconds: mean of the runs of a row, tests not counted. {' '.join(places)}"]


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """A table that can be read in a terminal as well."""
    widths = [max(3, *(len(line[i]) for line in lines)) for i in range(len(lines[0]))]
    padded = [
        [("-" * width if text == "---" else text.ljust(width)) for text, width in zip(line, widths, strict=True)]
        for line in lines
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in padded)


def _place(result: Result) -> str:
    machine: Mapping[str, Any] = result.machine
    jobs = f", {machine['jobs']} at a time" if machine.get("jobs", 1) > 1 else ""
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items() if version)
    gpu = machine.get("gpu") or "No GPU"
    return f"{gpu}; {machine['cpu']}, cores {machine['cores']}, threads {machine['threads']}{jobs}; {versions}."

"""Charts of results: values by setting with their spread, values by epoch, histograms, maps. Each on one sheet.

Knows results and drawings; every number drawn stands in the table beside it or in the results.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.paper.drawing import COLOURS, PALE, Sheet
from bench.paper.experiment import Result
from bench.paper.tables import Group, cell_results, grouped
from labelmend.report.drawings import few_of, nice_ticks

WIDTH, HEIGHT = 430, 250  # of one panel
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 34, 44
LEGEND_LINE = 18
FIGURES = {"test_last": "test accuracy, %", "label_accuracy": "labels right, %"}


@dataclass(frozen=True)
class Series:
    """Values at places 0, 1, ... of an axis, or None; with a spread where there are several runs."""

    name: str
    values: Sequence[float | None]
    spreads: Sequence[float] = ()


class Panel:
    """A plot with axes in one part of a sheet."""

    def __init__(self, sheet: Sheet, x: float, y: float, title: str, n_places: int, low: float, high: float) -> None:
        self.sheet, self.x, self.y, self.n_places = sheet, x, y, n_places
        self.ticks = nice_ticks(low, high)
        sheet.text(x + LEFT, y + 18, title, size=13)
        decimals = max(0, -math.floor(math.log10(self.ticks[1] - self.ticks[0]) + 1e-9))
        for tick in self.ticks:
            up = self.at(0, tick)[1]
            sheet.line([(x + LEFT, up), (x + WIDTH - RIGHT, up)], PALE)
            sheet.text(x + LEFT - 6, up + 4, f"{tick:,.{decimals}f}", "end", 11)

    def at(self, place: float, value: float) -> tuple[float, float]:
        across = (place + 0.5) / max(self.n_places, 1)
        up = (value - self.ticks[0]) / (self.ticks[-1] - self.ticks[0])
        return self.x + LEFT + across * (WIDTH - LEFT - RIGHT), self.y + HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    def name_places(self, names: Sequence[str], about: str) -> None:
        for place in few_of(range(len(names)), 16 if len(names) <= 16 else 9):
            self.sheet.text(self.at(place, 0)[0], self.y + HEIGHT - BOTTOM + 16, names[place], "middle", 11)
        self.sheet.text(self.x + (LEFT + WIDTH - RIGHT) / 2, self.y + HEIGHT - 8, about, "middle", 11)

    def name_edges(self, values: Sequence[float], about: str) -> None:
        """Numbers from the first to the last edge of the bars."""
        for value in values:
            across = self.at((value - values[0]) / (values[-1] - values[0]) * self.n_places - 0.5, 0)[0]
            self.sheet.text(across, self.y + HEIGHT - BOTTOM + 16, f"{value:g}", "middle", 11)
        self.sheet.text(self.x + (LEFT + WIDTH - RIGHT) / 2, self.y + HEIGHT - 8, about, "middle", 11)

    def draw(self, series: Series, colour: str) -> None:
        known = [(place, value) for place, value in enumerate(series.values) if value is not None]
        self.sheet.line([self.at(place, value) for place, value in known], colour, 1.8)
        for place, value in known if len(known) <= 40 else []:
            self.sheet.dot(*self.at(place, value), 3, colour)
            if series.spreads and series.spreads[place] > 0:
                ends = [self.at(place, value + sign * series.spreads[place]) for sign in (-1, 1)]
                self.sheet.line(ends, colour)

    def bars(self, counts: Sequence[Sequence[float]], colours: Sequence[str]) -> None:
        """Stacked bars, one at each place."""
        wide = 0.86 * (WIDTH - LEFT - RIGHT) / self.n_places
        for place, parts in enumerate(zip(*counts, strict=True)):
            floor = 0.0
            for part, colour in zip(parts, colours, strict=True):
                middle, top = self.at(place, floor + part)
                self.sheet.box(middle - wide / 2, top, wide, self.at(place, floor)[1] - top, colour)
                floor += part


def draw_by_row(name: str, axis: str, prefix: str, results: Sequence[Result], images: Path) -> str:
    """Both figures over the rows, a panel each, a line per column; one drawing per data set and kind of run."""
    return _each_group(name, results, images, lambda group: _by_row(group, axis, prefix))


def draw_in_panels(name: str, panels: Mapping[str, Sequence[str]], results: Sequence[Result], images: Path) -> str:
    """The test accuracy over the rows of each panel."""
    return _each_group(name, results, images, lambda group: _in_panels(group, panels))


def draw_curves(name: str, curves: Mapping[str, str], results: Sequence[Result], images: Path) -> str:
    """Curves over the epochs, a panel each, a line per row; one drawing per data set, column and kind of run."""
    return _each_group(name, results, images, lambda group: _over_epochs(group, curves), by_column=True)


def save_and_link(sheet: Sheet, images: Path, name: str, about: str) -> str:
    """The drawing as Markdown; the page stands beside the folder of images."""
    sheet.save(images / f"paper-{name}", about)
    return f"![{about}]({images.name}/paper-{name}.svg)"


def file_name(*parts: str) -> str:
    words = "-".join(parts).lower().replace("%", "")
    return "-".join("".join(c if c.isalnum() else " " for c in words).split())


def legend(sheet: Sheet, names: Sequence[str], x: float, y: float, wide: float) -> float:
    """Names with their colours in lines of at most `wide`; the height they take."""
    across, down = x, y
    for number, name in enumerate(names):
        length = 26 + 6.4 * len(name)
        if across > x and across + length > x + wide:
            across, down = x, down + LEGEND_LINE
        sheet.box(across, down - 9, 12, 10, COLOURS[number % len(COLOURS)])
        sheet.text(across + 17, down, name, size=12)
        across += length
    return down - y + LEGEND_LINE


def _each_group(
    name: str,
    results: Sequence[Result],
    images: Path,
    draw: Callable[[Group], Sheet],
    by_column: bool = False,
) -> str:
    links = []
    for group in grouped(results):
        columns = dict.fromkeys(r.cell.column for r in group.results) if by_column else {"": None}
        for column in columns:
            here = [r for r in group.results if column in ("", r.cell.column)]
            part = Group(group.data, group.epochs, group.common, here)
            title = f"{name}: {group.title}{', ' + column if column else ''}"
            links.append(save_and_link(draw(part), images, file_name(name, group.title, column), title))
    return "\n\n".join(links)


def _rows_and_columns(group: Group) -> tuple[list[str], list[str]]:
    rows = dict.fromkeys(r.cell.row for r in group.results)
    return list(rows), list(dict.fromkeys(r.cell.column for r in group.results))


def _by_row(group: Group, axis: str, prefix: str) -> Sheet:
    rows, columns = _rows_and_columns(group)
    shown = [figure for figure in FIGURES if any(r.figures.get(figure) is not None for r in group.results)]
    sheet = Sheet(WIDTH * max(len(shown), 1), HEIGHT + LEGEND_LINE + 8)
    for number, figure in enumerate(shown):
        lines = [_series(group.results, rows, column, figure) for column in columns]
        panel = _panel_for(sheet, number * WIDTH, FIGURES[figure], lines, len(rows))
        for line, colour in zip(lines, COLOURS, strict=False):
            panel.draw(line, colour)
        panel.name_places([row.removeprefix(prefix) for row in rows], axis)
    legend(sheet, columns, LEFT, HEIGHT + 12, sheet.width - LEFT)
    return sheet


def _in_panels(group: Group, panels: Mapping[str, Sequence[str]]) -> Sheet:
    _, columns = _rows_and_columns(group)
    tested = any(r.figures.get("test_last") is not None for r in group.results)
    figure = "test_last" if tested else "label_accuracy"
    sheet = Sheet(WIDTH * len(panels), HEIGHT + LEGEND_LINE + 8)
    everything = [_series(group.results, rows, c, figure) for rows in panels.values() for c in columns]
    for number, (title, rows) in enumerate(panels.items()):
        lines = [_series(group.results, rows, column, figure) for column in columns]
        panel = _panel_for(sheet, number * WIDTH, f"{title}: {FIGURES[figure]}", everything, len(rows))
        for line, colour in zip(lines, COLOURS, strict=False):
            panel.draw(line, colour)
        panel.name_places([row.replace("M = ", "(").replace("B = ", "") + ")" for row in rows], "(M, B)")
    legend(sheet, columns, LEFT, HEIGHT + 12, sheet.width - LEFT)
    return sheet


def _over_epochs(group: Group, curves: Mapping[str, str]) -> Sheet:
    rows, _ = _rows_and_columns(group)
    shown = {name: text for name, text in curves.items() if any(r.measured.curves.get(name) for r in group.results)}
    sheet = Sheet(WIDTH * max(len(shown), 1), HEIGHT + LEGEND_LINE + 8)
    for number, (name, text) in enumerate(shown.items()):
        lines = [_mean_curve([r for r in group.results if r.cell.row == row], row, name) for row in rows]
        n_epochs = max(len(line.values) for line in lines)
        panel = _panel_for(sheet, number * WIDTH, text, lines, n_epochs)
        for line, colour in zip(lines, COLOURS, strict=False):
            panel.draw(line, colour)
        panel.name_places([str(epoch + 1) for epoch in range(n_epochs)], "epoch")
    legend(sheet, rows, LEFT, HEIGHT + 12, sheet.width - LEFT)
    return sheet


def _panel_for(sheet: Sheet, x: float, title: str, lines: Sequence[Series], n_places: int) -> Panel:
    """A panel whose axis holds all lines with their spread."""
    ends = [
        value + sign * (line.spreads[place] if line.spreads else 0.0)
        for line in lines
        for place, value in enumerate(line.values)
        if value is not None
        for sign in (-1, 1)
    ] or [0.0, 1.0]
    return Panel(sheet, x, 0, title, n_places, min(ends), max(ends))


def _series(results: Sequence[Result], rows: Sequence[str], column: str, figure: str) -> Series:
    values: list[float | None] = []
    spreads = []
    for row in rows:
        found = [100 * v for r in cell_results(results, row, column) if (v := r.figures.get(figure)) is not None]
        values.append(statistics.fmean(found) if found else None)
        spreads.append(statistics.stdev(found) if len(found) > 1 else 0.0)
    return Series(column, values, spreads)


def _mean_curve(results: Sequence[Result], row: str, name: str) -> Series:
    """The mean over the seeds, epoch by epoch."""
    found = [r.measured.curves[name] for r in results if r.measured.curves.get(name)]
    scale = 1.0 if name == "similarity" else 100.0
    return Series(row, [scale * statistics.fmean(values) for values in zip(*found, strict=False)])

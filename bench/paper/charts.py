"""Figures by matplotlib: values by setting with their spread, and values by epoch, drawn from results.

Knows results; every number drawn stands in the table beside the figure or in the file of results. Figures are made
without pyplot, so no window and no global state; matplotlib is imported when the first one is drawn.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.paper.experiment import Result
from bench.paper.tables import Group, cell_results, grouped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 4.3, 2.6  # inches of one panel
FIGURES = {"test_last": "test accuracy, %", "label_accuracy": "labels right, %"}
# Told apart by people who see few colours too; the first six are those of Okabe and Ito, in another order.
COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b6b6b", "#7a4f9a", "#8c2d04", "#a6a600",
)  # fmt: skip
MOST_DOTS = 40  # of a line; more would hide it
LETTERS = 14  # of a legend, to an inch


@dataclass(frozen=True)
class Line:
    """Values at places 0, 1, ... of an axis; places without a result are left out."""

    name: str
    places: Sequence[int]
    values: Sequence[float]
    spreads: Sequence[float] | None = None


@dataclass(frozen=True)
class Panel:
    title: str
    axis: str
    lines: Sequence[Line]
    names: Sequence[str] | None = None  # of the places; None: epochs, counted from 1


def draw_by_row(name: str, axis: str, prefix: str, results: Sequence[Result], images: Path) -> str:
    """Both figures over the rows, a panel each, a line per column; one drawing per data set and kind of run."""

    def draw(group: Group) -> Figure:
        rows, columns = rows_and_columns(group)
        shown = [figure for figure in FIGURES if _known(group, figure)]
        names = [row.removeprefix(prefix) for row in rows]
        return panels_figure([Panel(FIGURES[f], axis, _lines(group, rows, columns, f), names) for f in shown])

    return _each_group(name, grouped(results), images, draw)


def draw_in_panels(name: str, panels: Mapping[str, Sequence[str]], results: Sequence[Result], images: Path) -> str:
    """The test accuracy over the rows of each panel."""

    def draw(group: Group) -> Figure:
        figure = "test_last" if _known(group, "test_last") else "label_accuracy"
        _, columns = rows_and_columns(group)
        drawn = []
        for title, rows in panels.items():
            names = [row.replace("M = ", "(").replace("B = ", "") + ")" for row in rows]
            drawn.append(Panel(f"{title}: {FIGURES[figure]}", "(M, B)", _lines(group, rows, columns, figure), names))
        return panels_figure(drawn, one_scale=True)

    return _each_group(name, grouped(results), images, draw)


def draw_curves(name: str, curves: Mapping[str, str], results: Sequence[Result], images: Path) -> str:
    """Curves over the epochs, a panel each, a line per row; one drawing per data set, column and kind of run."""

    def draw(group: Group) -> Figure:
        rows, _ = rows_and_columns(group)
        shown = {key: text for key, text in curves.items() if any(r.measured.curves.get(key) for r in group.results)}
        return panels_figure([Panel(text, "epoch", _mean_curves(group, rows, key)) for key, text in shown.items()])

    return _each_group(name, by_column(results), images, draw)


def by_column(results: Sequence[Result]) -> list[Group]:
    """A group of each column, which its title names."""
    return [
        replace(group, results=[r for r in group.results if r.cell.column == column], column=column)
        for group in grouped(results)
        for column in rows_and_columns(group)[1]
    ]


def rows_and_columns(group: Group) -> tuple[list[str], list[str]]:
    rows = dict.fromkeys(r.cell.row for r in group.results)
    return list(rows), list(dict.fromkeys(r.cell.column for r in group.results))


def panels_figure(panels: Sequence[Panel], one_scale: bool = False) -> Figure:
    figure, axes = new_figure(1, max(len(panels), 1), WIDTH, HEIGHT, sharey=one_scale)
    for place, panel in zip(axes, panels, strict=False):
        for line in panel.lines:
            first = 0 if panel.names else 1
            dot = "o" if len(line.places) <= MOST_DOTS else ""
            across = [first + number for number in line.places]
            place.errorbar(across, line.values, line.spreads, fmt=f"{dot}-", markersize=4, capsize=2, label=line.name)
        place.set(title=panel.title, xlabel=panel.axis)
        if panel.names:
            place.set_xticks(range(len(panel.names)), panel.names)
        else:
            place.xaxis.get_major_locator().set_params(integer=True)
    add_legend(figure, *axes[0].get_legend_handles_labels())
    return figure


def new_figure(
    n_rows: int, n_columns: int, width: float, height: float, **sharing: bool
) -> tuple[Figure, Sequence[Any]]:
    """A figure and its axes, row by row; sizes are those of one of them."""
    import matplotlib
    from cycler import cycler
    from matplotlib.figure import Figure

    style = {
        "axes.prop_cycle": cycler(color=COLOURS),
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.grid.axis": "y",
        "axes.axisbelow": True,
        "grid.color": "#d8d8d8",
        "axes.titlesize": 10,
        "font.size": 9,
    }
    with matplotlib.rc_context(style):
        figure = Figure((n_columns * width, n_rows * height + 0.3), layout="constrained")
        return figure, figure.subplots(n_rows, n_columns, squeeze=False, **sharing).ravel()


def add_legend(figure: Figure, handles: Sequence[Any], names: Sequence[str]) -> None:
    """Below all panels, in as many columns as the names leave room for."""
    if names:
        columns = max(1, int(LETTERS * figure.get_figwidth()) // (10 + max(map(len, names))))
        figure.legend(handles, names, loc="outside lower left", ncols=columns, frameon=False)


def save_and_link(figure: Figure, images: Path, name: str, about: str) -> str:
    """paper-NAME.svg, and the Markdown that shows it; the page stands beside the folder of images.

    The same results give the same file, byte for byte: no date, no random ids. Text stays text.
    """
    import matplotlib

    images.mkdir(parents=True, exist_ok=True)
    path = images / f"paper-{name}.svg"
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "labelmend"}):
        figure.savefig(path, dpi=150, metadata={"Title": about, "Date": None, "Creator": None})
    return f"![{about}]({images.name}/{path.name})"


def file_name(*parts: str) -> str:
    words = "-".join(parts).lower().replace("%", "")
    return "-".join("".join(c if c.isalnum() else " " for c in words).split())


def _each_group(name: str, groups: Sequence[Group], images: Path, draw: Callable[[Group], Figure]) -> str:
    return "\n\n".join(
        save_and_link(draw(group), images, file_name(name, group.title), f"{name}: {group.title}") for group in groups
    )


def _known(group: Group, figure: str) -> bool:
    return any(r.figures.get(figure) is not None for r in group.results)


def _lines(group: Group, rows: Sequence[str], columns: Sequence[str], figure: str) -> list[Line]:
    """A line per column over the rows: means over the seeds in per cent, and their spread."""
    lines = []
    for column in columns:
        by_row = [
            [100 * v for r in cell_results(group.results, row, column) if (v := r.figures.get(figure)) is not None]
            for row in rows
        ]
        places = [place for place, values in enumerate(by_row) if values]
        means = [statistics.fmean(by_row[place]) for place in places]
        spreads = [statistics.stdev(by_row[place]) if len(by_row[place]) > 1 else 0.0 for place in places]
        lines.append(Line(column, places, means, spreads))
    return lines


def _mean_curves(group: Group, rows: Sequence[str], name: str) -> list[Line]:
    """A line per row: the mean over the seeds, epoch by epoch; all but cosines in per cent."""
    scale = 1.0 if name == "similarity" else 100.0
    lines = []
    for row in rows:
        found = [v for r in group.results if r.cell.row == row and (v := r.measured.curves.get(name))]
        values = [scale * statistics.fmean(epoch) for epoch in zip(*found, strict=False)]
        lines.append(Line(row, range(len(values)), values))
    return lines

"""Experiments that vary a setting of the default: rows are settings, columns label noises, on several data sets.

The paper ran these on Clothing1M. Here: digits and 10,000 rows of CIFAR-10 features, or with `--on cifar10` pictures.
Which noise: symmetric 50 %, where the paper's own tables are, and the errors the method was made for: people's labels
(CIFAR-10N worst, 40 % wrong) on the features and pictures, planted confusing errors on the digits, where nobody was
asked. Preset paper in all, but on vectors k and alpha follow the data: 50 neighbours at .99 are too smooth for classes
of a hundred rows (docs/experiments.md), and every row would show that and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.paper.experiment import Cell, Experiment, Measured, Options, Result
from bench.paper.pictures import picture_task
from bench.paper.rows import batch_changes
from bench.paper.tables import Shape, show_tables
from bench.paper.trial import Truth, mend
from bench.paper.vectors import (
    CONFUSING,
    DIGITS,
    FEATURES,
    HUMAN,
    SYMMETRIC50,
    human_columns,
    missing_features,
    task_of_vectors,
)
from bench.record import Say
from labelmend.errors import ConfigError
from labelmend.runs.task import Task

CIFAR10 = "cifar10"
SEEDS = {DIGITS: 5, FEATURES: 3, CIFAR10: 1}
EPOCHS = {DIGITS: 15, FEATURES: 15, CIFAR10: 200}  # the paper's 15; on CIFAR as its field has it
QUICK_EPOCHS = 2
FOLLOWED: dict[str, Any] = {"graph_k": None, "alpha": None}
WORST = HUMAN + "worst"
COLUMNS = {DIGITS: (SYMMETRIC50, CONFUSING), FEATURES: (SYMMETRIC50, WORST), CIFAR10: (SYMMETRIC50, WORST)}
NEEDS = "digits (in scikit-learn), cifar10_features.npz and labels.npz, with --on cifar10 cifar10.npz (and labels.npz)"
FIGURES = ("label_accuracy", "test_last")
LEGEND = "Labels right after correction / test accuracy, mean of the last ten epochs, %. Preset paper{}."
NOTE = "; on vectors k and alpha follow the data"
Columns = Mapping[str, Sequence[str]]  # of every data set that an experiment knows
Draw = Callable[[Sequence[Result], Path], str]  # Markdown that shows the drawing


def nothing_drawn(results: Sequence[Result], images: Path) -> str:
    return ""


@dataclass(frozen=True)
class Sweep:
    """What varies: the changes of each row to preset paper."""

    rows: Mapping[str, Mapping[str, Any]]
    columns: Columns = field(default_factory=lambda: COLUMNS)
    paper_rows: Mapping[str, float] = field(default_factory=dict)  # the paper's test accuracy, on Clothing1M
    heading: str = ""
    note: str = ""
    draw: Draw = nothing_drawn
    seeds: int | None = None  # by data set

    def cells(self, options: Options) -> list[Cell]:
        return [
            Cell(row, column, data, seed, epochs_of(data, options), row_settings(data, changes, options))
            for data in data_sets(options, self.columns)
            for seed in range(seeds_of(data, options, self.seeds))
            for column in columns_of(data, self.columns, options)
            for row, changes in self.rows.items()
        ]

    def show(self, results: Sequence[Result], images: Path) -> str:
        legend = " ".join([LEGEND.format(NOTE), self.note]).strip()
        shape = Shape(
            list(self.rows),
            self.columns,
            FIGURES,
            legend,
            paper_rows=self.paper_rows,
            paper_data="Clothing1M",
            row_heading=self.heading,
        )
        drawn = self.draw(self._in_order(results), images) if results else ""
        return "\n\n".join(part for part in (show_tables(shape, results), drawn) if part)

    def _in_order(self, results: Sequence[Result]) -> list[Result]:
        """As the table has them; the file has them in the order in which they were finished."""

        def place(result: Result) -> tuple[int, int]:
            cell = result.cell
            return _place(cell.row, self.rows), _place(cell.column, self.columns.get(cell.data, ()))

        return sorted(results, key=place)

    def experiment(self, about: str) -> Experiment:
        return Experiment(about, NEEDS, missing, self.cells, play, self.show)


def _place(name: str, names: Iterable[str]) -> int:
    """Where a name stands; one that is not known stands last."""
    known = list(names)
    return known.index(name) if name in known else len(known)


def play(cell: Cell, options: Options, say: Say) -> Measured:
    found = mend(*task_of(cell, options), say, keeping=options.keeping)
    return Measured(found.figures, found.curves)


def task_of(cell: Cell, options: Options) -> tuple[Task, Truth]:
    """The data of a cell, whatever they are."""
    rounds = {"n_rounds": cell.epochs} if cell.epochs else {}  # 0: a method without any
    changes, preset = {**cell.settings["changes"], **rounds}, cell.settings["preset"]
    if cell.data != CIFAR10:
        return task_of_vectors(cell.data, cell.column, cell.seed, preset, changes, options)
    path, labels = options.file("cifar10.npz"), options.file("labels.npz")
    assert path is not None
    label_set = cell.column.removeprefix(HUMAN).replace(" %", "").replace(" ", "")
    return picture_task(path, label_set, labels, cell.seed, preset, changes, options)


def row_settings(data: str, changes: Mapping[str, Any], options: Options, preset: str = "paper") -> dict[str, Any]:
    usual = FOLLOWED if data != CIFAR10 and preset == "paper" else {}
    batch = batch_changes(options.batch_size, preset) if data == CIFAR10 else {}
    size = options.batch_size if data == CIFAR10 else None
    return {"common": {"batch_size": size}, "preset": preset, "changes": {**usual, **batch, **changes}}


def data_sets(options: Options, columns: Columns) -> list[str]:
    """The chosen ones; else digits, and the features where they are."""
    if options.on is None:
        return [DIGITS] if missing_features(options) else [DIGITS, FEATURES]
    unknown = [name for name in options.on if name not in columns]
    if unknown:
        raise ConfigError(f"--on must be among {', '.join(columns)}. Got {', '.join(unknown)} instead.")
    return list(options.on)


def columns_of(data: str, columns: Columns, options: Options) -> list[str]:
    """The noises of a data set; without labels.npz people's labels are left out."""
    human = [] if options.file("labels.npz") is None else human_columns(options)
    return [column for column in columns[data] if not column.startswith(HUMAN) or column in human]


def seeds_of(data: str, options: Options, usual: int | None = None) -> int:
    return options.seeds or usual or (1 if options.quick else SEEDS[data])


def epochs_of(data: str, options: Options) -> int:
    return options.epochs or (QUICK_EPOCHS if options.quick else EPOCHS[data])


def missing(options: Options, columns: Columns = COLUMNS) -> str | None:
    """The needed data that are not there."""
    wanted = data_sets(options, columns)
    if CIFAR10 in wanted and options.file("cifar10.npz") is None:
        return "cifar10.npz not in --data"
    return missing_features(options) if FEATURES in wanted else None

"""What an experiment of the paper is: cells with stable keys, how one is run, and how the results are shown.

Knows no data and no method. A cell names a row, a column, a data set, a seed and a number of epochs, and holds every
setting the run is made with; a result is the cell with plain figures, ready for a line of JSON.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.record import Say
from labelmend.errors import ConfigError
from labelmend.self_test.comparison import Figures

Settings = Mapping[str, Any]  # of a run, as JSON can hold them


@dataclass(frozen=True)
class Keeping:
    """How a long run is kept, and when it has to stop."""

    checkpoints: Path | None = None  # folder; of all cells, and for those who play one of this cell
    ends: float = math.inf  # `time.time()` before which the work is to be over


@dataclass(frozen=True)
class Options:
    """What was chosen on the command line; None: the experiment decides."""

    data: Path | None = None
    on: tuple[str, ...] | None = None  # data sets, of those an experiment knows
    epochs: int | None = None
    seeds: int | None = None
    device: str = "auto"
    batch_size: int | None = None
    quick: bool = False
    readings: tuple[str, ...] = ()  # of the paper's text, where a row can be read in several ways
    keeping: Keeping = Keeping()
    # of photographs
    weights: str | None = None  # file with pretrained weights; "none": begin without
    balanced: bool = False
    limit: int | None = None  # pictures per class
    food101: Path | None = None  # where it is not in `data`
    cache: Path | None = None  # for decoded pictures

    def file(self, name: str) -> Path | None:
        """A file or folder of --data, if it is there."""
        return None if self.data is None or not (self.data / name).exists() else self.data / name


@dataclass(frozen=True)
class Cell:
    """One run: what it is called, and what it is made with."""

    row: str
    column: str
    data: str
    seed: int
    epochs: int
    settings: Settings = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.data}, {self.column}, {self.row}, {self.epochs} epochs, seed {self.seed}"


@dataclass(frozen=True)
class Measured:
    """What a run gave: figures, what was seen after every round, and whatever else a drawing needs."""

    figures: Figures
    curves: Mapping[str, Sequence[float]] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """A cell that was run, where and with what."""

    experiment: str
    cell: Cell
    measured: Measured
    machine: Mapping[str, Any]
    versions: Mapping[str, Any]
    date: str
    quick: bool = False

    @property
    def figures(self) -> Figures:
        return self.measured.figures


@dataclass(frozen=True)
class Experiment:
    """`cells` are all that the options ask for, in the order they run; `play` runs one.

    `show` makes Markdown of all results there are, and draws into a folder; cells without a result are "not run".
    `missing` names the data that are needed and not there, or None.
    """

    about: str
    needs: str
    missing: Callable[[Options], str | None]
    cells: Callable[[Options], list[Cell]]
    play: Callable[[Cell, Options, Say], Measured]
    show: Callable[[Sequence[Result], Path], str]


def identity(experiment: str, cell: Cell, quick: bool) -> str:
    """The same for two runs that would measure the same."""
    parts = [experiment, cell.row, cell.column, cell.data, cell.seed, cell.epochs, cell.settings, quick]
    return json.dumps(parts, sort_keys=True)


def chosen_cells(cells: Sequence[Cell], rows: Sequence[str] | None, columns: Sequence[str] | None) -> list[Cell]:
    """Those in the named rows and columns; a name nobody has is an error."""
    for what, wanted, known in (
        ("--rows", rows, dict.fromkeys(cell.row for cell in cells)),
        ("--columns", columns, dict.fromkeys(cell.column for cell in cells)),
    ):
        unknown = [name for name in wanted or () if name not in known]
        if unknown:
            names = ", ".join(repr(name) for name in known)
            raise ConfigError(f"{what} must be among {names}. Got {', '.join(map(repr, unknown))} instead.")
    return [c for c in cells if (rows is None or c.row in rows) and (columns is None or c.column in columns)]


def preset_of(stored: str) -> str:
    """The library's preset by the name that results have for it: "plus" is what `default` was called."""
    return "default" if stored == "plus" else stored

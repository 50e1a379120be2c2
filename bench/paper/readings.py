"""Readings of the paper's text, tried where its figures are known: CIFAR-10 with 50 and 80 % symmetric noise.

A reading is chosen here and nowhere else, so that the other columns of the tables show how good the choice was. Rows
are a row of the ablation and what it is read as; `rows.py` explains the readings. Shorter than the tables: a
reading that is right shows itself in half an hour of a GPU for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench.paper import cifar
from bench.paper.experiment import Cell, Experiment, Measured, Options, Result
from bench.paper.rows import NET, READINGS, SOFT, WITH_MIXUP, WITHOUT
from bench.paper.tables import Shape, show_tables
from bench.record import Say

EPOCHS, QUICK_EPOCHS = 30, 2
DATA, COLUMNS = "cifar10", ("symmetric 50 %", "symmetric 80 %")
FIGURES = ("test_last", "test_final", "label_accuracy")
TRIED: dict[str, tuple[str, tuple[str, ...]]] = {
    f"{row}: {', '.join(readings) or 'as landed'}": (row, readings)
    for row, readings in (
        (WITHOUT, ()),
        (WITHOUT, ("split",)),
        (WITHOUT, ("kept",)),
        (WITHOUT, ("own-batches",)),
        (WITHOUT, ("kept", "own-batches")),
        (WITHOUT, ("same-round",)),
        (WITHOUT, ("kept", "persistent")),
        (WITH_MIXUP, ()),
        (WITH_MIXUP, ("split",)),
        (WITH_MIXUP, ("kept",)),
        (NET, ()),
        (SOFT, ()),
        (SOFT, ("split",)),
        (SOFT, ("split", "sharp")),
        (SOFT, ("split", "sharp", "penalty")),
        (SOFT, ("semi-supervised",)),
    )
}


def cells(options: Options) -> list[Cell]:
    epochs = options.epochs or (QUICK_EPOCHS if options.quick else EPOCHS)
    return [
        Cell(name, column, DATA, seed, epochs, cifar.settings(DATA, row, column, _read_as(options, readings)))
        for seed in range(options.seeds or 1)
        for column in COLUMNS
        for name, (row, readings) in TRIED.items()
    ]


def _read_as(options: Options, readings: tuple[str, ...]) -> Options:
    return replace(options, readings=readings)


def play(cell: Cell, options: Options, say: Say) -> Measured:
    return cifar.play(cell, options, say)


def show(results: Sequence[Result], images: Path) -> str:
    legend = (
        "Test accuracy, mean of the last ten epochs / last epoch / labels right after correction, %. The learning rate "
        "falls to a tenth after 75 % of the epochs. " + "; ".join(f"{name}: {text}" for name, text in READINGS.items())
    )
    return show_tables(Shape(list(TRIED), {DATA: list(COLUMNS)}, FIGURES, f"{legend}."), results)


EXPERIMENTS = {
    "readings": Experiment(
        "what the rows without noisy branch may be read as",
        cifar.EXPERIMENTS[DATA].needs,
        cifar.EXPERIMENTS[DATA].missing,
        cells,
        play,
        show,
    )
}

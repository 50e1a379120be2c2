"""The paper's tables of test accuracy on CIFAR-10 and CIFAR-100 with drawn label noise, every row of ours and two more.

The rows are in `rows.py`. `plus` has one setting for all noises. Cross entropy and mixup get the same schedule as the
others and no warm-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.paper.experiment import Cell, Experiment, Measured, Options, Result
from bench.paper.pictures import picture_task
from bench.paper.rows import (
    COLUMNS,
    FACTORS,
    PLAIN,
    PLUS,
    ROWS,
    WARM_UP,
    ablation_changes,
    batch_changes,
    paper_figures,
)
from bench.paper.tables import Shape, show_tables
from bench.paper.trial import mend, train_plainly
from bench.record import Say

EPOCHS, QUICK_EPOCHS = 200, 2
FIGURES = ("test_last", "test_best")


def cells(name: str, options: Options) -> list[Cell]:
    epochs = options.epochs or (QUICK_EPOCHS if options.quick else EPOCHS)
    return [
        Cell(row, column, name, seed, epochs, settings(name, row, column, options))
        for seed in range(options.seeds or 1)
        for column in COLUMNS[name]
        for row in ROWS
    ]


def settings(name: str, row: str, column: str, options: Options) -> dict[str, Any]:
    preset = "plus" if row == PLUS else "paper"
    changes = batch_changes(options.batch_size, preset, 100 if name == "cifar100" else 10)
    if preset == "paper":
        changes |= {"warmup_passes": WARM_UP[name]}
        changes |= ablation_changes(row, FACTORS[name][column], options.readings, options.batch_size)
        if "asymmetric" in column and changes.get("corrected_loss") == "semi-supervised":
            changes |= {"warmup_penalty": 1.0}  # DivideMix's, for noise of which a net is sure too soon
    return {"common": {"batch_size": options.batch_size}, "preset": preset, "changes": changes}


def play(cell: Cell, options: Options, say: Say) -> Measured:
    path = options.file(f"{cell.data}.npz")
    assert path is not None
    changes = {**cell.settings["changes"], "n_rounds": cell.epochs}
    label_set = COLUMNS[cell.data][cell.column]
    task, truth = picture_task(path, label_set, None, cell.seed, cell.settings["preset"], changes, options)
    found = train_plainly(task, truth, say) if cell.row in PLAIN else mend(task, truth, say, keeping=options.keeping)
    return Measured(found.figures, found.curves)


def show(name: str, results: Sequence[Result], images: Path) -> str:
    legend = (
        "Test accuracy, mean of the last ten epochs / best epoch, %. The paper has 200 epochs. Ours begins with "
        f"{WARM_UP[name]} passes of cross entropy more (plus: 10; cross entropy and mixup: none). Each row from w/o "
        "noisy branch to soft label adds to the one before; (the net's answer): the first part of the soft label is "
        "that instead of the voted label, the other reading of the paper."
    )
    shape = Shape(ROWS, {name: list(COLUMNS[name])}, FIGURES, legend, paper_figures(name))
    return show_tables(shape, results)


def missing(name: str, options: Options) -> str | None:
    return None if options.file(f"{name}.npz") else f"{name}.npz is not in --data"


def _experiment(name: str, about: str) -> Experiment:
    needs = f"{name}.npz (x_train, y_train, x_test, y_test)"
    return Experiment(about, needs, partial(missing, name), partial(cells, name), play, partial(show, name))


EXPERIMENTS = {
    "cifar10": _experiment("cifar10", "test accuracy on CIFAR-10, symmetric and asymmetric noise, all rows"),
    "cifar100": _experiment("cifar100", "test accuracy on CIFAR-100, symmetric noise, all rows"),
}

"""The paper's tables of test accuracy on CIFAR-10 and CIFAR-100 with drawn label noise, every row of ours and two more.

The factors of the losses are the paper's own, per noise rate, in the rows that
reproduce it. `plus` has one setting for all. "(voted)" is the other reading of the soft label: its first part is the
voted label instead of the corrected net's answer. Cross entropy and mixup get the same schedule and no warm-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from labelmend.benchmarks.paper.experiment import Cell, Experiment, Measured, Options, Result
from labelmend.benchmarks.paper.pictures import batch_changes, picture_task
from labelmend.benchmarks.paper.tables import Shape, show_tables
from labelmend.benchmarks.paper.trial import mend, train_plainly
from labelmend.benchmarks.runner import Say

EPOCHS, QUICK_EPOCHS = 200, 2
FIGURES = ("test_last", "test_best")
SYMMETRIC = {f"symmetric {rate} %": f"symmetric{rate}" for rate in (20, 50, 80, 90)}
COLUMNS = {"cifar10": {**SYMMETRIC, "asymmetric 40 %": "asymmetric40"}, "cifar100": SYMMETRIC}
WARM_UP = {"cifar10": 10, "cifar100": 30}  # passes
# en_ce, en_mae, cor_ce, cor_mse of the paper's table of weighting factors.
FACTORS: dict[str, dict[str, tuple[float, float, float, float]]] = {
    "cifar10": {
        "symmetric 20 %": (1, 0, 1, 0),
        "symmetric 50 %": (1, 0, 1, 1),
        "symmetric 80 %": (1, 1, 1, 10),
        "symmetric 90 %": (1, 1, 1, 10),
        "asymmetric 40 %": (1, 0, 1, 1),
    },
    "cifar100": {
        "symmetric 20 %": (2.5, 0, 1, 10),
        "symmetric 50 %": (2.5, 1, 1, 40),
        "symmetric 80 %": (2.5, 1, 1, 80),
        "symmetric 90 %": (2.5, 1, 1, 80),
    },
}
CROSS_ENTROPY, MIXUP, DEFAULT = "cross entropy", "mixup", "default"
WITHOUT, WITH_MIXUP = "w/o noisy branch", "+ mixup"  # each row adds to the one before
SOFT, VOTED, PLUS = f"{WITH_MIXUP} + soft label", f"{WITH_MIXUP} + soft label (voted)", "plus"
ROWS = (CROSS_ENTROPY, MIXUP, DEFAULT, WITHOUT, WITH_MIXUP, SOFT, VOTED, PLUS)
PLAIN = (CROSS_ENTROPY, MIXUP)
# Best and last of the paper, in the order of the columns.
THEIR_BEST: dict[str, dict[str, tuple[float, ...]]] = {
    "cifar10": {
        CROSS_ENTROPY: (86.8, 79.4, 62.9, 42.7, 85.0),
        MIXUP: (95.6, 87.1, 71.6, 52.2),
        DEFAULT: (90.1, 81.8, 64.4, 46.2, 88.6),
        WITHOUT: (93.3, 91.1, 77.1, 52.2, 91.2),
        WITH_MIXUP: (93.9, 91.8, 81.3, 61.6, 92.1),
        SOFT: (94.2, 93.9, 92.5, 76.2, 92.3),
    },
    "cifar100": {
        CROSS_ENTROPY: (62.0, 46.7, 19.9, 10.1),
        MIXUP: (67.8, 57.3, 30.8, 14.6),
        DEFAULT: (65.6, 50.3, 23.1, 10.4),
        WITHOUT: (74.1, 65.9, 40.8, 15.2),
        WITH_MIXUP: (76.1, 70.2, 45.3, 21.8),
        SOFT: (76.6, 73.9, 57.2, 28.6),
    },
}
THEIR_LAST: dict[str, dict[str, tuple[float, ...]]] = {
    "cifar10": {
        CROSS_ENTROPY: (82.7, 57.9, 26.1, 16.8, 72.3),
        MIXUP: (92.3, 77.6, 46.7, 43.9),
        DEFAULT: (88.8, 81.6, 56.1, 39.8, 88.4),
        WITHOUT: (93.1, 90.8, 76.5, 45.6, 90.9),
        WITH_MIXUP: (93.4, 91.2, 80.4, 59.8, 91.8),
        SOFT: (94.0, 93.7, 92.3, 73.6, 92.1),
    },
    "cifar100": {
        CROSS_ENTROPY: (61.8, 37.3, 8.8, 3.5),
        MIXUP: (66.0, 46.6, 17.6, 8.1),
        DEFAULT: (65.0, 49.8, 21.6, 8.2),
        WITHOUT: (73.8, 65.5, 40.3, 13.2),
        WITH_MIXUP: (75.9, 69.8, 44.6, 19.9),
        SOFT: (76.4, 73.1, 56.9, 28.4),
    },
}


def ablation_changes(row: str, factors: Sequence[float]) -> dict[str, Any]:
    """What a row of the paper's ablation changes in preset paper, with en_ce, en_mae, cor_ce, cor_mse."""
    en_ce, en_mae, cor_ce, cor_mse = (float(factor) for factor in factors)
    changes: dict[str, Any] = {}
    if row in (WITHOUT, WITH_MIXUP, SOFT, VOTED):
        changes = {"noisy_branch": False, "branch_loss": "cross-entropy-mae", "ce_factor": en_ce, "mae_factor": en_mae}
    if row in (MIXUP, WITH_MIXUP, SOFT, VOTED):
        changes |= {"mixup": True}
    if row in (SOFT, VOTED):
        changes |= {"soft_labels": True, "soft_ce_factor": cor_ce, "soft_mse_factor": cor_mse}
        changes |= {"soft_source": "net" if row == SOFT else "vote"}
    return changes


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
        changes |= {"warmup_passes": WARM_UP[name], **ablation_changes(row, FACTORS[name][column])}
    return {"common": {"batch_size": options.batch_size}, "preset": preset, "changes": changes}


def play(cell: Cell, options: Options, say: Say) -> Measured:
    path = options.file(f"{cell.data}.npz")
    assert path is not None
    changes = {**cell.settings["changes"], "n_rounds": cell.epochs}
    label_set = COLUMNS[cell.data][cell.column]
    task, truth = picture_task(path, label_set, None, cell.seed, cell.settings["preset"], changes, options)
    found = train_plainly(task, truth, say) if cell.row in PLAIN else mend(task, truth, say)
    return Measured(found.figures, found.curves)


def paper_figures(name: str) -> dict[tuple[str, str], Sequence[float]]:
    """(last, best) of the paper by row and column; mixup has none for asymmetric noise."""
    return {
        (row, column): (last, best)
        for row in THEIR_BEST[name]
        for column, last, best in zip(COLUMNS[name], THEIR_LAST[name][row], THEIR_BEST[name][row], strict=False)
    }


def show(name: str, results: Sequence[Result], images: Path) -> str:
    legend = "Test accuracy, mean of the last ten epochs / best epoch, %. The paper has 200 epochs."
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

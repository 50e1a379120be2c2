"""The paper's ablation in miniature: small pictures, a thin net, two CPU cores, no download.

2,000 pictures of 14 x 14 pixels, the others test: the clothes that ship with the library, or with `--on fashion-mnist`
the first ones of its file. The settings let a net learn and then memorise, as at full size; with 50 neighbours,
alpha .99 and batches of 128 nothing is learned from so few pictures, with a learning rate of .02 nothing is memorised.
Factors are those of the paper's table for CIFAR-10; confusing errors, which it has not, get those of symmetric 50 %.

    python -m bench paper --miniature          every row and column, three seeds, both cores
    python -m bench paper miniature-readings   what the rows may be read as, symmetric 50 and 80 %
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from bench.paper.charts import draw_curves
from bench.paper.experiment import Cell, Experiment, Measured, Options, Result
from bench.paper.pictures import task_of_pictures
from bench.paper.readings import COLUMNS as READING_COLUMNS
from bench.paper.readings import TRIED
from bench.paper.rows import (
    CHOSEN,
    CROSS_ENTROPY,
    DEFAULT,
    FACTORS,
    MIXUP,
    PLAIN,
    PLUS,
    SOFT,
    WITH_MIXUP,
    WITHOUT,
    ablation_changes,
    paper_figures,
)
from bench.paper.tables import Shape, show_tables
from bench.paper.trial import mend, train_plainly
from bench.picture_data import PictureSet, read_pictures
from bench.record import Say
from labelmend.cli.demo import clothes
from labelmend.diagnosis import noise
from labelmend.labels import IntArray

CLOTHES, FASHION = "clothes", "fashion-mnist"
TRAIN, TEST, SIDE = 2_000, 4_000, 14
QUICK_TRAIN, QUICK_TEST = 240, 20
EPOCHS, QUICK_EPOCHS, SEEDS = 60, 2, 3
ROWS = (CROSS_ENTROPY, MIXUP, DEFAULT, WITHOUT, WITH_MIXUP, SOFT, PLUS)
COLUMNS = ("symmetric 50 %", "symmetric 80 %", "asymmetric 40 %", "confusing 30 %")
FIGURES = ("test_last", "test_best", "label_accuracy")
RECIPE: dict[str, Any] = {"width": 8, "batch_size": 32, "lr": 0.05, "warmup_passes": 5}
GRAPHS: dict[str, Any] = {"graph_k": 20, "alpha": 0.9}
# Errors between look-alike classes, by the number of the class.
LOOK_ALIKE = {
    CLOTHES: {2: 0, 3: 0, 4: 5, 5: 7, 7: 5},  # pullover, dress -> T-shirt; sandal -> sneaker <-> ankle boot
    FASHION: {0: 6, 6: 0, 2: 4, 4: 2, 5: 7, 7: 9, 9: 7},  # T-shirt <-> shirt, pullover <-> coat, sandal -> sneaker ...
}
CURVES = {
    "test": "test accuracy",
    "labels_right": "labels right",
    "kept": "share of labels kept",
    "kept_right": "right among kept",
    "changed_right": "right among changed",
    "certainty": "certainty of the vote",
}


@lru_cache(maxsize=2)
def pictures_of(data: str, path: Path | None, quick: bool) -> PictureSet:
    if data == CLOTHES:
        found = clothes()
        pixels, labels = found.pictures[..., None], found.true_labels
    else:
        assert path is not None
        whole = read_pictures(path)
        pixels = _halved(np.concatenate([whole.pixels[:TRAIN], whole.test_pixels]))
        labels = np.concatenate([whole.true_labels[:TRAIN], whole.test_labels])
    n, n_test = (QUICK_TRAIN, QUICK_TEST) if quick else (TRAIN, TEST)
    rest = slice(TRAIN, TRAIN + n_test)
    return PictureSet(pixels[:n], labels[:n], pixels[rest], labels[rest])


def _halved(pixels: np.ndarray[Any, np.dtype[np.uint8]]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Means of 2 x 2 pixels."""
    n, height, width = pixels.shape[:3]
    blocks = pixels.reshape(n, height // 2, 2, width // 2, 2, -1).mean(axis=(2, 4))
    return np.rint(blocks).astype(np.uint8)


def given_labels(pictures: PictureSet, data: str, column: str, seed: int) -> IntArray:
    kind, rate = column.split()[0], int(column.split()[1]) / 100
    true, rng = pictures.true_labels, np.random.default_rng(seed)
    if kind == "symmetric":
        return noise.symmetric(true, rate, pictures.n_classes, rng)
    if kind == "asymmetric":
        return noise.asymmetric(true, rate, LOOK_ALIKE[data], rng)
    pixels = pictures.pixels.reshape(len(true), -1) / np.float32(255)
    return noise.confusing(true, rate, noise.forest_probabilities(pixels, true, seed, 100))


def data_of(options: Options) -> Sequence[str]:
    return options.on or (CLOTHES,)


def settings(row: str, column: str, readings: Sequence[str]) -> dict[str, Any]:
    if row == PLUS:
        return {"preset": PLUS, "changes": {"width": RECIPE["width"]}}
    factors = FACTORS["cifar10"].get(column, FACTORS["cifar10"]["symmetric 50 %"])
    graphs = {} if row in PLAIN else GRAPHS
    changes = {**RECIPE, **graphs, **ablation_changes(row, factors, readings, RECIPE["batch_size"])}
    return {"preset": "paper", "changes": changes}


def cells(options: Options) -> list[Cell]:
    return _cells(options, COLUMNS, {row: (row, options.readings or CHOSEN) for row in ROWS})


def cells_of_readings(options: Options) -> list[Cell]:
    return _cells(options, READING_COLUMNS, TRIED)


def _cells(options: Options, columns: Sequence[str], rows: dict[str, tuple[str, tuple[str, ...]]]) -> list[Cell]:
    """Column by column and seed by seed, so that what is there after a part of the time is whole."""
    epochs = options.epochs or (QUICK_EPOCHS if options.quick else EPOCHS)
    return [
        Cell(name, column, data, seed, epochs, settings(row, column, readings))
        for data in data_of(options)
        for column in columns
        for seed in range(options.seeds or SEEDS)
        for name, (row, readings) in rows.items()
    ]


def play(cell: Cell, options: Options, say: Say) -> Measured:
    pictures = pictures_of(cell.data, options.file(f"{FASHION}.npz"), options.quick)
    given = given_labels(pictures, cell.data, cell.column, cell.seed)
    preset, changes = cell.settings["preset"], {**cell.settings["changes"], "n_rounds": cell.epochs}
    task, truth = task_of_pictures(pictures, given, cell.seed, preset, changes, options)
    found = train_plainly(task, truth, say) if cell.row in PLAIN else mend(task, truth, say, keeping=options.keeping)
    return Measured(found.figures, found.curves)


def show(results: Sequence[Result], images: Path) -> str:
    legend = (
        "Test accuracy, mean of the last ten epochs / best epoch / labels right after correction, %. 2,000 pictures of "
        "14 x 14 pixels, PreActResNet of width 8; below ours the paper's last and best on CIFAR-10."
    )
    shape = Shape(ROWS, {CLOTHES: list(COLUMNS)}, FIGURES, legend, paper_figures("cifar10"))
    return f"{show_tables(shape, results)}\n\n{draw_curves('miniature', CURVES, results, images)}".rstrip()


def show_readings(results: Sequence[Result], images: Path) -> str:
    legend = "Test accuracy, mean of the last ten epochs / best epoch / labels right after correction, %."
    return show_tables(Shape(list(TRIED), {CLOTHES: list(READING_COLUMNS)}, FIGURES, legend), results)


def missing(options: Options) -> str | None:
    absent = FASHION in data_of(options) and options.file(f"{FASHION}.npz") is None
    return f"{FASHION}.npz is not in --data" if absent else None


NEEDS = f"nothing (clothes come with the library); --on {FASHION}: {FASHION}.npz (x_train, y_train, x_test, y_test)"
EXPERIMENTS = {
    "miniature": Experiment("the ablation on small pictures, on two CPU cores", NEEDS, missing, cells, play, show),
    "miniature-readings": Experiment(
        "what the rows may be read as, in miniature", NEEDS, missing, cells_of_readings, play, show_readings
    ),
}

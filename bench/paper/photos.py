"""The paper's tables on Clothing1M, noisy and hybrid, and on Food101-N.

The recipe: ResNet-50 from ImageNet's weights, no warm-up, 15 epochs of SGD at .01, a tenth of
it every 5 epochs, batch 64, L2 5e-3, M = 5, B = 4, windows of 224 in pictures of 256. Rows are those of the paper's
tables, with its loss factors for Clothing1M, and `plus`. Hybrid: labels of the clean list are certain,
and the trained net is then fine-tuned on them alone; one run gives both figures. Food101-N: a new classifier learns
from the corrected labels by the same recipe, and Food-101's test pictures judge it.

Differs from the paper in: pictures fill 256 x 256 with their short side and are cut, not squeezed; windows are mirrored
half the time; how long fine-tuning lasts is ours: the paper does not name it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from bench.paper.clothing1m import lists_in
from bench.paper.experiment import Cell, Experiment, Measured, Options, Result
from bench.paper.food101 import IMAGE_LIST, TEST, refuse_swapped
from bench.paper.photo_lists import find_folder
from bench.paper.photo_play import FIGURES, as_they_are, corrected, fine_tuned, new_classifier
from bench.paper.photo_task import PhotoSet, clothes, clothes_and_clean, food, photo_task, weights_of
from bench.paper.rows import CROSS_ENTROPY, DEFAULT, PLUS, SOFT, WITH_MIXUP, WITHOUT, ablation_changes
from bench.paper.tables import Shape, grouped, show_tables, table
from bench.record import Say
from labelmend.config import Settings, make_config, resolve
from labelmend.errors import DataError
from labelmend.runs.task import Task

EPOCHS, QUICK_EPOCHS = 15, 2
FINE_TUNE_EPOCHS, QUICK_FINE_TUNE_EPOCHS = 5, 1
FACTORS = (1, 1, 1, 1)  # en_ce, en_mae, cor_ce, cor_mse of the paper's table for Clothing1M
FOUND = ("f1", "precision", "recall")
NOISY, HYBRID, FINE_TUNED, CLASSIFIER = "noisy set", "hybrid set", "fine-tuned", "new classifier"
PLAIN, VERIFIED = "without fine-tuning", "verified pictures"
LEGEND = (
    "Test accuracy, mean of the last ten epochs / last epoch / best epoch, %. The paper has 15 epochs, prints one "
    "figure and does not say of which epoch."
)


@dataclass(frozen=True)
class PhotoTable:
    """One of the three: its rows, where its pictures come from, and what the paper prints."""

    about: str
    needs: str
    data: str
    column: str
    rows: tuple[str, ...]
    read: Callable[[Options], PhotoSet]
    places: Callable[[Options], object]  # raises where the data are not there
    paper: Mapping[tuple[str, str], Sequence[float]]
    remark: str


def clothing_place(options: Options) -> None:
    lists_in(_data(options))


def food_places(options: Options) -> None:
    refuse_swapped(_data(options), IMAGE_LIST, TEST, "Food-101N", "Food-101")
    find_folder(_data(options), IMAGE_LIST, "Food-101N")
    if options.food101 is not None:
        refuse_swapped(options.food101, TEST, IMAGE_LIST, "Food-101", "Food-101N")
    find_folder(options.food101 or _data(options), TEST, "Food-101")


CLOTHING_NEEDS = "Clothing1M as it is distributed, the folder with noisy_train_key_list.txt and images/"
FOOD_NEEDS = "Food-101N (meta/imagelist.tsv, images/) and Food-101 (meta/test.txt, images/), or that with --food101 DIR"
TABLES = {
    "clothing1m": PhotoTable(
        "test accuracy on Clothing1M, trained on its noisy set alone",
        CLOTHING_NEEDS,
        "Clothing1M",
        NOISY,
        (CROSS_ENTROPY, DEFAULT, WITHOUT, WITH_MIXUP, SOFT, PLUS),
        clothes,
        clothing_place,
        {
            (CROSS_ENTROPY, NOISY): (69.21,),
            (DEFAULT, NOISY): (75.17,),
            (WITHOUT, NOISY): (73.91,),
            (WITH_MIXUP, NOISY): (73.87,),
            (SOFT, NOISY): (73.90,),
        },
        "The paper prints beside it: MLNT 73.47, T-Revision 74.18, Self-Learning 74.45, MetaCleaner 72.50, "
        "DivideMix 74.76, NoiseRank 73.82, ELR 74.81.",
    ),
    "clothing1m-hybrid": PhotoTable(
        "test accuracy on Clothing1M, trained on its noisy and its clean set, with and without fine-tuning",
        CLOTHING_NEEDS,
        "Clothing1M, noisy and clean",
        HYBRID,
        (CROSS_ENTROPY, DEFAULT, PLUS),
        clothes_and_clean,
        clothing_place,
        {
            (CROSS_ENTROPY, PLAIN): (75.67,),
            (DEFAULT, PLAIN): (78.01,),
            (CROSS_ENTROPY, FINE_TUNED): (80.32,),
            (DEFAULT, FINE_TUNED): (81.13,),
        },
        f"Labels of the clean list are certain; fine-tuning is {FINE_TUNE_EPOCHS} epochs of cross entropy on them at a "
        "tenth of the learning rate. The paper prints beside it, without fine-tuning: DataCoef 77.21; with it: Forward "
        "80.38, MetaCleaner 80.78, CleanNet 79.90, Self-Learning 81.16.",
    ),
    "food101n": PhotoTable(
        "test accuracy on Food-101 of a new classifier that learns from the corrected labels of Food101-N",
        FOOD_NEEDS,
        "Food101-N",
        CLASSIFIER,
        (CROSS_ENTROPY, DEFAULT, PLUS),
        food,
        food_places,
        {(CROSS_ENTROPY, CLASSIFIER): (81.97,), (DEFAULT, CLASSIFIER): (85.13,)},
        'Without the "additional 50k clean set" of the paper\'s caption: its text trains on the corrected labels '
        "alone, and so do we. The paper prints beside it: CleanNet 83.95, MetaCleaner 85.05, Self-Learning 85.11, "
        "NoiseRank 85.79.",
    ),
}


def cells(name: str, options: Options) -> list[Cell]:
    about, epochs = TABLES[name], options.epochs or (QUICK_EPOCHS if options.quick else EPOCHS)
    weights = weights_of(options)
    return [
        Cell(row, about.column, about.data, seed, epochs, settings(row, options, weights))
        for seed in range(options.seeds or 1)
        for row in about.rows
    ]


def settings(row: str, options: Options, weights: Mapping[str, str]) -> dict[str, Any]:
    changes = {} if row in (CROSS_ENTROPY, PLUS) else ablation_changes(row, FACTORS)
    common = {"batch_size": options.batch_size, "limit": options.limit, "balanced": options.balanced or None}
    return {
        "common": {**common, "weights": weights["name"]},
        "weights_digest": weights["digest"],
        "preset": "plus" if row == PLUS else "paper",
        "changes": {**changes, **batch_changes(options.batch_size)},
    }


def batch_changes(size: int | None) -> dict[str, Any]:
    """Another batch size takes a learning rate in proportion."""
    usual = make_config("paper", "photographs")
    return {} if size is None else {"batch_size": size, "lr": usual.lr * size / (usual.batch_size or size)}


def play(name: str, cell: Cell, options: Options, say: Say) -> Measured:
    changes = {**cell.settings["changes"], "n_rounds": cell.epochs}
    found = photo_task(TABLES[name].read(options), cell.seed, cell.settings["preset"], changes, options, say)
    plain = _plain_config(found.task, cell, options)
    outcome = as_they_are(found, say) if cell.row == CROSS_ENTROPY else corrected(found, say)
    if name == "clothing1m-hybrid":
        epochs = QUICK_FINE_TUNE_EPOCHS if options.quick else FINE_TUNE_EPOCHS
        return fine_tuned(found, outcome, plain, epochs, say)
    if name == "food101n" and cell.row != CROSS_ENTROPY:
        return new_classifier(found, outcome, plain, say)
    return Measured(outcome.figures, outcome.curves, found.more)


def _plain_config(task: Task, cell: Cell, options: Options) -> Settings:
    """The recipe of a plain net, the same whatever preset corrected the labels."""
    asked = make_config("paper", "photographs", n_rounds=cell.epochs, **batch_changes(options.batch_size))
    n_rows, n_classes = len(task.problem.given_labels), task.problem.n_classes
    usual = resolve(asked, n_rows, n_classes, "photographs")
    batch_size = task.settings.batch_size if options.quick else usual.batch_size
    return replace(usual, batch_size=batch_size, seed=cell.seed, balanced=options.balanced, device=options.device)


def show(name: str, results: Sequence[Result], images: Path) -> str:
    about = TABLES[name]
    columns = [PLAIN, FINE_TUNED] if name == "clothing1m-hybrid" else [about.column]
    if name == "clothing1m-hybrid":
        results = [part for result in results for part in _both(result)]
    shape = Shape(about.rows, {about.data: columns}, FIGURES, f"{LEGEND} {about.remark}", about.paper)
    shown = show_tables(shape, results)
    return shown if name != "food101n" else "\n\n".join([shown, *_found_tables(about, results)])


def _both(result: Result) -> tuple[Result, Result]:
    """One run as two cells of the table; seconds are those of all of it."""
    figures = result.figures
    seconds = (figures.get("seconds") or 0.0) + (figures.get("seconds_fine_tuned") or 0.0)
    tuned = {name: figures.get(f"{name}_fine_tuned") for name in FIGURES}
    return (
        replace(result, cell=replace(result.cell, column=PLAIN), measured=Measured({**figures, "seconds": seconds})),
        replace(result, cell=replace(result.cell, column=FINE_TUNED), measured=Measured({**tuned, "seconds": seconds})),
    )


def _found_tables(about: PhotoTable, results: Sequence[Result]) -> list[str]:
    """The changes against the labels that people verified: the paper has no such table."""
    title = "Wrong labels found, of those that people verified in Food101-N: F1 / precision / recall, %"
    shape = Shape((DEFAULT, PLUS), {about.data: [VERIFIED]}, FOUND, title)
    known = [replace(r, cell=replace(r.cell, column=VERIFIED)) for r in results if r.cell.row != CROSS_ENTROPY]
    return [f"{title}; {group.title}.\n\n{table(shape, about.data, group.results)}" for group in grouped(known)]


def missing(name: str, options: Options) -> str | None:
    if options.data is None:
        return "--data is not given"
    try:
        TABLES[name].places(options)
    except DataError as error:
        return str(error).removesuffix(".")
    return None


def _data(options: Options) -> Path:
    assert options.data is not None
    return options.data


EXPERIMENTS = {
    name: Experiment(
        about.about,
        about.needs,
        partial(missing, name),
        partial(cells, name),
        partial(play, name),
        partial(show, name),
    )
    for name, about in TABLES.items()
}

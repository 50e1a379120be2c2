"""Our method against its neighbours, and against itself without packages: are packages and many graphs worth it?

Labels right after correction, on digits and 10,000 rows of CIFAR-10 features. The rows:

plus, paper       the presets as they are (paper: k = 50 and alpha = .99, too smooth for small classes)
... random splits the same with subsets dealt at random: as many packages as samples
cross entropy     a plain net on the given labels; a sample gets the label the net predicts. mixup: the same with mixup
one graph         label propagation from all given labels on the k-NN graph of the features as the nets get them, no
                  nets and no ensemble; k, alpha and the rest as preset plus has them
k-NN vote         the majority of the 10 (features: 50) nearest samples
cleanlab          where it is installed: logistic regression, 5 folds, flagged labels replaced
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.paper.experiment import Cell, Experiment, Measured, Options, Result, preset_of
from bench.paper.sweep import QUICK_EPOCHS, data_sets, missing, seeds_of, task_of
from bench.paper.tables import Shape, show_tables
from bench.paper.trial import Codes, label_figures, mend, train_plainly
from bench.paper.vectors import DIGITS, FEATURE_ROWS, FEATURES, HUMAN, PLANTED, human_columns, vectors_of
from bench.record import Say
from labelmend.config import make_config, resolve
from labelmend.ensemble.graphs import exact_neighbors, normalize_rows, normalized_graph
from labelmend.ensemble.propagate import propagate, starting_rows
from labelmend.runs.task import Task
from labelmend.samples import VectorSamples
from labelmend.self_test.comparison import METHODS, prepare

RANDOM_SPLITS = {"packages_per_branch": 1_000_000}  # more than any class has samples: every sample is its own package
OURS: dict[str, tuple[str, dict[str, Any]]] = {
    "plus": ("plus", {}),
    "plus, random splits": ("plus", RANDOM_SPLITS),
    "paper": ("paper", {}),
    "paper, random splits": ("paper", RANDOM_SPLITS),
}
PLAIN: dict[str, dict[str, Any]] = {"cross entropy": {}, "mixup": {"mixup": True}}
ONE_GRAPH, KNN, CLEANLAB = "one graph", "k-NN vote", "cleanlab"
ROWS = (*OURS, *PLAIN, ONE_GRAPH, KNN, CLEANLAB)
N_ROWS = {DIGITS: 1257, FEATURES: FEATURE_ROWS}  # by which a preset chooses its epochs
N_CLASSES = 10
NEIGHBOURS = {DIGITS: 10, FEATURES: 50}
HUMAN_SETS = ("aggregate", "random1", "worst")
COLUMNS = {DIGITS: list(PLANTED), FEATURES: [*PLANTED, *(HUMAN + name for name in HUMAN_SETS)]}
LEGEND = "Labels right after correction, %; a plain net's labels are its predictions for the samples it learned from."


def cells(options: Options) -> list[Cell]:
    return [
        Cell(row, column, data, seed, row_epochs(row, data, options), row_settings(row))
        for data in data_sets(options, COLUMNS)
        for seed in range(seeds_of(data, options))
        for column in [*PLANTED, *(human_columns(options, HUMAN_SETS) if data == FEATURES else [])]
        for row in ROWS
    ]


def row_epochs(row: str, data: str, options: Options) -> int:
    if row not in OURS and row not in PLAIN:
        return 0
    preset = OURS[row][0] if row in OURS else "paper"
    usual = resolve(make_config(preset_of(preset)), N_ROWS[data], N_CLASSES).n_rounds
    return options.epochs or (QUICK_EPOCHS if options.quick else usual)


def row_settings(row: str) -> dict[str, Any]:
    preset, changes = OURS.get(row, ("plus" if row == ONE_GRAPH else "paper", PLAIN.get(row, {})))
    return {"preset": preset, "changes": dict(changes)}


def play(cell: Cell, options: Options, say: Say) -> Measured:
    if cell.row in (KNN, CLEANLAB):
        prepare(cell.row)  # before any work: cleanlab may not be installed
    task, truth = task_of(cell, options)
    if cell.row in OURS or cell.row in PLAIN:
        found = mend(task, truth, say) if cell.row in OURS else train_plainly(task, truth, say)
        return Measured(found.figures, found.curves)
    began = time.perf_counter()
    labels = one_graph(task) if cell.row == ONE_GRAPH else neighbour_labels(cell, task, options)
    seconds = time.perf_counter() - began
    return Measured({**label_figures(task, truth, labels), "seconds": seconds})


def one_graph(task: Task) -> Codes:
    """Propagation from all given labels on the graph of the samples themselves; who is not reached keeps the label."""
    problem, settings = task.problem, task.settings
    assert isinstance(problem.samples, VectorSamples)
    given = problem.given_labels
    graph = normalized_graph(exact_neighbors(normalize_rows(problem.samples.rows), settings.graph_k), settings.gamma)
    start = starting_rows(given, given.new_zeros(len(given)), 0)
    found, _ = propagate(
        graph,
        [start],
        problem.n_classes,
        settings.alpha,
        settings.scale_columns,
        settings.tolerance,
        settings.max_iter,
    )
    labels = found.labels[:, 0]
    return labels.where(labels >= 0, given).cpu().numpy()


def neighbour_labels(cell: Cell, task: Task, options: Options) -> Codes:
    """What a k-NN vote or cleanlab makes of the vectors as a user has them, before any scaling of ours."""
    features = vectors_of(cell.data, cell.seed, options.data, options.quick).features
    given = task.problem.given_labels.cpu().numpy()
    return np.asarray(METHODS[cell.row](features, given, NEIGHBOURS[cell.data], cell.seed).labels)


def show(results: Sequence[Result], images: Path) -> str:
    return show_tables(Shape(ROWS, COLUMNS, ("label_accuracy",), LEGEND, epochs_by_row=True), results)


NEEDS = "digits (in scikit-learn), cifar10_features.npz and labels.npz"
EXPERIMENTS = {
    "peers": Experiment(
        "our method against its neighbours, and without its packages",
        NEEDS,
        partial(missing, columns=COLUMNS),
        cells,
        play,
        show,
    )
}

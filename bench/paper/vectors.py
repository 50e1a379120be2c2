"""Feature vectors with label noise as tasks: scikit-learn's digits, and the first rows of CIFAR-10 as features.

Planted noise is drawn anew with every seed; people's labels are the same for all of them. Test samples are the other
30 % of the digits, and the features of CIFAR-10's test pictures where labels.npz has their classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.datasets import RATE, FloatArray, IntArray, human, human_sets, read_arrays, split_digits
from bench.paper.experiment import Options, preset_of
from bench.paper.trial import Truth, codes_of
from labelmend.config import make_config
from labelmend.diagnosis import noise
from labelmend.inputs.features import fit_scaler
from labelmend.inputs.labels import read_labels
from labelmend.runs.task import Task, vector_task
from labelmend.samples import VectorSamples

DIGITS, FEATURES = "digits", "features"
FEATURE_FILES = ("cifar10_features.npz", "labels.npz")
FEATURE_ROWS, QUICK_ROWS, QUICK_TEST = 10_000, 100, 40
TREES = {DIGITS: 200, FEATURES: 50}  # of the forest that finds confusing samples
QUICK_TREES = 5
HUMAN = "human, "  # begins the name of people's labels
SYMMETRIC50, SYMMETRIC80, SYMMETRIC40 = "symmetric 50 %", "symmetric 80 %", "symmetric 40 %"
RANDOM, CONFUSING, PATCH, BOTH = "random 20 %", "confusing 20 %", "patch 20 %", "both, 20 % each"
PLANTED = (RANDOM, CONFUSING, PATCH, BOTH)
# Settings of a run that shows only that it runs.
QUICK: dict[str, Any] = {"hidden": 16, "warmup_passes": 1, "graph_k": 4}


@dataclass(frozen=True)
class Vectors:
    features: FloatArray
    true_labels: IntArray
    test_features: FloatArray
    test_labels: IntArray


def vectors_of(data: str, seed: int, folder: Path | None, quick: bool) -> Vectors:
    found = _digits(seed) if data == DIGITS else _features(str(folder))
    if not quick:
        return found
    n, t = QUICK_ROWS, QUICK_TEST
    return Vectors(found.features[:n], found.true_labels[:n], found.test_features[:t], found.test_labels[:t])


def noisy_labels(data: str, column: str, seed: int, folder: Path | None, quick: bool) -> IntArray:
    """The given labels of a column; a forest finds the confusing samples, once per seed."""
    if column.startswith(HUMAN):
        n_rows = QUICK_ROWS if quick else FEATURE_ROWS
        return human(str(folder), column.removeprefix(HUMAN), n_rows).given_labels
    found = vectors_of(data, seed, folder, quick)
    true, rng, n_classes = found.true_labels, np.random.default_rng(seed), int(found.true_labels.max()) + 1
    plant: dict[str, Callable[[], IntArray]] = {
        RANDOM: lambda: noise.random(true, RATE, n_classes, rng),
        CONFUSING: lambda: noise.confusing(true, RATE, _confusion(data, seed, folder, quick)),
        PATCH: lambda: noise.patch(true, RATE, found.features, rng),
        BOTH: lambda: noise.both(true, RATE, _confusion(data, seed, folder, quick), rng),
    }
    if column in plant:
        return plant[column]()
    return noise.symmetric(true, int(column.split()[1]) / 100, n_classes, rng)


def task_of_vectors(
    data: str, column: str, seed: int, preset: str, changes: dict[str, Any], options: Options
) -> tuple[Task, Truth]:
    """The vectors with the labels of a column, and what is true of them."""
    found = vectors_of(data, seed, options.data, options.quick)
    labels = read_labels(noisy_labels(data, column, seed, options.data, options.quick))
    # A thousand rows are too few for a GPU; the graphs of ten thousand are what it is good at.
    device = "cpu" if data == DIGITS and options.device == "auto" else options.device
    chosen = {"device": device, **changes, **(QUICK if options.quick else {})}
    config = make_config(preset_of(preset), "vectors", seed=seed, **chosen)
    matrix = np.ascontiguousarray(found.features, dtype=np.float32)
    task = vector_task(matrix, labels, np.zeros(len(matrix), dtype=bool), config, None)
    classes = np.asarray(labels.classes)
    true = codes_of(found.true_labels, classes)
    if not len(found.test_labels):
        return task, Truth(true)
    scaled = fit_scaler(matrix, seed)(found.test_features.astype(np.float32))
    test = VectorSamples(torch.from_numpy(scaled).to(task.problem.samples.device))
    return task, Truth(true, test, codes_of(found.test_labels, classes))


def missing_features(options: Options) -> str | None:
    absent = [name for name in FEATURE_FILES if options.file(name) is None]
    return f"{' and '.join(absent)} not in --data" if absent else None


def human_columns(options: Options, wanted: tuple[str, ...] = ()) -> list[str]:
    """The columns of people's labels in the folder: all, or the wanted ones."""
    found = [name for name in human_sets(str(options.data)) if name != "clean"]
    return [HUMAN + name for name in found if not wanted or name in wanted]


def _digits(seed: int) -> Vectors:
    pixels, test_pixels, labels, test_labels = split_digits(seed)
    return Vectors(pixels, labels, test_pixels, test_labels)


@lru_cache(maxsize=1)
def _features(folder: str) -> Vectors:
    rows = human(folder, "clean", FEATURE_ROWS)
    labels = read_arrays(Path(folder) / "labels.npz", ())
    tests = read_arrays(Path(folder) / "cifar10_features.npz", ()).get("test")
    shown = labels.get("cifar10_test")
    if tests is None or shown is None or len(tests) != len(shown):
        return Vectors(rows.features, rows.true_labels, rows.features[:0], rows.true_labels[:0])
    return Vectors(rows.features, rows.true_labels, tests.astype(np.float32), shown.astype(np.int64))


@lru_cache(maxsize=8)
def _confusion(data: str, seed: int, folder: Path | None, quick: bool) -> FloatArray:
    found = vectors_of(data, seed, folder, quick)
    return noise.forest_probabilities(found.features, found.true_labels, seed, QUICK_TREES if quick else TREES[data])

"""The data of the benchmarks, with the truth beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from labelmend.diagnosis import noise
from labelmend.errors import DataError

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.floating[Any]]

RATE = 0.2
NOISE_KINDS = ("random", "confusing", "both", "patch", "clean")
HUMAN_SETS = ("aggregate", "random1", "worst")  # first in every table; other sets in the file follow
PREFIX = "cifar10n_"


@dataclass(frozen=True)
class Dataset:
    features: FloatArray
    given_labels: IntArray
    true_labels: IntArray


def digits(seed: int, kind: str, n_rows: int | None = None) -> Dataset:
    """scikit-learn's digits, 70 % of them, with one kind of planted errors."""
    pixels, true_labels = digit_rows(seed, n_rows)
    rng = np.random.default_rng(seed)
    plant: dict[str, Callable[[], IntArray]] = {
        "random": lambda: noise.random(true_labels, RATE, 10, rng),
        "confusing": lambda: noise.confusing(true_labels, RATE, digits_confusion(seed, n_rows)),
        "both": lambda: noise.both(true_labels, RATE, digits_confusion(seed, n_rows), rng),
        "patch": lambda: noise.patch(true_labels, RATE, pixels, rng),
        "clean": lambda: true_labels.copy(),
    }
    return Dataset(pixels, plant[kind](), true_labels)


def human(folder: str, label_set: str, n_rows: int | None = None) -> Dataset:
    """Features of CIFAR-10 and the labels that people gave the pictures; `label_set` clean gives the true labels."""
    features = _in_folder(Path(folder) / "cifar10_features.npz", ("train",))["train"]
    name = "cifar10_train" if label_set == "clean" else PREFIX + label_set
    labels = _in_folder(Path(folder) / "labels.npz", ("cifar10_train", name))
    lengths = {len(features), len(labels[name]), len(labels["cifar10_train"])}
    if len(lengths) != 1:
        raise DataError(f"features and labels must have the same length. Got {sorted(lengths)} rows in {folder}.")
    return Dataset(
        features[:n_rows].astype(np.float32),
        labels[name][:n_rows].astype(np.int64),
        labels["cifar10_train"][:n_rows].astype(np.int64),
    )


def human_sets(folder: str) -> list[str]:
    """The label sets in the folder: the known ones, any other, and the true labels as "clean"."""
    found = [
        name.removeprefix(PREFIX) for name in _in_folder(Path(folder) / "labels.npz", ()) if name.startswith(PREFIX)
    ]
    known = [name for name in HUMAN_SETS if name in found]
    return [*known, *sorted(set(found) - set(HUMAN_SETS)), "clean"]


def clusters(seed: int, n_rows: int, n_columns: int, n_classes: int, spread: float) -> Dataset:
    """Gaussian clusters of unit width around centres of width `spread`, a fifth of the labels random."""
    rng = np.random.default_rng(seed)
    true_labels = rng.permutation(np.arange(n_rows, dtype=np.int64) % n_classes)
    centres = spread * rng.standard_normal((n_classes, n_columns), dtype=np.float32)
    features = rng.standard_normal((n_rows, n_columns), dtype=np.float32)
    for label in range(n_classes):  # class by class: no second array of this size in the memory that is measured
        features[true_labels == label] += centres[label]
    return Dataset(features, noise.random(true_labels, RATE, n_classes, rng), true_labels)


SOURCES: dict[str, Callable[..., Dataset]] = {"digits": digits, "human": human, "clusters": clusters}


def digit_rows(seed: int, n_rows: int | None) -> tuple[FloatArray, IntArray]:
    """Pixels between 0 and 1 and what they show, of the 70 % that are corrected."""
    pixels, _, labels, _ = split_digits(seed)
    return pixels[:n_rows], labels[:n_rows]


@lru_cache(maxsize=16)
def split_digits(seed: int) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
    """Pixels of the digits that are corrected and of those that test, then their labels."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    pixels, labels = load_digits(return_X_y=True)
    labels = labels.astype(np.int64)
    parts = train_test_split(pixels / 16, labels, test_size=0.3, random_state=seed, stratify=labels)
    return parts[0], parts[1], parts[2], parts[3]


@lru_cache(maxsize=16)
def digits_confusion(seed: int, n_rows: int | None) -> NDArray[np.float64]:
    return noise.forest_probabilities(*digit_rows(seed, n_rows), seed=seed)


def _in_folder(path: Path, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    if not path.is_file():
        raise DataError(f"--data must be a folder with cifar10_features.npz and labels.npz. {path} does not exist.")
    return read_arrays(path, names)


def read_arrays(path: Path, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """The named arrays of an .npz, or all of them."""
    try:
        with np.load(path) as file:
            missing = [name for name in names if name not in file]
            if missing:
                raise DataError(f"{path} must hold {', '.join(names)}. {', '.join(missing)} is missing.")
            return {name: file[name] for name in names or file.files}
    except DataError:
        raise
    except (OSError, ValueError, EOFError, AttributeError, BadZipFile) as error:
        raise DataError(f"{path} must be an .npz file of arrays. Could not read it: {error}.") from error

"""The zoo of a clean checkout: sets of scikit-learn, some thinned to rare classes, errors by `diagnosis/noise.py`.

Thinning, drawing and planting follow the seed. `random`NN and the other kinds end with the share of wrong labels in
percent; clean has none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.datasets import Dataset, FloatArray, IntArray
from labelmend.diagnosis import noise

ALL = ("clean", "random10", "random20", "random40", "asym20", "inst20", "conf15", "patch20")
TREES = 100
Rows = tuple[FloatArray, IntArray]


@dataclass(frozen=True)
class OwnSet:
    draw: Callable[[int], Rows]
    shape: tuple[int, int, int]  # rows, columns, classes
    family: str
    kinds: tuple[str, ...] = ALL


def load(name: str, kind: str, seed: int) -> Dataset:
    features, true_labels = draw(name, seed)
    return Dataset(features, plant(name, kind, seed), true_labels)


@lru_cache(maxsize=4)
def draw(name: str, seed: int) -> Rows:
    features, labels = SETS[name].draw(seed)
    return features.astype(np.float32), labels.astype(np.int64)


def plant(name: str, kind: str, seed: int) -> IntArray:
    features, true = draw(name, seed)
    what, percent = parse(kind)
    rate, n_classes, rng = percent / 100, int(true.max()) + 1, np.random.default_rng(100 + seed)
    plants: dict[str, Callable[[], IntArray]] = {
        "clean": true.copy,
        "random": lambda: noise.random(true, rate, n_classes, rng),
        "asym": lambda: noise.asymmetric(true, 2 * rate, {c: (c + 1) % n_classes for c in range(1, n_classes, 2)}, rng),
        "inst": lambda: noise.instance_dependent(true, rate, features, rng),
        "conf": lambda: noise.confusing(true, rate, confusion(name, seed)),
        "patch": lambda: noise.patch(true, rate, standardised(features), rng),
    }
    return plants[what]()


def parse(kind: str) -> tuple[str, float]:
    """random20 -> random, 20."""
    found = re.fullmatch(r"([a-z]+)(\d*)", kind)
    assert found is not None
    return found[1], float(found[2] or 0)


@lru_cache(maxsize=4)
def confusion(name: str, seed: int) -> NDArray[np.float64]:
    return noise.forest_probabilities(*draw(name, seed), seed, TREES)


def standardised(features: FloatArray) -> FloatArray:
    deviation = features.std(axis=0)
    return np.asarray((features - features.mean(axis=0)) / np.where(deviation > 0, deviation, 1))


def whole(name: str) -> Callable[[int], Rows]:
    def read(seed: int) -> Rows:
        from sklearn import datasets

        features, labels = getattr(datasets, f"load_{name}")(return_X_y=True)
        return np.asarray(features), np.asarray(labels)

    return read


def breast_cancer(malignant: int) -> Callable[[int], Rows]:
    """All benign samples and some of the malignant ones."""

    def thin(seed: int) -> Rows:
        return thinned(*whole("breast_cancer")(seed), 0, malignant, seed)

    return thin


def digit_three(seed: int) -> Rows:
    """Threes against all other digits, 5 in 100."""
    pixels, digits = whole("digits")(seed)
    return thinned(pixels, (digits == 3).astype(np.int64), 1, 85, seed)


def one_in_a_hundred(seed: int) -> Rows:
    from sklearn.datasets import make_classification

    made: Any = make_classification(
        3000, 20, n_informative=8, weights=[0.99], class_sep=1.5, flip_y=0, random_state=seed
    )
    return made[0], made[1]


def thinned(features: FloatArray, labels: IntArray, rare: int, n: int, seed: int) -> Rows:
    """`n` random samples of the class `rare` and all of the others, in the order they were."""
    members = np.flatnonzero(labels == rare)
    kept = np.random.default_rng(seed).choice(members, n, replace=False)
    rows = np.sort(np.concatenate([np.flatnonzero(labels != rare), kept]))
    return features[rows], labels[rows]


SETS = {
    "iris": OwnSet(whole("iris"), (150, 4, 3), "iris"),
    "wine": OwnSet(whole("wine"), (178, 13, 3), "wine"),
    "breast_cancer": OwnSet(whole("breast_cancer"), (569, 30, 2), "breast_cancer"),
    "breast_cancer_10_1": OwnSet(breast_cancer(36), (393, 30, 2), "breast_cancer"),
    "breast_cancer_95_5": OwnSet(breast_cancer(19), (376, 30, 2), "breast_cancer"),
    "digits": OwnSet(whole("digits"), (1797, 64, 10), "digits"),
    "digit_three_95_5": OwnSet(digit_three, (1699, 64, 2), "digits", ("random8", *ALL)),
    "one_in_a_hundred": OwnSet(one_in_a_hundred, (3000, 20, 2), "one_in_a_hundred", ("clean", "random20")),
}

"""Planted label errors, for benchmarks, tests and self-tests: the only generators of wrong labels.

Knows true labels; of what corrects labels only `planting.py` and `kinds.py` may import this: they plant errors on top
of given or decided labels and take these for the truth.
Every generator returns a changed copy. `random`, `confusing` and `patch` never draw the true class; `among` (true where
a label may be changed) keeps them to some of the samples, and a rate is a share of all samples all the same.
`symmetric` draws from all classes, the true one included, as every published table does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

IntArray = NDArray[np.int64]
Mask = NDArray[np.bool_]

# Published asymmetric noise on CIFAR-10: truck -> automobile, bird -> airplane, cat <-> dog, deer -> horse.
CIFAR10_ASYMMETRIC = {9: 1, 2: 0, 3: 5, 5: 3, 4: 7}


def symmetric(labels: ArrayLike, rate: float, n_classes: int, rng: np.random.Generator) -> IntArray:
    """Redraw a share of the labels uniformly from ALL classes: 50 % means 45 % wrong on ten classes."""
    noisy = np.array(labels, dtype=np.int64)
    chosen = _choose(len(noisy), rate, rng)
    noisy[chosen] = rng.integers(n_classes, size=len(chosen))
    return noisy


def asymmetric(labels: ArrayLike, rate: float, mapping: dict[int, int], rng: np.random.Generator) -> IntArray:
    """Move a share of every class in `mapping` to the class it maps to."""
    labels = np.asarray(labels, dtype=np.int64)
    noisy = labels.copy()
    for source, target in mapping.items():
        members = np.flatnonzero(labels == source)
        noisy[members[_choose(len(members), rate, rng)]] = target
    return noisy


def random(
    labels: ArrayLike, rate: float, n_classes: int, rng: np.random.Generator, among: Mask | None = None
) -> IntArray:
    """Give a share of the samples another class, uniformly."""
    noisy = np.array(labels, dtype=np.int64)
    return _flip_randomly(noisy, _choose(len(noisy), rate, rng, among), n_classes, rng)


def confusing(
    labels: ArrayLike, rate: float, probabilities: NDArray[np.floating], among: Mask | None = None
) -> IntArray:
    """Give the samples nearest to a decision boundary the class on the other side of it.

    `probabilities` are out-of-fold class probabilities, see `forest_probabilities`.
    """
    codes = np.asarray(labels, dtype=np.int64)
    rival, margin = nearest_rival(codes, np.asarray(probabilities, dtype=np.float64))
    margin = margin if among is None else np.where(among, margin, np.inf)
    return replaced(codes, np.argsort(margin, kind="stable")[: _number(len(codes), rate, among)], rival)


def replaced(labels: IntArray, rows: NDArray[np.intp], others: IntArray) -> IntArray:
    """Some of the labels replaced by `others`, which run along all samples."""
    noisy = labels.copy()
    noisy[rows] = others[rows]
    return noisy


def nearest_rival(labels: IntArray, probabilities: NDArray[Any]) -> tuple[IntArray, NDArray[np.floating]]:
    """The most probable other class of every sample, and how far ahead of it its own class is."""
    rivals = np.array(probabilities, dtype=np.result_type(probabilities, np.float32))
    places = np.arange(len(labels))
    own = rivals[places, labels].copy()
    rivals[places, labels] = -np.inf
    return rivals.argmax(axis=1), own - rivals.max(axis=1)


def both(labels: ArrayLike, rate: float, probabilities: NDArray[np.floating], rng: np.random.Generator) -> IntArray:
    """`confusing` at `rate`, plus `random` at `rate` on other samples: twice the rate is wrong."""
    return mixture(labels, {"confusing": rate, "random": rate}, probabilities, None, rng)


def patch(
    labels: ArrayLike,
    rate: float,
    features: ArrayLike,
    rng: np.random.Generator,
    size: int = 15,
    among: Mask | None = None,
) -> IntArray:
    """Mislabel whole neighbourhoods: a random sample and its nearest unflipped samples of its class, `size` in all.

    They get the class whose mean is nearest to the sample. This is the case the paper was made for.
    """
    labels = np.asarray(labels, dtype=np.int64)
    features = np.asarray(features, dtype=np.float64)
    noisy = labels.copy()
    classes = np.unique(labels)
    means = np.stack([features[labels == c].mean(axis=0) for c in classes])
    free = np.ones(len(labels), dtype=bool) if among is None else np.array(among, dtype=bool)
    left = _number(len(labels), rate, among)
    while left > 0:
        seed = rng.choice(np.flatnonzero(free))
        members = np.flatnonzero(free & (labels == labels[seed]))
        distance = ((features[members] - features[seed]) ** 2).sum(axis=1)
        chosen = members[np.argsort(distance, kind="stable")[: min(size, left)]]
        to_means = ((means - features[seed]) ** 2).sum(axis=1)
        to_means[classes == labels[seed]] = np.inf
        noisy[chosen] = classes[to_means.argmin()]
        free[chosen] = False
        left -= len(chosen)
    return noisy


def graph_patch(
    labels: IntArray, count: int, rival: IntArray, neighbors: IntArray, rng: np.random.Generator, among: Mask
) -> IntArray:
    """Samples, each with its nearest ones of the same class, get its `rival` class, until `count` are wrong."""
    noisy, untouched, planted = labels.copy(), among.copy(), 0
    for middle in rng.permutation(np.flatnonzero(among)):
        if planted >= count:
            break
        members = np.append(neighbors[middle], middle)
        members = members[untouched[members] & (labels[members] == labels[middle])]
        noisy[members] = rival[middle]
        untouched[members] = False
        planted += len(members)
    return noisy


def instance_dependent(labels: ArrayLike, rate: float, features: ArrayLike, rng: np.random.Generator) -> IntArray:
    """Errors that follow the features: each class has a random direction, and samples far along it are likelier wrong.

    They get the other class whose own random direction they lie farthest along. After Xia et al. 2020, with an exact
    number of errors.
    """
    noisy = np.array(labels, dtype=np.int64)
    columns = np.asarray(features, dtype=np.float64)
    columns = (columns - columns.mean(axis=0)) / np.maximum(columns.std(axis=0), 1e-12)
    shape, rows = (columns.shape[1], int(noisy.max()) + 1), np.arange(len(noisy))
    directions = rng.standard_normal(shape)
    doubt = (columns @ (directions / np.linalg.norm(directions, axis=0)))[rows, noisy]
    chosen = np.argsort(-(doubt + rng.gumbel(size=len(noisy))), kind="stable")[: _number(len(noisy), rate, None)]
    pull = columns @ rng.standard_normal(shape)
    pull[rows, noisy] = -np.inf
    noisy[chosen] = pull[chosen].argmax(axis=1)
    return noisy


def mixture(
    labels: ArrayLike,
    rates: dict[str, float],
    probabilities: NDArray[np.floating],
    features: ArrayLike | None,
    rng: np.random.Generator,
) -> IntArray:
    """`confusing`, then `patch`, then `random`, each at its own rate of all samples and on samples still untouched."""
    labels = np.asarray(labels, dtype=np.int64)
    noisy = confusing(labels, rates.get("confusing", 0.0), probabilities)
    untouched = np.flatnonzero(noisy == labels)
    if "patch" in rates:
        rate = rates["patch"] * len(labels) / len(untouched)
        noisy[untouched] = patch(labels[untouched], rate, np.asarray(features)[untouched], rng)
        untouched = np.flatnonzero(noisy == labels)
    wanted = min(round(rates.get("random", 0.0) * len(labels)), len(untouched))
    return _flip_randomly(noisy, rng.choice(untouched, size=wanted, replace=False), probabilities.shape[1], rng)


def forest_probabilities(features: ArrayLike, labels: ArrayLike, seed: int, n_trees: int = 200) -> NDArray[np.float64]:
    """Out-of-fold random-forest probabilities on the true labels (5 folds), the measure of confusion."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import cross_val_predict

    forest = RandomForestClassifier(n_estimators=n_trees, random_state=seed, n_jobs=-1)
    return np.asarray(cross_val_predict(forest, features, labels, cv=5, method="predict_proba"))


def _choose(n: int, rate: float, rng: np.random.Generator, among: Mask | None = None) -> NDArray[np.intp]:
    rows = np.arange(n) if among is None else np.flatnonzero(among)
    return rng.choice(rows, size=_number(n, rate, among), replace=False)


def _number(n: int, rate: float, among: Mask | None) -> int:
    """How many samples a rate of all `n` means, and at most those that may be changed."""
    return min(round(rate * n), n if among is None else int(np.count_nonzero(among)))


def _flip_randomly(noisy: IntArray, chosen: NDArray[np.intp], n_classes: int, rng: np.random.Generator) -> IntArray:
    shift = rng.integers(1, n_classes, size=len(chosen))
    noisy[chosen] = (noisy[chosen] + shift) % n_classes
    return noisy

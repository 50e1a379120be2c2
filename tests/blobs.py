"""Clouds of points that anything can tell apart, and settings that take hundredths of a second."""

import numpy as np

from labelmend.config import as_word

QUICK = {
    "n_rounds": 2,
    "n_branches": 2,
    "packages_per_branch": 2,
    "hidden": 16,
    "graph_k": 5,
    "device": "cpu",
}


def as_options(parameters):
    """Parameters of the method for the command line."""
    return [word for name, value in parameters.items() for word in ("--expert", f"{name}={as_word(value)}")]


def blobs(n=60, n_classes=3, n_columns=4, spread=0.3, seed=0):
    """(features, classes 0..C-1) of clouds around random points of a wide cube; classes take turns along the rows."""
    random = np.random.default_rng(seed)
    centres = random.uniform(-8, 8, size=(n_classes, n_columns))
    classes = np.arange(n) % n_classes
    return centres[classes] + spread * random.normal(size=(n, n_columns)), classes


def plant(classes, share, seed=0):
    """The labels with a share of them moved to another class, and where."""
    random = np.random.default_rng(seed)
    wrong = random.permutation(len(classes))[: round(share * len(classes))]
    n_classes = classes.max() + 1
    given = classes.copy()
    given[wrong] = (classes[wrong] + random.integers(1, n_classes, size=len(wrong))) % n_classes
    return given, wrong

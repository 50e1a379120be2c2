"""Samples with planted errors: a data set, a kind of errors and a rate in percent give the labels for any seed.

Knows the truth; runs nothing. Records are small enough to be sent to another process, which reads the samples itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bench.datasets import digit_rows, digits_confusion, human
from labelmend.cli.demo_data import FloatArray, IntArray
from labelmend.diagnosis import noise
from labelmend.diagnosis.kinds import KINDS

DIGITS, FEATURES = "digits", "features"
MIXED = "mixed"  # a third of each kind
PLANTED = (*KINDS, MIXED)
FEATURE_TREES = 100


@dataclass(frozen=True)
class Source:
    """Where samples come from."""

    name: str
    folder: str | None = None  # of the features
    n_rows: int | None = None  # None: all

    @property
    def title(self) -> str:
        return DIGITS if self.name == DIGITS else "CIFAR-10 features"

    def rows(self, seed: int) -> tuple[FloatArray, IntArray]:
        """Samples and what they are; only digits are drawn anew with every seed."""
        if self.name == DIGITS:
            return digit_rows(seed, self.n_rows)
        assert self.folder is not None
        return _feature_rows(self.folder, self.n_rows)

    def confusion(self, seed: int) -> NDArray[np.float64]:
        """Out-of-fold class probabilities of every sample."""
        if self.name == DIGITS:
            return digits_confusion(seed, self.n_rows)
        assert self.folder is not None
        return _feature_confusion(self.folder, self.n_rows)


@dataclass(frozen=True)
class Place:
    """A cell of a table."""

    source: Source
    kind: str
    percent: float

    @property
    def name(self) -> str:
        return f"{self.source.title}, {f'{self.kind}, {self.percent:g}%' if self.percent else 'true labels'}"

    def given_labels(self, seed: int) -> IntArray:
        features, true_labels = self.source.rows(seed)
        rate, rng = self.percent / 100, np.random.default_rng(100 + seed)
        if rate == 0:
            return true_labels.copy()
        if self.kind == "random":
            return noise.random(true_labels, rate, int(true_labels.max()) + 1, rng)
        if self.kind == "patch":
            return noise.patch(true_labels, rate, features, rng)
        if self.kind == "confusing":
            return noise.confusing(true_labels, rate, self.source.confusion(seed))
        rates = dict.fromkeys(KINDS, rate / len(KINDS))
        return noise.mixture(true_labels, rates, self.source.confusion(seed), features, rng)


@lru_cache(maxsize=2)
def _feature_rows(folder: str, n_rows: int | None) -> tuple[FloatArray, IntArray]:
    """The first rows, in the order of the file."""
    data = human(folder, "clean", n_rows)
    return data.features, data.true_labels


@lru_cache(maxsize=2)
def _feature_confusion(folder: str, n_rows: int | None) -> NDArray[np.float64]:
    return noise.forest_probabilities(*_feature_rows(folder, n_rows), 0, FEATURE_TREES)

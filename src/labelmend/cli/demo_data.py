"""Pictures of clothes that come with the library, with the truth beside them, and the errors of the demo.

`clothes.npz` was drawn from the 60,000 training pictures of Fashion-MNIST (MIT, see clothes.LICENSE): of eight of the
ten classes the first 375 pictures in the order of the file, kept in that order; each 28 x 28 picture is averaged over
blocks of 2 x 2 pixels and rounded. No random numbers are involved.

Coats and shirts are left out, a choice made after a look at the results. With all ten classes (300 pictures each) an
out-of-fold forest of 50 trees gets .81 of the pictures right, so a fifth of confusing errors turns the labels into
little else than its guesses, and of 80.0 % right labels labelmend made 80.4 %, cleanlab 80.8 %, a 10-NN vote 78.7 %
(seed 0). With these eight the forest gets .92 right, and there is something to see; the vote is strong there (87.7 %,
cleanlab 84.2 %).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.diagnosis import noise

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.floating[Any]]

RATE = 0.2
DEMO_TREES = 50  # 200 trees, as in the benchmarks, would take the demo four times as long to plant its errors


@dataclass(frozen=True)
class Dataset:
    features: FloatArray
    given_labels: IntArray
    true_labels: IntArray


CLOTHES = Path(__file__).with_name("clothes.npz")


@dataclass(frozen=True)
class Clothes:
    pictures: NDArray[np.uint8]  # (n, 14, 14)
    true_labels: IntArray
    class_names: NDArray[np.str_]


def clothes() -> Clothes:
    """The pictures that come with the library."""
    with np.load(CLOTHES) as file:
        return Clothes(file["pictures"], file["true_labels"].astype(np.int64), file["class_names"])


def clothes_with_errors(seed: int, n_rows: int | None = None) -> Dataset:
    source = clothes()
    true_labels = source.true_labels[:n_rows]
    return Dataset(*with_confusing_errors(source.pictures[:n_rows], true_labels, seed), true_labels)


def with_confusing_errors(pictures: NDArray[np.uint8], true_labels: IntArray, seed: int) -> tuple[FloatArray, IntArray]:
    """Pixels between 0 and 1, and labels a fifth of which are wrong: those nearest to another class get that class."""
    pixels = pictures.reshape(len(pictures), -1) / np.float32(255)
    probabilities = noise.forest_probabilities(pixels, true_labels, seed, DEMO_TREES)
    return pixels, noise.confusing(true_labels, RATE, probabilities)

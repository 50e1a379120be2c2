"""Pictures of the benchmarks, with the truth beside them: CIFAR-10 from a file, clothes that come with the library.

Label sets: `clean`; `symmetric50` and `asymmetric40` (any rate) are drawn anew with every seed; any other name stands
for people's labels, the array cifar10n_NAME of a second file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.datasets import PREFIX, RATE, IntArray, read_arrays
from labelmend.cli.demo import TREES, clothes
from labelmend.diagnosis import noise
from labelmend.errors import ConfigError, DataError

Pixels = NDArray[np.uint8]
ARRAYS = ("x_train", "y_train", "x_test", "y_test")
TRUE_LABELS = "cifar10_train"
# Settings of a run that shows only that it runs, and how many pictures it gets.
QUICK: dict[str, Any] = {
    "n_branches": 2,
    "packages_per_branch": 1,
    "width": 4,
    "graph_k": 4,
    "warmup_passes": 1,
    "batch_size": 16,
}
QUICK_PICTURES, QUICK_TEST = 60, 20
SMOKE_PICTURES, QUICK_SMOKE_PICTURES = 2_000, 120
RANDOM_PICTURES, QUICK_RANDOM_PICTURES = 50_000, 60


@dataclass(frozen=True)
class PictureSet:
    """Pictures (n, H, W, C) and what they show."""

    pixels: Pixels
    true_labels: IntArray
    test_pixels: Pixels
    test_labels: IntArray

    @property
    def n_classes(self) -> int:
        return int(self.true_labels.max()) + 1


def read_pictures(path: Path | None, quick: bool = False) -> PictureSet:
    """The file that --data names; `quick`: only its first pictures."""
    if path is None:
        raise ConfigError(
            f"this benchmark needs --data FILE.npz with {', '.join(ARRAYS)}: uint8 pictures (n, H, W, C) and their "
            "true classes. Got no --data instead."
        )
    found = read_arrays(path, ARRAYS)
    for pixels, labels in (("x_train", "y_train"), ("x_test", "y_test")):
        shape = found[pixels].shape
        if found[pixels].dtype != np.uint8 or len(shape) != 4 or found[labels].size != shape[0]:
            raise DataError(
                f"{pixels} of {path} must be uint8 pictures (n, H, W, C) with one class each in {labels}. "
                f"Got {found[pixels].dtype} {shape} and {found[labels].shape} instead."
            )
    n, n_test = (QUICK_PICTURES, QUICK_TEST) if quick else (None, None)
    return PictureSet(
        found["x_train"][:n],
        found["y_train"].ravel()[:n].astype(np.int64),
        found["x_test"][:n_test],
        found["y_test"].ravel()[:n_test].astype(np.int64),
    )


def random_pictures(quick: bool) -> PictureSet:
    """Noise of the shape of CIFAR-10: to measure time, not accuracy."""
    n, side = (QUICK_RANDOM_PICTURES, 8) if quick else (RANDOM_PICTURES, 32)
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (n, side, side, 3), dtype=np.uint8)
    labels = np.arange(n, dtype=np.int64) % 10
    return PictureSet(pixels, labels, pixels[:0], labels[:0])


def pictures_to_mend(path: Path | None, seed: int, quick: bool) -> tuple[PictureSet, IntArray]:
    """A few pictures with a fifth of confusing errors, and the labels given; others test.

    Clothes that come with the library, or the first pictures of a file.
    """
    n = QUICK_SMOKE_PICTURES if quick else SMOKE_PICTURES
    n_test = QUICK_TEST if quick else None
    if path is None:
        source = clothes()
        pixels, true = source.pictures[..., None], source.true_labels
        some = PictureSet(pixels[:n], true[:n], pixels[n:][:n_test], true[n:][:n_test])
    else:
        whole = read_pictures(path)
        some = PictureSet(
            whole.pixels[:n], whole.true_labels[:n], whole.test_pixels[:n_test], whole.test_labels[:n_test]
        )
    rows = some.pixels.reshape(len(some.pixels), -1) / np.float32(255)
    probabilities = noise.forest_probabilities(rows, some.true_labels, seed, TREES)
    return some, noise.confusing(some.true_labels, RATE, probabilities)


def given_labels(pictures: PictureSet, label_set: str, labels: Path | None, seed: int) -> IntArray:
    true, rng = pictures.true_labels, np.random.default_rng(seed)
    if label_set == "clean":
        return true.copy()
    if planted := re.fullmatch(r"(symmetric|asymmetric)(\d\d?)", label_set):
        rate = int(planted[2]) / 100
        plant: dict[str, Callable[[], IntArray]] = {
            "symmetric": lambda: noise.symmetric(true, rate, pictures.n_classes, rng),
            "asymmetric": lambda: noise.asymmetric(true, rate, noise.CIFAR10_ASYMMETRIC, rng),
        }
        return plant[planted[1]]()
    return _by_people(pictures, label_set, labels)


def is_drawn(label_set: str) -> bool:
    """Whether another seed gives other labels."""
    return "symmetric" in label_set


def _by_people(pictures: PictureSet, label_set: str, labels: Path | None) -> IntArray:
    if labels is None:
        raise ConfigError(f"the label set {label_set} needs --labels FILE.npz with the array {PREFIX}{label_set}.")
    found = read_arrays(labels, (TRUE_LABELS, PREFIX + label_set))
    n = len(pictures.true_labels)
    true, said = (found[name][:n].astype(np.int64) for name in (TRUE_LABELS, PREFIX + label_set))
    if not np.array_equal(true, pictures.true_labels):
        raise DataError(f"{TRUE_LABELS} of {labels} must be the classes of the pictures, in their order. They differ.")
    return said

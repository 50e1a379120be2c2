"""The decisions of a review as part of the labels: reviewed.npz in a run folder.

    samples, codes   positions of the samples a person labelled, and the classes they chose
    unsure           positions of those they could not tell
    until            number of the last line of the log (review/decisions.py) that was merged

The file holds all that has been merged, so writing it anew from the log is all there is to merging again. What the run
itself said is in the other files, unchanged, the status and confidence in labels_before_review.csv.

Knows results and this file; does not know the log.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.files.reading import open_npz
from labelmend.result import REVIEWED, UNREADABLE, Correction

FILE = "reviewed.npz"
BEFORE_REVIEW = "labels_before_review.csv"


@dataclass(frozen=True)
class Reviewed:
    samples: NDArray[np.int64]
    codes: NDArray[np.int64]
    unsure: NDArray[np.int64]
    until: int


def read_reviewed(folder: Path, n: int, n_classes: int) -> Reviewed | None:
    """Of a run with `n` samples and `n_classes`."""
    path = folder / FILE
    if not path.exists():
        return None
    with open_npz(path) as arrays:
        found = Reviewed(arrays["samples"], arrays["codes"], arrays["unsure"], int(arrays["until"]))
    ends = ((found.samples, n), (found.codes, n_classes), (found.unsure, n))
    if len(found.samples) != len(found.codes) or not all(_within(values, end) for values, end in ends):
        raise ValueError(f"{FILE} is not about {n} samples of {n_classes} classes")
    return found


def _within(values: NDArray[Any], end: int) -> bool:
    whole = values.ndim == 1 and values.dtype.kind in "iu"
    return whole and (len(values) == 0 or bool(values.min() >= 0 and values.max() < end))


def write_reviewed(reviewed: Reviewed, folder: Path) -> None:
    np.savez_compressed(
        folder / FILE,
        samples=reviewed.samples,
        codes=reviewed.codes,
        unsure=reviewed.unsure,
        until=np.array(reviewed.until),
    )


def with_reviewed(result: Correction, reviewed: Reviewed | None) -> Correction:
    """The result with a person's labels: status reviewed, confidence 1. What they could not tell stays for review."""
    if reviewed is None:
        return result
    codes, status, confidence = result.corrected_codes.copy(), result.status.copy(), result.confidence.copy()
    codes[reviewed.samples], status[reviewed.samples], confidence[reviewed.samples] = reviewed.codes, REVIEWED, 1.0
    unsure = reviewed.unsure[status[reviewed.unsure] != UNREADABLE]
    status[unsure] = "review"
    return replace(
        result,
        labels=result.given.decode(codes),
        corrected_codes=codes,
        status=status,
        confidence=confidence,
        runner_up=_other_runner_up(result, codes),
    )


def _other_runner_up(result: Correction, codes: NDArray[np.int64]) -> NDArray[Any]:
    """Where a person chose the second class, the run's label is the second now."""
    runner_up, chosen = result.runner_up.copy(), result.given.values(codes)
    swapped = np.flatnonzero((codes != result.corrected_codes) & (runner_up == chosen))
    runner_up[swapped] = result.given.values(result.corrected_codes)[swapped]
    return runner_up

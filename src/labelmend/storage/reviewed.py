"""What a review leaves in a run folder: its decisions merged into the labels, and a lock while it is open.

    RUN/reviewed.npz   samples, codes: positions of the samples a person labelled, and the classes they chose
                       unsure: positions of those they could not tell
                       until: number of the last line of the log (review/decisions.py) that was merged
    RUN/review.lock    number of the process that reviews; several may, and the last one takes the file away

reviewed.npz holds all that has been merged, so writing it anew from the log is all there is to merging again. What the
run itself decided is in the other files, unchanged, the status and confidence in labels_before_review.csv.

Knows results and these files; does not know the log.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import RunFolderError
from labelmend.files.writing import Busy, name_owner, try_lock
from labelmend.result import REVIEWED, UNREADABLE, Correction
from labelmend.storage.run_files import REVIEW_LOCK, REVIEWED_FILE, check_array, read_file, write_file


@dataclass(frozen=True)
class Reviewed:
    samples: NDArray[np.int64]
    codes: NDArray[np.int64]
    unsure: NDArray[np.int64]
    until: int


def read_reviewed(folder: Path, n: int, n_classes: int) -> Reviewed | None:
    """Of a run with `n` samples and `n_classes`."""
    path = folder / REVIEWED_FILE
    if not path.exists():
        return None
    arrays = read_file(path)
    found = Reviewed(arrays["samples"], arrays["codes"], arrays["unsure"], int(arrays["until"]))
    for values, end in ((found.samples, n), (found.codes, n_classes), (found.unsure, n)):
        check_array(REVIEWED_FILE, values, (values.size,), 0, end)
    check_array(REVIEWED_FILE, found.codes, (len(found.samples),))
    return found


def write_reviewed(reviewed: Reviewed, folder: Path) -> None:
    write_file(folder / REVIEWED_FILE, vars(reviewed))


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


class Hold:
    """Beside others of its kind, and kept out while a run is being replaced."""

    def __init__(self, run: Path) -> None:
        self.path = run / REVIEW_LOCK
        self._descriptor: int | None = None
        try:
            while self._descriptor is None:
                self._descriptor = try_lock(self.path, exclusive=False)
        except Busy as owner:
            raise RunFolderError(
                f"a run is reviewed once it is whole. Process {owner} is replacing {run}; wait for it."
            ) from owner
        except OSError as error:
            raise RunFolderError(
                f"decisions must be kept in {run}. It cannot be written to: {error.strerror or error}."
            ) from error
        name_owner(self._descriptor)

    def release(self) -> None:
        if self._descriptor is None:
            return
        os.close(self._descriptor)
        self._descriptor = None
        with suppress(Busy, OSError):  # Busy: somebody else still reviews the run
            if self.path.exists() and (alone := try_lock(self.path)) is not None:
                _close(alone, self.path)


def refuse_held(run: Path) -> None:
    """An error where a review of the run is open."""
    with replacing(run, make=False):
        pass


@contextmanager
def replacing(run: Path, make: bool = True) -> Iterator[None]:
    """Keep reviews out of a run that is about to go. `make` the file that does it, if there is none."""
    descriptor = None
    try:
        if run.is_dir() and (make or (run / REVIEW_LOCK).exists()):
            with suppress(OSError):  # one cannot write to it: no review can, either
                descriptor = try_lock(run / REVIEW_LOCK)
        yield
    except Busy as owner:
        raise RunFolderError(
            f"--force replaces a run only while nobody reviews it. Process {owner} has a review of {run} open; end it "
            "with Ctrl-C there, or choose another name."
        ) from owner
    finally:
        if descriptor is not None:
            _close(descriptor, run / REVIEW_LOCK)


def _close(descriptor: int, path: Path) -> None:
    """Take the file away that nobody else has locked, if it is still at its place."""
    with suppress(OSError):
        if os.path.samestat(os.fstat(descriptor), os.stat(path)):
            path.unlink()
    os.close(descriptor)

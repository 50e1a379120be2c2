"""What a review leaves in a run folder: its decisions merged into the labels, and a lock while it is open.

    RUN/reviewed.npz   samples, codes: positions of the samples a person labelled, and the classes they chose
                       unsure: positions of those they could not tell
                       until: number of the last line of the log (review/decisions.py) that was merged
    RUN/review.lock    number of the process that reviews; several may, and the last one takes the file away

reviewed.npz holds all that has been merged, so writing it anew from the log is all there is to merging again. What the
run itself decided is in the other files, unchanged, the status and confidence in labels_before_review.csv.

labels.csv is for people: the run itself is read from its arrays, ids included, so a table that somebody sorted or
changed is never taken for the run; but whoever changed it is told that nothing came of it.

Knows results and these files; does not know the log.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import RunFolderError
from labelmend.files.reading import regular_file
from labelmend.files.writing import Busy, name_owner, try_lock
from labelmend.result import REVIEWED, UNREADABLE, Correction
from labelmend.storage.run_files import (
    BEFORE_REVIEW,
    COLUMNS,
    LABELS,
    REVIEW_LOCK,
    REVIEWED_FILE,
    check_array,
    label_rows,
    read_file,
    write_file,
)

UNREVIEWED = ("id", "given")  # the columns that no review changes


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


def check_tables(folder: Path, result: Correction) -> None:
    """The tables of the folder against the run: after a review, labels.csv holds other labels."""
    before, now = folder / BEFORE_REVIEW, folder / LABELS
    rows = label_rows(result)
    if before.exists():
        _check(before, rows)
    if now.exists():
        _check(now, rows, UNREVIEWED if before.exists() else COLUMNS)


def check_merged(folder: Path, merged: Correction) -> None:
    """After a review, labels.csv is the merged table, or still that of the run where `apply` was interrupted."""
    before, now = folder / BEFORE_REVIEW, folder / LABELS
    if before.exists() and now.exists() and now.read_bytes() != before.read_bytes():
        _check(now, label_rows(merged))


def _check(path: Path, rows: Sequence[Sequence[Any]], compared: Sequence[str] = COLUMNS) -> None:
    """An error that says what was edited. `rows` are those of the run."""
    try:
        with regular_file(path).open(newline="", encoding="utf-8") as file:
            found = [row for row in csv.reader(file) if row]
    except (csv.Error, UnicodeDecodeError) as error:
        raise _edited(path, f"it cannot be read ({error})") from error
    if len(found) != len(rows) + 1:
        raise _edited(path, f"it has {len(found) - 1:,} rows and the run {len(rows):,}")
    if found[0] != list(COLUMNS):
        raise _edited(path, f"its first line is {', '.join(found[0])!r} and not {', '.join(COLUMNS)!r}")
    for number, (cells, values) in enumerate(zip(found[1:], rows, strict=True), start=1):
        if len(cells) != len(COLUMNS):
            raise _edited(path, f"row {number} has {len(cells)} cells")
        for name, cell, value in zip(COLUMNS, cells, values, strict=True):
            if name in compared and not _same(cell, value):
                raise _edited(
                    path, f"{name} is {cell!r} and not {'' if value is None else str(value)!r} in row {number}"
                )


def _edited(path: Path, what: str) -> RunFolderError:
    return RunFolderError(
        f"{path.name} must be as the run wrote it. {path} was edited: {what}. Nothing that is changed there reaches "
        f"the run. Take the change back, or move the file away and write it anew with: labelmend apply {path.parent}"
    )


def _same(cell: str, value: Any) -> bool:
    if not isinstance(value, np.floating):
        return cell == ("" if value is None else str(value))
    try:
        return bool(np.float32(cell) == value)
    except ValueError:
        return False


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

"""`labelmend apply`: merge what a person decided into the labels of a run; and the decisions for use in Python.

Each file is written beside and renamed, reviewed.npz first: from then on `labelmend.load` gives the merged labels, and
if the machine dies before the tables are renamed, applying again completes them.
"""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import RunFolderError
from labelmend.files.writing import clear_leftovers, flush, flush_names
from labelmend.report.wording import printable
from labelmend.result import Correction
from labelmend.review.decisions import CANNOT_TELL, DECIDED, FILE, SKIPPED, Standing, Subject, read_log
from labelmend.storage.reviewed import Reviewed, read_reviewed, with_reviewed, write_reviewed
from labelmend.storage.run_files import (
    BEFORE_REVIEW,
    LABELS,
    LABELS_PARQUET,
    REVIEWED_FILE,
    SUMMARY,
    as_text,
    write_labels,
    write_table,
)
from labelmend.storage.run_folder import read_run, reading


@dataclass(frozen=True)
class Change:
    """A label of the run's table that is another one after merging."""

    id: str
    old: str
    new: str


@dataclass(frozen=True)
class Merge:
    """What applying does. `changes` are against the labels in the folder now, `against_run` against the run's own."""

    decided: int
    against_run: int
    unsure: int
    skipped: int
    changes: list[Change]
    table_is_missing: bool = False  # labels.csv was moved away; it is written anew


def apply(run: str | Path, dry_run: bool = False) -> Merge:
    """Merge the decisions in the run folder into its labels. May be repeated, also after further decisions."""
    folder = Path(run)
    result = read_run(folder)
    standing = read_log(folder / FILE, Subject.of(result))
    reviewed = Reviewed(
        np.flatnonzero(standing.state == DECIDED),
        standing.code[standing.state == DECIDED],
        np.flatnonzero(standing.state == CANNOT_TELL),
        standing.last,
    )
    merged = with_reviewed(result, reviewed)
    with reading(folder):
        before = with_reviewed(result, read_reviewed(folder, len(result), len(result.classes)))
    merge = _describe(result, before, merged, standing, not (folder / LABELS).exists())
    if not dry_run and (merge.decided or merge.unsure or (folder / REVIEWED_FILE).exists()):
        _write(folder, result, merged, reviewed)
    elif not dry_run and merge.table_is_missing:
        _write(folder, result, result, None)
    return merge


def read_decisions(run: str | Path, until: int | None = None) -> tuple[NDArray[Any], NDArray[Any]]:
    """(ids, labels) of the samples a person has labelled; what they skipped or could not tell is not among them."""
    folder = Path(run)
    result = read_run(folder)
    standing = read_log(folder / FILE, Subject.of(result), until)
    decided = np.flatnonzero(standing.state == DECIDED)
    return result.ids[decided], result.classes[standing.code[decided]]


def _describe(
    result: Correction, before: Correction, merged: Correction, standing: Standing, table_is_missing: bool
) -> Merge:
    changed = np.flatnonzero(before.corrected_codes != merged.corrected_codes)
    names = [as_text(value) for value in result.classes]
    changes = [
        Change(as_text(result.ids[i]), names[before.corrected_codes[i]], names[merged.corrected_codes[i]])
        for i in changed
    ]
    counts = np.bincount(standing.state, minlength=4).tolist()
    differs = int((merged.corrected_codes != result.corrected_codes).sum())
    return Merge(counts[DECIDED], differs, counts[CANNOT_TELL], counts[SKIPPED], changes, table_is_missing)


def _write(folder: Path, result: Correction, merged: Correction, reviewed: Reviewed | None) -> None:
    """`result` is what the run itself said; reviewed is None where nothing was decided."""
    partial = folder / f".apply.{secrets.token_hex(4)}.partial"
    clear_leftovers(folder, ".apply.*.partial")
    try:
        partial.mkdir()
        if reviewed is not None:
            if not (folder / BEFORE_REVIEW).exists():
                write_table(result, partial / BEFORE_REVIEW)
            write_reviewed(reviewed, partial)
        write_labels(merged, partial)
        flush(partial)
        for name in (BEFORE_REVIEW, REVIEWED_FILE, LABELS, LABELS_PARQUET, SUMMARY):
            if (partial / name).exists():
                os.replace(partial / name, folder / name)
            elif name == LABELS_PARQUET:
                (folder / name).unlink(missing_ok=True)  # of the time when pyarrow was installed: not true any more
        flush_names(folder)
    except OSError as error:
        raise RunFolderError(f"{folder} must be writable. Got: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def merge_lines(merge: Merge, folder: Path, dry_run: bool, shown: int = 20) -> list[str]:
    """What was or would be done, in plain words."""
    name = shlex.quote(str(folder))
    if merge.table_is_missing and not (merge.decided or merge.unsure or dry_run):
        return [f"nothing is decided in {folder}; {folder / LABELS} was missing and is there again"]
    if not (merge.decided or merge.unsure or merge.skipped or merge.changes):
        return [f"nothing is decided in {folder}, nothing was changed; decide with: labelmend review {name}"]
    lines = [
        f"{merge.decided:,} decided by a person, {merge.against_run:,} of them against the run's label",
        f"{merge.unsure:,} could not be told and stay for review, {merge.skipped:,} were put off",
        f"{len(merge.changes):,} label{'' if len(merge.changes) == 1 else 's'} "
        f"{'would change' if dry_run else 'changed'} in {folder / LABELS}",
    ]
    if dry_run:
        lines += [printable(f"  {change.id}: {change.old} -> {change.new}") for change in merge.changes[:shown]]
        lines += [f"  and {len(merge.changes) - shown:,} more"] if len(merge.changes) > shown else []
        return [*lines, "dry run: nothing was written"]
    return [*lines, f"the report does not know of it yet; write it anew with: labelmend report {name}"]

"""What becomes of a person's decisions: merged into the labels, read in Python, trusted by the next run.

`labelmend apply` writes each file beside the old one and renames it, reviewed.npz first: from then on `labelmend.load`
gives the merged labels, and if the machine dies before the tables are renamed, applying again completes them.
`correct --trusted-from RUN` matches the samples by their ids. What was skipped or could not be told is not trusted.
"""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import DataError, RunFolderError
from labelmend.files.writing import clear_leftovers, flush, flush_names
from labelmend.inputs.containers import exact_numbers, objects
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

SHOWN = 20  # changes that a dry run lists
DIFFERENT = 0.5  # share of the given labels that may be other ones than in the run before it must be another data set


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


@dataclass(frozen=True)
class Decided:
    """What a person decided: ids and labels, and the labels given in that run (None: there was none)."""

    run: Path
    ids: list[str]
    labels: list[Any]
    given: list[Any]
    until: int  # number of the last line of the log that was read


def apply(run: str | Path, dry_run: bool = False) -> Merge:
    """Merge the decisions in the run folder into its labels. May be repeated, also after further decisions."""
    folder = Path(run)
    result, standing, decided = _read(folder)
    unsure = np.flatnonzero(standing.state == CANNOT_TELL)
    reviewed = Reviewed(decided, standing.code[decided], unsure, standing.last)
    merged = with_reviewed(result, reviewed)
    with reading(folder):
        before = with_reviewed(result, read_reviewed(folder, len(result), len(result.classes)))
    changed = np.flatnonzero(before.corrected_codes != merged.corrected_codes)
    names = [as_text(value) for value in result.classes]
    merge = Merge(
        len(decided),
        int((merged.corrected_codes != result.corrected_codes).sum()),
        len(unsure),
        int((standing.state == SKIPPED).sum()),
        [
            Change(as_text(result.ids[i]), names[before.corrected_codes[i]], names[merged.corrected_codes[i]])
            for i in changed
        ],
        not (folder / LABELS).exists(),
    )
    if not dry_run and (merge.decided or merge.unsure or (folder / REVIEWED_FILE).exists()):
        _write(folder, result, merged, reviewed)
    elif not dry_run and merge.table_is_missing:
        _write(folder, result, result, None)
    return merge


def read_decisions(run: str | Path, until: int | None = None) -> tuple[NDArray[Any], NDArray[Any]]:
    """(ids, labels) of the samples a person has labelled, without those they skipped or could not tell."""
    result, standing, decided = _read(Path(run), until)
    return result.ids[decided], result.classes[standing.code[decided]]


def read_decided(run: Path, until: int | None = None) -> Decided:
    """`until`: as the log was after that line, to go on with an interrupted run."""
    result, standing, decided = _read(run, until)
    if not len(decided):
        raise DataError(
            f"--trusted-from needs decisions. There are none in {run}; make some with: labelmend review "
            f"{shlex.quote(str(run))}"
        )
    return Decided(
        run,
        [as_text(name) for name in result.ids[decided]],
        list(result.classes[standing.code[decided]].tolist()),
        list(result.given.values(result.given.codes)[decided].tolist()),
        standing.last,
    )


def _read(run: Path, until: int | None = None) -> tuple[Correction, Standing, NDArray[np.int64]]:
    """The run, what stands in its log, and the positions of the samples a person has labelled."""
    result = read_run(run)
    standing = read_log(run / FILE, Subject.of(result), until)
    return result, standing, np.flatnonzero(standing.state == DECIDED)


def _write(folder: Path, result: Correction, merged: Correction, reviewed: Reviewed | None) -> None:
    """`result` is the run's own; reviewed is None where nothing was decided."""
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


def merge_lines(merge: Merge, folder: Path, dry_run: bool) -> list[str]:
    """What was or would be done, in plain words."""
    name = shlex.quote(str(folder))
    if merge.table_is_missing and not (merge.decided or merge.unsure or dry_run):
        return [f"nothing is decided in {folder}; {folder / LABELS} was missing and is there again"]
    if not (merge.decided or merge.unsure or merge.skipped or merge.changes):
        return [f"nothing is decided in {folder}, nothing was changed; decide with: labelmend review {name}"]
    lines = [
        f"{merge.decided:,} decided by a person, {merge.against_run:,} of them against the run's label",
        f"{merge.unsure:,} marked as cannot tell stay for review, {merge.skipped:,} were skipped",
        f"{len(merge.changes):,} label{'' if len(merge.changes) == 1 else 's'} "
        f"{'would change' if dry_run else 'changed'} in {folder / LABELS}",
    ]
    if dry_run:
        lines += [printable(f"  {change.id}: {change.old} -> {change.new}") for change in merge.changes[:SHOWN]]
        lines += [f"  and {len(merge.changes) - SHOWN:,} more"] if len(merge.changes) > SHOWN else []
        return [*lines, "dry run: nothing was written"]
    return [*lines, f"the report does not show this yet; write it again with: labelmend report {name}"]


def merge_decided(
    decided: Decided, ids: Iterable[Any] | None, labels: Any, trusted: NDArray[np.bool_] | None
) -> tuple[NDArray[Any], NDArray[np.bool_], list[str]]:
    """(labels, trusted marks, notes) with the decisions in their places; the arguments stay as they are."""
    values = objects(list(labels))
    names = [str(row) for row in range(len(values))] if ids is None else [as_text(name) for name in ids]
    place_of = {name: place for place, name in enumerate(names)}
    found = [(place_of[name], entry) for entry, name in enumerate(decided.ids) if name in place_of]
    if not found:
        raise DataError(
            f"the data must hold the samples decided in {decided.run}, such as {decided.ids[0]!r}. They hold none of "
            "them; have the ids or the data changed since?"
        )
    notes = [f"{len(found):,} labels decided in {decided.run} are trusted"]
    if missing := len(decided.ids) - len(found):
        notes.append(f"{missing:,} samples decided in {decided.run} are not in these data")
    notes += _compare(decided, values, found)
    spelled = {as_text(value): value for value in values if value is not None}
    marks = np.zeros(len(values), dtype=bool) if trusted is None else np.array(trusted, dtype=bool)
    for place, entry in found:
        label = decided.labels[entry]
        values[place], marks[place] = spelled.get(as_text(label), label), True
    return _of_kind(labels, values), marks, notes


def _of_kind(labels: Any, values: NDArray[Any]) -> NDArray[Any]:
    """Numbers and texts as an array of their own kind, where they came as one."""
    kind = getattr(labels, "dtype", np.dtype(object)).kind
    if kind in "iub" and all(type(value) is int for value in values):
        return exact_numbers(values.tolist())
    return np.array(values.tolist()) if kind in "iubU" else values


def _compare(decided: Decided, values: NDArray[Any], found: list[tuple[int, int]]) -> list[str]:
    """Refuse another data set under the same ids; a note where a few of the given labels differ."""
    changed = 0
    for place, entry in found:
        expected = {_spelled(decided.given[entry]), _spelled(decided.labels[entry])}
        changed += decided.given[entry] is not None and _spelled(values[place]) not in expected
    if changed > DIFFERENT * len(found):
        raise DataError(
            f"the data must be those of {decided.run}. {changed:,} of {len(found):,} samples decided there have other "
            "given labels here; is this another table, or were the rows reordered without ids?"
        )
    if not changed:
        return []
    return [f"{changed:,} samples decided in {decided.run} had another given label there; the decision is kept"]


def _spelled(value: Any) -> str:
    """A missing label is no text, however it is written."""
    return "" if value is None or value != value else as_text(value)

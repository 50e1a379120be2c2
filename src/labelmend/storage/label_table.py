"""labels.csv of a run, for people: whether it still says what the run wrote.

The run itself is read from its arrays, ids included, so a table that somebody sorted or changed is never taken for the
run; but whoever changed it should know that nothing came of it.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from labelmend.errors import RunFolderError
from labelmend.files.reading import regular_file
from labelmend.result import Correction
from labelmend.storage.run_files import BEFORE_REVIEW, COLUMNS, LABELS, label_rows

UNREVIEWED = ("id", "given")  # the columns that no review changes


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
            header, *found = [row for row in csv.reader(file) if row] or [[]]
    except (csv.Error, UnicodeDecodeError) as error:
        raise _edited(path, f"it cannot be read ({error})") from error
    if header != list(COLUMNS):
        raise _edited(path, f"its first line is {', '.join(header)!r} and not {', '.join(COLUMNS)!r}")
    if len(found) != len(rows) or any(len(row) != len(COLUMNS) for row in found):
        raise _edited(path, f"it has {len(found):,} rows of {len(COLUMNS)} cells, the run {len(rows):,}")
    ids, expected = [row[0] for row in found], [_text(row[0]) for row in rows]
    if ids != expected and sorted(ids) == sorted(expected):
        raise _edited(path, f"its rows are in another order: the first is {ids[0]!r}, that of the run {expected[0]!r}")
    for name in compared:
        place = COLUMNS.index(name)
        odd = [number for number, row in enumerate(found) if not _same(row[place], rows[number][place])]
        if odd:
            ours, theirs = _text(rows[odd[0]][place]), found[odd[0]][place]
            raise _edited(
                path, f"{name} is {theirs!r} and not {ours!r} in row {odd[0] + 1}, and differs in {len(odd):,} rows"
            )


def _edited(path: Path, what: str) -> RunFolderError:
    return RunFolderError(
        f"{path.name} must be as the run wrote it. {path} was edited: {what}. Nothing that is changed there reaches "
        f"the run. Take the change back, or move the file away and write it anew with: labelmend apply {path.parent}"
    )


def _same(cell: str, value: Any) -> bool:
    if cell == _text(value):
        return True
    try:
        return isinstance(value, np.floating) and np.float32(cell) == value
    except ValueError:
        return False


def _text(value: Any) -> str:
    return "" if value is None else str(value)

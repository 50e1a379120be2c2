"""`correct --trusted-from RUN`: what a person decided in a review becomes trusted labels of the next run.

Knows ids and labels; matches them by id. What was skipped or could not be told is not trusted.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import DataError
from labelmend.inputs.containers import exact_numbers, objects
from labelmend.review.decisions import DECIDED, FILE, Subject, read_log
from labelmend.storage.run_folder import as_text, read_run

DIFFERENT = 0.5  # share of the given labels that may be other ones than in the run before it must be another data set


@dataclass(frozen=True)
class Decided:
    """What a person decided: ids and labels, and the labels given in that run (None: there was none)."""

    run: Path
    ids: list[str]
    labels: list[Any]
    given: list[Any]
    until: int  # number of the last line of the log that was read


def read_decided(run: Path, until: int | None = None) -> Decided:
    """`until`: as the log was after that line, to go on with an interrupted run."""
    result = read_run(run)
    standing = read_log(run / FILE, Subject.of(result), until)
    places = np.flatnonzero(standing.state == DECIDED)
    if not len(places):
        raise DataError(
            f"--trusted-from needs decisions. There are none in {run}; make some with: labelmend review "
            f"{shlex.quote(str(run))}"
        )
    return Decided(
        run,
        [as_text(name) for name in result.ids[places]],
        list(result.classes[standing.code[places]].tolist()),
        list(result.given.values(result.given.codes)[places].tolist()),
        standing.last,
    )


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
            "them; were the ids, or the data, others then?"
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
            "given labels here; is it another table, or in another order without ids?"
        )
    if not changed:
        return []
    return [f"{changed:,} samples decided in {decided.run} had another given label there; the decision holds"]


def _spelled(value: Any) -> str:
    """A missing label is no text, however it is written."""
    return "" if value is None or value != value else as_text(value)

"""What is handed over, whatever the format: labels, what they were, how sure they are, and the data behind them.

Knows the result of a run and where its data are; does not write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import DataError
from labelmend.inputs.pictures.pixels import Unreadable, require_pillow
from labelmend.result import UNREADABLE, Correction, plain_value
from labelmend.storage.originals import OriginalPictures, Originals, open_originals
from labelmend.storage.run_files import as_text

T = TypeVar("T")


@dataclass(frozen=True)
class Options:
    review: str = "corrected"  # the doubtful ones as decided, or "given": as they were
    link: bool = False  # pictures by link instead of copies
    with_data: bool = False  # the user's own table around the labels
    data: Path | None = None  # where the data are now, if they have moved


@dataclass(frozen=True)
class Handover:
    """Arrays run along the samples, in the order of the run."""

    result: Correction
    run: Path  # the run folder
    target: Path  # where the export will be
    options: Options
    ids: list[str]
    codes: NDArray[np.int64]  # of the labels handed over; -1: no label
    confidence: NDArray[np.float32]  # NaN where nothing is known about this very label
    notes: list[str] = field(default_factory=list)  # what the user should know about the writing

    @cached_property
    def labels(self) -> list[Any]:
        return _plain(self.result.given.values(self.codes))

    @cached_property
    def given(self) -> list[Any]:
        return _plain(self.result.given.values(self.result.given.codes))

    @cached_property
    def class_names(self) -> list[str]:
        return [as_text(value) for value in self.result.classes]

    @cached_property
    def changed(self) -> NDArray[np.bool_]:
        """Where another label takes the place of the given one, or of none."""
        differs: NDArray[np.bool_] = (self.codes != self.result.given.codes) & (self.codes >= 0)
        return differs

    def score(self, index: int) -> float | None:
        """Confidence in a label as JSON has it: the shortest number that gives the same float32."""
        value = self.confidence[index]
        return None if np.isnan(value) else float(str(value))

    @property
    def scores(self) -> list[float | None]:
        return [self.score(index) for index in range(len(self.ids))]

    @property
    def score_texts(self) -> list[str]:
        """The same for a table; empty where nothing is known."""
        return ["" if np.isnan(value) else str(value) for value in self.confidence]

    @cached_property
    def originals(self) -> Originals:
        return open_originals(self.run, self.result, self.options.data)

    @property
    def has_no_data(self) -> bool:
        """Whether the run was given arrays, so that there is nothing to be found again."""
        return self.result.source is None or self.result.source.kind == "arrays"

    def pictures(self) -> OriginalPictures:
        """The pictures, or an error that says why there are none."""
        found = self.originals
        if not isinstance(found, OriginalPictures):
            why = found.reason or "the data are a table of numbers"
            raise DataError(f"this format needs the pictures of the run. There are none: {why}.")
        require_pillow()
        self.note_missing()
        return found

    def note_missing(self) -> None:
        if self.originals.reason and self.originals.reason not in self.notes:
            self.notes.append(self.originals.reason)

    def of_each(self, put: Callable[[int], T]) -> tuple[list[T | None], list[tuple[str, str]]]:
        """What `put` gives for each sample; None where the picture cannot be read, with (id, reason) and a note."""
        found, left_out = list[T | None](), list[tuple[str, str]]()
        for index, name in enumerate(self.ids):
            try:
                found.append(put(index))
            except Unreadable as error:
                found.append(None)
                left_out.append((name, str(error)))
        if left_out:
            name, why = left_out[0]
            self.notes.append(f"{len(left_out):,} picture(s) left out, for example {name}: {why}")
        return found, left_out


def make_handover(result: Correction, run: Path, target: Path, options: Options) -> Handover:
    left = (result.status == "review") & (result.given.codes >= 0) & (options.review == "given")
    codes = np.where(left, result.given.codes, result.corrected_codes)
    unknown = (result.status == UNREADABLE) | (codes != result.corrected_codes)
    confidence = np.where(unknown, np.float32(np.nan), result.confidence.astype(np.float32))
    return Handover(result, run, target, options, [as_text(name) for name in result.ids], codes, confidence)


def _plain(values: Iterable[Any]) -> list[Any]:
    return [None if value is None else plain_value(value) for value in values]


def texts(values: Iterable[Any]) -> list[str]:
    return ["" if value is None else as_text(value) for value in values]

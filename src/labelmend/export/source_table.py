"""The user's own table around the labels: every column and row as it was, with the label column replaced.

Knows the rows of the source and which sample each is; does not write. A row that took no part in the run, such as one
left out by --drop-bad-rows, keeps its label.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import DataError
from labelmend.export.handover import Handover
from labelmend.inputs.pictures.find import LABEL_NAMES
from labelmend.inputs.tables import ArrayRows, Rows, open_rows
from labelmend.storage.originals import OriginalPictures, OriginalRows
from labelmend.storage.run_folder import as_text

GIVEN, CONFIDENCE = "label_given", "label_confidence"  # the columns that are added
TABLES = (".csv", ".parquet")

NO_LABEL_COLUMN = (
    "--with-data needs a label column to mend. The run has those of its annotators only; export without --with-data."
)


@dataclass(frozen=True)
class SourceTable:
    rows: Rows
    label_column: str
    sample_of: NDArray[np.int64]  # of every row the sample; -1: it took no part

    def text_rows(self, handover: Handover) -> Iterator[list[str]]:
        """Cells as text, with the new label, then the cell that was there, then the confidence."""
        place = self.rows.columns.index(self.label_column)
        labels = handover.labels
        for row, sample in enumerate(self.sample_of.tolist()):
            cells = self.rows.cells(row)
            before, sure = cells[place], ""
            if sample >= 0:
                if handover.changed[sample]:
                    cells[place] = as_text(labels[sample])
                sure = handover.score_text(sample)
            yield [*cells, before, sure]


def source_table(handover: Handover) -> SourceTable:
    """The table behind a run, or an error that says why there is none."""
    found, source = handover.originals, handover.result.source
    if isinstance(found, OriginalRows):
        assert source is not None
        rows, places = found.rows, found.places
        if source.labels is None:
            raise DataError(NO_LABEL_COLUMN)
        column = rows.columns[0] if isinstance(rows, ArrayRows) else source.labels
    elif isinstance(found, OriginalPictures) and found.at is not None and found.at.suffix.lower() in TABLES:
        rows, places = open_rows(found.at, ""), found.places
        column = label_column(handover, rows.columns)
    else:
        why = found.reason or "the data are pictures without a table"
        raise DataError(f"--with-data needs a run on a table. There is none here: {why}.")
    handover.note_missing()
    for name in (GIVEN, CONFIDENCE):
        if name in rows.columns:
            raise DataError(f"the table must have no column {name!r}, which is added. It has one; rename it first.")
    return SourceTable(rows, column, samples_of_rows(places, len(rows)))


def label_column(handover: Handover, columns: Sequence[str]) -> str:
    """Of a table of pictures: the one that was named, or the first with a usual name."""
    named = handover.result.source.labels if handover.result.source else None
    found = named or next((name for name in LABEL_NAMES if name in columns), None)
    if found is None:
        raise DataError(NO_LABEL_COLUMN)
    return found


def samples_of_rows(places: NDArray[np.int64], n_rows: int) -> NDArray[np.int64]:
    """The other way round than `places`: of every row the sample, -1 for a row that took no part."""
    sample_of = np.full(n_rows, -1, dtype=np.int64)
    there = places >= 0
    sample_of[places[there]] = np.flatnonzero(there)
    return sample_of

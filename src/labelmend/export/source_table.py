"""The user's own table around the labels: every column and row as it was, with the label column replaced.

Knows the rows of the source and which sample each is; does not write. A row that took no part in the run, such as one
left out by --drop-bad-rows, keeps its label. As an Arrow table its columns keep their types, and the features that
Hugging Face's library notes of them. pyarrow is imported only where it is needed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import DataError
from labelmend.export.handover import Handover
from labelmend.files.reading import METADATA, noted_features, require_pyarrow
from labelmend.inputs.frames import ParquetFrame, numbers_or_none
from labelmend.inputs.pictures.find import LABEL_NAMES
from labelmend.inputs.tables import ArrayRows, Rows, open_rows
from labelmend.storage.originals import OriginalPictures, OriginalRows
from labelmend.storage.run_files import as_text

GIVEN, CONFIDENCE = "label_given", "label_confidence"  # the columns that are added
TABLES = (".csv", ".parquet")
Features = dict[str, Any]  # of each column, as dataset_info.json spells it
CONFIDENCE_FEATURE = {"dtype": "float32", "_type": "Value"}

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
        labels, scores = handover.labels, handover.score_texts
        for row, sample in enumerate(self.sample_of.tolist()):
            cells = self.rows.cells(row)
            before, sure = cells[place], ""
            if sample >= 0:
                if handover.changed[sample]:
                    cells[place] = as_text(labels[sample])
                sure = scores[sample]
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


def table_with_labels(handover: Handover, table: SourceTable) -> tuple[Any, Features | None]:
    """The user's table with the label column replaced and the two columns added; features where the file has some."""
    arrow = arrow_table(table)
    features = features_of(arrow)
    return replace_labels(handover, arrow, features, table.label_column, table.sample_of)


def replace_labels(
    handover: Handover, arrow: Any, features: Features | None, column: str, sample_of: NDArray[np.int64]
) -> tuple[Any, Features | None]:
    """`sample_of`: of every row the sample of the run; -1: it took no part and keeps its label."""
    pyarrow = require_pyarrow("writing this")
    place = arrow.column_names.index(column)
    before = arrow.column(place)
    new = _new_labels(handover, before.to_pylist(), sample_of, (features or {}).get(column))
    scores = handover.scores
    sure = [scores[sample] if sample >= 0 else None for sample in sample_of.tolist()]
    arrow = arrow.set_column(place, column, typed_array(new, before.type))
    arrow = arrow.append_column(GIVEN, before).append_column(CONFIDENCE, pyarrow.array(sure, pyarrow.float32()))
    if features is not None:
        features = {**features, GIVEN: features[column], CONFIDENCE: CONFIDENCE_FEATURE}
        arrow = arrow.replace_schema_metadata(described(features))
    return arrow, features


def described(features: Features) -> dict[bytes, bytes]:
    """The note in a schema by which Hugging Face's library knows its features."""
    return {METADATA: json.dumps({"info": {"features": features}}).encode()}


def features_of(arrow: Any) -> Features | None:
    features = noted_features(arrow)
    return features if features and set(arrow.column_names) <= set(features) else None


def _new_labels(
    handover: Handover, before: list[Any], sample_of: NDArray[np.int64], feature: Features | None
) -> list[Any]:
    labels, changed = handover.labels, handover.changed
    if feature is not None and feature.get("_type") == "ClassLabel" and feature.get("names"):
        code_of = {name: code for code, name in enumerate(feature["names"])}
        labels = [code_of.get(label, label) for label in labels]  # a run on a table of numbers knows the codes alone
    return [
        labels[sample] if sample >= 0 and changed[sample] else value
        for value, sample in zip(before, sample_of.tolist(), strict=True)
    ]


def arrow_table(table: SourceTable) -> Any:
    """Columns in their own types where the file has types; of a .csv, numbers as float64 and all else as text."""
    pyarrow = require_pyarrow("writing this")
    rows = table.rows
    if isinstance(rows, ParquetFrame):
        return rows.table
    if isinstance(rows, ArrayRows):
        special = {name: typed_array(np.asarray(values).tolist()) for name, values in rows.special.items()}
        features = zip(rows.columns[len(special) :], rows.features.T, strict=True)
        return pyarrow.table({**special, **{name: pyarrow.array(column) for name, column in features}})
    text = rows.table
    columns = [_column(text.column(place), name == table.label_column) for place, name in enumerate(rows.columns)]
    return pyarrow.table(columns, names=rows.columns)


def _column(text: Any, is_label: bool) -> Any:
    """Numbers where all cells are numbers; 007 is none, and labels stay the text they were to the run."""
    import pyarrow

    cells = text.to_pylist()
    if is_label:
        return pyarrow.array([cell or None for cell in cells], pyarrow.string())
    numbers = numbers_or_none(cells)
    if numbers is None or any(len(cell) > 1 and cell[0] == "0" and cell[1].isdigit() for cell in cells):
        return text
    return pyarrow.array(numbers, from_pandas=True)


def typed_array(values: Sequence[Any], kind: Any = None) -> Any:
    """An Arrow array in the type of the column, or of the values; as text where they have no type in common."""
    import pyarrow

    if kind is None and any(type(value) is int and value >= 2**63 for value in values):
        kind = pyarrow.uint64()  # pyarrow itself looks for int64 alone
    try:
        return pyarrow.array(values, kind)
    except (pyarrow.ArrowException, TypeError, OverflowError):
        return pyarrow.array([None if value is None else as_text(value) for value in values], pyarrow.string())

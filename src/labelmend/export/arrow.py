"""Arrow tables with new labels: columns keep their types, and the features that Hugging Face's library notes of them.

Knows pyarrow, imported only where it is needed; does not know files.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.export.handover import Handover
from labelmend.export.source_table import CONFIDENCE, GIVEN, SourceTable
from labelmend.files.parquet import METADATA, noted_features, require_pyarrow
from labelmend.inputs.frames import ParquetFrame as ParquetRows
from labelmend.inputs.frames import numbers_or_none
from labelmend.inputs.tables import ArrayRows, Rows
from labelmend.storage.run_folder import as_text

Features = dict[str, Any]  # of each column, as dataset_info.json spells it
ROWS_AT_ONCE = 10_000
CONFIDENCE_FEATURE = {"dtype": "float32", "_type": "Value"}


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
    sure = [handover.score(sample) if sample >= 0 else None for sample in sample_of.tolist()]
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
    if isinstance(rows, ParquetRows):
        return rows.table
    if isinstance(rows, ArrayRows):
        special = {name: typed_array(np.asarray(values).tolist()) for name, values in rows.special.items()}
        features = zip(rows.columns[len(special) :], rows.features.T, strict=True)
        return pyarrow.table({**special, **{name: pyarrow.array(column) for name, column in features}})
    parts = [_text_part(rows, start) for start in range(0, len(rows), ROWS_AT_ONCE)]
    text = pyarrow.concat_tables(parts) if parts else pyarrow.table([[]] * len(rows.columns), names=rows.columns)
    columns = [_column(text.column(place), name == table.label_column) for place, name in enumerate(rows.columns)]
    return pyarrow.table(columns, names=rows.columns)


def _text_part(rows: Rows, start: int) -> Any:
    """Some rows as text: as Arrow it takes a fifth of the memory of Python's."""
    import pyarrow

    cells = [rows.cells(place) for place in range(start, min(start + ROWS_AT_ONCE, len(rows)))]
    return pyarrow.table([pyarrow.array(column, pyarrow.string()) for column in zip(*cells, strict=True)], rows.columns)


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

"""csv and parquet: id, label, label_given, status, confidence; or the user's own table around the labels.

Text is written as it is, also where it begins with = + - or @, which a spreadsheet takes for a formula: an export must
give back the very labels. A note says how many cells there are of that kind.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from labelmend.export.arrow import table_with_labels, typed_array
from labelmend.export.handover import Handover
from labelmend.export.source_table import CONFIDENCE, GIVEN, source_table
from labelmend.files.parquet import require_pyarrow
from labelmend.inputs.frames import CsvFrame as CsvRows
from labelmend.inputs.frames import numbers_or_none
from labelmend.storage.run_folder import as_text

COLUMNS = ("id", "label", "label_given", "status", "confidence")
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_csv(handover: Handover, path: Path) -> None:
    if handover.options.with_data:
        table = source_table(handover)
        separator = table.rows.separator if isinstance(table.rows, CsvRows) else ","
        header = [*table.rows.columns, GIVEN, CONFIDENCE]
        write_rows(path, header, table.text_rows(handover), separator)
        return
    labels, given = texts(handover.labels), texts(handover.given)
    sure = [handover.score_text(index) for index in range(len(handover.ids))]
    note_formulas(handover, [*handover.ids, *handover.class_names])
    write_rows(path, COLUMNS, zip(handover.ids, labels, given, handover.result.status, sure, strict=True))


def write_parquet(handover: Handover, path: Path) -> None:
    pyarrow = require_pyarrow("writing .parquet")
    if handover.options.with_data:
        table, _ = table_with_labels(handover, source_table(handover))
    else:
        columns = {
            "id": pyarrow.array(handover.ids, pyarrow.string()),
            "label": typed_array(handover.labels),
            "label_given": typed_array(handover.given),
            "status": pyarrow.array(handover.result.status.tolist(), pyarrow.string()),
            "confidence": pyarrow.array(scores(handover), pyarrow.float32()),
        }
        table = pyarrow.table(columns)
    pyarrow.parquet.write_table(table, path)


def texts(values: Iterable[Any]) -> list[str]:
    return ["" if value is None else as_text(value) for value in values]


def scores(handover: Handover) -> list[float | None]:
    return [handover.score(index) for index in range(len(handover.ids))]


def note_formulas(handover: Handover, cells: Iterable[str]) -> None:
    found = [cell for cell in cells if cell.startswith(FORMULA) and numbers_or_none([cell]) is None]
    if found:
        handover.notes.append(
            f"{len(found):,} id(s) or label(s) begin like a formula, such as {found[0]!r}; they are written as they "
            "are: import the file as text if you open it in a spreadsheet"
        )


def write_rows(path: Path, header: Sequence[str], rows: Iterable[Iterable[Any]], separator: str = ",") -> None:
    with path.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
        writer = csv.writer(file, delimiter=separator, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)

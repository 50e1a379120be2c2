"""csv and parquet: id, label, label_given, status, confidence; or the user's own table around the labels. cleanlab: csv
with the four columns of `Datalab.get_issues("label")`, behind an id.

    is_label_issue   whether the label handed over is another than the given one
    label_score      from 0 to 1, low is bad: the confidence in the run's label where it is the given one, else what
                     is left for all other classes, which is at least what is left for the given one
    given_label      empty where there was none
    predicted_label  the label handed over

Differs from cleanlab in: nothing is known about a sample without a given label or with a picture that cannot be read,
and its score is empty.

Text is written as it is, also where it begins with = + - or @, which a spreadsheet takes for a formula: an export must
give back the very labels. A note says how many cells there are of that kind.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from labelmend.export.handover import Handover, texts
from labelmend.export.source_table import CONFIDENCE, GIVEN, source_table, table_with_labels, typed_array
from labelmend.files.reading import require_pyarrow
from labelmend.inputs.frames import CsvFrame, numbers_or_none
from labelmend.result import UNREADABLE

COLUMNS = ("id", "label", "label_given", "status", "confidence")
CLEANLAB_COLUMNS = ("id", "is_label_issue", "label_score", "given_label", "predicted_label")
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_csv(handover: Handover, path: Path) -> None:
    if handover.options.with_data:
        table = source_table(handover)
        separator = table.rows.separator if isinstance(table.rows, CsvFrame) else ","
        header = [*table.rows.columns, GIVEN, CONFIDENCE]
        write_rows(path, header, table.text_rows(handover), separator)
        return
    labels, given = texts(handover.labels), texts(handover.given)
    note_formulas(handover)
    columns = handover.ids, labels, given, handover.result.status, handover.score_texts
    write_rows(path, COLUMNS, zip(*columns, strict=True))


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
            "confidence": pyarrow.array(handover.scores, pyarrow.float32()),
        }
        table = pyarrow.table(columns)
    pyarrow.parquet.write_table(table, path)


def write_cleanlab(handover: Handover, path: Path) -> None:
    result = handover.result
    labelled = result.given.codes >= 0
    same = result.given.codes == result.corrected_codes
    score = np.where(same, result.confidence, 1 - result.confidence).astype(np.float32)
    known = labelled & (result.status != UNREADABLE)
    shown = [str(value) if is_known else "" for value, is_known in zip(score, known, strict=True)]
    issue = handover.changed & labelled
    note_formulas(handover)
    columns = handover.ids, issue.tolist(), shown, texts(handover.given), texts(handover.labels)
    write_rows(path, CLEANLAB_COLUMNS, zip(*columns, strict=True))


def note_formulas(handover: Handover) -> None:
    cells = [*handover.ids, *handover.class_names]
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

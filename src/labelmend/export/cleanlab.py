"""cleanlab: the four columns of `Datalab.get_issues("label")`, behind an id.

    is_label_issue   whether the label handed over is another than the given one
    label_score      from 0 to 1, low is bad: the confidence in the run's label where it is the given one, else what
                     is left for all other classes, which is at least what is left for the given one
    given_label      empty where there was none
    predicted_label  the label handed over

Differs from cleanlab in: nothing is known about a sample without a given label or with a picture that cannot be read,
and its score is empty.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from labelmend.export.handover import Handover
from labelmend.export.tables import note_formulas, texts, write_rows
from labelmend.result import UNREADABLE

COLUMNS = ("id", "is_label_issue", "label_score", "given_label", "predicted_label")


def write_cleanlab(handover: Handover, path: Path) -> None:
    result = handover.result
    labelled = result.given.codes >= 0
    same = result.given.codes == result.corrected_codes
    score = np.where(same, result.confidence, 1 - result.confidence).astype(np.float32)
    known = labelled & (result.status != UNREADABLE)
    shown = [str(value) if is_known else "" for value, is_known in zip(score, known, strict=True)]
    issue = handover.changed & labelled
    note_formulas(handover, [*handover.ids, *handover.class_names])
    columns = handover.ids, issue.tolist(), shown, texts(handover.given), texts(handover.labels)
    write_rows(path, COLUMNS, zip(*columns, strict=True))

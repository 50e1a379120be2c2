"""fiftyone: a folder that FiftyOne reads as `fo.types.FiftyOneImageClassificationDataset`.

    OUT/data/000000.png     copied, or linked with --link
    OUT/labels.json         classes, and for each picture the class, its confidence, and as attributes sample (its
                            id), given, status

FiftyOne itself is not needed. An attribute must not be called id, label, tags, confidence or logits: its labels have
fields of these names.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from labelmend.export.handover import Handover
from labelmend.export.picture_files import ending, place
from labelmend.export.tables import texts
from labelmend.inputs.pictures.pixels import Unreadable


def write_fiftyone(handover: Handover, folder: Path) -> None:
    pictures, given = handover.pictures(), texts(handover.given)
    data, labels, left_out = folder / "data", dict[str, Any](), list[tuple[str, str]]()
    data.mkdir()
    for index, name in enumerate(handover.ids):
        uuid, source = f"{index:06d}", pictures.source(index)
        try:
            place(source, data / (uuid + ending(source)), handover.options.link)
        except Unreadable as error:
            left_out.append((name, str(error)))
            continue
        about = {"sample": name, "given": given[index], "status": str(handover.result.status[index])}
        labels[uuid] = _target(int(handover.codes[index]), handover.score(index), about)
    text = json.dumps({"classes": handover.class_names, "labels": labels}, ensure_ascii=False, indent=1)
    (folder / "labels.json").write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
    handover.note_left_out(left_out)


def _target(code: int, score: float | None, about: dict[str, str]) -> dict[str, Any] | None:
    if code < 0:
        return None
    sure = {} if score is None else {"confidence": score}
    return {"label": code, **sure, "attributes": about}

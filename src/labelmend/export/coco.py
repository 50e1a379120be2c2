"""coco: one JSON file in the manner of COCO: images, categories, and one annotation for each labelled picture.

An annotation is of the whole picture: image_id, category_id, score (the confidence), and as further keys given and
status. There are no boxes. `file_name` starts at `info.root`. Pictures need files: those inside an .npz or a saved
dataset have none.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from labelmend.errors import DataError
from labelmend.export.handover import Handover
from labelmend.export.tables import texts
from labelmend.inputs.pictures.pixels import Unreadable, read_size


def write_coco(handover: Handover, path: Path) -> None:
    pictures, given = handover.pictures(), texts(handover.given)
    files = [pictures.path(index) for index in range(len(handover.ids))]
    root = common_folder([file for file in files if file is not None])
    if root is None:
        raise DataError(
            "coco needs pictures that are files. Those of this run are inside one; export them with --to fiftyone."
        )
    images, annotations, left_out = list[dict[str, Any]](), list[dict[str, Any]](), list[tuple[str, str]]()
    for index, file in enumerate(files):
        try:
            height, width = read_size(file)
        except Unreadable as error:
            left_out.append((handover.ids[index], str(error)))
            continue
        assert file is not None
        name = Path(os.path.relpath(os.path.abspath(file), root)).as_posix()
        images.append({"id": index + 1, "file_name": name, "width": width, "height": height})
        if handover.codes[index] >= 0:
            annotations.append(_annotation(handover, index, given[index]))
    categories = [{"id": code + 1, "name": name, "supercategory": ""} for code, name in enumerate(handover.class_names)]
    info = {"description": "labels corrected by labelmend", "root": root}
    document = {"info": info, "images": images, "categories": categories, "annotations": annotations}
    text = json.dumps(document, ensure_ascii=False, indent=1) + "\n"
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
    handover.note_left_out(left_out)


def _annotation(handover: Handover, index: int, given: str) -> dict[str, Any]:
    score = handover.score(index)
    return {
        "id": index + 1,
        "image_id": index + 1,
        "category_id": int(handover.codes[index]) + 1,
        **({} if score is None else {"score": score}),
        "given": given,
        "status": str(handover.result.status[index]),
    }


def common_folder(files: list[Path]) -> str | None:
    """The deepest folder that holds them all; None for none."""
    return os.path.commonpath([os.path.dirname(os.path.abspath(file)) for file in files]) if files else None

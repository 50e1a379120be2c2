"""coco: one JSON file in the manner of COCO: images, categories, and one annotation for each labelled picture. An
annotation is of the whole picture: image_id, category_id, score (the confidence), and as further keys given and status.
There are no boxes. `file_name` starts at `info.root`. Pictures inside an .npz or a saved dataset have no file.

fiftyone: a folder that FiftyOne reads as `fo.types.FiftyOneImageClassificationDataset`; FiftyOne itself is not needed.

    OUT/data/000000.png     copied, or linked with --link
    OUT/labels.json         classes, and for each picture the class, its confidence, and as attributes sample (its
                            id), given, status; none may be called id, label, tags, confidence or logits, which are
                            fields of FiftyOne's labels
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from labelmend.errors import DataError
from labelmend.export.folders import common_folder, ending, place
from labelmend.export.handover import Handover, texts
from labelmend.inputs.pictures.pixels import read_size
from labelmend.storage.run_files import write_json


def write_coco(handover: Handover, path: Path) -> None:
    pictures, given = handover.pictures(), texts(handover.given)
    files = [pictures.path(index) for index in range(len(handover.ids))]
    root = common_folder(files)
    if root is None:
        raise DataError(
            "coco needs pictures that are files. Those of this run are inside one; export them with --to fiftyone."
        )
    sizes, _ = handover.of_each(lambda index: read_size(files[index]))
    images, annotations = list[dict[str, Any]](), list[dict[str, Any]]()
    for index, (file, size) in enumerate(zip(files, sizes, strict=True)):
        if file is None or size is None:
            continue
        name = Path(os.path.relpath(os.path.abspath(file), root)).as_posix()
        images.append({"id": index + 1, "file_name": name, "width": size[1], "height": size[0]})
        if handover.codes[index] >= 0:
            score = handover.score(index)
            annotations.append(
                {
                    "id": index + 1,
                    "image_id": index + 1,
                    "category_id": int(handover.codes[index]) + 1,
                    **({} if score is None else {"score": score}),
                    "given": given[index],
                    "status": str(handover.result.status[index]),
                }
            )
    categories = [{"id": code + 1, "name": name, "supercategory": ""} for code, name in enumerate(handover.class_names)]
    info = {"description": "labels corrected by labelmend", "root": root}
    write_json(path, {"info": info, "images": images, "categories": categories, "annotations": annotations})


def write_fiftyone(handover: Handover, folder: Path) -> None:
    pictures, given = handover.pictures(), texts(handover.given)
    labels = dict[str, Any]()
    (folder / "data").mkdir()

    def put(index: int) -> None:
        source, uuid = pictures.source(index), f"{index:06d}"
        place(source, folder / "data" / (uuid + ending(source)), handover.options.link)
        code, score = int(handover.codes[index]), handover.score(index)
        about = {"sample": handover.ids[index], "given": given[index], "status": str(handover.result.status[index])}
        sure = {} if score is None else {"confidence": score}
        labels[uuid] = None if code < 0 else {"label": code, **sure, "attributes": about}

    handover.of_each(put)
    write_json(folder / "labels.json", {"classes": handover.class_names, "labels": labels})

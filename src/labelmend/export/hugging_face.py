"""huggingface: a folder that `datasets.load_from_disk` opens.

    a saved dataset, a table   all its columns and features, the label column replaced, label_given and
                               label_confidence added
    class folders, an .npz     id, label (ClassLabel), label_given, label_confidence, image
    a manifest of paths        its columns, label_given, label_confidence, image
    arrays given in Python     id, label, label_given, label_confidence: the data are not kept

Pictures are inside the dataset, with --link only their paths. Written with pyarrow: the library that reads it is not
needed. A picture that cannot be had is null.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from labelmend.errors import DataError
from labelmend.export.folders import png_bytes
from labelmend.export.handover import Handover
from labelmend.export.source_table import (
    CONFIDENCE,
    GIVEN,
    TABLES,
    Features,
    described,
    label_column,
    replace_labels,
    samples_of_rows,
    source_table,
    table_with_labels,
)
from labelmend.files.reading import require_pyarrow
from labelmend.inputs.frames import is_saved_dataset, open_saved
from labelmend.inputs.pictures.find import PICTURE_COLUMNS
from labelmend.inputs.pictures.pixels import Source, Sources, Unreadable, open_source, reasons
from labelmend.result import UNREADABLE
from labelmend.storage.originals import OriginalPictures
from labelmend.storage.run_files import write_json

DATA = "data-00000-of-00001.arrow"
INFO = {"description": "labels corrected by labelmend", "citation": "", "homepage": "", "license": ""}
STATE: dict[str, Any] = {
    "_data_files": [{"filename": DATA}],
    "_format_columns": None,
    "_format_kwargs": {},
    "_format_type": None,
    "_output_all_columns": False,
    "_split": None,
}
ROWS_AT_ONCE, PICTURES_AT_ONCE = 10_000, 100
IMAGE = {"_type": "Image"}
WORDS = {"double": "float64", "float": "float32", "halffloat": "float16"}  # where Arrow has another word


@dataclass(frozen=True)
class Content:
    """A table, what its columns mean, and the pictures of its rows for a column named image."""

    table: Any
    features: Features | None = None  # None: what Arrow says is all there is to say
    pictures: Sources | None = None


def write_hugging_face(handover: Handover, folder: Path) -> None:
    pyarrow = require_pyarrow("exporting a dataset")
    content = _content(handover)
    absent = list[int]()
    batches = _batches(content, handover.options.link, absent)
    first = next(batches)
    with pyarrow.OSFile(str(folder / DATA), "wb") as file, pyarrow.ipc.new_stream(file, first.schema) as writer:
        writer.write_table(first)
        for batch in batches:
            writer.write_table(batch)
    features = {} if content.features is None else {"features": content.features}
    write_json(folder / "state.json", {**STATE, "_fingerprint": _fingerprint(handover)})
    write_json(folder / "dataset_info.json", {**INFO, **features})
    if absent:
        handover.notes.append(f"{len(absent):,} picture(s) that cannot be read are null, the first in row {absent[0]}")


def _content(handover: Handover) -> Content:
    found = handover.originals
    if isinstance(found, OriginalPictures):
        handover.note_missing()
        return _of_pictures(handover, found)
    if found.kind == "rows":
        return Content(*table_with_labels(handover, source_table(handover)))
    if not handover.has_no_data:
        raise DataError(f"huggingface keeps the data of the run. There are none: {found.reason}.")
    handover.notes.append(f"only the labels are in it: {found.reason}")
    return Content(*_labels_alone(handover))


def _of_pictures(handover: Handover, found: OriginalPictures) -> Content:
    if found.at is not None and found.at.suffix.lower() in TABLES:
        return _of_manifest(handover, found)
    if found.at is not None and found.at.is_dir() and is_saved_dataset(found.at):
        _, table, features, _ = open_saved(found.at)
        column = label_column(handover, table.column_names)
        rows = samples_of_rows(found.places, len(table))
        return Content(*replace_labels(handover, table, features or None, column, rows))
    labels, meanings = _labels_alone(handover)
    unreadable = (handover.result.status == UNREADABLE).tolist()
    sources = [None if bad else found.source(index) for index, bad in enumerate(unreadable)]
    return Content(labels, {**meanings, "image": IMAGE}, sources)


def _of_manifest(handover: Handover, found: OriginalPictures) -> Content:
    table, features = table_with_labels(handover, source_table(handover))
    name = next(name for name in PICTURE_COLUMNS if name in table.column_names)
    if str(table.schema.field(name).type) not in ("string", "large_string"):  # the pictures are in the table already
        return Content(table, features or {**_simple(handover, table, besides=name), name: IMAGE})
    known = features or _simple(handover, table)
    table = table.select([column for column in table.column_names if column in known and column != "image"])
    unreadable = set(found.places[handover.result.status == UNREADABLE].tolist())
    every = found.pictures.sources
    sources = [None if row in unreadable else every[row] for row in range(len(every))]
    return Content(table, {**known, "image": IMAGE}, sources)


def _labels_alone(handover: Handover) -> tuple[Any, Features]:
    """id, label, label_given, label_confidence."""
    pyarrow = require_pyarrow("exporting a dataset")
    given = handover.result.given.codes
    codes = [[None if code < 0 else code for code in values.tolist()] for values in (handover.codes, given)]
    columns = {
        "id": pyarrow.array(handover.ids, pyarrow.string()),
        "label": pyarrow.array(codes[0], pyarrow.int64()),
        GIVEN: pyarrow.array(codes[1], pyarrow.int64()),
        CONFIDENCE: pyarrow.array(handover.scores, pyarrow.float32()),
    }
    label = {"names": handover.class_names, "_type": "ClassLabel"}
    table = pyarrow.table(columns)
    return table, {**_simple(handover, table), "label": label, GIVEN: label}


def _simple(handover: Handover, table: Any, besides: str = "") -> Features:
    """Features of the columns that are plain values; a note about others, which are left out."""
    import pyarrow

    fields = [field for field in table.schema if field.name != besides]
    odd = [field.name for field in fields if pyarrow.types.is_nested(field.type)]
    if odd:
        handover.notes.append(f"left out the column(s) {', '.join(odd)}, which hold lists or records")
    words = {field.name: str(field.type) for field in fields if field.name not in odd}
    return {name: {"dtype": WORDS.get(word, word), "_type": "Value"} for name, word in words.items()}


def _batches(content: Content, link: bool, absent: list[int]) -> Iterator[Any]:
    """The table in parts, each with its pictures, which are never all in memory."""
    import pyarrow

    pictures = content.pictures
    step = ROWS_AT_ONCE if pictures is None else PICTURES_AT_ONCE
    kind = pyarrow.struct({"bytes": pyarrow.binary(), "path": pyarrow.string()})
    for start in range(0, max(len(content.table), 1), step):
        part = content.table.slice(start, step)
        if pictures is not None:
            cells = [_picture(pictures[row], row, link, absent) for row in range(start, start + len(part))]
            part = part.append_column("image", pyarrow.array(cells, kind))
        if content.features is not None:
            part = part.replace_schema_metadata(described(content.features))
        yield part


def _picture(source: Source, row: int, link: bool, absent: list[int]) -> dict[str, Any] | None:
    try:
        with reasons(source):
            if isinstance(source, np.ndarray):
                return {"bytes": png_bytes(source), "path": None}
            with open_source(source) as file:
                if link and isinstance(source, Path):
                    return {"bytes": None, "path": os.path.abspath(source)}
                return {"bytes": file.read(), "path": source.name if isinstance(source, Path) else None}
    except Unreadable:
        absent.append(row)
        return None


def _fingerprint(handover: Handover) -> str:
    """Another one for other data or labels: the library caches by it."""
    return hashlib.sha256(handover.result.fingerprint.encode() + handover.codes.tobytes()).hexdigest()[:16]

"""Finding pictures: class folders, tables of paths, saved Hugging Face datasets and .npz arrays, as one record.

Knows paths, labels and tables; does not know pixels: `picture_cache.py` reads those, and says which cannot be read.

    photos/cat/1.jpg            class folders; below photos/train/ where there are splits       picture_folder.py
    photos.csv, photos.parquet  columns path, label[, id, trusted]; paths start at the table    picture_table.py
    photos/state.json           a dataset saved with save_to_disk; columns image and label      picture_table.py
    photos.npz                  arrays images (N, H, W[, 1 or 3]) of uint8 and labels           picture_table.py
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from labelmend.errors import DataError, MissingExtraError
from labelmend.files.reading import regular_file
from labelmend.inputs.pictures.folders import ENDINGS, class_folders, find_in_folders, train_split
from labelmend.inputs.pictures.records import Pictures, Source, Sources, checked
from labelmend.inputs.pictures.tables import (
    PICTURE_COLUMNS,
    first_arrow_cells,
    first_cells,
    is_pixels,
    is_saved_dataset,
    picture_arrays,
    read_npz,
    read_saved_dataset,
    read_table,
)
from labelmend.labels import AnnotatorColumns

__all__ = ["Pictures", "Source", "Sources", "find_pictures", "holds_pictures"]

READERS = {".csv": read_table, ".parquet": read_table, ".npz": read_npz}
FOLDER_TABLES = ("metadata.csv", "metadata.parquet")  # the names of the imagefolder layout


def find_pictures(
    source: str | Path,
    labels: str | None = None,
    ids: str | None = None,
    trusted: str | None = None,
    annotators: AnnotatorColumns = None,
) -> Pictures:
    """All pictures of a source, sorted by path or in the order of the rows.

    `labels`, `ids` and `trusted` name columns, or arrays of an .npz; without them the usual names are looked for.
    `annotators` names the column that says who gave the label, or a column of labels for each annotator.
    """
    path = Path(source)
    if not os.path.lexists(path):
        raise DataError(f"there must be a folder or file {path}. There is none; check the path.")
    try:
        if path.is_dir():
            return checked(_find_in(path, labels, ids, trusted, annotators))
        reader = READERS.get(path.suffix.lower())
        if reader is None:
            raise DataError(
                f"pictures must come as a folder, or as a file that ends in {', '.join(READERS)}. "
                f"Got {path.name!r} instead."
            )
        return checked(reader(regular_file(path), labels, ids, trusted, annotators))
    except OSError as error:
        raise DataError(f"{path} must be readable. Got: {error.strerror or error}.") from error


def holds_pictures(source: str | Path, other: Collection[str | None] = ()) -> bool:
    """Whether a source is one of pictures, and not of feature vectors: by its folder, header or first row.

    `other`: columns with another meaning, which do not count. What cannot be read is left to whoever reads it.
    """
    path = Path(source)
    if path.is_dir():
        return True
    try:
        match path.suffix.lower():
            case ".csv":
                cells = first_cells(path)
            case ".parquet":
                cells = first_arrow_cells(path)
            case ".npz":
                return any(is_pixels(dtype, shape) for dtype, shape in picture_arrays(path, other))
            case _:
                return False
    except (OSError, ValueError, MissingExtraError):
        return False
    named = [cells[name] for name in PICTURE_COLUMNS if name in cells and name not in other]
    return any(isinstance(cell, dict) or Path(str(cell)).suffix.lower() in ENDINGS for cell in named)


def _find_in(
    folder: Path, labels: str | None, ids: str | None, trusted: str | None, annotators: AnnotatorColumns
) -> Pictures:
    if is_saved_dataset(folder):
        return read_saved_dataset(folder, labels, ids, trusted, annotators)
    root = train_split(folder)
    table = next((root / name for name in FOLDER_TABLES if (root / name).is_file()), None)
    if table is not None and (labels or annotators or len(class_folders(root)) < 2):
        return read_table(table, labels, ids, trusted, annotators)
    if labels or ids or trusted or annotators:
        raise DataError("columns can be named for tables only. Class folders have none: the folder is the label.")
    return find_in_folders(folder, root)

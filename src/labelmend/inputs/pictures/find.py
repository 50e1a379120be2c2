"""Which pictures there are: class folders, tables of paths, saved Hugging Face datasets and .npz arrays, as one record.

Knows paths, labels and columns; does not know pixels: `cache.py` reads those, and says which cannot be read.

    photos/cat/1.jpg            class folders; below photos/train/ where there are splits: see `folders.py`
    photos.csv, photos.parquet  columns path, label[, id, trusted]; paths start at the table
    photos/state.json           a dataset saved with save_to_disk; columns image and label
    photos.npz                  arrays images (N, H, W[, 1 or 3]) of uint8 and labels
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import DataError, MissingExtraError
from labelmend.files.reading import noted_features, open_npz, regular_file
from labelmend.inputs.containers import is_table, objects
from labelmend.inputs.frames import Frame, ParquetFrame, first_row, is_saved_dataset, open_saved, read_frame, text_of
from labelmend.inputs.pictures.folders import ENDINGS, class_folders, find_in_folders, spelled, train_split
from labelmend.inputs.pictures.pixels import Source, Sources
from labelmend.inputs.tables import Roles
from labelmend.labels import AnnotatorColumns

TABLES = (".csv", ".parquet", ".npz")
FOLDER_TABLES = ("metadata.csv", "metadata.parquet")  # the names of the imagefolder layout
PICTURE_COLUMNS = ("path", "image", "file_name", "filename", "file", "img")
PICTURE_ARRAYS = ("images", "x", "X", "image", "pixels", "pictures")
LABEL_NAMES = ("label", "labels", "y")


@dataclass(frozen=True)
class Pictures:
    ids: NDArray[np.str_]  # unique: the path within the folder, the id column, or the number of the row
    given: list[Any]  # None where there is no label
    trusted: NDArray[np.bool_] | None
    sources: Sources
    notes: list[str] = field(default_factory=list)  # what the user should know about the finding
    annotators: Any = None  # who gave each label, or the labels of each of them: see `annotators.py`

    def __len__(self) -> int:
        return len(self.ids)


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
    path, asked = Path(source), Roles(labels, ids, trusted, annotators=annotators)
    if not os.path.lexists(path):
        raise DataError(f"there must be a folder or file {path}. There is none; check the path.")
    try:
        if path.is_dir():
            return checked(_find_in(path, asked))
        if path.suffix.lower() not in TABLES:
            raise DataError(
                f"pictures must come as a folder, or as a file that ends in {', '.join(TABLES)}. "
                f"Got {path.name!r} instead."
            )
        read = _read_arrays if path.suffix.lower() == ".npz" else _read_table
        return checked(read(regular_file(path), asked))
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
            case ".csv" | ".parquet":
                cells = first_row(path)
            case ".npz":
                with open_npz(path) as archive:
                    named = [name for name in PICTURE_ARRAYS if name not in other and name in archive.files]
                    return any(is_pixels(*archive.header(name)) for name in named)
            case _:
                return False
    except (OSError, ValueError, MissingExtraError):
        return False
    found = [cells[name] for name in PICTURE_COLUMNS if name in cells and name not in other]
    return any(isinstance(cell, dict) or Path(str(cell)).suffix.lower() in ENDINGS for cell in found)


def checked(pictures: Pictures) -> Pictures:
    """Refuse, before any work, what cannot be corrected whatever the pictures show."""
    if len(pictures.sources) == 0:
        raise DataError("there must be pictures. There are none.")
    if (twice := _repeated(pictures.ids)) is not None:
        raise DataError(f"ids must be unique. Got {twice!r} more than once.")
    try:
        classes = {label for label in pictures.given if label is not None}
    except TypeError:
        raise DataError("labels must be single values such as text or numbers. Got lists instead.") from None
    if len(classes) < 2 and not (is_table(pictures.annotators) and not classes):
        found = f"only the class {classes.pop()!r}" if classes else "no label at all"
        raise DataError(f"labels must hold at least two classes. Got {found} instead.")
    return pictures


def unique_or_rows(names: Iterable[Any]) -> tuple[NDArray[np.str_], list[str]]:
    """The names as ids where each is there once, else the numbers of the rows and a note that says so."""
    texts = np.array(["" if name is None else spelled(str(name)) for name in names], dtype=np.str_)
    if _repeated(texts) is None and (texts != "").all():
        return texts, []
    return row_numbers(len(texts)), ["rows are named by their numbers, from 0: their paths or ids repeat or are empty"]


def row_numbers(n: int) -> NDArray[np.str_]:
    return np.arange(n).astype(np.str_)


def _repeated(ids: NDArray[np.str_]) -> str | None:
    """One that is there twice; compared as the array holds them, which drops NULs at the end of a text."""
    values, counts = np.unique(ids, return_counts=True)
    return str(values[counts > 1][0]) if (counts > 1).any() else None


def _find_in(folder: Path, asked: Roles) -> Pictures:
    if is_saved_dataset(folder):
        root, table, features, notes = open_saved(folder)
        found = _from_frame(ParquetFrame(table), features, root, asked)
        return replace(found, notes=[*found.notes, *notes])
    root = train_split(folder)
    table = next((root / name for name in FOLDER_TABLES if (root / name).is_file()), None)
    if table is not None and (asked.labels or asked.annotators or len(class_folders(root)) < 2):
        return _read_table(table, asked)
    if asked.named():
        raise DataError("columns can be named for tables only. Class folders have none: the folder is the label.")
    paths, labels, notes = find_in_folders(folder, root)
    ids = np.array([spelled(path.relative_to(folder).as_posix()) for path in paths], dtype=np.str_)
    return Pictures(ids, labels, None, paths, notes)


def _read_table(path: Path, asked: Roles) -> Pictures:
    """A column of paths, which start at the table, or of encoded pictures, as Hugging Face's library writes them."""
    frame = read_frame(path, lambda names: _roles(asked, names, "column", PICTURE_COLUMNS))
    return _from_frame(frame, noted_features(frame.table), path.parent, asked)


def _from_frame(frame: Frame, features: dict[str, Any], folder: Path, asked: Roles) -> Pictures:
    roles, column = _roles(asked, frame.columns, "column", PICTURE_COLUMNS)
    values = roles.values(frame)
    for name in (roles.labels, *(roles.annotators if isinstance(roles.annotators, tuple) else ())):
        if name is not None and (classes := _class_names(features, name)):
            codes = values[name]
            values[name] = objects([classes[c] if c is not None and 0 <= c < len(classes) else None for c in codes])
    kind = frame.table.schema.field(column).type
    if str(kind) in ("string", "large_string"):
        values[column] = objects(frame.column(column))
        return _from_values(roles, values, [folder / cell if cell else None for cell in values[column]], asked)
    if not str(kind).startswith("struct<") or {"bytes", "path"} - {kind.field(i).name for i in range(kind.num_fields)}:
        raise DataError(
            f"the column {column!r} must hold paths, or pictures as Hugging Face's Image feature. Got {kind} instead."
        )
    return _from_values(roles, values, _EncodedRows(frame.table.column(column), folder), asked)


def _class_names(features: dict[str, Any], column: str) -> list[Any]:
    """Of a column of codes, as Hugging Face's library notes them."""
    feature = features.get(column, {})
    is_label = isinstance(feature, dict) and feature.get("_type") == "ClassLabel"
    return feature.get("names") or [] if is_label else []


class _EncodedRows:
    """Encoded pictures in an Arrow column, fetched one by one: the file stays on disk."""

    def __init__(self, column: Any, folder: Path) -> None:
        self.column, self.folder = column, folder

    def __len__(self) -> int:
        return len(self.column)

    def __getitem__(self, place: int, /) -> Source:
        row: dict[str, Any] = self.column[place].as_py() or {}
        if row.get("bytes") is not None:
            return bytes(row["bytes"])
        return self.folder / row["path"] if row.get("path") else None


def _read_arrays(path: Path, asked: Roles) -> Pictures:
    with open_npz(path) as archive:
        roles, name = _roles(asked, archive.files, "array", PICTURE_ARRAYS)
        arrays = {each: text_of(archive[each]) for each in (name, *roles.named())}
    pixels = check_pixels(arrays[name], f"the array {name!r}")
    values = {}
    for each in roles.named():
        array = arrays[each]
        if array.shape not in ((len(pixels),), (len(pixels), 1)):
            raise DataError(
                f"the array {each!r} must hold one value per picture ({len(pixels)}). Got shape {array.shape} instead."
            )
        values[each] = objects(array.reshape(len(pixels)).tolist())
    return _from_values(roles, values, pixels, asked)


def _from_values(roles: Roles, values: Mapping[str, NDArray[Any]], sources: Any, asked: Roles) -> Pictures:
    """An id column that was not asked for, or paths, name the rows only where they can."""
    n = len(sources)
    ids, notes = row_numbers(n), list[str]()
    if asked.ids is not None and roles.ids is not None:
        ids = np.array([spelled(str(value)) for value in values[roles.ids]], dtype=np.str_)
    elif (name := roles.ids or roles.features) is not None and name in values:
        ids, notes = unique_or_rows(values[name])
    labels = values[roles.labels] if roles.labels is not None else [None] * n
    given = [None if label is None or label == "" or label != label else label for label in labels]
    return Pictures(ids, given, roles.marks(values), sources, notes, roles.people(values))


def _roles(asked: Roles, available: Sequence[str], kind: str, pictures: tuple[str, ...]) -> tuple[Roles, str]:
    """The columns by their roles: the names that were given, else the usual ones; and that of the pictures."""
    available = list(available)

    def first(*names: str) -> str | None:
        return next((name for name in names if name in available), None)

    labels = asked.labels or first(*LABEL_NAMES) or (None if isinstance(asked.annotators, tuple) else LABEL_NAMES[0])
    ids, trusted = asked.ids or first("id", "ids"), asked.trusted or first("trusted")
    column = first(*pictures) or pictures[0]
    roles = Roles(labels, ids, trusted, column, annotators=asked.annotators)
    roles.require(available, kind)
    return roles, column


def is_pixels(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bool:
    is_shape = len(shape) == 3 or (len(shape) == 4 and shape[3] in (1, 3))
    return dtype == np.uint8 and 0 not in shape and is_shape


def check_pixels(pixels: NDArray[Any], name: str) -> NDArray[np.uint8]:
    """The array itself, if it holds pictures."""
    shape = pixels.shape
    if is_pixels(pixels.dtype, shape):
        return pixels
    first = len(shape) == 4 and shape[1] in (1, 3) and shape[3] not in (1, 3)
    hint = " Put the channels last: array.transpose(0, 2, 3, 1)." if first else ""
    raise DataError(
        f"{name} must hold pictures as uint8 of shape (N, H, W), (N, H, W, 1) or (N, H, W, 3). "
        f"Got {pixels.dtype} of shape {shape} instead.{hint}"
    )

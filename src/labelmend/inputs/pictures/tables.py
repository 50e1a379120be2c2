"""Pictures listed in rows: .csv and .parquet tables, datasets saved by Hugging Face's library, .npz arrays.

Knows columns; does not open a picture. A saved dataset is Arrow files beside a description, which pyarrow reads: the
library that wrote it is not needed. Nothing in a file is executed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import DataError
from labelmend.files.parquet import noted_features, read_parquet, require_pyarrow
from labelmend.files.reading import open_npz, read_json, regular_file
from labelmend.inputs.labels import objects, refuse_continuous
from labelmend.inputs.pictures.records import Pictures, Source, row_numbers, spelled, unique_or_rows
from labelmend.inputs.tables import Columns, csv_rows, marks, numbers_or_none, text_of, whole_rows
from labelmend.labels import AnnotatorColumns

PICTURE_COLUMNS = ("path", "image", "file_name", "filename", "file", "img")
PICTURE_ARRAYS = ("images", "x", "X", "image", "pixels", "pictures")
LABEL_NAMES = ("label", "labels", "y")
STATE, SPLITS, INFO = "state.json", "dataset_dict.json", "dataset_info.json"  # what save_to_disk writes


def read_table(
    path: Path, labels: str | None, ids: str | None, trusted: str | None, annotators: AnnotatorColumns = None
) -> Pictures:
    """A table with a column of paths, which start at the table, or of encoded pictures, as Hugging Face writes them."""
    if path.suffix.lower() == ".csv":
        columns, values = _read_csv(path, labels, ids, trusted, annotators)
        return _from_columns(columns, values, _paths(path.parent, values[_picture(columns)]), ids is not None)
    table = read_parquet(path)
    return _from_arrow(table, noted_features(table), path.parent, labels, ids, trusted, annotators)


def is_saved_dataset(folder: Path) -> bool:
    return (folder / STATE).is_file() or (folder / SPLITS).is_file()


def saved_state(folder: Path) -> Path | None:
    """The file that tells one version of a saved dataset from another; None for a folder that holds none."""
    if not is_saved_dataset(folder):
        return None
    root, _ = _split(folder)
    return root / STATE


def read_saved_dataset(
    folder: Path, labels: str | None, ids: str | None, trusted: str | None, annotators: AnnotatorColumns = None
) -> Pictures:
    """A dataset saved with `save_to_disk`; of several splits the one named train."""
    root, table, features, notes = open_saved(folder)
    pictures = _from_arrow(table, features, root, labels, ids, trusted, annotators)
    pictures.notes.extend(notes)
    return pictures


def open_saved(folder: Path) -> tuple[Path, Any, dict[str, Any], list[str]]:
    """The folder of the split, its table, the features of its columns, and notes."""
    pyarrow = require_pyarrow(f"reading {folder.name}")
    try:
        root, notes = _split(folder)
        files = [_of(root, part["filename"]) for part in read_json(root / STATE)["_data_files"]]
        features = read_json(root / INFO).get("features") or {}
        tables = [pyarrow.ipc.open_stream(pyarrow.memory_map(str(file))).read_all() for file in files]
        table = pyarrow.concat_tables(tables)
        if not isinstance(features, dict):
            raise ValueError(f"features of {INFO} are no record")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pyarrow.ArrowException) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{folder} must be a dataset saved with save_to_disk. It is damaged: {error}.") from error
    return root, table, features, notes


def _of(root: Path, name: str) -> Path:
    """A file of the dataset; its description must not lead elsewhere."""
    if Path(name).name != name:
        raise ValueError(f"{name!r} is not a file in it")
    return regular_file(root / name)


def read_npz(
    path: Path, labels: str | None, ids: str | None, trusted: str | None, annotators: AnnotatorColumns = None
) -> Pictures:
    with open_npz(path) as archive:
        columns = _choose(archive.files, "array", PICTURE_ARRAYS, labels, ids, trusted, annotators)
        arrays = {name: text_of(archive[name]) for name in (_picture(columns), *columns.special())}
    pixels = check_pixels(arrays[_picture(columns)], f"the array {_picture(columns)!r}")
    columns_of_one = {name: a[:, 0] if a.ndim == 2 and a.shape[1] == 1 else a for name, a in arrays.items()}
    for name in columns.special():
        if columns_of_one[name].shape != (len(pixels),):
            raise DataError(
                f"the array {name!r} must hold one value per picture ({len(pixels)}). "
                f"Got shape {arrays[name].shape} instead."
            )
    values = {name: columns_of_one[name].tolist() for name in columns.special()}
    return _from_columns(columns, values, pixels, ids is not None)


def first_cells(path: Path) -> dict[str, Any]:
    """The first row of a .csv by column; nothing of one that cannot be read, which its reader will tell better."""
    try:
        with csv_rows(path) as (header, rows):
            return dict(zip(header, next(rows, []), strict=False))
    except DataError:
        return {}


def first_arrow_cells(path: Path) -> dict[str, Any]:
    """The first row of a .parquet by column."""
    pyarrow = require_pyarrow(f"reading {path.name}")
    try:
        with pyarrow.parquet.ParquetFile(regular_file(path)) as file:
            batch = next(file.iter_batches(1), None)
    except pyarrow.ArrowException as error:
        raise ValueError(str(error)) from error
    rows = batch.to_pylist() if batch is not None else []
    return rows[0] if rows else {}


def picture_arrays(path: Path, other: Collection[str | None]) -> Iterator[tuple[np.dtype[Any], tuple[int, ...]]]:
    """Type and shape of the arrays of an .npz that may be pictures, from their headers."""
    with open_npz(path) as archive:
        for name in PICTURE_ARRAYS:
            if name not in other and name in archive.files:
                yield archive.header(name)


def _read_csv(
    path: Path, labels: str | None, ids: str | None, trusted: str | None, annotators: AnnotatorColumns = None
) -> tuple[Columns, dict[str, list[Any]]]:
    """Labels, ids and paths stay the text that is in the file; an empty label is a missing one."""
    with csv_rows(path) as (header, rows):
        columns = _choose(header, "column", PICTURE_COLUMNS, labels, ids, trusted, annotators)
        names = list(dict.fromkeys([_picture(columns), *columns.special()]))
        places = [header.index(name) for name in names]
        cells = [[row[place] for place in places] for row in whole_rows(rows, len(header))]
    if not cells:
        raise DataError(f"{path} must hold rows below its header. It has none.")
    values = {name: [row[place] for row in cells] for place, name in enumerate(names)}
    given = [label for label in values.get(columns.labels or "", ()) if label]
    numbers = numbers_or_none(given)
    if given and numbers is not None:
        refuse_continuous(numbers[~np.isnan(numbers)])
    return columns, values


def _from_arrow(
    table: Any,
    features: dict[str, Any],
    folder: Path,
    labels: str | None,
    ids: str | None,
    trusted: str | None,
    annotators: AnnotatorColumns = None,
) -> Pictures:
    columns = _choose(table.column_names, "column", PICTURE_COLUMNS, labels, ids, trusted, annotators)
    values = {name: table.column(name).to_pylist() for name in columns.special()}
    said = columns.annotators if isinstance(columns.annotators, tuple) else ()
    for column in (columns.labels, *said):
        names = features.get(column or "", {})
        if column is not None and isinstance(names, dict) and names.get("_type") == "ClassLabel" and names.get("names"):
            known = names["names"]
            values[column] = [
                known[code] if code is not None and 0 <= code < len(known) else None for code in values[column]
            ]
    pictures = table.column(_picture(columns))
    kind = pictures.type
    if str(kind) in ("string", "large_string"):
        values[_picture(columns)] = pictures.to_pylist()
        return _from_columns(columns, values, _paths(folder, values[_picture(columns)]), ids is not None)
    if not str(kind).startswith("struct<") or {"bytes", "path"} - {kind.field(i).name for i in range(kind.num_fields)}:
        raise DataError(
            f"the column {_picture(columns)!r} must hold paths, or pictures as Hugging Face's Image feature. "
            f"Got {kind} instead."
        )
    return _from_columns(columns, values, _EncodedRows(pictures, folder), ids is not None)


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


def _from_columns(columns: Columns, values: dict[str, list[Any]], sources: Any, ids_named: bool) -> Pictures:
    n = len(sources)
    names, notes = row_numbers(n), list[str]()
    if columns.ids is not None and ids_named:
        names = np.array([spelled(str(value)) for value in values[columns.ids]], dtype=np.str_)
    elif columns.ids is not None:
        names, notes = unique_or_rows(values[columns.ids])
    elif _picture(columns) in values:
        names, notes = unique_or_rows(values[_picture(columns)])
    labels = values[columns.labels] if columns.labels is not None else [None] * n
    given = [None if label is None or label == "" or label != label else label for label in labels]
    trusted = marks(objects(values[columns.trusted]), columns.trusted) if columns.trusted else None
    return Pictures(names, given, trusted, sources, notes, columns.said(values))


def _choose(
    available: Sequence[str],
    kind: str,
    pictures: tuple[str, ...],
    labels: str | None,
    ids: str | None,
    trusted: str | None,
    annotators: AnnotatorColumns = None,
) -> Columns:
    """The columns by their roles: the names that were given, else the usual ones. The pictures are the features."""
    available = list(available)

    def first(names: tuple[str, ...]) -> str | None:
        return next((name for name in names if name in available), None)

    columns = Columns(
        labels or first(LABEL_NAMES) or (None if isinstance(annotators, tuple) else LABEL_NAMES[0]),
        ids or first(("id", "ids")),
        trusted or first(("trusted",)),
        first(pictures) or pictures[0],
        (),
        annotators,
    )
    columns.require(available, kind)
    return columns


def _picture(columns: Columns) -> str:
    assert columns.features is not None
    return columns.features


def _paths(folder: Path, cells: Sequence[str | None]) -> list[Path | None]:
    return [folder / cell if cell else None for cell in cells]


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


def _split(folder: Path) -> tuple[Path, list[str]]:
    if (folder / STATE).is_file():
        return folder, []
    splits = read_json(folder / SPLITS)["splits"]
    if not isinstance(splits, list) or not all(isinstance(name, str) and Path(name).name == name for name in splits):
        raise ValueError(f"{SPLITS} does not name folders in it")
    taken = "train" if "train" in splits or not splits else splits[0]
    if taken not in splits or (taken != "train" and len(splits) > 1):
        raise DataError(
            f"{folder} must have a split named 'train'. It has {', '.join(splits) or 'none'}; give the folder of one."
        )
    left = [name for name in splits if name != taken]
    return folder / taken, [f"took the split {taken!r}; left out {', '.join(left)}"] if left else []

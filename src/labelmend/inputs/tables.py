"""Tables on disk, .npz, .npy, .csv and .parquet, as features, labels, ids and trusted marks.

Knows file formats; does not judge the data: `features.py` and `labels.py` do that for every source alike. Nothing in a
file is executed: arrays of Python objects, which numpy would unpickle, are refused.
"""

from __future__ import annotations

import csv
import difflib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import DataError
from labelmend.files.parquet import read_parquet, require_pyarrow
from labelmend.files.reading import Arrays, open_npz, read_npy, regular_file
from labelmend.inputs.features import NAMED, bad_rows
from labelmend.inputs.labels import objects, refuse_continuous
from labelmend.labels import AnnotatorColumns

CHUNK_ROWS = 10_000
FEATURE_ARRAYS = ("X", "x", "features")
INDEX_COLUMNS = ("", "Unnamed: 0", "__index_level_0__")  # what pandas writes when nobody told it to leave the index out
TRUE, FALSE = {"1", "true", "yes", "y", "t", "1.0"}, {"0", "false", "no", "n", "f", "0.0", "", "none", "nan"}
WORDS = {"": "nan", "na": "nan", "n/a": "nan", "null": "nan", "none": "nan", "true": "1", "false": "0"}


@dataclass(frozen=True)
class Table:
    features: NDArray[np.float32]
    labels: NDArray[Any] | None  # None: there are those of the annotators only
    ids: NDArray[Any] | None
    trusted: NDArray[np.bool_] | None
    feature_names: list[str]
    notes: list[str] = field(default_factory=list)  # what the user should know about the reading
    annotators: NDArray[Any] | dict[str, NDArray[Any]] | None = None  # who gave each label, or the labels of each


def load_table(
    path: str | Path,
    labels: str | None,
    id_column: str | None = None,
    trusted_column: str | None = None,
    features: str | None = None,
    ignore: Sequence[str] = (),
    annotators: AnnotatorColumns = None,
    labels_alone: bool = False,
) -> Table:
    """Read a table. `labels`, `id_column`, `trusted_column`, `annotators` name columns, or arrays of an .npz.

    `features` names the feature array of an .npz; in tables every other column that is not ignored is a feature.
    For a bare .npy the labels are another .npy file, or the number of a column. With `labels_alone` a file need not
    have features; it then gives a table of no columns.
    """
    path = Path(path)
    readers = {".csv": _read_csv, ".parquet": _read_parquet, ".npz": _read_npz, ".npy": _read_npy}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise DataError(f"the file must end in {', '.join(readers)}. Got {path.name!r} instead.")
    regular_file(path)
    try:
        if path.stat().st_size == 0:
            raise DataError(f"{path} must hold data. It is empty.")
        named = labels, id_column, trusted_column, features, tuple(ignore), annotators, labels_alone
        table = reader(path, Columns(*named))
    except OSError as error:
        raise DataError(f"{path} must be readable. Got: {error.strerror or error}.") from error
    _check_lengths(table)
    return table


def drop_bad_rows(table: Table) -> Table:
    """The table without rows that hold NaN or infinity; a note names them."""
    bad = bad_rows(table.features)
    if len(bad) == 0:
        return table
    keep = np.ones(len(table.features), dtype=bool)
    keep[bad] = False
    ids = np.arange(len(keep)) if table.ids is None else table.ids
    where = "rows counted from 0" if table.ids is None else "ids"
    note = f"left out {len(bad)} row(s) with NaN or infinity ({where}: {_listed(ids[bad])})"
    return replace(
        table,
        features=table.features[keep],
        labels=None if table.labels is None else table.labels[keep],
        ids=ids[keep],
        trusted=None if table.trusted is None else table.trusted[keep],
        notes=[*table.notes, note],
        annotators=_kept(table.annotators, keep),
    )


def _kept(annotators: Any, keep: NDArray[np.bool_]) -> Any:
    if isinstance(annotators, dict):
        return {name: column[keep] for name, column in annotators.items()}
    return None if annotators is None else annotators[keep]


@dataclass(frozen=True)
class Columns:
    """The names on the command line, and what they mean for a file with these columns or arrays."""

    labels: str | None
    ids: str | None
    trusted: str | None
    features: str | None
    ignore: tuple[str, ...]
    annotators: AnnotatorColumns = None
    labels_alone: bool = False

    def special(self) -> list[str]:
        said = (self.annotators,) if isinstance(self.annotators, str) else self.annotators or ()
        return [name for name in dict.fromkeys((self.labels, self.ids, self.trusted, *said)) if name is not None]

    def said(self, taken: Mapping[str, Any]) -> NDArray[Any] | dict[str, NDArray[Any]] | None:
        """Who gave each label, or the labels of each annotator, from the columns of the file; an empty cell is none."""
        if self.annotators is None:
            return None
        if isinstance(self.annotators, str):
            return _blank_is_none(taken[self.annotators])
        return {name: _blank_is_none(taken[name]) for name in self.annotators}

    def require(self, available: Sequence[str], kind: str) -> None:
        for name in (*self.special(), *self.ignore, *([self.features] if self.features else [])):
            if name not in available:
                raise DataError(_no_such(name, available, kind))
            if available.count(name) > 1:
                raise DataError(f"there must be one {kind} named {name!r}. There are {available.count(name)}.")

    def places(self, header: list[str]) -> tuple[dict[str, int], list[int], list[str]]:
        """Places of the special columns by name, places of the feature columns, and notes."""
        if self.features:
            raise DataError("--features names an array of an .npz. In a table, leave columns out with --ignore.")
        if not header:
            raise DataError("the table must begin with a line that names its columns. The first line is empty.")
        self.require(header, "column")
        named = {*self.special(), *self.ignore}
        index = [name for name in INDEX_COLUMNS if name in header and name not in named]
        notes = [f"left out the column {name!r}, which looks like a saved index" for name in index]
        features = [place for place, name in enumerate(header) if name not in named and name not in index]
        return {name: header.index(name) for name in self.special()}, features, notes

    def table(
        self, features: NDArray[np.float32], taken: dict[str, NDArray[Any]], names: list[str], notes: Sequence[str] = ()
    ) -> Table:
        """The special columns, read from the file, in their roles."""
        return Table(
            features,
            taken[self.labels] if self.labels is not None else None,
            taken[self.ids] if self.ids else None,
            marks(taken[self.trusted], self.trusted) if self.trusted else None,
            names,
            list(notes),
            self.said(taken),
        )


def _blank_is_none(values: Any) -> NDArray[Any]:
    array = np.asarray(values) if isinstance(values, np.ndarray) else objects(values)
    if array.dtype.kind in "biuf" or array.ndim != 1:
        return array
    return objects([None if value is None or value == "" else value for value in array.tolist()])


def _no_such(name: str, available: Sequence[str], kind: str) -> str:
    folded = {other.casefold(): other for other in available}
    near = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)
    shown = [repr(other) for other in available]
    shown = shown if len(shown) <= 20 else [*shown[:12], "...", *shown[-6:]]
    hint = f"Did you mean {folded[near[0]]!r}?" if near else f"There are: {', '.join(shown)}."
    return f"there must be a {kind} named {name!r}. {hint}"


def _check_lengths(table: Table) -> None:
    """A mask for the rows must fit every column; the columns of a table do by themselves."""
    n_rows = len(table.features)
    said = table.annotators if isinstance(table.annotators, dict) else {"annotators": table.annotators}
    columns = (("labels", table.labels), ("ids", table.ids), ("trusted marks", table.trusted), *said.items())
    for what, values in columns:
        if values is not None and (values.ndim == 0 or len(values) != n_rows):
            raise DataError(
                f"features and {what} must have the same length. Got {n_rows} rows and {what} of shape {values.shape}."
            )
    if table.ids is not None and any(value is None for value in table.ids):
        raise DataError("the id column must have a value in every row. Some have none.")


def _read_npz(path: Path, columns: Columns) -> Table:
    with open_npz(path) as archive:
        columns.require(archive.files, "array")
        feature_name = columns.features or _feature_array(archive, columns)
        wanted = {name: text_of(archive[name]) for name in (feature_name, *columns.special()) if name is not None}
    if feature_name is None:
        return columns.table(np.empty((len(next(iter(wanted.values()))), 0), np.float32), wanted, [])
    matrix = _matrix(wanted[feature_name], f"the array {feature_name!r}")
    return columns.table(matrix, wanted, [f"{feature_name}[{i}]" for i in range(matrix.shape[1])])


def _feature_array(archive: Arrays, columns: Columns) -> str | None:
    """The one named X, x or features, or the one two-dimensional array; None where labels alone will do."""
    others: list[str] = [name for name in archive.files if name not in columns.special() and name not in columns.ignore]
    found = [name for name in others if name in FEATURE_ARRAYS]
    found = found or [name for name in others if len(archive.header(name)[1]) == 2]
    if not found and columns.labels_alone and columns.special():
        return None
    if len(found) != 1:
        raise DataError(
            f"the features must be one two-dimensional array. Got {', '.join(others) or 'none'}; "
            "name it with --features."
        )
    return found[0]


def _read_npy(path: Path, columns: Columns) -> Table:
    """A bare array: the labels are a file of their own, or one of its columns, counted from 0 (-1: the last)."""
    if columns.ids or columns.trusted or columns.features or columns.ignore or columns.annotators:
        raise DataError(
            "an .npy has no names for --id, --trusted, --features, --ignore or annotators. Use an .npz or a table."
        )
    array = read_npy(path)
    if columns.labels is None and columns.labels_alone and array.ndim == 1:
        return Table(np.empty((len(array), 0), np.float32), array, None, None, [])
    if columns.labels is None:
        raise DataError(f"{path} must come with --labels: another .npy file, or the number of its label column.")
    features = _matrix(array, str(path))
    names = [str(place) for place in range(features.shape[1])]
    if columns.labels.endswith(".npy"):
        return Table(features, text_of(read_npy(Path(columns.labels))), None, None, names)
    try:
        place = range(len(names))[int(columns.labels)]
    except (ValueError, IndexError):
        raise DataError(
            f"for an .npy, --labels must be another .npy file or a column number below {len(names)}. "
            f"Got {columns.labels!r} instead."
        ) from None
    labels = array[:, place]
    if np.equal(np.mod(labels, 1), 0).all():
        labels = labels.astype(np.int64)
    del names[place]
    return Table(np.delete(features, place, axis=1), labels, None, None, names)


def _matrix(array: NDArray[Any], name: str) -> NDArray[np.float32]:
    if array.ndim != 2 or array.dtype.kind not in "iufb":
        raise DataError(
            f"{name} must be a two-dimensional array of numbers. Got {array.dtype} of shape {array.shape} instead."
        )
    return _float32(array)


def text_of(array: NDArray[Any]) -> NDArray[Any]:
    """Bytes, which numpy keeps for short text, as text."""
    return np.char.decode(array, "utf-8", "replace") if array.dtype.kind == "S" else array


def _float32(array: NDArray[Any]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # too large a number becomes infinity, and its row is named later
        return array.astype(np.float32)


@contextmanager
def csv_rows(path: Path) -> Iterator[tuple[list[str], Any]]:
    """The header of a CSV file and a reader of the rows below it."""
    regular_file(path)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            separator = _separator_of(file.readline())
            file.seek(0)
            rows = csv.reader(file, delimiter=separator, strict=True)
            yield next(rows, []), rows
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(
            f"{path} must be a CSV file in UTF-8 with a header line. Could not read it: {error}."
        ) from error


def _read_csv(path: Path, columns: Columns) -> Table:
    """Labels and ids stay the text that is in the file; an empty label is a missing one."""
    with csv_rows(path) as (header, rows):
        special, features, notes = columns.places(header)
        names = [header[place] for place in features]
        chunks, text = _read_csv_rows(rows, len(header), names, features, list(special.values()))
    if not chunks:
        raise DataError(f"{path} must hold rows below its header. It has none.")
    taken = {name: objects(values) for name, values in zip(special, zip(*text, strict=True), strict=True)}
    table = columns.table(np.concatenate(chunks), taken, names, notes)
    if table.labels is None:
        return table
    numbers = numbers_or_none([label for label in table.labels if label])
    if numbers is not None:
        refuse_continuous(numbers[~np.isnan(numbers)])
    return replace(table, labels=objects([label or None for label in table.labels]))


def _separator_of(header: str) -> str:
    """A comma, unless the header has none: some spreadsheets write semicolons or tabs."""
    return next((mark for mark in (",", ";", "\t") if mark in header), ",")


def _read_csv_rows(
    rows: Any, width: int, names: list[str], features: list[int], special: list[int]
) -> tuple[list[NDArray[np.float32]], list[list[str]]]:
    """Numbers in chunks, so that a large file is never in memory as text; special columns as text."""
    chunks: list[NDArray[np.float32]] = []
    pending: list[list[str]] = []
    text: list[list[str]] = []
    for row in whole_rows(rows, width):
        pending.append([row[place] for place in features])
        text.append([row[place] for place in special])
        if len(pending) == CHUNK_ROWS:
            chunks.append(_numbers(pending, names))
            pending = []
    if pending:
        chunks.append(_numbers(pending, names))
    return chunks, text


def whole_rows(rows: Any, width: int) -> Iterator[list[str]]:
    for row in rows:
        if len(row) not in (0, width):
            raise DataError(f"line {rows.line_num} must have {width} cells like the header. Got {len(row)} instead.")
        if row:
            yield row


def _numbers(rows: list[list[str]], names: list[str]) -> NDArray[np.float32]:
    try:
        return _float32(np.array(rows, dtype=np.float64).reshape(len(rows), len(names)))
    except ValueError:  # blanks or words somewhere: column by column, which is slower
        columns = [numbers_or_none(cells) for cells in zip(*rows, strict=True)]
    _refuse_text([name for name, column in zip(names, columns, strict=True) if column is None])
    return _float32(np.column_stack([column for column in columns if column is not None]))


def numbers_or_none(cells: Sequence[str]) -> NDArray[np.float64] | None:
    try:
        return np.array([WORDS.get(cell.strip().lower(), cell) for cell in cells], dtype=np.float64)
    except ValueError:
        return None


def _refuse_text(names: list[str]) -> None:
    if names:
        raise DataError(
            f"feature columns must be numbers. Got something else in: {_listed(names)}. Leave columns out with "
            "--ignore NAME, name rows with --id NAME, or encode them as numbers first."
        )


def _read_parquet(path: Path, columns: Columns) -> Table:
    pyarrow, table = require_pyarrow("reading .parquet"), read_parquet(path)
    special, features, notes = columns.places(table.column_names)
    numeric = (pyarrow.types.is_integer, pyarrow.types.is_floating, pyarrow.types.is_boolean)
    names = [table.column_names[place] for place in features]
    _refuse_text([name for name, place in zip(names, features, strict=True) if not _is(table, place, numeric)])
    if table.num_rows == 0:
        raise DataError(f"{path} must hold rows. It has none.")
    matrix = np.empty((table.num_rows, len(features)), dtype=np.float32)
    for position, place in enumerate(features):
        matrix[:, position] = _float32(table.column(place).to_numpy())
    taken = {name: objects(table.column(place).to_pylist()) for name, place in special.items()}
    return columns.table(matrix, taken, names, notes)


def _is(table: Any, place: int, kinds: Sequence[Any]) -> bool:
    return any(is_kind(table.schema.field(place).type) for is_kind in kinds)


def marks(values: NDArray[Any], name: str) -> NDArray[np.bool_]:
    """Trusted marks from anything people write: 1/0, true/false, yes/no, empty."""
    if values.dtype == bool or values.ndim != 1:
        return values
    text = [str(value).strip().lower() for value in values]
    odd = next((value for value in text if value not in TRUE and value not in FALSE), None)
    if odd is not None:
        raise DataError(f"the trusted column {name!r} must hold true/false, yes/no or 1/0. Got {odd!r} instead.")
    return np.array([value in TRUE for value in text])


def _listed(values: Sequence[Any] | NDArray[Any]) -> str:
    return ", ".join(map(str, values[:NAMED])) + (", ..." if len(values) > NAMED else "")

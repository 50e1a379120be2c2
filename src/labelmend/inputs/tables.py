"""Columns in their roles: features, labels, ids, trusted marks and annotators, for vectors and pictures alike.

Knows names of columns and arrays; `frames.py` reads the files, `features.py` and `labels.py` judge the data of every
source. Arrays of Python objects, which numpy would unpickle, are refused.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import DataError
from labelmend.files.reading import Arrays, open_npz, read_npy, regular_file
from labelmend.inputs.containers import listed, objects
from labelmend.inputs.features import bad_rows
from labelmend.inputs.frames import CsvFrame, Frame, as_float32, cell_text, numbers_or_none, read_frame, text_of
from labelmend.inputs.labels import refuse_continuous
from labelmend.labels import AnnotatorColumns

ENDINGS = (".csv", ".parquet", ".npz", ".npy")
FEATURE_ARRAYS = ("X", "x", "features")
INDEX_COLUMNS = ("", "Unnamed: 0", "__index_level_0__")  # what pandas writes when nobody told it to leave the index out
TRUE, FALSE = {"1", "true", "yes", "y", "t", "1.0"}, {"0", "false", "no", "n", "f", "0.0", "", "none", "nan"}


@dataclass(frozen=True)
class Table:
    features: NDArray[np.float32]
    labels: NDArray[Any] | None = None  # None: there are those of the annotators only
    ids: NDArray[Any] | None = None
    trusted: NDArray[np.bool_] | None = None
    feature_names: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what the user should know about the reading
    annotators: NDArray[Any] | dict[str, NDArray[Any]] | None = None  # who gave each label, or the labels of each


@dataclass(frozen=True)
class Roles:
    """The names on the command line, and what they mean for a file with these columns or arrays."""

    labels: str | None = None
    ids: str | None = None
    trusted: str | None = None
    features: str | None = None  # an array of an .npz, or the column of the pictures
    ignore: tuple[str, ...] = ()
    annotators: AnnotatorColumns = None
    labels_alone: bool = False  # there need not be features

    def named(self) -> list[str]:
        """Each column with a role but the features, once."""
        people = (self.annotators,) if isinstance(self.annotators, str) else self.annotators or ()
        return [name for name in dict.fromkeys((self.labels, self.ids, self.trusted, *people)) if name is not None]

    def require(self, available: Sequence[str], kind: str) -> None:
        for name in (*self.named(), *self.ignore, *([self.features] if self.features else [])):
            if name not in available:
                raise DataError(_no_such(name, available, kind))
            if available.count(name) > 1:
                raise DataError(f"there must be one {kind} named {name!r}. There are {available.count(name)}.")

    def feature_columns(self, header: list[str]) -> tuple[list[int], list[str]]:
        """Places of the columns without a role, and notes on those that are no features all the same."""
        if self.features:
            raise DataError("--features names an array of an .npz. In a table, leave columns out with --ignore.")
        if not header:
            raise DataError("the table must begin with a line that names its columns. The first line is empty.")
        self.require(header, "column")
        named = {*self.named(), *self.ignore}
        index = [name for name in INDEX_COLUMNS if name in header and name not in named]
        notes = [f"left out the column {name!r}, which looks like a saved index" for name in index]
        return [place for place, name in enumerate(header) if name not in named and name not in index], notes

    def values(self, frame: Frame) -> dict[str, NDArray[Any]]:
        """The columns with a role, as the file holds them. Labels of a .csv that measure something are refused."""
        found = {name: objects(frame.column(name)) for name in self.named()}
        if self.labels is not None and isinstance(frame, CsvFrame):
            numbers = numbers_or_none([label for label in found[self.labels] if label])
            if numbers is not None:
                refuse_continuous(numbers[~np.isnan(numbers)])
        return found

    def marks(self, values: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_] | None:
        """Trusted marks from anything people write: 1/0, true/false, yes/no, empty."""
        if not self.trusted:
            return None
        given = values[self.trusted]
        if given.dtype == bool or given.ndim != 1:
            return given
        text = [str(value).strip().lower() for value in given]
        if odd := [value for value in text if value not in TRUE and value not in FALSE]:
            raise DataError(
                f"the trusted column {self.trusted!r} must hold true/false, yes/no or 1/0. Got {odd[0]!r} instead."
            )
        return np.array([value in TRUE for value in text])

    def people(self, values: Mapping[str, NDArray[Any]]) -> NDArray[Any] | dict[str, NDArray[Any]] | None:
        """Who gave each label, or the labels of each annotator; an empty cell is none."""
        if isinstance(self.annotators, str):
            return _blank_is_none(values[self.annotators])
        return None if self.annotators is None else {name: _blank_is_none(values[name]) for name in self.annotators}

    def table(
        self,
        features: NDArray[np.float32],
        values: Mapping[str, NDArray[Any]],
        names: list[str],
        notes: Sequence[str] = (),
    ) -> Table:
        labels = values[self.labels] if self.labels is not None else None
        ids = values[self.ids] if self.ids else None
        return Table(features, labels, ids, self.marks(values), names, list(notes), self.people(values))


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
    readers = dict(zip(ENDINGS, (_read_columns, _read_columns, _read_npz, _read_npy), strict=True))
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise DataError(f"the file must end in {', '.join(ENDINGS)}. Got {path.name!r} instead.")
    regular_file(path)
    try:
        if path.stat().st_size == 0:
            raise DataError(f"{path} must hold data. It is empty.")
        roles = Roles(labels, id_column, trusted_column, features, tuple(ignore), annotators, labels_alone)
        table = reader(path, roles)
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

    def kept(values: Any) -> Any:
        if isinstance(values, dict):
            return {name: column[keep] for name, column in values.items()}
        return None if values is None else values[keep]

    return replace(
        table,
        features=table.features[keep],
        labels=kept(table.labels),
        ids=ids[keep],
        trusted=kept(table.trusted),
        notes=[*table.notes, f"left out {len(bad)} row(s) with NaN or infinity ({where}: {listed(ids[bad])})"],
        annotators=kept(table.annotators),
    )


def _blank_is_none(array: NDArray[Any]) -> NDArray[Any]:
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
    people = table.annotators if isinstance(table.annotators, dict) else {"annotators": table.annotators}
    columns = (("labels", table.labels), ("ids", table.ids), ("trusted marks", table.trusted), *people.items())
    for what, values in columns:
        if values is not None and (values.ndim == 0 or len(values) != n_rows):
            raise DataError(
                f"features and {what} must have the same length. Got {n_rows} rows and {what} of shape {values.shape}."
            )
    if table.ids is not None and any(value is None for value in table.ids):
        raise DataError("the id column must have a value in every row. Some have none.")


def _read_columns(path: Path, roles: Roles) -> Table:
    """A .csv or .parquet: labels and ids stay as they are in the file; an empty label of a .csv is a missing one."""
    frame = read_frame(path, roles.feature_columns)
    places, notes = roles.feature_columns(frame.columns)
    matrix, text = np.empty((len(frame), len(places)), dtype=np.float32), []
    for position, place in enumerate(places):
        numbers = frame.numbers(place)
        if numbers is None:
            text.append(frame.columns[place])
        else:
            matrix[:, position] = numbers
    if text:
        raise DataError(
            f"feature columns must be numbers. Got something else in: {listed(text)}. Leave columns out with "
            "--ignore NAME, name rows with --id NAME, or encode them as numbers first."
        )
    table = roles.table(matrix, roles.values(frame), [frame.columns[place] for place in places], notes)
    if table.labels is None or not isinstance(frame, CsvFrame):
        return table
    return replace(table, labels=objects([label or None for label in table.labels]))


def _read_npz(path: Path, roles: Roles) -> Table:
    with open_npz(path) as archive:
        roles.require(archive.files, "array")
        feature_name = roles.features or _feature_array(archive, roles)
        wanted = {name: text_of(archive[name]) for name in (feature_name, *roles.named()) if name is not None}
    if feature_name is None:
        return roles.table(np.empty((len(next(iter(wanted.values()))), 0), np.float32), wanted, [])
    matrix = _matrix(wanted[feature_name], f"the array {feature_name!r}")
    return roles.table(matrix, wanted, [f"{feature_name}[{i}]" for i in range(matrix.shape[1])])


def _feature_array(archive: Arrays, roles: Roles) -> str | None:
    """The one named X, x or features, or the one two-dimensional array; None where labels alone will do."""
    others: list[str] = [name for name in archive.files if name not in roles.named() and name not in roles.ignore]
    found = [name for name in others if name in FEATURE_ARRAYS]
    found = found or [name for name in others if len(archive.header(name)[1]) == 2]
    if not found and roles.labels_alone and roles.named():
        return None
    if len(found) != 1:
        raise DataError(
            f"the features must be one two-dimensional array. Got {', '.join(others) or 'none'}; "
            "name it with --features."
        )
    return found[0]


def _read_npy(path: Path, roles: Roles) -> Table:
    """A bare array: the labels are a file of their own, or one of its columns, counted from 0 (-1: the last)."""
    if roles.ids or roles.trusted or roles.features or roles.ignore or roles.annotators:
        raise DataError(
            "an .npy has no names for --id, --trusted, --features, --ignore or annotators. Use an .npz or a table."
        )
    array = read_npy(path)
    if roles.labels is None and roles.labels_alone and array.ndim == 1:
        return Table(np.empty((len(array), 0), np.float32), array)
    if roles.labels is None:
        raise DataError(f"{path} must come with --labels: another .npy file, or the number of its label column.")
    features = _matrix(array, str(path))
    names = [str(place) for place in range(features.shape[1])]
    if roles.labels.endswith(".npy"):
        return Table(features, text_of(read_npy(Path(roles.labels))), feature_names=names)
    try:
        place = range(len(names))[int(roles.labels)]
    except (ValueError, IndexError):
        raise DataError(
            f"for an .npy, --labels must be another .npy file or a column number below {len(names)}. "
            f"Got {roles.labels!r} instead."
        ) from None
    labels = array[:, place]
    if np.equal(np.mod(labels, 1), 0).all():
        labels = labels.astype(np.int64)
    del names[place]
    return Table(np.delete(features, place, axis=1), labels, feature_names=names)


def _matrix(array: NDArray[Any], name: str) -> NDArray[np.float32]:
    if array.ndim != 2 or array.dtype.kind not in "iufb":
        raise DataError(
            f"{name} must be a two-dimensional array of numbers. Got {array.dtype} of shape {array.shape} instead."
        )
    return as_float32(array)


class ArrayRows:
    """The rows of numpy files: labels, ids and marks first, then the features, with the numbers the method saw."""

    def __init__(
        self, path: Path, labels: str | None, id: str | None, trusted: str | None, features: str | None
    ) -> None:
        table = load_table(path, labels, id, trusted, features, labels_alone=True)
        self.features = table.features
        label_name = "label" if path.suffix.lower() == ".npy" else labels
        named = ((label_name, table.labels), (id, table.ids), (trusted, table.trusted))
        self.special = {name: values for name, values in named if name is not None and values is not None}
        self.columns = [*self.special, *table.feature_names]

    def __len__(self) -> int:
        return len(self.features)

    def cells(self, place: int) -> list[str]:
        return [cell_text(v) for v in (*(values[place] for values in self.special.values()), *self.features[place])]

    def column(self, name: str) -> list[Any]:
        return list(self.special[name])


Rows = Frame | ArrayRows


def open_rows(
    path: Path, labels: str | None, id: str | None = None, trusted: str | None = None, features: str | None = None
) -> Rows:
    """Rows as a person wrote them, a text for each column, of which nothing is judged.

    Named are the arrays of an .npz, or the labels of an .npy; tables have all they need inside.
    """
    if path.suffix.lower() in (".csv", ".parquet"):
        return read_frame(path)
    return ArrayRows(path, labels, id, trusted, features)

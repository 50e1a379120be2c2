"""Tables on disk, .npz, .npy, .csv and .parquet, as features, labels, ids and trusted marks.

Knows file formats; does not judge the data: `features.py` and `labels.py` do that for every source alike.
"""

from __future__ import annotations

import csv
import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.data.features import NAMED, bad_rows
from labelmend.errors import DataError, MissingExtraError

CHUNK_ROWS = 10_000
TRUE, FALSE = {"1", "true", "yes", "y", "t", "1.0"}, {"0", "false", "no", "n", "f", "0.0", "", "none", "nan"}


@dataclass(frozen=True)
class Table:
    features: NDArray[np.float32]
    labels: Any
    ids: NDArray[Any] | None
    trusted: NDArray[np.bool_] | None
    feature_names: list[str]


def load_table(
    path: str | Path,
    labels: str,
    id_column: str | None = None,
    trusted_column: str | None = None,
    features: str | None = None,
    ignore: Sequence[str] = (),
) -> Table:
    """Read a table. `labels`, `id_column`, `trusted_column` name columns, or arrays of an .npz.

    `features` names the feature array of an .npz; in tables every other column that is not ignored is a feature.
    For a bare .npy the labels are another .npy file, or the number of a column.
    """
    path = Path(path)
    readers = {".npz": _read_npz, ".npy": _read_npy, ".csv": _read_csv, ".parquet": _read_parquet}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise DataError(f"the file must end in {', '.join(readers)}. Got {path.name!r} instead.")
    if not path.is_file():
        raise DataError(f"{path} must be a file. There is none; check the path.")
    if path.stat().st_size == 0:
        raise DataError(f"{path} must hold data. It is empty.")
    columns = _Columns(labels, id_column, trusted_column, features, tuple(ignore))
    return reader(path, columns)


def drop_bad_rows(table: Table) -> tuple[Table, list[Any]]:
    """The table without rows that hold NaN or infinity, and the ids (or positions) of those rows."""
    bad = bad_rows(table.features)
    if len(bad) == 0:
        return table, []
    names = bad.tolist() if table.ids is None else table.ids[bad].tolist()
    keep = np.ones(len(table.features), dtype=bool)
    keep[bad] = False
    ids = np.flatnonzero(keep) if table.ids is None else table.ids[keep]
    kept = replace(
        table,
        features=table.features[keep],
        labels=np.asarray(table.labels)[keep],
        ids=ids,
        trusted=None if table.trusted is None else table.trusted[keep],
    )
    return kept, names


@dataclass(frozen=True)
class _Columns:
    labels: str
    ids: str | None
    trusted: str | None
    features: str | None
    ignore: tuple[str, ...]

    def special(self) -> list[str]:
        return [name for name in (self.labels, self.ids, self.trusted) if name is not None]

    def require(self, available: Sequence[str], kind: str) -> None:
        for name in (*self.special(), *self.ignore, *([self.features] if self.features else [])):
            if name not in available:
                raise DataError(_no_such(name, available, kind))


def _no_such(name: str, available: Sequence[str], kind: str) -> str:
    near = difflib.get_close_matches(name, available, n=1, cutoff=0.5)
    hint = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(available[:20])}."
    return f"there must be a {kind} named {name!r}. {hint}"


def _read_npz(path: Path, columns: _Columns) -> Table:
    try:
        with np.load(path, allow_pickle=False) as archive:
            names = archive.files
            columns.require(names, "array")
            feature_name = columns.features or _feature_array(archive, columns)
            matrix = archive[feature_name]
            labels = archive[columns.labels]
            ids = archive[columns.ids] if columns.ids else None
            trusted = _marks(archive[columns.trusted], columns.trusted) if columns.trusted else None
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} must be an .npz of plain arrays. Could not read it: {error}.") from error
    if matrix.ndim != 2 or matrix.dtype.kind not in "iufb":
        raise DataError(
            f"the features {feature_name!r} must be a two-dimensional array of numbers. "
            f"Got {matrix.dtype} of shape {matrix.shape} instead."
        )
    return Table(
        matrix.astype(np.float32), labels, ids, trusted, [f"{feature_name}[{i}]" for i in range(matrix.shape[1])]
    )


def _feature_array(archive: Any, columns: _Columns) -> str:
    """The one two-dimensional array, or the one named X, x or features."""
    others = [name for name in archive.files if name not in columns.special() and name not in columns.ignore]
    named = [name for name in others if name in ("X", "x", "features")]
    wide = [name for name in others if archive[name].ndim == 2]
    found = named or wide
    if len(found) != 1:
        raise DataError(
            f"the features must be one two-dimensional array. Got {', '.join(others)}; name it with --features."
        )
    return found[0]


def _read_npy(path: Path, columns: _Columns) -> Table:
    try:
        matrix = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path} must be an .npy of numbers. Could not read it: {error}.") from error
    if matrix.ndim != 2:
        raise DataError(f"{path} must hold a two-dimensional array. Got shape {matrix.shape} instead.")
    if columns.labels.endswith(".npy"):
        label_file = Path(columns.labels)
        if not label_file.is_file():
            raise DataError(f"the labels file {label_file} must exist. There is none; check the path.")
        labels = np.load(label_file, allow_pickle=False)
        keep = list(range(matrix.shape[1]))
    else:
        try:
            place = range(matrix.shape[1])[int(columns.labels)]
        except (ValueError, IndexError):
            raise DataError(
                f"for a bare .npy, --labels must be another .npy file or a column number below {matrix.shape[1]}. "
                f"Got {columns.labels!r} instead."
            ) from None
        labels, keep = matrix[:, place], [i for i in range(matrix.shape[1]) if i != place]
        labels = labels.astype(np.int64) if np.equal(np.mod(labels, 1), 0).all() else labels
    return Table(matrix[:, keep].astype(np.float32), labels, None, None, [str(i) for i in keep])


def _read_csv(path: Path, columns: _Columns) -> Table:
    """Labels and ids stay the text that is in the file; an empty label is a missing one."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        try:
            header = next(reader)
            columns.require(header, "column")
            places = {name: place for place, name in enumerate(header)}
            skipped = {*columns.special(), *columns.ignore}
            names = [name for name in header if name not in skipped]
            chunks, text = _read_csv_rows(
                reader, header, [places[n] for n in names], [places[n] for n in columns.special()]
            )
        except (csv.Error, UnicodeDecodeError, StopIteration) as error:
            raise DataError(
                f"{path} must be a CSV file in UTF-8 with a header line. Could not read it: {error}."
            ) from error
    if not chunks:
        raise DataError(f"{path} must hold rows below its header. It has none.")
    taken = dict(
        zip(columns.special(), (np.array(values, dtype=object) for values in zip(*text, strict=True)), strict=True)
    )
    labels = taken[columns.labels]
    labels[labels == ""] = None
    return Table(
        np.concatenate(chunks),
        labels,
        taken[columns.ids] if columns.ids else None,
        _marks(taken[columns.trusted], columns.trusted) if columns.trusted else None,
        names,
    )


def _read_csv_rows(
    reader: Any, header: list[str], number_places: list[int], text_places: list[int]
) -> tuple[list[NDArray[np.float32]], list[list[str]]]:
    chunks: list[NDArray[np.float32]] = []
    pending: list[list[str]] = []
    text: list[list[str]] = []
    for row in reader:
        if not row:
            continue
        if len(row) != len(header):
            raise DataError(
                f"line {reader.line_num} must have {len(header)} cells like the header. Got {len(row)} instead."
            )
        pending.append([row[place] or "nan" for place in number_places])
        text.append([row[place] for place in text_places])
        if len(pending) == CHUNK_ROWS:
            chunks.append(_numbers(pending, [header[p] for p in number_places]))
            pending = []
    if pending:
        chunks.append(_numbers(pending, [header[p] for p in number_places]))
    return chunks, text


def _numbers(rows: list[list[str]], names: list[str]) -> NDArray[np.float32]:
    try:
        return np.array(rows, dtype=np.float64).astype(np.float32).reshape(len(rows), len(names))
    except ValueError:
        pass
    text = [name for name, column in zip(names, zip(*rows, strict=True), strict=True) if not _all_numbers(column)]
    named = ", ".join(text[:NAMED]) + (", ..." if len(text) > NAMED else "")
    raise DataError(
        f"feature columns must be numbers. Got text in: {named}. Leave columns out with --ignore NAME, "
        "or encode them as numbers first."
    )


def _all_numbers(column: Sequence[str]) -> bool:
    try:
        np.array(column, dtype=np.float64)
    except ValueError:
        return False
    return True


def _read_parquet(path: Path, columns: _Columns) -> Table:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("reading .parquet needs pyarrow", "tables") from None
    try:
        table = pyarrow.parquet.read_table(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise DataError(f"{path} must be a Parquet file. Could not read it: {error}.") from error
    columns.require(table.column_names, "column")
    skipped = {*columns.special(), *columns.ignore}
    names = [name for name in table.column_names if name not in skipped]
    types = pyarrow.types
    odd = [
        n
        for n in names
        if not any(f(table.schema.field(n).type) for f in (types.is_integer, types.is_floating, types.is_boolean))
    ]
    if odd:
        raise DataError(
            f"feature columns must be numbers. Got another kind in: {', '.join(odd[:NAMED])}. "
            "Leave columns out with --ignore NAME, or encode them as numbers first."
        )
    if table.num_rows == 0:
        raise DataError(f"{path} must hold rows. It has none.")
    matrix = (
        np.column_stack([table[n].to_numpy().astype(np.float32) for n in names])
        if names
        else np.empty((table.num_rows, 0), np.float32)
    )

    def taken(name: str) -> NDArray[Any]:
        return np.array(table[name].to_pylist(), dtype=object)

    return Table(
        matrix,
        table[columns.labels].to_pylist(),
        taken(columns.ids) if columns.ids else None,
        _marks(taken(columns.trusted), columns.trusted) if columns.trusted else None,
        names,
    )


def _marks(values: NDArray[Any], name: str | None) -> NDArray[np.bool_]:
    """Trusted marks from anything people write: 1/0, true/false, yes/no, empty."""
    if values.dtype == bool:
        return values
    text = [str(value).strip().lower() for value in values]
    odd = next((value for value in text if value not in TRUE and value not in FALSE), None)
    if odd is not None:
        raise DataError(f"the trusted column {name!r} must hold true/false, yes/no or 1/0. Got {odd!r} instead.")
    return np.array([value in TRUE for value in text])

"""Rows of a table as a person wrote them: every column, in order, as text, one row at a time.

Knows .csv, .parquet, .npz and .npy; does not judge what is in them: `load.py` has read them before. A .csv stays on
disk: of 100,000 rows only where each begins is in memory.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import DataError
from labelmend.files.parquet import read_parquet
from labelmend.files.reading import regular_file
from labelmend.inputs.tables import csv_rows, load_table

BOM = b"\xef\xbb\xbf"


class Rows(Protocol):
    columns: list[str]

    def __len__(self) -> int: ...

    def cells(self, place: int) -> list[str]:
        """One row, a text for each column; from any thread."""
        ...

    def column(self, name: str) -> list[Any]:
        """One column as the file holds it, a value for each row."""
        ...


def open_rows(
    path: Path, labels: str | None, id: str | None = None, trusted: str | None = None, features: str | None = None
) -> Rows:
    """Named are the arrays of an .npz, or the labels of an .npy; tables have all they need inside."""
    regular_file(path)
    match path.suffix.lower():
        case ".csv":
            return CsvRows(path)
        case ".parquet":
            return ParquetRows(path)
        case _:
            return ArrayRows(path, labels, id, trusted, features)


class CsvRows:
    def __init__(self, path: Path) -> None:
        self.path, self.stamp = path, _stamp(os.stat(path))
        with csv_rows(path) as (header, rows):
            self.columns, self.separator = header, rows.dialect.delimiter
        self.bounds = np.fromiter(self._bounds(), dtype=np.int64)

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def cells(self, place: int) -> list[str]:
        begin, end = self.bounds[place : place + 2].tolist()
        with self.path.open("rb") as file:
            if _stamp(os.fstat(file.fileno())) != self.stamp:
                raise DataError(f"{self.path} must stay as it is while it is looked at. It has changed.")
            file.seek(begin)
            text = file.read(end - begin).decode("utf-8")
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=self.separator, strict=True))

    def column(self, name: str) -> list[str]:
        with csv_rows(self.path) as (header, rows):
            place = header.index(name)
            return [row[place] for row in rows if row]

    def _bounds(self) -> Iterator[int]:
        """Where every row begins that is not blank, and where the last one ends."""
        with self.path.open("rb") as encoded:
            at = len(BOM) if encoded.read(len(BOM)) == BOM else 0

        def counted(lines: Iterator[str]) -> Iterator[str]:
            nonlocal at
            for line in lines:
                at += len(line.encode("utf-8"))
                yield line

        with self.path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(counted(file), delimiter=self.separator, strict=True)
            next(rows, None)
            begin = at
            for row in rows:
                if row:
                    yield begin
                begin = at
        yield at


def _stamp(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns


class ParquetRows:
    def __init__(self, path: Path) -> None:
        self.table = read_parquet(path)
        self.columns: list[str] = self.table.column_names
        self.short = [str(kind) in ("float", "halffloat") for kind in self.table.schema.types]

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def cells(self, place: int) -> list[str]:
        row = [column[place].as_py() for column in self.table.columns]
        return [cell_text(np.float32(v) if short else v) for v, short in zip(row, self.short, strict=True)]

    def column(self, name: str) -> list[Any]:
        return list(self.table.column(name).to_pylist())


class ArrayRows:
    """Labels, ids and marks first, then the features, with the numbers the method saw."""

    def __init__(
        self, path: Path, labels: str | None, id: str | None, trusted: str | None, features: str | None
    ) -> None:
        table = load_table(path, labels, id, trusted, features, labels_alone=True)
        self.features = table.features
        label_name = "label" if path.suffix.lower() == ".npy" else labels
        named: list[tuple[str | None, NDArray[Any] | None]] = [
            (label_name, table.labels),
            (id, table.ids),
            (trusted, table.trusted),
        ]
        self.special = {name: values for name, values in named if name is not None and values is not None}
        self.columns = [*self.special, *table.feature_names]

    def __len__(self) -> int:
        return len(self.features)

    def cells(self, place: int) -> list[str]:
        return [cell_text(v) for v in (*(values[place] for values in self.special.values()), *self.features[place])]

    def column(self, name: str) -> list[Any]:
        return list(self.special[name])


def cell_text(value: Any) -> str:
    """A value as a person writes it: nothing for none, whole numbers without a point."""
    if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
        return ""
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    text = str(value.item() if isinstance(value, np.generic) and not isinstance(value, np.floating) else value)
    return text.removesuffix(".0") if isinstance(value, float | np.floating) else text

"""A file as columns: the one place where that happens. `tables.py` and `pictures/find.py` give columns their roles.

    .csv       every cell is the text that stands in the file: "007" and "NA" stay what they are
    .parquet   columns of the types they have
    a folder   that `save_to_disk` of Hugging Face's library wrote: Arrow files beside a description

Each becomes an Arrow table, in which names may repeat. Rows of a .csv are split by Python's own csv module: pandas
fills short rows up without a word, and both pandas and pyarrow take wrong quotes for text. Nothing in a file is
executed.
"""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import DataError
from labelmend.files.reading import read_json, read_parquet, regular_file, require_pyarrow

CHUNK_ROWS = 10_000
SEPARATORS = (",", ";", "\t")  # some spreadsheets write the others
STATE, SPLITS, INFO = "state.json", "dataset_dict.json", "dataset_info.json"  # what save_to_disk writes
WORDS = {"": "nan", "na": "nan", "n/a": "nan", "null": "nan", "none": "nan", "true": "1", "false": "0"}


class Frame(ABC):
    """The columns of a file, and its rows as a person wrote them. Rows can be read from any thread."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.columns: list[str] = table.column_names

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def column(self, name: str | int) -> list[Any]:
        """The values of a column by its name, if that is there once, or its place."""
        return list(self.table.column(name).to_pylist())

    def cells(self, place: int) -> list[str]:
        """One row, a text for each column."""
        return [cell_text(column[place].as_py()) for column in self.table.columns]

    @abstractmethod
    def numbers(self, place: int) -> NDArray[np.float32] | None:
        """A column as features; None where it holds something else."""


class CsvFrame(Frame):
    def __init__(self, table: Any, separator: str) -> None:
        super().__init__(table)
        self.separator = separator

    def numbers(self, place: int) -> NDArray[np.float32] | None:
        numbers = numbers_or_none(self.table.column(place).to_pylist())
        return None if numbers is None else as_float32(numbers)


class ParquetFrame(Frame):
    def cells(self, place: int) -> list[str]:
        row = [column[place].as_py() for column in self.table.columns]
        short = [str(kind) in ("float", "halffloat") for kind in self.table.schema.types]  # 0.1, not 0.100000001
        return [cell_text(np.float32(v) if cut else v) for v, cut in zip(row, short, strict=True)]

    def numbers(self, place: int) -> NDArray[np.float32] | None:
        types = require_pyarrow("reading .parquet").types
        kind = self.table.schema.field(place).type
        numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
        return as_float32(self.table.column(place).to_numpy()) if numeric else None


def read_frame(path: Path, check: Callable[[list[str]], object] = list) -> Frame:
    """A .csv or .parquet with at least one row. `check` gets the names first, so that wrong ones are told early."""
    frame: Frame
    if path.suffix.lower() == ".csv":
        frame = _read_csv(path, check)
    else:
        frame = ParquetFrame(read_parquet(path))
        check(frame.columns)
    if len(frame) == 0:
        raise DataError(f"{path} must hold rows below the names of its columns. It has none.")
    return frame


def first_row(path: Path) -> dict[str, Any]:
    """The first row of a .csv or .parquet by column. A ValueError is all that damage leads to."""
    if path.suffix.lower() == ".csv":
        with csv_rows(path) as (header, rows):
            return dict(zip(header, next(rows, []), strict=False))
    pyarrow = require_pyarrow(f"reading {path.name}")
    try:
        with pyarrow.parquet.ParquetFile(regular_file(path)) as file:
            batch = next(file.iter_batches(1), None)
    except pyarrow.ArrowException as error:
        raise ValueError(str(error)) from error
    rows = batch.to_pylist() if batch is not None else []
    return rows[0] if rows else {}


@contextmanager
def csv_rows(path: Path) -> Iterator[tuple[list[str], Any]]:
    """The header of a CSV file and a reader of the rows below it."""
    regular_file(path)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            header = file.readline()
            separator = next((mark for mark in SEPARATORS if mark in header), ",")
            file.seek(0)
            rows = csv.reader(file, delimiter=separator, strict=True)
            yield next(rows, []), rows
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(
            f"{path} must be a CSV file in UTF-8 with a header line. Could not read it: {error}."
        ) from error


def whole_rows(rows: Any, width: int) -> Iterator[list[str]]:
    """Rows that are not blank; one that is too short or too long is refused."""
    for row in rows:
        if len(row) not in (0, width):
            raise DataError(f"line {rows.line_num} must have {width} cells like the header. Got {len(row)} instead.")
        if row:
            yield row


def _read_csv(path: Path, check: Callable[[list[str]], object]) -> CsvFrame:
    """As Arrow text takes a fifth of the memory of Python's; no more than a chunk is ever in that."""
    pyarrow = require_pyarrow("reading a table")
    text = pyarrow.string()
    with csv_rows(path) as (header, rows):
        check(header)
        whole, parts = whole_rows(rows, len(header)), []
        while part := list(islice(whole, CHUNK_ROWS)):
            columns = [pyarrow.array(cells, text) for cells in zip(*part, strict=True)]
            parts.append(pyarrow.record_batch(columns, header))
        schema = pyarrow.schema([(name, text) for name in header])
        return CsvFrame(pyarrow.Table.from_batches(parts, schema), rows.dialect.delimiter)


def is_saved_dataset(folder: Path) -> bool:
    return (folder / STATE).is_file() or (folder / SPLITS).is_file()


def saved_state(folder: Path) -> Path | None:
    """The file that tells one version of a saved dataset from another; None for a folder that holds none."""
    return _split(folder)[0] / STATE if is_saved_dataset(folder) else None


def open_saved(folder: Path) -> tuple[Path, Any, dict[str, Any], list[str]]:
    """The folder of the split (of several that named train), its table, the features of its columns, and notes."""
    pyarrow = require_pyarrow(f"reading {folder.name}")
    try:
        root, notes = _split(folder)
        files = [_file_of(root, part["filename"]) for part in read_json(root / STATE)["_data_files"]]
        features = read_json(root / INFO).get("features") or {}
        tables = [pyarrow.ipc.open_stream(pyarrow.memory_map(str(file))).read_all() for file in files]
        table = pyarrow.concat_tables(tables)
        if not isinstance(features, dict):
            raise ValueError(f"features of {INFO} are no record")
    except DataError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pyarrow.ArrowException) as error:
        raise DataError(f"{folder} must be a dataset saved with save_to_disk. It is damaged: {error}.") from error
    return root, table, features, notes


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


def _file_of(root: Path, name: str) -> Path:
    """A file of the dataset; its description must not lead elsewhere."""
    if Path(name).name != name:
        raise ValueError(f"{name!r} is not a file in it")
    return regular_file(root / name)


def numbers_or_none(cells: Sequence[str]) -> NDArray[np.float64] | None:
    """Texts as numbers, blanks as NaN, true and false as 1 and 0; None where one is something else."""
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:  # blanks or words somewhere: slower
        pass
    try:
        return np.array([WORDS.get(cell.strip().lower(), cell) for cell in cells], dtype=np.float64)
    except ValueError:
        return None


def as_float32(array: NDArray[Any]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # too large a number becomes infinity, and its row is named later
        return array.astype(np.float32)


def text_of(array: NDArray[Any]) -> NDArray[Any]:
    """Bytes, which numpy keeps for short text, as text."""
    return np.char.decode(array, "utf-8", "replace") if array.dtype.kind == "S" else array


def cell_text(value: Any) -> str:
    """A value as a person writes it: nothing for none, whole numbers without a point."""
    if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
        return ""
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    text = str(value.item() if isinstance(value, np.generic) and not isinstance(value, np.floating) else value)
    return text.removesuffix(".0") if isinstance(value, float | np.floating) else text

"""Files of probabilities, .npy, .npz, .csv and .parquet, as `evidence/pred_probs.py` takes them.

Knows file formats; does not judge what is in them. In a table columns name the classes; a column of ids puts its rows
into the order of the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import DataError
from labelmend.files.parquet import read_parquet
from labelmend.files.reading import open_npz, read_npy
from labelmend.inputs.pred_probs import NamedColumns
from labelmend.inputs.tables import INDEX_COLUMNS, csv_rows, whole_rows

ENDINGS = (".npy", ".npz", ".csv", ".parquet")


def read_prob_files(
    paths: Sequence[Path],
    id_column: str | None = None,
    ids: NDArray[Any] | None = None,
    not_classes: Sequence[str] = (),
) -> dict[str, Any]:
    """name -> array or table; an .npz holds one model's or several. `not_classes`: columns to leave out."""
    found: dict[str, Any] = {}
    for path in paths:
        for name, values in _read(path, id_column, ids, not_classes).items():
            if name in found:
                raise DataError(f"--pred-probs must name different models. {name!r} came twice; rename a file.")
            found[name] = values
    return found


def _read(path: Path, id_column: str | None, ids: NDArray[Any] | None, not_classes: Sequence[str]) -> dict[str, Any]:
    kind = path.suffix.lower()
    if kind not in ENDINGS:
        raise DataError(f"a file of probabilities must end in {', '.join(ENDINGS)}. Got {path.name!r} instead.")
    if not path.is_file():
        raise DataError(f"no such file of probabilities: {path}")
    if kind in (".npy", ".npz"):
        return _arrays(path)
    header, cells = _csv(path) if kind == ".csv" else _parquet(path)
    taken = {*INDEX_COLUMNS, *not_classes, id_column}
    names = [name for name in header if name not in taken]
    values = np.empty((len(cells[0]) if cells else 0, len(names)))
    for place, name in enumerate(names):
        values[:, place] = _numbers(cells[header.index(name)], name, path)
    if id_column in header and ids is not None:
        values = values[_order(cells[header.index(id_column)], ids, path)]
    return {path.stem: NamedColumns(names, values)}


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    if path.suffix.lower() == ".npy":
        return {path.stem: read_npy(path)}
    with open_npz(path) as archive:
        found = {name: archive[name] for name in archive.files}
    tables = {name: array for name, array in found.items() if array.ndim == 2}
    if not tables:
        raise DataError(f"{path} must hold a two-dimensional array of probabilities. It holds {', '.join(found)}.")
    return {path.stem: next(iter(tables.values()))} if len(tables) == 1 else tables


def _csv(path: Path) -> tuple[list[str], list[Sequence[Any]]]:
    with csv_rows(path) as (header, rows):
        return header, list(zip(*whole_rows(rows, len(header)), strict=True))


def _parquet(path: Path) -> tuple[list[str], list[Sequence[Any]]]:
    table = read_parquet(path)
    return table.column_names, [column.to_pylist() for column in table.columns]


def _numbers(cells: Sequence[Any], name: str, path: Path) -> NDArray[np.float64]:
    try:
        return np.array([np.nan if cell in (None, "") else cell for cell in cells], dtype=np.float64)
    except (ValueError, TypeError):
        raise DataError(
            f"every column of {path} must be a class and hold probabilities. {name!r} holds something else; name the "
            "column of ids with --id, or leave it out."
        ) from None


def _order(found: Sequence[Any], ids: NDArray[Any], path: Path) -> NDArray[np.int64]:
    """Rows of the file in the order of the data."""
    place = {str(name): row for row, name in enumerate(found)}
    if absent := [name for name in ids.tolist() if str(name) not in place]:
        raise DataError(f"{path} must have a row for every id. {len(absent):,} have none, such as {absent[0]!r}.")
    if len(place) < len(found):
        raise DataError(f"ids in {path} must be unique. Got {len(found) - len(place):,} repeated ones.")
    return np.array([place[str(name)] for name in ids.tolist()], dtype=np.int64)

"""patch: the changed labels alone, as JSON that can be read, sent, and taken back with `labelmend undo`.

    format, format_version, fingerprint   what it is, and of which data
    data, labels, id, missing             name of the file or folder, its label and id column, what stood for no label
    samples, changes                      how many samples there were, and for each changed one
                                          {"id", "old", "new", "confidence"}; old is null where there was no label

`undo` takes the changes back in a table or in class folders that hold the new labels: all of them or none. Where a
label is not the one the patch put there, nothing is written, and the samples are named. The input is only read; only
the label column changes, or the folder a picture lies in.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from labelmend.errors import ConfigError, DataError
from labelmend.export import folders, tables
from labelmend.export.folders import ClassFolders, place
from labelmend.export.handover import Handover
from labelmend.export.source_table import features_of, typed_array
from labelmend.files.reading import checked_fields, read_json, read_parquet, regular_file, require_pyarrow
from labelmend.inputs.frames import csv_rows, whole_rows
from labelmend.inputs.pictures.find import PICTURE_COLUMNS
from labelmend.inputs.pictures.folders import spelled
from labelmend.inputs.pictures.pixels import Unreadable
from labelmend.storage.run_files import as_text, write_json
from labelmend.storage.target import MARKER, whole

FORMAT, FORMAT_VERSION = "labelmend patch", 1
NAMED = 10  # samples or columns named in a message


@dataclass(frozen=True)
class Change:
    id: str
    old: str | float | bool | None  # None: there was no label
    new: str | float | bool | None
    confidence: float | None


@dataclass(frozen=True)
class Patch:
    fingerprint: str
    data: str | None
    labels: str | None
    id: str | None
    missing: str | None
    samples: int
    changes: list[Change]


def write_patch(handover: Handover, path: Path) -> None:
    result, source = handover.result, handover.result.source
    labels, given = handover.labels, handover.given
    changes = [
        Change(handover.ids[index], given[index], labels[index], handover.score(index))
        for index in np.flatnonzero(handover.changed).tolist()
    ]
    patch = Patch(
        result.fingerprint,
        os.path.basename(source.path) if source and source.path else None,
        source.labels if source else None,
        source.id if source else None,
        source.missing if source else None,
        len(result),
        changes,
    )
    write_json(path, {"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(patch)})


def read_patch(path: Path) -> Patch:
    regular_file(path)
    try:
        found = read_json(path)
        about = found.pop("format"), found.pop("format_version")
        changes = [Change(**change) for change in found.pop("changes")]
        patch = checked_fields(Patch(**found, changes=changes))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path} must be a patch that `labelmend export --to patch` wrote. It is not, or it is damaged: {error}."
        ) from error
    if about != (FORMAT, FORMAT_VERSION):
        raise DataError(f"the patch must be of format {FORMAT_VERSION}. {path} is {about[0]!r} of format {about[1]}.")
    return patch


@dataclass(frozen=True)
class Columns:
    """Which columns of the table to look at; None: those the patch speaks of, or the export wrote."""

    labels: str | None = None
    id: str | None = None


def undo(
    patch_path: Path, given: Path, out: Path, force: bool = False, columns: Columns | None = None, link: bool = False
) -> list[str]:
    """Write `given` with the old labels to `out`; gives the ids of the samples."""
    patch, columns = read_patch(patch_path), columns or Columns()
    if given.is_dir():
        if columns != Columns():
            raise ConfigError("--labels and --id name columns of a table. Class folders have none.")
        _undo_folders(patch, given, out, force, link)
    elif given.suffix.lower() in (".csv", ".parquet") and given.is_file():
        if link:
            raise ConfigError("--link can be used with class folders only. A table has nothing to link.")
        write = _undo_csv if given.suffix.lower() == ".csv" else _undo_parquet
        write(patch, columns, given, out, force)
    else:
        raise DataError(
            f"undo needs a .csv, a .parquet, or class folders that an export made. {given} is not one, or not there."
        )
    return [change.id for change in patch.changes]


def _undo_csv(patch: Patch, columns: Columns, given: Path, out: Path, force: bool) -> None:
    with csv_rows(given) as (header, lines):
        rows, separator = list(whole_rows(lines, len(header))), lines.dialect.delimiter
    place = header.index(_label_column(patch, columns, header))
    row_of = _rows_by_id(patch, columns, header, len(rows), lambda name: [row[header.index(name)] for row in rows])
    _check(patch, row_of, lambda row: rows[row][place])
    for change in patch.changes:
        rows[row_of[change.id]][place] = _old_text(patch, change)
    with whole(out, force, keep=[given]) as partial:
        tables.write_rows(partial, header, rows, separator)


def _undo_parquet(patch: Patch, columns: Columns, given: Path, out: Path, force: bool) -> None:
    pyarrow, table = require_pyarrow("reading .parquet"), read_parquet(given)
    name = _label_column(patch, columns, table.column_names)
    column = table.column(name)
    labels = column.to_pylist()
    row_of = _rows_by_id(
        patch,
        columns,
        table.column_names,
        len(table),
        lambda other: [as_text(v) for v in table.column(other).to_pylist()],
    )
    by_code = any(isinstance(change.new, int) for change in patch.changes)
    names = {} if by_code else _class_names(table, name)
    _check(patch, row_of, lambda row: names.get(labels[row], labels[row]))
    codes: dict[Any, Any] = {value: code for code, value in names.items()}
    for change in patch.changes:
        labels[row_of[change.id]] = codes.get(change.old, change.old)
    place = table.column_names.index(name)
    with whole(out, force, keep=[given]) as partial:
        pyarrow.parquet.write_table(table.set_column(place, name, typed_array(labels, column.type)), partial)


def _undo_folders(patch: Patch, given: Path, out: Path, force: bool, link: bool) -> None:
    index = given / folders.INDEX
    if not (given / MARKER).is_file() or not index.is_file():
        raise DataError(f"class folders must be those that `labelmend export --to folders` made. {given} are others.")
    with index.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    row_of = {row["id"]: place for place, row in enumerate(rows)}
    _check(patch, row_of, lambda row: rows[row]["label"])
    for change in patch.changes:
        rows[row_of[change.id]] |= {"label": "" if change.old is None else as_text(change.old), "confidence": ""}
    with whole(out, force, {"to": "folders"}, keep=[given]) as partial:
        below = ClassFolders(partial, sorted({row["label"] for row in rows} - {""}))
        for row in rows:
            source = _inside(given, row["file"])
            row["file"] = below.take(row["label"] or None, source.name)
            try:
                place(source, partial / row["file"], link)
            except Unreadable as error:
                raise DataError(f"all pictures of the export must be there. {source}: {error}.") from error
        tables.write_rows(partial / folders.INDEX, folders.COLUMNS, ([row[c] for c in folders.COLUMNS] for row in rows))


def _inside(folder: Path, file: str) -> Path:
    """A file of an export; an index that somebody changed must not lead elsewhere."""
    path = Path(os.path.normpath(folder / file))
    if not path.is_relative_to(os.path.normpath(folder)):
        raise DataError(f"{folder / folders.INDEX} must name files of its folder. Got {file!r}.")
    return path


def _check(patch: Patch, row_of: dict[str, int], label_of: Any) -> None:
    """Refuse, by name, samples that are not there or have another label than the patch gave them."""
    absent = [change.id for change in patch.changes if change.id not in row_of]
    if absent:
        raise DataError(
            f"the data must hold every sample of the patch. {len(absent):,} are not there: {_listed(absent)}. "
            "If another column names the samples, say so with --id."
        )
    labels = [(change, label_of(row_of[change.id])) for change in patch.changes]
    other = [(change, found) for change, found in labels if found is None or as_text(found) != as_text(change.new)]
    if other:
        listed = [f"{change.id} is {as_text(found)!r}, not {as_text(change.new)!r}" for change, found in other]
        raise DataError(
            f"the labels must be those the patch put there. {len(other):,} of {len(patch.changes):,} are not, and "
            f"nothing was written: {_listed(listed, '; ')}."
        )


def _old_text(patch: Patch, change: Change) -> str:
    return (patch.missing or "") if change.old is None else as_text(change.old)


def _label_column(patch: Patch, columns: Columns, header: Sequence[str]) -> str:
    wanted = [columns.labels] if columns.labels else [patch.labels, "label"]
    found = next((name for name in wanted if name in header), None)
    if found is None:
        asked = " or ".join(repr(name) for name in wanted if name)
        raise DataError(f"no such column: {asked}. The table has {_listed(header)}; name it with --labels.")
    return found


def _rows_by_id(patch: Patch, columns: Columns, header: Sequence[str], n_rows: int, values: Any) -> dict[str, int]:
    """Of every id the row: by the column that names the samples, or by number where the run had no such column."""
    name = columns.id or _id_column(patch, header)
    if name is None:
        return {str(row): row for row in range(n_rows)}
    if name not in header:
        raise DataError(f"no such column: {name!r}. The table has {_listed(header)}.")
    ids = values(name)
    row_of = {value: row for row, value in enumerate(ids)}
    if len(row_of) < len(ids):
        raise DataError(f"the column {name!r} must name every row once. {len(ids) - len(row_of):,} names repeat.")
    return row_of if name in (patch.id, columns.id) else {spelled(value): row for value, row in row_of.items()} | row_of


def _id_column(patch: Patch, header: Sequence[str]) -> str | None:
    if set(tables.COLUMNS) <= set(header):
        return "id"  # of an export
    if patch.id in header:
        return patch.id
    if all(change.id.isdigit() for change in patch.changes):
        return None
    return next((name for name in ("id", *PICTURE_COLUMNS) if name in header), None)


def _class_names(table: Any, column: str) -> dict[Any, str]:
    """What the numbers of a ClassLabel stand for."""
    feature = (features_of(table) or {}).get(column, {})
    return dict(enumerate(feature.get("names", []))) if feature.get("_type") == "ClassLabel" else {}


def _listed(names: Sequence[str], between: str = ", ") -> str:
    return between.join(names[:NAMED]) + (f"{between}and {len(names) - NAMED:,} more" if len(names) > NAMED else "")

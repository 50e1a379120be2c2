"""Results as lines of JSON in one file: appended one by one, read again after whatever ended a run.

A line is one write, under a lock where the system has one; a last line that a kill cut off is ignored when reading and
cut away before the next is written. Anything else that is not a result is an error.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from bench.paper.experiment import Cell, Measured, Result
from labelmend.errors import DataError

try:
    import fcntl
except ImportError:  # not on Windows: two runs must not share a file there
    fcntl = None  # type: ignore[assignment]

VERSION = 1
TEXTS, COUNTS, GROUPS = ("experiment", "row", "column", "data", "date"), ("seed", "epochs"), ("settings", "figures")
RECORDS = ("curves", "more", "machine", "versions")


def append_result(path: Path, result: Result) -> None:
    line = json.dumps(as_plain(result), ensure_ascii=False, allow_nan=False) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file, _alone(file):
        _mend_the_end(file)
        file.write(line.encode("utf-8"))
        file.flush()
        os.fsync(file.fileno())


def read_results(path: Path) -> list[Result]:
    """All results in the file, none if there is no file."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DataError(f"{path} must be a file of results. Could not read it: {error}.") from error
    whole, last = lines[:-1], lines[-1]
    results = [_read(line, path, number) for number, line in enumerate(whole, 1) if line.strip()]
    if last.strip() and _is_whole(last):
        results.append(_read(last, path, len(lines)))
    return results


def as_plain(result: Result) -> dict[str, Any]:
    """Ready for JSON."""
    parts = {"version": VERSION, "experiment": result.experiment, **dataclasses.asdict(result.cell)}
    return {
        **parts,
        **dataclasses.asdict(result.measured),
        "machine": dict(result.machine),
        "versions": dict(result.versions),
        "date": result.date,
        "quick": result.quick,
    }


def from_plain(value: dict[str, Any]) -> Result:
    cell = Cell(*(value[name] for name in ("row", "column", "data", "seed", "epochs", "settings")))
    measured = Measured(value["figures"], value["curves"], value["more"])
    return Result(
        value["experiment"], cell, measured, value["machine"], value["versions"], value["date"], value["quick"]
    )


def _read(line: bytes, path: Path, number: int) -> Result:
    where = f"line {number} of {path} must be a result that `python -m bench paper` wrote"
    try:
        value = json.loads(line)
    except ValueError as error:
        raise DataError(f"{where}. It is not JSON: {error}. Remove the line; its cell will run again.") from error
    if not isinstance(value, dict) or value.get("version") != VERSION:
        raise DataError(f"{where}, version {VERSION}. Got {str(value)[:60]!r} instead; remove the line.")
    kinds = [(TEXTS, str), (COUNTS, int), (GROUPS + RECORDS, dict), (("quick",), bool)]
    wrong = [name for names, kind in kinds for name in names if not isinstance(value.get(name), kind)]
    if wrong:
        raise DataError(f"{where}. {', '.join(wrong)} is missing or of another type; remove the line.")
    return from_plain(value)


def _mend_the_end(file: BinaryIO) -> None:
    """Cut a torn last line away, or end a whole one."""
    file.seek(0)
    last = b""
    for line in file:
        last = line
    if not last or last.endswith(b"\n"):
        return
    if _is_whole(last):
        file.write(b"\n")
    else:
        file.truncate(file.tell() - len(last))


def _is_whole(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


@contextmanager
def _alone(file: BinaryIO) -> Iterator[None]:
    """No other process appends meanwhile; the lock ends when the file is closed."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX)
    yield

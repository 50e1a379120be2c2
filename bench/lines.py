"""A file of JSON lines: appended one by one, read again after whatever ended a run.

A line is one write, under a lock where the system has one; a last line that a kill cut off is ignored when reading and
cut away before the next is written. Anything else that is not JSON is an error.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, BinaryIO

from labelmend.errors import DataError

try:
    import fcntl
except ImportError:  # not on Windows: two runs must not share a file there
    fcntl = None  # type: ignore[assignment]


def append_line(path: Path, value: Any) -> None:
    line = json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed
        _end_the_last_line(file)
        file.write(line.encode("utf-8"))
        file.flush()
        os.fsync(file.fileno())


def read_lines(path: Path, what: str) -> list[tuple[int, Any]]:
    """Line numbers and values, none if there is no file; `what` is what a line must be."""
    try:
        *whole, last = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DataError(f"{path} must be a file of results. Could not read it: {error}.") from error
    found = []
    for number, line in enumerate([*whole, last if _is_whole(last) else b""], 1):
        try:
            if line.strip():
                found.append((number, json.loads(line)))
        except ValueError as error:
            must = f"line {number} of {path} must be {what}"
            raise DataError(f"{must}. It is not JSON: {error}. Remove the line; its cell will run again.") from error
    return found


def _end_the_last_line(file: BinaryIO) -> None:
    """Cut a torn one away, or end a whole one."""
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

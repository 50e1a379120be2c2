"""What pictures hold, as hashes: the same content is recognised wherever it lies, a changed file is noticed.

Knows bytes; does not decode them. A file is hashed once: an index remembers the hash by path, length and times.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from pathlib import Path
from typing import Any

import numpy as np

from labelmend.data.json_file import read_json
from labelmend.data.picture_pixels import Unreadable, open_source, reasons
from labelmend.data.picture_set import Source

INDEX = "contents.json"
SETTLED_NS = 2_000_000_000  # a file changed less than this ago may change again without a new time


class Contents:
    """Hashes of sources, remembered in `folder`. A damaged or missing index costs time, nothing else."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / INDEX
        self.known: dict[str, list[Any]] = _read(self.path)
        self.changed = False

    def hash(self, source: Source) -> str:
        """SHA-256 of the bytes; for what cannot be read, the reason, so that a repaired file counts as changed."""
        try:
            with reasons(source):
                if isinstance(source, np.ndarray):
                    return hashlib.sha256(str(source.shape).encode() + source.tobytes()).hexdigest()
                return self._file(source) if isinstance(source, Path) else _digest(source)
        except Unreadable as error:
            return f"unreadable: {error}"

    def _file(self, path: Path) -> str:
        status = os.stat(path)
        stamp = [status.st_size, status.st_mtime_ns, status.st_ctime_ns]
        name = os.path.abspath(path)
        entry = self.known.get(name, [])
        if entry[:-1] == stamp:
            return str(entry[-1])
        digest = _digest(path)
        if time.time_ns() - max(stamp[1:]) > SETTLED_NS:
            self.known[name] = [*stamp, digest]
            self.changed = True
        return digest

    def save(self) -> None:
        """Whole or not at all; of two writers the last one stays, and the other's files are hashed again."""
        if not self.changed:
            return
        partial = self.path.with_name(f".{INDEX}.{secrets.token_hex(4)}.partial")
        try:
            partial.write_text(json.dumps(self.known), encoding="ascii")
            partial.replace(self.path)
        finally:
            partial.unlink(missing_ok=True)


def _digest(source: Path | bytes | None) -> str:
    with open_source(source) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(path: Path) -> dict[str, list[Any]]:
    try:
        known = read_json(path)
    except (OSError, ValueError):
        return {}
    return {name: entry for name, entry in known.items() if isinstance(entry, list)} if isinstance(known, dict) else {}

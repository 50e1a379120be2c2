"""Pictures made small when they are first wanted, and kept in RUN/.thumbnails; which pictures may be read at all.

A picture is read only where the data set is: a link that leads out of it is not followed. What is kept is bounded, and
may be deleted at any time. Only pictures that are files are kept: pixels of an array are quicker made small again. A
picture that changed is made small again, since its time is part of the name.

Knows pictures and files; does not know who wants them.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from labelmend.result import Correction
from labelmend.storage.originals import Originals, thumbnail

FOLDER = ".thumbnails"
SIDES = {"small": 160, "large": 1024}
DISK_BYTES = 512 * 2**20
AT_ONCE = 3  # pictures decoded at the same time: one of 50 megapixels takes 150 MB


class Thumbnails:
    def __init__(self, originals: Originals, folder: Path, roots: Sequence[Path], follow_links: bool = False) -> None:
        self.originals, self.folder, self.roots, self.follow_links = originals, folder, roots, follow_links
        self.disk_bytes = DISK_BYTES
        self._on_disk: int | None = None  # not counted yet
        self._lock = threading.Lock()
        self._decoding = threading.BoundedSemaphore(AT_ONCE)

    def get(self, sample: int, size: str) -> bytes | None:
        """The picture, or None if there is none that may be shown."""
        path = self.originals.path(sample)
        if path is None:
            return self._make(sample, size)
        if not (self.follow_links or belongs(path, self.roots)):
            return None
        try:
            state = path.stat()
        except OSError:
            return None
        name = f"{sample}-{size}-{state.st_mtime_ns:x}-{state.st_size:x}"
        with suppress(OSError):
            kept = (self.folder / name).read_bytes()
            if kept:
                return kept
        made = self._make(sample, size)
        if made is not None:
            with suppress(OSError):  # a folder that cannot be written to costs time, nothing else
                self._keep(name, made)
        return made

    def _make(self, sample: int, size: str) -> bytes | None:
        with self._decoding:
            picture = self.originals.picture(sample, SIDES[size])
            return None if picture is None else thumbnail(picture, SIDES[size])

    def _keep(self, name: str, made: bytes) -> None:
        """Whole or not at all."""
        self.folder.mkdir(exist_ok=True)
        partial = self.folder / f".{secrets.token_hex(4)}.partial"
        try:
            partial.write_bytes(made)
            partial.replace(self.folder / name)
        finally:
            partial.unlink(missing_ok=True)
        with self._lock:
            if self._on_disk is None:
                self._on_disk = sum(size for _, size, _ in self._files())
            else:
                self._on_disk += len(made)
            if self._on_disk > self.disk_bytes:
                self._on_disk = self._clear()

    def _clear(self) -> int:
        """Remove the oldest until half of the room is free; how many bytes stay."""
        files = sorted(self._files())
        left = sum(size for _, size, _ in files)
        for _, size, path in files:
            if left <= self.disk_bytes // 2:
                break
            with suppress(OSError):
                os.unlink(path)
            left -= size
        return left

    def _files(self) -> list[tuple[float, int, str]]:
        with os.scandir(self.folder) as entries:
            return [(e.stat().st_mtime, e.stat().st_size, e.path) for e in entries if e.is_file(follow_symlinks=False)]


def belongs(path: Path, roots: Sequence[Path]) -> bool:
    """Whether a file the data set names is in it: below one of the `roots`, or reached without any link."""
    try:
        real = os.path.realpath(path, strict=True)
    except OSError:
        return False
    inside = any(Path(real).is_relative_to(os.path.realpath(root)) for root in roots)
    return inside or real == os.path.abspath(path)


def roots_of(run: Path, result: Correction, data: Path | None) -> list[Path]:
    """Folders that hold the data set: the one named now, the one named then, or the one beside the run."""
    source = result.source
    if source is None or source.path is None:
        return []
    then = Path(source.path)
    places = [data] if data is not None else [then, run.resolve().parent / then.name]
    return [place if place.is_dir() else place.parent for place in places if place.exists()]

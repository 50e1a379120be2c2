"""Pictures made small when they are first asked for, and kept: some in memory, more in RUN/.thumbnails.

What is kept is bounded, and may be deleted at any time. Only pictures that are files are kept on disk: pixels of an
array are quicker made small again. A picture that changed is made small again, since its time is part of the name.

Knows pictures and files; does not know who asks.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from labelmend.review.guard import belongs
from labelmend.storage.originals import Originals, thumbnail

FOLDER = ".thumbnails"
SIDES = {"small": 160, "large": 1024}
MEMORY_BYTES = 64 * 2**20
DISK_BYTES = 512 * 2**20
AT_ONCE = 3  # pictures decoded at the same time: one of 50 megapixels takes 150 MB


class Thumbnails:
    def __init__(self, originals: Originals, folder: Path, roots: Sequence[Path], follow_links: bool = False) -> None:
        self.originals, self.folder, self.roots, self.follow_links = originals, folder, roots, follow_links
        self.disk_bytes, self.memory_bytes = DISK_BYTES, MEMORY_BYTES
        self._memory: OrderedDict[str, bytes] = OrderedDict()
        self._held = 0
        self._on_disk: int | None = None  # not counted yet
        self._lock = threading.Lock()
        self._decoding = threading.BoundedSemaphore(AT_ONCE)

    def get(self, sample: int, size: str) -> bytes | None:
        """The picture, or None if there is none that may be shown."""
        path = self.originals.path(sample)
        if path is not None and not (self.follow_links or belongs(path, self.roots)):
            return None
        name = _name(sample, size, path)
        if name is None:
            return None
        return self._from_memory(name) or self._remember(name, self._from_disk_or_made(name, sample, size, path))

    def _from_disk_or_made(self, name: str, sample: int, size: str, path: Path | None) -> bytes | None:
        if path is None:
            return self._make(sample, size)
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

    def _from_memory(self, name: str) -> bytes | None:
        with self._lock:
            if name in self._memory:
                self._memory.move_to_end(name)
            return self._memory.get(name)

    def _remember(self, name: str, made: bytes | None) -> bytes | None:
        if made is not None:
            with self._lock:
                self._held += len(made) - len(self._memory.pop(name, b""))
                self._memory[name] = made
                while self._held > self.memory_bytes and len(self._memory) > 1:
                    self._held -= len(self._memory.popitem(last=False)[1])
        return made

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
            self._on_disk = self._count() if self._on_disk is None else self._on_disk + len(made)
            if self._on_disk > self.disk_bytes:
                self._on_disk = self._clear()

    def _count(self) -> int:
        return sum(size for _, size, _ in self._files())

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


def _name(sample: int, size: str, path: Path | None) -> str | None:
    if path is None:
        return f"{sample}-{size}"
    try:
        state = path.stat()
    except OSError:
        return None
    return f"{sample}-{size}-{state.st_mtime_ns:x}-{state.st_size:x}"

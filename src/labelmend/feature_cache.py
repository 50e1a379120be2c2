"""Features on disk, in blocks while they are computed and in one .npy when they are complete.

    NAME-KEY.npy                    all rows; there only when complete
    NAME-KEY.blocks/START-STOP.npy  rows START to STOP, whole or absent; the folder goes when the rows are complete

Every file is written under another name, flushed to disk and renamed. What a killed run leaves under such a name is
never read. Knows arrays and files; does not know nets.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import CacheError

BLOCK_ROWS = 1024  # at 50 pictures a second, a killed run loses 20 seconds at most
Span = tuple[int, int]


@dataclass(frozen=True)
class FeatureCache:
    folder: Path
    key: str
    n_rows: int

    @property
    def path(self) -> Path:
        return self.folder / f"{self.key}.npy"

    @property
    def blocks(self) -> Path:
        return self.folder / f"{self.key}.blocks"

    def spans(self) -> list[Span]:
        return [(start, min(start + BLOCK_ROWS, self.n_rows)) for start in range(0, self.n_rows, BLOCK_ROWS)]

    def missing(self) -> list[Span]:
        """Blocks that are still to be computed."""
        return [span for span in self.spans() if _read(self._block(span), span[1] - span[0]) is None]

    def load(self) -> NDArray[np.float32] | None:
        """All rows, left on disk until they are read, or None. Changes to the array stay in memory."""
        whole = _read(self.path, self.n_rows)
        if whole is not None:
            shutil.rmtree(self.blocks, ignore_errors=True)
        return whole

    def write(self, span: Span, rows: NDArray[np.float32]) -> None:
        self._put(self._block(span), len(rows), [rows])

    def finish(self) -> NDArray[np.float32]:
        """One file out of all blocks, a block in memory at a time."""
        self._put(self.path, self.n_rows, (np.load(self._block(span), allow_pickle=False) for span in self.spans()))
        whole = self.load()
        assert whole is not None
        return whole

    def _block(self, span: Span) -> Path:
        return self.blocks / f"{span[0]:09d}-{span[1]:09d}.npy"

    def _put(self, target: Path, n_rows: int, parts: Iterable[NDArray[np.float32]]) -> None:
        """Write `parts` one below the other; the file takes its name when everything is in it."""
        partial = self.blocks / f".{target.name}.{secrets.token_hex(4)}.partial"
        try:
            self.blocks.mkdir(parents=True, exist_ok=True)
            with partial.open("xb") as file:
                _write(file, n_rows, parts)
            partial.replace(target)
        except OSError as error:
            if isinstance(error, FileNotFoundError) and self.path.is_file():
                return  # another run over the same pictures was faster, and cleared the blocks away
            raise CacheError(
                f"the folder for cached features must be writable and have room. Writing to {self.folder} gave: "
                f"{error.strerror or error}. Features computed so far are kept; make room or name another folder, and "
                "run again."
            ) from error
        finally:
            with suppress(OSError):
                partial.unlink()


def _write(file: BinaryIO, n_rows: int, parts: Iterable[NDArray[np.float32]]) -> None:
    """An .npy of unknown width. Not through `np.save`, whose error on a full disk does not say so."""
    for position, rows in enumerate(parts):
        if position == 0:
            header = {"descr": rows.dtype.str, "fortran_order": False, "shape": (n_rows, rows.shape[1])}
            np.lib.format.write_array_header_1_0(file, header)
        file.write(np.ascontiguousarray(rows).data)
    file.flush()
    os.fsync(file.fileno())


def _read(path: Path, n_rows: int) -> NDArray[np.float32] | None:
    """The array in `path`, or None where there is none, or a damaged one."""
    try:
        rows: NDArray[np.float32] = np.load(path, mmap_mode="c", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return rows if rows.dtype == np.float32 and rows.ndim == 2 and len(rows) == n_rows else None

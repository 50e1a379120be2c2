"""A folder that is written takes its place: on the disk first, then under its name, in one step where that can be done.

Knows files and folders; does not know what is in them.
"""

from __future__ import annotations

import ctypes
import glob
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

ABANDONED_SECONDS = 24 * 3600.0
AT_FDCWD, RENAME_EXCHANGE = -100, 2  # of Linux's renameat2


def flush(folder: Path) -> None:
    """Make sure of the disk: a rename must not get there before the contents."""
    for written in folder.iterdir():
        with written.open("r+b") as file:
            os.fsync(file.fileno())
    flush_names(folder)


def flush_names(folder: Path) -> None:
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def clear_leftovers(folder: Path, pattern: str) -> None:
    """Take away what killed processes left under a passing name. It is an old one only that nobody writes any more."""
    for left in folder.glob(pattern):
        with suppress(OSError):
            if time.time() - left.lstat().st_mtime > ABANDONED_SECONDS:
                shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()


def leftovers_of(name: str) -> str:
    """What matches the passing names of a file or folder."""
    return f".{glob.escape(name)}.*.partial"


def put_in_place(partial: Path, target: Path) -> None:
    """Rename; an old run changes places with the new one and is left under the name of the partial one."""
    if not target.exists():
        partial.rename(target)
    elif not _exchange(partial, target):
        aside = partial.with_suffix(".replaced")
        target.rename(aside)
        try:
            partial.rename(target)
        except BaseException:
            aside.rename(target)
            raise
        aside.rename(partial)
    flush_names(target.parent)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step, so that a kill finds either run in place. Linux only; False if it cannot."""
    renameat2 = getattr(ctypes.CDLL(None), "renameat2", None) if os.name == "posix" else None
    if renameat2 is None:
        return False
    names = os.fsencode(one), os.fsencode(other)
    return bool(renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE) == 0)

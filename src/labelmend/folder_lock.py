"""One process at a time in a folder.

The lock belongs to the process and ends with it, however it ends: nothing is left to clear away after a kill. Where
the system has no such locks (Windows, some network drives) a folder is not guarded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from labelmend.errors import CheckpointError

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

LOCK = "lock"  # holds the number of the process


@contextmanager
def locked(folder: Path, name: str | None = None) -> Iterator[None]:
    """Make the folder if it is not there, and keep other processes out of it. `name`: what the user calls it."""
    descriptor = _open(folder, name or str(folder))
    try:
        name_owner(descriptor)
        yield
    finally:
        os.close(descriptor)


def refuse_locked(folder: Path, name: str) -> None:
    """An error where another process is in the folder; nothing is made."""
    if (folder / LOCK).exists():
        os.close(_open(folder, name))


class Busy(Exception):
    """Another process has the lock; the text is its number, as far as it is known."""


def try_lock(path: Path, exclusive: bool = True) -> int | None:
    """A descriptor that locks the file at `path`, which is made; None where it was taken away in between."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _lock(descriptor, exclusive)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def name_owner(descriptor: int) -> None:
    """Write the number of this process into a locked file."""
    os.truncate(descriptor, 0)
    os.write(descriptor, str(os.getpid()).encode())


def _open(folder: Path, name: str) -> int:
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            descriptor = try_lock(folder / LOCK)
        except Busy as owner:
            raise CheckpointError(
                f"one run at a time can use {name}. Process {owner} does so now; wait for it, end it, or choose "
                "another name."
            ) from owner
        except OSError as error:
            raise CheckpointError(
                f"checkpoints need a folder one can write to. {folder} gave: {error.strerror or error}."
            ) from error
        if descriptor is not None:  # else its owner has ended and taken the folder away
            return descriptor


def _lock(descriptor: int, exclusive: bool) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise Busy(os.pread(descriptor, 20, 0).decode(errors="replace") or "unknown") from error
    except OSError:  # a drive without locks
        return

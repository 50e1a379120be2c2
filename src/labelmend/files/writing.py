"""Files and folders written whole or not at all, by one process at a time."""

from __future__ import annotations

import ctypes
import glob
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path

from labelmend.errors import CheckpointError

ABANDONED_SECONDS = 24 * 3600.0
AT_FDCWD, RENAME_EXCHANGE = -100, 2  # of Linux's renameat2


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A passing name beside `path` to write to. Once that is on the disk, it takes the place of what is there."""
    partial = _passing_name(path)
    try:
        yield partial
        flush_file(partial)
        partial.replace(path)
        flush_names(path.parent)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: Path, guard: AbstractContextManager[None] | None = None) -> Iterator[Path]:
    """The same for a folder, which its writer flushes; `guard` is entered while the two folders change places."""
    partial = _passing_name(path)
    try:
        partial.mkdir()
        yield partial
        with guard or nullcontext():
            put_in_place(partial, path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)  # what failed, or the old folder that changed places with the new


def _passing_name(path: Path) -> Path:
    """For this write alone; those that killed processes left are taken away."""
    clear_leftovers(path.parent, f".{glob.escape(path.name)}.*.partial")
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")


def clear_leftovers(folder: Path, pattern: str) -> None:
    """Take away what killed processes left under a passing name. It is an old one only that nobody writes any more."""
    for left in folder.glob(pattern):
        with suppress(OSError):
            if time.time() - left.lstat().st_mtime > ABANDONED_SECONDS:
                shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()


def flush(folder: Path) -> None:
    """Make sure of the disk: a rename must not get there before the contents."""
    for written in folder.iterdir():
        flush_file(written)
    flush_names(folder)


def flush_file(path: Path) -> None:
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def flush_names(folder: Path) -> None:
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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

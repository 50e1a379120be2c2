"""A review holds its run: while one is open, nobody takes the run's place.

    RUN/review.lock   number of the process that reviews; several may, and the last one takes the file away

Knows folders and locks; does not know what is in them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from labelmend.errors import RunFolderError
from labelmend.files.writing import Busy, name_owner, try_lock

FILE = "review.lock"


class Hold:
    """Beside others of its kind, and kept out while a run is being replaced."""

    def __init__(self, run: Path) -> None:
        self.path = run / FILE
        self._descriptor: int | None = None
        try:
            while self._descriptor is None:
                self._descriptor = try_lock(self.path, exclusive=False)
        except Busy as owner:
            raise RunFolderError(
                f"a run is reviewed once it is whole. Process {owner} is replacing {run}; wait for it."
            ) from owner
        except OSError as error:
            raise RunFolderError(
                f"decisions must be kept in {run}. It cannot be written to: {error.strerror or error}."
            ) from error
        name_owner(self._descriptor)

    def release(self) -> None:
        if self._descriptor is None:
            return
        os.close(self._descriptor)
        self._descriptor = None
        with suppress(Busy, OSError):  # Busy: somebody else still reviews the run
            if self.path.exists() and (alone := try_lock(self.path)) is not None:
                _close(alone, self.path)


def refuse_held(run: Path) -> None:
    """An error where a review of the run is open."""
    with replacing(run, make=False):
        pass


@contextmanager
def replacing(run: Path, make: bool = True) -> Iterator[None]:
    """Keep reviews out of a run that is about to go. `make` the file that does it, if there is none."""
    descriptor = None
    try:
        if run.is_dir() and (make or (run / FILE).exists()):
            with suppress(OSError):  # one cannot write to it: no review can, either
                descriptor = try_lock(run / FILE)
        yield
    except Busy as owner:
        raise RunFolderError(
            f"--force replaces a run only while nobody reviews it. Process {owner} has a review of {run} open; end it "
            "with Ctrl-C there, or choose another name."
        ) from owner
    finally:
        if descriptor is not None:
            _close(descriptor, run / FILE)


def _close(descriptor: int, path: Path) -> None:
    """Take the file away that nobody else has locked, if it is still at its place."""
    with suppress(OSError):
        if os.path.samestat(os.fstat(descriptor), os.stat(path)):
            path.unlink()
    os.close(descriptor)

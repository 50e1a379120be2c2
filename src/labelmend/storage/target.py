"""Where a run, an export or a report is written, and what may be replaced.

Each goes to a temporary name beside the target, which takes its name once it is whole.

What is there already is left alone; with `force` a plain file is replaced, or a folder that an export made and nobody
has added to. The data of the run and the run folder are never written to, but for the report of a run in its own place.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from labelmend.errors import DataError, LabelmendError, RunFolderError
from labelmend.files.reading import read_json, regular_file
from labelmend.files.writing import flush_file, whole_file, whole_folder

CONFIG, RUN_FORMAT = "config.json", "labelmend run"  # a run folder is known by them
MARKER = "labelmend-export.json"  # in every folder that an export makes: what it is, and how many files it has
FORMAT = "labelmend export"
OWN_ENDINGS = (".json", ".csv", ".arrow", ".xml", ".md")  # of what an export writes itself, beside pictures


def refuse_existing(path: Path, force: bool) -> None:
    """Refuse a target that exists, or with `force` one that is not a run of ours; and one that cannot be created."""
    if path.exists() or path.is_symlink():
        if not force:
            raise RunFolderError(f"the output folder must not exist. {path} does; choose another name or use --force.")
        if not _is_replaceable(path):
            raise RunFolderError(f"--force replaces run folders only. {path} is not one; choose another name.")
        from labelmend.storage.reviewed import refuse_held  # it knows results: much to import for a name that is free

        refuse_held(path)
        if holds_decisions(path):
            raise RunFolderError(
                f"--force does not delete what a person decided. {path} holds a review; choose another name, or remove "
                "its review.sqlite."
            )
    above = next(folder for folder in path.resolve().parents if folder.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise RunFolderError(f"the output folder must be in a folder one can write to. {above} is not one.")


def holds_decisions(folder: Path) -> bool:
    """Whether a person has decided anything about this run; a file that cannot be read may well hold some."""
    path = folder / "review.sqlite"
    if not path.exists():
        return False
    try:
        regular_file(path)
        with closing(sqlite3.connect(path)) as base:
            return bool(base.execute("SELECT 1 FROM log LIMIT 1").fetchone())
    except (sqlite3.Error, DataError):
        return True


def is_run(folder: Path) -> bool:
    return run_config(folder) is not None


def _is_replaceable(path: Path) -> bool:
    return path.is_dir() and (run_config(path) is not None or not any(path.iterdir()))


def run_config(folder: Path) -> dict[str, Any] | None:
    """config.json of a run folder of ours, of any version; None for anything else."""
    try:
        config = read_json(folder / CONFIG)
    except (OSError, ValueError):  # also a DataError
        return None
    return config if isinstance(config, dict) and config.get("format") == RUN_FORMAT else None


@contextmanager
def whole(
    target: Path,
    force: bool,
    marker: dict[str, Any] | None = None,
    keep: Sequence[Path] = (),
    in_run: bool = False,
) -> Iterator[Path]:
    """A path to write to. `marker`: for a folder, what to say in it; `keep`: what the target must stay out of."""
    runs = [] if in_run else [folder for folder in target.absolute().parents if is_run(folder)]
    refuse(target, force, marker is not None, [*keep, *runs])
    final = target.absolute()
    made = [folder for folder in final.parents if not folder.exists()]
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(final) if marker is None else whole_folder(final) as partial:
            yield partial
            if marker is not None:
                _mark(partial, marker)
    except OSError as error:
        if isinstance(error, LabelmendError):
            raise
        raise RunFolderError(f"{target} must be writable. Got: {error.strerror or error}.") from error
    finally:
        for folder in made:
            with suppress(OSError):  # it holds the export
                folder.rmdir()


def refuse(target: Path, force: bool, folder: bool = False, keep: Sequence[Path] = ()) -> None:
    """All that can be told before any work."""
    for place in keep:
        if _within(target, place):
            raise RunFolderError(
                f"the target must not be a run or the data, or in them. {target} is ({place}); choose another name."
            )
    if not os.path.lexists(target):
        return
    if not force:
        raise RunFolderError(f"the target must not exist. {target} does; choose another name or use --force.")
    if not folder:
        if target.is_symlink() or not target.is_file():
            raise RunFolderError(f"--force replaces plain files only. {target} is not one; choose another name.")
    elif not _is_ours(target):
        raise RunFolderError(
            f"--force replaces folders that an export made, as it made them. {target} is not one, or has more or fewer "
            "files than were written; choose another name."
        )


def _within(target: Path, place: Path) -> bool:
    if not place.is_dir():  # a file, or gone: there may be 100,000 of them
        both = target.exists() and place.exists()
        return os.path.abspath(target) == os.path.abspath(place) or (both and os.path.samefile(target, place))
    return Path(os.path.realpath(target)).is_relative_to(os.path.realpath(place))


def _is_ours(target: Path) -> bool:
    if target.is_symlink() or not target.is_dir():
        return False
    if not any(target.iterdir()):
        return True
    try:
        marker = read_json(target / MARKER)
        return bool(marker["format"] == FORMAT and marker["files"] == _count(target) - 1)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _mark(folder: Path, marker: dict[str, Any]) -> None:
    about = {"format": FORMAT, **marker, "files": _count(folder)}
    (folder / MARKER).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    for written in folder.iterdir():
        if written.suffix in OWN_ENDINGS and not written.is_symlink():
            flush_file(written)


def _count(folder: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(folder))

"""An unfinished run of `labelmend correct`: what it was asked to do, and its checkpoints.

    .RUN.labelmend-running/  beside RUN; it goes when RUN is there, and when a run ends that has no checkpoint
        job.json             the command: folder in which it was started, options, parameters
        checkpoints/         see checkpoint.py
        lock                 the process that makes RUN

Knows folders and what is in job.json; does not know the method.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from labelmend.errors import CheckpointError, RunFolderError
from labelmend.files.reading import checked_fields, read_json
from labelmend.files.writing import locked, refuse_locked, whole_file
from labelmend.storage.target import CONFIG

FORMAT, FORMAT_VERSION = "labelmend job", 1
JOB, CHECKPOINTS = "job.json", "checkpoints"


@dataclass(frozen=True)
class Job:
    """A command that can be given again."""

    folder: str  # in which it was started: names of files are relative to it
    options: dict[str, Any]
    parameters: dict[str, Any]


def working_folder(out: Path) -> Path:
    target = out.resolve()
    return target.parent / f".{target.name}.labelmend-running"


def refuse_unfinished(out: Path, force: bool) -> None:
    """An error where `out` is being made, or was begun and can go on; with `force` only where it is being made."""
    working = working_folder(out)
    refuse_locked(working, str(out))
    if not force and (working / JOB).exists() and _has_checkpoint(working):
        raise RunFolderError(
            f"the output folder must not be that of an unfinished run. {out} is one; resume it with "
            f"`{resume_command(out)}`, or start again with --force."
        )


def resume_command(out: Path) -> str:
    return f"labelmend correct --resume {shlex.quote(str(out))}"


def read_job(out: Path) -> Job:
    path = working_folder(out) / JOB
    if not path.exists():
        rest = "is finished" if (out / CONFIG).exists() else "was never started"
        raise RunFolderError(f"--resume needs an interrupted run. {out} {rest}.")
    try:
        found = read_json(path)
        if (found.pop("format"), found.pop("format_version")) != (FORMAT, FORMAT_VERSION):
            raise ValueError("it is of another version of labelmend")
        return checked_fields(Job(**found))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise CheckpointError(
            f"the file {path} must be whole. Reading it gave: {error}. Start again: the same command with --force."
        ) from error


@contextmanager
def running(out: Path, job: Job, anew: bool) -> Iterator[Path]:
    """Make `out` while other processes keep away; gives the folder for checkpoints. `anew` forgets those there are.

    Once the block has ended well, nothing is left but what it made. Otherwise what is needed to go on stays.
    """
    working = working_folder(out)
    checkpoints = working / CHECKPOINTS
    with locked(working, str(out)):
        if anew:
            shutil.rmtree(checkpoints, ignore_errors=True)
        about = {"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(job)}
        with whole_file(working / JOB) as partial:
            partial.write_text(json.dumps(about, indent=2), encoding="utf-8")
        try:
            yield checkpoints
        except BaseException as error:
            if anew and not _has_checkpoint(working):
                _remove(working)
            elif not isinstance(error, CheckpointError):
                error.add_note(f"resume with: {resume_command(out)}")
            raise
        _remove(working)


def _has_checkpoint(working: Path) -> bool:
    from labelmend.storage.checkpoint import kept  # it knows tensors, which a new run needs only once its data are read

    return bool(kept(working / CHECKPOINTS))


def _remove(working: Path) -> None:
    (working / JOB).unlink(missing_ok=True)  # first: what is left without it is no job
    shutil.rmtree(working, ignore_errors=True)

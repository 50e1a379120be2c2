"""`labelmend report`: a run in, one HTML file out, whole or not at all."""

from __future__ import annotations

import dataclasses
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from labelmend.errors import RunFolderError
from labelmend.originals import open_originals
from labelmend.report.contents import make_contents
from labelmend.report.page import page
from labelmend.result import Correction
from labelmend.run_folder import load_labels

if TYPE_CHECKING:
    from labelmend.trust.selftest import SelfTest

REPORT = "report.html"


def report_command(run: Path, out: Path | None, data: Path | None, force: bool) -> Path:
    """The report of a run folder goes into it, in the place of an earlier one, or to `out`."""
    target = run / REPORT if out is None else out
    if out is not None:
        refuse_file(target, force)
    if data is not None and not data.exists():
        raise RunFolderError(f"--data must be where the pictures or the table are now. There is no {data}.")
    return write_report(load_labels(run), target, run, data, force=out is None or force)


def write_report(
    result: Correction,
    target: Path,
    run: Path | None = None,
    data: Path | None = None,
    force: bool = False,
    selftest: SelfTest | None = None,
) -> Path:
    """`run`: the folder of the result, if it has one: data that moved together with it are found."""
    refuse_file(target, force)
    originals = open_originals(run or target.parent, result, data)
    written = page(make_contents(result, originals, selftest)).encode("utf-8")
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        with partial.open("wb") as file:
            file.write(written)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    except OSError as error:
        raise RunFolderError(f"{target} must be writable. Got: {error.strerror or error}.") from error
    finally:
        partial.unlink(missing_ok=True)
    return target


def with_report(result: Correction, folder: Path) -> Correction:
    """Write the report of a run that was just saved. It is never worth the run: where it fails, a warning says so."""
    try:
        write_report(result, folder / REPORT, folder, force=True)
    except Exception as error:
        note = f"no report was written ({type(error).__name__}: {error}); try `labelmend report {folder}`"
        return dataclasses.replace(result, warnings=[*result.warnings, note])
    return result


def refuse_file(target: Path, force: bool) -> None:
    if target.is_dir() or ((target.exists() or target.is_symlink()) and not force):
        raise RunFolderError(f"the file to write must not exist. {target} does; choose another name or use --force.")
    if not target.resolve().parent.is_dir():
        raise RunFolderError(f"there must be a folder {target.resolve().parent} to write to. There is none.")

"""`labelmend report`: a run in, one HTML file out, whole or not at all."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from labelmend.errors import RunFolderError
from labelmend.report.contents import make_contents
from labelmend.report.page import page
from labelmend.report.wording import printable
from labelmend.result import Correction
from labelmend.storage.originals import open_originals
from labelmend.storage.run_folder import is_run, load_labels
from labelmend.storage.source import places
from labelmend.storage.target import whole

if TYPE_CHECKING:
    from labelmend.self_test.run import SelfTest


REPORT = "report.html"


def report_command(run: Path, out: Path | None, data: Path | None, force: bool) -> list[str]:
    """The report of a run folder goes into it, in the place of an earlier one, or to `out`. Gives what to print."""
    if data is not None and not data.exists():
        raise RunFolderError(f"--data must be where the pictures or the table are now. There is no {data}.")
    result, target = load_labels(run), run / REPORT if out is None else out
    missing = write_report(result, target, run, data, force=out is None or force)
    return [str(target), *([f"note: {printable(missing)}"] if missing else [])]


def write_report(
    result: Correction,
    target: Path,
    run: Path | None = None,
    data: Path | None = None,
    force: bool = False,
    selftest: SelfTest | None = None,
) -> str:
    """`run`: the folder of the result, if it has one: data that moved together with it are found.

    Gives the reason why samples are not shown, or some of them; "": all are.
    """
    in_its_place = target.name == REPORT and is_run(target.parent)
    keep = [] if in_its_place else [*([] if run is None else [run]), *places(result.source, data)]
    with whole(target, force, keep=keep, in_run=in_its_place) as partial:
        originals = open_originals(run or target.parent, result, data)
        partial.write_text(page(make_contents(result, originals, selftest)), encoding="utf-8")
    return originals.reason


def with_report(result: Correction, folder: Path) -> Correction:
    """Write the report of a run that was just saved. It is never worth the run: where it fails, a warning says so."""
    try:
        write_report(result, folder / REPORT, folder, force=True)
    except Exception as error:
        note = (
            f"no report was written ({type(error).__name__}: {error}); try: labelmend report {shlex.quote(str(folder))}"
        )
        return dataclasses.replace(result, warnings=[*result.warnings, note])
    return result

"""`labelmend report`: a run in, one HTML file out, whole or not at all.

What makes the page is imported when one is written: a run reads its data first.
"""

from __future__ import annotations

import dataclasses
import functools
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from labelmend.errors import RunFolderError
from labelmend.report import html, wording
from labelmend.result import Correction
from labelmend.storage.originals import open_originals
from labelmend.storage.run_folder import load_labels
from labelmend.storage.source import places
from labelmend.storage.target import is_run, whole

if TYPE_CHECKING:
    from jinja2 import Environment

    from labelmend.report.contents import Contents
    from labelmend.self_test.run import SelfTest


REPORT = "report.html"


def report_command(run: Path, out: Path | None, data: Path | None, force: bool) -> list[str]:
    """The report of a run folder goes into it, in the place of an earlier one, or to `out`. Gives what to print."""
    if data is not None and not data.exists():
        raise RunFolderError(f"--data must be where the pictures or the table are now. There is no {data}.")
    result, target = load_labels(run), run / REPORT if out is None else out
    missing = write_report(result, target, run, data, force=out is None or force)
    return [str(target), *([f"note: {wording.printable(missing)}"] if missing else [])]


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
    from labelmend.report.contents import make_contents

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


def page(contents: Contents) -> str:
    """Sections, style and scripts in one file that asks nothing of anybody."""
    from labelmend.report.contents import shown_rounds

    style, scripts = html.asset("base.css") + html.asset("report.css"), [html.asset("theme.js"), html.asset("map.js")]
    return (
        _templates()
        .get_template("report.html")
        .render(
            contents=contents,
            policy=html.content_policy([style], scripts),
            style=Markup(style),
            scripts=[Markup(script) for script in scripts],
            rounds=shown_rounds(contents.rounds),
            version=dict(contents.making.versions).get("labelmend", ""),
            data=contents.map and html.embed_json(contents.map.facts(contents.classes)),
        )
    )


@functools.cache
def _templates() -> Environment:
    """Templates escape every value that is not `Markup`; a name they do not know is an error."""
    import jinja2

    from labelmend.diagnosis.profile import rate_text
    from labelmend.report import drawings

    made = jinja2.Environment(
        loader=jinja2.PackageLoader("labelmend.report"),
        autoescape=True,
        finalize=html.shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"drawings": drawings, "data_uri": html.data_uri}
    made.filters |= {
        "class_name": wording.class_name,
        "shortened": wording.shortened,
        "printable": wording.printable,
        "seconds": wording.seconds_text,
        "rate": rate_text,
        "interval": lambda share: wording.percent(dataclasses.asdict(share)),
        "thousands": lambda number: f"{number:,.0f}",
        "fixed": lambda number, digits: f"{number:.{digits}f}",
        "share": _share,
    }
    return made


def _share(share: float | None, digits: int = 0) -> str:
    return "-" if share is None else f"{share:.{digits}%}"

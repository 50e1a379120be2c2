"""Results as lines of JSON in one file; see `bench/lines.py` for what a kill may do to them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from bench.lines import append_line, read_lines
from bench.paper.experiment import Cell, Measured, Result
from labelmend.errors import DataError

VERSION = 1
TEXTS, COUNTS, GROUPS = ("experiment", "row", "column", "data", "date"), ("seed", "epochs"), ("settings", "figures")
RECORDS = ("curves", "more", "machine", "versions")
KINDS = ((TEXTS, str), (COUNTS, int), (GROUPS + RECORDS, dict), (("quick",), bool))
WHAT = "a result that `python -m bench paper` wrote"


def append_result(path: Path, result: Result) -> None:
    append_line(path, as_plain(result))


def read_results(path: Path) -> list[Result]:
    """All results in the file, none if there is no file."""
    return [_result(value, f"line {number} of {path} must be {WHAT}") for number, value in read_lines(path, WHAT)]


def as_plain(result: Result) -> dict[str, Any]:
    """Ready for JSON."""
    parts = {"version": VERSION, "experiment": result.experiment, **dataclasses.asdict(result.cell)}
    return {
        **parts,
        **dataclasses.asdict(result.measured),
        "machine": dict(result.machine),
        "versions": dict(result.versions),
        "date": result.date,
        "quick": result.quick,
    }


def _result(value: Any, must: str) -> Result:
    if not isinstance(value, dict) or value.get("version") != VERSION:
        raise DataError(f"{must}, version {VERSION}. Got {str(value)[:60]!r} instead; remove the line.")
    wrong = [name for names, kind in KINDS for name in names if not isinstance(value.get(name), kind)]
    if wrong:
        raise DataError(f"{must}. {', '.join(wrong)} is missing or of another type; remove the line.")
    cell = Cell(*(value[name] for name in ("row", "column", "data", "seed", "epochs", "settings")))
    measured = Measured(value["figures"], value["curves"], value["more"])
    where = (value[name] for name in ("machine", "versions", "date", "quick"))
    return Result(value["experiment"], cell, measured, *where)

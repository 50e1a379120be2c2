"""`python -m bench zoo`: many data sets and kinds of errors; labelmend, its parts and its rivals in each cell."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.record import Say, Trial, say_to_stderr, whole_record, write_json
from bench.table import circumstances
from bench.zoo import cells as zoo_cells
from bench.zoo.cells import CLEAN, Cell, ZooSet
from bench.zoo.layout import Table
from bench.zoo.limits import is_whole, let_in, limits_table, verdicts
from bench.zoo.measure import OURS, Line
from bench.zoo.rivals import TITLES as RIVALS
from bench.zoo.rivals import stored_figures
from bench.zoo.run import Lines, check_classifiers, read_lines, run_cells
from bench.zoo.tables import BETTER, by_kind, by_source, classifiers, duels, extremes, own_words, seconds, with_better
from labelmend.errors import ConfigError

NAME = "zoo"
ABOUT = "labels right on many data sets and kinds of errors, beside cleanlab, Datalab and votes of neighbours"
OK, FAILED = 0, 1
APART = 95.0  # percent of clean labels that the pool predicts, own label unseen: then classes are apart
FIGURES = {  # of a line -> of the record
    "right": "label_accuracy",
    "balanced": "balanced_accuracy",
    "kept": "worst_class_kept",
    "broken": "wrongly_changed",
    "auroc": "ranking",
    "precision": "average_precision",
}


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(f"python -m bench {NAME}", description=ABOUT)
    options.add_argument(
        "folder", nargs="?", type=Path, metavar="DIR", help="of NAME.npz: X, true, given_KIND (default: own sets)"
    )
    options.add_argument("--only", type=names, metavar="NAME,...", help="these data sets")
    options.add_argument("--kinds", type=names, metavar="KIND,...", help="these kinds of errors")
    options.add_argument("--seeds", type=int, default=1, metavar="N", help="of the run, and of the errors planted here")
    modes = options.add_mutually_exclusive_group()
    modes.add_argument("--weak", action="store_true", help="clean labels and features made weak on purpose")
    modes.add_argument(
        "--assume",
        choices=("auto", "apart"),
        default="auto",
        help=f"apart: the sets whose clean labels the pool predicts to {APART:g} %%",
    )
    options.add_argument("--classifier", action="store_true", help="check the classifier handed back, too")
    options.add_argument("--jobs", type=int, metavar="N", help="cells at a time, one thread each (default: all cores)")
    options.add_argument("--out", type=Path, default=Path(f"benchmark-{NAME}.jsonl"), metavar="FILE.jsonl")
    options.add_argument("--summary", type=Path, metavar="FILE.json", help="default: beside --out")
    options.add_argument("--table", action="store_true", help="run nothing, show what --out has")
    return options


def names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def main(rest: list[str]) -> int:
    arguments = parser().parse_args(rest)
    for name, value in (("--jobs", arguments.jobs), ("--seeds", arguments.seeds)):
        if value is not None and value < 1:
            raise ConfigError(f"{name} must be at least 1. Got {value} instead.")
    if not str(arguments.out).endswith(".jsonl"):
        raise ConfigError(f"--out must be a .jsonl file, a line a cell. Got {arguments.out} instead.")
    cells, failed = (wanted if arguments.table else measured)(arguments, say_to_stderr)
    found = read_lines(arguments.out)
    lines = [found[cell.key] for cell in cells if cell.key in found]
    show(arguments, lines, tables(arguments, lines, found), len(cells), failed)
    return FAILED if failed else OK


def measured(arguments: argparse.Namespace, say: Say) -> tuple[list[Cell], list[str]]:
    """Run what has no line yet. The cells asked for, and a word about each that failed."""
    stored, jobs = stored_figures(arguments.folder), arguments.jobs or cores()
    failed = []
    if arguments.assume == "apart":  # first: are they?
        clean = [cell for one in sets_of(arguments) for cell in one.cells([CLEAN]) if CLEAN in one.kinds]
        failed += run_cells(clean, stored, arguments.out, jobs, say)
    cells, _ = wanted(arguments, say)
    failed += run_cells(cells, {} if arguments.weak else stored, arguments.out, jobs, say)
    if arguments.classifier:
        failed += check_classifiers(cells, arguments.out, jobs, say)
    return cells, failed


def wanted(arguments: argparse.Namespace, say: Say) -> tuple[list[Cell], list[str]]:
    sets, seeds = sets_of(arguments), range(arguments.seeds)
    if arguments.weak:
        return zoo_cells.weak_cells(sets, arguments.kinds, seeds), []
    if arguments.assume == "apart":
        sets = apart_ones(sets, read_lines(arguments.out))
        say(f"{len(sets)} sets are apart: {', '.join(one.name for one in sets)}")
    return zoo_cells.choose_cells(sets, arguments.kinds, seeds, arguments.assume), []


def sets_of(arguments: argparse.Namespace) -> list[ZooSet]:
    return zoo_cells.choose_sets(zoo_cells.find_sets(arguments.folder), arguments.only)


def apart_ones(sets: Sequence[ZooSet], found: Lines) -> list[ZooSet]:
    """Those whose clean labels the pool predicts."""
    shares = {one.name: found.get((one.name, CLEAN, "auto", 0), {}).get("guessed") for one in sets}
    if all(share is None for share in shares.values()):
        raise ConfigError(
            "--assume apart must know how well the pool predicts clean labels. Got no clean cell with its "
            "probabilities instead."
        )
    return [one for one in sets if (shares[one.name] or 0) >= APART]


def tables(arguments: argparse.Namespace, lines: Sequence[Line], found: Lines) -> list[Table]:
    if not lines:
        return []
    parts = ["given", OURS, "pool", "ensemble"]
    if arguments.assume == "apart":
        parts += ["best_guess", "auto"]
        lines = [with_auto(line, found) for line in lines]
    lines, everyone = with_better(lines), [*parts, *RIVALS]
    made: list[Table | None] = [
        by_kind(lines, "right", "Labels right, %", [*parts, BETTER, *RIVALS]),
        by_source(lines, everyone),
        by_kind(lines, "balanced", "Balanced accuracy, %", everyone),
        by_kind(lines, "kept", "Good labels kept in the class that keeps fewest, %", everyone),
        by_kind(lines, "broken", "Good labels broken, %", everyone),
        duels(lines, [*RIVALS, *(part for part in parts if part != OURS)]),
        extremes(lines, [part for part in everyone if part not in ("given", OURS)]),
        by_kind(lines, "auroc", "Wrong labels ranked first, area under the ROC curve, %", everyone),
        by_kind(lines, "precision", "Wrong labels ranked first, average precision, %", everyone),
        own_words(lines),
        seconds(lines),
        classifiers(lines),
        verdicts(lines),
        let_in(lines),
        limits_table(lines) if arguments.assume == "auto" and not arguments.weak else None,
    ]
    return [table for table in made if table is not None and table.rows]


def with_auto(line: Line, found: Lines) -> Line:
    """With the figures of the same cell under assume="auto", where it has run."""
    auto = found.get((line["name"], line["kind"], "auto", line["seed"]))
    return line if auto is None else {**line, "methods": {**line["methods"], "auto": auto["methods"][OURS]}}


def show(
    arguments: argparse.Namespace,
    lines: Sequence[Line],
    made: Sequence[Table],
    asked: int,
    failed: Sequence[str],
) -> None:
    """Print the tables and write the record."""
    notes = [*counts(lines, asked), *failed]
    facts: dict[str, Any] = {
        "notes": notes,
        "repeated": "cells",
        "tables": [table.plain() for table in made],
    }
    rows = [one for line in lines for one in trials(line)]
    record = whole_record(NAME, ABOUT, command(arguments), False, facts, rows)
    mode = "-weak" if arguments.weak else "-apart" if arguments.assume == "apart" else ""
    path = arguments.summary or arguments.out.with_name(f"{arguments.out.stem}{mode}.json")
    write_json(path, record)
    print("\n".join([f"{NAME}: {ABOUT}", *circumstances(record)[1:], *notes]))
    for table in made:
        print("\n".join(["", *table.lines()]))
    print(f"written to {path}")


def command(arguments: argparse.Namespace) -> str:
    """How to run it again; where files are is left out."""
    words = [f"python -m bench {NAME}", *(["DIR"] if arguments.folder else [])]
    for name in ("only", "kinds"):
        if getattr(arguments, name):
            words += [f"--{name}", ",".join(getattr(arguments, name))]
    words += ["--weak"] if arguments.weak else ["--assume apart"] if arguments.assume == "apart" else []
    words += [f"--seeds {arguments.seeds}"] if arguments.seeds != 1 else []
    return " ".join([*words, *(["--classifier"] if arguments.classifier else [])])


def counts(lines: Sequence[Line], asked: int) -> list[str]:
    versions = sorted({line["labelmend"] for line in lines})
    families, sets = {line["family"] for line in lines}, {line["name"] for line in lines}
    n = f"n = {len(lines)} cells of {len(sets)} data sets in {len(families)} families"
    notes = [f"{n}; every cell weighs alike, ± is the standard error over families. One thread a cell."]
    if len(lines) < asked:
        notes.append(f"NOT FINISHED: {len(lines)} of {asked} cells.")
    if lines and not any(map(is_whole, lines)):
        notes.append(
            "No table of the rule's limits: runs hand out too little for it (result.verdict, result.evidence)."
        )
    if len(versions) > 1:
        notes.append(f"MIXED: measured with labelmend {', '.join(versions)}.")
    return notes


def trials(line: Line) -> list[Trial]:
    """One a method, for the record: shares of one."""
    rows = []
    for method, figures in line["methods"].items():
        if method in (OURS, "given", "pool", "ensemble", "best_guess", *RIVALS):
            shares: dict[str, float | None] = {FIGURES[name]: value / 100 for name, value in figures.items()}
            rows.append(Trial(line["kind"], method, shares))
    return rows


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

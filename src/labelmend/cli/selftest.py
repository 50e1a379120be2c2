"""`labelmend selftest`: reads the data as `correct` does, plants errors, and prints the figures.

Knows the options of the command line; does not know what is planted.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from labelmend.cli.options import Shelf, add_parameters, chosen_parameters
from labelmend.cli.reading import (
    Parameters,
    PictureInput,
    TableInput,
    add_data_options,
    add_picture_options,
    is_pictures,
    read_data,
)
from labelmend.cli.terminal import ProgressLine
from labelmend.config import as_arguments, make_config
from labelmend.errors import ConfigError
from labelmend.report.wording import percent, printable, seconds_in_words
from labelmend.storage.target import refuse, whole

if TYPE_CHECKING:
    from labelmend.result import Correction
    from labelmend.runs.solve import Solution
    from labelmend.self_test.run import Order, SelfTest

SUFFIXES = (".json", ".html")
USAGE = "labelmend selftest DATA [--labels COLUMN] [option ...]"
DESCRIPTION = """\
Plant known errors in your own data, and count how many are found.

A first run finds the samples that look clean. Some of them get a wrong label:
  random     any other class
  confusing  the samples nearest to another class get that class
  patch      whole neighbourhoods get the class nearest to them
  mixed      a third of each
Then labelmend, a k-NN vote and confident learning (cleanlab, if installed) run
on the same labels. The figures are how many planted errors each of them found
and corrected, and how many good labels it broke. The data are only read.

This takes 1 + kinds x repetitions runs. `labelmend correct --audit` plants one
small share of errors within a single run instead.
"""


def add_selftest(verb: argparse.ArgumentParser, everything: bool) -> None:
    verb.usage, verb.description = USAGE, DESCRIPTION
    test = Shelf(verb, "the test", everything)
    test.add("--kinds", nargs="+", metavar="KIND", help="kinds of errors (default the first three)")
    test.add("--share", type=float, default=0.05, metavar="X", help="share of labels that get an error (default 0.05)")
    test.add("--repeats", type=int, default=3, metavar="N", help="repetitions of each kind (default 3)")
    test.add("--out", type=Path, metavar="FILE", help="file to write: .json, or .html with the report of the first run")
    test.add("--force", action="store_true", help="replace FILE if it exists")
    test.add("--json", action="store_true", help="print the figures as JSON")
    test.add("--quiet", action="store_true", help="print no progress, only the figures")
    add_data_options(Shelf(verb, "data", everything))
    add_picture_options(Shelf(verb, "pictures, which are embedded", everything))
    add_parameters(verb, everything)
    verb.set_defaults(run=run_selftest)


def run_selftest(arguments: argparse.Namespace) -> None:
    if arguments.data is None:
        arguments.verb.error("the following arguments are required: DATA")
    from labelmend.self_test.run import STANDARD_KINDS, check_order

    parameters = chosen_parameters(arguments)
    order = check_order(arguments.kinds or STANDARD_KINDS, arguments.share, arguments.repeats)
    if arguments.out is not None:
        if arguments.out.suffix not in SUFFIXES:
            raise ConfigError(f"--out must end in {' or '.join(SUFFIXES)}. Got {arguments.out} instead.")
        refuse(arguments.out, arguments.force)
    if is_pictures(arguments):
        if arguments.mode == "train":
            raise ConfigError("selftest embeds pictures. Got --mode train instead; leave it out.")
        arguments.mode = "embed"
    line = ProgressLine(quiet=arguments.quiet)
    try:
        given = read_data(arguments, parameters)
        if isinstance(given, PictureInput):
            test = _test_pictures(given, parameters, order, line)
        else:
            test = _test_table(given, parameters, order, line)
    finally:
        line.finish()
    if arguments.out is not None:
        _write(test, arguments.out, arguments.force)
    print(json.dumps(test.summary()) if arguments.json else "\n".join(selftest_lines(test, arguments.out)))


def selftest_lines(test: SelfTest, out: Path | None = None) -> list[str]:
    """The figures as a person reads them."""
    interval = "Wilson" if test.repeats == 1 else f"t over {test.repeats} repetitions"
    named = [(f"{score.kind:<10} {score.method}", score) for score in test.scores]
    width = max(22, *(len(name) for name, _ in named))
    lines = [
        f"{test.rows:,} rows, {test.looks_clean:,} look clean, errors planted in {test.share:.1%} of the labels; "
        f"{seconds_in_words(test.seconds)}",
        f"90% intervals: {interval}",
        "",
        f"{'':<{width}}  {'found':<23}  {'corrected':<23}  good labels broken",
    ]
    for name, score in named:
        found, mended, broken = (percent(dataclasses.asdict(p)) for p in (score.found, score.mended, score.broken))
        lines.append(f"{name:<{width}}  {found:<23}  {mended:<23}  {broken}")
    lines += ["", *(f"note: {printable(text)}" for text in test.notes)] if test.notes else []
    return [*lines, *(["", f"written to {out}"] if out is not None else [])]


def _test_table(given: TableInput, parameters: Parameters, order: Order, line: ProgressLine) -> SelfTest:
    from labelmend.self_test.run import selftest

    table = given.table
    test = selftest(
        table.features,
        table.labels,
        **dataclasses.asdict(order),
        trusted=table.trusted,
        ids=table.ids,
        missing=given.missing,
        progress=line.stage,
        **as_arguments(parameters),
    )
    result = dataclasses.replace(test.result, source=given.source, repeat="")
    return dataclasses.replace(test, result=result, notes=(*table.notes, *test.notes))


def _test_pictures(given: PictureInput, parameters: Parameters, order: Order, line: ProgressLine) -> SelfTest:
    from labelmend.runs.pictures import picture_task
    from labelmend.runs.solve import assemble
    from labelmend.self_test.run import run_selftest as run

    pictures, make = given.pictures, partial(make_config, **parameters)
    named = {name: value for name, value in given.named.items() if name != "mode"}
    ready = picture_task(
        pictures, "embed", lambda data: make(data=data), None, given.missing, progress=line.stage, **named
    )
    rows = ready.readable.rows

    def to_result(solution: Solution, seconds: float) -> Correction:
        made = assemble(
            solution, ready.task, ready.given, pictures.ids, pictures.notes, seconds, rows, ready.unreadable
        )
        return dataclasses.replace(made, source=given.source)

    test = run(ready.task, to_result, order, line.stage)
    return dataclasses.replace(test, notes=(*pictures.notes, *test.notes))


def _write(test: SelfTest, out: Path, force: bool) -> None:
    if out.suffix == ".json":
        with whole(out, force) as partial:
            partial.write_text(json.dumps(test.summary(), indent=2) + "\n", encoding="utf-8")
    else:
        test.report(out, force=force)

"""`labelmend selftest`: reads the data as `correct` does, plants, and shows the figures.

Knows the options of the command line; does not know what is planted.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from functools import partial
from pathlib import Path
from typing import Any

from labelmend.cli.correct import is_pictures, read_pictures, read_table
from labelmend.cli.terminal import ProgressLine
from labelmend.config import as_arguments, make_config
from labelmend.errors import ConfigError
from labelmend.report.wording import percent, printable, seconds_in_words
from labelmend.result import Correction
from labelmend.runs.pictures import picture_task
from labelmend.runs.solve import Solution, assemble
from labelmend.self_test.run import STANDARD_KINDS, Order, SelfTest, check_order, run_selftest, selftest
from labelmend.storage.target import refuse, whole

Parameters = dict[str, Any]
SUFFIXES = (".json", ".html")


def selftest_command(arguments: argparse.Namespace, parameters: Parameters) -> None:
    order = check_order(arguments.kinds or STANDARD_KINDS, arguments.share, arguments.repeats)
    arguments.dry_run = False
    if arguments.out is not None:
        if arguments.out.suffix not in SUFFIXES:
            raise ConfigError(f"--out must end in {' or '.join(SUFFIXES)}. Got {arguments.out} instead.")
        refuse(arguments.out, arguments.force)
    line = ProgressLine(quiet=arguments.quiet)
    try:
        prepare = _test_pictures if is_pictures(arguments) else _test_table
        test = prepare(arguments, parameters, order, line)
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
        f"90 % intervals: {interval}",
        "",
        f"{'':<{width}}  {'found':<23}  {'mended':<23}  good labels broken",
    ]
    for name, score in named:
        found, mended, broken = (percent(dataclasses.asdict(p)) for p in (score.found, score.mended, score.broken))
        lines.append(f"{name:<{width}}  {found:<23}  {mended:<23}  {broken}")
    lines += ["", *(f"note: {printable(text)}" for text in test.notes)] if test.notes else []
    return [*lines, *(["", f"written to {out}"] if out is not None else [])]


def _test_table(arguments: argparse.Namespace, parameters: Parameters, order: Order, line: ProgressLine) -> SelfTest:
    given = read_table(arguments, parameters)
    table = given.table
    test = selftest(
        table.features,
        table.labels,
        kinds=order.kinds,
        share=order.share,
        repeats=order.repeats,
        trusted=table.trusted,
        ids=table.ids,
        missing=given.missing,
        progress=line.stage,
        **as_arguments(parameters),
    )
    result = dataclasses.replace(test.result, source=given.source, repeat="")
    return dataclasses.replace(test, result=result, notes=(*table.notes, *test.notes))


def _test_pictures(arguments: argparse.Namespace, parameters: Parameters, order: Order, line: ProgressLine) -> SelfTest:
    if arguments.mode == "train":
        raise ConfigError("selftest embeds pictures. Got --mode train instead; leave it out.")
    arguments.mode = "embed"
    given = read_pictures(arguments, parameters)
    named = {name: value for name, value in given.named.items() if name != "mode"}
    pictures = given.pictures
    make = partial(make_config, **parameters)
    ready = picture_task(
        pictures, "embed", lambda data: make(data=data), None, given.missing, progress=line.stage, **named
    )
    rows, unreadable = ready.readable.rows, {str(pictures.ids[r]): why for r, why in ready.readable.unreadable.items()}

    def to_result(solution: Solution, seconds: float) -> Correction:
        made = assemble(solution, ready.task, ready.given, pictures.ids, pictures.notes, seconds, rows, unreadable)
        return dataclasses.replace(made, source=given.source)

    test = run_selftest(ready.task, to_result, order, line.stage)
    return dataclasses.replace(test, notes=(*pictures.notes, *test.notes))


def _write(test: SelfTest, out: Path, force: bool) -> None:
    if out.suffix == ".json":
        with whole(out, force) as partial:
            partial.write_text(json.dumps(test.summary(), indent=2) + "\n", encoding="utf-8")
    else:
        test.report(out, force=force)

"""The verbs that read data, `correct` and `selftest`: their options."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from labelmend.cli.options import (
    Layout,
    Shelf,
    add_data_options,
    add_help_all,
    add_parameters,
    add_picture_options,
    chosen_parameters,
)
from labelmend.cli.texts import CORRECT, CORRECT_EXAMPLES, CORRECT_IN_SHORT, MORE, SELFTEST


def add_correct(verbs: Any, everything: bool) -> None:
    verb = verbs.add_parser(
        "correct",
        help="correct the labels of a table of feature vectors, or of pictures",
        usage="labelmend correct DATA --labels COLUMN --out RUN [option ...]\n"
        "       labelmend correct PICTURES --out RUN [option ...] | --resume RUN",
        description=CORRECT if everything else CORRECT_IN_SHORT,
        epilog=CORRECT_EXAMPLES if everything else MORE,
        formatter_class=Layout,
        allow_abbrev=False,
    )
    data = Shelf(verb, "data", everything)
    add_data_options(data)
    data.add(
        "--pred-probs",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="out-of-sample probabilities of your own model",
    )
    add_picture_options(Shelf(verb, "pictures", everything))
    output = Shelf(verb, "output", everything)
    output.add("--out", type=Path, metavar="RUN", help="folder to create for the result")
    output.add("--force", action="store_true", help="replace the run folder if there is one")
    output.add("--resume", type=Path, metavar="RUN", help="go on with an interrupted run, by its original settings")
    output.add("--time-limit", metavar="TIME", help="such as 90s, 10m, 2h: stop before exceeding it")
    output.add_rare(
        "--checkpoint-every",
        type=float,
        metavar="SECONDS",
        help="least time between checkpoints; 0: after every round (default 20)",
    )
    output.add("--dry-run", action="store_true", help="check the data, estimate memory and time; no more")
    output.add("--json", action="store_true", help="print the summary as JSON")
    output.add_rare("--quiet", action="store_true", help="no progress, only the summary")
    add_parameters(Shelf(verb, "method", everything))
    add_help_all(verb)
    verb.set_defaults(run=run_correct, verb=verb)


def run_correct(arguments: argparse.Namespace) -> None:
    if arguments.data is None and arguments.resume is None:
        arguments.verb.error("the following arguments are required: DATA")
    from labelmend.cli.correct import correct_command

    correct_command(arguments, chosen_parameters(arguments))


def add_selftest(verbs: Any, everything: bool) -> None:
    verb = verbs.add_parser(
        "selftest",
        help="plant known errors into your data; how many are found, mended, and good labels broken",
        usage="labelmend selftest DATA [--labels COLUMN] [option ...]",
        description=SELFTEST,
        formatter_class=Layout,
        allow_abbrev=False,
    )
    test = Shelf(verb, "the test", everything)
    test.add("--kinds", nargs="+", metavar="KIND", help="of the above (default the first three)")
    test.add("--share", type=float, default=0.05, metavar="X", help="share of labels that get an error (default 0.05)")
    test.add("--repeats", type=int, default=3, metavar="N", help="repetitions of each kind (default 3)")
    test.add("--out", type=Path, metavar="FILE", help="write it: .json, or .html with the plain run's report")
    test.add("--force", action="store_true", help="replace FILE if there is one")
    test.add("--json", action="store_true", help="print the figures as JSON")
    test.add("--quiet", action="store_true", help="no progress, only the figures")
    add_data_options(Shelf(verb, "data", everything))
    add_picture_options(Shelf(verb, "pictures, which are embedded", everything))
    add_parameters(Shelf(verb, "method", everything))
    add_help_all(verb)
    verb.set_defaults(run=run_selftest, verb=verb)


def run_selftest(arguments: argparse.Namespace) -> None:
    if arguments.data is None:
        arguments.verb.error("the following arguments are required: DATA")
    from labelmend.cli.selftest import selftest_command

    selftest_command(arguments, chosen_parameters(arguments))

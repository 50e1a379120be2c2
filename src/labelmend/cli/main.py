"""The command line: one verb, one function. Parses, calls the library, prints; decides nothing else.

Exit codes: 0 done; 1 an unexpected error, or no place for the cache; 2 bad input or a full disk, nothing was changed;
130 interrupted, 143 ended by SIGTERM: then it is said how to go on.
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import errno
import io
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from labelmend import __version__
from labelmend.cli.options import (
    APPLY,
    CORRECT,
    CORRECT_EXAMPLES,
    DESCRIPTION,
    EXAMPLES,
    EXPORT,
    EXPORT_EXAMPLES,
    EXPORT_MODEL,
    REPORT,
    REVIEW,
    SELFTEST,
    UNDO,
    add_parameters,
    chosen_parameters,
)
from labelmend.errors import CacheError, LabelmendError

OK, FAILED, BAD_INPUT, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


class Terminated(KeyboardInterrupt):
    """SIGTERM: a polite request to end, with as much order as Ctrl-C."""


def main(argv: list[str] | None = None) -> int:
    return guarded(lambda: _run(parse(argv)))


def _run(arguments: argparse.Namespace) -> int:
    return int(arguments.run(arguments) or OK)


def guarded(action: Callable[[], int]) -> int:
    """The exit code of an action, whatever becomes of it."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a class the terminal cannot spell must not end a run
    try:
        with _ended_politely():
            return action()
    except LabelmendError as error:
        _say(str(error), error)
        full = isinstance(error.__cause__, OSError) and error.__cause__.errno in NO_SPACE
        return FAILED if isinstance(error, CacheError) and not full else BAD_INPUT
    except KeyboardInterrupt as error:
        _say("interrupted; nothing half-written was left behind", error)
        return TERMINATED if isinstance(error, Terminated) else INTERRUPTED
    except OSError as error:
        _say(f"{error}; nothing half-written was left behind", error)
        return BAD_INPUT if error.errno in NO_SPACE else FAILED


def _say(text: str, error: BaseException) -> None:
    """What went wrong, and what the run that ended says about going on; names and labels in it are somebody's data."""
    from labelmend.report.wording import printable

    for line in (*text.split("\n"), *getattr(error, "__notes__", ())):
        print(f"labelmend: {printable(line)}", file=sys.stderr)


@contextmanager
def _ended_politely() -> Iterator[None]:
    ours = os.getpid()

    def end(number: int, frame: Any) -> None:
        if os.getpid() == ours:
            raise Terminated
        os._exit(128 + number)  # a worker that was forked from here, and is no longer needed

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Arguments with the function to run; a misspelled option is answered with the nearest one."""
    parser = build_parser()
    arguments, unknown = parser.parse_known_args(argv)
    if unknown:
        options = set(re.findall(r"--[a-z-]+", arguments.verb.format_help()))
        near = difflib.get_close_matches(unknown[0].split("=")[0], options, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        arguments.verb.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    return arguments


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "labelmend", description=DESCRIPTION, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"labelmend {__version__}")
    parser.set_defaults(verb=parser, run=lambda _: parser.print_help())
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND")
    _add_demo(verbs)
    _add_correct(verbs)
    _add_selftest(verbs)
    _add_report(verbs)
    _add_review(verbs)
    _add_apply(verbs)
    _add_export(verbs)
    _add_undo(verbs)
    _add_export_model(verbs)
    return parser


def _add_demo(verbs: Any) -> None:
    verb = verbs.add_parser("demo", help="correct planted errors in pictures of clothes, in under a minute")
    verb.add_argument("--out", type=Path, metavar="RUN", help="also keep the run folder here")
    verb.add_argument("--seed", type=int, default=0, metavar="N", help="random seed (default 0)")
    verb.add_argument("--json", action="store_true", help="print the numbers as JSON")
    verb.set_defaults(run=run_demo, verb=verb)


def _add_correct(verbs: Any) -> None:
    verb = verbs.add_parser(
        "correct",
        help="correct the labels of a table of feature vectors, or of pictures",
        usage="labelmend correct DATA --labels COLUMN --out RUN [option ...]\n"
        "       labelmend correct PICTURES --out RUN [option ...] | --resume RUN",
        description=CORRECT,
        epilog=CORRECT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    data = verb.add_argument_group("data")
    _add_data_options(data)
    data.add_argument(
        "--pred-probs",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="out-of-sample probabilities of your own model, a column per class: .npy, .npz, .csv or .parquet; "
        "repeatable; the table may then hold labels alone",
    )
    _add_picture_options(verb.add_argument_group("pictures"))
    _add_output_options(verb.add_argument_group("output"))
    add_parameters(verb)
    verb.set_defaults(run=run_correct, verb=verb)


def _add_data_options(group: Any) -> None:
    group.add_argument(
        "data", metavar="DATA", type=Path, nargs="?", help=".csv, .parquet, .npz or .npy; pictures: also a folder"
    )
    group.add_argument(
        "--labels",
        metavar="COLUMN",
        help="label column; array of an .npz; file or number for an .npy; pictures: label, if not named",
    )
    group.add_argument("--id", metavar="COLUMN", help="column that names the rows")
    group.add_argument("--trusted", metavar="COLUMN", help="column that marks labels known to be right (yes/no, 1/0)")
    group.add_argument(
        "--trusted-from",
        metavar="RUN",
        type=Path,
        help="trust what a person decided in the review of this run; samples are matched by their ids",
    )
    group.add_argument("--annotator", metavar="COLUMN", help="column that says who gave the label")
    group.add_argument(
        "--annotator-columns",
        metavar="A,B,...",
        help="columns that hold the labels of each annotator; --labels may then be left out: it is their consensus",
    )
    group.set_defaults(pred_probs=[])
    group.set_defaults(trusted_until=None)  # the last decision that counts, noted for --resume
    group.add_argument("--ignore", metavar="COLUMN", action="append", default=[], help="leave a column out; repeatable")
    group.add_argument("--features", metavar="ARRAY", help="feature array of an .npz, if it is not clear which")
    group.add_argument("--missing", metavar="VALUE", help="label that means there is none, such as -1")
    group.add_argument("--drop-bad-rows", action="store_true", help="go on without rows that hold NaN or infinity")


def _add_picture_options(group: Any) -> None:
    group.add_argument(
        "--mode",
        choices=("auto", "embed", "train"),
        help="embed: by a frozen backbone, then as vectors; train: nets on the pictures; auto: train on a GPU, "
        "else embed (default auto)",
    )
    group.add_argument(
        "--backbone",
        metavar="NAME",
        help="efficientnet-lite0, hf:NAME for a vision model of Hugging Face, or its folder (default "
        "efficientnet-lite0)",
    )
    group.add_argument(
        "--size",
        type=int,
        metavar="PX",
        help="side to which pictures are fitted; by default the backbone's, or to train their own up to 64, else 256",
    )
    group.add_argument(
        "--cache",
        type=Path,
        metavar="DIR",
        help="folder for decoded pictures and features (default labelmend in $XDG_CACHE_HOME or ~/.cache)",
    )


def _add_output_options(group: Any) -> None:
    group.add_argument("--out", type=Path, metavar="RUN", help="folder to create for the result")
    group.add_argument("--force", action="store_true", help="replace the run folder if there is one, finished or not")
    group.add_argument(
        "--resume", type=Path, metavar="RUN", help="go on with a run that was interrupted; all else is as it began"
    )
    group.add_argument(
        "--time-limit",
        metavar="TIME",
        help="such as 90s, 10m, 2h: no round begins that would probably end later; the decision comes on top",
    )
    group.add_argument(
        "--checkpoint-every",
        type=float,
        metavar="SECONDS",
        help="keep the run on disk after a round if that was not done for so long; 0: every round (default 20)",
    )
    group.add_argument("--dry-run", action="store_true", help="check the data, estimate memory and time; no more")
    group.add_argument("--json", action="store_true", help="print the summary as JSON")
    group.add_argument("--quiet", action="store_true", help="no progress, only the summary")


def _add_selftest(verbs: Any) -> None:
    verb = verbs.add_parser(
        "selftest",
        help="plant known errors into your data; how many are found, mended, and good labels broken",
        usage="labelmend selftest DATA [--labels COLUMN] [option ...]",
        description=SELFTEST,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    group = verb.add_argument_group("the test")
    group.add_argument("--kinds", nargs="+", metavar="KIND", help="of the above (default the first three)")
    group.add_argument(
        "--share", type=float, default=0.05, metavar="X", help="share of labels that get an error (default 0.05)"
    )
    group.add_argument("--repeats", type=int, default=3, metavar="N", help="repetitions of each kind (default 3)")
    group.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write it: .json, or .html as a section of the plain run's report",
    )
    group.add_argument("--force", action="store_true", help="replace FILE if there is one")
    group.add_argument("--json", action="store_true", help="print the figures as JSON")
    group.add_argument("--quiet", action="store_true", help="no progress, only the figures")
    _add_data_options(verb.add_argument_group("data"))
    _add_picture_options(verb.add_argument_group("pictures, which are embedded"))
    add_parameters(verb)
    verb.set_defaults(run=run_selftest, verb=verb)


def _add_report(verbs: Any) -> None:
    verb = verbs.add_parser(
        "report",
        help="show a run on one page that opens anywhere",
        description=REPORT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("folder", metavar="RUN", type=Path, help="run folder")
    verb.add_argument("--out", type=Path, metavar="FILE", help="file to write (default report.html in RUN)")
    verb.add_argument("--data", type=Path, metavar="PATH", help="where the pictures or the table are, if they moved")
    verb.add_argument("--force", action="store_true", help="replace FILE if there is one")
    verb.set_defaults(run=run_report, verb=verb)


def _add_review(verbs: Any) -> None:
    verb = verbs.add_parser(
        "review",
        help="look at the doubtful samples of a run, and decide them",
        description=REVIEW,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("folder", metavar="RUN", type=Path, help="run folder")
    verb.add_argument("--port", type=int, default=0, metavar="N", help="port to listen on (default: any free one)")
    verb.add_argument("--no-browser", action="store_true", help="print the link, open nothing")
    verb.add_argument("--data", type=Path, metavar="PATH", help="where the data are now, if they have moved")
    verb.add_argument(
        "--follow-links", action="store_true", help="show pictures that are links to files outside of the data folder"
    )
    verb.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1: this machine only)")
    verb.set_defaults(run=run_review, verb=verb)


def _add_apply(verbs: Any) -> None:
    verb = verbs.add_parser(
        "apply",
        help="merge what was decided in a review into the labels",
        description=APPLY,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("folder", metavar="RUN", type=Path, help="run folder")
    verb.add_argument("--dry-run", action="store_true", help="say what would change; no more")
    verb.add_argument("--json", action="store_true", help="print it as JSON, with every label that changes")
    verb.set_defaults(run=run_apply, verb=verb)


def _add_export(verbs: Any) -> None:
    verb = verbs.add_parser(
        "export",
        help="hand the labels over: tables, class folders, Hugging Face, Label Studio, COCO, FiftyOne, cleanlab",
        usage="labelmend export RUN --to FORMAT [--out PATH] [option ...] | --list",
        description=EXPORT,
        epilog=EXPORT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    verb.add_argument("folder", metavar="RUN", type=Path, nargs="?", help="run folder")
    verb.add_argument("--to", metavar="FORMAT", help="one of those that --list names")
    verb.add_argument("--list", action="store_true", help="name the formats")
    verb.add_argument("--out", type=Path, metavar="PATH", help="file or folder to create")
    verb.add_argument("--force", action="store_true", help="replace the file, or the folder of an earlier export")
    verb.add_argument(
        "--review",
        default="corrected",
        choices=("corrected", "given"),
        help="doubtful labels as labelmend would have them, or as they were given (default corrected)",
    )
    verb.add_argument("--with-data", action="store_true", help="csv, parquet: your own table around the labels")
    verb.add_argument("--link", action="store_true", help="pictures by link instead of copies")
    verb.add_argument("--data", type=Path, metavar="PATH", help="where the data are now, if they have moved")
    verb.add_argument("--json", action="store_true", help="print what was written as JSON")
    verb.set_defaults(run=run_export, verb=verb)


def _add_undo(verbs: Any) -> None:
    verb = verbs.add_parser(
        "undo",
        help="take the changes of a patch back",
        description=UNDO,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    verb.add_argument("patch", metavar="PATCH", type=Path, help="file written by labelmend export RUN --to patch")
    verb.add_argument(
        "--in", dest="given", required=True, type=Path, metavar="PATH", help=".csv, .parquet or class folders"
    )
    verb.add_argument("--out", required=True, type=Path, metavar="PATH", help="file or folder to create")
    verb.add_argument("--force", action="store_true", help="replace the file, or the folder of an earlier export")
    verb.add_argument("--labels", metavar="COLUMN", help="label column, if it is another than the run's")
    verb.add_argument("--id", metavar="COLUMN", help="column that names the samples, if it is another than the run's")
    verb.add_argument("--link", action="store_true", help="class folders: pictures by link instead of copies")
    verb.set_defaults(run=run_undo, verb=verb)


def _add_export_model(verbs: Any) -> None:
    verb = verbs.add_parser(
        "export-model",
        help="write the classifier of a run as one ONNX file",
        description=EXPORT_MODEL,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("folder", metavar="RUN", type=Path, help="run folder")
    verb.add_argument("target", metavar="FILE", type=Path, help="file to write, such as model.onnx")
    verb.add_argument("--force", action="store_true", help="replace the file if there is one")
    verb.add_argument("--backbone", metavar="NAME", help="where the backbone of embedded pictures is, if it has moved")
    verb.set_defaults(run=run_export_model, verb=verb)


def run_correct(arguments: argparse.Namespace) -> int:
    if arguments.data is None and arguments.resume is None:
        arguments.verb.error("the following arguments are required: DATA")
    from labelmend.cli.correct import correct_command

    correct_command(arguments, chosen_parameters(arguments))
    return OK


def run_selftest(arguments: argparse.Namespace) -> int:
    if arguments.data is None:
        arguments.verb.error("the following arguments are required: DATA")
    from labelmend.cli.selftest import selftest_command

    selftest_command(arguments, chosen_parameters(arguments))
    return OK


def run_demo(arguments: argparse.Namespace) -> int:
    from labelmend.cli.demo import demo

    return demo(arguments.out, arguments.seed, arguments.json)


def run_report(arguments: argparse.Namespace) -> int:
    from labelmend.report.write import report_command

    print("\n".join(report_command(arguments.folder, arguments.out, arguments.data, arguments.force)))
    return OK


def run_review(arguments: argparse.Namespace) -> int:
    from labelmend.cli.review import review_command

    review_command(
        arguments.folder,
        arguments.port,
        arguments.host,
        not arguments.no_browser,
        arguments.data,
        arguments.follow_links,
    )
    return OK


def run_apply(arguments: argparse.Namespace) -> int:
    from labelmend.review.apply import apply, merge_lines

    merge = apply(arguments.folder, arguments.dry_run)
    if arguments.json:
        print(json.dumps({**dataclasses.asdict(merge), "dry_run": arguments.dry_run}))
    else:
        print("\n".join(merge_lines(merge, arguments.folder, arguments.dry_run)))
    return OK


def run_export(arguments: argparse.Namespace) -> int:
    from labelmend.cli.export import export_command

    export_command(arguments)
    return OK


def run_undo(arguments: argparse.Namespace) -> int:
    from labelmend.cli.export import undo_command

    undo_command(arguments)
    return OK


def run_export_model(arguments: argparse.Namespace) -> int:
    from labelmend.models.onnx import export_model, refuse_target
    from labelmend.storage.run_folder import load

    refuse_target(arguments.target, arguments.force)
    model = load(arguments.folder, backbone=arguments.backbone).model
    export_model(model, arguments.target, arguments.force)
    print(f"{arguments.target}: gives the probabilities of the model in {arguments.folder}")
    return OK

"""The command line: one verb, one function. Parses, calls the library, prints; decides nothing else.

Exit codes: 0 done; 1 an unexpected error or a full disk; 2 bad input, nothing was changed; 130 interrupted.
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import io
import json
import re
import sys
import types
import typing
from pathlib import Path
from typing import Any

from labelmend import __version__
from labelmend.config import RunConfig
from labelmend.errors import CacheError, LabelmendError

OK, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
SHORT = 3  # choices that fit beside the name of an option

DESCRIPTION = "Mends wrong labels: corrected labels, how sure it is of each, and what\nthe noise looks like."
EXAMPLES = """\
examples:
  labelmend demo
      see it work on data that come with it
  labelmend correct table.csv --labels species --out run/ --dry-run
      check a table of feature columns and a label column; what it would cost
  labelmend correct table.csv --labels species --out run/
      correct its labels
  labelmend correct photos/ --out run/
      correct pictures in class folders
  labelmend selftest table.csv --labels species
      plant known errors into it, and see how many are found and mended
  labelmend report run/
      see what happened, on one page
  labelmend review run/
      look at the doubtful ones and decide them; labelmend apply run/ merges
  labelmend export run/ --to csv --with-data
      the same table with the labels mended; --list names other formats
  labelmend correct --help
      all that can be set

exit codes: 0 done, 1 unexpected error, 2 bad input (nothing was changed),
            130 interrupted
"""
CORRECT = """\
Correct the labels of a table of feature vectors, or of pictures.

In a .csv or .parquet table every column is a feature and must hold numbers,
except the label column and those named with --id, --trusted, --annotator,
--annotator-columns and --ignore.
An .npz holds an array of features (X) and one of labels; for an .npy the
labels are another .npy, or one of its columns by number. An empty label is a
missing one and gets filled in.

Pictures are a folder of class folders (photos/cat/1.jpg), a .csv or .parquet
with the columns path and label, a folder saved by Hugging Face's datasets, or
an .npz with the arrays images (N, H, W[, 3] of uint8) and labels. They are
embedded by a frozen backbone, or nets are trained on them (--mode).

The data are only read. The result is a new folder with labels.csv (id, given,
corrected, status, confidence, certainty, runner_up), the classifier and the
record of the run. The status of a row is one of
  kept        the given label stays
  corrected   another label took its place
  review      doubtful: the best guess, for a person to look at
  filled      there was no label
  unreadable  the picture could not be read; unreadable.csv says why

A run that was interrupted, even by a power cut, goes on with --resume RUN and
ends as if nothing had happened.
"""
CORRECT_EXAMPLES = """\
examples:
  labelmend correct table.csv --labels species --id name --out run/
  labelmend correct table.csv --labels species --trusted checked --out run/
  labelmend correct table.csv --labels species --trusted-from run/ --out run2/
  labelmend correct table.csv --labels species --annotator by --out run/
  labelmend correct table.csv --annotator-columns ann,ben,cid --out run/
  labelmend correct data.npz --labels y --missing -1 --out run/
  labelmend correct X.npy --labels y.npy --out run/ --preset paper --seed 1
  labelmend correct photos/ --out run/
  labelmend correct photos.csv --labels species --mode train --out run/
  labelmend correct photos/ --out run/ --time-limit 2h
  labelmend correct table.csv --labels species --audit 0.02 --out run/
  labelmend correct table.csv --labels species --precision 0.98 --out run/
  labelmend correct table.csv --labels species --budget 200 --out run/
  labelmend correct --resume run/
"""
SELFTEST = """\
Plant known errors into your own data, and see what becomes of them.

A plain run says which samples look clean. Some of them get a wrong label:
  random     any other class
  confusing  the samples nearest to another class get that one
  patch      whole neighbourhoods get the class nearest to them
  mixed      a third of each
Then labelmend, a k-NN vote and confident learning (cleanlab, if installed)
are run on the same labels: how many planted errors each found and mended, and
how many good labels it broke. The data are only read.

It takes 1 + kinds x repetitions runs. For one small share of planted errors
inside a run, see `labelmend correct --audit`.
"""
REPORT = """\
Write one HTML file about a run: what changed, how wrong the labels of each
class are, a map of the samples, those worth a look, and how it was made.

It opens without a network and holds all it shows, small pictures included.
`correct` writes it already; do it again when data have moved, or decisions
were applied.
"""
EXPORT_MODEL = """\
Write the classifier of a run as one ONNX file.

It takes pixels (n, height, width, 3) of uint8 at the model's size, or rows
(n, columns) of float32 as they are in the table, and gives probabilities
(n, classes). All else is inside: colours, cropping, backbone, scaling. The
metadata name the classes, in order, and the size. The file takes its name
once it has given the same probabilities as the original.
"""
REVIEW = """\
Look at the doubtful samples of a run, and decide them.

Opens a page that only this machine can reach. Every decision is on disk
before the page says so; end it and begin again as often as you like. Then
`labelmend apply RUN` merges the decisions into the labels, and `labelmend
correct ... --trusted-from RUN` runs again with them as trusted samples.
"""
APPLY = """\
Merge what a person decided in `labelmend review` into the labels of a run.

Afterwards labels.csv holds the merged labels; what was decided has the status
reviewed and confidence 1. What could not be told stays for review. What the
run itself had said stays in the folder, in labels_before_review.csv. May be
repeated, also after further decisions.
"""
EXPORT = """\
Hand the labels of a run over to what comes next. `labelmend export --list`
names the formats. The data of the run are only read, and the target is new:
it takes its name once it is whole. Without --out it lies beside the run.
"""
EXPORT_EXAMPLES = """\
examples:
  labelmend export run/ --to csv --out labels.csv
  labelmend export run/ --to csv --with-data --out table_mended.csv
  labelmend export run/ --to folders --out sorted/ --link
  labelmend export run/ --to huggingface --review given
  labelmend export run/ --to patch --out run.patch.json
  labelmend undo run.patch.json --in table_mended.csv --out table_again.csv

Cells are written as they are, also where they begin with = + - or @: import
such a .csv as text if you open it in a spreadsheet.
"""
UNDO = """\
Take the changes of a patch back: in a .csv or .parquet that holds the new
labels, or in class folders that `labelmend export --to folders` made. All of
them or none: samples that have another label now are named, and nothing is
written. The input is only read.
"""
# The parameters of RunConfig in sections; a section begins at the field named here.
SECTIONS = {
    "preset": "parameters of the method",
    "n_branches": "the ensemble",
    "hidden": "nets and training",
    "graph_k": "graphs and votes",
    "decide": "the decision",
}
ABOUT_PARAMETERS = """\
Defaults are those of preset plus. Where none is named, the value follows the
size of the data; --dry-run prints what it would be. Training on pictures has
defaults of its own; --dry-run --json prints them all.
"""


def main(argv: list[str] | None = None) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a class the terminal cannot spell must not end a run
    arguments = parse(argv)
    try:
        return int(arguments.run(arguments) or OK)
    except LabelmendError as error:
        print(f"labelmend: {error}", file=sys.stderr)
        _print_notes(error)
        return FAILED if isinstance(error, CacheError) else BAD_INPUT
    except KeyboardInterrupt as error:
        print("labelmend: interrupted; nothing half-written was left behind", file=sys.stderr)
        _print_notes(error)
        return INTERRUPTED
    except OSError as error:
        print(f"labelmend: {error}; nothing half-written was left behind", file=sys.stderr)
        _print_notes(error)
        return FAILED


def _print_notes(error: BaseException) -> None:
    """What the run that ended says about going on."""
    for note in getattr(error, "__notes__", ()):
        print(f"labelmend: {note}", file=sys.stderr)


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
    _add_benchmark(verbs)
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
    _add_data_options(verb.add_argument_group("data"))
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


def _add_benchmark(verbs: Any) -> None:
    verb = verbs.add_parser("benchmark", help="measure labelmend and its neighbours side by side")
    verb.add_argument("name", nargs="?", help="which benchmark; without a name, list them")
    verb.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    verb.set_defaults(run=run_benchmark, verb=verb)


def add_parameters(verb: argparse.ArgumentParser) -> None:
    """One option per field of RunConfig, so that there is no parameter the command line does not have."""
    hints = typing.get_type_hints(RunConfig)
    group = verb.add_argument_group(SECTIONS["preset"], ABOUT_PARAMETERS)
    for entry in dataclasses.fields(RunConfig):
        if entry.name in SECTIONS and entry.name != "preset":
            group = verb.add_argument_group(SECTIONS[entry.name])
        name = "--" + entry.name.replace("_", "-")
        group.add_argument(name, default=None, help=_about(entry), **_argument(entry, hints[entry.name]))


def run_correct(arguments: argparse.Namespace) -> int:
    if arguments.data is None and arguments.resume is None:
        arguments.verb.error("the following arguments are required: DATA")
    from labelmend.correct_command import correct_command

    correct_command(arguments, chosen_parameters(arguments))
    return OK


def chosen_parameters(arguments: argparse.Namespace) -> dict[str, Any]:
    """The parameters that were named on the command line."""
    named = {entry.name: getattr(arguments, entry.name) for entry in dataclasses.fields(RunConfig)}
    return {name: tuple(v) if isinstance(v, list) else v for name, v in named.items() if v is not None}


def run_selftest(arguments: argparse.Namespace) -> int:
    if arguments.data is None:
        arguments.verb.error("the following arguments are required: DATA")
    from labelmend.trust.selftest_command import selftest_command

    selftest_command(arguments, chosen_parameters(arguments))
    return OK


def run_demo(arguments: argparse.Namespace) -> int:
    from labelmend.benchmarks.demo import demo

    return demo(arguments.out, arguments.seed, arguments.json)


def run_benchmark(arguments: argparse.Namespace) -> int:
    from labelmend.benchmarks.command import main as benchmark

    return benchmark(arguments.name, arguments.rest)


def run_report(arguments: argparse.Namespace) -> int:
    from labelmend.report.write import report_command

    print("\n".join(report_command(arguments.folder, arguments.out, arguments.data, arguments.force)))
    return OK


def run_review(arguments: argparse.Namespace) -> int:
    from labelmend.review.command import review_command

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
    from labelmend.export.command import export_command

    export_command(arguments)
    return OK


def run_undo(arguments: argparse.Namespace) -> int:
    from labelmend.export.command import undo_command

    undo_command(arguments)
    return OK


def run_export_model(arguments: argparse.Namespace) -> int:
    from labelmend.export_model import export_model, refuse_target
    from labelmend.run_folder import load

    refuse_target(arguments.target, arguments.force)
    model = load(arguments.folder, backbone=arguments.backbone).model
    export_model(model, arguments.target, arguments.force)
    print(f"{arguments.target}: gives the probabilities of the model in {arguments.folder}")
    return OK


def _about(entry: dataclasses.Field[Any]) -> str:
    default, choices = entry.default, entry.metadata["choices"] or ()
    if isinstance(default, bool):
        default = "on" if default else "off"
    ending = "" if default is None or default == () else f" (default {default})"
    listed = f": {', '.join(choices)}" if len(choices) > SHORT else ""
    return f"{entry.metadata['help']}{listed}{ending}".replace("%", "%%")


def _argument(entry: dataclasses.Field[Any], hint: Any) -> dict[str, Any]:
    """How argparse reads a field of this type."""
    if hint is bool:
        return {"action": argparse.BooleanOptionalAction}
    if typing.get_origin(hint) is tuple:
        return {"type": float, "nargs": "*", "metavar": "X"}
    if choices := entry.metadata["choices"]:
        return {"choices": choices, "metavar": "NAME" if len(choices) > SHORT else None}
    members = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    kind = next(member for member in members if member is not type(None))
    return {"type": kind, "metavar": {int: "N", float: "X", str: "NAME"}[kind]}

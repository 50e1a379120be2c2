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
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelmend import __version__
from labelmend.config import RunConfig, follow, make_config
from labelmend.errors import ConfigError, LabelmendError, LabelmendWarning

if TYPE_CHECKING:
    from labelmend.data.load import Table
    from labelmend.result import Correction

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
  labelmend correct --help
      all that can be set

exit codes: 0 done, 1 unexpected error, 2 bad input (nothing was changed),
            130 interrupted
"""
CORRECT = """\
Correct the labels of a table of feature vectors.

In a .csv or .parquet table every column is a feature and must hold numbers,
except the label column and those named with --id, --trusted and --ignore.
An .npz holds an array of features (X) and one of labels; for an .npy the
labels are another .npy, or one of its columns by number. An empty label is a
missing one and gets filled in.

The data are only read. The result is a new folder with labels.csv (id, given,
corrected, status, confidence, certainty, runner_up), the classifier and the
record of the run. The status of a row is one of
  kept        the given label stays
  corrected   another label took its place
  review      doubtful: the best guess, for a person to look at
  filled      there was no label
"""
CORRECT_EXAMPLES = """\
examples:
  labelmend correct table.csv --labels species --id name --out run/
  labelmend correct table.csv --labels species --trusted checked --out run/
  labelmend correct data.npz --labels y --missing -1 --out run/
  labelmend correct X.npy --labels y.npy --out run/ --preset paper --seed 1
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
size of the data; --dry-run prints what it would be.
"""


def main(argv: list[str] | None = None) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a class the terminal cannot spell must not end a run
    arguments = parse(argv)
    try:
        return int(arguments.run(arguments) or OK)
    except LabelmendError as error:
        print(f"labelmend: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("labelmend: interrupted; nothing half-written was left behind", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:
        print(f"labelmend: {error}; nothing half-written was left behind", file=sys.stderr)
        return FAILED


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
        help="correct the labels of a table of feature vectors",
        usage="labelmend correct DATA --labels COLUMN --out RUN [option ...]",
        description=CORRECT,
        epilog=CORRECT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _add_data_options(verb.add_argument_group("data"))
    _add_output_options(verb.add_argument_group("output"))
    add_parameters(verb)
    verb.set_defaults(run=run_correct, verb=verb)


def _add_data_options(group: Any) -> None:
    group.add_argument("data", metavar="DATA", type=Path, help=".csv, .parquet, .npz or .npy")
    group.add_argument(
        "--labels", required=True, metavar="COLUMN", help="label column; array of an .npz; file or number for an .npy"
    )
    group.add_argument("--id", metavar="COLUMN", help="column that names the rows")
    group.add_argument("--trusted", metavar="COLUMN", help="column that marks labels known to be right (yes/no, 1/0)")
    group.add_argument("--ignore", metavar="COLUMN", action="append", default=[], help="leave a column out; repeatable")
    group.add_argument("--features", metavar="ARRAY", help="feature array of an .npz, if it is not clear which")
    group.add_argument("--missing", metavar="VALUE", help="label that means there is none, such as -1")
    group.add_argument("--drop-bad-rows", action="store_true", help="go on without rows that hold NaN or infinity")


def _add_output_options(group: Any) -> None:
    group.add_argument("--out", type=Path, metavar="RUN", help="folder to create for the result")
    group.add_argument("--force", action="store_true", help="replace the run folder if there is one")
    group.add_argument("--dry-run", action="store_true", help="check the data, estimate memory and time; no more")
    group.add_argument("--json", action="store_true", help="print the summary as JSON")
    group.add_argument("--quiet", action="store_true", help="no progress, only the summary")


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


def chosen_parameters(arguments: argparse.Namespace) -> dict[str, Any]:
    """The parameters that were named on the command line."""
    named = {entry.name: getattr(arguments, entry.name) for entry in dataclasses.fields(RunConfig)}
    return {name: tuple(v) if isinstance(v, list) else v for name, v in named.items() if v is not None}


def run_correct(arguments: argparse.Namespace) -> int:
    from labelmend.data.load import drop_bad_rows, load_table
    from labelmend.run_folder import refuse_existing

    parameters = chosen_parameters(arguments)
    make_config(**parameters)  # a wrong parameter is told before the data are read
    if arguments.out is not None:
        refuse_existing(arguments.out, arguments.force)
    elif not arguments.dry_run:
        raise ConfigError("correct needs --out RUN, the folder to create for the result (or --dry-run).")
    table = load_table(
        arguments.data, arguments.labels, arguments.id, arguments.trusted, arguments.features, arguments.ignore
    )
    if arguments.drop_bad_rows:
        table = drop_bad_rows(table)
    missing = missing_value(arguments.missing, table.labels)
    if arguments.missing is not None and missing is None:
        table.notes.append(f"no label is the missing value {arguments.missing!r}")
    if arguments.dry_run:
        _dry_run(table, missing, parameters, arguments.json)
        return OK
    result = _correct_with_progress(table, missing, parameters, arguments.quiet)
    _print_result(result, result.save(arguments.out, force=arguments.force), arguments.json)
    return OK


def run_demo(arguments: argparse.Namespace) -> int:
    from labelmend.benchmarks.demo import demo

    return demo(arguments.out, arguments.seed, arguments.json)


def run_benchmark(arguments: argparse.Namespace) -> int:
    from labelmend.benchmarks.command import main as benchmark

    return benchmark(arguments.name, arguments.rest)


def _correct_with_progress(table: Table, missing: Any, parameters: dict[str, Any], quiet: bool) -> Correction:
    from labelmend.api import correct
    from labelmend.terminal import ProgressLine

    line = ProgressLine(quiet=quiet)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelmendWarning)  # they are in the summary
        try:
            result = correct(
                table.features,
                table.labels,
                trusted=table.trusted,
                ids=table.ids,
                missing=missing,
                callback=line.round,
                progress=line.stage,
                **parameters,
            )
        finally:
            line.finish()
    return dataclasses.replace(result, warnings=[*table.notes, *result.warnings])


def _print_result(result: Correction, folder: Path, as_json: bool) -> None:
    from labelmend.terminal import summary_lines

    summary = result.summary()
    if as_json:
        print(json.dumps({**summary, "out": str(folder)}))
    else:
        print("\n".join(summary_lines(summary, folder)))


def _dry_run(table: Table, missing: Any, parameters: dict[str, Any], as_json: bool) -> None:
    from labelmend.api import choose_device, read
    from labelmend.estimate import estimate
    from labelmend.terminal import dry_run_lines

    matrix, labels, trusted = read(table.features, table.labels, table.trusted, missing)
    config = follow(make_config(**parameters), len(labels.codes), len(labels.classes))
    choose_device(config.device)
    cost = estimate(config, matrix.shape[0], matrix.shape[1], len(labels.classes))
    facts = {
        "rows": matrix.shape[0],
        "columns": matrix.shape[1],
        "classes": len(labels.classes),
        "missing_labels": int((labels.codes < 0).sum()),
        "trusted": int(trusted.sum()),
        "estimated_bytes": round(cost.n_bytes),
        "estimated_seconds": round(cost.seconds, 1),
        "parameters": dataclasses.asdict(config),
        "warnings": table.notes,
    }
    print(json.dumps(facts) if as_json else "\n".join(dry_run_lines(facts)))


def missing_value(text: str | None, labels: Any) -> Any:
    """The declared missing value as the labels spell it: -1 is also -1.0, as a number and as text. None: no such."""
    if text is None:
        return None
    return next((value for value in labels if value is not None and _same(value, text)), None)


def _same(value: Any, text: str) -> bool:
    try:
        return str(value) == text or float(value) == float(text)
    except (TypeError, ValueError):
        return False


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

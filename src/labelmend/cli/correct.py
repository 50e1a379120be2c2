"""`labelmend correct`: its options, the call of the library, and the resuming of an interrupted run.

What a run needs is imported once the data are read; does not know the method.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelmend.cli.options import Shelf, add_parameters, chosen_parameters
from labelmend.cli.reading import Given, Parameters, PictureInput, add_data_options, add_picture_options, read_data
from labelmend.cli.terminal import ProgressLine, summary_lines
from labelmend.config import as_arguments
from labelmend.ensemble.records import TimeLimit, read_limit
from labelmend.errors import CheckpointError, ConfigError
from labelmend.files.reading import checked_fields
from labelmend.storage.job import Job, read_job, refuse_unfinished, running
from labelmend.storage.target import CONFIG, refuse_existing

if TYPE_CHECKING:
    from labelmend.result import Correction

USAGE = """\
labelmend correct DATA --labels COLUMN --out RUN [option ...]
       labelmend correct PICTURES --out RUN [option ...] | --resume RUN"""
IN_SHORT = """\
Correct the labels of a table of feature vectors, or of pictures in class
folders. The data are only read; RUN is a new folder with labels.csv, a report,
the classifier and a record of the run.
"""
IN_FULL = """\
Correct the labels of a table of feature vectors, or of pictures.

In a .csv or .parquet table every column is a feature and must hold numbers,
except the label column and those named with --id, --trusted, --annotator,
--annotator-columns and --ignore.
An .npz holds an array of features (X) and one of labels; for an .npy the
labels are another .npy, or one of its columns by number. Empty labels are
filled in.

Out-of-sample probabilities of your own model (--pred-probs) are used as
further evidence, or instead of features beside a table of labels.

Pictures are a folder of class folders (photos/cat/1.jpg), a .csv or .parquet
with the columns path and label, a folder saved by Hugging Face's datasets, or
an .npz with the arrays images (N, H, W[, 3] of uint8) and labels. A frozen
backbone embeds them, or nets are trained on them (--mode).

The data are only read. The result is a new folder with labels.csv (id, given,
corrected, status, confidence, certainty, runner_up), the classifier and a
record of the run. The status of a row is one of
  kept        the given label stays
  corrected   another label replaces it
  review      uncertain: the best guess, for a person to check
  filled      there was no label
  unreadable  the picture could not be read; unreadable.csv says why

An interrupted run resumes with --resume RUN and gives the same result as
without the interruption.
"""
EXAMPLES = """\
examples:
  labelmend correct table.csv --labels species --out run/
  labelmend correct photos/ --out run/ --time-limit 2h
  labelmend correct labels.csv --labels species --pred-probs P.csv --out run/
"""
MORE_EXAMPLES = """\
  labelmend correct table.csv --labels species --id name --out run/
  labelmend correct table.csv --labels species --trusted checked --out run/
  labelmend correct table.csv --labels species --trusted-from run/ --out run2/
  labelmend correct table.csv --labels species --annotator by --out run/
  labelmend correct table.csv --annotator-columns ann,ben,cid --out run/
  labelmend correct data.npz --labels y --missing -1 --out run/
  labelmend correct X.npy --labels y.npy --out run/ --preset paper --seed 1
  labelmend correct photos.csv --labels species --mode train --out run/
  labelmend correct table.csv --labels species --audit 0.02 --out run/
  labelmend correct table.csv --labels species --precision 0.98 --out run/
  labelmend correct table.csv --labels species --budget 200 --out run/
  labelmend correct --resume run/
"""
PATHS = ("data", "cache", "trusted_from")
WITH_RESUME = ("time_limit", "checkpoint_every", "quiet", "json")


def add_correct(verb: argparse.ArgumentParser, everything: bool) -> None:
    verb.usage, verb.description = USAGE, IN_FULL if everything else IN_SHORT
    verb.epilog = EXAMPLES + MORE_EXAMPLES if everything else EXAMPLES
    data = Shelf(verb, "data", everything)
    add_data_options(data)
    models: dict[str, Any] = {"metavar": "FILE", "type": Path, "action": "append", "default": []}
    data.add("--pred-probs", **models, help="out-of-sample probabilities of your own model")
    add_picture_options(Shelf(verb, "pictures", everything))
    output = Shelf(verb, "output", everything)
    output.add("--out", type=Path, metavar="RUN", help="folder to create for the result")
    output.add("--force", action="store_true", help="replace the run folder if it exists")
    output.add("--resume", type=Path, metavar="RUN", help="resume an interrupted run with its original settings")
    output.add("--time-limit", metavar="TIME", help="stop cleanly before exceeding it; such as 90s, 10m, 2h")
    about = "minimum seconds between checkpoints (0: every round; default 20)"
    output.add_rare("--checkpoint-every", type=float, metavar="SECONDS", help=about)
    output.add("--dry-run", action="store_true", help="only check the data and estimate memory and time")
    output.add("--json", action="store_true", help="print the summary as JSON")
    output.add_rare("--quiet", action="store_true", help="print no progress, only the summary")
    add_parameters(verb, everything)
    verb.set_defaults(run=run_correct)


def run_correct(arguments: argparse.Namespace) -> None:
    if arguments.data is None and arguments.resume is None:
        arguments.verb.error("the following arguments are required: DATA")
    parameters = chosen_parameters(arguments)
    if arguments.resume is not None:
        _resume(arguments)
        return
    limit = read_limit(arguments.time_limit)
    if arguments.out is not None:
        refuse_existing(arguments.out, arguments.force)
        refuse_unfinished(arguments.out, arguments.force)
    elif not arguments.dry_run:
        raise ConfigError("correct needs --out RUN, the folder to create for the result (or --dry-run).")
    given = read_data(arguments, parameters)
    if arguments.dry_run:
        from labelmend.cli.dry_run import print_plan

        print_plan(given, parameters, arguments.json)
    else:
        _correct(given, arguments, parameters, limit, anew=True)


@dataclass(frozen=True)
class KeptOptions:
    """What a run needs besides its parameters to be started again, as it is stored in a file."""

    data: str
    labels: str | None = None
    id: str | None = None
    trusted: str | None = None
    annotator: str | None = None
    annotator_columns: str | None = None
    missing: str | None = None
    ignore: list[str] = field(default_factory=list)
    features: str | None = None
    drop_bad_rows: bool = False
    pred_probs: list[str] = field(default_factory=list)
    mode: str | None = None
    backbone: str | None = None
    size: int | None = None
    cache: str | None = None
    force: bool = False
    time_limit: str | None = None
    checkpoint_every: float | None = None
    trusted_from: str | None = None
    trusted_until: int | None = None


KEPT_OPTIONS = tuple(entry.name for entry in dataclasses.fields(KeptOptions))


def _resume(arguments: argparse.Namespace) -> None:
    """The command of an interrupted run, given again in the folder where it was first given."""
    known = {"resume", "run", "verb", *WITH_RESUME}
    if any(value != arguments.verb.get_default(name) for name, value in vars(arguments).items() if name not in known):
        options = ", ".join(f"--{name.replace('_', '-')}" for name in WITH_RESUME)
        raise ConfigError(f"--resume reuses the original settings; only {options} may be changed.")
    refuse_unfinished(arguments.resume, force=True)
    job = read_job(arguments.resume)
    out, again = arguments.resume.resolve(), _again(arguments, job)
    parameters = {name: tuple(value) if isinstance(value, list) else value for name, value in job.parameters.items()}
    if (out / CONFIG).exists() and not again.force:  # it was killed when only the clearing up was left
        from labelmend.report.write import with_report
        from labelmend.storage.run_folder import load

        with running(out, job, anew=False):
            _print_result(with_report(load(out), out), arguments.resume, arguments.json)
        return
    refuse_existing(out, again.force)
    with contextlib.chdir(job.folder if os.path.isdir(job.folder) else "."):
        limit = read_limit(again.time_limit)
        _correct(read_data(again, parameters), again, parameters, limit, anew=False)


def _again(arguments: argparse.Namespace, job: Job) -> argparse.Namespace:
    """The options of a job, each of its type, and those that may be changed."""
    try:
        kept = vars(checked_fields(KeptOptions(**job.options)))
    except (TypeError, ValueError) as error:
        raise CheckpointError(
            f"the options of an interrupted run must be as they were stored. They are not: {error}. Start again: the "
            "same command with --force."
        ) from error
    options = {name: Path(value) if name in PATHS and value else value for name, value in kept.items()}
    options["pred_probs"] = [Path(name) for name in kept["pred_probs"]]
    named = {name: getattr(arguments, name) for name in WITH_RESUME if getattr(arguments, name) is not None}
    where = {"out": arguments.resume.resolve(), "shown": arguments.resume}
    return argparse.Namespace(**{**vars(arguments), **options, **named, **where})


def _correct(given: Given, arguments: argparse.Namespace, parameters: Parameters, limit: TimeLimit, anew: bool) -> None:
    from labelmend.report.write import with_report
    from labelmend.storage.source import command_text

    job = Job(os.getcwd(), {name: _plain(getattr(arguments, name)) for name in KEPT_OPTIONS}, parameters)
    with running(arguments.out, job, anew) as checkpoints:
        line = ProgressLine(quiet=arguments.quiet, ends=limit.ends)
        how: dict[str, Any] = {"checkpoints": checkpoints, "time_limit": limit}
        if arguments.checkpoint_every is not None:
            how["checkpoint_every"] = arguments.checkpoint_every
        result = _corrected(given, parameters, line, how)
        result = dataclasses.replace(result, repeat=command_text(job.options, parameters, arguments.out))
        result.save(arguments.out, force=arguments.force)
        line.stage("report")
        result = with_report(result, arguments.out)
        line.finish()
    _print_result(result, getattr(arguments, "shown", arguments.out), arguments.json)


def _corrected(given: Given, parameters: Parameters, line: ProgressLine, how: dict[str, Any]) -> Correction:
    from labelmend.api import correct, correct_images

    how = {**how, "missing": given.missing, **as_arguments(parameters)}
    if isinstance(given, PictureInput):
        result = line.during(correct_images, given.pictures, **given.named, **how)
        return dataclasses.replace(result, source=given.source)
    table = given.table
    known = {"annotators": table.annotators, "trusted": table.trusted, "ids": table.ids, "pred_probs": given.pred_probs}
    result = line.during(correct, given.features, table.labels, **known, **how)
    return dataclasses.replace(result, source=given.source, warnings=[*table.notes, *result.warnings])


def _print_result(result: Correction, folder: Path, as_json: bool) -> None:
    summary = result.summary()
    print(json.dumps({**summary, "out": str(folder)}) if as_json else "\n".join(summary_lines(summary, folder)))


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value

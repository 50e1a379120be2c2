"""`labelmend correct`: tables of feature vectors, and pictures. Reads, calls the library, prints.

Knows the options of the command line; does not know the method.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from labelmend.api import correct, correct_images, with_assumption
from labelmend.cli.dry_run import annotator_facts, estimate, plan
from labelmend.cli.terminal import ProgressLine, dry_run_lines, summary_lines
from labelmend.config import as_arguments, make_config, resolve
from labelmend.ensemble.records import TimeLimit, read_limit
from labelmend.ensemble.torch_state import choose_device
from labelmend.errors import CheckpointError, ConfigError, DataError, LabelmendWarning
from labelmend.files.reading import checked_fields
from labelmend.inputs.arrays import read_all
from labelmend.inputs.pictures.find import Pictures, find_pictures, holds_pictures
from labelmend.inputs.pred_probs import read_prob_files
from labelmend.inputs.tables import Table, drop_bad_rows, load_table
from labelmend.labels import AnnotatorColumns
from labelmend.report.write import with_report
from labelmend.result import Correction, Source
from labelmend.review.apply import Decided, merge_decided, read_decided
from labelmend.runs.pictures import choose_mode
from labelmend.storage.checkpoint import CHECKPOINT_SECONDS
from labelmend.storage.job import Job, read_job, refuse_unfinished, running
from labelmend.storage.run_files import CONFIG
from labelmend.storage.run_folder import load, refuse_existing
from labelmend.storage.source import command_text, picture_source, table_source

Parameters = dict[str, Any]
FOR_VECTORS = ("ignore", "features", "drop_bad_rows", "pred_probs")
FOR_PICTURES = ("mode", "backbone", "size", "cache")
PATHS = ("data", "cache", "trusted_from")
WITH_RESUME = ("time_limit", "checkpoint_every", "quiet", "json")


@dataclass(frozen=True)
class KeptOptions:
    """What a run needs to be given again, besides its parameters, as it stands in a file."""

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


def correct_command(arguments: argparse.Namespace, parameters: Parameters) -> None:
    if arguments.resume is not None:
        _resume(arguments)
        return
    limit = read_limit(arguments.time_limit)
    if arguments.out is not None:
        refuse_existing(arguments.out, arguments.force)
        refuse_unfinished(arguments.out, arguments.force)
    elif not arguments.dry_run:
        raise ConfigError("correct needs --out RUN, the folder to create for the result (or --dry-run).")
    _correct(arguments, parameters, limit, anew=True)


def _resume(arguments: argparse.Namespace) -> None:
    """The command of an interrupted run, given again where it was first given."""
    _refuse_more_than(WITH_RESUME, arguments)
    refuse_unfinished(arguments.resume, force=True)
    job = read_job(arguments.resume)
    kept = _kept(job)
    options = {name: Path(value) if name in PATHS and value else value for name, value in kept.items()}
    options["pred_probs"] = [Path(name) for name in kept.get("pred_probs") or []]
    named = {name: getattr(arguments, name) for name in WITH_RESUME if getattr(arguments, name) is not None}
    out = arguments.resume.resolve()
    again = argparse.Namespace(**{**vars(arguments), **options, **named, "out": out, "shown": arguments.resume})
    parameters = {name: tuple(value) if isinstance(value, list) else value for name, value in job.parameters.items()}
    if (out / CONFIG).exists() and not again.force:  # it was killed when all was done but to clear up
        with running(out, job, anew=False):
            _print_result(with_report(load(out), out), arguments.resume, arguments.json)
        return
    refuse_existing(out, again.force)
    with contextlib.chdir(job.folder if os.path.isdir(job.folder) else "."):
        _correct(again, parameters, read_limit(again.time_limit), anew=False)


def _kept(job: Job) -> dict[str, Any]:
    """The options of a job, each of its type."""
    try:
        return vars(checked_fields(KeptOptions(**job.options)))
    except (TypeError, ValueError) as error:
        raise CheckpointError(
            f"the options of an interrupted run must be as they were kept. They are not: {error}. Begin anew: the same "
            "command with --force."
        ) from error


def _correct(arguments: argparse.Namespace, parameters: Parameters, limit: TimeLimit, anew: bool) -> None:
    prepare = _pictures if is_pictures(arguments) else _table
    ready = prepare(arguments, parameters)
    if ready is None:
        return
    job = Job(os.getcwd(), {name: _plain(getattr(arguments, name)) for name in KEPT_OPTIONS}, parameters)
    with running(arguments.out, job, anew) as checkpoints:
        line = ProgressLine(quiet=arguments.quiet, ends=limit.ends)
        every = CHECKPOINT_SECONDS if arguments.checkpoint_every is None else arguments.checkpoint_every
        how = {"checkpoints": checkpoints, "checkpoint_every": every, "time_limit": limit}
        result = _with_progress(partial(ready, **how), line)
        result = dataclasses.replace(result, repeat=command_text(job.options, parameters, arguments.out))
        result.save(arguments.out, force=arguments.force)
        line.stage("report")
        result = with_report(result, arguments.out)
        line.finish()
    _print_result(result, getattr(arguments, "shown", arguments.out), arguments.json)


@dataclass(frozen=True)
class TableInput:
    table: Table
    missing: Any
    source: Source
    pred_probs: dict[str, Any] | None = None

    @property
    def features(self) -> Any:
        """None where the table holds labels alone, and probabilities take their place."""
        return None if self.pred_probs is not None and not self.table.features.shape[1] else self.table.features


@dataclass(frozen=True)
class PictureInput:
    pictures: Pictures
    missing: Any
    source: Source
    named: Parameters  # how pictures are to be read, as far as it was said


def is_pictures(arguments: argparse.Namespace) -> bool:
    other = (arguments.labels, arguments.id, arguments.trusted, arguments.features, *arguments.ignore)
    return holds_pictures(arguments.data, other)


def read_table(arguments: argparse.Namespace, parameters: Parameters) -> TableInput:
    """The table that the options describe."""
    _refuse(arguments, FOR_PICTURES, "pictures", f"{arguments.data} holds no pictures")
    make_config(**parameters)  # a wrong parameter is told before the data are read
    if not arguments.data.exists():
        raise DataError(f"there must be a file or folder {arguments.data}. There is none; check the path.")
    said = _annotators(arguments)
    alone = bool(arguments.pred_probs)
    if arguments.labels is None and not isinstance(said, tuple) and not (alone and arguments.data.suffix == ".npy"):
        command = arguments.verb.prog.split()[-1]
        raise ConfigError(f"{command} needs --labels COLUMN, the label column of the table.")
    how_read = arguments.labels, arguments.id, arguments.trusted, arguments.features, arguments.ignore, said
    table = load_table(arguments.data, *how_read, labels_alone=alone)
    if arguments.drop_bad_rows and alone:
        raise ConfigError("--drop-bad-rows cannot be used with --pred-probs, whose rows are those of the whole table.")
    if arguments.drop_bad_rows:
        table = drop_bad_rows(table)
    if (decided := _decided(arguments)) is not None:
        labels, trusted, notes = merge_decided(decided, table.ids, table.labels, table.trusted)
        table = dataclasses.replace(table, labels=labels, trusted=trusted, notes=[*table.notes, *notes])
    missing = _missing(arguments, _all_labels(table.labels, table.annotators), table.notes)
    source = dataclasses.replace(table_source(arguments.data, *how_read), missing=arguments.missing)
    return TableInput(table, missing, source, _pred_probs(arguments, table, said))


def _pred_probs(arguments: argparse.Namespace, table: Table, said: AnnotatorColumns) -> dict[str, Any] | None:
    """What the user's own models say; columns that have a role in the table are no classes."""
    if not arguments.pred_probs:
        return None
    people = (said,) if isinstance(said, str) else said or ()
    roles = [name for name in (arguments.labels, arguments.trusted, *people) if name is not None]
    return read_prob_files(arguments.pred_probs, arguments.id, table.ids, roles)


def _table(arguments: argparse.Namespace, parameters: Parameters) -> Callable[..., Correction] | None:
    """What is left to do once the data are read: nothing after a dry run."""
    given = read_table(arguments, parameters)
    table, missing = given.table, given.missing
    if arguments.dry_run:
        _dry_run(given, parameters, arguments.json)
        return None

    def run(**how: Any) -> Correction:
        known = {"annotators": table.annotators, "trusted": table.trusted, "ids": table.ids, "missing": missing}
        known["pred_probs"] = given.pred_probs
        result = correct(given.features, table.labels, **known, **how, **as_arguments(parameters))
        return dataclasses.replace(result, warnings=[*table.notes, *result.warnings], source=given.source)

    return run


def read_pictures(arguments: argparse.Namespace, parameters: Parameters) -> PictureInput:
    """The pictures that the options describe."""
    _refuse(arguments, FOR_VECTORS, "tables of feature vectors", f"{arguments.data} holds pictures")
    make = partial(make_config, **parameters)
    choose_mode(arguments.mode or "auto", parameters.get("device", "auto"), lambda data: make(data=data))  # likewise
    how_read = arguments.labels, arguments.id, arguments.trusted, _annotators(arguments)
    pictures = find_pictures(arguments.data, *how_read)
    if (decided := _decided(arguments)) is not None:
        labels, trusted, notes = merge_decided(decided, pictures.ids, pictures.given, pictures.trusted)
        pictures = dataclasses.replace(pictures, given=list(labels), trusted=trusted, notes=[*pictures.notes, *notes])
    missing = _missing(arguments, _all_labels(pictures.given, pictures.annotators), pictures.notes)
    named = {name: getattr(arguments, name) for name in FOR_PICTURES if getattr(arguments, name) is not None}
    source = picture_source(arguments.data, *how_read)
    return PictureInput(pictures, missing, dataclasses.replace(source, missing=arguments.missing), named)


def _pictures(arguments: argparse.Namespace, parameters: Parameters) -> Callable[..., Correction] | None:
    """The same for pictures."""
    given = read_pictures(arguments, parameters)
    if arguments.dry_run:
        _dry_run_pictures(given.pictures, given.missing, given.named, parameters, arguments.json)
        return None

    def run(**how: Any) -> Correction:
        named = {**given.named, **how, **as_arguments(parameters)}
        return dataclasses.replace(correct_images(given.pictures, missing=given.missing, **named), source=given.source)

    return run


def _annotators(arguments: argparse.Namespace) -> AnnotatorColumns:
    """The column of --annotator, or those of --annotator-columns."""
    if arguments.annotator is not None and arguments.annotator_columns is not None:
        raise ConfigError("--annotator says who gave the one label, --annotator-columns hold several. Use one of them.")
    if arguments.annotator_columns is None:
        return arguments.annotator  # type: ignore[no-any-return]
    names = tuple(name.strip() for name in arguments.annotator_columns.split(",") if name.strip())
    if not names:
        raise ConfigError("--annotator-columns must name columns, such as ann,ben,cid. Got none.")
    return names


def _all_labels(labels: Any, annotators: Any) -> list[Any]:
    """Every label there is, to find how a value is spelled."""
    columns = annotators.values() if isinstance(annotators, dict) else ()
    return [value for column in (labels, *columns) if column is not None for value in column]


def _decided(arguments: argparse.Namespace) -> Decided | None:
    """What a person decided in another run. A run that goes on takes no more than it began with."""
    if arguments.trusted_from is None:
        return None
    if arguments.annotator_columns is not None and arguments.labels is None:
        raise ConfigError("--trusted-from changes labels in use. With --annotator-columns it needs --labels COLUMN.")
    decided = read_decided(arguments.trusted_from, arguments.trusted_until)
    arguments.trusted_until = decided.until
    return decided


def _with_progress(correct: Callable[..., Correction], line: ProgressLine) -> Correction:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelmendWarning)  # they are in the summary
        try:
            return correct(callback=line.round, progress=line.stage)
        finally:
            line.finish()


def _print_result(result: Correction, folder: Path, as_json: bool) -> None:
    summary = result.summary()
    if as_json:
        print(json.dumps({**summary, "out": str(folder)}))
    else:
        print("\n".join(summary_lines(summary, folder)))


def _dry_run(given: TableInput, parameters: Parameters, as_json: bool) -> None:
    table, alone = given.table, given.features is None
    matrix, labels, trusted, probabilities = read_all(
        given.features, table.labels, table.trusted, given.missing, table.annotators, given.pred_probs
    )
    config = with_assumption(make_config(**parameters), parameters.get("assume"), alone)
    settings = resolve(config, len(labels.codes), len(labels.classes))
    choose_device(settings.device)
    cost = estimate(settings, matrix.shape[0], matrix.shape[1], len(labels.classes))
    facts = {
        "rows": matrix.shape[0],
        "columns": matrix.shape[1],
        "classes": len(labels.classes),
        "missing_labels": int((labels.codes < 0).sum()),
        "trusted": int(trusted.sum()),
        **annotator_facts(labels),
        **({} if probabilities is None else {"pred_probs": list(probabilities.models), "features": not alone}),
        "estimated_bytes": round(cost.n_bytes),
        "estimated_seconds": round(cost.seconds, 1),
        "parameters": dataclasses.asdict(settings),
        "warnings": table.notes,
    }
    _print_facts(facts, as_json)


def _dry_run_pictures(
    pictures: Pictures, missing: Any, named: Parameters, parameters: Parameters, as_json: bool
) -> None:
    _print_facts(plan(pictures, missing=missing, **named, **parameters), as_json)


def _print_facts(facts: dict[str, Any], as_json: bool) -> None:
    print(json.dumps(facts) if as_json else "\n".join(dry_run_lines(facts)))


def _refuse(arguments: argparse.Namespace, names: tuple[str, ...], kind: str, found: str) -> None:
    if used := [name for name in names if getattr(arguments, name)]:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in used)
        raise ConfigError(f"{options} can be used with {kind} only. {found}.")


def _refuse_more_than(names: tuple[str, ...], arguments: argparse.Namespace) -> None:
    known = {"resume", "run", "verb", *names}
    if any(value != arguments.verb.get_default(name) for name, value in vars(arguments).items() if name not in known):
        options = ", ".join(f"--{name.replace('_', '-')}" for name in names)
        raise ConfigError(f"--resume RUN goes on as the run began and can be used with {options} only.")


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _missing(arguments: argparse.Namespace, labels: Any, notes: list[str]) -> Any:
    """The declared missing value as the labels spell it; a note where it never occurs."""
    missing = missing_value(arguments.missing, labels)
    if arguments.missing is not None and missing is None:
        notes.append(f"no label is the missing value {arguments.missing!r}")
    return missing


def missing_value(text: str | None, labels: Any) -> Any:
    """The declared missing value as the labels spell it: -1 is also -1.0, as a number and as text. None: no such."""
    if text is None:
        return None
    return next((value for value in labels if value is not None and _same(value, text)), None)


def _same(value: Any, text: str) -> bool:
    try:
        if isinstance(value, int | np.integer) and text.strip().lstrip("+-").isdigit():
            return int(value) == int(text)  # as floats, neighbours beyond 2^53 are one number
        return str(value) == text or float(value) == float(text)
    except (TypeError, ValueError, OverflowError):
        return False

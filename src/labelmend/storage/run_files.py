"""The files of a run folder: the contract between commands. This table is the one place that says what is in it.

Classes that are numbers, booleans or text come back as they were, with their dtype; anything else comes back as text,
and so do ids. Nothing that is read is executed: CSV, JSON, npz without pickle, safetensors.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from importlib import util
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.files.reading import open_npz, read_json, regular_file
from labelmend.result import Correction, plain_value

FORMAT, FORMAT_VERSION = "labelmend run", 3
LABELS, LABELS_PARQUET, SUMMARY = "labels.csv", "labels.parquet", "summary.json"
COLUMNS = ("id", "given", "corrected", "status", "confidence", "certainty", "runner_up")
CODES, CONFIG, README = "codes.npz", "config.json", "README.md"
REVIEWED_FILE, BEFORE_REVIEW, REVIEW_LOCK = "reviewed.npz", "labels_before_review.csv", "review.lock"
EXACT_KINDS = "biufU"  # dtypes whose values JSON gives back as they were


def as_text(value: Any) -> str:
    """Text that every reader of UTF-8 accepts: half characters, as in names of damaged files, are spelled out."""
    return str(plain_value(value)).encode("utf-8", "backslashreplace").decode("utf-8")


def label_rows(result: Correction) -> list[tuple[Any, ...]]:
    """The lines of labels.csv; a missing given label is None. Numbers stay float32, whose text gives them back."""
    names = result.given.values(result.given.codes), result.given.values(result.corrected_codes), result.runner_up
    given, corrected, second = ([None if name is None else as_text(name) for name in column] for column in names)
    numbers = result.confidence.astype(np.float32), result.certainty.astype(np.float32)
    columns = map(as_text, result.ids), given, corrected, map(str, result.status), *numbers, second
    return list(zip(*columns, strict=True))


def _unreadable(result: Correction) -> Any:
    rows = [(as_text(name), as_text(reason)) for name, reason in result.unreadable.items()]
    return (("id", "reason"), rows) if rows else None


def _codes(result: Correction) -> dict[str, Any]:
    place = {None: -1} | {value: code for code, value in enumerate(result.classes.tolist())}
    return {
        "given": result.given.codes,
        "corrected": result.corrected_codes,
        "runner_up": np.array([place[value] for value in result.runner_up.tolist()], dtype=np.int64),
        "ids": np.array([as_text(name) for name in result.ids], dtype=np.str_),
        "status": result.status,
        "confidence": result.confidence.astype(np.float32),
        "certainty": result.certainty.astype(np.float32),
    }


def _votes(result: Correction) -> dict[str, Any]:
    votes = result.votes
    return {"data": votes.data, "indices": votes.indices, "indptr": votes.indptr, "shape": np.array(votes.shape)}


def _reasons(result: Correction) -> Any:
    """In a file of their own: labels.csv keeps the columns that other commands and people rely on."""
    if result.reason is None:
        return None
    fits = np.zeros(len(result), np.float32) if result.misfit is None else result.misfit
    doubtful = np.flatnonzero(result.reason != "").tolist()
    rows = [(row, as_text(result.ids[row]), str(result.reason[row]), fits[row]) for row in doubtful]
    return ("row", "id", "reason", "misfit"), rows


def _given(result: Correction) -> dict[str, Any] | None:
    if result.given_confidence is None:
        return None
    optional = {"score": result.label_score, "left_alone": result.left_alone}
    present = {name: values for name, values in optional.items() if values is not None}
    return {"confidence": result.given_confidence, **present}


def _summary(result: Correction) -> dict[str, Any]:
    return {
        **result.summary(),
        "noise_rate": float(result.noise_rate),  # not rounded, like the seconds
        "seconds": result.seconds,
        "class_values": [plain_value(value) for value in result.classes],
        "class_kind": result.classes.dtype.str if result.classes.dtype.kind in EXACT_KINDS else "object",
        "duplicates": result.duplicates,
    }


def _config(result: Correction) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "parameters": asdict(result.config),
        "versions": result.versions,
        "fingerprint": result.fingerprint,
        "repeat": result.repeat,
    }


def _made(value: Any, make: Callable[[Any], Any]) -> Any:
    return None if value is None else make(value)


@dataclass(frozen=True)
class RunFile:
    """`content` is what the run itself writes, as the ending of the name asks for it; None: not in this run."""

    name: str
    about: str  # for README.md
    content: Callable[[Correction], Any] = lambda _: None  # the default: others write it


FILES = (
    RunFile(
        LABELS,
        "id, given, corrected, status, confidence, certainty, runner_up: one line per sample, in order; a missing "
        "given label is empty, and so is the runner-up of a picture that could not be read; a copy for people of what "
        f"{CODES} holds, checked when the run is read",
        lambda result: (COLUMNS, label_rows(result)),
    ),
    RunFile("unreadable.csv", "id, reason: the pictures that could not be read; only if there are any", _unreadable),
    RunFile(
        LABELS_PARQUET,
        "labels.csv once more, where pyarrow is installed; a missing given label is null",
        lambda result: None if util.find_spec("pyarrow") is None else label_rows(result),
    ),
    RunFile("review.sqlite", "what a person decided (`labelmend review`); only where someone did"),
    RunFile(REVIEW_LOCK, "the process that has a review open; only while one is open"),
    RunFile(
        REVIEWED_FILE,
        "the decisions merged into the labels (`labelmend apply`); from then on labels.csv and labels.parquet hold the "
        "merged labels",
    ),
    RunFile(BEFORE_REVIEW, "labels.csv as the run itself wrote it; only where a review was applied"),
    RunFile(
        CODES,
        "given, corrected, runner_up: the same labels as positions in the classes (-1: no label); and ids, status, "
        "confidence, certainty",
        _codes,
    ),
    RunFile("votes.npz", "class shares of the suggestions: data, indices, indptr, shape of a CSR matrix", _votes),
    RunFile(
        "neighbors.npz",
        "indices: the nearest samples of each sample",
        lambda result: {"indices": result.neighbors},
    ),
    RunFile(
        "transition.npz",
        "transition: P(given | true), rows and columns in the order of the classes; low, high: the ends of its 90 % "
        "intervals",
        lambda result: {
            "transition": result.transition,
            **({} if result.profile is None else result.profile.ends()),
        },
    ),
    RunFile(
        "profile.json",
        "how many labels are wrong, per class and pair, with intervals, and what kind of errors they are",
        lambda result: _made(result.profile, lambda profile: profile.plain()),
    ),
    RunFile(
        "reasons.csv",
        "row, id, reason, misfit: the samples in doubt and why, in order; row is the position in labels.csv, counted "
        "from 0",
        _reasons,
    ),
    RunFile(
        "misfit.npz",
        "misfit: how badly each sample fits the classes",
        lambda result: _made(result.misfit, lambda misfit: {"misfit": misfit}),
    ),
    RunFile(
        "annotators.npz",
        "how reliable each annotator is; only where the labels came with the names of annotators",
        lambda result: _made(result.annotators, vars),
    ),
    RunFile(
        "map.npz",
        "indices, positions: some of the samples on a plane, for the report",
        lambda result: _made(result.map, vars),
    ),
    RunFile(
        "given.npz",
        "confidence: probability of each given label; score: the same before anything was adopted from the ensemble, "
        "by which suspects are ranked (low is suspicious); left_alone: whose label stays for want of evidence, first "
        "in line for review",
        _given,
    ),
    RunFile(
        "audit.json",
        "what became of planted errors; only after `--audit`",
        lambda result: _made(result.audit, asdict),
    ),
    RunFile(
        "verdict.json",
        "whether the classes are apart, and what supports the changes; not with preset paper",
        lambda result: _made(result.verdict, lambda verdict: verdict.plain()),
    ),
    RunFile(SUMMARY, "counts, noise rate, classes and their type, confused pairs, duplicates, warnings", _summary),
    RunFile(
        "history.json",
        'one record per round; its "correction" is null where a round only trained',
        lambda result: [asdict(record) for record in result.history],
    ),
    RunFile(
        CONFIG,
        "what this folder is, format version, parameters, versions, fingerprint of the data, and the command or call "
        "that made it",
        _config,
    ),
    RunFile("report.html", "what happened, on one page for people; `labelmend report` writes it anew"),
    RunFile(
        "source.json",
        "where the data came from and how they were read, to show them again",
        lambda result: _made(result.source, lambda source: source.plain()),
    ),
    RunFile("model.safetensors", "weights of the classifier"),
    RunFile(
        "model.json",
        "what kind of classifier it is, which net where it is one, and for embedded pictures which backbone comes "
        "before it, whose weights are not here",
    ),
    RunFile(README, "what each file is, and what to type next"),
)


def write_files(result: Correction, folder: Path, names: Collection[str] | None = None) -> None:
    """All files of the table that the run itself writes, but for the model; or those with these names."""
    for file in FILES:
        if (names is None or file.name in names) and (content := file.content(result)) is not None:
            write_file(folder / file.name, content)


def write_labels(result: Correction, folder: Path) -> None:
    """The files that change when a review is applied."""
    write_files(result, folder, (LABELS, LABELS_PARQUET, SUMMARY))


def write_table(result: Correction, path: Path) -> None:
    """labels.csv alone."""
    write_file(path, (COLUMNS, label_rows(result)))


def write_file(path: Path, content: Any) -> None:
    """By its ending: arrays by name, the rows of labels.parquet, (header, rows), or JSON."""
    if path.suffix == ".npz":
        np.savez_compressed(path, **content)
    elif path.suffix == ".parquet":
        _write_parquet(content, path)
    elif path.suffix == ".csv":
        header, rows = content
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *rows])
    else:
        write_json(path, content)


def write_json(path: Path, value: Any) -> None:
    """Half characters, which UTF-8 has no bytes for, are spelled \\udcXX: the escape of JSON itself."""
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def _write_parquet(rows: Sequence[Sequence[Any]], path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    kinds = {"confidence": pyarrow.float32(), "certainty": pyarrow.float32()}
    columns = zip(COLUMNS, zip(*rows, strict=True), strict=True)
    arrays = {name: pyarrow.array(column, kinds.get(name, pyarrow.string())) for name, column in columns}
    pyarrow.parquet.write_table(pyarrow.table(arrays), path)


def read_file(path: Path) -> Any:
    """Arrays by name, lines as dictionaries, or a JSON value."""
    if path.suffix == ".npz":
        with open_npz(path) as arrays:
            return {name: arrays[name] for name in arrays.files}
    if path.suffix == ".csv":
        with regular_file(path).open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    return read_json(path)


def check_array(name: str, values: NDArray[Any], shape: Sequence[int], low: int = 0, end: int | None = None) -> None:
    """A ValueError unless the array has this shape and, with `end`, holds whole numbers from `low` up to it."""
    if values.shape != tuple(shape):
        raise ValueError(f"{name} has the shape {values.shape} and not {tuple(shape)}")
    if end is None:
        return
    if values.dtype.kind not in "iu" or (values.size and not (values.min() >= low and values.max() < end)):
        raise ValueError(f"{name} holds numbers out of range")

"""The files of a run folder: the contract between commands. This table is the one place that says what is in it.

Classes that are numbers, booleans or text come back as they were, with their dtype; anything else comes back as text,
and so do ids. Nothing that is read is executed: CSV, JSON, npz without pickle, safetensors.
"""

from __future__ import annotations

import csv
import json
import shlex
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from importlib import util
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.files.reading import open_npz, read_json, regular_file
from labelmend.result import Correction, plain_value
from labelmend.storage.target import CONFIG, RUN_FORMAT

FORMAT_VERSION = 3
LABELS, LABELS_PARQUET, SUMMARY = "labels.csv", "labels.parquet", "summary.json"
COLUMNS = ("id", "given", "corrected", "status", "confidence", "certainty", "runner_up")
CODES, README = "codes.npz", "README.md"
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


# What each file is, in the words of README.md. Those that CONTENTS does not name are written by others, or later.
FILES = {
    LABELS: "id, given, corrected, status, confidence, certainty, runner_up: one line per sample, in order; empty "
    f"where there is no given label or no runner-up; a copy for people of what {CODES} holds, checked when the run is "
    "read",
    "unreadable.csv": "id, reason: the pictures that could not be read; only if there are any",
    LABELS_PARQUET: f"{LABELS} once more, where pyarrow is installed; a missing given label is null",
    "review.sqlite": "what a person decided (`labelmend review`); only where someone did",
    REVIEW_LOCK: "the process that has a review open; only while one is open",
    REVIEWED_FILE: f"the decisions merged into the labels (`labelmend apply`); from then on {LABELS} and "
    f"{LABELS_PARQUET} hold the merged labels",
    BEFORE_REVIEW: f"{LABELS} as the run itself wrote it; only where a review was applied",
    CODES: "given, corrected, runner_up: the same labels as positions in the classes (-1: no label); and ids, status, "
    "confidence, certainty",
    "votes.npz": "class shares of the suggestions: data, indices, indptr, shape of a CSR matrix",
    "neighbors.npz": "indices: the nearest samples of each sample",
    "transition.npz": "transition: P(given | true), rows and columns in the order of the classes; low, high: the ends "
    "of its 90 % intervals",
    "profile.json": "how many labels are wrong, per class and pair, with intervals, and what kind of errors they are",
    "reasons.csv": f"row, id, reason, misfit: the samples in doubt and why; row is the position in {LABELS}, from 0",
    "misfit.npz": "misfit: how badly each sample fits the classes",
    "annotators.npz": "how reliable each annotator is; only where the labels came with the names of annotators",
    "map.npz": "indices, positions: some of the samples on a plane, for the report",
    "given.npz": "confidence: probability of each given label; score: the same before anything was adopted from the "
    "ensemble, by which suspects are ranked (low is suspicious); left_alone: whose label stays for want of evidence, "
    "first in line for review",
    "audit.json": "what became of planted errors; only after `--audit`",
    "verdict.json": "whether the classes are apart, and what supports the changes; not with preset paper",
    SUMMARY: "counts, noise rate, classes and their type, confused pairs, duplicates, warnings",
    "history.json": 'one record per round; its "correction" is null where a round only trained',
    CONFIG: "what this folder is, format version, parameters, versions, fingerprint of the data, and the command or "
    "call that made it",
    "report.html": "what happened, on one page for people; `labelmend report` writes it anew",
    "source.json": "where the data came from and how they were read, to show them again",
    "model.safetensors": "weights of the classifier",
    "model.json": "what kind of classifier it is, which net where it is one, and for embedded pictures which backbone "
    "comes before it, whose weights are not here",
    README: "what each file is, and what to type next",
}


def _if(value: Any, make: Callable[[Any], Any]) -> Any:
    return None if value is None else make(value)


def _fields(record: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def _unreadable(unreadable: dict[str, str]) -> Any:
    return ("id", "reason"), [(as_text(name), as_text(reason)) for name, reason in unreadable.items()]


def _codes(run: Correction) -> dict[str, Any]:
    place = {None: -1} | {value: code for code, value in enumerate(run.classes.tolist())}
    return {
        "given": run.given.codes,
        "corrected": run.corrected_codes,
        "runner_up": np.array([place[value] for value in run.runner_up.tolist()], dtype=np.int64),
        "ids": np.array([as_text(name) for name in run.ids], dtype=np.str_),
        "status": run.status,
        "confidence": run.confidence.astype(np.float32),
        "certainty": run.certainty.astype(np.float32),
    }


def _reasons(run: Correction, reason: NDArray[np.str_]) -> Any:
    """In a file of their own: labels.csv keeps the columns that other commands and people rely on."""
    fits = np.zeros(len(run), np.float32) if run.misfit is None else run.misfit
    doubtful = np.flatnonzero(reason != "").tolist()
    rows = [(row, as_text(run.ids[row]), str(reason[row]), fits[row]) for row in doubtful]
    return ("row", "id", "reason", "misfit"), rows


def _given(run: Correction, confidence: NDArray[np.float32]) -> dict[str, Any]:
    present = {"confidence": confidence, "score": run.label_score, "left_alone": run.left_alone}
    return {name: values for name, values in present.items() if values is not None}


def _summary(run: Correction) -> dict[str, Any]:
    return {
        **run.summary(),
        "noise_rate": float(run.noise_rate),  # not rounded, like the seconds
        "seconds": run.seconds,
        "class_values": [plain_value(value) for value in run.classes],
        "class_kind": run.classes.dtype.str if run.classes.dtype.kind in EXACT_KINDS else "object",
        "duplicates": run.duplicates,
    }


CONTENTS: dict[str, Callable[[Correction], Any]] = {  # by name; None: not in this run
    LABELS: lambda run: (COLUMNS, label_rows(run)),
    "unreadable.csv": lambda run: _if(run.unreadable or None, _unreadable),
    LABELS_PARQUET: lambda run: None if util.find_spec("pyarrow") is None else label_rows(run),
    CODES: _codes,
    "votes.npz": lambda run: {**_fields(run.votes, "data", "indices", "indptr"), "shape": np.array(run.votes.shape)},
    "neighbors.npz": lambda run: {"indices": run.neighbors},
    "transition.npz": lambda run: {"transition": run.transition, **(run.profile.ends() if run.profile else {})},
    "profile.json": lambda run: _if(run.profile, lambda profile: profile.plain()),
    "reasons.csv": lambda run: _if(run.reason, lambda reason: _reasons(run, reason)),
    "misfit.npz": lambda run: _if(run.misfit, lambda misfit: {"misfit": misfit}),
    "annotators.npz": lambda run: _if(run.annotators, vars),
    "map.npz": lambda run: _if(run.map, vars),
    "given.npz": lambda run: _if(run.given_confidence, lambda confidence: _given(run, confidence)),
    "audit.json": lambda run: _if(run.audit, asdict),
    "verdict.json": lambda run: _if(run.verdict, lambda verdict: verdict.plain()),
    SUMMARY: _summary,
    "history.json": lambda run: [asdict(record) for record in run.history],
    CONFIG: lambda run: {
        "format": RUN_FORMAT,
        "format_version": FORMAT_VERSION,
        "parameters": asdict(run.config),
        **_fields(run, "versions", "fingerprint", "repeat"),
    },
    "source.json": lambda run: _if(run.source, lambda source: source.plain()),
}


def write_files(run: Correction, folder: Path, names: Collection[str] = tuple(CONTENTS)) -> None:
    """All that the run itself writes, but for the model; or those with these names."""
    for name in names:
        if (content := CONTENTS[name](run)) is not None:
            write_file(folder / name, content)


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


STATUSES = {
    "kept": "the given label stays",
    "corrected": "another label took its place",
    "review": "doubtful: the best guess, for a person to look at",
    "filled": "there was no label; this is the best guess",
    "unreadable": "the picture could not be read and keeps its label; unreadable.csv says why",
    "reviewed": "a person decided, with `labelmend review` and `labelmend apply`",
}


def run_readme(result: Correction, name: str, present: Collection[str]) -> str:
    """README.md of a run folder called `name` that holds the files `present`."""
    abouts = {file: about.replace("|", "\\|") for file, about in FILES.items()}
    rows = {file: f"| `{file}` | {about} |" for file, about in abouts.items()}
    head = ["| file | what it is |", "| --- | --- |"]
    counts = ", ".join(f"{result.count(status):,} {status}" for status in STATUSES if result.count(status))
    lines = [
        "# A run of labelmend",
        "",
        f"{len(result):,} samples of {len(result.classes):,} classes. When the run ended: {counts}.",
        "",
        *(*head, *(row for file, row in rows.items() if file in present), ""),
    ]
    if later := [row for file, row in rows.items() if file not in present]:
        lines += ["Not in every run, or made later:", "", *head, *later, ""]
    lines += ["The status of a sample, in labels.csv:", ""]
    lines += [f"- `{status}`: {about}" for status, about in STATUSES.items()]
    lines += ["", "What to do next, from the folder above this one:", "", "```sh", *_commands(result, name), "```", ""]
    lines += ["In Python: `result = labelmend.load(PATH)`. Loading executes nothing.", ""]
    return "\n".join(lines)


def _commands(result: Correction, name: str) -> list[str]:
    run = shlex.quote(name if not name.startswith("-") else f"./{name}")
    kind = "arrays" if result.source is None else result.source.kind
    hand_over = {"pictures": "folders --out sorted", "table": "csv --with-data"}.get(kind, "csv")
    return [
        f"labelmend report {run}    # a page to look at",
        f"labelmend review {run}    # decide the doubtful ones in the browser",
        f"labelmend apply {run}     # merge your decisions into the labels",
        f"labelmend export {run} --to {hand_over}",
        "labelmend export --list",
    ]

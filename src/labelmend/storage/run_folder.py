"""The run folder: the contract between commands. This is the one place that says what is in it.

    labels.csv         id, given, corrected, status, confidence, certainty, runner_up: one line per sample, in order;
                       a missing given label is empty, and so is the runner-up of a picture that could not be read;
                       a copy for people of what codes.npz holds, checked when the run is read
    unreadable.csv     id, reason: the pictures that could not be read; only where there are some
    labels.parquet     labels.csv once more, where pyarrow is installed; a missing given label is null
    review.sqlite      what a person decided (`labelmend review`), see review/decisions.py; only where someone did
    review.lock        the process that has a review open; only while one is, see run_hold.py
    reviewed.npz       the decisions merged into the labels (`labelmend apply`), see reviewed.py; then labels.csv and
                       labels.parquet hold the merged labels
    labels_before_review.csv  labels.csv as the run itself wrote it; only where a review was applied
    codes.npz          given, corrected, runner_up: the same labels as positions in the classes (-1: no label); and
                       ids, status, confidence, certainty; not in runs before it, whose labels.csv is all there is
    votes.npz          class shares of the suggestions: data, indices, indptr, shape of a CSR matrix
    neighbors.npz      indices: the nearest samples of each sample
    transition.npz     transition: P(given | true), rows and columns in the order of the classes;
                       low, high: the ends of its 90 % intervals; not in runs before the noise profile
    profile.json       how many labels are wrong, per class and pair, with intervals, and what kind of errors they are;
                       see trust/profile.py; runs before it have none
    reasons.csv        row, id, reason, misfit: the samples in doubt and why, in order; row is the position in
                       labels.csv, counted from 0; runs before it have none
    misfit.npz         misfit: how badly each sample fits the classes; likewise
    annotators.npz     how good everyone is who gave labels: the arrays of `Annotators` in trust/annotator_record.py;
                       only where it was said who did
    map.npz            indices, positions: some of the samples on a plane, for the report; runs before it have none
    given.npz          confidence: probability of each given label; score: the same before anything was adopted from the
                       ensemble, by which suspects are ranked (low is suspicious); left_alone: whose label stays for
                       want of evidence, first in line for review; not in runs before them
    audit.json         what became of planted errors, see trust/audit.py; only after `--audit`
    verdict.json       are the classes apart, and who supports the changes, see decision/verdict.py; not of preset paper
    summary.json       counts, noise rate, classes and their type, confused pairs, duplicates, warnings
    history.json       one record per round; its "correction" is null where a round only trained
    config.json        what this folder is, format version, parameters, versions, fingerprint of the data, and the
                       command or call that made it
    report.html        what happened, on one page for people; `labelmend report` writes it anew
    source.json        where the data came from and how they were read, to show them again; not in format 2
    model.safetensors  weights of the classifier
    model.json         what kind it is, which net where it is one, and for embedded pictures which backbone comes before
                       it, whose weights are not here
    README.md          what each file is, taken from this list, and what to type next

Classes that are numbers, booleans or text come back as they were, with their dtype; anything else comes back as text,
and so do ids. Labels come back as a numpy array, whatever their container was.

Everything is written to a folder .NAME.*.partial beside the target, flushed to disk and renamed into place, so a run
folder is whole or absent. What a killed run leaves behind under such a name is never read; a day later the next run of
that name takes it away. Loading executes nothing: CSV, JSON, npz without pickle, safetensors.
"""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import platform
import secrets
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from importlib import metadata, util
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from labelmend.config import RunConfig
from labelmend.decision.verdict import verdict_from
from labelmend.diagnosis.annotators import Annotators
from labelmend.diagnosis.profile import NoiseProfile, profile_from
from labelmend.diagnosis.projection import SampleMap
from labelmend.diagnosis.reasons import REASON_TYPE, REASONS
from labelmend.diagnosis.reliability import audit_from
from labelmend.ensemble.records import CorrectionRecord, RoundRecord
from labelmend.ensemble.torch_state import own_torch
from labelmend.errors import DataError, MissingExtraError, RunFolderError
from labelmend.files.reading import checked_fields, open_npz, read_json, regular_file
from labelmend.files.writing import clear_leftovers, flush, leftovers_of, put_in_place
from labelmend.inputs.containers import objects
from labelmend.labels import Labels
from labelmend.models.vectors import NetFactory, load_model
from labelmend.result import STATUS_TYPE, Correction, plain_value
from labelmend.storage.hold import refuse_held, replacing
from labelmend.storage.label_table import check_table
from labelmend.storage.reviewed import BEFORE_REVIEW, read_reviewed, with_reviewed
from labelmend.storage.reviewed import FILE as REVIEWED_FILE
from labelmend.storage.run_readme import README, run_readme
from labelmend.storage.source import source_from

FORMAT, FORMAT_VERSION = "labelmend run", 3
READABLE_VERSIONS = (2, FORMAT_VERSION)
UNREADABLE_FILE, CONFIG, SOURCE, MAP = "unreadable.csv", "config.json", "source.json", "map.npz"
ANNOTATORS = "annotators.npz"
DROPPED = ("tune",)  # parameters of older folders that mean nothing any more
GIVEN, AUDIT, VERDICT = "given.npz", "audit.json", "verdict.json"
LABELS, LABELS_PARQUET, SUMMARY = "labels.csv", "labels.parquet", "summary.json"
PROFILE, REASONS_FILE, MISFIT = "profile.json", "reasons.csv", "misfit.npz"
COLUMNS = ("id", "given", "corrected", "status", "confidence", "certainty", "runner_up")
PER_SAMPLE = ("ids", "status", "confidence", "certainty")  # in codes.npz, beside the codes
UNREVIEWED = ("id", "given")  # the columns that no review changes
EXACT_KINDS = "biufU"  # dtypes whose values JSON gives back as they were


def save(result: Correction, path: Path, force: bool = False) -> Path:
    """Write the run folder; an existing one is replaced only with `force`, and only once the new one is whole."""
    refuse_existing(path, force)
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    clear_leftovers(target.parent, leftovers_of(target.name))
    partial = target.parent / f".{target.name}.{secrets.token_hex(4)}.partial"
    try:
        partial.mkdir()
        _write_all(result, partial)
        there = {README, *(written.name for written in partial.iterdir())}
        readme = run_readme(result, target.name, __doc__ or "", there)
        (partial / README).write_text(readme, encoding="utf-8", errors="backslashreplace")
        flush(partial)
        with replacing(target):
            put_in_place(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)  # what failed, or the old run that changed places with the new one
    return path


@own_torch()
def load(path: str | Path, net: NetFactory | None = None, backbone: Any = None) -> Correction:
    """Read a run folder back. Labels come as numpy arrays; a model that is not ours needs its factory `net`.

    After `labelmend apply`, the labels are the reviewed ones.
    backbone: of a model for embedded pictures, if it was a module of your own or has moved.
    """
    folder = Path(path)
    result = load_labels(folder)
    with reading(folder):
        return replace(result, model=load_model(folder, result.classes, net, backbone))


def load_labels(folder: Path) -> Correction:
    """The same without the classifier, for whom it is not needed: `model` is None."""
    result = read_run(folder)
    with reading(folder):
        merged = with_reviewed(result, read_reviewed(folder, len(result), len(result.classes)))
        _check_merged(folder, merged)
        return merged


def read_run(folder: Path) -> Correction:
    """What the run itself said, whatever a person has decided since, and without its classifier: `model` is None."""
    config = _read_config(folder)
    if config is None:
        raise RunFolderError(f"there must be a run folder at {folder}. There is none, or its config.json is damaged.")
    if config.get("format_version") not in READABLE_VERSIONS:
        raise RunFolderError(
            f"the run folder must be of format {' or '.join(map(str, READABLE_VERSIONS))}. {folder} is of format "
            f"{config.get('format_version')}; use the version of labelmend that wrote it."
        )
    with reading(folder):
        return _read_all(folder, config)


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Say of any error on reading that the folder is damaged."""
    try:
        yield
    except (RunFolderError, MissingExtraError):
        raise
    except Exception as error:  # a damaged file can make its reader raise anything
        raise RunFolderError(
            f"the run folder must be whole. {folder} is damaged ({type(error).__name__}: {error}); "
            "run the correction again."
        ) from error


def refuse_existing(path: Path, force: bool) -> None:
    """Refuse a target that exists, or with `force` one that is not a run of ours; and one that cannot be created."""
    if path.exists() or path.is_symlink():
        if not force:
            raise RunFolderError(f"the output folder must not exist. {path} does; choose another name or use --force.")
        if not _is_replaceable(path):
            raise RunFolderError(f"--force replaces run folders only. {path} is not one; choose another name.")
        refuse_held(path)
        if holds_decisions(path):
            raise RunFolderError(
                f"--force does not delete what a person decided. {path} holds a review; choose another name, or remove "
                "its review.sqlite."
            )
    above = next(folder for folder in path.resolve().parents if folder.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise RunFolderError(f"the output folder must be in a folder one can write to. {above} is not one.")


def holds_decisions(folder: Path) -> bool:
    """Whether a person has decided anything about this run; a file that cannot be read may well hold some."""
    path = folder / "review.sqlite"
    if not path.exists():
        return False
    try:
        regular_file(path)
        with closing(sqlite3.connect(path)) as base:
            return bool(base.execute("SELECT 1 FROM log LIMIT 1").fetchone())
    except (sqlite3.Error, DataError):
        return True


def versions() -> dict[str, str]:
    """Versions of what made a result; "source" where labelmend is not installed."""
    names = ("labelmend", "torch", "numpy", "scipy", "scikit-learn")
    found = {"python": platform.python_version(), "platform": sys.platform}
    return {**found, **{name: version_of(name) or "source" for name in names}}


def version_of(library: str) -> str | None:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None


def is_run(folder: Path) -> bool:
    return _read_config(folder) is not None


def _is_replaceable(path: Path) -> bool:
    return path.is_dir() and (_read_config(path) is not None or not any(path.iterdir()))


def _read_config(folder: Path) -> dict[str, Any] | None:
    """config.json of a run folder of ours, of any version; None for anything else."""
    try:
        config = read_json(folder / CONFIG)
    except (OSError, ValueError):  # also a DataError
        return None
    return config if isinstance(config, dict) and config.get("format") == FORMAT else None


def _write_all(result: Correction, folder: Path) -> None:
    write_labels(result, folder)
    if result.unreadable:
        reasons = [(as_text(name), as_text(reason)) for name, reason in result.unreadable.items()]
        _write_csv(("id", "reason"), reasons, folder / UNREADABLE_FILE)
    _write_arrays(result, folder)
    _write_trust(result, folder)
    _write_json(folder / "history.json", [dataclasses.asdict(record) for record in result.history])
    config = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "parameters": dataclasses.asdict(result.config),
        "versions": result.versions or versions(),
        "fingerprint": result.fingerprint,
        "repeat": result.repeat,
    }
    _write_json(folder / CONFIG, config)
    if result.source is not None:
        _write_json(folder / SOURCE, result.source.plain())
    if result.audit is not None:
        _write_json(folder / AUDIT, dataclasses.asdict(result.audit))
    if result.verdict is not None:
        _write_json(folder / VERDICT, result.verdict.plain())
    result.model.save(folder)


def _write_trust(result: Correction, folder: Path) -> None:
    """Reasons are in a file of their own: labels.csv keeps the columns that other commands and people rely on."""
    if result.profile is not None:
        _write_json(folder / PROFILE, result.profile.plain())
    if result.reason is not None:
        fits = np.zeros(len(result), np.float32) if result.misfit is None else result.misfit
        rows = [
            (row, as_text(result.ids[row]), str(result.reason[row]), fits[row])
            for row in np.flatnonzero(result.reason != "").tolist()
        ]
        _write_csv(("row", "id", "reason", "misfit"), rows, folder / REASONS_FILE)


def write_labels(result: Correction, folder: Path) -> None:
    """The files that change when a review is applied."""
    rows = _label_rows(result)
    write_table(result, folder / LABELS)
    if util.find_spec("pyarrow") is not None:
        _write_parquet(rows, folder / LABELS_PARQUET)
    summary = {
        **result.summary(),
        "noise_rate": float(result.noise_rate),  # not rounded, like the seconds
        "seconds": result.seconds,
        "class_values": [plain_value(value) for value in result.classes],
        "class_kind": result.classes.dtype.str if result.classes.dtype.kind in EXACT_KINDS else "object",
        "duplicates": result.duplicates,
    }
    _write_json(folder / SUMMARY, summary)


def write_table(result: Correction, path: Path) -> None:
    """labels.csv alone."""
    _write_csv(COLUMNS, _label_rows(result), path)


def _write_arrays(result: Correction, folder: Path) -> None:
    place = {None: -1} | {value: code for code, value in enumerate(result.classes.tolist())}
    np.savez_compressed(
        folder / "codes.npz",
        given=result.given.codes,
        corrected=result.corrected_codes,
        runner_up=np.array([place[value] for value in result.runner_up.tolist()], dtype=np.int64),
        ids=np.array([as_text(name) for name in result.ids], dtype=np.str_),
        status=result.status,
        confidence=result.confidence.astype(np.float32),
        certainty=result.certainty.astype(np.float32),
    )
    votes = result.votes
    np.savez_compressed(
        folder / "votes.npz", data=votes.data, indices=votes.indices, indptr=votes.indptr, shape=np.array(votes.shape)
    )
    np.savez_compressed(folder / "neighbors.npz", indices=result.neighbors)
    ends: dict[str, Any] = {} if result.profile is None else result.profile.ends()
    np.savez_compressed(folder / "transition.npz", transition=result.transition, **ends)
    if result.misfit is not None:
        np.savez_compressed(folder / MISFIT, misfit=result.misfit)
    if result.annotators is not None:
        np.savez_compressed(folder / ANNOTATORS, **vars(result.annotators))
    if result.given_confidence is not None:
        named = {"score": result.label_score, "left_alone": result.left_alone}
        scores: dict[str, Any] = {name: values for name, values in named.items() if values is not None}
        np.savez_compressed(folder / GIVEN, confidence=result.given_confidence, **scores)
    if result.map is not None:
        np.savez_compressed(folder / MAP, indices=result.map.indices, positions=result.map.positions)


def _label_rows(result: Correction) -> list[tuple[Any, ...]]:
    """The lines of the table; a missing given label is None. Numbers stay float32, whose text gives them back."""
    columns = (
        result.ids,
        result.given.values(result.given.codes),
        result.given.values(result.corrected_codes),
        result.status,
        result.confidence.astype(np.float32),
        result.certainty.astype(np.float32),
        result.runner_up,
    )
    return [
        (
            as_text(name),
            _text_or_none(old),
            _text_or_none(new),
            str(status),
            confidence,
            certainty,
            _text_or_none(second),
        )
        for name, old, new, status, confidence, certainty, second in zip(*columns, strict=True)
    ]


def _text_or_none(value: Any) -> str | None:
    return None if value is None else as_text(value)


def as_text(value: Any) -> str:
    """Text that every reader of UTF-8 accepts: half characters, as in names of damaged files, are spelled out."""
    return str(plain_value(value)).encode("utf-8", "backslashreplace").decode("utf-8")


def _write_csv(columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)


def _read_csv(path: Path) -> list[dict[str, str]]:
    with regular_file(path).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _write_parquet(rows: list[tuple[Any, ...]], path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    numbers = {"confidence", "certainty"}
    columns = zip(COLUMNS, zip(*rows, strict=True), strict=True)
    arrays = {
        name: pyarrow.array(column, pyarrow.float32() if name in numbers else pyarrow.string())
        for name, column in columns
    }
    pyarrow.parquet.write_table(pyarrow.table(arrays), path)


def _read_all(folder: Path, config: dict[str, Any]) -> Correction:
    summary = read_json(folder / SUMMARY)
    classes = _as_kind(summary["class_values"], summary["class_kind"])
    codes = _read_arrays(folder / "codes.npz")
    votes = _read_arrays(folder / "votes.npz")
    if (folder / REVIEWED_FILE).exists() and not (folder / BEFORE_REVIEW).exists():
        raise ValueError(f"{BEFORE_REVIEW} is missing: it says what the run decided before the review")
    per_sample = {name: codes[name] for name in PER_SAMPLE} if "ids" in codes else _read_table(folder)
    unreadable = _read_csv(folder / UNREADABLE_FILE) if (folder / UNREADABLE_FILE).exists() else []
    neighbors = _read_arrays(folder / "neighbors.npz")["indices"]
    transition = _read_arrays(folder / "transition.npz")
    _check_lengths(neighbors=neighbors, votes=votes["indptr"][1:], **{**codes, **per_sample})
    n = len(codes["given"])
    for name in ("given", "corrected", "runner_up"):
        _check_range(codes[name], len(classes), f"{name} of codes.npz")
    _check_range(neighbors, n, "neighbors.npz")
    if tuple(votes["shape"]) != (n, len(classes)) or transition["transition"].shape != (len(classes), len(classes)):
        raise ValueError(f"votes.npz or transition.npz is not about {n} samples of {len(classes)} classes")
    given = Labels(codes["given"], classes, lambda values: values)
    parameters: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list) else v for k, v in config["parameters"].items() if k not in DROPPED
    }
    result = Correction(
        labels=given.decode(codes["corrected"]),
        status=per_sample["status"].astype(STATUS_TYPE),
        confidence=per_sample["confidence"].astype(np.float32),
        certainty=per_sample["certainty"].astype(np.float32),
        runner_up=given.values(codes["runner_up"]),
        noise_rate=summary["noise_rate"],
        transition=transition["transition"],
        votes=scipy.sparse.csr_matrix((votes["data"], votes["indices"], votes["indptr"]), shape=tuple(votes["shape"])),
        classes=classes,
        model=None,
        history=[as_round(record) for record in read_json(folder / "history.json")],
        config=RunConfig(**parameters),
        given=given,
        corrected_codes=codes["corrected"],
        ids=per_sample["ids"].astype(np.str_),
        neighbors=neighbors,
        fingerprint=config["fingerprint"],
        seconds=summary["seconds"],
        duplicates=summary["duplicates"],
        warnings=summary["warnings"],
        unreadable={row["id"]: row["reason"] for row in unreadable},
        map=_read_map(folder / MAP, n),
        versions=config.get("versions", {}),
        repeat=config.get("repeat", ""),
        profile=_read_profile(folder / PROFILE, transition),
        reason=_read_reasons(folder / REASONS_FILE, n),
        misfit=_read_arrays(folder / MISFIT)["misfit"] if (folder / MISFIT).exists() else None,
        source=source_from(read_json(folder / SOURCE)) if (folder / SOURCE).exists() else None,
        annotators=_read_annotators(folder / ANNOTATORS, n, len(classes)),
        given_confidence=_read_given(folder / GIVEN, "confidence", n),
        label_score=_read_given(folder / GIVEN, "score", n),
        left_alone=_read_given(folder / GIVEN, "left_alone", n),
        audit=checked_fields(audit_from(read_json(folder / AUDIT))) if (folder / AUDIT).exists() else None,
        temperature=summary.get("temperature"),
        verdict=checked_fields(verdict_from(read_json(folder / VERDICT))) if (folder / VERDICT).exists() else None,
    )
    if not all(0 <= place < n for group in checked_fields(result).duplicates for place in group):
        raise ValueError(f"duplicates of {SUMMARY} are none of {n} samples")
    _check_table(folder, result)
    return result


def _read_table(folder: Path) -> dict[str, NDArray[Any]]:
    """What runs had in their table alone, before they had it in codes.npz."""
    before = folder / BEFORE_REVIEW
    table = _read_csv(before if before.exists() else folder / LABELS)
    return {
        "ids": np.array([row["id"] for row in table], dtype=np.str_),
        "status": np.array([row["status"] for row in table], dtype=STATUS_TYPE),
        "confidence": np.array([row["confidence"] for row in table], dtype=np.float32),
        "certainty": np.array([row["certainty"] for row in table], dtype=np.float32),
    }


def _check_table(folder: Path, result: Correction) -> None:
    """The tables of the folder against the run: after a review, labels.csv holds other labels."""
    before, now = folder / BEFORE_REVIEW, folder / LABELS
    rows = _label_rows(result)
    if before.exists():
        check_table(before, COLUMNS, rows)
    if now.exists():
        check_table(now, COLUMNS, rows, UNREVIEWED if before.exists() else ())


def _check_merged(folder: Path, merged: Correction) -> None:
    """After a review, labels.csv is the merged table, or still that of the run where `apply` was interrupted."""
    before, now = folder / BEFORE_REVIEW, folder / LABELS
    if before.exists() and now.exists() and now.read_bytes() != before.read_bytes():
        check_table(now, COLUMNS, _label_rows(merged))


def _read_given(path: Path, name: str, n: int) -> NDArray[Any] | None:
    """None in folders of before there was such an array."""
    found = _read_arrays(path).get(name) if path.exists() else None
    if found is not None and found.shape != (n,):
        raise ValueError(f"{path.name} is not about {n} samples")
    return found


def _read_annotators(path: Path, n: int, n_classes: int) -> Annotators | None:
    if not path.exists():
        return None
    found = Annotators(**_read_arrays(path))
    if found.confusion.shape != (len(found), n_classes, n_classes) or found.consensus.shape != (n,):
        raise ValueError(f"{path.name} is not about {n} samples of {n_classes} classes")
    return found


def _read_map(path: Path, n: int) -> SampleMap | None:
    if not path.exists():
        return None
    arrays = _read_arrays(path)
    indices, positions = arrays["indices"], arrays["positions"]
    if positions.shape != (len(indices), 2) or (len(indices) and not 0 <= indices.min() <= indices.max() < n):
        raise ValueError(f"{path.name} is not a map of {n} samples")
    return SampleMap(indices, positions)


def _read_profile(path: Path, transition: dict[str, NDArray[Any]]) -> NoiseProfile | None:
    if not path.exists():
        return None
    return checked_fields(profile_from(read_json(path), transition["low"], transition["high"]))


def _read_reasons(path: Path, n: int) -> NDArray[np.str_] | None:
    if not path.exists():
        return None
    out = np.full(n, "", REASON_TYPE)
    for line in _read_csv(path):
        if line["reason"] not in REASONS or not 0 <= int(line["row"]) < n:
            raise ValueError(f"{path.name} has a line that no sample or no reason answers to: {line}")
        out[int(line["row"])] = line["reason"]
    return out


def as_round(record: dict[str, Any]) -> RoundRecord:
    correction = record["correction"]
    corrected = None if correction is None else CorrectionRecord(**correction)
    return checked_fields(RoundRecord(**{**record, "correction": corrected}))


def _check_lengths(**parts: Any) -> None:
    lengths = {name: len(part) for name, part in parts.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"its files differ in the number of samples, {lengths}")


def _check_range(codes: NDArray[Any], end: int, name: str) -> None:
    """Whole numbers from -1 up to `end`, which is excluded."""
    if codes.dtype.kind not in "iu" or (codes.size and not (codes.min() >= -1 and codes.max() < end)):
        raise ValueError(f"{name} has numbers out of range")


def _as_kind(values: list[Any], kind: str) -> NDArray[Any]:
    if kind == "object":
        return objects(values)
    dtype = np.dtype(kind)
    if dtype.kind not in EXACT_KINDS or (dtype.itemsize > 8 and dtype.kind != "U"):
        raise ValueError(f"classes are not of the type {kind!r}")
    return np.array(values, dtype=dtype)  # and not by way of float64


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    with open_npz(path) as arrays:
        return {name: arrays[name] for name in arrays.files}


def _write_json(path: Path, value: Any) -> None:
    # Half characters, which UTF-8 has no bytes for, are spelled \udcXX: the escape of JSON itself.
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8", errors="backslashreplace")

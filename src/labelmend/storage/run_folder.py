"""A run folder written and read; `run_files.py` says what is in it.

Everything is written to a folder .NAME.*.partial beside the target, flushed to disk and renamed into place, so a run
folder is whole or absent. What a killed run leaves behind under such a name is never read; a day later the next run of
that name takes it away. Labels come back as a numpy array, whatever their container was. Loading executes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from labelmend.config import stored
from labelmend.decision.verdict import verdict_from
from labelmend.diagnosis.annotators import Annotators
from labelmend.diagnosis.conclude import REASON_TYPE, REASONS
from labelmend.diagnosis.profile import profile_from
from labelmend.diagnosis.projection import SampleMap
from labelmend.diagnosis.reliability import audit_from
from labelmend.ensemble.records import CorrectionRecord, RoundRecord
from labelmend.ensemble.torch_state import own_torch
from labelmend.errors import MissingExtraError, RunFolderError
from labelmend.files.reading import checked_fields
from labelmend.files.writing import flush, whole_folder
from labelmend.inputs.containers import objects
from labelmend.labels import Labels
from labelmend.models.vectors import NetFactory
from labelmend.result import STATUS_TYPE, Correction
from labelmend.storage.reviewed import check_merged, check_tables, read_reviewed, replacing, with_reviewed
from labelmend.storage.run_files import (
    BEFORE_REVIEW,
    CODES,
    EXACT_KINDS,
    FORMAT_VERSION,
    LABELS,
    README,
    REVIEWED_FILE,
    SUMMARY,
    check_array,
    read_file,
    run_readme,
    write_files,
)
from labelmend.storage.source import source_from
from labelmend.storage.target import refuse_existing, run_config

READABLE_VERSIONS = (2, FORMAT_VERSION)
DROPPED = ("tune",)  # parameters of older folders that mean nothing any more
PER_SAMPLE = ("ids", "status", "confidence", "certainty")  # in codes.npz, beside the codes


def save(result: Correction, path: Path, force: bool = False) -> Path:
    """Write the run folder; an existing one is replaced only with `force`, and only once the new one is whole."""
    refuse_existing(path, force)
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    with whole_folder(target, replacing(target)) as partial:
        write_files(result, partial)
        result.model.save(partial)
        readme = run_readme(result, target.name, {README, *(written.name for written in partial.iterdir())})
        (partial / README).write_text(readme, encoding="utf-8", errors="backslashreplace")
        flush(partial)
    return path


@own_torch()
def load(path: str | Path, net: NetFactory | None = None, backbone: Any = None) -> Correction:
    """Read a run folder back. Labels come as numpy arrays; a model that is not ours needs its factory `net`.

    After `labelmend apply`, the labels are the reviewed ones.
    backbone: of a model for embedded pictures, if it was a module of your own or has moved.
    """
    from labelmend.models.saved import load_model

    folder = Path(path)
    result = load_labels(folder)
    with reading(folder):
        return replace(result, model=load_model(folder, result.classes, net, backbone))


def load_labels(folder: Path) -> Correction:
    """The same without the classifier, for whom it is not needed: `model` is None."""
    result = read_run(folder)
    with reading(folder):
        merged = with_reviewed(result, read_reviewed(folder, len(result), len(result.classes)))
        check_merged(folder, merged)
        return merged


def read_run(folder: Path) -> Correction:
    """What the run itself said, whatever a person has decided since, and without its classifier: `model` is None."""
    config = run_config(folder)
    if config is None:
        raise RunFolderError(f"no run folder at {folder}, or its config.json is damaged.")
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


def _read_all(folder: Path, config: dict[str, Any]) -> Correction:
    def optional(name: str, make: Callable[[Any], Any]) -> Any:
        return make(read_file(folder / name)) if (folder / name).exists() else None

    summary, codes, votes = (read_file(folder / name) for name in (SUMMARY, CODES, "votes.npz"))
    classes = _as_kind(summary["class_values"], summary["class_kind"])
    n, n_classes = len(codes["given"]), len(classes)
    if (folder / REVIEWED_FILE).exists() and not (folder / BEFORE_REVIEW).exists():
        raise ValueError(f"{BEFORE_REVIEW} is missing: it says what the run decided before the review")
    per_sample = {name: codes[name] for name in PER_SAMPLE} if "ids" in codes else _read_table(folder)
    scores = optional("given.npz", lambda arrays: arrays) or {}
    for name, values in per_sample.items():
        check_array(f"{name} of the samples", values, (n,))
    for name, values in scores.items():
        check_array(f"{name} of given.npz", values, (n,))
    for name in ("given", "corrected", "runner_up"):
        check_array(f"{name} of {CODES}", codes[name], (n,), -1, n_classes)
    neighbors = read_file(folder / "neighbors.npz")["indices"]
    check_array("neighbors.npz", neighbors, (n, *neighbors.shape[1:]), -1, n)
    transition = read_file(folder / "transition.npz")
    check_array("transition.npz", transition["transition"], (n_classes, n_classes))
    if tuple(votes["shape"]) != (n, n_classes):
        raise ValueError(f"votes.npz is not about {n} samples of {n_classes} classes")
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
        history=[as_round(record) for record in read_file(folder / "history.json")],
        config=stored(parameters),
        given=given,
        corrected_codes=codes["corrected"],
        ids=per_sample["ids"].astype(np.str_),
        neighbors=neighbors,
        fingerprint=config["fingerprint"],
        seconds=summary["seconds"],
        duplicates=summary["duplicates"],
        warnings=summary["warnings"],
        unreadable=optional("unreadable.csv", lambda lines: {row["id"]: row["reason"] for row in lines}) or {},
        map=optional("map.npz", lambda arrays: _map(arrays, n)),
        versions=config.get("versions", {}),
        repeat=config.get("repeat", ""),
        profile=optional("profile.json", lambda plain: profile_from(plain, transition["low"], transition["high"])),
        reason=optional("reasons.csv", lambda lines: _reasons(lines, n)),
        misfit=optional("misfit.npz", lambda arrays: arrays["misfit"]),
        source=optional("source.json", source_from),
        annotators=optional("annotators.npz", lambda arrays: _annotators(arrays, n, n_classes)),
        given_confidence=scores.get("confidence"),
        label_score=scores.get("score"),
        left_alone=scores.get("left_alone"),
        audit=optional("audit.json", audit_from),
        temperature=summary.get("temperature"),
        verdict=optional("verdict.json", verdict_from),
    )
    if not all(0 <= place < n for group in checked_fields(result).duplicates for place in group):
        raise ValueError(f"duplicates of {SUMMARY} are none of {n} samples")
    check_tables(folder, result)
    return result


def _read_table(folder: Path) -> dict[str, NDArray[Any]]:
    """What runs had in their table alone, before they had it in codes.npz."""
    before = folder / BEFORE_REVIEW
    table = read_file(before if before.exists() else folder / LABELS)
    kinds: dict[str, Any] = {"ids": np.str_, "status": STATUS_TYPE, "confidence": np.float32, "certainty": np.float32}
    columns = {name: [row["id" if name == "ids" else name] for row in table] for name in kinds}
    return {name: np.array(columns[name], dtype=kind) for name, kind in kinds.items()}


def _annotators(arrays: dict[str, NDArray[Any]], n: int, n_classes: int) -> Annotators:
    found = Annotators(**arrays)
    check_array("annotators.npz", found.confusion, (len(found), n_classes, n_classes))
    check_array("annotators.npz", found.consensus, (n,))
    return found


def _map(arrays: dict[str, NDArray[Any]], n: int) -> SampleMap:
    found = SampleMap(arrays["indices"], arrays["positions"])
    check_array("map.npz", found.positions, (len(found.indices), 2))
    check_array("map.npz", found.indices, (found.indices.size,), 0, n)
    return found


def _reasons(lines: list[dict[str, str]], n: int) -> NDArray[np.str_]:
    out = np.full(n, "", REASON_TYPE)
    for line in lines:
        if line["reason"] not in REASONS or not 0 <= int(line["row"]) < n:
            raise ValueError(f"reasons.csv has a line that fits no sample or no reason: {line}")
        out[int(line["row"])] = line["reason"]
    return out


def as_round(record: dict[str, Any]) -> RoundRecord:
    correction = record["correction"]
    corrected = None if correction is None else CorrectionRecord(**correction)
    return checked_fields(RoundRecord(**{**record, "correction": corrected}))


def _as_kind(values: list[Any], kind: str) -> NDArray[Any]:
    if kind == "object":
        return objects(values)
    dtype = np.dtype(kind)
    if dtype.kind not in EXACT_KINDS or (dtype.itemsize > 8 and dtype.kind != "U"):
        raise ValueError(f"classes are not of the type {kind!r}")
    return np.array(values, dtype=dtype)  # and not by way of float64

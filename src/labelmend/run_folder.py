"""The run folder: the contract between commands. This is the one place that says what is in it.

    labels.csv         id, given, corrected, status, confidence, certainty, runner_up: one line per sample, in order
    labels.parquet     the same, where pyarrow is installed
    votes.npz          class shares of the suggestions: data, indices, indptr, shape of a CSR matrix
    neighbors.npz      indices: the nearest samples of each sample
    summary.json       counts, noise rate, transition matrix, classes, confused pairs, duplicates, warnings
    history.json       one record per round
    config.json        parameters, versions, fingerprint of the data, format version
    model.safetensors  weights of the classifier; model.json says which net it is

Everything is written to a temporary folder beside the target, flushed to disk and renamed into place, so a run folder
is whole or absent. Loading executes nothing: CSV, JSON, npz without pickle, safetensors.
"""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from importlib import metadata, util
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from labelmend.config import RunConfig
from labelmend.data.labels import Labels
from labelmend.errors import RunFolderError
from labelmend.model import load_model
from labelmend.records import RoundRecord
from labelmend.result import Correction, _plain

FORMAT_VERSION = 1
COLUMNS = ("id", "given", "corrected", "status", "confidence", "certainty", "runner_up")


def refuse_existing(path: Path, force: bool) -> None:
    """An output folder that exists is never written over by accident, and never if it is not a run of ours."""
    if not path.exists() and not path.is_symlink():
        return
    if not force:
        raise RunFolderError(f"the output folder must not exist. {path} does; choose another name or use --force.")
    if not (path / "config.json").is_file() and (not path.is_dir() or any(path.iterdir())):
        raise RunFolderError(f"--force replaces run folders only. {path} is not one; choose another name.")


def save(result: Correction, path: Path, force: bool = False) -> Path:
    refuse_existing(path, force)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent))
    try:
        _write_all(result, temporary)
        temporary.chmod(0o755)
        for written in temporary.iterdir():
            _flush(written)
        _put_in_place(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return path


def load(path: str | Path, net: Callable[[], Any] | None = None) -> Correction:
    """Read a run folder back. Labels come as numpy arrays; a model that is not ours needs its factory `net`."""
    folder = Path(path)
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunFolderError(
            f"{folder} must be a run folder with a config.json. Could not read it: {error}."
        ) from error
    if config.get("format_version") != FORMAT_VERSION:
        raise RunFolderError(
            f"the run folder must be of format {FORMAT_VERSION}. {folder} is of format {config.get('format_version')}; "
            "use the version of labelmend that wrote it."
        )
    try:
        return _read_all(folder, config, net)
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise RunFolderError(
            f"{folder} is damaged: {type(error).__name__}: {error}. Run the correction again."
        ) from error


def _write_all(result: Correction, folder: Path) -> None:
    rows = _label_rows(result)
    with (folder / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(rows)
    if util.find_spec("pyarrow") is not None:
        _write_parquet(rows, folder / "labels.parquet")
    votes = result.votes
    np.savez_compressed(
        folder / "votes.npz", data=votes.data, indices=votes.indices, indptr=votes.indptr, shape=np.array(votes.shape)
    )
    np.savez_compressed(
        folder / "neighbors.npz", indices=result.neighbors, given=result.given.codes, corrected=result.corrected_codes
    )
    summary = {
        **result.summary(),
        "class_values": [_plain(value) for value in result.classes],
        "class_kind": _kind(result.classes),
        "transition": result.transition.round(6).tolist() if len(result.classes) <= 100 else None,
        "duplicates": result.duplicates[:1000],
    }
    _write_json(folder / "summary.json", summary)
    np.savez_compressed(folder / "transition.npz", transition=result.transition)
    _write_json(folder / "history.json", [dataclasses.asdict(record) for record in result.history])
    config = {
        "format_version": FORMAT_VERSION,
        "parameters": dataclasses.asdict(result.config),
        "versions": versions(),
        "fingerprint": result.fingerprint,
    }
    _write_json(folder / "config.json", config)
    result.model.save(folder)


def _label_rows(result: Correction) -> list[tuple[Any, ...]]:
    given = result.given.values(result.given.codes)
    corrected = result.given.values(result.corrected_codes)
    return [
        (
            _plain(id_),
            "" if old is None else _plain(old),
            _plain(new),
            str(status),
            round(float(confidence), 6),
            round(float(certainty), 6),
            _plain(second),
        )
        for id_, old, new, status, confidence, certainty, second in zip(
            result.ids,
            given,
            corrected,
            result.status,
            result.confidence,
            result.certainty,
            result.runner_up,
            strict=True,
        )
    ]


def _write_parquet(rows: list[tuple[Any, ...]], path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    columns = list(zip(*rows, strict=True))
    text = {"id", "given", "corrected", "status", "runner_up"}
    arrays = {
        name: [str(value) for value in column] if name in text else list(column)
        for name, column in zip(COLUMNS, columns, strict=True)
    }
    pyarrow.parquet.write_table(pyarrow.table(arrays), path)


def _read_all(folder: Path, config: dict[str, Any], net: Callable[[], Any] | None) -> Correction:
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    classes = _as_kind(summary["class_values"], summary["class_kind"])
    with np.load(folder / "neighbors.npz", allow_pickle=False) as arrays:
        neighbors, given_codes, corrected = arrays["indices"], arrays["given"], arrays["corrected"]
    with np.load(folder / "votes.npz", allow_pickle=False) as arrays:
        shape = tuple(arrays["shape"])
        votes = scipy.sparse.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
    with np.load(folder / "transition.npz", allow_pickle=False) as arrays:
        transition = arrays["transition"]
    with (folder / "labels.csv").open(newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    if len(table) != len(corrected):
        raise ValueError(f"labels.csv has {len(table)} rows, neighbors.npz {len(corrected)}")
    parameters = {k: tuple(v) if isinstance(v, list) else v for k, v in config["parameters"].items()}
    given = Labels(given_codes, classes, lambda values: values)
    place = {str(_plain(value)): number for number, value in enumerate(classes)}
    return Correction(
        labels=given.decode(corrected),
        status=np.array([row["status"] for row in table]),
        confidence=np.array([row["confidence"] for row in table], dtype=np.float32),
        certainty=np.array([row["certainty"] for row in table], dtype=np.float32),
        runner_up=classes[[place[row["runner_up"]] for row in table]],
        noise_rate=summary["noise_rate"],
        transition=transition,
        votes=votes,
        classes=classes,
        model=load_model(folder, classes, net),
        history=[RoundRecord(**record) for record in json.loads((folder / "history.json").read_text(encoding="utf-8"))],
        config=RunConfig(**parameters),
        given=given,
        corrected_codes=corrected,
        ids=np.array([row["id"] for row in table]),
        neighbors=neighbors,
        fingerprint=config["fingerprint"],
        seconds=summary["seconds"],
        duplicates=summary["duplicates"],
        warnings=summary["warnings"],
    )


def versions() -> dict[str, str]:
    """Versions of what made a result; "source" where labelmend is not installed."""
    names = ("labelmend", "torch", "numpy", "scipy", "scikit-learn")
    found = {"python": platform.python_version(), "platform": sys.platform}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "source"
    return found


def _kind(classes: NDArray[Any]) -> str:
    """How to turn JSON values back into classes of the same type."""
    if classes.dtype != object:
        return classes.dtype.str
    return "object"


def _as_kind(values: list[Any], kind: str) -> NDArray[Any]:
    if kind != "object":
        return np.array(values, dtype=np.dtype(kind))
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _flush(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _put_in_place(temporary: Path, path: Path) -> None:
    """Rename; the old folder steps aside first and is deleted only when the new one stands."""
    if not path.exists():
        temporary.rename(path)
        return
    aside = temporary.with_suffix(".replaced")
    path.rename(aside)
    try:
        temporary.rename(path)
    except BaseException:
        aside.rename(path)
        raise
    shutil.rmtree(aside, ignore_errors=True)

"""Checkpoints: a run goes on where it was, after whatever ended it. The one place that says what is in them.

    round-000017.safetensors  the state after round 17 (0: after the warm-up): every tensor of `state_tensors.py`, and
                              in the header's metadata "about" (JSON: format, history, parameters, data, versions)
                              and "checksum" (CRC-32 of all of it)
    lock                      the process that uses the folder

A checkpoint is written under another name, flushed to disk and renamed: it is whole or absent. The newest two are
kept; an older one goes once a newer is whole. Loading executes nothing. On a CPU a run that went on from a checkpoint
ends like one that was never interrupted, bit for bit.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import secrets
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from labelmend.config import RunConfig
from labelmend.data.json_file import parse_json
from labelmend.data.regular_file import regular_file
from labelmend.errors import CheckpointError, ConfigError
from labelmend.folder_lock import locked
from labelmend.in_place import flush_names
from labelmend.run_folder import as_round, versions
from labelmend.state import Problem, RoundState
from labelmend.state_tensors import Tensors, fill, to_tensors

FORMAT, FORMAT_VERSION = "labelmend checkpoint", 1
CHECKPOINT_SECONDS = 20.0
PAUSE_PER_WRITE = 10
KEPT = 2
COUNTS = ("rows", "classes")
GLIMPSE = 64  # samples, and numbers of each, that show whether nets would see the same


class NoCheckpoints:
    """Keeps nothing: every run begins at the beginning."""

    def __init__(self) -> None:
        self.notes: list[str] = []  # for the user
        self.seconds = 0.0  # that the run took before it went on here

    def restore(self, state: RoundState) -> bool:
        """Bring `state`, as `state.start` made it, to where the run was; False if nothing is kept."""
        return False

    def save(self, state: RoundState) -> None:
        """Keep `state`, if the last time is long enough ago."""


@dataclass(frozen=True)
class Subject:
    """What a run is about; one may go on from the checkpoints of another only if all of this is the same."""

    data: dict[str, Any]
    parameters: dict[str, Any]
    glimpse: Tensor  # of some samples as the nets see them

    @classmethod
    def of(cls, problem: Problem, config: RunConfig, fingerprint: str) -> Subject:
        device, rows = problem.samples.device, len(problem.given_labels)
        data = {
            "rows": rows,
            "classes": problem.n_classes,
            "given labels": _digest(problem.given_labels),
            "trusted marks": _digest(problem.trusted),
            "annotators": None if problem.opinions is None else _digest(problem.opinions.entries()),
            "fingerprint": fingerprint,
        }
        parameters = json.loads(json.dumps({**dataclasses.asdict(config), "device": device.type}))
        some = torch.arange(min(GLIMPSE, rows), device=device)
        glimpse = problem.samples.batch(some, "none", None).flatten(1)[:, :GLIMPSE].float().cpu()
        return cls(data, parameters, glimpse)

    def differences(self, data: dict[str, Any], parameters: dict[str, Any], glimpse: Tensor) -> list[str]:
        """In words; parameters only where the data are the same, because they follow the data."""
        changed = [name for name in self.data if self.data[name] != data.get(name)]
        if numbers := [f"{name} ({self.data[name]}, were {data[name]})" for name in COUNTS if name in changed]:
            return numbers
        if changed or not _close(self.glimpse, glimpse):
            return [name for name in changed if name != "fingerprint"] or ["features, pictures or pred_probs"]
        names = sorted({*self.parameters, *parameters})
        pairs = [(name, self.parameters.get(name), parameters.get(name)) for name in names]
        return [f"{name} ({mine!r}, was {theirs!r})" for name, mine, theirs in pairs if mine != theirs]


class Checkpoints(NoCheckpoints):
    """Keeps a run in a folder, at least `every` seconds apart; longer where writing would take a tenth of the time."""

    def __init__(
        self, folder: Path, subject: Subject, every: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self.folder, self.subject, self.every, self.clock = folder, subject, every, clock
        self._began = self._saved = clock()
        self._pause = every

    def restore(self, state: RoundState) -> bool:
        to_tensors(state)  # a net that cannot be kept is told now, not after the first round
        unusable: dict[Path, str] = {}
        for path in reversed(kept(self.folder)):
            try:
                found, about = read(path)
            except Damaged as damage:
                unusable[path] = str(damage)
                continue
            self._refuse_other_runs(found, about)
            fill(state, found, self.subject.parameters["average_decay"])
            state.history[:] = [as_round(record) for record in about["history"]]
            self.seconds = about["seconds"]
            self._pass_over(unusable, state.round_index)
            return True
        if unusable:
            path, why = next(iter(unusable.items()))
            raise CheckpointError(
                f"there must be a whole checkpoint to go on from. Each of the {len(unusable)} in {self.folder} is "
                f"damaged, {path.name} like this: {why}. Begin anew: delete the folder (labelmend correct: --force)."
            )
        return False

    def save(self, state: RoundState) -> None:
        began = self.clock()
        if began - self._saved < self._pause:
            return
        about = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "history": [dataclasses.asdict(record) for record in state.history],
            "seconds": self.seconds + began - self._began,
            "data": self.subject.data,
            "parameters": self.subject.parameters,
            "versions": versions(),
        }
        path = self.folder / f"round-{state.round_index:06d}.safetensors"
        try:
            write(path, {**to_tensors(state), "glimpse": self.subject.glimpse}, about)
            for old in kept(self.folder)[:-KEPT]:
                old.unlink()
        except (OSError, SafetensorError) as error:  # a full disk; better a run without checkpoints than none
            self.notes.append(f"the checkpoint after round {state.round_index} could not be written: {error}")
        self._saved = self.clock()
        if self.every:  # 0 means after every round, whatever it costs: 400 MB take a second or five
            self._pause = max(self.every, PAUSE_PER_WRITE * (self._saved - began))

    def _refuse_other_runs(self, found: Tensors, about: dict[str, Any]) -> None:
        if about["format_version"] != FORMAT_VERSION:
            raise CheckpointError(
                f"checkpoints must be of format {FORMAT_VERSION}. Those in {self.folder} are of format "
                f"{about['format_version']}; use the version of labelmend that wrote them, or begin anew."
            )
        if differences := self.subject.differences(about["data"], about["parameters"], found["glimpse"]):
            raise CheckpointError(
                f"a run can go on only as it began. Since the checkpoints in {self.folder} these have changed: "
                f"{', '.join(differences)}. Put them back, or begin anew: delete the folder (labelmend correct: "
                "--force)."
            )

    def _pass_over(self, unusable: dict[Path, str], round_index: int) -> None:
        for path, why in unusable.items():
            self.notes.append(
                f"the checkpoint {path.name} was damaged ({why}); the run went on from the one before, after round "
                f"{round_index}"
            )
            path.unlink()  # or it would count as one of the newest two


@contextmanager
def checkpoints_in(folder: str | Path | None, every: float, subject: Callable[[], Subject]) -> Iterator[NoCheckpoints]:
    """The checkpoints of one run, with its folder kept from other processes."""
    if not (isinstance(every, int | float) and 0 <= every < math.inf):
        raise ConfigError(f"checkpoint_every must be seconds, at least 0. Got {every!r} instead.")
    if folder is None:
        yield NoCheckpoints()
        return
    with locked(Path(folder)):
        for rest in Path(folder).glob(".*.partial"):  # of a run that was killed while it wrote
            rest.unlink()
        yield Checkpoints(Path(folder), subject(), every)


def kept(folder: Path) -> list[Path]:
    """The checkpoints of a folder, the newest last."""
    return sorted(folder.glob("round-*.safetensors"))


class Damaged(Exception):
    """A checkpoint that is not what was written."""


def write(path: Path, tensors: Tensors, about: dict[str, Any]) -> None:
    """Whole or not at all."""
    stored = {
        name: value.detach().cpu().clone(memory_format=torch.contiguous_format) for name, value in tensors.items()
    }
    # Sums over numbers in another order of memory are rounded differently, so that order is kept too.
    strides = {name: torch.empty_like(value, device="meta").stride() for name, value in tensors.items()}
    text = json.dumps({**about, "strides": {name: s for name, s in strides.items() if s != stored[name].stride()}})
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        save_file(stored, partial, {"about": text, "checksum": _checksum(stored, text)})
        with partial.open("r+b") as file:
            os.fsync(file.fileno())
        partial.replace(path)
        flush_names(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def read(path: Path) -> tuple[Tensors, dict[str, Any]]:
    try:
        with safe_open(regular_file(path), framework="pt") as file:
            metadata = file.metadata() or {}
            stored = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no dict)
        if metadata["checksum"] != _checksum(stored, metadata["about"]):
            raise Damaged("its checksum is wrong")
        about = parse_json(metadata["about"])
        if about["format"] != FORMAT:
            raise Damaged("it is no checkpoint")
    except (OSError, SafetensorError, KeyError, ValueError, TypeError, RuntimeError, MemoryError) as error:
        raise Damaged(f"{type(error).__name__}: {error}") from error
    strides = about.pop("strides", {})
    found = {}
    for name, value in stored.items():
        place = torch.empty_strided(value.shape, strides.get(name, value.stride()), dtype=value.dtype)
        found[name] = place.copy_(value)
    return found, about


def _checksum(tensors: Tensors, text: str) -> str:
    number = zlib.crc32(text.encode())
    for name in sorted(tensors):
        value = tensors[name]
        number = zlib.crc32(f"{name} {value.dtype} {tuple(value.shape)}".encode(), number)
        number = zlib.crc32(value.reshape(-1).view(torch.uint8).numpy().data, number)
    return f"{number:08x}"


def _digest(tensor: Tensor) -> str:
    return hashlib.sha256(tensor.cpu().contiguous().numpy().data).hexdigest()


def _close(one: Tensor, other: Tensor) -> bool:
    """Alike but for rounding, which may differ with the number of threads."""
    return one.shape == other.shape and torch.allclose(one, other, rtol=1e-3, atol=1e-3)

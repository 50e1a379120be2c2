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
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from labelmend.config import Settings
from labelmend.ensemble.nets import FollowingNet
from labelmend.ensemble.run import NoCheckpoints
from labelmend.ensemble.split import Split
from labelmend.ensemble.state import Problem, RoundState
from labelmend.ensemble.stepper import Optimizer
from labelmend.ensemble.vote import Vote
from labelmend.errors import CheckpointError, ConfigError
from labelmend.files.reading import parse_json, regular_file
from labelmend.files.writing import locked, whole_file
from labelmend.storage.run_folder import as_round
from labelmend.storage.source import versions

FORMAT, FORMAT_VERSION = "labelmend checkpoint", 1
CHECKPOINT_SECONDS = 20.0
PAUSE_PER_WRITE = 10
KEPT = 2
COUNTS = ("rows", "classes")
GLIMPSE = 64  # samples, and numbers of each, that show whether nets would see the same


@dataclass(frozen=True)
class Subject:
    """What a run is about; one may go on from the checkpoints of another only if all of this is the same."""

    data: dict[str, Any]
    parameters: dict[str, Any]
    glimpse: Tensor  # of some samples as the nets see them

    @classmethod
    def of(cls, problem: Problem, config: Settings, fingerprint: str) -> Subject:
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
                f"no checkpoint can be used: all {len(unusable)} in {self.folder} are damaged, for example "
                f"{path.name}: {why}. Begin anew: delete the folder (labelmend correct: --force)."
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
def checkpoints_in(folder: str | Path, every: float, subject: Callable[[], Subject]) -> Iterator[Checkpoints]:
    """The checkpoints of one run, with its folder kept from other processes."""
    if not (isinstance(every, int | float) and 0 <= every < math.inf):
        raise ConfigError(f"checkpoint_every must be seconds, at least 0. Got {every!r} instead.")
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
    with whole_file(path) as partial:
        save_file(stored, partial, {"about": text, "checksum": _checksum(stored, text)})


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


Tensors = dict[str, Tensor]
SPLIT = ("branch_of", "package_of", "seed_indices")


def to_tensors(state: RoundState) -> Tensors:
    """Everything a run needs to go on; the tensors are those of the state, not copies."""
    found = {
        **_places(state),
        **_momentum(state),
        **_generators(state),
        "round_index": torch.tensor(state.round_index),
        "corrected_labels": state.corrected_labels,
        "omega": state.omega,
    }
    if state.split is not None:
        found |= {f"split.{name}": getattr(state.split, name) for name in SPLIT}
        found["split.similarity"] = torch.tensor(state.split.similarity, dtype=torch.float64)
    if state.vote is not None:
        share = state.vote.share
        found |= {"vote.labels": state.vote.labels, "vote.certainty": state.vote.certainty}
        found |= {"vote.share.rows": share.crow_indices(), "vote.share.columns": share.col_indices()}
        found["vote.share.values"] = share.values()
    if state.neighbors is not None:
        found["neighbors"] = state.neighbors
    return found


@torch.no_grad()
def fill(state: RoundState, found: Tensors, average_decay: float) -> None:
    """Go on from `found`. `state` is as `state.start` makes it; its tensors stay where they are."""
    device = state.held_out.device
    if average_decay:
        state.average = FollowingNet(state.corrected_net, average_decay)
    for name, place in _checked_places(state, found).items():
        place.copy_(found[name])
    for name, parameter, optimizer in _trained(state):
        if name in found:
            optimizer.state[parameter]["momentum_buffer"] = found[name].to(parameter.device)
    state.round_index = int(found["round_index"])
    state.corrected_labels, state.omega = found["corrected_labels"].to(device), found["omega"].to(device)
    if "split.branch_of" in found:
        parts = {name: found[f"split.{name}"].to(device) for name in SPLIT}
        state.split = Split(**parts, similarity=float(found["split.similarity"]))
    if "vote.labels" in found:
        share = _share(found, tuple(state.held_out.shape))
        state.vote = Vote(found["vote.labels"].to(device), found["vote.certainty"].to(device), share)
    if "neighbors" in found:
        state.neighbors = found["neighbors"].to(device)
    _set_generators(state, found)


def _places(state: RoundState) -> Tensors:
    """Tensors that are written to but never replaced."""
    found = {"held_out": state.held_out, "targets.labels": state.targets.labels, "targets.omega": state.targets.omega}
    if state.targets.soft is not None:
        found["targets.soft"] = state.targets.soft
    if state.targets.answers is not None:
        found["targets.answers"] = state.targets.answers
    nets = {"noisy_net": state.noisy_net, "corrected_net": state.corrected_net}
    nets |= {f"branch_nets.{position}": net for position, net in enumerate(state.branch_nets)}
    if state.average is not None:
        nets["average"] = state.average.net
    for name, net in nets.items():
        # The state of a net leaves out buffers that are not worth a file of their own; a run may still change them.
        for part, value in {**dict(net.named_buffers()), **net.state_dict()}.items():
            if not isinstance(value, Tensor):
                raise ConfigError(
                    f"checkpoints need nets whose state is tensors. {type(net).__name__} has {part}, "
                    f"a {type(value).__name__}; leave it out or go without checkpoints."
                )
            found[f"{name}.{part}"] = value
    return found


def _checked_places(state: RoundState, found: Tensors) -> Tensors:
    places = _places(state)
    theirs = {name: value.shape for name, value in found.items() if name in places}
    if theirs != {name: place.shape for name, place in places.items()}:
        raise CheckpointError(
            "checkpoints must be of the same nets. These are of others; use the net they were made with, or another "
            "folder."
        )
    return places


def _momentum(state: RoundState) -> Tensors:
    held = {name: optimizer.state[weight].get("momentum_buffer") for name, weight, optimizer in _trained(state)}
    return {name: value for name, value in held.items() if value is not None}


def _trained(state: RoundState) -> Iterator[tuple[str, nn.Parameter, Optimizer]]:
    """The weights that have a momentum from one round to the next, each with the name of it."""
    for name in ("noisy_optimizer", "corrected_optimizer"):
        optimizer: Optimizer = getattr(state, name)
        for position, weight in enumerate(optimizer.param_groups[0]["params"]):
            yield f"{name}.{position}", weight, optimizer


def _generators(state: RoundState) -> Tensors:
    """Ours, and torch's own, from which the dropout of a net draws."""
    device = state.generator.device
    found = {"generator": state.generator.get_state(), "torch_generator": torch.get_rng_state()}
    if device.type == "cuda":
        found["cuda_generator"] = torch.cuda.get_rng_state(device)
    return found


def _set_generators(state: RoundState, found: Tensors) -> None:
    state.generator.set_state(found["generator"])
    torch.set_rng_state(found["torch_generator"])
    if "cuda_generator" in found:
        torch.cuda.set_rng_state(found["cuda_generator"], state.generator.device)


def _share(found: Tensors, shape: tuple[int, ...]) -> Tensor:
    rows, columns, values = (found[f"vote.share.{name}"] for name in ("rows", "columns", "values"))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Ss]parse.*")  # torch: "CSR support is in beta state"
        return torch.sparse_csr_tensor(rows, columns, values, size=shape, check_invariants=False)

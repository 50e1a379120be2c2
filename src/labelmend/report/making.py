"""How a result was made: what one needs to make it again, and where the time went."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from labelmend.config import RunConfig
from labelmend.result import Correction

STAGES = {
    "embed": "features of all samples",
    "split": "packages of near neighbours dealt to subsets",
    "branches": "training of the branch nets",
    "graphs": "nearest-neighbour graphs",
    "propagate": "propagation of labels on them",
    "vote": "votes",
    "train": "training of the classifier on the voted labels",
}
REST = "warm-up, decision, map and reading"


@dataclass(frozen=True)
class Parameter:
    name: str
    value: str
    about: str


@dataclass(frozen=True)
class Stage:
    name: str
    seconds: float


@dataclass(frozen=True)
class Making:
    repeat: str  # the command or call; "": not recorded
    seed: int
    parameters: tuple[Parameter, ...]
    versions: tuple[tuple[str, str], ...]
    stages: tuple[Stage, ...]
    seconds: float
    fingerprint: str


def describe_making(result: Correction) -> Making:
    return Making(
        repeat=result.repeat,
        seed=result.config.seed,
        parameters=tuple(
            Parameter(entry.name, _shown(getattr(result.config, entry.name)), str(entry.metadata["help"]))
            for entry in dataclasses.fields(RunConfig)
        ),
        versions=tuple(result.versions.items()),
        stages=stages(result),
        seconds=result.seconds,
        fingerprint=result.fingerprint,
    )


def stages(result: Correction) -> tuple[Stage, ...]:
    """Seconds of each stage, summed over the rounds; what is not in the rounds' records is the rest."""
    total: dict[str, float] = {}
    for record in result.history:
        for name, seconds in record.seconds.items():
            total[name] = total.get(name, 0.0) + seconds
    found = [Stage(STAGES.get(name, name), seconds) for name, seconds in total.items()]
    return (*found, Stage(REST, max(0.0, result.seconds - sum(total.values()))))


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return " ".join(map(str, value)) or "none"
    return "none" if value in (None, "") else str(value)

"""The experiments by name, each loaded when it is asked for."""

from __future__ import annotations

from importlib import import_module

from bench.paper.experiment import Experiment
from labelmend.errors import ConfigError

# NAME -> module of this package that holds it in EXPERIMENTS, in the order of docs/paper.md.
MODULES = {
    "cifar10": "cifar",
    "cifar100": "cifar",
    "readings": "readings",
    "miniature": "miniature",
    "miniature-readings": "miniature",
    "clothing1m": "photos",
    "clothing1m-hybrid": "photos",
    "food101n": "photos",
    "branches": "ensemble",
    "patches": "ensemble",
    "combinations": "ensemble",
    "losses": "ensemble",
    "resplit": "ensemble",
    "certainty": "certainty",
    "similarity": "ensemble",
    "maps": "maps",
    "architecture": "ensemble",
    "peers": "peers",
}


def experiment_named(name: str) -> Experiment:
    if name not in MODULES:
        raise ConfigError(f"NAME must be one of {', '.join(MODULES)}. Got {name!r} instead.")
    module = import_module(f"{__package__}.{MODULES[name]}")
    experiment: Experiment = module.EXPERIMENTS[name]
    return experiment

"""What the trials before a run showed and what was chosen, as plain records. Knows JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

RULES = "the rules"


@dataclass(frozen=True)
class Trial:
    """One setting, tried on some of the samples with errors planted among them."""

    name: str
    changes: dict[str, Any]  # what it changes in the setting that follows the rules
    named: float  # share of the planted errors of which the graphs name the label that was there
    contradicted: float  # share of the labels that look clean and the graphs contradict
    gain: float  # `named`, above that of the rules
    error: float  # standard error of that difference; 0 for the rules


@dataclass(frozen=True)
class Tuning:
    chosen: str  # name of a trial
    changes: dict[str, Any]  # of the run's setting; none: the rules
    why: str
    trials: tuple[Trial, ...]
    samples: int = 0  # of each trial
    planted: int = 0


def tuning_from(record: Mapping[str, Any]) -> Tuning:
    """A tuning from its JSON."""
    return Tuning(**{**record, "trials": tuple(Trial(**one) for one in record["trials"])})

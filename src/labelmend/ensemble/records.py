"""What a round tells the world, with the time each stage took; and when to stop early."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from labelmend.errors import ConfigError

GOING_ON = "resuming"  # begins the name of the stage that takes the place of a warm-up after an interruption


@dataclass(frozen=True)
class CorrectionRecord:
    """How the labels of a round came about."""

    branch_loss: float
    graph_similarity: list[float]  # mean cosine over the edges, per branch
    package_similarity: float  # mean cosine between seed samples and their packages
    subset_sizes: list[int]
    solver_iterations: int
    solver_residual: float
    solver_converged: bool


@dataclass(frozen=True)
class RoundRecord:
    """One line of a run's history."""

    round_index: int  # counted from 1
    n_rounds: int
    label_changes: int  # against the previous vote
    differ_from_given: int
    mean_certainty: float
    certainty_histogram: list[int]  # 20 bins over [0, 1]
    correction: CorrectionRecord | None  # None in a round that only trains
    corrected_loss: float
    noisy_loss: float | None
    seconds: dict[str, float] = field(default_factory=dict)


class Stopwatch:
    """Seconds per stage; announces each stage as it begins.

    `wait` is called at every border: a GPU goes on working on a stage after the program has left it.
    """

    def __init__(self, announce: Callable[[str], None], wait: Callable[[], None] | None = None) -> None:
        self.announce, self.wait = announce, wait
        self.seconds: dict[str, float] = {}
        self._stage: str | None = None
        self._since = time.perf_counter()

    def lap(self, stage: str | None) -> None:
        """End the stage that runs and begin `stage` (None: nothing follows)."""
        if self.wait is not None:
            self.wait()
        now = time.perf_counter()
        if self._stage is not None:
            self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + now - self._since
        self._stage, self._since = stage, now
        if stage is not None:
            self.announce(stage)


UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}
RECENT = 3  # rounds of a kind that say how long the next one will take: the first on a GPU is slow


class TimeLimit:
    """Counts from when it is made."""

    def __init__(self, seconds: float = math.inf, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.began = clock()
        self.ends = self.began + seconds
        self._round_began: float | None = None
        self._lasted: list[tuple[bool, float]] = []  # (did it correct labels, seconds)

    def leaves_time(self, history: Sequence[RoundRecord], corrects: bool) -> bool:
        """Whether one more round fits, judged by the slowest recent one that did the same.

        To be called before every round. The first is always allowed: without it there would be no result.
        """
        now = self.clock()
        if self._round_began is None:  # what was played before a resume
            self._lasted = [(_corrected(record), sum(record.seconds.values())) for record in history]
        else:
            self._lasted.append((_corrected(history[-1]), now - self._round_began))
        self._round_began = now
        alike = [seconds for corrected, seconds in self._lasted if corrected == corrects]
        recent = (alike or [seconds for _, seconds in self._lasted])[-RECENT:]
        return not recent or now + max(recent) <= self.ends


def read_limit(value: Any) -> TimeLimit:
    """A limit from seconds, or from text such as 90, 90s, 10m, 2h; None: no limit."""
    if isinstance(value, TimeLimit):
        return value
    return TimeLimit() if value is None else TimeLimit(read_seconds(value))


def read_seconds(value: Any) -> float:
    seconds = math.nan
    if isinstance(value, Real) and not isinstance(value, bool):
        seconds = float(value)
    elif isinstance(value, str) and (found := re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh]?)\s*", value)):
        seconds = float(found[1]) * UNITS[found[2]]
    if not 0 < seconds < math.inf:
        raise ConfigError(f"the time limit must be a time above 0, such as 90, 90s, 10m or 2h. Got {value!r} instead.")
    return seconds


def _corrected(record: RoundRecord) -> bool:
    return record.correction is not None

"""When to stop early: after the last round that is likely to end in time.

Knows a clock and how long rounds took; does not know what they do. The decision after the rounds comes on top.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

from labelmend.ensemble.records import RoundRecord
from labelmend.errors import ConfigError

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

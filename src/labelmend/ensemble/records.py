"""What a round tells the world: one record per round, with the time each stage took."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

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

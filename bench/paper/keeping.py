"""A long run of a benchmark that can be stopped and goes on: checkpoints with the curves beside them, and an end.

    curves.json  what was seen after every round; the rest of the folder is that of `checkpoint.py`

A run looks at a round before it keeps it, so that no kept round is unseen; when it goes on, what was seen of rounds
after the checkpoint is forgotten, because they are played again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from bench.paper.experiment import Keeping
from bench.record import write_json
from labelmend.config import Settings
from labelmend.ensemble.records import RoundRecord, TimeLimit
from labelmend.ensemble.run import NoCheckpoints
from labelmend.ensemble.state import Problem, RoundState
from labelmend.storage.checkpoint import Subject, checkpoints_in

CURVES = "curves.json"
EVERY, PAUSE_PER_WRITE = 20.0, 50  # seconds between checkpoints; one of 400 MB takes a second or two


class OutOfTimeError(Exception):
    """The run has to stop; it is kept, if there is a folder for that."""


class Watching(Protocol):
    """Who looks at a run after every round, and writes down what was seen, a dictionary a round."""

    seen: list[dict[str, float]]

    def after_round(self, record: RoundRecord, state: RoundState) -> None: ...


class Ending(TimeLimit):
    """Stops a run by an error: one that is cut short is no result."""

    def leaves_time(self, history: Sequence[RoundRecord], corrects: bool) -> bool:
        if not super().leaves_time(history, corrects):
            raise OutOfTimeError
        return True


class Kept(NoCheckpoints):
    """Checkpoints of `inner`, none if there is no folder; the rounds reach `watching` through `save`."""

    def __init__(
        self,
        watching: Watching,
        inner: NoCheckpoints,
        folder: Path | None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        super().__init__()
        self.watching, self.inner, self.folder, self.clock = watching, inner, folder, clock
        self._state: RoundState | None = None
        self._saved, self._pause = clock(), EVERY

    def restore(self, state: RoundState) -> bool:
        if not self.inner.restore(state):
            return False
        self.seconds = self.inner.seconds
        assert self.folder is not None
        seen: list[dict[str, Any]] = json.loads((self.folder / CURVES).read_text(encoding="utf-8"))
        self.watching.seen[:] = seen[: state.round_index]
        return True

    def save(self, state: RoundState) -> None:
        if state.history:
            self.watching.after_round(state.history[-1], state)
        self._state = state
        if self.folder is not None and self.clock() - self._saved >= self._pause:
            self.save_now()

    def save_now(self) -> None:
        if self.folder is None or self._state is None:
            return
        began = self.clock()
        write_json(self.folder / CURVES, self.watching.seen)
        self.inner.save(self._state)
        self._saved = self.clock()
        self._pause = max(EVERY, PAUSE_PER_WRITE * (self._saved - began))


@contextmanager
def kept(keeping: Keeping, watching: Watching, problem: Problem, config: Settings) -> Iterator[tuple[Kept, TimeLimit]]:
    """What a run is given as its checkpoints and its limit; it is kept once more when its time is over."""
    limit = Ending(keeping.ends - time.time())
    folder = keeping.checkpoints
    about = partial(Subject.of, problem, config, "")
    with nullcontext(NoCheckpoints()) if folder is None else checkpoints_in(folder, 0, about) as inner:
        found = Kept(watching, inner, keeping.checkpoints)
        try:
            yield found, limit
        except OutOfTimeError:
            found.save_now()
            raise

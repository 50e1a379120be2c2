"""The review itself: what the page may ask and what it may say, checked and answered as plain values.

Knows the run, the queue and the log; does not know HTTP.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

from labelmend.review.decisions import FILE, LABEL, SKIP, UNSURE, Choice, Decisions, Subject, Written
from labelmend.review.guard import Refused
from labelmend.review.samples import STATES, STATUSES, Evidence, Filter, Queue
from labelmend.review.thumbnails import FOLDER, Thumbnails, roots_of
from labelmend.storage.originals import Originals, open_originals
from labelmend.storage.reviewed import Hold
from labelmend.storage.run_folder import read_run

Answer = dict[str, Any]
AT_MOST = 200  # samples in one answer or one batch
LONGEST_NAME = 100  # of a tab or a request
SHOWN_COLUMNS, LONGEST_CELL, NEIGHBOR_ROWS = 60, 200, 3
SPEED_LINES, PAUSE = 30, 120.0  # speed is that of the last decisions, up to a pause of so many seconds
ACTIVE = 60.0  # seconds after its last request during which a tab counts as in use


@dataclass(frozen=True)
class Asked:
    """What an address says: a filter and the place in it, and what the tab knows already."""

    chosen: Filter
    after: int | None
    count: int
    since: int
    tab: str


class Desk:
    def __init__(self, run: Path, data: Path | None = None, follow_links: bool = False) -> None:
        self.run = run
        with ExitStack() as opening:
            self.result = read_run(run)
            self._hold = Hold(run)
            opening.callback(self._hold.release)
            self.decisions = Decisions(run / FILE, Subject.of(self.result))
            opening.pop_all()
        self.originals: Originals = open_originals(run, self.result, data, follow_links)
        self.queue = Queue(self.result, self.decisions.standing)
        self.evidence = Evidence(self.result, self.decisions.standing)
        self.thumbnails = Thumbnails(self.originals, run / FOLDER, roots_of(run, self.result, data), follow_links)
        self._tabs: dict[str, float] = {}  # when each was last heard of
        self._lock = threading.RLock()  # the queue and what stands are read and written by several threads

    def close(self) -> None:
        self.decisions.close()
        self._hold.release()

    def about(self) -> Answer:
        """What the page needs to know once."""
        statuses = {name: int((self.result.status == name).sum()) for name in STATUSES}
        return {
            "run": self.run.resolve().name,
            "samples": len(self.result),
            "classes": self.evidence.names,
            "statuses": {name: count for name, count in statuses.items() if count},
            "kind": self.originals.kind,
            "reason": self.originals.reason,
            "noise_rate": self.result.noise_rate,
            "review_below": self.result.config.review_below,
            "note": self._note(),
        }

    def _note(self) -> str:
        """What a person should know before the first sample: that the run could not tell, or left labels alone."""
        verdict, alone = self.result.verdict, self.result.left_alone
        if verdict is None or not (verdict.cannot_tell or verdict.waiting):
            return ""
        count = 0 if alone is None else int((alone & (self.result.status == "review")).sum())
        named = verdict.waiting and not verdict.cannot_tell  # by the reason itself
        first = f" First in line: {count:,} labels that pool or ensemble would change." if count and not named else ""
        return f"Classes: {verdict.reason}{first}"

    def upcoming(self, query: Mapping[str, str]) -> Answer:
        asked = self._asked(query)
        with self._up_to_date():
            samples = self.queue.upcoming(asked.chosen, asked.after, asked.count)
            return {"items": [self.sample(sample) for sample in samples], **self._state(asked)}

    def grid(self, query: Mapping[str, str]) -> Answer:
        """Many open samples of one pair at once, each with little; progress is that of the filter."""
        asked, (given, _, suggested) = self._asked(query), query.get("pair", "").partition(",")
        chosen = self._asked({**query, "given": given, "suggested": suggested, "state": "open"}).chosen
        with self._up_to_date():
            samples = self.queue.upcoming(chosen, None, asked.count)
            return {
                "items": [{**self.evidence.brief(sample), "row": self._row(sample)} for sample in samples],
                **self._state(asked),
            }

    def pairs(self, query: Mapping[str, str]) -> Answer:
        asked = self._asked(query)
        with self._up_to_date():
            return {"pairs": [asdict(pair) for pair in self.queue.pairs(asked.chosen)[:AT_MOST]]}

    def state(self, query: Mapping[str, str]) -> Answer:
        asked = self._asked(query)
        with self._up_to_date():
            return self._state(asked)

    def one(self, sample: int) -> Answer:
        with self._up_to_date():
            return self.sample(self._known(sample))

    def decide(self, query: Mapping[str, str], body: Answer) -> Answer:
        asked, request = self._asked(query), _name(body, "request")
        choices = self._choices(body.get("choices"))
        with self._lock:
            return self._written(self.decisions.decide(choices, asked.tab, request), asked)

    def undo(self, query: Mapping[str, str], body: Answer) -> Answer:
        asked, request, step = self._asked(query), _name(body, "request"), _whole(body, "step")
        with self._lock:
            return self._written(self.decisions.undo(step, asked.tab, request), asked)

    @contextmanager
    def _up_to_date(self) -> Iterator[None]:
        """Nobody else reads or writes, and what other processes decided is known."""
        with self._lock:
            self.decisions.refresh()
            yield

    def sample(self, sample: int) -> Answer:
        """Evidence, and the row where the data are a table."""
        facts = self.evidence.about(sample)
        near = [self._row(neighbor["sample"]) for neighbor in facts["neighbors"][:NEIGHBOR_ROWS]]
        return {**facts, "row": self._row(sample), "neighbor_rows": near}

    def picture(self, sample: int, size: str) -> bytes | None:
        return self.thumbnails.get(self._known(sample), size)

    def _written(self, written: Written, asked: Asked) -> Answer:
        return {
            "made": [{"sample": line.sample, **self.evidence.stands(line.sample)} for line in written.made],
            "refused": [self.sample(sample) for sample in written.refused],
            **self._state(asked),
        }

    def _state(self, asked: Asked) -> Answer:
        """How far the review is, and what has changed since the tab last asked."""
        changed = self.decisions.changed_since(asked.since, AT_MOST) if asked.since >= 0 else []
        return {
            "progress": asdict(self.queue.progress(asked.chosen)),
            "per_minute": speed(self.decisions.times(SPEED_LINES), time.time()),
            "undo": self._undo_of(asked.tab),
            "changes": [{"sample": sample, **self.evidence.stands(sample)} for sample in changed],
            "log": self.decisions.standing.last,
        }

    def _undo_of(self, tab: str) -> Answer | None:
        """The step that undo would take back: the tab's last one; of other tabs only if they are not in use."""
        now = time.monotonic()
        self._tabs = {name: heard for name, heard in self._tabs.items() if now - heard < ACTIVE} | {tab: now}
        last = self.decisions.standing.last_steps()
        step = last.get(tab, max((number for name, number in last.items() if name not in self._tabs), default=0))
        lines = self.decisions.standing.step(step)
        return {"step": step, "count": len(lines), "sample": lines[-1].sample} if lines else None

    def _row(self, sample: int) -> list[tuple[str, str]]:
        cells = self.originals.row(sample)
        more = len(cells) - SHOWN_COLUMNS
        shown = [(name[:LONGEST_CELL], value[:LONGEST_CELL]) for name, value in cells[:SHOWN_COLUMNS]]
        return [*shown, ("...", f"{more:,} more columns")] if more > 0 else shown

    def _asked(self, query: Mapping[str, str]) -> Asked:
        """The filter in an address; every part is checked."""
        code = len(self.evidence.names)
        statuses = frozenset(query.get("status", "review").split(","))
        if unknown := statuses - set(STATUSES):
            raise Refused(400, f"status must be among {', '.join(STATUSES)}. Got {sorted(unknown)[0]!r} instead")
        state = query.get("state", "open")
        if state not in STATES:
            raise Refused(400, f"state must be one of {', '.join(STATES)}. Got {state!r} instead")
        chosen = Filter(
            statuses,
            _number(query, "label", 0, code - 1),
            _number(query, "given", -1, code - 1),
            _number(query, "suggested", 0, code - 1),
            _range(query, "probability"),
            _range(query, "certainty"),
            state,
        )
        after = _number(query, "after", 0, len(self.result) - 1)
        count, since = _number(query, "count", 0, AT_MOST), _number(query, "since", 0, 2**62)
        tab = query.get("tab", "")
        if len(tab) > LONGEST_NAME:
            raise Refused(400, "tab is too long")
        return Asked(chosen, after, 8 if count is None else count, -1 if since is None else since, tab)

    def _choices(self, value: Any) -> list[Choice]:
        if not isinstance(value, list) or not 0 < len(value) <= AT_MOST:
            raise Refused(400, f"choices must be a list of 1 to {AT_MOST}")
        choices = [self._choice(entry) for entry in value]
        if len({choice.sample for choice in choices}) != len(choices):
            raise Refused(400, "a sample may be decided once in a request")
        return choices

    def _choice(self, entry: Any) -> Choice:
        if not isinstance(entry, dict):
            raise Refused(400, "a choice must be an object")
        sample, seen, kind = self._known(_whole(entry, "sample")), _whole(entry, "seen"), entry.get("kind")
        if kind not in (LABEL, UNSURE, SKIP):
            raise Refused(400, f"kind must be one of {LABEL}, {UNSURE}, {SKIP}")
        if kind != LABEL:
            return Choice(sample, kind, None, seen)
        code = _whole(entry, "label")
        if not 0 <= code < len(self.evidence.names):
            raise Refused(400, f"there is no class {code}")
        return Choice(sample, LABEL, code, seen)

    def _known(self, sample: int) -> int:
        if not 0 <= sample < len(self.result):
            raise Refused(404, f"there is no sample {sample}")
        return sample


def speed(times: Sequence[float], now: float) -> float | None:
    """Decisions per minute without the pauses, from when they were made, the latest first; None if too few."""
    if not times or now - times[0] > PAUSE:
        return None
    recent = list(takewhile(lambda gap: gap <= PAUSE, (after - before for after, before in pairwise(times))))
    return 60 * len(recent) / sum(recent) if len(recent) >= 3 and sum(recent) > 0 else None


def _name(body: Answer, key: str) -> str:
    value = body.get(key)
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_NAME:
        raise Refused(400, f"{key} must be a text of 1 to {LONGEST_NAME} characters")
    return value


def _whole(body: Answer, key: str) -> int:
    value = body.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 2**62:
        raise Refused(400, f"{key} must be a whole number")
    return value


def _number(query: Mapping[str, str], key: str, low: int, high: int) -> int | None:
    text = query.get(key)
    if text is None:
        return None
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20 and low <= int(text) <= high):
        raise Refused(400, f"{key} must be a whole number from {low} to {high}")
    return int(text)


def _range(query: Mapping[str, str], key: str) -> tuple[float, float]:
    text = query.get(key)
    if text is None:
        return 0.0, 1.0
    try:
        low, high = (float(part) for part in text.split("-"))
    except ValueError:
        raise Refused(400, f"{key} must be like 0.5-0.8") from None
    if not 0.0 <= low <= high <= 1.0:
        raise Refused(400, f"{key} must be like 0.5-0.8, within 0 and 1")
    return low, high

"""What a person sees in the terminal: live progress and the summary at the end.

Progress goes to standard error, results to standard output, so that output can be piped.
"""

from __future__ import annotations

import math
import os
import shlex
import sys
import textwrap
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO, TypeVar

from labelmend.ensemble.records import GOING_ON, RoundRecord
from labelmend.errors import LabelmendWarning
from labelmend.report.wording import NOTHING_TO_GAIN, percent, printable, seconds_in_words

Result = TypeVar("Result")
SELDOM = ("  best guess", "reviewed", "filled in", "could not be read", "fit no class", "good labels broken")  # if any
OUTSIDE = ("warm-up", "decide", "fine-tune", "profile", "map", "report")  # stages that belong to no round
LINE, NAME = 100, 23  # characters of a line, and of the name before a figure
ANNOTATORS = 5  # that are shown
LONGEST_NAME = 40  # characters of a class that are shown


class ProgressLine:
    """One line that is rewritten on a terminal; one plain line per round otherwise."""

    def __init__(self, stream: TextIO | None = None, quiet: bool = False, ends: float = math.inf) -> None:
        self.stream = stream or sys.stderr
        self.quiet = quiet
        self.live = self.stream.isatty() and not quiet
        self.began = time.monotonic()
        self.ends = ends  # no round is played after that
        self.warm = False  # the warm-up has begun, or the run was resumed; stages before that prepare the data
        self.opening = "round 1"
        self.rounds_before: int | None = None  # played before those seen here
        self.rounds_began: float | None = None
        self.last: RoundRecord | None = None
        self.preparing = ""

    def stage(self, name: str) -> None:
        """A stage begins, or one that prepares the data has made progress."""
        goes_on = not self.warm and name.startswith(GOING_ON)
        if goes_on:
            self.opening = name
        elif self.warm and self.rounds_began is None and name != "warm-up":
            self.rounds_began = time.monotonic()
        self.warm = self.warm or goes_on or name == "warm-up"
        if self.live:
            self._rewrite(f"{self._where(name)}{'' if name in OUTSIDE else self._rounds_left()}")
        elif goes_on or not self.warm:
            self._log_preparing(name.split(" (")[0])

    def _log_preparing(self, name: str) -> None:
        """Once for each stage, not for each step of it."""
        if name != self.preparing and not self.quiet:
            print(name, file=self.stream, flush=True)
        self.preparing = name

    def round(self, record: RoundRecord, state: object = None) -> None:
        """A round is over."""
        self.last = record
        if self.rounds_before is None:
            self.rounds_before = record.round_index - 1
        if not self.live and not self.quiet:
            seconds = f"{time.monotonic() - self.began:.1f} s"
            print(f"round {record.round_index}/{record.n_rounds}  {_changes(record)}  {seconds}", file=self.stream)
            self.stream.flush()

    def finish(self) -> None:
        if self.live:
            self._rewrite("")

    def during(self, correct: Callable[..., Result], *data: Any, **named: Any) -> Result:
        """What it returns, with its progress shown here; its warnings are part of the summary."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LabelmendWarning)
            try:
                return correct(*data, callback=self.round, progress=self.stage, **named)
            finally:
                self.finish()

    def _where(self, stage: str) -> str:
        if stage in (*OUTSIDE, self.opening) or not self.warm:
            return stage
        if self.last is None:
            return f"{self.opening}  {stage}"
        return f"round {self.last.round_index + 1}/{self.last.n_rounds}  {stage:<10}  {_changes(self.last)}"

    def _rounds_left(self) -> str:
        if self.last is None or self.rounds_began is None or self.last.round_index >= self.last.n_rounds:
            return ""
        now = time.monotonic()
        a_round = (now - self.rounds_began) / (self.last.round_index - (self.rounds_before or 0))
        left = min(a_round * (self.last.n_rounds - self.last.round_index), max(0, self.ends - now))
        return f"  rounds end in about {seconds_in_words(left)}"

    def _rewrite(self, text: str) -> None:
        self.stream.write(f"\r\x1b[K{text[: _width(self.stream) - 1]}")
        self.stream.flush()


def summary_lines(summary: dict[str, Any], folder: Path | None) -> list[str]:
    """The end of a run in plain words: blocks of lines with an empty line between them."""
    title = f"{summary['rows']:,} rows, {summary['classes']:,} classes, {seconds_in_words(summary['seconds'])}"
    notes = [f"note: {printable(text)}" for text in summary["warnings"]]
    blocks = [
        [title],
        _figures(summary, folder),
        _nothing_changed(summary),
        audit_lines(summary["audit"]) if summary.get("audit") is not None else [],
        _review_gain(summary.get("review_gain")),
        *_error_blocks(summary),
        _pair_lines(summary["confused_pairs"]),
        _annotator_lines(summary.get("annotators") or []),
        notes,
        [] if folder is None else _places(folder, summary["review"] > 0),
    ]
    return [line for block in blocks if block for line in ("", *block)][1:]


def _figures(summary: dict[str, Any], folder: Path | None) -> list[str]:
    from labelmend.diagnosis.conclude import NONE

    left, changed, broken = summary.get("left_alone", 0), summary["changed"], summary.get("expected_broken")
    broken = f"{broken:,.0f}" if broken is not None and changed else 0
    where = "" if folder is None else f"; see {folder / 'unreadable.csv'}"
    alone = f"; {left:,} left as given for lack of evidence" if left else ""
    counts = [
        ("estimated wrong labels", "?" if _cannot_tell(summary) else summary["estimated_wrong"], _rate(summary)),
        ("labels changed", changed, f"{_share(changed, summary['labelled'])} of the labels"),
        ("  corrected", summary["corrected"], "confident enough to need no review"),
        ("  best guess", summary.get("changed_for_review", 0), "uncertain; part of the review"),
        ("for review", summary["review"], f"uncertain; check these first{alone}"),
        ("reviewed", summary["reviewed"], "decided by a person"),
        ("kept", summary["kept"], ""),
        ("filled in", summary["filled"], "had no label"),
        ("could not be read", summary["unreadable"], f"labels left unchanged{where}"),
        ("fit no class", (summary.get("reasons") or {}).get(NONE, 0), "among those for review; labels left unchanged"),
        ("good labels broken", broken, f"expected, among {changed:,} changed labels"),
    ]
    return [
        f"{name:<22} {count if isinstance(count, str) else f'{count:,}':>9}  {about}".rstrip()
        for name, count, about in counts
        if count or name not in SELDOM
    ]


def _cannot_tell(summary: dict[str, Any]) -> bool:
    from labelmend.decision.verdict import CANNOT_TELL

    return bool((summary.get("verdict") or {}).get("classes") == CANNOT_TELL)


def _rate(summary: dict[str, Any]) -> str:
    rate = (summary.get("profile") or {}).get("rate")
    if _cannot_tell(summary):
        return f"unknown; possibly up to {rate['high']:.0%} of the labels" if rate else "unknown"
    ends = f", 90% interval {rate['low']:.1%} to {rate['high']:.1%}" if rate else ""
    return f"{summary['noise_rate']:.1%} of the labels{ends}"


def _nothing_changed(summary: dict[str, Any]) -> list[str]:
    waiting = (summary.get("verdict") or {}).get("waiting")
    if not summary["labelled"] or summary["changed"] or waiting or _cannot_tell(summary):
        return []
    return [f"no label was changed: {NOTHING_TO_GAIN}"]


def audit_lines(audit: dict[str, Any]) -> list[str]:
    """What became of planted errors."""
    before, now, temperature = audit["calibration_error_before"], audit["calibration_error"], audit["temperature"]
    calibrated = "too few errors to calibrate confidence" if temperature is None else f"temperature {temperature:.2f}"
    return [
        f"audit: {audit['planted']:,} errors planted and removed again (90% intervals)",
        f"  found               {percent(audit['found'])}",
        f"  corrected           {percent(audit['mended'])}",
        f"  good labels broken  {percent(audit['broken'])}",
        f"  calibration error   {before:.3f} before, {now:.3f} now; {calibrated}",
    ]


def _review_gain(points: list[dict[str, Any]] | None) -> list[str]:
    if not points:
        return []
    first, last = points[0], points[-1]
    ends = f"{first['left']:,.0f} now, {last['left']:,.0f} after a review of {last['reviewed']:,} samples"
    return [f"expected wrong labels: {ends}"]


def _error_blocks(summary: dict[str, Any]) -> list[list[str]]:
    """Whether classes overlap, and what kind of errors there are."""
    advice = [printable(line) for line in summary.get("advice") or ()]
    verdict = summary.get("verdict")
    blocks = [_wrapped("classes", printable(verdict["reason"]))] if verdict else []
    if summary.get("kinds"):
        kinds = f"{'kinds of errors':<{NAME}}{printable(summary['kinds'])}"
        return [*blocks, [kinds, *(line for text in advice for line in _wrapped("", text))]]
    return [*blocks, _wrapped("errors", " ".join(advice))] if advice else blocks


def _wrapped(name: str, text: str) -> list[str]:
    """A name and a longer text in its own column."""
    first, *others = textwrap.wrap(text, LINE - NAME)
    return [f"{name:<{NAME}}{first}", *(" " * NAME + line for line in others)]


def _pair_lines(pairs: list[dict[str, Any]]) -> list[str]:
    names = [f"{shortened(pair['given'])} -> {shortened(pair['corrected'])}" for pair in pairs]
    width = max([20, *map(len, names)])
    lines = [f"  {name:<{width}} {pair['count']:>9,}" for name, pair in zip(names, pairs, strict=True)]
    return ["most confused (given -> corrected)", *lines] if lines else []


def _annotator_lines(annotators: list[dict[str, Any]]) -> list[str]:
    """The least accurate ones, who come first."""
    if not annotators:
        return []
    names = [shortened(one["name"]) for one in annotators[:ANNOTATORS]]
    width = max(20, *map(len, names))
    more = f", the {ANNOTATORS} least accurate of {len(annotators):,}" if len(annotators) > ANNOTATORS else ""
    lines = [f"annotators, estimated accuracy{more}"]
    for name, one in zip(names, annotators, strict=False):
        share = f"{one['accuracy']:.1%} ({one['low']:.1%} to {one['high']:.1%})"
        lines.append(f"  {name:<{width}} {share:<26} of {one['labels']:,} labels{_worst(one['worst_confusion'])}")
    return lines


def _worst(confusion: dict[str, Any] | None) -> str:
    if confusion is None:
        return ""
    true, said = shortened(confusion["true"]), shortened(confusion["said"])
    return f"; labels {confusion['share']:.0%} of {true} as {said}"


def _places(folder: Path, to_review: bool) -> list[str]:
    report = folder / "report.html"
    places = {
        "corrected labels": folder / "labels.csv",
        "report": report if report.exists() else None,
        "everything else": f"{folder}{os.sep}",
        "to review": f"labelmend review {shlex.quote(str(folder))}" if to_review else None,
    }
    return [f"{name:<17} {place}" for name, place in places.items() if place is not None]


def shortened(value: Any) -> str:
    """A name from the data, as much of it as fits."""
    name = printable(str(value))
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}..."


def _changes(record: RoundRecord) -> str:
    return f"{record.label_changes:,} label change{'' if record.label_changes == 1 else 's'}"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "0.0%"


def _width(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80

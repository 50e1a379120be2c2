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
from pathlib import Path
from typing import Any, TextIO

from labelmend.decision.verdict import CANNOT_TELL
from labelmend.diagnosis.conclude import NONE
from labelmend.ensemble.records import GOING_ON, RoundRecord
from labelmend.report.wording import NOTHING_TO_GAIN, percent, printable, seconds_in_words, size_in_words

SELDOM = (
    "  and for review",
    "reviewed",
    "filled in",
    "could not be read",
    "fit no class",
)  # said only where there are such
OUTSIDE = ("warm-up", "decide", "fine-tune", "profile", "map", "report")  # stages that belong to no round
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
        self.warm = False  # the warm-up has begun, or the run goes on; stages before that prepare the data
        self.opening = "round 1"
        self.rounds_before: int | None = None  # played before those seen here
        self.rounds_began: float | None = None
        self.last: RoundRecord | None = None
        self.preparing = ""

    def stage(self, name: str) -> None:
        """A stage begins, or one that prepares the data is further on."""
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
        return f"  rounds done in about {seconds_in_words(left)}"

    def _rewrite(self, text: str) -> None:
        self.stream.write(f"\r\x1b[K{text[: _width(self.stream) - 1]}")
        self.stream.flush()


LINE, NAME = 100, 23  # characters of a line, and of the name before a figure


def summary_lines(summary: dict[str, Any], folder: Path | None) -> list[str]:
    """The end of a run in plain words."""
    labelled, untold = summary["labelled"], (summary.get("verdict") or {}).get("classes") == CANNOT_TELL
    counts = [
        ("estimated wrong labels", "?" if untold else summary["estimated_wrong"], _rate(summary, untold)),
        ("labels changed", summary["changed"], f"{_share(summary['changed'], labelled)} of the labels"),
        ("  corrected", summary["corrected"], "sure enough not to ask"),
        ("  and for review", summary.get("changed_for_review", 0), "the best guess, to be looked at"),
        ("for review", summary["review"], _review_parts(summary)),
        ("reviewed", summary["reviewed"], "decided by a person"),
        ("kept", summary["kept"], ""),
        ("filled in", summary["filled"], "had no label"),
        ("could not be read", summary["unreadable"], _where_reasons(folder)),
        ("fit no class", (summary.get("reasons") or {}).get(NONE, 0), "among those for review; not relabelled"),
    ]
    lines = [f"{summary['rows']:,} rows, {summary['classes']:,} classes, {seconds_in_words(summary['seconds'])}", ""]
    lines += [
        f"{name:<22} {count if isinstance(count, str) else f'{count:,}':>9}  {about}".rstrip()
        for name, count, about in counts
        if count or name not in SELDOM
    ]
    lines += _trust_lines(summary)
    if verdict := summary.get("verdict"):
        lines += ["", *_wrapped("classes", printable(verdict["reason"]))]
    if summary.get("kinds"):
        lines += ["", f"kind of errors         {printable(summary['kinds'])}", *_advice(summary)]
    elif summary.get("advice"):
        lines += ["", *_wrapped("errors", printable(" ".join(summary["advice"])))]
    if summary["confused_pairs"]:
        lines += ["", "most confused (given -> corrected)", *_pair_lines(summary["confused_pairs"])]
    if summary.get("annotators"):
        lines += ["", *_annotator_lines(summary["annotators"])]
    if summary["warnings"]:
        lines += ["", *(f"note: {printable(text)}" for text in summary["warnings"])]
    if folder is not None:
        lines += [
            "",
            f"corrected labels  {folder / 'labels.csv'}",
            *_report_line(folder),
            f"the whole run     {folder}{os.sep}",
            *([f"the doubtful ones labelmend review {shlex.quote(str(folder))}"] if summary["review"] else []),
        ]
    return lines


def _trust_lines(summary: dict[str, Any]) -> list[str]:
    """How far the changes can be trusted, as far as the run knows."""
    lines = []
    verdict = summary.get("verdict") or {}
    unsettled = verdict.get("classes") == CANNOT_TELL or verdict.get("waiting")
    if summary["labelled"] and not summary["changed"] and not unsettled:
        lines += ["", f"no label was changed: {NOTHING_TO_GAIN}"]
    if (broken := summary.get("expected_broken")) is not None and summary["changed"]:
        about = f"of {summary['changed']:,} changed labels, as the run expects"
        lines.append(f"{'good labels broken':<22} {round(broken):>9,}  {about}")
    if (audit := summary.get("audit")) is not None:
        lines += ["", *audit_lines(audit)]
    if points := summary.get("review_gain"):
        ends = f"{points[0]['left']:,.0f} -> {points[-1]['left']:,.0f}"
        lines += ["", f"wrong labels left after a look at {points[-1]['reviewed']:,} samples: {ends} expected"]
    return lines


def audit_lines(audit: dict[str, Any]) -> list[str]:
    """What became of planted errors."""
    temperature = audit["temperature"]
    calibrated = "too few to calibrate confidence" if temperature is None else f"temperature {temperature:.2f}"
    return [
        f"audit: {audit['planted']:,} errors planted, and taken out again (90 % intervals)",
        f"  found               {percent(audit['found'])}",
        f"  mended              {percent(audit['mended'])}",
        f"  good labels broken  {percent(audit['broken'])}",
        f"  calibration error   {audit['calibration_error_before']:.3f} before, {audit['calibration_error']:.3f} now; "
        f"{calibrated}",
    ]


def _rate(summary: dict[str, Any], untold: bool = False) -> str:
    profile = summary.get("profile")
    if untold:
        most = f"; up to {profile['rate']['high']:.0%} may be" if profile else ""
        return f"cannot be told{most}"
    ends = f", 90 % interval {profile['rate']['low']:.1%} to {profile['rate']['high']:.1%}" if profile else ""
    return f"{summary['noise_rate']:.1%} of the labels{ends}"


def _review_parts(summary: dict[str, Any]) -> str:
    left = summary.get("left_alone", 0)
    return f"doubtful, look at these first{f'; {left:,} left as given for want of evidence' if left else ''}"


def _wrapped(name: str, text: str) -> list[str]:
    """A name and a longer text in its own column."""
    first, *others = textwrap.wrap(text, LINE - NAME)
    return [f"{name:<{NAME}}{first}", *(" " * NAME + line for line in others)]


def _advice(summary: dict[str, Any]) -> list[str]:
    return [f"  {printable(line)}" for line in summary["advice"]]


def _report_line(folder: Path) -> list[str]:
    return [f"the report        {folder / 'report.html'}"] if (folder / "report.html").exists() else []


def _where_reasons(folder: Path | None) -> str:
    return (
        "labels left as they were" if folder is None else f"labels left as they were; see {folder / 'unreadable.csv'}"
    )


def dry_run_lines(facts: dict[str, Any]) -> list[str]:
    """What a run would do and cost, in plain words."""
    parameters = facts["parameters"]
    width = parameters["width"] if facts.get("mode") == "train" else parameters["hidden"]
    return [
        *_size_lines(facts),
        f"{facts['missing_labels']:,} labels missing, {facts['trusted']:,} trusted",
        *_annotator_count(facts),
        *_probabilities(facts),
        _cost_line(facts),
        f"rounds {parameters['n_rounds']}, neighbours {_by_turns(parameters, 'graph_k', '{}')}, "
        f"alpha {_by_turns(parameters, 'alpha', '{:.2f}')}, width {width}",
        *(f"note: {printable(text)}" for text in facts["warnings"]),
        "dry run: nothing was corrected or written",
    ]


def _probabilities(facts: dict[str, Any]) -> list[str]:
    """What the user's own models bring, and whether classes are taken to be apart."""
    assume, models, lines = facts["parameters"].get("assume", "auto"), facts.get("pred_probs"), []
    if models:
        names = ", ".join(map(_shortened, models[:ANNOTATORS])) + (", ..." if len(models) > ANNOTATORS else "")
        beside = "beside the features" if facts["features"] else "alone"
        lines.append(f"probabilities of {len(models):,} model{'s' if len(models) > 1 else ''} {beside}: {names}")
    if models or assume != "auto":
        how = {"auto": "found from the data", "apart": "taken to be", "overlapping": "taken not to be"}
        lines.append(f"classes apart: {how[assume]} (assume={assume})")
    return lines


def _by_turns(parameters: dict[str, Any], name: str, form: str) -> str:
    """A value, and that of every other round where it is another one."""
    value, fine = (form.format(parameters[key]) for key in (name, f"fine_{name}"))
    return value if value == fine else f"{fine} and {value} by turns"


def _size_lines(facts: dict[str, Any]) -> list[str]:
    if "pictures" not in facts:
        columns = f" x {facts['columns']:,} columns" if facts.get("features", True) else ""
        return [f"{facts['rows']:,} rows{columns}, {facts['classes']:,} classes"]
    how = "trained on" if facts["mode"] == "train" else f"embedded by {facts['backbone']}"
    unreadable = [f"{facts['unreadable']:,} could not be read by their headers"] if facts["unreadable"] else []
    height, width = facts["size"]
    return [
        f"{facts['pictures']:,} pictures, {facts['classes']:,} classes; {how} at {height} x {width} pixels",
        *unreadable,
    ]


def _cost_line(facts: dict[str, Any]) -> str:
    if facts["estimated_seconds"] is None:
        time_needed = "time not known beforehand"
    else:
        time_needed = f"{seconds_in_words(facts['estimated_seconds'])} on two CPU cores"
    disk = f", {size_in_words(facts['cache_bytes'])} of disk in {facts['cache']}" if "cache" in facts else ""
    return f"about {size_in_words(facts['estimated_bytes'])} of memory and {time_needed}{disk}"


def _annotator_count(facts: dict[str, Any]) -> list[str]:
    if "annotators" not in facts:
        return []
    return [f"{facts['labels_by_annotators']:,} labels by {facts['annotators']:,} annotators"]


def _annotator_lines(annotators: list[dict[str, Any]]) -> list[str]:
    """The least accurate ones, as they come."""
    shown = annotators[:ANNOTATORS]
    names = [_shortened(one["name"]) for one in shown]
    width = max(20, *map(len, names))
    more = f", the {ANNOTATORS} least accurate of {len(annotators):,}" if len(annotators) > ANNOTATORS else ""
    lines = [f"annotators, estimated share of right labels{more}"]
    for name, one in zip(names, shown, strict=True):
        share = f"{one['accuracy']:.1%} ({one['low']:.1%} to {one['high']:.1%})"
        lines.append(f"  {name:<{width}} {share:<26} of {one['labels']:,}{_worst(one['worst_confusion'])}")
    return lines


def _worst(confusion: dict[str, Any] | None) -> str:
    if confusion is None:
        return ""
    true, said = _shortened(confusion["true"]), _shortened(confusion["said"])
    return f"  says {said} for {true} ({confusion['share']:.0%})"


def _pair_lines(pairs: list[dict[str, Any]]) -> list[str]:
    names = [f"{_shortened(pair['given'])} -> {_shortened(pair['corrected'])}" for pair in pairs]
    width = max(20, *map(len, names))
    return [f"  {name:<{width}} {pair['count']:>9,}" for name, pair in zip(names, pairs, strict=True)]


def _shortened(value: Any) -> str:
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

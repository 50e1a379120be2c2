"""The section about trust: what a review would gain, and what became of planted errors."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from labelmend.diagnosis.reliability import Audit, Bin, Interval
from labelmend.report.blocks import details, section, table
from labelmend.report.drawings import line_plot
from labelmend.report.html import Html, element, together
from labelmend.report.trust import TrustContents
from labelmend.report.wording import percent
from labelmend.result import ExpectedErrors

if TYPE_CHECKING:
    from labelmend.self_test.run import SelfTest


def trust_section(trust: TrustContents) -> Html:
    return section(
        "trust",
        "How far to trust it",
        trust.sentence,
        None if trust.audit is None else _audit(trust.audit),
        None if trust.selftest is None else _selftest(trust.selftest),
        _gain(trust.gain),
    )


def _gain(points: Sequence[ExpectedErrors]) -> Html:
    pairs = [(point.reviewed, point.left) for point in points]
    (_, begin), (last, end) = pairs[0], pairs[-1]
    about = f"Wrong labels expected: {begin:,.0f} now, {end:,.0f} after a look at {last:,} samples"
    line = "Wrong labels expected to be left, by the number of samples a person has looked at, the most doubtful first."
    return together(
        element("h3", "What a review would gain"),
        element("p", line, class_="meaning"),
        element("div", element("figure", line_plot(pairs, about)), class_="plots"),
    )


def _audit(audit: Audit) -> Html:
    line = (
        f"{audit.planted:,} labels were made wrong before the run, the way labels of these data seem to be wrong, and "
        "put back at its end. Intervals of 90 %: Wilson's, and for good labels broken what follows from found."
    )
    rows = [
        ("found: got another label", _share(audit.found)),
        ("mended: got their label back", _share(audit.mended)),
        ("good labels broken, of all good ones", _share(audit.broken)),
        ("labels right after the run, estimated", f"{audit.right:.1%}"),
        ("calibration error of the run's confidence", f"{audit.calibration_error_before:.3f}"),
        ("after calibration", _calibrated(audit)),
    ]
    return together(
        element("h3", "Audit: errors planted in this run"),
        element("p", line, class_="meaning"),
        _facts("What became of planted errors", rows),
        details("Reliability of the confidence", _curve(audit.curve)),
    )


def _calibrated(audit: Audit) -> str:
    if audit.temperature is None:
        return f"{audit.calibration_error:.3f}; too few errors to fit a temperature"
    return f"{audit.calibration_error:.3f} at temperature {audit.temperature:.2f}"


def _curve(bins: Sequence[Bin]) -> Html:
    head = _heads("confidence, mean", "labels right, estimated", "samples")
    body = [
        element(
            "tr",
            element("th", f"{one.confidence:.3f}", scope="row"),
            element("td", f"{one.right:.3f}", class_="number"),
            element("td", f"{one.share:.1%}", class_="number"),
        )
        for one in bins
    ]
    return table("Reliability of the confidence", head, body)


def _selftest(test: SelfTest) -> Html:
    interval = "Wilson's" if test.repeats == 1 else "Student's over repetitions"
    line = (
        f"Errors planted in {test.share:.0%} of the labels, among {test.looks_clean:,} samples that look clean to a "
        f"plain run; {test.repeats} repetition{'' if test.repeats == 1 else 's'}. Intervals are of 90 %, {interval}. "
        "What looks clean is judged by labelmend, which is kind to it in the last column."
    )
    body = [
        element(
            "tr",
            element("th", f"{score.kind}, {score.method}", scope="row"),
            element("td", f"{score.planted:,}", class_="number"),
            *(element("td", _share(part), class_="number") for part in (score.found, score.mended, score.broken)),
        )
        for score in test.scores
    ]
    head = _heads("errors, method", "planted", "found", "mended", "good labels broken")
    notes = [element("p", note, class_="small quiet") for note in test.notes]
    return together(
        element("h3", "Self-test: planted errors, side by side"),
        element("p", line, class_="meaning"),
        table("Planted errors found and mended by each method", head, body),
        *notes,
    )


def _facts(caption: str, rows: Sequence[tuple[str, str]]) -> Html:
    body = [
        element("tr", element("th", name, scope="row"), element("td", text, class_="number")) for name, text in rows
    ]
    return table(caption, _heads("figure", "value"), body)


def _heads(first: str, *others: str) -> list[Html]:
    return [element("th", first, scope="col"), *(element("th", name, scope="col", class_="number") for name in others)]


def _share(share: Interval) -> str:
    return percent(dataclasses.asdict(share))

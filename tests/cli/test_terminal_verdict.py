"""What the terminal says about the verdict, and that its figures add up."""

import dataclasses

import numpy as np
import pytest

import labelmend
from blobs import QUICK, blobs
from labelmend.cli.terminal import LINE, summary_lines
from labelmend.decision.verdict import APART, CANNOT_TELL, OVERLAPPING
from labelmend.diagnosis.profile import NO_ERRORS, NONE_SCATTERED, UNTOLD, sentences


@pytest.fixture(scope="module")
def result():
    features, classes = blobs(90)
    return labelmend.correct(features, np.where(np.arange(90) < 6, (classes + 1) % 3, classes), expert=QUICK)


def said(result, **changes):
    verdict = dataclasses.replace(result.verdict, **changes)
    return "\n".join(summary_lines(dataclasses.replace(result, verdict=verdict).summary(), None))


def test_the_verdict_is_wrapped_and_whole(result):
    lines = summary_lines(result.summary(), None)
    at = next(place for place, line in enumerate(lines) if line.startswith("classes"))
    assert all(len(line) <= LINE for line in lines[at : at + 3])
    assert result.verdict.reason in " ".join("\n".join(lines).split())


def test_where_it_cannot_be_told_no_number_is_given(result):
    (line,) = [line for line in said(result, classes=CANNOT_TELL).splitlines() if line.startswith("estimated wrong")]
    assert f"{result.summary()['estimated_wrong']:,} " not in line
    assert "?" in line


def test_changed_labels_are_counted_as_what_they_are(result):
    summary = {**result.summary(), "changed": 9, "corrected": 6, "changed_for_review": 3}
    counts = {line.strip().split("  ")[0]: line for line in summary_lines(summary, None)}
    for name, count in (("labels changed", 9), ("corrected", 6), ("best guess", 3)):
        assert f" {count} " in counts[name]


def test_no_all_clear_beyond_what_the_interval_promises(result):
    verdict = dataclasses.replace(result.verdict, classes=OVERLAPPING)
    low = dataclasses.replace(result.profile, rate=dataclasses.replace(result.profile.rate, value=0, low=0, high=0.001))
    assert sentences(low, verdict) == [NONE_SCATTERED]
    assert sentences(low, dataclasses.replace(verdict, classes=APART)) == [NO_ERRORS]
    assert sentences(low, dataclasses.replace(verdict, classes=CANNOT_TELL)) == [UNTOLD]
    open_end = dataclasses.replace(low, suspects=0, rate=dataclasses.replace(low.rate, high=0.3))
    assert "30%" in sentences(open_end, verdict)[0]

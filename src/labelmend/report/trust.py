"""How far the labels can be trusted, as plain records: what the run expects of itself, what planted errors showed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from labelmend.diagnosis.reliability import Audit
from labelmend.report.wording import NOTHING_TO_GAIN
from labelmend.result import Correction, ExpectedErrors

if TYPE_CHECKING:
    from labelmend.self_test.run import SelfTest


@dataclass(frozen=True)
class TrustContents:
    sentence: str
    gain: tuple[ExpectedErrors, ...]  # of a review
    audit: Audit | None
    selftest: SelfTest | None


def trust_contents(result: Correction, selftest: SelfTest | None = None) -> TrustContents:
    return TrustContents(_sentence(result), tuple(result.review_gain()), result.audit, selftest)


def _sentence(result: Correction) -> str:
    left = result.review_gain()[0].left
    changed = int(result.changed.sum())
    parts = [f"By its own confidence the run expects about {left:,.0f} wrong labels to be left."]
    if changed == 0 and not (result.verdict is not None and (result.verdict.cannot_tell or result.verdict.waiting)):
        parts.append(f"No label was changed: {NOTHING_TO_GAIN}.")
    if result.expected_broken is not None:
        parts.append(f"Of {changed:,} changed labels about {result.expected_broken:,.0f} were right before.")
    if result.temperature is None:
        parts.append("Without planted errors (--audit) that confidence is not calibrated, and rather too high.")
    return " ".join(parts)

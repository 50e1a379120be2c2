"""What an audit says, as plain records: shares with their intervals, reliability, the audit itself. Knows JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Share:
    """A part of a whole, with its 90 % interval; all None where the whole is empty."""

    value: float | None
    low: float | None
    high: float | None
    count: int  # cases the part was counted among


@dataclass(frozen=True)
class Bin:
    """Samples of about the same confidence."""

    share: float  # of all samples
    confidence: float  # on average
    right: float  # share of right labels among them


@dataclass(frozen=True)
class Audit:
    """What became of errors that were planted, and what follows for all labels."""

    share: float  # of the labels that was asked for
    planted: int
    found: Share  # planted errors that got another label; Wilson's interval
    mended: Share  # that got the label back that was there; likewise
    broken: Share  # good labels changed, as a share of all good ones; the interval follows from that of found
    right: float  # estimated share of labels that are right after the run
    temperature: float | None  # None: too few errors to fit one, confidence is as the run had it
    calibration_error_before: float  # expected calibration error, by the planted errors
    calibration_error: float  # after the temperature
    curve: tuple[Bin, ...]  # reliability of the confidence in the result


def audit_from(record: Mapping[str, Any]) -> Audit:
    """An audit from its JSON."""
    shares = {name: Share(**record[name]) for name in ("found", "mended", "broken")}
    return Audit(**{**record, **shares, "curve": tuple(Bin(**one) for one in record["curve"])})

"""What the report says, as plain records: no HTML, no drawing. Everything comes from the run's own records.

    Contents          the whole page
      Number          one of the figures at the top
      Flow, Pair      which given labels became which, and the pairs that changed most: `classes.py`
      ClassNoise      how wrong the labels of a class are estimated to be: likewise
      NoiseProfile    how many labels are wrong and of what kind the errors are: `trust/profile.py`
      Round           one round of the history
      MapContents     the samples on a plane
      Gallery         samples worth a look, and by what rule they were chosen: `samples.py`
      TrustContents   planted errors, and what the run expects of its own labels: `trust.py`
      Verdict         are the classes apart: `decision/verdict.py`
      Making          how the result was made: `making.py`
      Annotators      how good everyone is who gave labels: the record of the run itself

Pictures are made in `pictures.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labelmend.decision.verdict import Verdict
from labelmend.diagnosis.annotators import Annotators
from labelmend.diagnosis.profile import NoiseProfile
from labelmend.diagnosis.reasons import REASONS
from labelmend.ensemble.records import RoundRecord
from labelmend.report.classes import ClassNoise, Flow, Pair, class_noise, flow, pairs
from labelmend.report.making import Making, describe_making
from labelmend.report.pictures import Atlas, make_atlas
from labelmend.report.samples import Describer, Gallery, galleries
from labelmend.report.trust import TrustContents, trust_contents
from labelmend.result import UNREADABLE, Correction
from labelmend.storage.originals import Originals

if TYPE_CHECKING:
    from labelmend.self_test.run import SelfTest


STATUSES = ("kept", "filled", "unreadable", "reviewed", "review", "corrected")  # the last are drawn on top
HISTOGRAMS = 6  # rounds whose certainty is shown
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Number:
    name: str
    value: int
    about: str
    status: str | None = None  # that it counts


@dataclass(frozen=True)
class Round:
    index: int
    changes: int
    differ_from_given: int
    mean_certainty: float
    histogram: tuple[int, ...]
    graph_similarity: float | None  # None in a round that only trained
    seconds: float


@dataclass(frozen=True)
class MapContents:
    """Arrays run along the points. Those of rare kinds come last, to be drawn on top."""

    x: NDArray[np.float32]
    y: NDArray[np.float32]
    given: Codes  # -1: none
    corrected: Codes
    status: Codes  # positions in STATUSES
    confidence: NDArray[np.float32]
    ids: tuple[str, ...]
    rows: tuple[str, ...]  # a few cells of each, in words; none for pictures
    atlas: Atlas | None
    n_samples: int  # of the whole run that could be read


@dataclass(frozen=True)
class Contents:
    name: str  # of the data, as far as it is known
    sentence: str
    numbers: tuple[Number, ...]
    classes: tuple[str, ...]
    flow: Flow
    pairs: tuple[Pair, ...]
    noise: tuple[ClassNoise, ...]
    noise_rate: float
    profile: NoiseProfile | None
    reasons: tuple[tuple[str, int], ...]  # and how many samples have them
    rounds: tuple[Round, ...]
    map: MapContents | None
    galleries: tuple[Gallery, ...]
    making: Making
    notes: tuple[str, ...]
    unreadable: tuple[tuple[str, str], ...]
    kind: str  # of the samples: pictures, rows or none
    without: str  # why samples, or some of them, cannot be shown
    trust: TrustContents
    annotators: Annotators | None = None
    verdict: Verdict | None = None


def make_contents(result: Correction, originals: Originals, selftest: SelfTest | None = None) -> Contents:
    classes = tuple(str(name) for name in result.classes.tolist())
    describe = Describer(result, originals, classes)
    return Contents(
        name=_name(result),
        sentence=sentence(result),
        numbers=numbers(result),
        classes=classes,
        flow=flow(result, classes),
        pairs=pairs(result, describe),
        noise=class_noise(result, classes),
        noise_rate=result.noise_rate,
        profile=result.profile,
        reasons=() if result.reason is None else tuple((name, result.count_reason(name)) for name in REASONS[1:]),
        rounds=tuple(_round(record) for record in result.history),
        map=_map(result, originals, describe),
        galleries=galleries(result, describe),
        making=describe_making(result),
        notes=tuple(result.warnings),
        unreadable=tuple(result.unreadable.items()),
        kind=originals.kind,
        without=originals.reason,
        annotators=result.annotators,
        verdict=result.verdict,
        trust=trust_contents(result, selftest),
    )


def sentence(result: Correction) -> str:
    """The run in one sentence."""
    summary = result.summary()
    parts = [
        f"{summary['corrected']:,} were corrected",
        f"{summary['review']:,} are doubtful and wait for a look{_in_review(summary)}",
    ]
    if decided := result.count("reviewed"):
        parts.append(f"{decided:,} were decided by a person")
    broken = summary["expected_broken"]
    more = [f" Of the changed ones about {round(broken):,} are expected to have been right."] if broken else []
    more += [
        f" {count:,} {words}."
        for count, words in (
            (summary["filled"], "had no label and got one"),
            (summary["unreadable"], "could not be read and kept the label they had"),
        )
        if count
    ]
    if result.verdict is not None and result.verdict.cannot_tell:
        return (
            f"How many of {summary['labelled']:,} labels are wrong cannot be told: {', '.join(parts)}, and "
            f"{summary['kept']:,} were kept.{''.join(more)}"
        )
    return (
        f"Of {summary['labelled']:,} labels about {summary['estimated_wrong']:,} ({result.noise_rate:.1%}) are "
        f"estimated to be wrong: {', '.join(parts)}, and {summary['kept']:,} were kept.{''.join(more)}"
    )


def _in_review(summary: dict[str, Any]) -> str:
    """What the doubtful ones are labelled now, so that the numbers add up to the labels changed."""
    changed = summary["changed_for_review"]
    return f" ({changed:,} of them changed to the best guess)" if changed else ""


def numbers(result: Correction) -> tuple[Number, ...]:
    summary = result.summary()
    kinds = {
        "corrected": ("corrected", "another label took its place"),
        "review": ("for review", "doubtful: look at these first"),
        "kept": ("kept", "the given label stays"),
        "reviewed": ("reviewed", "decided by a person"),
        "filled": ("filled in", "there was no label"),
        UNREADABLE: ("unreadable", "labels left as they were"),
    }
    seldom = ("reviewed", "filled", UNREADABLE)
    wrong = Number("estimated wrong", summary["estimated_wrong"], f"{result.noise_rate:.1%} of the labels")
    untold = result.verdict is not None and result.verdict.cannot_tell
    return (
        Number("samples", summary["rows"], f"of {summary['classes']:,} classes"),
        *([] if untold else [wrong]),
        *(
            Number(name, result.count(status), about, status)
            for status, (name, about) in kinds.items()
            if status not in seldom or result.count(status)
        ),
    )


def shown_rounds(rounds: tuple[Round, ...], most: int = HISTOGRAMS) -> tuple[Round, ...]:
    """The first, the last and some between, of those in which labels were voted on."""
    voted = [one for one in rounds if one.graph_similarity is not None]
    places = np.linspace(0, len(voted) - 1, min(most, len(voted))).round().astype(int)
    return tuple(voted[place] for place in np.unique(places))


def _round(record: RoundRecord) -> Round:
    similarity = record.correction.graph_similarity if record.correction is not None else None
    return Round(
        record.round_index,
        record.label_changes,
        record.differ_from_given,
        record.mean_certainty,
        tuple(record.certainty_histogram),
        None if similarity is None else float(np.mean(similarity)),
        sum(record.seconds.values()),
    )


def _map(result: Correction, originals: Originals, describe: Describer) -> MapContents | None:
    if result.map is None or len(result.map.indices) == 0:
        return None
    status = np.array([STATUSES.index(name) for name in result.status[result.map.indices]])
    order = np.argsort(status, kind="stable")
    indices, status = result.map.indices[order], status[order]
    return MapContents(
        x=result.map.positions[order, 0],
        y=result.map.positions[order, 1],
        given=result.given.codes[indices],
        corrected=result.corrected_codes[indices],
        status=status,
        confidence=result.confidence[indices],
        ids=tuple(str(name) for name in result.ids[indices].tolist()),
        rows=_few_cells(describe, indices) if originals.kind == "rows" else (),
        atlas=make_atlas(originals, indices) if originals.kind == "pictures" else None,
        n_samples=len(result) - result.count(UNREADABLE),
    )


def _few_cells(describe: Describer, indices: Codes, most: int = 4, longest: int = 24) -> tuple[str, ...]:
    rows = (describe.cells(int(index))[:most] for index in indices)
    return tuple(", ".join(f"{name} {value[:longest]}" for name, value in row) for row in rows)


def _name(result: Correction) -> str:
    path = result.source.path if result.source is not None else None
    return Path(path).name if path else ""

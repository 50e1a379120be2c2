"""What the report says, as plain records: no HTML, no drawing. Everything comes from the run's own records.

Contents          the whole page
  Number          one of the figures at the top
  Flow, Pair      which given labels became which, and the pairs that changed most: `classes.py`
  ClassNoise      how wrong the labels of a class are estimated to be: likewise
  NoiseProfile    how many labels are wrong and of what kind the errors are: `diagnosis/profile.py`
  Round           one round of the history
  MapContents     the samples on a plane: `map.py`
  Gallery         samples worth a look, and by what rule they were chosen: `samples.py`
  Trust           planted errors, and what the run expects of its own labels
  Verdict         are the classes apart: `decision/verdict.py`
  Making          what one needs to make the result again, and where the time went
  Annotators      how good everyone is who gave labels: the record of the run itself
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labelmend.config import RunConfig
from labelmend.decision.verdict import Verdict
from labelmend.diagnosis.annotators import Annotators
from labelmend.diagnosis.conclude import REASONS
from labelmend.diagnosis.profile import NoiseProfile, sentences
from labelmend.diagnosis.reliability import Audit
from labelmend.ensemble.records import RoundRecord
from labelmend.report.classes import ClassNoise, Flow, Pair, class_noise, flow, pairs
from labelmend.report.drawings import few_of
from labelmend.report.map import MapContents, make_map
from labelmend.report.samples import Describer, Gallery, galleries
from labelmend.report.wording import NOTHING_TO_GAIN
from labelmend.result import UNREADABLE, Correction, ExpectedErrors
from labelmend.storage.originals import Originals

if TYPE_CHECKING:
    from labelmend.self_test.run import SelfTest


HISTOGRAMS = 6  # rounds whose certainty is shown
STAGES = {
    "embed": "features of all samples",
    "split": "packages of near neighbours dealt to subsets",
    "branches": "training of the branch nets",
    "graphs": "nearest-neighbour graphs",
    "propagate": "propagation of labels on them",
    "vote": "votes",
    "train": "training of the classifier on the voted labels",
}
REST = "warm-up, decision, map and reading"


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
class Trust:
    sentence: str
    gain: tuple[ExpectedErrors, ...]  # of a review
    audit: Audit | None
    selftest: SelfTest | None

    @property
    def points(self) -> list[tuple[int, float]]:
        return [(point.reviewed, point.left) for point in self.gain]


@dataclass(frozen=True)
class Parameter:
    name: str
    value: str
    about: str


@dataclass(frozen=True)
class Stage:
    name: str
    seconds: float


@dataclass(frozen=True)
class Making:
    repeat: str  # the command or call; "": not recorded
    seed: int
    parameters: tuple[Parameter, ...]
    versions: tuple[tuple[str, str], ...]
    stages: tuple[Stage, ...]
    seconds: float
    fingerprint: str


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
    advice: str  # what the profile means, and what to do
    reasons: tuple[tuple[str, int], ...]  # and how many samples have them
    rounds: tuple[Round, ...]
    map: MapContents | None
    galleries: tuple[Gallery, ...]
    making: Making
    notes: tuple[str, ...]
    unreadable: tuple[tuple[str, str], ...]
    kind: str  # of the samples: pictures, rows or none
    without: str  # why samples, or some of them, cannot be shown
    trust: Trust
    annotators: Annotators | None = None
    verdict: Verdict | None = None

    @property
    def parts(self) -> list[tuple[str, int]]:
        """Class names and sizes of the parts of the bar at the top."""
        return [(f"part-{number.status}", number.value) for number in self.numbers if number.status]

    @property
    def changes(self) -> list[tuple[int, float]]:
        """Label changes by round."""
        return [(one.index, float(one.changes)) for one in self.rounds]

    @property
    def similarities(self) -> list[tuple[int, float]]:
        """Graph similarity by round, of those that made graphs."""
        return [(one.index, one.graph_similarity) for one in self.rounds if one.graph_similarity is not None]


def make_contents(result: Correction, originals: Originals, selftest: SelfTest | None = None) -> Contents:
    classes = tuple(str(name) for name in result.classes.tolist())
    path = result.source.path if result.source is not None else None
    describe = Describer(result, originals, classes)
    return Contents(
        name=Path(path).name if path else "",
        sentence=sentence(result),
        numbers=numbers(result),
        classes=classes,
        flow=flow(result, classes),
        pairs=pairs(result, describe),
        noise=class_noise(result, classes),
        noise_rate=result.noise_rate,
        profile=result.profile,
        advice="" if result.profile is None else " ".join(sentences(result.profile, result.verdict)),
        reasons=() if result.reason is None else tuple((name, result.count_reason(name)) for name in REASONS[1:]),
        rounds=tuple(_round(record) for record in result.history),
        map=make_map(result, originals, describe),
        galleries=galleries(result, describe),
        making=_making(result),
        notes=tuple(result.warnings),
        unreadable=tuple(result.unreadable.items()),
        kind=originals.kind,
        without=originals.reason,
        annotators=result.annotators,
        verdict=result.verdict,
        trust=trust_contents(result, selftest),
    )


def sentence(result: Correction) -> str:
    """The run in one sentence, and what it adds where there is something to add."""
    count = result.summary()
    guessed = (
        f" ({count['changed_for_review']:,} of them changed to the best guess)" if count["changed_for_review"] else ""
    )
    parts = [f"{_were(count['corrected'])} corrected", f"{_were(count['review'])} left for review{guessed}"]
    if count["reviewed"]:
        parts.append(f"{_were(count['reviewed'])} decided by a person")
    more = []
    if count["expected_broken"]:
        more.append(
            f" About {round(count['expected_broken']):,} of the changed labels are expected to have been right."
        )
    if count["filled"]:
        more.append(f" {count['filled']:,} had no label and got one.")
    if count["unreadable"]:
        more.append(f" {count['unreadable']:,} could not be read and kept the given label.")
    wrong = f"{count['estimated_wrong']:,} of {count['labelled']:,} labels ({result.noise_rate:.1%})"
    lead = f"About {wrong} are estimated to be wrong"
    if _cannot_tell(result):
        lead = f"How many of {count['labelled']:,} labels are wrong cannot be determined"
    return f"{lead}: {', '.join(parts)}, and {_were(count['kept'])} kept.{''.join(more)}"


def numbers(result: Correction) -> tuple[Number, ...]:
    summary = result.summary()
    wrong = Number("estimated wrong", summary["estimated_wrong"], f"{result.noise_rate:.1%} of the labels")
    always = [
        Number("samples", summary["rows"], f"of {summary['classes']:,} classes"),
        *([] if _cannot_tell(result) else [wrong]),
        Number("corrected", result.count("corrected"), "changed to another label", "corrected"),
        Number("for review", result.count("review"), "doubtful: look at these first", "review"),
        Number("kept", result.count("kept"), "the given label stays", "kept"),
    ]
    seldom = [
        Number("reviewed", result.count("reviewed"), "decided by a person", "reviewed"),
        Number("filled in", result.count("filled"), "had no label", "filled"),
        Number("unreadable", result.count(UNREADABLE), "labels left as given", UNREADABLE),
    ]
    return (*always, *(number for number in seldom if number.value))


def shown_rounds(rounds: tuple[Round, ...], most: int = HISTOGRAMS) -> tuple[Round, ...]:
    """The first, the last and some between, of those in which labels were voted on."""
    return tuple(few_of([one for one in rounds if one.graph_similarity is not None], most))


def trust_contents(result: Correction, selftest: SelfTest | None = None) -> Trust:
    gain, changed = tuple(result.review_gain()), int(result.changed.sum())
    parts = [f"By its own confidence, the run expects about {gain[0].left:,.0f} labels still to be wrong."]
    if changed == 0 and not (_cannot_tell(result) or (result.verdict is not None and result.verdict.waiting)):
        parts.append(f"No label was changed: {NOTHING_TO_GAIN}.")
    if result.expected_broken is not None:
        parts.append(f"About {result.expected_broken:,.0f} of the {changed:,} changed labels were right before.")
    if result.temperature is None:
        parts.append("Without planted errors (--audit) this confidence is not calibrated and tends to be too high.")
    return Trust(" ".join(parts), gain, result.audit, selftest)


def _were(number: int) -> str:
    return f"{number:,} {'was' if number == 1 else 'were'}"


def _cannot_tell(result: Correction) -> bool:
    return result.verdict is not None and result.verdict.cannot_tell


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


def _making(result: Correction) -> Making:
    parameters = (
        Parameter(entry.name, _shown(getattr(result.config, entry.name)), str(entry.metadata["help"]))
        for entry in dataclasses.fields(RunConfig)
    )
    return Making(
        repeat=result.repeat,
        seed=result.config.seed,
        parameters=tuple(parameters),
        versions=tuple(result.versions.items()),
        stages=_stages(result),
        seconds=result.seconds,
        fingerprint=result.fingerprint,
    )


def _stages(result: Correction) -> tuple[Stage, ...]:
    """Seconds of each stage, summed over the rounds; what is not in the rounds' records is the rest."""
    total: dict[str, float] = {}
    for record in result.history:
        for name, seconds in record.seconds.items():
            total[name] = total.get(name, 0.0) + seconds
    found = [Stage(STAGES.get(name, name), seconds) for name, seconds in total.items()]
    return (*found, Stage(REST, max(0.0, result.seconds - sum(total.values()))))


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return " ".join(map(str, value)) or "none"
    return "none" if value in (None, "") else str(value)

"""The result of a run: corrected labels and all that is known about each.

Knows numpy arrays; does not know how they were made. Saving and loading is `run_folder.py`.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from labelmend.config import Settings
from labelmend.decision.verdict import Parts, Verdict
from labelmend.diagnosis.annotators import Annotators
from labelmend.diagnosis.conclude import REASONS
from labelmend.diagnosis.profile import NoiseProfile, kinds_text, sentences
from labelmend.diagnosis.projection import SampleMap
from labelmend.diagnosis.reliability import Audit
from labelmend.ensemble.records import RoundRecord
from labelmend.errors import ConfigError, LabelmendWarning
from labelmend.labels import AnnotatorColumns, Labels

UNREADABLE, REVIEWED = "unreadable", "reviewed"
Kind = Literal["table", "pictures", "arrays"]
STATUS_TYPE = np.dtype("<U10")  # room for the longest of them
LOOKED_AT = ("kept", "corrected", "review", "filled")  # a look at them may put a label right
GAIN_POINTS = 100  # of the curve of expected errors


@dataclass(frozen=True)
class ConfusedPair:
    """Labels that were given as one class and corrected to another."""

    given: Any
    corrected: Any
    count: int


@dataclass(frozen=True)
class ExpectedErrors:
    """How many wrong labels are left once a person has looked at some."""

    reviewed: int
    left: float


@dataclass(frozen=True)
class Source:
    """The file or folder, and how it was read. Names of columns are None where none was named.

    `digest` is the SHA-256 of a file, of the description of a saved dataset, or of the names and sizes of the files in
    class folders; None for lists of files, and for class folders in older runs.
    """

    kind: Kind  # "arrays": given as arrays in Python, nothing to read again
    path: str | None = None  # absolute
    digest: str | None = None
    labels: str | None = None
    id: str | None = None
    trusted: str | None = None
    features: str | None = None
    ignore: tuple[str, ...] = ()
    missing: str | None = None  # what stands for "no label" besides an empty cell, if it was named
    files: tuple[str, ...] | None = None  # of pictures given in Python as a list of paths; absolute
    annotators: AnnotatorColumns = None
    read_back: bool = False  # from a run folder, which may be somebody else's: its word alone opens nothing

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        record = asdict(self)
        del record["read_back"]
        return record


@dataclass(frozen=True)
class Correction:
    """What `correct` and `correct_images` return. Arrays run along the samples in the order they came.

    A picture that could not be read keeps its label, with confidence and certainty 0, no runner-up and no neighbours.
    """

    labels: Any  # corrected labels, in the container of the given ones
    status: NDArray[np.str_]  # kept | corrected | review | filled | unreadable | reviewed
    confidence: NDArray[np.float32]  # posterior probability of the label
    certainty: NDArray[np.float32]  # omega of the last vote, 0..1
    runner_up: NDArray[Any]  # second most probable class
    noise_rate: float  # estimated share of wrong labels
    transition: NDArray[np.float64]  # P(given | true), class by class, rows and columns in the order of `classes`
    votes: scipy.sparse.csr_matrix  # share of the suggestions for each class
    classes: NDArray[Any]
    model: Any  # the corrected-label branch: predict, predict_proba
    history: list[RoundRecord]
    config: Settings
    given: Labels
    corrected_codes: NDArray[np.int64]
    ids: NDArray[Any]
    neighbors: NDArray[np.int32]  # (n, <= 10) nearest samples in the space of one branch; -1: none
    fingerprint: str  # of the data, to recognise them
    seconds: float
    duplicates: list[list[int]] = field(default_factory=list)  # identical rows with different labels
    warnings: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)  # id of a picture -> why it could not be read
    map: SampleMap | None = None  # None: of a run that drew none
    versions: dict[str, str] = field(default_factory=dict)  # of what made the result
    repeat: str = ""  # the command or call that gives it again; "": not recorded
    profile: NoiseProfile | None = None  # how many labels are wrong, and of what kind the errors are
    reason: NDArray[np.str_] | None = None  # "" | fits another class | fits two classes | fits no class
    misfit: NDArray[np.float32] | None = None  # how badly a sample fits the classes; about 0 is usual
    source: Source | None = None  # where the data came from; None in run folders of format 2
    annotators: Annotators | None = None  # how good each of them is; None: nobody said who they are
    given_confidence: NDArray[np.float32] | None = None  # posterior probability of the given label; None: older runs
    audit: Audit | None = None  # what became of planted errors; None: none were planted
    temperature: float | None = None  # at which confidence was calibrated by planted errors; None: it was not
    label_score: NDArray[np.float32] | None = None  # posterior probability of the given label: low is suspicious
    left_alone: NDArray[np.bool_] | None = None  # whose label stays for want of evidence, for review; None: older runs
    evidence: Parts | None = None  # what pool and ensemble said apart; not saved
    verdict: Verdict | None = None  # are the classes apart; None: preset paper, or nets trained on pictures

    def __len__(self) -> int:
        return len(self.corrected_codes)

    def labels_for(self, review: str = "corrected") -> Any:
        """Labels with the doubtful ones as decided (`"corrected"`) or left as they were (`"given"`)."""
        if review not in ("corrected", "given"):
            raise ConfigError(f'review must be "corrected" or "given". Got {review!r} instead.')
        if review == "corrected":
            return self.labels
        undecided = (self.status == "review") & (self.given.codes >= 0)
        return self.given.decode(np.where(undecided, self.given.codes, self.corrected_codes))

    @property
    def tuning(self) -> None:
        """Nothing is tuned by trials any more; goes with the next release."""
        warnings.warn("tuning is always None: the weights of the pool follow the data.", LabelmendWarning, 2)

    def count(self, status: str) -> int:
        return int((self.status == status).sum())

    @property
    def changed(self) -> NDArray[np.bool_]:
        """Where a label took the place of another."""
        where: NDArray[np.bool_] = (self.given.codes >= 0) & (self.given.codes != self.corrected_codes)
        return where

    @property
    def expected_broken(self) -> float | None:
        """Good labels the run expects to have broken: the probability of the given one, over what it changed."""
        if self.given_confidence is None:
            return None
        return float(self.given_confidence[self.changed & (self.status != REVIEWED)].sum(dtype=np.float64))

    def review_gain(self, most: int | None = None) -> list[ExpectedErrors]:
        """Wrong labels expected to be left once a person has looked at 0, 10, 20 ... samples, the most doubtful first.

        most: samples to look at; by default the budget, or those for review. Steps are longer where they would be many.
        """
        doubt = np.sort(1 - self.confidence[np.isin(self.status, LOOKED_AT)].astype(np.float64))[::-1]
        most = min(most or self.config.budget or max(self.count("review"), 1), len(doubt))
        left = np.append(doubt[::-1].cumsum()[::-1], 0.0)
        step = 10 * max(1, math.ceil(most / (10 * GAIN_POINTS)))
        places = [*range(0, most, step), most]
        return [ExpectedErrors(place, round(float(left[place]), 3)) for place in places]

    def count_reason(self, reason: str) -> int:
        return 0 if self.reason is None else int((self.reason == reason).sum())

    def confused_pairs(self, n: int = 3) -> list[ConfusedPair]:
        """The most frequent (given, corrected) pairs among the changed labels."""
        pairs = self.given.codes[self.changed] * len(self.classes) + self.corrected_codes[self.changed]
        found, counts = np.unique(pairs, return_counts=True)
        order = np.argsort(-counts, kind="stable")[:n]
        return [
            ConfusedPair(self.classes[pair // len(self.classes)], self.classes[pair % len(self.classes)], int(count))
            for pair, count in zip(found[order], counts[order], strict=True)
        ]

    def summary(self) -> dict[str, Any]:
        """The numbers a person asks for first, ready for JSON."""
        n_labelled = int(((self.given.codes >= 0) & (self.status != UNREADABLE)).sum())
        return {
            "rows": len(self),
            "classes": len(self.classes),
            "labelled": n_labelled,
            "noise_rate": round(self.noise_rate, 6),
            "estimated_wrong": round(self.noise_rate * n_labelled),
            "changed": int(self.changed.sum()),
            "changed_for_review": int((self.changed & (self.status == "review")).sum()),
            "left_alone": 0 if self.left_alone is None else int((self.left_alone & (self.status == "review")).sum()),
            "expected_broken": None if self.expected_broken is None else round(self.expected_broken, 3),
            "kept": self.count("kept"),
            "corrected": self.count("corrected"),
            "review": self.count("review"),
            "reviewed": self.count(REVIEWED),
            "filled": self.count("filled"),
            "unreadable": self.count(UNREADABLE),
            "confused_pairs": [
                {"given": plain_value(p.given), "corrected": plain_value(p.corrected), "count": p.count}
                for p in self.confused_pairs()
            ],
            "review_gain": [asdict(point) for point in self.review_gain()] if self.config.budget else None,
            "audit": None if self.audit is None else asdict(self.audit),
            "temperature": None if self.temperature is None else round(self.temperature, 4),
            "verdict": None if self.verdict is None else self.verdict.plain(),
            "profile": None if self.profile is None else self.profile.plain(),
            "kinds": "" if self.profile is None or self.profile.kinds is None else kinds_text(self.profile),
            "advice": [] if self.profile is None else sentences(self.profile, self.verdict),
            "reasons": None if self.reason is None else {name: self.count_reason(name) for name in REASONS[1:]},
            "seconds": round(self.seconds, 3),
            "warnings": self.warnings,
            **({} if self.annotators is None else {"annotators": self.annotators.summary(self.classes)}),
        }

    def save(self, path: str | Path, force: bool = False) -> Path:
        """Write the run folder; an existing one is replaced only with `force`, and only once the new one is whole."""
        from labelmend.storage.run_folder import save

        return save(self, Path(path), force)

    def report(self, path: str | Path, data: str | Path | None = None, force: bool = False) -> Path:
        """Write one HTML file that shows what happened; `data`: where pictures or rows are now, if they have moved."""
        from labelmend.report.write import write_report

        write_report(self, Path(path), data=None if data is None else Path(data), force=force)
        return Path(path)

    def export(
        self,
        to: str,
        path: str | Path,
        *,
        review: str = "corrected",
        link: bool = False,
        with_data: bool = False,
        data: str | Path | None = None,
        force: bool = False,
    ) -> Path:
        """Hand the labels over in a format of `labelmend export --list`; what is there is replaced only with `force`.

        review: the doubtful ones as decided, or "given": as they were. link: pictures by link instead of copies.
        with_data: your own table around the labels. data: where the data are now, if they have moved.
        """
        from labelmend.export.formats import export

        place = None if data is None else Path(data)
        done = export(self, to, Path(path), force, review=review, link=link, with_data=with_data, data=place)
        for note in done.notes:
            warnings.warn(note, LabelmendWarning, stacklevel=2)
        return done.path


def plain_value(value: Any) -> Any:
    """A JSON value for a class."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, str | int | float | bool) else str(value)

"""Samples worth a look: which they are, and what the run knows about each.

Every gallery carries the rule by which it was chosen, in words, for the line beneath it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelmend.diagnosis.conclude import NONE
from labelmend.inputs.pictures.pixels import quiet
from labelmend.report.html import media_type
from labelmend.result import Correction
from labelmend.storage.originals import Originals, thumbnail

PER_GALLERY = 18
THUMBNAIL = 112  # pixels
CELLS = 12  # of a row that are shown
NO_CLASS = (
    "Among the samples that the net and the graphs are least sure of, those whose label would have changed or that lie "
    "far outside the usual range; the worst first. They were not relabelled. Look for damaged data and missing classes."
)
MAJORITY = 0.5  # of the votes, below which no class fits
NO_MAJORITY = (
    f"No class got {MAJORITY:.0%} of the suggestions in the last vote, and none is the label of more than half of the "
    "nearest samples; the smallest leading share first. Look for damaged data and missing classes."
)


@dataclass(frozen=True)
class Sample:
    id: str
    given: str | None  # None: it had no label
    corrected: str
    status: str
    confidence: float
    certainty: float
    runner_up: str | None
    votes: tuple[tuple[str, float], ...]  # the classes with most of the suggestions, and their shares
    neighbors: tuple[str, int, int] | None  # the most frequent label among the nearest samples, how many, of how many
    picture: bytes | None
    cells: tuple[tuple[str, str], ...]  # of a row of a table
    more_cells: int  # that are not shown

    @property
    def crisp(self) -> bool:
        """A tiny picture, kept as it is."""
        return self.picture is not None and media_type(self.picture) == "image/png"


@dataclass(frozen=True)
class Gallery:
    title: str
    rule: str
    total: int  # samples the rule holds for
    samples: tuple[Sample, ...]


class Describer:
    """What is known about single samples, each looked up once."""

    def __init__(self, result: Correction, originals: Originals, classes: tuple[str, ...]) -> None:
        self.result, self.originals, self.classes = result, originals, classes
        source = result.source
        self.named = () if source is None else (source.labels, source.id, source.trusted)  # shown elsewhere
        self._known: dict[int, Sample] = {}

    def __call__(self, index: int) -> Sample:
        if index not in self._known:
            self._known[index] = self._describe(index)
        return self._known[index]

    def _describe(self, index: int) -> Sample:
        result, second = self.result, self.result.runner_up[index]
        given = int(result.given.codes[index])
        cells = self.cells(index)
        return Sample(
            id=str(result.ids[index]),
            given=self.classes[given] if given >= 0 else None,
            corrected=self.classes[int(result.corrected_codes[index])],
            status=str(result.status[index]),
            confidence=float(result.confidence[index]),
            certainty=float(result.certainty[index]),
            runner_up=None if second is None else str(second),
            votes=self._votes(index),
            neighbors=self._neighbors(index),
            picture=self._picture(index),
            cells=tuple(cells[:CELLS]),
            more_cells=max(0, len(cells) - CELLS),
        )

    def cells(self, index: int) -> list[tuple[str, str]]:
        """The row of the table without what is shown anyhow."""
        return [cell for cell in self.originals.row(index) if cell[0] not in self.named]

    def _votes(self, index: int, most: int = 3) -> tuple[tuple[str, float], ...]:
        votes = self.result.votes
        span = slice(votes.indptr[index], votes.indptr[index + 1])
        order = np.argsort(-votes.data[span], kind="stable")[:most]
        return tuple((self.classes[votes.indices[span][at]], float(votes.data[span][at])) for at in order)

    def _neighbors(self, index: int) -> tuple[str, int, int] | None:
        near = self.result.neighbors[index]
        codes = self.result.corrected_codes[near[near >= 0]].tolist()
        if not codes:
            return None
        code, count = Counter(codes).most_common(1)[0]
        return self.classes[code], count, len(codes)

    def _picture(self, index: int) -> bytes | None:
        with quiet():
            picture = self.originals.picture(index, THUMBNAIL)
        return None if picture is None else thumbnail(picture, THUMBNAIL)


def galleries(result: Correction, describe: Describer, most: int = PER_GALLERY) -> tuple[Gallery, ...]:
    def gallery(title: str, rule: str, ordered: NDArray[np.int64]) -> Gallery:
        return Gallery(title, rule, len(ordered), tuple(describe(int(index)) for index in ordered[:most]))

    corrected = np.flatnonzero(result.status == "corrected")
    return (
        gallery(
            "Surest corrections",
            "Corrected labels, the highest posterior probability first; ties by the certainty of the last vote.",
            surest(result, corrected, len(corrected)),
        ),
        gallery(
            "Hardest decisions",
            "Samples left for review, the lowest posterior probability first.",
            _hardest(result),
        ),
        gallery(
            "Samples no class fits",
            NO_CLASS if result.reason is not None else NO_MAJORITY,
            no_class_fits(result) if result.reason is None else outliers(result),
        ),
    )


def surest(result: Correction, among: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    order = np.lexsort((-result.certainty[among], -result.confidence[among]))
    return among[order[:most]]


def _hardest(result: Correction) -> NDArray[np.int64]:
    doubtful = np.flatnonzero(result.status == "review")
    return doubtful[np.lexsort((result.certainty[doubtful], result.confidence[doubtful]))]


def outliers(result: Correction) -> NDArray[np.int64]:
    """Samples the run found to fit no class, the worst first."""
    assert result.reason is not None
    found = np.flatnonzero(result.reason == NONE)
    return found if result.misfit is None else found[np.argsort(-result.misfit[found], kind="stable")]


def no_class_fits(result: Correction) -> NDArray[np.int64]:
    """Samples without a majority in the last vote and around them, the most divided first."""
    votes = result.votes
    leading = np.asarray(votes.max(axis=1).todense()).ravel()
    open_questions = np.isin(result.status, ("kept", "corrected", "review", "filled"))
    divided: NDArray[np.int64] = np.flatnonzero((leading < MAJORITY) & open_questions)
    divided = divided[_most_alike(result, divided) <= result.neighbors.shape[1] / 2]
    return divided[np.lexsort((result.certainty[divided], leading[divided]))]


def _most_alike(result: Correction, indices: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of the nearest samples carry the label that is most frequent among them."""
    near = result.neighbors[indices]
    codes = np.where(near >= 0, result.corrected_codes[near], -1)
    same = (codes[:, :, None] == codes[:, None, :]) & (codes[:, :, None] >= 0)
    most: NDArray[np.int64] = same.sum(axis=2).max(axis=1, initial=0)
    return most

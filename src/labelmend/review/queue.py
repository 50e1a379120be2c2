"""Which sample a person should see next, and what is left to gain.

The benefit of looking at a sample is the probability that its label is wrong: 1 - confidence, the wrong labels one
look is expected to put right. The queue goes from the largest benefit to the smallest; before all others come labels
that were left alone for want of evidence, about which that probability says least. What is left to gain is the sum
over the samples still open, times how the person's answers so far compare with what was expected of them.

Knows arrays and what stands of the decisions; does not know files, pictures or HTTP.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from labelmend.result import UNREADABLE, Correction
from labelmend.review.decisions import CANNOT_TELL, DECIDED, OPEN, SKIPPED, Standing

STATES = {"open": (OPEN, SKIPPED), "decided": (DECIDED,), "unsure": (CANNOT_TELL,), "skipped": (SKIPPED,), "all": None}
STATUSES = ("review", "corrected", "filled", "kept", UNREADABLE)
DOUBTFUL = frozenset({"review"})
KEPT_FILTERS = 32  # whose members are remembered
PRIOR = 10.0  # expected errors' worth of belief in the run's own probabilities, before a person has said anything


@dataclass(frozen=True)
class Filter:
    """Which samples; the default is all that is doubtful and still open."""

    statuses: frozenset[str] = DOUBTFUL
    label: int | None = None  # given or suggested
    given: int | None = None
    suggested: int | None = None
    probability: tuple[float, float] = (0.0, 1.0)  # of the suggestion
    certainty: tuple[float, float] = (0.0, 1.0)  # of the last vote
    state: str = "open"


@dataclass(frozen=True)
class Progress:
    total: int
    decided: int
    unsure: int
    skipped: int
    open: int
    gain_left: float  # wrong labels that looking at the open ones is expected to put right
    gained: int  # labels that decisions have changed against the run's


@dataclass(frozen=True)
class Pair:
    """Samples with the same given label (-1: none) and the same suggestion."""

    given: int
    suggested: int
    open: int
    total: int
    gain_left: float


class Queue:
    def __init__(self, result: Correction, standing: Standing) -> None:
        self.given = np.asarray(result.given.codes)
        self.suggested = np.asarray(result.corrected_codes)
        self.status = result.status
        self.confidence, self.certainty = result.confidence, result.certainty
        self.standing = standing
        self.benefit = np.where(self.status == UNREADABLE, 0.0, 1.0 - self.confidence.astype(np.float64))
        alone = result.left_alone if result.left_alone is not None else np.zeros(len(self.benefit), dtype=bool)
        order = np.lexsort((-self.benefit, ~(alone & (self.status == "review"))))
        self.rank = np.empty(len(order), dtype=np.int64)
        self.rank[order] = np.arange(len(order))
        self._members: OrderedDict[Filter, NDArray[np.int64]] = OrderedDict()

    def members(self, chosen: Filter) -> NDArray[np.int64]:
        """All samples of the filter whatever stands of them, by benefit."""
        chosen = replace(chosen, state="all")
        found = self._members.get(chosen)
        if found is None:
            inside = np.flatnonzero(self._mask(chosen))
            found = inside[np.argsort(self.rank[inside])]
        self._members[chosen] = found
        self._members.move_to_end(chosen)
        while len(self._members) > KEPT_FILTERS:
            self._members.popitem(last=False)
        return found

    def upcoming(self, chosen: Filter, after: int | None, count: int) -> list[int]:
        """The next samples: those after `after`, then from the beginning, those put off at the very end."""
        members = self.members(chosen)
        if after is not None:
            start = int(np.searchsorted(self.rank[members], self.rank[after], side="right"))
            members = np.concatenate([members[start:], members[:start]])
            members = members[members != after]
        states = STATES[chosen.state]
        if states is None:
            return [int(sample) for sample in members[:count]]
        found: list[int] = []
        for state in states:
            found += members[self.standing.state[members] == state][: count - len(found)].tolist()
        return found

    def progress(self, chosen: Filter) -> Progress:
        members = self.members(chosen)
        counts = np.bincount(self.standing.state[members], minlength=4).tolist()
        left = members[self._is_open(members)]
        return Progress(
            total=len(members),
            decided=counts[DECIDED],
            unsure=counts[CANNOT_TELL],
            skipped=counts[SKIPPED],
            open=counts[OPEN],
            gain_left=float(self.benefit[left].sum()) * self.correction_factor(),
            gained=int(self._changed(members).sum()),
        )

    def pairs(self, chosen: Filter) -> list[Pair]:
        """Pairs of given label and suggestion within the filter, the largest gain first."""
        members = self.members(replace(chosen, given=None, suggested=None))
        n_classes = int(self.suggested.max(initial=0)) + 1
        keys, place = np.unique(
            (self.given[members] + 1) * n_classes + self.suggested[members], return_inverse=True
        )  # a given label of -1 is none
        left = self._is_open(members)
        total, still = np.bincount(place), np.bincount(place[left], minlength=len(keys))
        gain = np.bincount(place[left], self.benefit[members[left]], len(keys)) * self.correction_factor()
        order = np.lexsort((keys, -still, -gain))
        return [
            Pair(int(keys[i] // n_classes) - 1, int(keys[i] % n_classes), int(still[i]), int(total[i]), float(gain[i]))
            for i in order
        ]

    def correction_factor(self) -> float:
        """How many errors a person found, against the number expected, drawn to 1 while they have decided little."""
        decided = np.flatnonzero(self.standing.state == DECIDED)
        expected = float(self.benefit[decided].sum())
        return (float(self._changed(decided).sum()) + PRIOR) / (expected + PRIOR)

    def _changed(self, samples: NDArray[np.int64]) -> NDArray[np.bool_]:
        decided = self.standing.state[samples] == DECIDED
        changed: NDArray[np.bool_] = decided & (self.standing.code[samples] != self.suggested[samples])
        return changed

    def _is_open(self, samples: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.isin(self.standing.state[samples], (OPEN, SKIPPED))

    def _mask(self, chosen: Filter) -> NDArray[np.bool_]:
        mask = np.isin(self.status, list(chosen.statuses))
        if chosen.label is not None:
            mask &= (self.given == chosen.label) | (self.suggested == chosen.label)
        if chosen.given is not None:
            mask &= self.given == chosen.given
        if chosen.suggested is not None:
            mask &= self.suggested == chosen.suggested
        for values, (low, high) in ((self.confidence, chosen.probability), (self.certainty, chosen.certainty)):
            if (low, high) != (0.0, 1.0):
                mask &= (values >= low) & (values <= high)
        return mask

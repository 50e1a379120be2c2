"""The samples of a run as a review sees them: which comes next, what is left to gain, what is known of each.

The benefit of looking at a sample is the probability that its label is wrong: 1 - confidence, the wrong labels one
look is expected to put right. The queue goes from the largest benefit to the smallest; before all others come labels
that were left alone for want of evidence, about which that probability says least. What is left to gain is the sum
over the samples still open, times how the person's answers so far compare with what was expected of them.

Knows the result and what stands of the decisions; does not know files, pictures, HTTP or how anything is shown.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.diagnosis.conclude import NONE, TWO
from labelmend.result import UNREADABLE, Correction
from labelmend.review.decisions import CANNOT_TELL, DECIDED, LABEL, OPEN, SKIPPED, Standing
from labelmend.storage.run_files import as_text

STATES = {"open": (OPEN, SKIPPED), "decided": (DECIDED,), "unsure": (CANNOT_TELL,), "skipped": (SKIPPED,), "all": None}
STATUSES = ("review", "corrected", "filled", "kept", UNREADABLE)
DOUBTFUL = frozenset({"review"})
KEPT_FILTERS = 32  # whose members are remembered
PRIOR = 10.0  # expected errors' worth of belief in the run's own probabilities, before a person has decided anything
SHOWN_VOTES = 6  # classes with the largest shares
SPLIT_VOTE = 0.6  # a winner with less than this share did not win clearly
OUTLIER = "It fits no class: no other sample is much like it. The given label was left alone."
AMBIGUOUS = "It fits two classes: the evidence is divided between them."


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


@dataclass(frozen=True)
class Vote:
    label: int
    share: float


@dataclass(frozen=True)
class Neighbor:
    """Labels are class codes; `label` is what holds now: a person's decision, or else the run's."""

    sample: int
    id: str
    given: int | None
    label: int
    decided: bool


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
        self._sorted = functools.lru_cache(KEPT_FILTERS)(self._sort)

    def members(self, chosen: Filter) -> NDArray[np.int64]:
        """All samples of the filter whatever stands of them, by benefit."""
        return self._sorted(replace(chosen, state="all"))

    def _sort(self, chosen: Filter) -> NDArray[np.int64]:
        inside = np.flatnonzero(self._mask(chosen))
        return inside[np.argsort(self.rank[inside])]

    def upcoming(self, chosen: Filter, after: int | None, count: int) -> list[int]:
        """The next samples: those after `after`, then from the beginning, the skipped ones at the very end."""
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
        for codes, code in ((self.given, chosen.given), (self.suggested, chosen.suggested)):
            if code is not None:
                mask &= codes == code
        for values, (low, high) in ((self.confidence, chosen.probability), (self.certainty, chosen.certainty)):
            if (low, high) != (0.0, 1.0):
                mask &= (values >= low) & (values <= high)
        return mask


class Evidence:
    """What is known of one sample: labels, probability, votes, neighbours, and why it is here, in words."""

    def __init__(self, result: Correction, standing: Standing) -> None:
        self.result, self.standing = result, standing
        self.names = [as_text(value) for value in result.classes]
        self._code = {value: code for code, value in enumerate(result.classes.tolist())}
        codes = result.given.codes
        self._sizes = np.bincount(codes[codes >= 0], minlength=len(self.names))
        self._twins = {sample: group for group in result.duplicates for sample in group}

    def about(self, sample: int) -> dict[str, Any]:
        """As plain values; labels are class codes."""
        votes = self._votes(sample)
        neighbors = [self._neighbor(int(other)) for other in self.result.neighbors[sample] if other >= 0]
        return {
            **self.brief(sample),
            "status": str(self.result.status[sample]),
            "runner_up": self._runner_up(sample),
            "certainty": float(self.result.certainty[sample]),
            "votes": [asdict(vote) for vote in votes],
            "neighbors": [asdict(neighbor) for neighbor in neighbors],
            "reasons": list(self._reasons(sample, votes, neighbors)),
        }

    def brief(self, sample: int) -> dict[str, Any]:
        return {
            "sample": sample,
            "id": as_text(self.result.ids[sample]),
            "given": self._given(sample),
            "suggestion": int(self.result.corrected_codes[sample]),
            "probability": float(self.result.confidence[sample]),
            "stands": self.stands(sample),
        }

    def stands(self, sample: int) -> dict[str, Any]:
        """What a person has decided about the sample so far; number 0: nothing."""
        line = self.standing.line(sample)
        if line is None:
            return {"number": 0, "step": 0, "kind": None, "label": None}
        return {"number": line.number, "step": line.step, "kind": line.kind, "label": line.code}

    def _given(self, sample: int) -> int | None:
        code = int(self.result.given.codes[sample])
        return None if code < 0 else code

    def _runner_up(self, sample: int) -> int | None:
        value = self.result.runner_up[sample]
        return self._code.get(value.item() if isinstance(value, np.generic) else value)

    def _votes(self, sample: int) -> list[Vote]:
        """Classes by their share of the suggestions; the largest ones."""
        row = self.result.votes[sample]
        order = np.argsort(-row.data, kind="stable")[:SHOWN_VOTES]
        return [Vote(int(row.indices[place]), float(row.data[place])) for place in order]

    def _neighbor(self, sample: int) -> Neighbor:
        line = self.standing.line(sample)
        decided = line is not None and line.kind == LABEL
        label = line.code if line is not None and line.code is not None else self.result.corrected_codes[sample]
        return Neighbor(sample, as_text(self.result.ids[sample]), self._given(sample), int(label), decided)

    def _reasons(self, sample: int, votes: list[Vote], neighbors: list[Neighbor]) -> Iterator[str]:
        yield self._why(sample)
        near = Counter(neighbor.label for neighbor in neighbors).most_common(2)
        if against := self._against(sample, votes, near):
            yield (
                f"The {' and the '.join(against)} favour another class, but did not decide: models that had not seen "
                "this label support it."
            )
        if self.result.reason is not None and self.result.reason[sample] == TWO:
            yield AMBIGUOUS
        if len(votes) > 1 and votes[0].share < SPLIT_VOTE:
            one, two = votes[:2]
            yield (
                f"The branches are divided: {_percent(one.share)} of their suggestions are {self.names[one.label]}, "
                f"{_percent(two.share)} {self.names[two.label]}."
            )
        elif not votes and self.result.status[sample] != UNREADABLE:
            yield "No branch had a suggestion: no labelled sample is near enough."
        if neighbors:
            parts = [f"{count} {'are' if count > 1 else 'is'} {self.names[label]}" for label, count in near]
            yield f"Of its {len(neighbors)} nearest samples {' and '.join(parts)}."
        if others := [other for other in self._twins.get(sample, ()) if other != sample]:
            yield f"An identical sample has another label: {as_text(self.result.ids[others[0]])}."

    def _why(self, sample: int) -> str:
        """The decision of the run, in words."""
        result, code = self.result, int(self.result.given.codes[sample])
        suggested = int(result.corrected_codes[sample])
        label, sure = self.names[suggested], _percent(float(result.confidence[sample]))
        status = result.status[sample]
        if status == UNREADABLE:
            reason = result.unreadable.get(as_text(result.ids[sample]), "the reason is not known")
            return f"The picture could not be read: {reason}."
        if code < 0:
            return f"It came without a label; {label} was filled in at {sure}."
        if status == "kept":
            return f"The given label was kept at {sure}."
        if status == "corrected":
            return f"The label was changed at {sure}, high enough to change it without a review."
        if result.reason is not None and result.reason[sample] == NONE:
            return OUTLIER
        if self._sizes[code] < result.config.min_class_size:
            count = int(self._sizes[code])
            return f"Only {count} sample{'s have' if count > 1 else ' has'} this label: too few to judge, left alone."
        if result.left_alone is not None and result.left_alone[sample]:
            return self._left_alone(sample)
        bar = _percent(result.config.review_below)
        if code == suggested:
            return f"The given label is the best guess, but only at {sure}; below {bar} a person should look."
        return f"The given label is probably wrong, but {label} has only {sure}; below {bar} a person should look."

    def _left_alone(self, sample: int) -> str:
        """The label stays although there is evidence against it: no figure, because none is to be relied on."""
        other, verdict = self._runner_up(sample), self.result.verdict
        better = f"; {self.names[other]} may be right" if other is not None else ""
        where = "Near a border a good label looks like an error, so a person should look."
        if verdict is not None and verdict.cannot_tell:
            where = "These data hardly tell the classes apart, so a person has to."
        return f"The given label was left alone for want of evidence{better}. {where}"

    def _against(self, sample: int, votes: list[Vote], near: list[tuple[int, int]]) -> list[str]:
        """What is shown beside a settled label and names another class."""
        if str(self.result.status[sample]) not in ("kept", "corrected") or self.result.verdict is None:
            return []
        named = {"votes": votes[0].label} if votes else {}
        named |= {"nearest samples": near[0][0]} if near else {}
        return [name for name, label in named.items() if label != int(self.result.corrected_codes[sample])]


def _percent(share: float) -> str:
    """Never 100 % for what is not certain."""
    return ">99 %" if 0.995 <= share < 1 else f"{share:.0%}".replace("%", " %")

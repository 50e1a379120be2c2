"""What is known of one sample, gathered for a person: labels, probability, votes, neighbours, and why it is here.

Knows the result of a run and what stands of the decisions; does not know how it is shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from labelmend.diagnosis.reasons import NONE, TWO
from labelmend.result import UNREADABLE, Correction
from labelmend.review.decisions import LABEL, Standing
from labelmend.storage.run_files import as_text

SHOWN_VOTES = 6  # classes with the largest shares
OUTLIER = "It fits no class: no other sample is much like it. Its label was left as given, whatever the guess."
AMBIGUOUS = "It fits two classes: the evidence is divided between them."
SPLIT_VOTE = 0.6  # a winner with less than this share did not win clearly


@dataclass(frozen=True)
class Share:
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


@dataclass(frozen=True)
class Stands:
    """What a person has said about the sample so far; number 0: nothing."""

    number: int
    step: int
    kind: str | None
    label: int | None


@dataclass(frozen=True)
class Evidence:
    sample: int
    id: str
    status: str
    given: int | None
    suggestion: int
    probability: float
    runner_up: int | None
    certainty: float
    votes: list[Share]
    neighbors: list[Neighbor]
    reasons: list[str]
    stands: Stands


class Witness:
    """Answers for every sample of a run; made once, asked often."""

    def __init__(self, result: Correction, standing: Standing) -> None:
        self.result, self.standing = result, standing
        self.names = [as_text(value) for value in result.classes]
        self._code = {value: code for code, value in enumerate(result.classes.tolist())}
        codes = result.given.codes
        self._sizes = np.bincount(codes[codes >= 0], minlength=len(self.names))
        self._twins = {sample: group for group in result.duplicates for sample in group}

    def about(self, sample: int) -> Evidence:
        result = self.result
        votes, neighbors = self.votes(sample), self.neighbors(sample)
        return Evidence(
            sample=sample,
            id=as_text(result.ids[sample]),
            status=str(result.status[sample]),
            given=_known(result.given.codes[sample]),
            suggestion=int(result.corrected_codes[sample]),
            probability=float(result.confidence[sample]),
            runner_up=self._code.get(_plain(result.runner_up[sample])),
            certainty=float(result.certainty[sample]),
            votes=votes,
            neighbors=neighbors,
            reasons=list(self._reasons(sample, votes, neighbors)),
            stands=self.stands(sample),
        )

    def stands(self, sample: int) -> Stands:
        line = self.standing.line(sample)
        return Stands(0, 0, None, None) if line is None else Stands(line.number, line.step, line.kind, line.code)

    def votes(self, sample: int) -> list[Share]:
        """Classes by their share of the suggestions; the largest ones."""
        row = self.result.votes[sample]
        order = np.argsort(-row.data, kind="stable")[:SHOWN_VOTES]
        return [Share(int(row.indices[place]), float(row.data[place])) for place in order]

    def neighbors(self, sample: int) -> list[Neighbor]:
        return [self._neighbor(int(other)) for other in self.result.neighbors[sample] if other >= 0]

    def _neighbor(self, sample: int) -> Neighbor:
        line = self.standing.line(sample)
        decided = line is not None and line.kind == LABEL
        label = line.code if line is not None and line.code is not None else self.result.corrected_codes[sample]
        name = as_text(self.result.ids[sample])
        return Neighbor(sample, name, _known(self.result.given.codes[sample]), int(label), decided)

    def _reasons(self, sample: int, votes: list[Share], neighbors: list[Neighbor]) -> Iterator[str]:
        yield self._why(sample)
        if (odd := self._against(sample, votes, neighbors)) is not None:
            yield odd
        if (reason := self._reason(sample)) is not None:
            yield reason
        if len(votes) > 1 and votes[0].share < SPLIT_VOTE:
            one, two = votes[:2]
            yield (
                f"The branches are divided: {_percent(one.share)} of their suggestions say {self.names[one.label]}, "
                f"{_percent(two.share)} {self.names[two.label]}."
            )
        elif not votes and self.result.status[sample] != UNREADABLE:
            yield "No branch had a suggestion: no labelled sample is near enough."
        if neighbors:
            yield self._neighborhood(neighbors)
        if others := [other for other in self._twins.get(sample, ()) if other != sample]:
            yield f"An identical sample has another label: {as_text(self.result.ids[others[0]])}."

    def _why(self, sample: int) -> str:
        """The decision of the run, in words."""
        result, code = self.result, int(self.result.given.codes[sample])
        label, sure = self.names[int(result.corrected_codes[sample])], _percent(float(result.confidence[sample]))
        status = result.status[sample]
        if status == UNREADABLE:
            reason = result.unreadable.get(as_text(result.ids[sample]), "no reason is known")
            return f"The picture could not be read: {reason}."
        if code < 0:
            return f"It came without a label; {label} was filled in at {sure}."
        if status == "kept":
            return f"The given label was kept at {sure}."
        if status == "corrected":
            return f"The label was changed at {sure}, sure enough to do it without asking."
        if result.reason is not None and result.reason[sample] == NONE:
            return OUTLIER
        if self._sizes[code] < result.config.min_class_size:
            count = int(self._sizes[code])
            return f"Only {count} sample{'s have' if count > 1 else ' has'} this label: too few to judge, left alone."
        if result.left_alone is not None and result.left_alone[sample]:
            return self._left_alone(sample)
        bar = _percent(result.config.review_below or 0.0)
        if code == int(result.corrected_codes[sample]):
            return f"The given label is the best guess, but only at {sure}; below {bar} a person should look."
        return f"The given label is probably wrong, but {label} has only {sure}; below {bar} a person should look."

    def _left_alone(self, sample: int) -> str:
        """The label stays although something speaks against it: no figure, because none is to be relied on."""
        other = self._code.get(_plain(self.result.runner_up[sample]))
        better = f"; {self.names[other]} may be right" if other is not None else ""
        return f"The given label was left alone for want of evidence{better}. {self._where_that_leaves_us()}"

    def _where_that_leaves_us(self) -> str:
        verdict = self.result.verdict
        if verdict is not None and verdict.cannot_tell:
            return "These data hardly tell the classes apart, so a person has to."
        return "Near a border a good label looks like an error, so a person should look."

    def _against(self, sample: int, votes: list[Share], neighbors: list[Neighbor]) -> str | None:
        """Where votes or neighbours, which are shown, name another class than the label: why that did not decide."""
        label = int(self.result.corrected_codes[sample])
        if str(self.result.status[sample]) not in ("kept", "corrected") or self.result.verdict is None:
            return None
        near = Counter(neighbor.label for neighbor in neighbors).most_common(1)
        against = [what for what, named in _named(votes, near).items() if named != label]
        if not against:
            return None
        return (
            f"Its {' and '.join(against)} say otherwise, but did not decide: models that had not seen this label, and "
            "were asked about it, support it."
        )

    def _reason(self, sample: int) -> str | None:
        """What the run found besides: that the sample is ambiguous."""
        found = "" if self.result.reason is None else str(self.result.reason[sample])
        return AMBIGUOUS if found == TWO else None

    def _neighborhood(self, neighbors: list[Neighbor]) -> str:
        counts = Counter(neighbor.label for neighbor in neighbors).most_common(2)
        parts = [f"{count} {'are' if count > 1 else 'is'} {self.names[label]}" for label, count in counts]
        return f"Of its {len(neighbors)} nearest samples {' and '.join(parts)}."


def _named(votes: list[Share], near: list[tuple[int, int]]) -> dict[str, int]:
    """What is shown beside a label, and the class that each names."""
    found = {"votes": votes[0].label} if votes else {}
    return {**found, "nearest samples": near[0][0]} if near else found


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _known(code: Any) -> int | None:
    return None if code < 0 else int(code)


def _percent(share: float) -> str:
    """Never 100 % for what is not certain."""
    return ">99 %" if 0.995 <= share < 1 else f"{share:.0%}".replace("%", " %")

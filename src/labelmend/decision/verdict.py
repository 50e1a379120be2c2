"""Are the classes apart, and who supports the changes? `result.verdict`, with its numbers and what follows in words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

APART, OVERLAPPING, CANNOT_TELL = "apart", "overlapping", "cannot tell"


@dataclass(frozen=True)
class Parts:
    """The labels of pool and ensemble before they were joined, for those who compare them; class codes."""

    pool_labels: NDArray[np.int64]
    pool_probs: NDArray[np.float32]
    proposals: NDArray[np.int64]  # the ensemble's
    agreed: NDArray[np.bool_]  # disputed rows on which the pool and the weighed graphs are with the ensemble


@dataclass(frozen=True)
class Verdict:
    classes: str  # apart | overlapping | cannot tell
    assume: str  # the option: auto | apart | overlapping
    n_classes: int
    labelled: int
    overlap: float  # how often the pool's best guess is expected to be wrong
    noise_low: float  # 90 % interval of the share of scattered errors
    noise_high: float
    mixing: float | None  # of the ensemble's votes: 0 neighbours never differ, 1 as often as by chance; None: no votes
    disputed: int  # labels that the pool keeps and the ensemble would change
    linear: float  # how often linear members support the ensemble there
    trees: float  # and trees
    adopted: int  # labels changed on the ensemble's proposal
    waiting: int  # labels left alone that pool or ensemble would change: first in line for review
    members: dict[str, float]  # weights in the pool
    note: str = ""  # anything else that decided

    @property
    def cannot_tell(self) -> bool:
        return self.classes == CANNOT_TELL

    @property
    def reason(self) -> str:
        """One sentence or two for people."""
        return " ".join(part for part in (self._sentence(), self.note) if part)

    def _sentence(self) -> str:
        if self.classes == CANNOT_TELL:
            return self._cannot_tell()
        if self.classes == APART and self.adopted:
            return (
                f"apart ({self._mixing()}linear models support {self.linear:.0%} and trees {self.trees:.0%} of the "
                f"ensemble's proposals): errors that sit together were corrected too, {self.adopted:,} labels."
            )
        if self.classes == APART:
            if self.assume == APART:
                return f"apart ({self._mixing()}assumed): every label is the best guess."
            return f"apart ({self._mixing()}nothing was adopted from the ensemble alone)."
        assumed = "assumed; " if self.assume == OVERLAPPING else self._mixing()
        adopted = f"{self.adopted:,} labels changed where most members support the ensemble; " if self.adopted else ""
        queue = f" First in line for review: {self.waiting:,} labels left alone." if self.waiting else ""
        return (
            f"overlapping ({assumed}best guess right in {1 - self.overlap:.0%}): {adopted}labels near borders were "
            f"left alone, and errors that sit together could not be seen.{queue}"
        )

    def _cannot_tell(self) -> str:
        if self.n_classes > 2:
            return (
                f"the features hardly tell these classes apart (best guess right in {1 - self.overlap:.0%}): cannot "
                "tell which labels are wrong, nothing was changed."
            )
        return (
            f"cannot tell: either up to {self.noise_high:.0%} of the labels are wrong, or these features say little "
            "about the classes. If a careful person could tell nearly every row's class from them, say assume=apart."
        )

    def _mixing(self) -> str:
        return "" if self.mixing is None else f"mixing {self.mixing:.2f}; "

    def plain(self) -> dict[str, Any]:
        """Ready for JSON; an infinite mixing proves nothing and is None."""
        found = asdict(self)
        found["mixing"] = None if self.mixing in (None, float("inf")) else self.mixing
        return {**found, "reason": self.reason}


def verdict_from(plain: dict[str, Any]) -> Verdict:
    """What `plain` wrote, read back."""
    return Verdict(**{name: value for name, value in plain.items() if name != "reason"})

"""What the report says about classes: which given labels became which, and how wrong those of a class are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelmend.report.samples import Describer, Sample, surest
from labelmend.result import UNREADABLE, Correction, plain_value

MATRIX_CLASSES = 20  # of more only those with most changes are shown
SHADES, DARKEST = 8, 0.2  # steps of the matrix; share of a row that is darkest, or the largest if that is more
PAIRS, PAIR_SAMPLES = 8, 6
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Flow:
    """Rows: given. Columns: corrected. Where classes are left out, `changes_shown` is less than `changes`."""

    names: tuple[str, ...]
    counts: NDArray[np.int64]
    n_classes: int
    changes: int
    changes_shown: int

    def cells(self) -> list[tuple[str, list[tuple[int, str]]]]:
        """Rows of the matrix: the given class; of each corrected one the count, and the class name of its colour."""
        shares = self.counts / np.maximum(self.counts.sum(axis=1, keepdims=True), 1)
        np.fill_diagonal(shares, 0)
        steps = SHADES * np.sqrt(shares / max(float(shares.max(initial=0.0)), DARKEST))
        found = []
        for at, (name, counts) in enumerate(zip(self.names, self.counts.tolist(), strict=True)):
            shades = [
                f"shade-{max(1, round(step))}" if count else ""
                for step, count in zip(steps[at].tolist(), counts, strict=True)
            ]
            shades[at] = "diagonal"
            found.append((name, list(zip(counts, shades, strict=True))))
        return found


@dataclass(frozen=True)
class Pair:
    given: str
    corrected: str
    count: int
    samples: tuple[Sample, ...]  # the surest of them
    typical_given: Sample | None  # that kept the label, for comparison
    typical_corrected: Sample | None


@dataclass(frozen=True)
class ClassNoise:
    """Estimated: shares are None where there is nothing to take a share of."""

    name: str
    labels: int  # given as this class
    wrong: float | None  # share of these that is wrong
    missed: float | None  # share of the samples that belong here that carry another label
    changed: int  # of the labels given as this class
    arrived: int  # labels that were changed to this class


def flow(result: Correction, classes: tuple[str, ...], most: int = MATRIX_CLASSES) -> Flow:
    given, corrected = _labelled(result)
    moved = given != corrected
    n = len(classes)
    changes = np.bincount(given[moved], minlength=n) + np.bincount(corrected[moved], minlength=n)
    sizes = np.bincount(given, minlength=n)
    shown = np.sort(np.lexsort((-sizes, -changes))[:most])
    place = np.full(n, -1)
    place[shown] = np.arange(len(shown))
    inside = (place[given] >= 0) & (place[corrected] >= 0)
    counts = np.zeros((len(shown), len(shown)), dtype=np.int64)
    np.add.at(counts, (place[given[inside]], place[corrected[inside]]), 1)
    names = tuple(classes[code] for code in shown)
    return Flow(names, counts, n, int(moved.sum()), int((moved & inside).sum()))


def pairs(result: Correction, describe: Describer) -> tuple[Pair, ...]:
    """The pairs that changed most, with the surest samples of each and typical ones of both classes."""
    given, corrected = result.given.codes, result.corrected_codes
    place = {plain_value(value): code for code, value in enumerate(result.classes)}
    settled = np.isin(result.status, ("kept", "reviewed")) & (given == corrected)

    def typical(code: int) -> Sample | None:
        found = surest(result, np.flatnonzero(settled & (given == code)), 1)
        return describe(int(found[0])) if len(found) else None

    out = []
    for pair in result.confused_pairs(PAIRS):
        old, new = place[plain_value(pair.given)], place[plain_value(pair.corrected)]
        members = surest(result, np.flatnonzero((given == old) & (corrected == new)), PAIR_SAMPLES)
        samples = tuple(describe(int(index)) for index in members)
        out.append(Pair(describe.classes[old], describe.classes[new], pair.count, samples, typical(old), typical(new)))
    return tuple(out)


def class_noise(result: Correction, classes: tuple[str, ...]) -> tuple[ClassNoise, ...]:
    """Worst first. Bayes: of the labels g, the share T[g, g] q(g) / sum_c T[c, g] q(c) is right.

    T = P(given | true) is the estimate of the run, q the shares of the classes among the corrected labels.
    """
    given, corrected = _labelled(result)
    n = len(classes)
    labels, after = np.bincount(given, minlength=n), np.bincount(corrected, minlength=n)
    moved = given != corrected
    changed, arrived = np.bincount(given[moved], minlength=n), np.bincount(corrected[moved], minlength=n)
    expected = after @ result.transition
    right = np.divide(after * result.transition.diagonal(), expected, out=np.zeros(n), where=expected > 0)
    found = [
        ClassNoise(
            classes[code],
            int(labels[code]),
            float(1 - right[code]) if labels[code] else None,
            float(1 - result.transition[code, code]) if after[code] else None,
            int(changed[code]),
            int(arrived[code]),
        )
        for code in range(n)
    ]
    return tuple(sorted(found, key=lambda noise: -(noise.wrong or 0) * noise.labels))


def _labelled(result: Correction) -> tuple[Codes, Codes]:
    """Given and corrected labels of the samples that had one and could be read."""
    counted = (result.given.codes >= 0) & (result.status != UNREADABLE)
    return result.given.codes[counted], result.corrected_codes[counted]

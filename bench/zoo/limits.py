"""The joining rule, replayed from each cell's numbers, with every limit in it chosen on the other families.

The rule: where the features hardly tell more than two classes apart (overlap), nothing is changed. Where enough rows
are disputed (and two votes agree, where a run has two), those rows take the ensemble's class: all of them where its
classes are apart (mixing below `near`) and linear members and trees support it, those that the pool prefers where
classes are less apart (below `far`) and the support is stronger. Everywhere else the pool's labels stand.

A limit that was looked for on cells it is judged on looks better than it is. Here it is moved by up to a fifth, the
best value is taken on all families but one, and that family is judged with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.decision import joining

Array = NDArray[np.float64]
FACTORS = (0.8, 0.9, 1.0, 1.1, 1.2)
PASSES = 2  # over all limits, where they are chosen together
VERDICT = ("mixing", "agreement", "disputed", "linear", "trees", "overlap")
UNPROVEN = {"mixing": np.inf, "agreement": 1.0}  # where a run does not say
OUTCOMES = ("given", "pool", "everything", "preferred", "labelmend")


@dataclass(frozen=True)
class Limits:
    overlap: float = joining.UNPREDICTABLE  # above: cannot tell, with more than two classes
    disagreement: float = 0.07  # of votes with and without division by class size, at most, where a run has both
    disputed: float = joining.DISPUTED  # share of rows, at least
    near: float = joining.WELL_APART  # mixing below: all disputed rows
    far: float = joining.STILL_APART  # mixing below: those that are preferred
    linear_near: float = joining.LINEAR_SUPPORT  # support of linear members beyond mixing
    trees_near: float = joining.TREE_SUPPORT
    linear_far: float = joining.MORE_LINEAR
    trees_far: float = joining.MORE_TREES


NAMES = tuple(field.name for field in fields(Limits))


@dataclass(frozen=True)
class Cells:
    """Columns along the cells."""

    families: NDArray[np.str_]
    classes: Array
    verdict: dict[str, Array]
    right: dict[str, Array]  # percent, by OUTCOMES

    def __len__(self) -> int:
        return len(self.families)


@dataclass(frozen=True)
class Chosen:
    """One limit, or all of them, chosen on the other families."""

    name: str
    value: float | None  # as the rule has it; None: several limits
    by_factor: tuple[float, ...]  # mean percent right with the limit moved; empty: several
    right: Array  # by cell, with what the other families chose
    factors: tuple[float, ...]  # the choice of each family; empty: several


def as_cells(lines: Iterable[dict[str, Any]]) -> Cells:
    """Of the lines that have all numbers. A mixing that proves nothing is infinite."""
    whole = [line for line in lines if is_whole(line)]
    verdict = {name: np.array([_number(line["verdict"], name) for line in whole]) for name in VERDICT}
    right = {name: np.array([line["methods"][name]["right"] for line in whole]) for name in OUTCOMES}
    families = np.array([line["family"] for line in whole], dtype=np.str_)
    return Cells(families, np.array([float(line["classes"]) for line in whole]), verdict, right)


def is_whole(line: dict[str, Any]) -> bool:
    known = all(line["verdict"].get(name) is not None for name in VERDICT if name not in UNPROVEN)
    return known and set(OUTCOMES) <= set(line["methods"])


def replay(cells: Cells, limits: Limits) -> Array:
    """Percent right in every cell under these limits."""
    v, right = cells.verdict, cells.right
    cannot = (v["overlap"] > limits.overlap) & (cells.classes > 2)
    open_to = ~cannot & (1 - v["agreement"] < limits.disagreement) & (v["disputed"] > limits.disputed)
    near = v["mixing"] < limits.near
    all_rows = near & (v["linear"] > limits.linear_near + v["mixing"]) & (v["trees"] > limits.trees_near)
    some = ~near & (v["mixing"] < limits.far) & (v["linear"] > limits.linear_far) & (v["trees"] > limits.trees_far)
    taken = [cannot, open_to & all_rows, open_to & some]
    return np.select(taken, [right["given"], right["everything"], right["preferred"]], right["pool"])


def moved(limits: Limits, name: str, factor: float) -> Limits:
    return replace(limits, **{name: getattr(limits, name) * factor})


def choose_one(cells: Cells, name: str, limits: Limits) -> Chosen:
    table = np.stack([replay(cells, moved(limits, name, factor)) for factor in FACTORS])
    right, factors = np.empty(len(cells)), []
    for family in np.unique(cells.families):
        own = cells.families == family
        best = best_of(table[:, ~own].sum(axis=1))
        right[own] = table[best, own]
        factors.append(FACTORS[best])
    return Chosen(name, getattr(limits, name), tuple(table.mean(axis=1).tolist()), right, tuple(factors))


def choose_all(cells: Cells, limits: Limits) -> Chosen:
    """All limits, one after the other and each given the others, twice over."""
    right = np.empty(len(cells))
    for family in np.unique(cells.families):
        own = cells.families == family
        found = tune(cells, limits, ~own)
        right[own] = replay(cells, found)[own]
    return Chosen("all of them", None, (), right, ())


def tune(cells: Cells, limits: Limits, among: NDArray[np.bool_]) -> Limits:
    found = limits
    for _ in range(PASSES):
        for name in NAMES:  # each around its value in the rule, however the others stand
            tries = [replace(found, **{name: getattr(limits, name) * factor}) for factor in FACTORS]
            found = tries[best_of(np.array([replay(cells, one)[among].sum() for one in tries]))]
    return found


def best_of(sums: Array) -> int:
    """The place of the largest sum; of equal ones the factor nearest to 1."""
    best = np.flatnonzero(sums >= sums.max() - 1e-9)
    return int(min(best, key=lambda place: abs(FACTORS[place] - 1)))


def left_out(cells: Cells, limits: Limits | None = None) -> list[Chosen]:
    """Each limit alone, then all together; nothing with a single family."""
    limits = limits or Limits()
    if len(np.unique(cells.families)) < 2:
        return []
    names = [name for name in NAMES if name != "disagreement" or (cells.verdict["agreement"] < 1).any()]
    return [*(choose_one(cells, name, limits) for name in names), choose_all(cells, limits)]


def agreeing(cells: Cells, right: Sequence[float] | Array) -> int:
    """Cells where the replayed rule comes to what the run decided: fewer than all means that the rule has changed."""
    return int((np.abs(np.asarray(right) - cells.right["labelmend"]) < 1e-3).sum())


def _number(verdict: dict[str, Any], name: str) -> float:
    value = verdict.get(name)
    return float(UNPROVEN[name] if value is None else value)

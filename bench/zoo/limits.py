"""What the joining rule did in the cells, and what its limits are worth on families they were not chosen on.

The rule: where the features hardly tell more than two classes apart (overlap), nothing is changed. Where enough rows
are disputed (and two votes agree, where a run has two), those rows take the ensemble's class: all of them where its
classes are apart (mixing below `near`) and linear members and trees support it, those that the pool prefers where
classes are less apart (below `far`) and the support is stronger. Everywhere else the pool's labels stand.

A limit that was looked for on cells it is judged on looks better than it is. Here the rule is replayed from each cell's
numbers with one limit moved by up to a fifth, the best value is taken on all families but one, and that family is
judged with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.zoo.layout import Entry, Table, mean_over_families
from bench.zoo.measure import OURS, Line
from bench.zoo.tables import Lines, count_outcomes, kinds_of
from labelmend.decision import joining

Array = NDArray[np.float64]
FACTORS = (0.8, 0.9, 1.0, 1.1, 1.2)
PASSES = 2  # over all limits, where they are chosen together
VERDICT = ("mixing", "agreement", "disputed", "linear", "trees", "overlap")
UNPROVEN = {"mixing": np.inf, "agreement": 1.0}  # where a run has no such number
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


def verdicts(lines: Lines) -> Table | None:
    """How many cells of each kind were taken for what, and in how many something was let in."""
    judged = [line for line in lines if line["verdict"]]
    if not judged:
        return None
    kinds = kinds_of(judged)
    words = Counter((line["verdict"]["classes"], line["kind"]) for line in judged)
    rows: list[tuple[str, Sequence[Entry]]] = []
    for word in dict.fromkeys(line["verdict"]["classes"] for line in judged):
        counts = [words[word, kind] for kind in kinds]
        rows.append((str(word), [sum(counts), *counts]))
    let_in = Counter(line["kind"] for line in judged if line["verdict"]["adopted"])
    rows.append(("the ensemble was let in", [let_in.total(), *(let_in[kind] for kind in kinds)]))
    return Table("Verdicts, number of cells", ["all", *kinds], rows)


def let_in(lines: Lines, n: int = 10) -> Table | None:
    """The cells where the ensemble was let in, with what that gained over the pool; the worst first."""
    joined = [line for line in lines if line["verdict"].get("adopted") and "pool" in line["methods"]]
    if not joined:
        return None
    gains = {id(line): line["methods"][OURS]["right"] - line["methods"]["pool"]["right"] for line in joined}
    worst = sorted(joined, key=lambda line: gains[id(line)])[:n]
    rows = [(f"{line['name']}:{line['kind']}", evidence(line, gains[id(line)])) for line in worst]
    better, same, worse = count_outcomes(gains.values())
    up, down = (sum(g for g in gains.values() if keep(g)) for keep in ((lambda g: g > 0), (lambda g: g < 0)))
    note = f"Let in in {len(joined)} cells: better in {better}, worse in {worse}, within half a point in {same}; "
    head = ["gain", "given", "pool", "joined", "mixing", "agreement", "disputed", "linear", "trees", "overlap"]
    notes = [f"{note}sum of points {up:+.1f} and {down:+.1f}."]
    return Table(f"Where the ensemble was let in, the {len(rows)} worst cells", head, rows, 2, notes=notes)


def evidence(line: Line, gain: float) -> list[Entry]:
    shares: list[Entry] = [line["verdict"][name] for name in VERDICT]
    return [gain, *(line["methods"][name]["right"] for name in ("given", "pool", OURS)), *shares]


def limits_table(lines: Lines) -> Table | None:
    """Mean percent right with each limit moved, and with the limit the other families choose."""
    cells = as_cells(lines)
    found = left_out(cells) if len(cells) else []
    if not found:
        return None
    before = replay(cells, Limits())
    rows = [(one.name, row_of(one, cells, before)) for one in found]
    head = ["limit", *(f"x {factor:g}" for factor in FACTORS), "chosen on others", "against the rule", "choices"]
    return Table("Every limit of the rule, chosen on the other families", head, rows, 3, True, notes_on(cells, before))


def row_of(one: Chosen, cells: Cells, before: Array) -> list[Entry]:
    gain = mean_over_families(zip(cells.families.tolist(), (one.right - before).tolist(), strict=True))
    moved: list[Entry] = [*one.by_factor] or [None] * len(FACTORS)
    counts = Counter(one.factors)
    choices = ", ".join(f"{factor:g}: {counts[factor]}" for factor in FACTORS if counts[factor])
    return [one.value, *moved, float(one.right.mean()), gain, choices or None]


def notes_on(cells: Cells, before: Array) -> list[str]:
    alike = agreeing(cells, before)
    means = ", ".join(f"{name} {cells.right[name].mean():.2f}" for name in OUTCOMES)
    return [
        f"Mean percent right of {len(cells)} cells: rule replayed {before.mean():.2f}; {means}.",
        f"The replayed rule comes to what the run decided in {alike} of {len(cells)} cells"
        + ("." if alike == len(cells) else ": where it does not, the run's rule is another one."),
        "Choices: how many families' turns chose which factor.",
    ]

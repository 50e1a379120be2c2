"""What the zoo shows of its lines: labels, ranking and a run's own estimates, beside the rivals.

± is the standard error over families (`families.py`). Knows lines of JSON; measures nothing.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bench.zoo import rivals
from bench.zoo.cells import KINDS
from bench.zoo.layout import Entry, Mean, Table, mean_over_families
from bench.zoo.measure import OURS, Line

BETTER = "better_part"
PARTS = {
    "given": "given",
    OURS: "labelmend",
    "pool": "pool alone",
    "ensemble": "ensemble alone",
    BETTER: "the better of both (nobody can know)",
    "best_guess": "best guess of the pool",
    "auto": "labelmend, assume auto",
}
TITLES = {**PARTS, **rivals.TITLES}
TIMES = {rivals.TIMED: "cleanlab with logistic regression", rivals.FOLDS_ALONE: "its five folds alone"}
TIE = 0.5  # points
Lines = Sequence[Line]
Read = Callable[[Line], float | None]


def figure(method: str, name: str) -> Read:
    return lambda line: line["methods"].get(method, {}).get(name)


def mean(lines: Iterable[Line], read: Read) -> Mean | None:
    values = ((line["family"], read(line)) for line in lines)
    return mean_over_families((family, value) for family, value in values if value is not None)


def kinds_of(lines: Lines) -> list[str]:
    """Known kinds in their order, then others."""
    found = dict.fromkeys(line["kind"] for line in lines)
    return [*(kind for kind in KINDS if kind in found), *sorted(set(found) - set(KINDS))]


def across(lines: Lines, read: Read) -> list[Entry]:
    """All cells, then every kind."""
    groups = [[line for line in lines if line["kind"] == kind] for kind in kinds_of(lines)]
    return [mean(group, read) for group in (lines, *groups)]


def with_better(lines: Lines) -> list[Line]:
    """With the better of pool and ensemble in each cell as one more method."""
    found = []
    for line in lines:
        methods = line["methods"]
        if "pool" in methods and "ensemble" in methods:
            best = max(methods["pool"]["right"], methods["ensemble"]["right"])
            line = {**line, "methods": {**methods, BETTER: {"right": best}}}
        found.append(line)
    return found


def by_kind(lines: Lines, name: str, title: str, methods: Iterable[str]) -> Table:
    """One row a method; the number of cells stands where a rival answers fewer."""
    rows = []
    for method in methods:
        entries = across(lines, figure(method, name))
        if isinstance(first := entries[0], Mean):
            fewer = "" if first.n == widest(lines, name) else f" ({first.n} cells)"
            rows.append((TITLES[method] + fewer, entries))
    return Table(title, ["all", *kinds_of(lines)], rows)


def widest(lines: Lines, name: str) -> int:
    return sum(any(name in figures for figures in line["methods"].values()) for line in lines)


def by_source(lines: Lines, methods: Iterable[str]) -> Table:
    sources = list(dict.fromkeys(line["source"] for line in lines))
    rows = []
    for method in methods:
        entries: list[Entry] = [
            mean([line for line in lines if line["source"] == source], figure(method, "right")) for source in sources
        ]
        if any(entry is not None for entry in entries):
            rows.append((TITLES[method], entries))
    return Table("Labels right, %, by where the sets are from", [source or "other" for source in sources], rows)


def duels(lines: Lines, others: Iterable[str]) -> Table:
    """labelmend against each of the others, in the cells that both answer."""
    rows = []
    for other in others:
        pairs = [(line, line["methods"][other]) for line in lines if other in line["methods"]]
        if pairs:
            rows.append((TITLES[other], duel([line for line, _ in pairs], other)))
    head = ["cells", "wins", "ties", "losses", "win or tie %", "ahead by", "AUROC ahead by"]
    return Table(f"labelmend against each, labels right; ties within {TIE:g} points", head, rows, sign=True)


def duel(lines: Lines, other: str) -> list[Entry]:
    ahead = [line["methods"][OURS]["right"] - line["methods"][other]["right"] for line in lines]
    wins, ties, losses = count_outcomes(ahead)
    both = [line for line in lines if "auroc" in line["methods"][other] and "auroc" in line["methods"][OURS]]
    ranking = mean(both, lambda line: line["methods"][OURS]["auroc"] - line["methods"][other]["auroc"])
    points = mean_over_families((line["family"], gain) for line, gain in zip(lines, ahead, strict=True))
    return [len(ahead), wins, ties, losses, f"{100 * (wins + ties) / len(ahead):.1f}", points, ranking]


def count_outcomes(differences: Iterable[float]) -> tuple[int, int, int]:
    """Wins, ties and losses; what is exactly on the border is a tie."""
    known = list(differences)
    wins, losses = sum(d > TIE + 1e-9 for d in known), sum(d < -TIE - 1e-9 for d in known)
    return wins, len(known) - wins - losses, losses


def extremes(lines: Lines, methods: Iterable[str], n: int = 5) -> Table:
    """Cells to look at: the worst against given of each method, then labelmend's worst ones of three kinds."""
    rows: list[tuple[str, Sequence[Entry]]] = []
    for method in methods:
        if worst := lowest(lines, lambda line, m=method: against_given(line, m), 1):  # type: ignore[misc]
            rows.append((f"worst against given, {TITLES[method]}", worst))
    clean = [line for line in lines if line["wrong"] == 0]
    rows.append(("labelmend, worst against given", lowest(lines, lambda line: against_given(line, OURS), n)))
    rows.append(("labelmend, fewest right of clean labels", lowest(clean, figure(OURS, "right"), n)))
    rows.append(("labelmend, class of clean labels that keeps fewest", lowest(clean, figure(OURS, "kept"), n)))
    wide = max((len(entries) for _, entries in rows), default=0)
    full = [(name, [*entries, *[None] * (wide - len(entries))]) for name, entries in rows if entries]
    return Table("Cells to look at", [""] * wide, full)


def lowest(lines: Lines, read: Read, n: int) -> list[Entry]:
    known = sorted(((value, line) for line in lines if (value := read(line)) is not None), key=lambda pair: pair[0])
    return [f"{value:.1f} {line['name']}:{line['kind']}" for value, line in known[:n]]


def against_given(line: Line, method: str) -> float | None:
    right = figure(method, "right")(line)
    return None if right is None else right - float(line["methods"]["given"]["right"])


def own_words(lines: Lines) -> Table:
    """A run's own estimates: noise rate, interval, confidence, review."""
    rows: list[tuple[str, Sequence[Entry]]] = [
        ("wrong labels, %", across(lines, lambda line: line["wrong"])),
        ("estimated, %", across(lines, lambda line: line["rate"])),
        ("mean absolute error, points", across(lines, lambda line: abs(line["rate"] - line["wrong"]))),
        ("interval holds the truth, % of cells", across(lines, inside)),
        ("width of the interval, points", across(lines, width)),
        ("calibration error of confidence, %", across(lines, lambda line: 100 * line["calibration_error"])),
        ("rows for review, %", across(lines, lambda line: line["review"])),
    ]
    return Table("A run's own estimates", ["all", *kinds_of(lines)], rows)


def inside(line: Line) -> float | None:
    if line["rate_low"] is None:
        return None
    return 100.0 * float(line["rate_low"] - 1e-9 <= line["wrong"] <= line["rate_high"] + 1e-9)


def width(line: Line) -> float | None:
    return None if line["rate_low"] is None else float(line["rate_high"] - line["rate_low"])


def seconds(lines: Lines) -> Table:
    """CPU seconds, and as a ratio to cleanlab with logistic regression in the same cell of the same run."""
    columns = {"labelmend, CPU seconds": [line["seconds"][OURS] for line in lines]}
    for name, title in TIMES.items():
        timed = [line["seconds"] for line in lines if line["seconds"].get(name)]
        columns |= {title: [one[name] for one in timed], f"times {title}": [one[OURS] / one[name] for one in timed]}
    rows = [(name, [len(values), *spread(values)]) for name, values in columns.items() if values]
    slowest = sorted(lines, key=lambda line: -line["seconds"][OURS])[:5]
    slow = ", ".join(f"{line['name']}:{line['kind']} {line['seconds'][OURS]:.1f} s" for line in slowest)
    title = f"CPU seconds, one thread; ratios on up to {rivals.TIMED_ROWS:,} rows"
    return Table(title, ["cells", "median", "25 %", "75 %", "largest"], rows, 2, notes=[f"Slowest: {slow}."])


def spread(values: Sequence[float]) -> list[Entry]:
    """Median, quartiles and largest."""
    if len(values) == 1:
        return [float(values[0])] * 4
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return [middle, low, high, float(max(values))]


def classifiers(lines: Lines) -> Table | None:
    """The classifier handed back on held-out rows, and the single members trained on the given labels."""
    checked: list[dict[str, Any]] = [line for line in lines if line.get("classifier")]
    if not checked:
        return None
    names = dict.fromkeys(name for line in checked for name in line["classifier"])
    rows = []
    for name in names:
        both = [line for line in checked if name in line["classifier"]]
        ahead = [line["classifier"][OURS] - line["classifier"][name] for line in both]
        own = mean(both, lambda line, n=name: line["classifier"][n])  # type: ignore[misc]
        gain = mean_over_families((line["family"], gain) for line, gain in zip(both, ahead, strict=True))
        outcomes: list[Entry] = [None] * 4 if name == OURS else [*count_outcomes(ahead), gain]
        rows.append((name, [len(both), own, *outcomes]))
    head = ["cells", "right %", "wins", "ties", "losses", "labelmend ahead by"]
    return Table("The classifier handed back, on a third of the rows held out", head, rows)

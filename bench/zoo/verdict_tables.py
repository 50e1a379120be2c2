"""What the joining rule did in the zoo's cells, and what its limits are worth on families they were not chosen on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from bench.zoo import limits
from bench.zoo.families import mean_over_families
from bench.zoo.layout import Entry, Table
from bench.zoo.limits import FACTORS, Cells, Chosen
from bench.zoo.measure import OURS, Line
from bench.zoo.tables import Lines, count_outcomes, kinds_of


def verdicts(lines: Lines) -> Table | None:
    """How many cells of each kind were taken for what, and in how many something was let in."""
    said = [line for line in lines if line["verdict"]]
    if not said:
        return None
    kinds = kinds_of(said)
    words = Counter((line["verdict"]["classes"], line["kind"]) for line in said)
    rows: list[tuple[str, Sequence[Entry]]] = []
    for word in dict.fromkeys(line["verdict"]["classes"] for line in said):
        counts = [words[word, kind] for kind in kinds]
        rows.append((str(word), [sum(counts), *counts]))
    let_in = Counter(line["kind"] for line in said if line["verdict"]["adopted"])
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
    shares: list[Entry] = [line["verdict"][name] for name in limits.VERDICT]
    return [gain, *(line["methods"][name]["right"] for name in ("given", "pool", OURS)), *shares]


def limits_table(lines: Lines) -> Table | None:
    """Mean percent right with each limit moved, and with the limit the other families choose."""
    cells = limits.as_cells(lines)
    found = limits.left_out(cells) if len(cells) else []
    if not found:
        return None
    before = limits.replay(cells, limits.Limits())
    rows = [(one.name, row_of(one, cells, before)) for one in found]
    head = ["limit", *(f"x {factor:g}" for factor in FACTORS), "chosen on others", "against the rule", "choices"]
    return Table("Every limit of the rule, chosen on the other families", head, rows, 3, True, notes_on(cells, before))


def row_of(one: Chosen, cells: Cells, before: limits.Array) -> list[Entry]:
    gain = mean_over_families(zip(cells.families.tolist(), (one.right - before).tolist(), strict=True))
    moved: list[Entry] = [*one.by_factor] or [None] * len(FACTORS)
    counts = Counter(one.factors)
    choices = ", ".join(f"{factor:g}: {counts[factor]}" for factor in FACTORS if counts[factor])
    return [one.value, *moved, float(one.right.mean()), gain, choices or None]


def notes_on(cells: Cells, before: limits.Array) -> list[str]:
    alike = limits.agreeing(cells, before)
    means = ", ".join(f"{name} {cells.right[name].mean():.2f}" for name in limits.OUTCOMES)
    return [
        f"Mean percent right of {len(cells)} cells: rule replayed {before.mean():.2f}; {means}.",
        f"The replayed rule comes to what the run decided in {alike} of {len(cells)} cells"
        + ("." if alike == len(cells) else ": where it does not, the run's rule is another one."),
        "Choices: how many families' turns chose which factor.",
    ]

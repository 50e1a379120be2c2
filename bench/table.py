"""Benchmark records as tables: plain text for the terminal, Markdown for the README. Only prints what was measured."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.paper.rows import TITLES
from labelmend.errors import DataError

Row = dict[str, Any]
NOTHING = "-"


@dataclass(frozen=True)
class Figure:
    heading: str
    scale: float = 100.0
    decimals: int = 1
    best: str = ""  # "high" or "low": the best one is bold in the README
    middle: str = "mean"  # or "median", for times of the same work


FIGURES = {
    "given_accuracy": Figure("given right %"),
    "label_accuracy": Figure("labels right %", best="high"),
    "grid_best": Figure("best of the grid %"),
    "grid_worst": Figure("worst of the grid %"),
    "grid_gap": Figure("gap to the best, points", decimals=2),
    "balanced_accuracy": Figure("balanced %", best="high"),
    "worst_class_kept": Figure("kept in the worst class %", best="high"),
    "f1": Figure("F1 %", best="high"),
    "wrongly_changed": Figure("broken %", decimals=2),
    "calibration_error": Figure("calibration error", 1.0, 3),
    "quality_rank": Figure("rank of annotators", 1.0, 2),
    "quality_error": Figure("error of their quality", 1.0, 3),
    "true_noise_rate": Figure("noise %"),
    "noise_rate": Figure("estimated %"),
    "test_last": Figure("test, last 10 rounds %"),
    "test_best": Figure("best round %"),
    "rounds": Figure("rounds", 1.0, 0),
    "kind_right": Figure("kind right %", decimals=0),
    "share_random": Figure("random %", decimals=0),
    "share_confusing": Figure("confusing %", decimals=0),
    "share_patch": Figure("patch %", decimals=0),
    "rate_low": Figure("from %"),
    "rate_high": Figure("to %"),
    "rate_inside": Figure("rate inside %", decimals=0),
    "transition_inside": Figure("transitions inside %", decimals=0),
    "auroc": Figure("AUROC", 1.0, 3, "high"),
    "ranking": Figure("AUROC of suspects %", best="high"),
    "average_precision": Figure("average precision %", best="high"),
    "foreign_in_least": Figure("foreign of the 2 % least fitting %", decimals=0),
    "relabelled_in_least": Figure("relabelled of them", 1.0, 1),
    "listed": Figure("fit no class %", decimals=2),
    "listed_foreign": Figure("foreign of these %", decimals=0),
    "review_share": Figure("review %"),
    "errors_in_review": Figure("errors there %"),
    "seconds": Figure("seconds", 1.0, 1, "low"),
    "times_cleanlab": Figure("x cleanlab", 1.0, 2),
    "round_seconds": Figure("seconds, median", 1.0, 3, middle="median"),
    "pictures_per_second": Figure("pictures/s", 1.0, 1),
    "share_of_backbone": Figure("of the backbone's own %"),
    "peak_bytes": Figure("peak GB", 1e-9, 2, "low"),
    "used_bytes": Figure("above imports GB", 1e-9, 2),
    "gpu_bytes": Figure("GPU peak GB", 1e-9, 2),
    "first_paint_ms": Figure("first paint ms", 1.0, 0, middle="median"),
    "first_sample_ms": Figure("first sample ms", 1.0, 0, middle="median"),
    "decision_ms": Figure("decision ms", 1.0, 0, middle="median"),
    "slow_decision_ms": Figure("95 of 100 within ms", 1.0, 0, middle="median"),
    "batch_ms": Figure("batch of 60 ms", 1.0, 0, middle="median"),
    "write_ms": Figure("written ms", 1.0, 1, middle="median"),
    "start_seconds": Figure("server ready s", 1.0, 1, middle="median"),
    "server_bytes": Figure("server peak GB", 1e-9, 2),
}


@dataclass(frozen=True)
class Layout:
    """What a README table shows of a benchmark."""

    parts: tuple[tuple[str, str], ...]  # figure and unit, in the cell of every method
    joint: str
    legend: str
    about_labelmend: tuple[tuple[str, str], ...] = ()  # figure and heading, from labelmend's own row


ACCURACY = Layout(
    (("label_accuracy", ""), ("f1", "")),
    " / ",
    "Labels right after correction, % / F1 of finding the wrong labels, %.",
    (
        ("true_noise_rate", "wrong labels, %"),
        ("noise_rate", "estimated by labelmend"),
        ("wrongly_changed", "good labels broken by labelmend, %"),
        ("review_share", "rows it leaves for review, %"),
        ("errors_in_review", "remaining errors among them, %"),
    ),
)
COST = Layout(
    (("seconds", " s"), ("peak_bytes", " GB"), ("label_accuracy", " %")),
    ", ",
    "Time, peak memory of the whole process, labels right after correction.",
    (("times_cleanlab", "labelmend's time / cleanlab's"),),
)
PICTURES = Layout(
    (("test_last", ""), ("label_accuracy", "")),
    " / ",
    "Accuracy on the test pictures, mean of the last ten rounds, % / labels right after correction, %.",
    (
        ("given_accuracy", "labels right before, %"),
        ("noise_rate", "wrong labels estimated, %"),
        ("test_best", "best round on the test pictures (it chose nothing), %"),
        ("rounds", "rounds"),
        ("seconds", "seconds"),
    ),
)
ABLATION = Layout(
    (("test_last", ""), ("test_best", "")),
    " / ",
    "Accuracy on the test pictures, mean of the last ten rounds / best round, %.",
    (("label_accuracy", "labels right after correction, %"), ("rounds", "rounds")),
)
ROUND = Layout((("round_seconds", " s"),), ", ", "Median time.", (("gpu_bytes", "peak of GPU memory, GB"),))
EMBED = Layout(
    (("pictures_per_second", " pictures/s"),),
    ", ",
    "Throughput.",
    (("share_of_backbone", "share of the backbone's own, %"), ("peak_bytes", "peak of the whole process, GB")),
)
REVIEW = Layout(
    (("first_paint_ms", " ms"), ("decision_ms", " ms")),
    " / ",
    "First paint / from the key to the next sample on the screen, median.",
    (
        ("first_sample_ms", "first sample, ms"),
        ("slow_decision_ms", "95 of 100 decisions within, ms"),
        ("batch_ms", "a batch of 60, ms"),
        ("server_bytes", "server, GB"),
    ),
)
ANNOTATORS = Layout(
    (("label_accuracy", ""),),
    " / ",
    "Labels right, of the rows that somebody labelled, %.",
    (
        ("calibration_error", "expected calibration error of labelmend"),
        ("quality_rank", "rank correlation of its quality of annotators with the truth"),
        ("quality_error", "mean error of that quality"),
    ),
)
KINDS = Layout(
    (("share_random", ""), ("share_confusing", ""), ("share_patch", "")),
    " / ",
    "Shares of random / confusing / patch errors, %.",
    (
        ("kind_right", "largest share right, % of runs"),
        ("true_noise_rate", "wrong labels, %"),
        ("noise_rate", "estimated, %"),
        ("rate_low", "from, %"),
        ("rate_high", "to, %"),
        ("rate_inside", "true rate inside, % of runs"),
    ),
)
OUTLIERS = Layout(
    (("auroc", ""),),
    ", ",
    "AUROC of telling foreign samples from the others.",
    (
        ("relabelled_in_least", "relabelled of the 2 % least fitting"),
        ("listed", "listed as fitting no class, %"),
        ("listed_foreign", "foreign of these, %"),
        ("label_accuracy", "labels of the others right, %"),
    ),
)
ZOO = Layout(
    (("label_accuracy", ""), ("ranking", "")),
    " / ",
    "Labels right, % / area under the ROC curve of finding wrong labels, %, over data sets.",
    (
        ("balanced_accuracy", "balanced accuracy of labelmend, %"),
        ("worst_class_kept", "good labels it keeps in the worst class, %"),
        ("wrongly_changed", "good labels it breaks, %"),
    ),
)
LAYOUTS = {
    "zoo": ZOO,
    "annotators": ANNOTATORS,
    "kinds": KINDS,
    "outliers": OUTLIERS,
    "digits": ACCURACY,
    "human": ACCURACY,
    "pictures": PICTURES,
    "pictures-smoke": PICTURES,
    "ablation": ABLATION,
    "gpu-round": ROUND,
    "embed": EMBED,
    "review": REVIEW,
}  # others: COST


def terminal_lines(record: dict[str, Any]) -> list[str]:
    """Everything a person wants to see after a run."""
    shown = [name for name in FIGURES if any(name in row["figures"] for row in record["rows"])] or ["label_accuracy"]
    table = [["", "", "n", *(FIGURES[name].heading for name in shown)]]
    for row in record["rows"]:
        cells = [cell(row, name) for name in shown]
        if row["note"]:
            cells[:1] = [row["note"]]
        table.append([case_title(record, row["case"]), row["method"], str(trials(row)), *cells])
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    lines = [f"{record['benchmark']}: {record['about']}", *circumstances(record), ""]
    if record["rows"]:
        lines += [
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in table
        ]
    return [*lines, *fact_lines(record)]


def main(words: Sequence[str]) -> int:
    """`python -m bench readme-table`: one Markdown table per file, in the order of the files."""
    options = argparse.ArgumentParser("python -m bench readme-table", description=main.__doc__)
    options.add_argument("files", nargs="+", type=Path, metavar="FILE.json")
    print("\n\n".join(markdown(read_record(path)) for path in options.parse_args(words).files))
    return 0


def markdown(record: dict[str, Any]) -> str:
    layout = LAYOUTS.get(record["benchmark"], COST)
    methods = list(dict.fromkeys(row["method"] for row in record["rows"]))
    ours = {row["case"]: row for row in record["rows"] if row["method"] == "labelmend"}
    extra = [(name, text) for name, text in layout.about_labelmend if any(name in r["figures"] for r in ours.values())]
    head = [record["benchmark"], *methods, *(text for _, text in extra)]
    lines = [head, ["---"] * len(head)]
    for case in dict.fromkeys(row["case"] for row in record["rows"]):
        rows = {row["method"]: row for row in record["rows"] if row["case"] == case}
        cells = [method_cell(rows, method, layout) for method in methods]
        lines.append(
            [
                case_title(record, case),
                *cells,
                *(cell(ours[case], name) if case in ours else NOTHING for name, _ in extra),
            ]
        )
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    about = " ".join([layout.legend, *fact_lines(record), *circumstances(record)])
    return f"{text}\n\n{about} Command: `{record['command']}`."


def case_title(record: dict[str, Any], case: str) -> str:
    """The rows of the paper's ablation are called as in the paper's tables."""
    return TITLES.get(case, case) if record["benchmark"] == "ablation" else case


def method_cell(rows: dict[str, Row], method: str, layout: Layout) -> str:
    """The parts of one method in one case, the best of all methods in bold."""
    row = rows[method]
    if row["note"]:
        return str(row["note"])
    parts = []
    for name, unit in layout.parts:
        if name in row["figures"]:
            text = cell(row, name) + unit
            parts.append(f"**{text}**" if is_best(rows, row, name) else text)
    return layout.joint.join(parts) or NOTHING


def is_best(rows: dict[str, Row], row: Row, name: str) -> bool:
    """Compared as printed, so that two equal texts are both bold or both not."""
    figure = FIGURES[name]
    if not figure.best:
        return False
    printed = [_printed(other, figure, name) for other in rows.values() if name in other["figures"]]
    best = max(printed) if figure.best == "high" else min(printed)
    return len(printed) > 1 and _printed(row, figure, name) == best


def cell(row: Row, name: str) -> str:
    """Mean or median, ± sample standard deviation."""
    if name not in row["figures"]:
        return NOTHING
    figure, value = FIGURES[name], row["figures"][name]
    text = f"{value[figure.middle] * figure.scale:.{figure.decimals}f}"
    if value["spread"] is not None:
        text += f" ± {value['spread'] * figure.scale:.{figure.decimals}f}"
    return text


def trials(row: Row) -> int:
    return max((value["n"] for value in row["figures"].values()), default=0)


def circumstances(record: dict[str, Any]) -> list[str]:
    """How many trials, on which machine, with which versions."""
    counts: dict[str, int] = {}
    for row in record["rows"]:
        counts[row["method"]] = max(trials(row), counts.get(row["method"], 0))
    n = ", ".join(f"{method} {count}" for method, count in counts.items())
    machine = record["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items() if version)
    lines = [
        f"n = {n or 0}; ± is the sample standard deviation over {record['facts'].get('repeated', 'seeds')}.",
        f"{machine['gpu'] or 'No GPU'}; {machine['cpu']}, cores {machine['cores']}, threads {machine['threads']}.",
        f"{versions}.",
    ]
    if record["quick"]:
        lines.insert(0, "QUICK RUN: the sizes are tiny and the figures mean nothing.")
    return lines


def fact_lines(record: dict[str, Any]) -> list[str]:
    lines = []
    for method, facts in record["facts"].get("growth", {}).items():
        time, memory = facts["seconds_exponent"], facts["used_bytes_exponent"]
        last_time, last_memory = (
            facts["seconds_exponent_of_largest_three"],
            facts["used_bytes_exponent_of_largest_three"],
        )
        if time is not None:
            lines.append(
                f"{method}: time ~ rows^{time:.2f} (three largest {_power(last_time)}), "
                f"memory above imports ~ rows^{_power(memory)} (three largest {_power(last_memory)})."
            )
    return [*lines, *record["facts"].get("notes", [])]


def read_record(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} must be a JSON file of a benchmark. Could not read it: {error}.") from error
    if not isinstance(record, dict) or record.get("version") != 1 or "rows" not in record:
        raise DataError(f"{path} must be a JSON file that `python -m bench` wrote. Got something else instead.")
    return record


def _printed(row: Row, figure: Figure, name: str) -> float:
    middle: float = row["figures"][name][figure.middle]
    return round(middle * figure.scale, figure.decimals)


def _power(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"

"""The benchmarks: which data, how often, and what is worked out from the measurements. Everything else is shared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.datasets import NOISE_KINDS, human_sets
from bench.trial import Case
from labelmend.errors import ConfigError

GROWTH_ROWS = (10_000, 20_000, 50_000, 100_000, 200_000)
QUICK_GROWTH_ROWS = (150, 300, 600)
QUICK_ROWS = 250


@dataclass(frozen=True)
class Options:
    data: Path | None = None  # folder of the CIFAR-10 features and human labels
    quick: bool = False  # tiny sizes, to see that it runs; the figures mean nothing

    @property
    def n_rows(self) -> int | None:
        return QUICK_ROWS if self.quick else None


@dataclass
class Record:
    """One trial."""

    case: Case
    method: str
    seed: int
    figures: dict[str, float | None]
    note: str | None = None  # why there are no figures

    @property
    def name(self) -> str:
        return self.case.name


Facts = dict[str, Any]  # worked out from the measurements; "notes" are sentences to print under the table


@dataclass(frozen=True)
class Benchmark:
    about: str
    cases: Callable[[Options], list[Case]]
    seeds: int
    alone: bool = False  # every trial in a fresh process: time and memory
    work_out: Callable[[list[Record]], Facts] = lambda records: {}


def digits_cases(options: Options) -> list[Case]:
    return [
        Case(_digits_name(kind), "digits", {"kind": kind, "n_rows": options.n_rows}, neighbours=10)
        for kind in NOISE_KINDS
    ]


def human_cases(options: Options) -> list[Case]:
    folder = _folder(options)
    return [_human_case(folder, name, options.n_rows) for name in human_sets(folder)]


def speed_cases(options: Options) -> list[Case]:
    return [_human_case(_folder(options), "random1", options.n_rows)]


def growth_cases(options: Options) -> list[Case]:
    shape = {"n_columns": 8 if options.quick else 128, "n_classes": 3 if options.quick else 10, "spread": 0.5}
    return [
        Case(f"{n:,} rows", "clusters", {"n_rows": n, **shape}, neighbours=10)
        for n in (QUICK_GROWTH_ROWS if options.quick else GROWTH_ROWS)
    ]


def classes_cases(options: Options) -> list[Case]:
    n, c = (QUICK_ROWS, 20) if options.quick else (20_000, 1_000)
    shape = {"n_rows": n, "n_columns": 128, "n_classes": c, "spread": 0.7}
    return [Case(f"{n:,} rows, {c:,} classes", "clusters", shape, neighbours=10)]


def add_ratios(records: list[Record]) -> Facts:
    """Seconds as a multiple of cleanlab's in the same repetition."""
    base = {(r.case.name, r.seed): r.figures.get("seconds") for r in records if r.method == "cleanlab"}
    for record in records:
        own, other = record.figures.get("seconds"), base.get((record.case.name, record.seed))
        if own is not None and other is not None:
            record.figures["times_cleanlab"] = own / other
    return {}


def exponents(records: list[Record]) -> Facts:
    """e in figure ~ rows^e by least squares on logarithms, over all sizes and over the three largest.

    Above 8,000 rows the method takes fewer rounds, above 12,000 it searches neighbours in cells: one size can make
    the first of the two too small.
    """
    facts: Facts = {}
    for method in dict.fromkeys(r.method for r in records):
        own = sorted((r for r in records if r.method == method), key=lambda r: int(r.case.arguments["n_rows"]))
        facts[method] = {
            f"{figure}_exponent{suffix}": _exponent(own, figure, n_sizes)
            for figure in ("seconds", "used_bytes")
            for suffix, n_sizes in (("", 0), ("_of_largest_three", 3))
        }
    return {"growth": facts}


BENCHMARKS: dict[str, Benchmark] = {
    "digits": Benchmark("label accuracy on scikit-learn's digits, five kinds of planted errors", digits_cases, 5),
    "human": Benchmark("label accuracy on CIFAR-10 features with human labels (--data)", human_cases, 3),
    "speed": Benchmark(
        "time and memory on 50,000 x 128 human-labelled features (--data)", speed_cases, 3, True, add_ratios
    ),
    "growth": Benchmark("time and memory from 10,000 to 200,000 rows", growth_cases, 1, True, exponents),
    "classes": Benchmark("time, memory and accuracy with 1,000 classes", classes_cases, 1, True, add_ratios),
}


def _digits_name(kind: str) -> str:
    return {"clean": "clean", "both": "both, 20 % each"}.get(kind, f"{kind} 20 %")


def _human_case(folder: str, label_set: str, n_rows: int | None) -> Case:
    arguments = {"folder": folder, "label_set": label_set, "n_rows": n_rows}
    return Case(label_set, "human", arguments, neighbours=50, seeded=False)


def _folder(options: Options) -> str:
    if options.data is None:
        raise ConfigError(
            "this benchmark needs --data DIR with cifar10_features.npz (array train: features of the 50,000 training "
            "pictures) and labels.npz (cifar10_train and cifar10n_* arrays). Got no --data instead."
        )
    return str(options.data)


def _exponent(records: list[Record], figure: str, n_sizes: int) -> float | None:
    points = [(int(r.case.arguments["n_rows"]), r.figures.get(figure)) for r in records]
    known = [(n, value) for n, value in points if value is not None and value > 0]
    sizes = sorted({n for n, _ in known})[-n_sizes:]
    if len(sizes) < 2:
        return None
    kept = [(n, value) for n, value in known if n in sizes]
    slope, _ = np.polyfit(np.log([n for n, _ in kept]), np.log([value for _, value in kept]), 1)
    return float(slope)

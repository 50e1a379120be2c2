"""The benchmarks on vectors: labelmend, cleanlab and a k-NN vote in turns, on the same cases."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from bench import trial
from bench.datasets import NOISE_KINDS, human_sets
from bench.record import OURS, Benchmark, Facts, Findings, Say, Trial
from bench.trial import Case
from labelmend.errors import ConfigError, MissingExtraError
from labelmend.self_test.comparison import METHODS, prepare

GROWTH_ROWS = (10_000, 20_000, 50_000, 100_000, 200_000)
QUICK_GROWTH_ROWS = (150, 300, 600)
QUICK_ROWS = 250


def add_options(options: argparse.ArgumentParser) -> None:
    options.add_argument("--data", type=Path, metavar="DIR", help="folder with cifar10_features.npz and labels.npz")
    options.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS), help="default: all")


def measure(
    find_cases: Callable[[Path | None, bool], list[Case]],
    alone: bool,
    work_out: Callable[[Sequence[Trial], Mapping[str, Case]], Facts],
    options: argparse.Namespace,
    n_seeds: int,
    say: Say,
) -> Findings:
    """Methods take turns, so that a busy machine hurts them alike. `alone`: every trial in a fresh process."""
    cases = {case.name: case for case in find_cases(options.data, options.quick)}
    absent = missing_methods(options.methods)
    trials = [
        try_one(case, method, seed, alone, absent, say)
        for seed in range(n_seeds)
        for case in cases.values()
        for method in options.methods
        if seed == 0 or repeats(case, method, alone, absent)
    ]
    return Findings(trials, work_out(trials, cases))


def missing_methods(methods: Sequence[str]) -> dict[str, str]:
    """The methods that cannot run here, and why."""
    absent = {}
    for method in methods:
        try:
            prepare(method)
        except MissingExtraError:
            absent[method] = "not installed"
    return absent


def repeats(case: Case, method: str, alone: bool, absent: Mapping[str, str]) -> bool:
    """Whether another seed adds something: the neighbours give the same answer to the same data."""
    return method not in absent and (alone or case.seeded or method == OURS)


def try_one(case: Case, method: str, seed: int, alone: bool, absent: Mapping[str, str], say: Say) -> Trial:
    if method in absent:
        return Trial(case.name, method, {}, absent[method], seed=seed)
    try:
        figures = (trial.measure_alone if alone else trial.measure)(case, method, seed)
    except trial.TrialFailedError as error:  # the others still count
        say(f"{case.name}  {method}  seed {seed}  failed: {error}")
        return Trial(case.name, method, {}, f"failed: {error}", seed=seed)
    right, seconds = figures["label_accuracy"], figures["seconds"]
    say(f"{case.name}  {method}  seed {seed}  {right:.4f} of the labels right  {seconds:.1f} s")
    return Trial(case.name, method, figures, seed=seed)


def digits_cases(data: Path | None, quick: bool) -> list[Case]:
    names = {"clean": "clean", "both": "both, 20 % each"}
    n_rows = QUICK_ROWS if quick else None
    return [
        Case(names.get(kind, f"{kind} 20 %"), "digits", {"kind": kind, "n_rows": n_rows}, neighbours=10)
        for kind in NOISE_KINDS
    ]


def human_cases(data: Path | None, quick: bool, only: str | None = None) -> list[Case]:
    if data is None:
        raise ConfigError(
            "this benchmark needs --data DIR with cifar10_features.npz (array train: features of the 50,000 training "
            "pictures) and labels.npz (cifar10_train and cifar10n_* arrays). Got no --data instead."
        )
    arguments = {"folder": str(data), "n_rows": QUICK_ROWS if quick else None}
    return [
        Case(name, "human", {**arguments, "label_set": name}, neighbours=50, seeded=False)
        for name in ([only] if only else human_sets(str(data)))
    ]


def growth_cases(data: Path | None, quick: bool) -> list[Case]:
    shape = {"n_columns": 8 if quick else 128, "n_classes": 3 if quick else 10, "spread": 0.5}
    return [
        Case(f"{n:,} rows", "clusters", {"n_rows": n, **shape}, neighbours=10)
        for n in (QUICK_GROWTH_ROWS if quick else GROWTH_ROWS)
    ]


def classes_cases(data: Path | None, quick: bool) -> list[Case]:
    n, c = (QUICK_ROWS, 20) if quick else (20_000, 1_000)
    shape = {"n_rows": n, "n_columns": 128, "n_classes": c, "spread": 0.7}
    return [Case(f"{n:,} rows, {c:,} classes", "clusters", shape, neighbours=10)]


def nothing(trials: Sequence[Trial], cases: Mapping[str, Case]) -> Facts:
    return {}


def add_ratios(trials: Sequence[Trial], cases: Mapping[str, Case]) -> Facts:
    """Seconds as a multiple of cleanlab's in the same repetition."""
    base = {(t.name, t.seed): t.figures.get("seconds") for t in trials if t.method == "cleanlab"}
    for one in trials:
        own, other = one.figures.get("seconds"), base.get((one.name, one.seed))
        if own is not None and other is not None:
            one.figures["times_cleanlab"] = own / other
    return {}


def exponents(trials: Sequence[Trial], cases: Mapping[str, Case]) -> Facts:
    """e in figure ~ rows^e by least squares on logarithms, over all sizes and over the three largest.

    Above 8,000 rows the method takes fewer rounds, above 12,000 it searches neighbours in cells: one size can make
    the first of the two too small.
    """
    facts: Facts = {}
    for method in dict.fromkeys(t.method for t in trials):
        own = [(int(cases[t.name].arguments["n_rows"]), t.figures) for t in trials if t.method == method]
        facts[method] = {
            f"{figure}_exponent{suffix}": slope([(n, figures.get(figure)) for n, figures in own], n_sizes)
            for figure in ("seconds", "used_bytes")
            for suffix, n_sizes in (("", 0), ("_of_largest_three", 3))
        }
    return {"growth": facts}


def slope(points: Sequence[tuple[int, float | None]], n_sizes: int) -> float | None:
    """Over the largest sizes, or over all where `n_sizes` is 0; None with less than two of them."""
    known = [(n, value) for n, value in points if value is not None and value > 0]
    sizes = sorted({n for n, _ in known})[-n_sizes:]
    if len(sizes) < 2:
        return None
    kept = np.log([pair for pair in known if pair[0] in sizes])
    return float(np.polyfit(kept[:, 0], kept[:, 1], 1)[0])


VECTOR_BENCHMARKS = {
    name: Benchmark(about, add_options, partial(measure, cases, alone, work_out), seeds)
    for name, about, cases, seeds, alone, work_out in (
        (
            "digits",
            "label accuracy on scikit-learn's digits, five kinds of planted errors",
            digits_cases,
            5,
            False,
            nothing,
        ),
        ("human", "label accuracy on CIFAR-10 features with human labels (--data)", human_cases, 3, False, nothing),
        (
            "speed",
            "time and memory on 50,000 x 128 human-labelled features (--data)",
            partial(human_cases, only="random1"),
            3,
            True,
            add_ratios,
        ),
        ("growth", "time and memory from 10,000 to 200,000 rows", growth_cases, 1, True, exponents),
        ("classes", "time, memory and accuracy with 1,000 classes", classes_cases, 1, True, add_ratios),
    )
}

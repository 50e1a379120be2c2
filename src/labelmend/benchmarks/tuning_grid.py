"""The benchmark of self-tuning: the default run of `labelmend.correct` against the best setting of a grid.

A cell is a data set with one kind of planted errors at one rate; rate 0, the true labels, is one cell for all kinds.
In each the default run and every setting of GRID, not tuned, see the same labels. Best and worst of the grid are those
with the highest and lowest mean over the seeds (the first where several are equal), chosen with the truth at hand,
which no user has: the gap to the best is what choosing could have gained at most, chance included.

Every run has one thread, so that the figures do not depend on the number of processes. The record so far is written
after every cell.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import multiprocessing
import statistics
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from labelmend.api import correct
from labelmend.benchmarks.datasets import IntArray
from labelmend.benchmarks.picture_suite import OURS, Findings, PictureTrial
from labelmend.benchmarks.planted import DIGITS, FEATURES, PLANTED, Place, Source
from labelmend.benchmarks.runner import Say, whole_record, write_json
from labelmend.benchmarks.suite import QUICK_ROWS, Facts
from labelmend.errors import ConfigError, LabelmendWarning

NAME = "tuning"
ABOUT = "the self-tuned default against the best of 16 settings, digits and CIFAR-10 features (--data)"
FEATURE_ROWS = 10_000
PERCENTS = (0.0, 5.0, 10.0, 20.0, 40.0)
SEEDS = 3
QUICK: dict[str, Any] = {"n_rounds": 2, "hidden": 32}


@dataclass(frozen=True)
class Setting:
    graph_k: int
    alpha: float
    packages_per_branch: int
    noisy_branch: bool

    @property
    def name(self) -> str:
        branch = "noisy branch" if self.noisy_branch else "no noisy branch"
        return f"k {self.graph_k}, alpha {self.alpha:g}, B {self.packages_per_branch}, {branch}"

    @property
    def parameters(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "tune": False}


GRID = tuple(Setting(*values) for values in itertools.product((10, 50), (0.5, 0.9), (4, 16), (True, False)))


@dataclass(frozen=True)
class Run:
    source: Source
    seed: int
    given_labels: IntArray
    parameters: Mapping[str, Any]  # of `correct`


@dataclass(frozen=True)
class Outcome:
    given: float  # share of right labels before the run
    corrected: float  # after it; without meaning where there is a note
    note: str | None = None  # why the run failed


@dataclass(frozen=True)
class Cell:
    """Shares of right labels, one for every seed."""

    name: str
    given: Sequence[float]
    ours: Sequence[float]
    grid: Mapping[str, Sequence[float]]  # by the name of the setting

    @property
    def best(self) -> str:
        return max(self.grid, key=lambda name: statistics.fmean(self.grid[name]))

    @property
    def worst(self) -> str:
        return min(self.grid, key=lambda name: statistics.fmean(self.grid[name]))

    @property
    def gap(self) -> float:
        """Of the means; below 0 where the default run is better than all of the grid."""
        return statistics.fmean(self.grid[self.best]) - statistics.fmean(self.ours)

    def trials(self) -> list[PictureTrial]:
        names = ("given_accuracy", "label_accuracy", "grid_best", "grid_worst", "grid_gap")
        columns = zip(self.given, self.ours, self.grid[self.best], self.grid[self.worst], strict=True)
        return [
            PictureTrial(self.name, OURS, dict(zip(names, (*shares, shares[2] - shares[1]), strict=True)))
            for shares in columns
        ]


def tuning_options(options: argparse.ArgumentParser) -> None:
    options.add_argument("--data", type=Path, metavar="DIR", help="folder with cifar10_features.npz and labels.npz")
    options.add_argument(
        "--on", nargs="+", choices=(DIGITS, FEATURES), help=f"default: {DIGITS}, and {FEATURES} where there is --data"
    )
    options.add_argument("--kinds", nargs="+", choices=PLANTED, default=list(PLANTED), help="default: all")
    options.add_argument(
        "--rates",
        type=float,
        nargs="+",
        default=list(PERCENTS),
        metavar="PERCENT",
        help=f"of wrong labels (default {' '.join(f'{percent:g}' for percent in PERCENTS)}); 0: the true labels, once",
    )
    options.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at a time, one thread each (default 1)")


def tuning(options: argparse.Namespace, n_seeds: int, say: Say) -> Findings:
    places = _places(options)
    settings = (GRID[0], GRID[-1]) if options.quick else GRID
    runs = [_runs(place, n_seeds, settings, options.quick) for place in places]
    cells: list[Cell] = []
    trials: list[PictureTrial] = []
    with _outcomes([run for group in runs for run in group], options.jobs) as outcomes:
        for place, group in zip(places, runs, strict=True):
            found = list(itertools.islice(outcomes, len(group)))
            failure = next((outcome.note for outcome in found if outcome.note), None)
            if failure is None:
                cells.append(as_cell(place.name, found, settings))
                trials += cells[-1].trials()
                say(f"{place.name}  gap to the best of the grid {100 * cells[-1].gap:.2f} points")
            else:  # the other cells still count
                trials.append(PictureTrial(place.name, OURS, {}, failure))
                say(f"{place.name}  {failure}")
            _keep(options, Findings(trials, facts_of(cells)), len(places))
    return Findings(trials, facts_of(cells))


def as_cell(name: str, outcomes: Sequence[Outcome], settings: Sequence[Setting]) -> Cell:
    """`outcomes` in the order of `_runs`: for every seed the default run, then the settings."""
    width = 1 + len(settings)
    ours, *others = [[outcome.corrected for outcome in outcomes[i::width]] for i in range(width)]
    grid = {setting.name: shares for setting, shares in zip(settings, others, strict=True)}
    return Cell(name, [outcome.given for outcome in outcomes[::width]], ours, grid)


def facts_of(cells: Sequence[Cell]) -> Facts:
    """The best setting of every cell, all that was measured, and both in words."""
    if not cells:
        return {"notes": []}
    widest = max(cells, key=lambda cell: cell.gap)
    mean = statistics.fmean(cell.gap for cell in cells)
    wins: dict[str, list[str]] = {}
    for cell in cells:
        wins.setdefault(cell.best, []).append(cell.name)
    notes = [
        "The grid's best and worst by their mean over the seeds, chosen with the truth; one thread for every run.",
        f"Gap to the best: mean {100 * mean:.2f}, largest {100 * widest.gap:.2f} points ({widest.name}).",
        *(f"Best with {setting}: {'; '.join(names)}." for setting, names in wins.items()),
    ]
    measured = {cell.name: _rounded({OURS: cell.ours, **cell.grid}) for cell in cells}
    return {"notes": notes, "best": {cell.name: cell.best for cell in cells}, "label_accuracy": measured}


def play(run: Run) -> Outcome:
    features, true_labels = run.source.rows(run.seed)
    given = float((run.given_labels == true_labels).mean())
    try:
        with _one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore", LabelmendWarning)
            result = correct(features, run.given_labels, seed=run.seed, **run.parameters)
    except RuntimeError as error:  # out of memory, for example
        return Outcome(given, 0.0, f"failed: {(str(error) or type(error).__name__).splitlines()[0]}")
    return Outcome(given, float((np.asarray(result.labels) == true_labels).mean()))


def _rounded(shares: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    return {name: [round(share, 6) for share in column] for name, column in shares.items()}


def _runs(place: Place, n_seeds: int, settings: Sequence[Setting], quick: bool) -> list[Run]:
    asked = [{}, *(setting.parameters for setting in settings)]
    small = QUICK if quick else {}
    return [
        Run(place.source, seed, given, {**parameters, **small})
        for seed in range(n_seeds)
        for given in [place.given_labels(seed)]
        for parameters in asked
    ]


@contextmanager
def _outcomes(runs: Sequence[Run], n_jobs: int) -> Iterator[Iterator[Outcome]]:
    """In the order of the runs, each as soon as it is there."""
    if n_jobs == 1:
        yield map(play, runs)
        return
    # spawn: a fork of a process that has used threads may wait for ever
    with ProcessPoolExecutor(n_jobs, multiprocessing.get_context("spawn")) as pool:
        try:
            yield pool.map(play, runs)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _places(options: argparse.Namespace) -> list[Place]:
    """What is asked for, each once; wrong requests end here."""
    if options.jobs < 1:
        raise ConfigError(f"--jobs must be at least 1. Got {options.jobs} instead.")
    for percent in options.rates:
        if not (percent == 0 or 1 <= percent < 100):
            raise ConfigError(f"--rates must be percents: 0, or from 1 to below 100. Got {percent:g} instead.")
    kinds, percents = options.kinds, options.rates
    if options.quick:
        kinds, percents = kinds[:1], percents[:2]
    places = [
        Place(source, kind if percent else "", percent)
        for source in _sources(options)
        for kind in kinds
        for percent in percents
    ]
    return list(dict.fromkeys(places))


def _sources(options: argparse.Namespace) -> list[Source]:
    names = options.on or [DIGITS, *([FEATURES] if options.data is not None else [])]
    if FEATURES in names and options.data is None:
        raise ConfigError(f"--on {FEATURES} needs --data DIR, a folder with cifar10_features.npz and labels.npz.")
    sources = {
        DIGITS: Source(DIGITS, None, QUICK_ROWS if options.quick else None),
        FEATURES: Source(FEATURES, str(options.data), QUICK_ROWS if options.quick else FEATURE_ROWS),
    }
    return [sources[name] for name in names]


def _keep(options: argparse.Namespace, so_far: Findings, n_cells: int) -> None:
    """The record of an unfinished run, where the whole one will be."""
    done = len({trial.name for trial in so_far.trials})
    facts = {**so_far.facts, "notes": [f"NOT FINISHED: {done} of {n_cells} cells.", *so_far.facts["notes"]]}
    record = whole_record(NAME, ABOUT, f"labelmend benchmark {NAME}", options.quick, facts, so_far.trials)
    write_json(options.out or Path(f"benchmark-{NAME}.json"), record)


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)

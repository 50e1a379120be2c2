"""`selftest`: how much of what is wrong with these data would be found and mended, and at what price.

A plain run says which samples look clean. Then, for every kind of error and every repetition, errors are planted among
them (`planting.py`), labelmend and its neighbours are run on the same labels, and it is counted

    found     planted errors that got another label
    mended    that got the label back that was there
    broken    samples that look clean, were not planted, and got another label

What looks clean is judged by labelmend's own plain run, which is kind to labelmend in the last column: a sample it
would break without any planted error does not look clean to it. Neighbours see the features as labelmend scales them.

Knows runs and planted errors; does not know files or how to print.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from labelmend.config import RunConfig, read_config
from labelmend.decision.posterior import KEPT
from labelmend.diagnosis.planting import KINDS, Planted, plant, plantable
from labelmend.diagnosis.reliability import Interval, over_repetitions, wilson
from labelmend.ensemble.run import Progress
from labelmend.errors import ConfigError, LabelmendWarning, MissingExtraError
from labelmend.inputs.arrays import notice, read_all, read_ids
from labelmend.models.vectors import NetFactory
from labelmend.result import Correction
from labelmend.runs.solve import Solution, assemble, solve
from labelmend.runs.task import Task, vector_task
from labelmend.samples import VectorSamples
from labelmend.self_test import comparison
from labelmend.storage.source import ARRAYS, call_text

STANDARD_KINDS = ("random", "confusing", "patch")
METHODS = ("labelmend", "k-NN vote", "cleanlab")
MOST_SHARE = 0.5
Assemble = Callable[[Solution, float], Correction]  # a result of the plain run and the seconds it took
Counts = tuple[int, int, int, int, int]  # planted, found, mended; good labels watched, broken


@dataclass(frozen=True)
class MethodScore:
    """What one method did with the planted errors of one kind, over all repetitions."""

    kind: str
    method: str
    planted: int  # errors in all repetitions together
    found: Interval
    mended: Interval
    broken: Interval


@dataclass(frozen=True)
class SelfTest:
    """Intervals are of 90 %: Student's over repetitions; Wilson's where there is only one."""

    rows: int
    looks_clean: int
    share: float
    repeats: int
    scores: tuple[MethodScore, ...]
    seconds: float
    notes: tuple[str, ...]
    result: Correction = field(repr=False, compare=False)  # of the plain run

    def summary(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            **{name: getattr(self, name) for name in ("rows", "looks_clean", "share", "repeats")},
            "interval": "90 %, Wilson" if self.repeats == 1 else "90 %, Student's t over repetitions",
            "scores": [asdict(score) for score in self.scores],
            "seconds": round(self.seconds, 3),
            "notes": list(self.notes),
        }

    def report(self, path: str | Path, data: str | Path | None = None, force: bool = False) -> Path:
        """Write the report of the plain run, with this as a section of it."""
        from labelmend.report.write import write_report

        write_report(self.result, Path(path), None, None if data is None else Path(data), force, self)
        return Path(path)


def selftest(
    X: Any,
    y: Any,
    *,
    kinds: Sequence[str] = STANDARD_KINDS,
    share: float = 0.05,
    repeats: int = 3,
    trusted: Any = None,
    ids: Any = None,
    missing: Any = None,
    assume: str = "auto",
    preset: str = "default",
    seed: int = 0,
    device: str = "auto",
    progress: Progress | None = None,
    net: NetFactory | None = None,
    config: RunConfig | None = None,
    expert: Mapping[str, Any] | None = None,
    **former: Any,
) -> SelfTest:
    """Plant known errors into the labels `y` of the feature vectors `X`, and see what becomes of them.

    kinds: of "random", "confusing", "patch", "mixed". share: of the labels that get an error, in each repetition.
    Everything else is as in `correct`. It takes 1 + kinds x repeats runs.
    """
    order = check_order(kinds, share, repeats)
    public = {"assume": assume, "seed": seed, "device": device}
    chosen = read_config(preset, config, expert, public, former, ARGUMENTS)("vectors")
    matrix, labels, certain, _ = read_all(X, y, trusted, missing, None, None)
    names = read_ids(ids, len(labels.codes))
    task = vector_task(matrix, labels, certain, chosen, net)
    named = {"trusted": trusted, "ids": ids, "missing": missing, "preset": preset, "net": net, **public}
    named["expert"] = {**former, **(expert or {})} or None

    def to_result(solution: Solution, seconds: float) -> Correction:
        result = assemble(solution, task, labels, names, notice(labels, task.duplicates, task.settings), seconds)
        return replace(result, source=ARRAYS, repeat=call_text("correct", {"X": X, "y": y}, named))

    return run_selftest(task, to_result, order, progress)


ARGUMENTS = ("X", "y", *(selftest.__kwdefaults__ or {}))


@dataclass(frozen=True)
class Order:
    """What is to be planted."""

    kinds: tuple[str, ...]
    share: float
    repeats: int


def check_order(kinds: Sequence[str], share: float, repeats: int) -> Order:
    """Refuses wrong values before any work."""
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise ConfigError(f"kinds must be among {', '.join(KINDS)}. Got {', '.join(map(str, unknown))} instead.")
    if not kinds:
        raise ConfigError(f"kinds must name at least one of {', '.join(KINDS)}. Got none instead.")
    if not 0 < share <= MOST_SHARE:
        raise ConfigError(f"share must be above 0 and at most {MOST_SHARE}. Got {share!r} instead.")
    if repeats < 1:
        raise ConfigError(f"repeats must be at least 1. Got {repeats!r} instead.")
    return Order(tuple(dict.fromkeys(kinds)), share, repeats)


def run_selftest(task: Task, assemble: Assemble, order: Order, progress: Progress | None = None) -> SelfTest:
    """The self-test on data made ready."""
    began, tell = time.perf_counter(), progress or (lambda _: None)
    task = replace(task, settings=replace(task.settings, audit=0.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelmendWarning)  # they are in the notes of the plain run
        tell("plain run: what looks clean")
        plain = solve(task)
        result = assemble(plain, time.perf_counter() - began)
        trial = _Trial.of(task, plain)
        methods, notes = _methods()
        counts: dict[tuple[str, str], list[Counts]] = {}
        for number, kind in enumerate(order.kinds):
            for turn in range(order.repeats):
                planted = trial.plant(kind, order.share, np.random.default_rng([task.settings.seed, number, turn]))
                for method in methods:
                    tell(f"{kind} errors, {turn + 1} of {order.repeats}: {method}")
                    labels = trial.labels_by(method, planted, turn)
                    counts.setdefault((kind, method), []).append(trial.count(planted, labels))
    scores = tuple(_score(kind, method, found) for (kind, method), found in counts.items())
    seconds, clean = time.perf_counter() - began, int(trial.may_change.sum())
    return SelfTest(len(trial.given), clean, order.share, order.repeats, scores, seconds, tuple(notes), result)


@dataclass(frozen=True)
class _Trial:
    """The data, and what a plain run knows about them."""

    task: Task
    features: NDArray[Any]
    given: NDArray[np.int64]
    may_change: NDArray[np.bool_]
    probabilities: NDArray[Any]  # without the sample's own label

    @classmethod
    def of(cls, task: Task, plain: Solution) -> _Trial:
        problem = task.problem
        assert isinstance(problem.samples, VectorSamples)
        given, trusted = problem.given_labels.cpu().numpy(), problem.trusted.cpu().numpy()
        kept = (plain.conclusions.decision.status == KEPT).cpu().numpy()
        may_change = plantable(given, trusted, kept, problem.n_classes)
        return cls(task, problem.samples.rows.cpu().numpy(), given, may_change, plain.decided.predicted.cpu().numpy())

    def plant(self, kind: str, share: float, rng: np.random.Generator) -> Planted:
        return plant(kind, self.given, self.may_change, share, self.features, self.probabilities, rng)

    def labels_by(self, method: str, planted: Planted, turn: int) -> NDArray[np.int64]:
        settings = replace(self.task.settings, seed=self.task.settings.seed + turn)
        if method == "labelmend":
            given = torch.from_numpy(planted.labels).to(self.task.problem.samples.device)
            problem = replace(self.task.problem, given_labels=given)
            done = solve(replace(self.task, problem=problem, settings=settings))
            return done.conclusions.decision.labels.cpu().numpy()
        known = np.flatnonzero(planted.labels >= 0)  # neighbours have no notion of a missing label
        labels = planted.labels.copy()
        correct = comparison.METHODS[method]
        labels[known] = correct(self.features[known], labels[known], settings.graph_k, settings.seed).labels
        return labels

    def count(self, planted: Planted, labels: NDArray[np.int64]) -> Counts:
        after = labels[planted.rows]
        watched = self.may_change.copy()
        watched[planted.rows] = False
        found = int((after != planted.labels[planted.rows]).sum())
        mended = int((after == planted.originals).sum())
        broken = int((labels != self.given)[watched].sum())
        return len(planted.rows), found, mended, int(watched.sum()), broken


def _methods() -> tuple[list[str], list[str]]:
    """Who can be compared here, and a note about who cannot."""
    try:
        comparison.prepare("cleanlab")
    except MissingExtraError as error:
        return [method for method in METHODS if method != "cleanlab"], [str(error)]
    return list(METHODS), []


def _score(kind: str, method: str, counts: Sequence[Counts]) -> MethodScore:
    planted, found, mended, watched, broken = zip(*counts, strict=True)
    shares = (_share(*parts) for parts in ((found, planted), (mended, planted), (broken, watched)))
    return MethodScore(kind, method, sum(planted), *shares)


def _share(parts: Sequence[int], wholes: Sequence[int]) -> Interval:
    if len(parts) == 1:
        return wilson(parts[0], wholes[0])
    return over_repetitions([part / whole for part, whole in zip(parts, wholes, strict=True)], sum(wholes))

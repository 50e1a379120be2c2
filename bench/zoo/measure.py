"""One cell: run, scored, and written down as a line that is ready for JSON. All shares are in percent."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from bench.annotators import calibration_error
from bench.datasets import Dataset
from bench.zoo import answers, classifier
from bench.zoo.answers import Answers
from bench.zoo.cells import Cell
from bench.zoo.figures import Figures, of_labels, of_ranking, percent
from bench.zoo.rivals import measure_rivals
from labelmend import __version__
from labelmend.ensemble.torch_state import one_thread

VERSION = 1  # of a line
OURS = "labelmend"
Line = dict[str, Any]


def measure(cell: Cell, stored: dict[str, Figures]) -> Line:
    """`stored`: figures of rivals that need not be measured again."""
    with one_thread(), quiet():
        data = cell.load()
        found = answers.ask(data.features, data.given_labels, cell.seed, cell.assume)
        rivals, seconds = measure_rivals(data, stored)
    return {
        **about(cell),
        "methods": {"given": of_labels(data, data.given_labels), **ours(data, found), **rivals},
        **estimates(data, found),
        "verdict": found.verdict,
        "guessed": guessed(data, found),
        "seconds": {OURS: round(found.seconds, 4), **seconds},
    }


def check(cell: Cell) -> dict[str, float]:
    """The classifier of this cell."""
    with one_thread(), quiet():
        return classifier.check_classifier(cell.load())


def about(cell: Cell) -> Line:
    one = cell.of
    return {
        "version": VERSION,
        "name": one.name,
        "kind": cell.kind,
        "assume": cell.assume,
        "seed": cell.seed,
        "family": one.family,
        "source": one.source,
        "rows": one.n_rows,
        "columns": one.n_columns,
        "classes": one.n_classes,
        "labelmend": __version__,
    }


def ours(data: Dataset, found: Answers) -> dict[str, Figures]:
    figures = {name: of_labels(data, labels) for name, labels in found.labels.items()}
    figures[OURS] |= of_ranking(data, found.suspicion)
    return figures


def estimates(data: Dataset, found: Answers) -> Line:
    """The noise rate and its interval against the truth, and how well confidence is calibrated."""
    wrong = float((data.given_labels != data.true_labels).mean())
    low, high = found.interval or (None, None)
    right = found.labels[OURS] == data.true_labels
    return {
        "wrong": percent(wrong),
        "rate": percent(found.rate),
        "rate_low": None if low is None else percent(low),
        "rate_high": None if high is None else percent(high),
        "calibration_error": round(calibration_error(found.confidence, right), 6),
        "review": percent(found.review),
    }


def guessed(data: Dataset, found: Answers) -> float | None:
    """How often the pool's best guess, its own label unseen, is the true class."""
    guess = found.labels.get("best_guess")
    return None if guess is None else percent((guess == data.true_labels).mean())


def warm_up() -> None:
    """Imports and first calls come before the clock; what fails here fails again in a cell, and is reported there."""
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 2
    features = (rng.standard_normal((60, 3)) + 3 * labels[:, None]).astype(np.float32)
    data = Dataset(features, labels, labels)
    with one_thread(), quiet(), suppress(Exception):
        answers.ask(features, labels, 0, "auto")
        measure_rivals(data, {})


@contextmanager
def quiet() -> Iterator[None]:
    """Tiny classes, unfinished convergence and the like: known, and the same every time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield

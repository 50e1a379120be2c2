"""`python -m bench annotators`: several people's labels, against cleanlab's multiannotator and a majority vote.

Two cases. Simulated annotators on scikit-learn's digits: five of accuracy .5 to .95, each labels about a third of the
rows; the third of them (.8) always says the next class when wrong, the others any other class. People: CIFAR-10N's
three labels per picture. Where the file has random1 only, what follows of the others from the majority of all three
(aggregate) without a look at the truth: where random1 differs from it, both others chose the majority; where not, one
of them did, and the last label counts as missing.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.datasets import FloatArray, IntArray, read_arrays
from bench.record import Findings, Say, Trial
from labelmend.errors import LabelmendWarning, MissingExtraError
from labelmend.self_test.comparison import Figures

ACCURACIES = (0.5, 0.65, 0.8, 0.9, 0.95)
SYSTEMATIC = 2  # place of the one who always makes the same mistake
SHARE = 1 / 3  # of the rows that each labels
HUMAN_ROWS, QUICK_ROWS = 10_000, 300
THREE = ("cifar10n_random1", "cifar10n_random2", "cifar10n_random3")
NOT_COUNTED = "Accuracy counts the rows that somebody labelled; rank is that of the annotators by estimated quality."


@dataclass(frozen=True)
class Labelled:
    """Features, the label of every annotator (rows by annotators, -1: none), and the truth."""

    features: FloatArray
    annotations: IntArray
    true_labels: IntArray
    people: bool = True  # a column is one person, whose quality can be compared

    @property
    def labelled(self) -> NDArray[np.bool_]:
        return np.asarray((self.annotations >= 0).any(axis=1))


@dataclass(frozen=True)
class Answer:
    labels: IntArray
    quality: FloatArray | None = None  # of each annotator, estimated
    confidence: FloatArray | None = None


def simulated(seed: int, n_rows: int | None = None) -> Labelled:
    from sklearn.datasets import load_digits

    pixels, true_labels = load_digits(return_X_y=True)
    true_labels = true_labels[:n_rows].astype(np.int64)
    rng = np.random.default_rng(seed)
    annotations = np.full((len(true_labels), len(ACCURACIES)), -1)
    for place, accuracy in enumerate(ACCURACIES):
        steps = 1 if place == SYSTEMATIC else rng.integers(1, 10, len(true_labels))
        wrong = rng.random(len(true_labels)) >= accuracy
        answers = rng.random(len(true_labels)) < SHARE
        annotations[:, place] = np.where(answers, np.where(wrong, (true_labels + steps) % 10, true_labels), -1)
    return Labelled(pixels[:n_rows] / 16, annotations, true_labels)


def human(folder: Path, n_rows: int) -> tuple[Labelled, str]:
    """The first rows of CIFAR-10's features with three people's labels of each, and a note on where they are from."""
    features = read_arrays(folder / "cifar10_features.npz", ("train",))["train"][:n_rows].astype(np.float32)
    labels = read_arrays(folder / "labels.npz", ())
    columns = {name: array[:n_rows].astype(np.int64) for name, array in labels.items()}
    if all(name in columns for name in THREE):
        annotations, note = np.stack([columns[name] for name in THREE], axis=1), "People: random1, random2 and random3."
    else:
        first, most = columns[THREE[0]], columns["cifar10n_aggregate"]
        annotations = np.stack([first, most, np.where(first != most, most, -1)], axis=1)
        note = "People: random1, and of the two others what follows from aggregate, the majority of all three."
    return Labelled(features, annotations, columns["cifar10_train"], people=False), note  # many people, in turns


def majority(data: Labelled, seed: int) -> Answer:
    """Ties are broken at random; nothing where nobody gave a label."""
    counts = np.stack([(data.annotations == code).sum(axis=1) for code in range(data.annotations.max() + 1)], axis=1)
    ties = np.random.default_rng(seed).random(counts.shape) / 2
    return Answer(np.where(data.labelled, (counts + ties).argmax(axis=1), -1))


def weighted(data: Labelled, seed: int) -> Answer:
    """labelmend's consensus before it looks at the samples."""
    from labelmend.inputs.annotators import read_annotated, with_consensus

    labels = with_consensus(
        read_annotated(None, as_floats(data.annotations)), np.zeros(len(data.annotations), dtype=bool)
    )
    assert labels.annotations is not None
    assert labels.annotations.certainty is not None
    return Answer(labels.codes, None, labels.annotations.certainty)


def labelmend(data: Labelled, seed: int) -> Answer:
    from labelmend.api import correct

    result = correct(data.features, annotators=as_floats(data.annotations), seed=seed)
    assert result.annotators is not None
    return Answer(np.asarray(result.labels), result.annotators.accuracy, result.confidence)


def on_majority(data: Labelled, seed: int) -> Answer:
    """labelmend without the labels of single annotators."""
    from labelmend.api import correct

    result = correct(data.features, majority(data, seed).labels, missing=-1, seed=seed)
    return Answer(np.asarray(result.labels), None, result.confidence)


def cleanlab(data: Labelled, seed: int) -> Answer:
    """Out-of-fold LogisticRegression(max_iter=200) on the majority, 5 folds, then get_label_quality_multiannotator."""
    try:
        from cleanlab.multiannotator import get_label_quality_multiannotator, get_majority_vote_label
    except ImportError as error:
        raise MissingExtraError("cleanlab is not installed", "compare") from error
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    rows = np.flatnonzero(data.labelled)  # it takes no others
    annotations = as_floats(data.annotations[rows])
    most = get_majority_vote_label(annotations, verbose=False)
    model = LogisticRegression(max_iter=200)
    probabilities = cross_val_predict(model, data.features[rows], most, cv=5, method="predict_proba")
    found = get_label_quality_multiannotator(annotations, probabilities, verbose=False)
    labels, confidence = np.full(len(data.annotations), -1), np.zeros(len(data.annotations))
    labels[rows] = found["label_quality"]["consensus_label"]
    confidence[rows] = found["label_quality"]["consensus_quality_score"]
    quality = found["annotator_stats"].sort_index()["annotator_quality"].to_numpy()
    return Answer(labels, quality, confidence)


METHODS: dict[str, Callable[[Labelled, int], Answer]] = {
    "labelmend": labelmend,
    "labelmend, majority": on_majority,
    "cleanlab": cleanlab,
    "weighted consensus": weighted,
    "majority": majority,
}


def measure_annotators(folder: Path | None, n_seeds: int, quick: bool, say: Say) -> Findings:
    trials, notes = [], [NOT_COUNTED]
    for seed in range(n_seeds):
        data = simulated(seed, QUICK_ROWS if quick else None)
        trials += [_trial("digits, 5 simulated", method, data, seed, say) for method in METHODS]
    if folder is not None:
        people, note = human(folder, QUICK_ROWS if quick else HUMAN_ROWS)
        trials += [_trial("CIFAR-10N, 3 people", method, people, 0, say) for method in METHODS]
        notes.append(note)
    return Findings(trials, {"notes": notes})


def score(data: Labelled, answer: Answer) -> Figures:
    """Accuracy of the labels and of the estimated quality of the annotators, where somebody gave a label."""
    labelled = data.labelled
    right = (answer.labels == data.true_labels)[labelled]
    figures: Figures = {"label_accuracy": float(right.mean())}
    if answer.confidence is not None:
        figures["calibration_error"] = calibration_error(answer.confidence[labelled], right)
    if answer.quality is not None and data.people:
        figures |= _quality(data, answer.quality)
    return figures


def calibration_error(confidence: FloatArray, right: NDArray[np.bool_], n_bins: int = 10) -> float:
    """Expected calibration error: mean distance of confidence and share of right labels over equally wide bins."""
    at = np.clip((confidence * n_bins).astype(int), 0, n_bins - 1)
    gaps = np.bincount(at, confidence - right, n_bins)
    return float(np.abs(gaps).sum() / len(right))


def as_floats(annotations: IntArray) -> NDArray[np.float64]:
    return np.where(annotations >= 0, annotations.astype(float), np.nan)


def _quality(data: Labelled, quality: FloatArray) -> Figures:
    from scipy.stats import spearmanr

    hits = (data.annotations == data.true_labels[:, None]) & (data.annotations >= 0)
    truth = hits.sum(axis=0) / (data.annotations >= 0).sum(axis=0)
    return {
        "quality_rank": float(spearmanr(quality, truth).statistic),
        "quality_error": float(np.abs(quality - truth).mean()),
    }


def _trial(name: str, method: str, data: Labelled, seed: int, say: Say) -> Trial:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelmendWarning)
        if method == "cleanlab":
            warnings.simplefilter("ignore")  # not converged after 200 iterations; that is part of the recipe
        began = time.perf_counter()
        try:
            answer: Any = METHODS[method](data, seed)
        except MissingExtraError:
            return Trial(name, method, {}, "not installed")
    figures = {**score(data, answer), "seconds": time.perf_counter() - began}
    say(f"{name}  {method}  seed {seed}  {figures['label_accuracy']:.4f} of the labels right")
    return Trial(name, method, figures)

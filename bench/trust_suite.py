"""The benchmarks of what a run reports about its own work: the kind of errors, and samples that fit no class.

kinds      known mixtures of random, confusing and patch errors; is the largest share of the profile the right one,
           and does its interval hold the true noise rate?
outliers   foreign samples among real ones, 5 %: classes left out, blends of two classes, and where --data holds
           cifar100_features.npz (array features, made like those of CIFAR-10) pictures of CIFAR-100
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.datasets import FloatArray, IntArray, digit_rows, human, read_arrays
from bench.record import OURS, Benchmark, Findings, Say, Trial
from labelmend.api import correct
from labelmend.config import as_arguments
from labelmend.diagnosis import noise
from labelmend.diagnosis.conclude import NONE, least_fitting
from labelmend.diagnosis.profile import KINDS
from labelmend.errors import LabelmendWarning
from labelmend.result import Correction
from labelmend.self_test.comparison import Figures

ROWS, QUICK_ROWS = 10_000, 250  # of the CIFAR-10 features; of anything in a quick run
TREES, FEATURE_TREES = 200, 50  # of the forest that finds confusing samples
MIXTURES = {
    **{kind: {kind: 1.0} for kind in KINDS},
    **{f"mostly {kind}": {other: 0.7 if other == kind else 0.15 for other in KINDS} for kind in KINDS},
}
RATES = (0.1, 0.2, 0.3)
FOREIGN = 0.05  # share of foreign samples
LABEL_NOISE = (0.0, 0.2)  # random errors among the labels of the others
LEAST = 0.02
QUICK: dict[str, Any] = {"n_rounds": 2, "hidden": 32}
CIFAR100 = "cifar100_features.npz"


@dataclass(frozen=True)
class Planted:
    """Samples with labels; true label -1: it belongs to no class."""

    features: FloatArray
    given_labels: IntArray
    true_labels: IntArray


def kinds_options(options: argparse.ArgumentParser) -> None:
    add_data(options)
    options.add_argument(
        "--rates", type=float, nargs="+", default=list(RATES), metavar="RATE", help="shares of wrong labels"
    )


def kinds(options: argparse.Namespace, n_seeds: int, say: Say) -> Findings:
    trials = []
    for seed in range(n_seeds):
        for name in _sets(options):
            features, true_labels = _rows(name, options, seed)
            trees = FEATURE_TREES if name != "digits" else TREES
            probabilities = noise.forest_probabilities(features, true_labels, seed, 5 if options.quick else trees)
            for rate in options.rates[:1] if options.quick else options.rates:
                for mixture, shares in list(MIXTURES.items())[: 2 if options.quick else None]:
                    rates = {kind: rate * share for kind, share in shares.items()}
                    rng = np.random.default_rng(seed)
                    given = noise.mixture(true_labels, rates, probabilities, features, rng)
                    result, seconds = _corrected(features, given, seed, options.quick)
                    figures = {**profile_figures(result, true_labels, max(rates, key=lambda k: rates[k])), **seconds}
                    trials.append(Trial(f"{name}, {mixture}, {rate:.0%}", OURS, figures))
                    say(f"{trials[-1].name}  seed {seed}  right {figures['kind_right']:.0f}")
    return Findings(trials, {"notes": _kind_notes(trials)})


def profile_figures(result: Correction, true_labels: IntArray, kind: str) -> Figures:
    """How the profile compares with the truth; `kind` is the one most errors are of."""
    profile = result.profile
    assert profile is not None
    true_rate = float((result.given.codes != true_labels).mean())
    shares = profile.kinds or dict.fromkeys(KINDS)
    return {
        "kind_right": float(profile.kind == kind),
        **{f"share_{name}": share for name, share in shares.items()},
        "true_noise_rate": true_rate,
        "noise_rate": profile.rate.value,
        "rate_low": profile.rate.low,
        "rate_high": profile.rate.high,
        "rate_inside": float(profile.rate.low <= true_rate <= profile.rate.high),
        "transition_inside": _transition_inside(result, true_labels),
    }


def outliers(options: argparse.Namespace, n_seeds: int, say: Say) -> Findings:
    trials = []
    for seed in range(n_seeds):
        for name in _sets(options):
            kinds_here = ["classes", "blends"]
            if name != "digits" and (options.data / CIFAR100).exists():
                kinds_here.append("CIFAR-100")
            for kind in kinds_here:
                for rate in LABEL_NOISE[:1] if options.quick else LABEL_NOISE:
                    data = plant_foreign(*_rows(name, options, seed), kind, rate, options.data, seed)
                    result, seconds = _corrected(data.features, data.given_labels, seed, options.quick)
                    case = f"{name}, {kind}, {rate:.0%} wrong labels"
                    trials += _outlier_trials(case, result, data, seconds)
                    say(f"{case}  seed {seed}  AUROC {trials[-3].figures['auroc']:.3f}")
    note = f"Foreign samples {FOREIGN:.0%} with random labels; blends carry the label of one of their two samples."
    return Findings(trials, {"notes": [note]})


def plant_foreign(
    features: FloatArray, true_labels: IntArray, kind: str, rate: float, data: Path | None, seed: int
) -> Planted:
    """Real samples, a share `rate` of them with random labels, and FOREIGN of all that belong to no class."""
    rng = np.random.default_rng(seed)
    pool = features[:0]
    if kind == "classes":  # two classes are foreign; their samples get labels of the others
        out = np.isin(true_labels, rng.choice(np.unique(true_labels), 2, replace=False))
        pool, features = features[out], features[~out]
        true_labels = np.unique(true_labels[~out], return_inverse=True)[1]
    elif kind == "CIFAR-100":
        assert data is not None
        pool = read_arrays(data / CIFAR100, ("features",))["features"].astype(features.dtype)
    n_classes, wanted = int(true_labels.max()) + 1, round(len(true_labels) * FOREIGN / (1 - FOREIGN))
    if kind == "blends":
        foreign, labels = _blends(features, true_labels, wanted, rng)
    else:
        foreign = pool[rng.permutation(len(pool))[:wanted]]
        labels = rng.integers(n_classes, size=len(foreign))
    given = np.concatenate([noise.random(true_labels, rate, n_classes, rng), labels])
    order = rng.permutation(len(given))
    truth = np.concatenate([true_labels, np.full(len(foreign), -1)])
    return Planted(np.concatenate([features, foreign])[order], given[order], truth[order])


def _blends(
    features: FloatArray, labels: IntArray, wanted: int, rng: np.random.Generator
) -> tuple[FloatArray, IntArray]:
    """Means of two samples of different classes, with the label of either."""
    one, two = (rng.integers(len(features), size=20 * wanted) for _ in range(2))
    apart = np.flatnonzero(labels[one] != labels[two])[:wanted]
    one, two = one[apart], two[apart]
    return (features[one] + features[two]) / 2, labels[np.where(rng.random(len(apart)) < 0.5, one, two)]


def outlier_figures(scores: NDArray[np.floating], foreign: NDArray[np.bool_]) -> Figures:
    """How well scores, large for those that fit badly, tell foreign samples from the others."""
    from sklearn.metrics import roc_auc_score

    least = least_fitting(scores - scores.min(), np.zeros(len(scores), dtype=bool), LEAST)
    return {"auroc": float(roc_auc_score(foreign, scores)), "foreign_in_least": float(foreign[least].mean())}


def _outlier_trials(case: str, result: Correction, data: Planted, seconds: Figures) -> list[Trial]:
    """Ours, and two plain scores of the same run and rows."""
    assert result.reason is not None
    assert result.misfit is not None
    foreign, changed = data.true_labels < 0, result.corrected_codes != data.given_labels
    least = least_fitting(result.misfit, np.zeros(len(foreign), dtype=bool), LEAST)
    listed = result.reason == NONE
    ours = {
        **outlier_figures(result.misfit, foreign),
        "relabelled_in_least": float((changed & least).sum()),
        "listed": float(listed.mean()),
        "listed_foreign": float(foreign[listed].mean()) if listed.any() else None,
        "label_accuracy": float((result.corrected_codes == data.true_labels)[~foreign].mean()),
        **seconds,
    }
    votes = np.asarray(result.votes.todense())
    entropy = -(votes * np.log(np.maximum(votes, 1e-12))).sum(axis=1)
    return [
        Trial(case, OURS, ours),
        Trial(case, "10-NN distance in the features", outlier_figures(_distance(data.features), foreign)),
        Trial(case, "entropy of the votes", outlier_figures(entropy, foreign)),
    ]


def _distance(features: FloatArray, k: int = 10) -> NDArray[np.floating]:
    from sklearn.neighbors import NearestNeighbors

    rows = features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
    return np.asarray(NearestNeighbors(n_neighbors=k).fit(rows).kneighbors()[0].mean(axis=1))


def _transition_inside(result: Correction, true_labels: IntArray) -> float:
    """Share of the cells of P(given | true) whose interval holds the true value."""
    assert result.profile is not None
    counts = np.zeros_like(result.profile.transition_low)
    np.add.at(counts, (true_labels, result.given.codes), 1)
    truth = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    inside = (result.profile.transition_low <= truth) & (truth <= result.profile.transition_high)
    return float(inside.mean())


def _corrected(features: FloatArray, given: IntArray, seed: int, quick: bool) -> tuple[Correction, Figures]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelmendWarning)
        began = time.perf_counter()
        result = correct(
            features,
            given,
            seed=seed,
            **as_arguments(as_arguments({"outlier_share": LEAST, **(QUICK if quick else {})})),
        )
    return result, {"seconds": time.perf_counter() - began}


def _sets(options: argparse.Namespace) -> list[str]:
    return ["digits", *(["CIFAR-10 features"] if options.data is not None else [])]


def _rows(name: str, options: argparse.Namespace, seed: int) -> tuple[FloatArray, IntArray]:
    if name == "digits":
        return digit_rows(seed, QUICK_ROWS if options.quick else None)
    whole = human(str(options.data), "clean")
    wanted = np.sort(
        np.random.default_rng(100 + seed).permutation(len(whole.features))[: QUICK_ROWS if options.quick else ROWS]
    )
    return whole.features[wanted], whole.true_labels[wanted]


def _kind_notes(trials: Sequence[Trial]) -> list[str]:
    right = sum(float(trial.figures["kind_right"] or 0) for trial in trials)
    inside = sum(float(trial.figures["rate_inside"] or 0) for trial in trials)
    return [
        f"The largest share is the right kind in {right:.0f} of {len(trials)} runs; the interval holds the true noise "
        f"rate in {inside:.0f}."
    ]


def add_data(options: argparse.ArgumentParser) -> None:
    options.add_argument(
        "--data", type=Path, metavar="DIR", help="folder with cifar10_features.npz and labels.npz; without it: digits"
    )


TRUST_BENCHMARKS: dict[str, Benchmark] = {
    "kinds": Benchmark(
        "kind of errors and noise rate estimated on planted mixtures, digits and CIFAR-10 features (--data)",
        kinds_options,
        kinds,
        3,
    ),
    "outliers": Benchmark(
        "foreign samples found among real ones, digits and CIFAR-10 features (--data)", add_data, outliers, 2
    ),
}

"""What the neighbours make of a cell: their stored figures where the folder has them, else measured here.

Measured exactly as the stored ones were: columns standardised, folds shuffled with seed 0, flagged labels replaced by
the most probable class. The 10-NN vote and the SimiFeat-like one (unit-length rows, the row's own label votes too) take
the first of several equal classes. cleanlab with logistic regression always runs, for its CPU seconds: as it is called
by default, which on Linux starts processes even for small tables, and the folds alone.
"""

from __future__ import annotations

import contextlib
import io
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bench.datasets import Dataset, FloatArray, IntArray
from bench.zoo.figures import Figures, of_labels, of_ranking
from bench.zoo.own_sets import standardised
from labelmend.errors import MissingExtraError
from labelmend.self_test.comparison import prepare

TITLES = {
    "cleanlab_lr": "cleanlab, logistic regression",
    "cleanlab_hgb": "cleanlab, boosting",
    "datalab": "Datalab on features",
    "knn": "10-NN vote",
    "simi": "SimiFeat-like vote",
}
TIMED, FOLDS_ALONE = "cleanlab_lr", "cleanlab_lr_folds"
TIMED_ROWS = 5_000  # time is compared up to here
NEIGHBOURS, FOLDS = 10, 5
BOOSTING_WORK, BOOSTING_COLUMNS = 1.2e6, 130  # rows x columns x classes; beyond, boosting takes minutes a cell
Stored = dict[tuple[str, str], dict[str, Figures]]


@dataclass(frozen=True)
class Opinion:
    labels: IntArray
    suspicion: FloatArray
    folds_seconds: float = 0.0  # of the CPU, for out-of-fold probabilities


def stored_figures(folder: Path | None) -> Stored:
    """(set, kind) -> rival -> figures, from rivals.jsonl."""
    path = None if folder is None else folder / "rivals.jsonl"
    if path is None or not path.is_file():
        return {}
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return {(line["name"], line["kind"]): as_figures(line) for line in lines}


def as_figures(line: dict[str, Any]) -> dict[str, Figures]:
    found: dict[str, Figures] = {}
    for rival, right in line["acc"].items():
        found[rival] = {"right": round(right, 4)}
        if rival in line["auc"]:
            found[rival]["auroc"] = round(line["auc"][rival], 4)
    return found


def measure_rivals(data: Dataset, stored: dict[str, Figures]) -> tuple[dict[str, Figures], dict[str, float]]:
    """Figures by rival, and the CPU seconds of the timed one; none where it is not installed or the table is large."""
    figures: dict[str, Figures] = dict(stored)
    seconds: dict[str, float] = {}
    for rival, judge in RIVALS.items():
        timed = rival == TIMED and len(data.true_labels) <= TIMED_ROWS
        if not can_run(rival, data) or (rival in stored and not timed):
            continue
        began = cpu_seconds()
        opinion = try_one(judge, data)
        if opinion is not None:
            if timed:
                seconds = {TIMED: round(cpu_seconds() - began, 4), FOLDS_ALONE: round(opinion.folds_seconds, 4)}
            measured = {**of_labels(data, opinion.labels), **of_ranking(data, opinion.suspicion)}
            figures[rival] = {**measured, **stored.get(rival, {})}
    return figures, seconds


def cpu_seconds() -> float:
    """Of this process and, where the system has it, of those it has started and that have ended."""
    try:
        import resource  # not on Windows
    except ImportError:
        return time.process_time()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def try_one(judge: Callable[[FloatArray, IntArray], Opinion], data: Dataset) -> Opinion | None:
    """None where the rival cannot answer, such as where no class has a sample for each fold."""
    classes, codes = np.unique(data.given_labels, return_inverse=True)
    columns = standardised(data.features.astype(np.float64))
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            opinion = judge(columns, codes)
        except Exception:  # whatever ends another library is its own matter: it has no figure here
            return None
    return replace(opinion, labels=classes[opinion.labels])


def can_run(rival: str, data: Dataset) -> bool:
    work, columns = data.features.size * len(np.unique(data.given_labels)), data.features.shape[1]
    if rival == "cleanlab_hgb" and (work > BOOSTING_WORK or columns > BOOSTING_COLUMNS):
        return False
    if rival in ("knn", "simi"):
        return True
    try:
        prepare("cleanlab")
    except MissingExtraError:
        return False
    return True


def logistic(columns: FloatArray, codes: IntArray) -> Opinion:
    return flagged(make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)), columns, codes)


def boosting(columns: FloatArray, codes: IntArray) -> Opinion:
    return flagged(HistGradientBoostingClassifier(max_iter=60), columns, codes)


def flagged(model: Any, columns: FloatArray, codes: IntArray) -> Opinion:
    """cleanlab's find_label_issues on out-of-fold probabilities; suspects by self-confidence."""
    from cleanlab.filter import find_label_issues

    folds, began = StratifiedKFold(FOLDS, shuffle=True, random_state=0), time.process_time()
    probabilities = cross_val_predict(model, columns, codes, cv=folds, method="predict_proba")
    seconds = time.process_time() - began
    issues = find_label_issues(codes, probabilities, n_jobs=1)  # see selftest/rivals.py
    labels = np.where(issues, probabilities.argmax(axis=1), codes)
    return Opinion(labels, 1 - probabilities[np.arange(len(codes)), codes], seconds)


def datalab(columns: FloatArray, codes: IntArray) -> Opinion:
    from cleanlab import Datalab

    lab = Datalab(data={"label": codes}, label_name="label", verbosity=0)
    lab.find_issues(features=columns, issue_types={"label": {}})
    issues = lab.get_issues("label")
    labels = np.where(issues["is_label_issue"], issues["predicted_label"], codes).astype(np.int64)
    return Opinion(labels, 1 - np.asarray(issues["label_score"], dtype=np.float64))


def knn(columns: FloatArray, codes: IntArray) -> Opinion:
    counts = neighbours_say(columns, codes)
    return Opinion(counts.argmax(axis=1), -counts[np.arange(len(codes)), codes])


def similar(columns: FloatArray, codes: IntArray) -> Opinion:
    lengths = np.maximum(np.linalg.norm(columns, axis=1, keepdims=True), 1e-12)
    counts, rows = neighbours_say(columns / lengths, codes), np.arange(len(codes))
    suspicion = -counts[rows, codes]
    counts[rows, codes] += 1
    return Opinion(counts.argmax(axis=1), suspicion)


def neighbours_say(columns: FloatArray, codes: IntArray) -> NDArray[np.float64]:
    """(n, C) how many of the nearest rows, the row itself not among them, have each label."""
    search = NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(codes) - 1)).fit(columns)
    nearest = search.kneighbors(return_distance=False)
    return np.asarray(np.eye(int(codes.max()) + 1)[codes[nearest]].sum(axis=1))


RIVALS: dict[str, Callable[[FloatArray, IntArray], Opinion]] = {
    "cleanlab_lr": logistic,
    "cleanlab_hgb": boosting,
    "datalab": datalab,
    "knn": knn,
    "simi": similar,
}

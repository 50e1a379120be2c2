"""The classifier handed back, on rows it has not seen, against single members trained on the given labels.

A fixed third of the rows is held out. The run corrects the labels of the others; each member learns those labels as
they were given. All are judged by the true labels of the third.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer

from bench.datasets import Dataset, FloatArray, IntArray
from bench.zoo.figures import percent
from labelmend.api import correct

MOST_ROWS = 2_000
BOOSTING_WORK = 1.2e6  # rows x columns x classes
LANDMARKS = 800
BEST = "best member"


def held_out_third(n: int) -> NDArray[np.bool_]:
    third = np.zeros(n, dtype=bool)
    third[np.random.default_rng(0).permutation(n)[: n // 3]] = True
    return third


def check_classifier(data: Dataset) -> dict[str, float]:
    """Percent right on the held-out rows by model; empty where the others have one class only."""
    out = held_out_third(len(data.true_labels))
    features, (classes, given) = data.features, np.unique(data.given_labels[~out], return_inverse=True)
    if len(classes) < 2:
        return {}
    result = correct(features[~out], given, seed=0)
    answers = {"labelmend": np.asarray(result.model.predict(features[out]))}
    answers |= members_predict(features[~out], given, features[out])
    right = {name: percent((classes[codes] == data.true_labels[out]).mean()) for name, codes in answers.items()}
    return {**right, BEST: max(share for name, share in right.items() if name != "labelmend")}


def members_predict(train: FloatArray, given: IntArray, test: FloatArray) -> dict[str, IntArray]:
    """Linear and smooth members see columns by rank in a normal shape, trees see them as they are."""
    ranks = normal_ranks(train)
    by_rank, test_by_rank = ranks.transform(train), ranks.transform(test)
    answers = {}
    for name, build in MEMBERS.items():
        if name == "boosting" and train.size * len(np.unique(given)) > BOOSTING_WORK:
            continue
        trees = name in ("extra trees", "boosting")
        model = build(len(given)).fit(train if trees else by_rank, given)
        answers[name] = np.asarray(model.predict(test if trees else test_by_rank))
    return answers


def normal_ranks(train: FloatArray) -> QuantileTransformer:
    shape = QuantileTransformer(n_quantiles=min(1000, len(train)), output_distribution="normal", subsample=None)
    return shape.fit(train)


def ridge(n: int) -> RidgeClassifierCV:
    return RidgeClassifierCV(10.0 ** np.arange(-1, 4.1, 0.5))


MEMBERS: dict[str, Callable[[int], Any]] = {  # by the number of rows
    "ridge": ridge,
    "RBF ridge": lambda n: make_pipeline(Nystroem(n_components=min(n, LANDMARKS), random_state=0), ridge(n)),
    "10-NN": lambda n: KNeighborsClassifier(min(10, n)),
    "logistic regression": lambda n: LogisticRegression(C=0.03, max_iter=200),
    "extra trees": lambda n: ExtraTreesClassifier(200, min_samples_leaf=2, bootstrap=True, random_state=0),
    "boosting": lambda n: HistGradientBoostingClassifier(max_iter=60, early_stopping=False, random_state=0),
}

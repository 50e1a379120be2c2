"""Probabilities of the user's own models as evidence: scores for the pool, and whether they look out of sample."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]
Probabilities = NDArray[np.float32]

SMOOTHING = 1e-4  # of every row goes to all classes alike: a zero means "hardly", and its logarithm is finite
NAMES_GIVEN_LABEL = 0.99  # of the rows, from which a model looks as if it had seen them
MORE_OFTEN = 0.03  # than any out-of-sample member does
ALONE = (
    "Only probabilities were given: like every tool that takes nothing else, labelmend assumed that the classes are "
    "apart, and that the models had not seen the label of the row they judge."
)


@dataclass(frozen=True)
class PredProbs:
    """n x C of every model, columns in the order of the classes."""

    models: dict[str, Probabilities]
    named: NDArray[np.bool_]  # classes for which a model has a column

    def scores(self) -> dict[str, Probabilities]:
        """Log-probabilities; all of them finite."""
        return {name: smoothed_log(found) for name, found in self.models.items()}

    def features(self) -> NDArray[np.float32]:
        """Centred log-probabilities of all models side by side: rows by (models x C)."""
        return np.hstack([found - found.mean(axis=1, keepdims=True) for found in self.scores().values()])

    def digest(self) -> str:
        """SHA-256: tells whether a run was given these."""
        found = hashlib.sha256()
        for name, values in self.models.items():
            found.update(name.encode("utf-8", "surrogatepass"))
            found.update(np.ascontiguousarray(values).data)
        return found.hexdigest()


def smoothed_log(probabilities: Probabilities) -> Probabilities:
    share = SMOOTHING / probabilities.shape[1]
    return np.asarray(np.log((1 - SMOOTHING) * probabilities + share), dtype=np.float32)


def looks_in_sample(
    pred_probs: Mapping[str, Codes], members: Mapping[str, Codes], given: Codes, in_question: NDArray[np.bool_]
) -> list[str]:
    """A note for each model that names the given label far more often than anything out of sample does.

    `pred_probs` and `members`: name -> class named for every row; without members, where probabilities are all there
    is, nothing can be compared.
    """
    if not in_question.any():
        return []

    def agreement(named: Codes) -> float:
        return float((named == given)[in_question].mean())

    usual = max(map(agreement, members.values()), default=0.0)
    notes = []
    for name, labels in pred_probs.items():
        found = agreement(labels)
        if found > NAMES_GIVEN_LABEL and found > usual + MORE_OFTEN:
            compared = f", the other members of the pool at most in {usual:.1%}" if members else ""
            notes.append(
                f"{name} names the given label in {found:.1%} of the rows{compared}. A model that was fitted on the "
                "labels it judges does that, and then no error can be found by it: predict every row by a model that "
                "has not seen it (cross_val_predict). A very good model on clean labels looks the same."
            )
    return notes

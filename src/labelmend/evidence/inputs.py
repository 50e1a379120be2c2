"""What the pool is fitted on: the features of all rows, prepared once, what else is known without labels, and the
probabilities of the user's own models.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from labelmend.ensemble.graphs import cell_neighbors, make_cells, normalize_rows
from labelmend.evidence.members import NEIGHBOURS, Ground, Scores, class_shares, knn, member_scores
from labelmend.evidence.preparation import Groups, Preparation, fit_preparation, groups_of_copies, seen_columns

Codes = NDArray[np.int64]
Probabilities = NDArray[np.float32]

EXACT_ROWS = 12_000  # above, neighbours are searched in nearby cells only
CELLS_SEARCHED = 8
TINY = 1e-6
AMONG_COPIES = 3 * NEIGHBOURS  # neighbours searched for where some of them may be copies
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


@dataclass(frozen=True)
class Inputs:
    """Rows in the order of the samples."""

    raw: NDArray[np.float32]  # as they came; of a wide sparse matrix its projection
    preparation: Preparation
    seed: int
    given_scores: Mapping[str, Scores] = field(default_factory=dict)  # of the user's own models
    named: NDArray[np.bool_] | None = None  # classes for which such a model has a column
    alone: bool = False  # the features are those models' probabilities, and nothing else is known

    @classmethod
    def of(cls, matrix: Any, projection: NDArray[np.float32] | None, seed: int) -> Inputs:
        raw = np.asarray(seen_columns(matrix, projection), dtype=np.float32)
        return cls(raw, fit_preparation(raw), seed)

    @cached_property
    def prepared(self) -> NDArray[np.float64]:
        return self.preparation(self.raw)

    @cached_property
    def groups(self) -> Groups:
        return groups_of_copies(self.raw)

    @cached_property
    def neighbours(self) -> Codes:
        """Nearest rows among the prepared ones, the row itself not among them."""
        wanted = NEIGHBOURS if int(self.groups.max()) + 1 == len(self.raw) else AMONG_COPIES
        wanted = min(wanted, len(self.raw) - 1)
        if len(self.raw) <= EXACT_ROWS:
            from sklearn.neighbors import NearestNeighbors

            search = NearestNeighbors(n_neighbors=wanted).fit(self.prepared)
            return np.asarray(search.kneighbors(return_distance=False))
        rows = normalize_rows(torch.from_numpy(self.prepared.astype(np.float32)))
        cells = make_cells(rows, CELLS_SEARCHED, torch.Generator().manual_seed(self.seed))
        return np.asarray(cell_neighbors(rows, cells, wanted).indices.numpy())

    def ground(self, given: Codes, n_classes: int) -> Ground:
        shares = class_shares(given, n_classes)
        return Ground(self.raw, self.prepared, given, n_classes, self.groups, self.neighbours, self.seed, shares)

    def neighbour_votes(self, given: Codes, n_classes: int) -> Scores:
        """(n, C) by the labels of the nearest rows: the least that a predictor has to know."""
        return knn(self.ground(given, n_classes)).astype(np.float32)

    def scores(self, given: Codes, n_classes: int) -> dict[str, Scores]:
        """name -> (n, C) of every member that learned the given labels, and of the user's own models."""
        members = member_scores(self.ground(given, n_classes))
        beyond = self.known(given, n_classes) & (np.bincount(given[given >= 0], minlength=n_classes) == 0)
        if beyond.any():
            members = {name: with_unnamed(found, self.given_scores, beyond) for name, found in members.items()}
        return {**members, **self.given_scores}

    def known(self, given: Codes, n_classes: int) -> NDArray[np.bool_]:
        """Classes that a label or a model names."""
        known = np.bincount(given[given >= 0], minlength=n_classes) > 0
        return known if self.named is None else known | self.named


def with_unnamed(scores: Scores, given_scores: Mapping[str, Scores], beyond: NDArray[np.bool_]) -> Scores:
    """A member that learned labels knows no class that no label names: there the user's models count.

    s(x, c) = log sum of exp s(x, other) + log of the odds that those models give to c.
    """
    odds = np.mean([np.exp(found) for found in given_scores.values()], axis=0)
    rest = np.maximum(1 - odds[:, beyond].sum(axis=1, keepdims=True), TINY)
    others = scores[:, ~beyond]
    highest = others.max(axis=1, keepdims=True)
    together = highest + np.log(np.exp(others - highest).sum(axis=1, keepdims=True))
    out = scores.copy()
    out[:, beyond] = together + np.log(np.maximum(odds[:, beyond], TINY) / rest)
    return out

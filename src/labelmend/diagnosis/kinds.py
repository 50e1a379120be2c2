"""Which kind of errors these are: random, confusing (at the borders of classes), patch (whole neighbourhoods).

Nothing is learned beforehand. Errors of each kind are planted into THIS data set, on top of the labels the run decided
for; those it would have found show what each kind looks like here, in three signals of a suspect (a sample whose given
label the run holds wrong):

    concentration   how many of its nearest samples are suspects with the same given and decided label
    rank            where the given label comes among what the graphs say without it, the decided class left out
    margin          whether the graphs are less sure of the decided class here than of half of the samples

The suspects' own histogram over the 18 cells of these signals is then explained as a mixture of the three, by maximum
likelihood. A kind that is hard to find (`seen`) counts for more than the suspects it left.

Knows arrays; does not know true labels, nor who reads the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelmend.diagnosis import noise
from labelmend.diagnosis.planting import near_borders
from labelmend.diagnosis.run_outputs import Codes, Floats, RunOutputs

KINDS = ("random", "confusing", "patch")
FEWEST = 20  # suspects below which their kind cannot be told
PLANTINGS = 5  # of each kind, to smooth the shapes
CONCENTRATED = (0.05, 0.25)  # shares of the neighbours: none, some, many
N_CELLS = 18
LEAST_SEEN = 0.1  # a kind of which less is found is taken for one of which that much is: shares would explode
EM_PASSES = 200


@dataclass(frozen=True)
class KindShares:
    """In the order of KINDS."""

    shares: tuple[float, ...]  # of all errors, sum one
    seen: tuple[float, ...]  # share of planted errors of that kind that the run would have found
    hidden: float  # errors per suspect, those not found included: 1.2 says that every sixth error is no suspect


def suspects(outputs: RunOutputs) -> Codes:
    """Labelled samples whose given label the run holds wrong."""
    return np.flatnonzero((outputs.given >= 0) & (outputs.given != outputs.decided) & ~outputs.fixed)


def noise_kinds(outputs: RunOutputs, rng: np.random.Generator) -> KindShares | None:
    """None where there are too few suspects to tell."""
    rows = suspects(outputs)
    if len(rows) < FEWEST or outputs.n_classes < 2:
        return None
    unsure = unsure_rows(outputs)
    histogram = np.bincount(_cells(outputs, unsure, rows, outputs.given), minlength=N_CELLS)
    shapes, seen = np.ones((len(KINDS), N_CELLS)) / 2, np.zeros(len(KINDS))
    for kind, plant in enumerate(_planters(outputs, len(rows), rng)):
        for _ in range(PLANTINGS):
            labels = plant()
            planted = np.flatnonzero(labels != outputs.decided)
            visible = planted[would_find(outputs, planted, labels[planted])]
            seen[kind] += len(visible) / max(len(planted), 1) / PLANTINGS
            labels[np.setdiff1d(planted, visible)] = outputs.decided[np.setdiff1d(planted, visible)]
            shapes[kind] += np.bincount(_cells(outputs, unsure, visible, labels), minlength=N_CELLS)
    weights = mixture_weights(histogram, shapes / shapes.sum(axis=1, keepdims=True))
    errors = weights / np.maximum(seen, LEAST_SEEN)
    shares = errors / errors.sum()
    return KindShares(tuple(shares.tolist()), tuple(seen.tolist()), float(errors.sum()))


def mixture_weights(histogram: NDArray[np.integer], shapes: Floats) -> Floats:
    """Maximum likelihood weights of the rows of `shapes`, distributions over the cells, by EM."""
    weights = np.full(len(shapes), 1 / len(shapes))
    for _ in range(EM_PASSES):
        joint = weights[:, None] * shapes
        weights = (joint / joint.sum(axis=0) * histogram).sum(axis=1) / histogram.sum()
    return np.asarray(weights)


def would_find(outputs: RunOutputs, rows: Codes, labels: Codes) -> NDArray[np.bool_]:
    """Whether the run would hold these labels wrong if they were the given ones of these samples."""
    posterior = outputs.predicted[rows] * outputs.transition.T[labels]
    return np.asarray(posterior.argmax(axis=1) != labels)


def unsure_rows(outputs: RunOutputs) -> NDArray[np.bool_]:
    """(n,) below the median margin of the graphs."""
    margin = noise.nearest_rival(outputs.decided, outputs.graphs)[1]
    return np.asarray(margin < np.median(margin[(outputs.given >= 0) & ~outputs.fixed]))


def _planters(outputs: RunOutputs, count: int, rng: np.random.Generator) -> tuple[Callable[[], Codes], ...]:
    """In the order of KINDS: the decided labels with errors; the net, not the graphs, says which classes are near."""
    labels, n_classes, rate = outputs.decided, outputs.n_classes, count / len(outputs.decided)
    free = (outputs.given >= 0) & ~outputs.fixed
    rival, margin = noise.nearest_rival(labels, outputs.net)
    near = near_borders(margin, free, count)
    return (
        lambda: noise.random(labels, rate, n_classes, rng, free),
        lambda: noise.replaced(labels, rng.choice(near, size=count, replace=False), rival),
        lambda: noise.graph_patch(labels, count, rival, outputs.neighbors, rng, free),
    )


def _cells(outputs: RunOutputs, unsure: NDArray[np.bool_], rows: Codes, labels: Codes) -> Codes:
    """The cell of each sample of `rows`, were `labels` the given ones."""
    pair = np.where(labels == outputs.decided, -1, labels * outputs.n_classes + outputs.decided)
    pair[labels < 0] = -1
    concentration = (pair[outputs.neighbors[rows]] == pair[rows, None]).mean(axis=1)
    shares, at = outputs.graphs[rows].copy(), np.arange(len(rows))
    shares[at, outputs.decided[rows]] = -1.0
    rank = (shares > shares[at, labels[rows]][:, None]).sum(axis=1)
    place = np.digitize(concentration, CONCENTRATED) * 3 + np.minimum(rank, 2)
    return np.asarray(place * 2 + unsure[rows])

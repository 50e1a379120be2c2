"""Which kind of errors these are: random, confusing (at the borders of classes), patch (whole neighbourhoods).

Nothing is learned beforehand. Errors of each kind are planted into THIS data set, on top of the labels the run decided
for; those it would have found show what each kind looks like here, in three signals of a suspect (a sample whose given
label the run holds wrong):

    concentration   how many of its nearest samples are suspects with the same given and decided label
    rank            where the given label comes among what the graphs say without it, the decided class left out
    margin          whether the graphs are less sure of the decided class here than of half of the samples

The suspects' own histogram over the 18 cells of these signals is then explained as a mixture of the three, by maximum
likelihood. A kind that is hard to find (`seen`) counts for more than the suspects it left.

Knows arrays; does not know true labels, and whom it tells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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


@dataclass(frozen=True)
class _Ground:
    """The data set as errors are planted into it."""

    outputs: RunOutputs
    free: Codes  # samples that may carry a planted error
    second: Codes  # (n,) the class the net holds second
    by_margin: Codes  # `free`, those the net is least sure of first
    unsure: NDArray[np.bool_]  # (n,) below the median margin of the graphs


def suspects(outputs: RunOutputs) -> Codes:
    """Labelled samples whose given label the run holds wrong."""
    return np.flatnonzero((outputs.given >= 0) & (outputs.given != outputs.decided) & ~outputs.fixed)


def noise_kinds(outputs: RunOutputs, rng: np.random.Generator) -> KindShares | None:
    """None where there are too few suspects to tell."""
    found = suspects(outputs)
    if len(found) < FEWEST or outputs.n_classes < 2:
        return None
    ground = _ground(outputs)
    histogram = np.bincount(_cells(ground, found, outputs.given), minlength=N_CELLS)
    shapes, seen = np.ones((len(KINDS), N_CELLS)) / 2, np.zeros(len(KINDS))
    for kind, plant in enumerate((_plant_random, _plant_confusing, _plant_patch)):
        for _ in range(PLANTINGS):
            labels = plant(ground, len(found), rng)
            planted = np.flatnonzero(labels != outputs.decided)
            visible = planted[would_find(outputs, planted, labels[planted])]
            seen[kind] += len(visible) / max(len(planted), 1) / PLANTINGS
            labels[np.setdiff1d(planted, visible)] = outputs.decided[np.setdiff1d(planted, visible)]
            shapes[kind] += np.bincount(_cells(ground, visible, labels), minlength=N_CELLS)
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


def _ground(outputs: RunOutputs) -> _Ground:
    n = np.arange(len(outputs.given))
    others = outputs.net()
    own = others[n, outputs.decided].copy()
    others[n, outputs.decided] = -1.0
    free = np.flatnonzero((outputs.given >= 0) & ~outputs.fixed)
    margin = own - others.max(axis=1)
    rivals = outputs.graphs.copy()
    rivals[n, outputs.decided] = -1.0
    graph_margin = outputs.graphs[n, outputs.decided] - rivals.max(axis=1)
    by_margin = free[np.argsort(margin[free], kind="stable")]
    return _Ground(outputs, free, others.argmax(axis=1), by_margin, graph_margin < np.median(graph_margin[free]))


def _cells(ground: _Ground, rows: Codes, labels: Codes) -> Codes:
    """The cell of each sample of `rows`, were `labels` the given ones."""
    outputs = ground.outputs
    pair = np.where(labels == outputs.decided, -1, labels * outputs.n_classes + outputs.decided)
    pair[labels < 0] = -1
    concentration = (pair[outputs.neighbors[rows]] == pair[rows, None]).mean(axis=1)
    shares, at = outputs.graphs[rows].copy(), np.arange(len(rows))
    shares[at, outputs.decided[rows]] = -1.0
    rank = (shares > shares[at, labels[rows]][:, None]).sum(axis=1)
    place = np.digitize(concentration, CONCENTRATED) * 3 + np.minimum(rank, 2)
    return np.asarray(place * 2 + ground.unsure[rows])


def _plant_random(ground: _Ground, count: int, rng: np.random.Generator) -> Codes:
    """Any sample, any other class."""
    outputs = ground.outputs
    labels = outputs.decided.copy()
    chosen = rng.choice(ground.free, size=count, replace=False)
    labels[chosen] = (labels[chosen] + rng.integers(1, outputs.n_classes, size=count)) % outputs.n_classes
    return labels


def _plant_confusing(ground: _Ground, count: int, rng: np.random.Generator) -> Codes:
    """Half of the samples the net is least sure of get the class it holds second; the graphs did not choose them."""
    labels = ground.outputs.decided.copy()
    chosen = rng.choice(ground.by_margin[: 2 * count], size=count, replace=False)
    labels[chosen] = ground.second[chosen]
    return labels


def _plant_patch(ground: _Ground, count: int, rng: np.random.Generator) -> Codes:
    """A sample and its nearest ones of the same class get the class the net holds second for it."""
    outputs = ground.outputs
    labels = outputs.decided.copy()
    untouched = np.zeros(len(labels), dtype=bool)
    untouched[ground.free] = True
    planted = 0
    for middle in rng.permutation(ground.free):
        if planted >= count:
            break
        members = np.append(outputs.neighbors[middle], middle)
        members = members[untouched[members] & (outputs.decided[members] == outputs.decided[middle])]
        labels[members] = ground.second[middle]
        untouched[members] = False
        planted += len(members)
    return labels

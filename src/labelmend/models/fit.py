"""The classifier, fitted after the decision to the decided labels.

Ridge regression, kernel regression, extremely randomised trees and, on many rows, a net, weighed by how well together
they name the decided labels of rows that they have not seen: exact leave-one-out, out of bag, held out. The weights
are those of the pool, at almost no noise, so the probabilities are calibrated to the decided labels. Which parts earned
their place, and which did not (boosting, labels weighted by their confidence): docs/experiments.md.

Knows columns and labels by number, -1 where there is none; does not know how labels were decided, or files.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from labelmend.decision.ensemble_evidence import held_out_probabilities
from labelmend.decision.pool import fit_weights
from labelmend.ensemble.nets import MLP
from labelmend.evidence.members import SMOOTHING, Ground, Sizes, class_shares, grow_trees, tree_scores
from labelmend.evidence.preparation import Preparation, deal_into_folds, groups_of_copies
from labelmend.evidence.regression import CENTRED_SCALE, Kernel, Linear, Regression, centred, fit_kernel, fit_regression
from labelmend.models.pooled import LEAST, Forest, NormalScores, Pooled, Tensors, Tree
from labelmend.samples import VectorSamples

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

SIZES = Sizes(trees=100, leaf_entries=2e6)  # of some 10 MB in the file
ROWS = 20_000  # that regressions and trees learn from at most; so many more take no longer than a net
HIDDEN = 256
NET_TRAINING: dict[str, Any] = {"n_passes": 8, "batch_size": 256, "lr": 0.1, "momentum": 0.9, "weight_decay": 5e-4}
NET_ROWS, MOST_NET_ROWS = 10_000, 200_000  # from which on there is a net, and that it learns from at most
NET_FOLDS = 5  # one of which the net does not see: it is weighed by that one


def fit_classifier(
    columns: NDArray[Any],
    preparation: Preparation,
    decided: Codes,
    n_classes: int,
    seed: int,
    projection: NDArray[np.float32] | None = None,
) -> Pooled:
    """`columns`: dense, as `preparation` was learned on them; `projection` led to them from the raw rows."""
    order, known = _learners(decided, seed), np.bincount(decided[decided >= 0], minlength=n_classes) > 0
    ground = _ground(columns, preparation, decided, order[:ROWS], n_classes, seed)
    taught, inputs = ground.taught, ground.inputs
    ridge = fit_regression(inputs, taught, [Linear.of(inputs)])
    kernel = fit_kernel(inputs, taught, seed)
    forest = grow_trees(ground, SIZES)
    scores = {"ridge": centred(ridge.without_own(taught)), "kernel": centred(kernel.without_own(taught))}
    scores["trees"], labels, net = tree_scores(ground, SIZES, forest), ground.given, None
    if len(order) >= NET_ROWS:
        rows = order[:MOST_NET_ROWS]
        net, scores["net"], labels = _fit_net(columns[rows], preparation(columns[rows]), decided[rows], ground)
    weights, bias = fit_weights({name: score.astype(np.float32) for name, score in scores.items()}, labels, known)
    tensors = _regressions(ridge, kernel, weights, bias) | _named("prepare", _prepared(preparation))
    if weights["trees"] > 0:
        tensors |= _trees(forest, weights["trees"], ground.shares)
    if net is not None and weights["net"] > 0:
        tensors |= _net(net, weights["net"])
    if projection is not None:
        tensors["projection"] = _tensor(projection)
    tensors["width"] = torch.tensor(columns.shape[1] if projection is None else len(projection))
    return Pooled(tensors).eval()


def _learners(decided: Codes, seed: int) -> Codes:
    """Rows with a label, in random order."""
    return np.random.default_rng(seed).permutation(np.flatnonzero(decided >= 0))


def _ground(
    columns: NDArray[Any], preparation: Preparation, decided: Codes, rows: Codes, n_classes: int, seed: int
) -> Ground:
    some, labels = columns[rows], decided[rows]
    nobody = np.empty((len(rows), 0), dtype=np.int64)  # no neighbours are asked
    shares = class_shares(labels, n_classes)
    return Ground(some, preparation(some), labels, n_classes, groups_of_copies(some), nobody, seed, shares)


def _fit_net(columns: NDArray[Any], inputs: Floats, decided: Codes, ground: Ground) -> tuple[MLP, Floats, Codes]:
    """A net, its scores of the rows of `ground`, which come first, and the labels of those it has not seen; else -1."""
    n, n_classes = len(ground.given), ground.n_classes
    fold_of = deal_into_folds(groups_of_copies(columns), NET_FOLDS, ground.seed)
    net = _fresh_net(inputs.shape[1], n_classes, ground.seed)
    found = held_out_probabilities(
        [net],  # for fold 0; it learns all others
        VectorSamples(torch.from_numpy(inputs.astype(np.float32))),
        torch.from_numpy(decided),
        torch.from_numpy(fold_of),
        n_classes,
        generator=torch.Generator().manual_seed(ground.seed),
        **NET_TRAINING,
    )
    scores = np.log(np.maximum(found[:n].numpy().astype(np.float64), LEAST))
    return net, scores, np.where(fold_of[:n] == 0, ground.given, -1)


def _fresh_net(n_inputs: int, n_classes: int, seed: int) -> MLP:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return MLP(n_inputs, HIDDEN, n_classes)


def _regressions(ridge: Regression, kernel: Regression, weights: dict[str, float], bias: Floats) -> Tensors:
    """Their numbers, scaled by what they count; the constant of both is part of the one bias."""
    linear, gaussian = (
        weights[name] * CENTRED_SCALE * (found.weights - found.weights.mean(axis=1, keepdims=True))
        for name, found in (("ridge", ridge), ("kernel", kernel))
    )
    basis = kernel.basis
    assert isinstance(basis, Kernel)
    total = bias + ridge.basis.level * linear[-1] + basis.level * gaussian[-1]
    tensors = {"ridge.weight": _tensor(linear[:-1]), "ridge.bias": _tensor(total)}
    if weights["kernel"] > 0:
        tensors["kernel.landmarks"] = _tensor(basis.landmarks)
        tensors["kernel.width"] = torch.tensor(basis.width, dtype=torch.float32)
        tensors["kernel.weight"] = _tensor(basis.turn @ gaussian[:-1])
    return tensors


def _trees(forest: Any, weight: float, shares: Floats) -> Tensors:
    """log((50 p + shares) / 51), p the mean of the trees, as log(sum of leaves + c shares): the leaves are scaled."""
    trees, rows, n_classes = forest.estimators_, SMOOTHING["trees"], len(shares)
    scale = rows / (rows + 1) / len(trees)
    tables = _named("forest", Forest.of([_tree(each.tree_, forest.classes_, n_classes, scale) for each in trees]))
    prior = _tensor(shares / (rows + 1))
    return {**tables, "shares.shares": prior, "shares.weight": torch.tensor(weight, dtype=torch.float32)}


def _net(net: MLP, weight: float) -> Tensors:
    tensors = {"into": net.hidden.weight.T, "threshold": net.hidden.bias, "out": net.head.weight.T}
    tensors |= {"bias": net.head.bias, "weight": torch.tensor(weight)}
    return {f"net.{name}": value.detach().clone().contiguous() for name, value in tensors.items()}


def _tree(grown: Any, classes: Codes, n_classes: int, scale: float) -> Tree:
    values = np.zeros((grown.node_count, n_classes))
    counts = grown.value[:, 0, :]
    values[:, classes] = scale * counts / counts.sum(axis=1, keepdims=True)
    return Tree(grown.feature, grown.threshold, grown.children_left, grown.children_right, values)


def _prepared(preparation: Preparation) -> NormalScores:
    known = preparation
    return NormalScores.of(known.columns, known.starts, known.values, known.scores, known.components)


def _named(name: str, module: torch.nn.Module) -> Tensors:
    return {f"{name}.{key}": value for key, value in module.state_dict().items()}


def _tensor(value: NDArray[Any]) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(value, dtype=np.float32))

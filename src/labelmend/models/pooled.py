"""The classifier that is handed back as one torch module: ridge and kernel regression, trees and a net, weighed.

Trees are tensors: all rows go down all trees at once. A `Preparation` is a layer: rank-normal columns by straight lines
between knots, then principal components.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


@dataclass(frozen=True)
class Tree:
    """Node 0 is the root. A row goes left where its feature is at most the threshold."""

    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    left: NDArray[np.int64]  # -1: a leaf
    right: NDArray[np.int64]
    values: NDArray[np.float64]  # (nodes, C), those of leaves count


class Forest(nn.Module):
    """float32 (n, columns) -> (n, C) sums of the values of the leaves that each row comes to.

    The two children of a node are neighbours in the tables; a leaf is its own child and nothing is above its threshold.
    """

    feature: Tensor
    threshold: Tensor
    child: Tensor
    leaf: Tensor  # its row in `values`
    values: Tensor
    roots: Tensor

    def __init__(self, **tensors: Tensor) -> None:
        super().__init__()
        for name in ("feature", "threshold", "child", "leaf", "values", "roots"):
            self.register_buffer(name, tensors[name])
        self.steps = _depth(self.child.numpy(), self.roots.numpy())

    @classmethod
    def of(cls, trees: Sequence[Tree]) -> Forest:
        parts = [_tables(tree) for tree in trees]
        nodes = np.cumsum([0, *(len(part["child"]) for part in parts)])
        leaves = np.cumsum([0, *(len(part["values"]) for part in parts)])
        for place, part in enumerate(parts):
            part["child"] = part["child"] + nodes[place]
            part["leaf"] = part["leaf"] + leaves[place]
        kinds = {"threshold": np.float32, "values": np.float32}
        tables = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        tensors = {name: torch.from_numpy(table.astype(kinds.get(name, np.int32))) for name, table in tables.items()}
        return cls(**tensors, roots=torch.from_numpy(nodes[:-1].astype(np.int32)))

    def forward(self, rows: Tensor) -> Tensor:
        node = self.roots.long().expand(rows.shape[0], -1)
        for _ in range(self.steps):
            seen = rows.gather(1, at(self.feature, node).long())
            node = at(self.child, node).long() + (seen > at(self.threshold, node)).long()
        return at(self.values, at(self.leaf, node).long()).sum(dim=1)


def at(table: Tensor, place: Tensor) -> Tensor:
    """table[place]; in these words ONNX makes it a plain Gather."""
    return table.index_select(0, place.reshape(-1)).reshape(*place.shape, *table.shape[1:])


def _tables(tree: Tree) -> dict[str, NDArray[Any]]:
    inner = np.flatnonzero(tree.left >= 0)
    leaf = tree.left < 0
    place = np.zeros(len(tree.left), dtype=np.int64)
    place[tree.left[inner]] = 1 + 2 * np.arange(len(inner))
    place[tree.right[inner]] = 2 + 2 * np.arange(len(inner))
    order = np.argsort(place)
    child, rank = place.copy(), np.cumsum(leaf) - 1
    child[inner] = place[tree.left[inner]]
    return {
        "feature": np.where(leaf, 0, tree.feature)[order],
        "threshold": np.where(leaf, np.inf, _not_above(tree.threshold))[order],
        "child": child[order],
        "leaf": np.where(leaf, rank, 0)[order],
        "values": tree.values[leaf],
    }


def _not_above(thresholds: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest float32 that is not above: float32 rows go the same way at both."""
    rounded = thresholds.astype(np.float32)
    return np.where(rounded > thresholds, np.nextafter(rounded, np.float32(-np.inf)), rounded)


def _depth(child: NDArray[np.int32], roots: NDArray[np.int32]) -> int:
    depth, level = 0, roots.astype(np.int64)
    while len(level := level[child[level] != level]):
        level = np.concatenate([child[level], child[level] + 1]).astype(np.int64)
        depth += 1
    return depth


LARGEST, STEEPEST = float(np.finfo(np.float32).max), 1e37


class NormalScores(nn.Module):
    """float32 (n, raw columns) -> float32 (n, outputs)."""

    columns: Tensor  # of the raw rows
    knots: Tensor  # (columns * width,) ascending within a column, then infinity
    scores: Tensor  # the score of each
    slopes: Tensor  # from a knot to the next, 0 from the last
    starts: Tensor  # (columns,) where each begins
    ends: Tensor  # (2, columns) first and last knot
    components: Tensor | None  # (columns, outputs)

    def __init__(self, **tensors: Tensor | None) -> None:
        super().__init__()
        for name in ("columns", "knots", "scores", "slopes", "starts", "ends", "components"):
            self.register_buffer(name, tensors.get(name))
        self.width = len(self.knots) // len(self.columns)  # a power of two

    @classmethod
    def of(
        cls,
        columns: NDArray[np.int64],
        starts: NDArray[np.int64],
        values: NDArray[np.float64],
        scores: NDArray[np.float64],
        components: NDArray[np.float64] | None,
    ) -> NormalScores:
        """The fields of a `Preparation`: knots of column j are values[starts[j] : starts[j + 1]]."""
        width = 1 << int(np.diff(starts).max() - 1).bit_length()
        knots, scored, slopes = (np.full((len(columns), width), fill) for fill in (np.inf, 0.0, 0.0))
        for place in range(len(columns)):
            part = slice(starts[place], starts[place + 1])
            value, score = _distinct(values[part], scores[part])
            knots[place, : len(value)], scored[place, : len(value)] = value, score
            slopes[place, : len(value) - 1] = np.minimum(np.diff(score) / np.diff(value / 2), STEEPEST)
        last = np.where(np.isfinite(knots), knots, -np.inf).max(axis=1)
        floats = {"knots": knots.ravel(), "scores": scored.ravel(), "slopes": slopes.ravel()}
        floats |= {"ends": np.stack([knots[:, 0], last])} | ({} if components is None else {"components": components})
        whole = {"columns": columns, "starts": np.arange(len(columns)) * width}
        return cls(
            **{name: _tensor(value, np.float32) for name, value in floats.items()},
            **{name: _tensor(value, np.int64) for name, value in whole.items()},
        )

    def forward(self, rows: Tensor) -> Tensor:
        rows = rows.index_select(1, self.columns)
        rows = torch.minimum(torch.maximum(rows, self.ends[0]), self.ends[1])
        place = self.starts.expand(rows.shape)
        step = self.width // 2
        while step:
            further = place + step
            place = torch.where(at(self.knots, further) <= rows, further, place)
            step //= 2
        # Halves: the distance between two numbers may be beyond float32.
        out = at(self.scores, place) + (rows / 2 - at(self.knots, place) / 2) * at(self.slopes, place)
        return out if self.components is None else out @ self.components


def _distinct(values: NDArray[Any], scores: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Knots that are still apart in float32."""
    single = values.clip(-LARGEST, LARGEST).astype(np.float32)
    _, first = np.unique(single, return_index=True)
    return single[first].astype(np.float64), scores[first]


def _tensor(value: NDArray[Any], kind: type[np.generic]) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(value, dtype=kind))


Tensors = dict[str, Tensor]

LEAST = 1e-6  # probability by a net; also where it is weighed


class Part(nn.Module):
    """A module that is its buffers."""

    def __init__(self, **tensors: Tensor) -> None:
        super().__init__()
        for name in type(self).__annotations__:
            self.register_buffer(name, tensors[name])


class Ridge(Part):
    weight: Tensor  # (inputs, C)
    bias: Tensor  # (C,) that of the whole

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs @ self.weight + self.bias


class GaussianKernel(Part):
    """sum_l exp(-|x - landmark_l|^2 / width) weight_l"""

    landmarks: Tensor
    width: Tensor
    weight: Tensor  # (landmarks, C)

    def forward(self, inputs: Tensor) -> Tensor:
        lengths = (inputs**2).sum(dim=1, keepdim=True) + (self.landmarks**2).sum(dim=1)
        distances = (lengths - 2 * inputs @ self.landmarks.T).clamp(min=0)
        return torch.exp(-distances / self.width) @ self.weight


class LogShares(Part):
    """weight * log of the trees' mean answer, with the class shares mixed in."""

    shares: Tensor  # (C,)
    weight: Tensor

    def forward(self, answers: Tensor) -> Tensor:
        return self.weight * torch.log(answers + self.shares)


class HiddenLayer(Part):
    """weight * log-probabilities of a net with one hidden layer."""

    into: Tensor  # (inputs, hidden)
    threshold: Tensor
    out: Tensor  # (hidden, C)
    bias: Tensor
    weight: Tensor

    def forward(self, inputs: Tensor) -> Tensor:
        logits = torch.relu(inputs @ self.into + self.threshold) @ self.out + self.bias
        return self.weight * logits.softmax(dim=1).clamp(min=LEAST).log()


class Pooled(nn.Module):
    """float32 (n, raw columns) -> logits. Parts that count nothing are absent."""

    projection: Tensor | None  # of wide sparse rows, before anything else
    width: Tensor  # number of raw columns

    def __init__(self, tensors: Tensors) -> None:
        super().__init__()
        self.prepare = NormalScores(**part(tensors, "prepare"))
        self.ridge = Ridge(**part(tensors, "ridge"))
        self.kernel = GaussianKernel(**found) if (found := part(tensors, "kernel")) else None
        self.forest = Forest(**found) if (found := part(tensors, "forest")) else None
        self.shares = LogShares(**found) if (found := part(tensors, "shares")) else None
        self.net = HiddenLayer(**found) if (found := part(tensors, "net")) else None
        self.register_buffer("projection", tensors.get("projection"))
        self.register_buffer("width", tensors["width"])
        self.n_columns = int(self.width)

    def forward(self, rows: Tensor) -> Tensor:
        if self.projection is not None:
            rows = rows @ self.projection
        inputs = self.prepare(rows)
        logits: Tensor = self.ridge(inputs)
        if self.kernel is not None:
            logits = logits + self.kernel(inputs)
        if self.forest is not None and self.shares is not None:
            logits = logits + self.shares(self.forest(rows))
        if self.net is not None:
            logits = logits + self.net(inputs)
        return logits


def part(tensors: Tensors, name: str) -> Tensors:
    return {key.removeprefix(f"{name}."): value for key, value in tensors.items() if key.startswith(f"{name}.")}

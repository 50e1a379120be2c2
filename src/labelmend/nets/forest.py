"""Decision trees as tensors: all rows go down all trees at once, a fixed number of steps.

Knows tensors and the arrays of a fitted tree; does not know how trees are grown.
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

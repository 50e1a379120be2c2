"""A `Preparation` as a layer: rank-normal columns by straight lines between knots, then principal components.

The knot before a value is found by halving, a fixed number of steps for all columns at once: what ONNX has words for.

Knows tensors; does not know how the knots were learned.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from labelmend.nets.forest import at

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

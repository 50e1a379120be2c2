"""What training sees of a data set: its length and its batches. Labels live elsewhere.

Knows tensors; does not know files, labels or nets. Vectors and images differ here and nowhere else.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor


class Samples(Protocol):
    @property
    def device(self) -> torch.device: ...

    def __len__(self) -> int: ...

    def batch(self, indices: Tensor, augment: bool, generator: torch.Generator | None) -> Tensor:
        """The samples at `indices`, ready for a net; random changes only where `augment`."""
        ...


class VectorSamples:
    """Rows of a matrix, already scaled. Nothing to augment."""

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows

    @property
    def device(self) -> torch.device:
        return self.rows.device

    def __len__(self) -> int:
        return len(self.rows)

    def batch(self, indices: Tensor, augment: bool, generator: torch.Generator | None) -> Tensor:
        return self.rows[indices]

"""The classifier that is handed back: ridge regression, kernel regression, trees and a net, weighed, in one module.

    logits = ridge(z) + kernel(z) + trees(rows) + net(z) + bias        z: prepared rows

What a part counts is inside its own numbers. Built from its tensors alone, so that a file of tensors is all there is
to save.

Knows tensors; does not know how they were fitted.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from labelmend.nets.forest import Forest
from labelmend.nets.normal_scores import NormalScores

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

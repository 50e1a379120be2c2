"""A small net for feature vectors: one hidden layer, whose output is the embedding.

A net of this library maps a batch to (features, logits); anything that does can take its place.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class MLP(nn.Module):
    def __init__(self, n_inputs: int, n_hidden: int, n_classes: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(n_inputs, n_hidden)
        self.head = nn.Linear(n_hidden, n_classes)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = torch.relu(self.hidden(x))
        return features, self.head(features)

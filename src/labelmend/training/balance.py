"""Which samples a pass takes where every class is to be seen equally often.

Knows indices and labels; does not know batches or nets. A pass keeps its length, so that the steps a GPU has recorded
fit every pass; large classes are seen in part, small ones more than once.
"""

from __future__ import annotations

import torch
from torch import Tensor

from labelmend.training.fit import random_order


def balanced(indices: Tensor, labels: Tensor, generator: torch.Generator) -> Tensor:
    """As many places as `indices` has, every class among them equally often, give or take one.

    `labels` are those of the samples at `indices`, none missing. Within a class every sample is drawn equally often,
    give or take one, and which ones are drawn more often is chance.
    """
    if len(indices) == 0:
        return indices
    order = random_order(len(indices), generator)
    order = order[labels[order].argsort(stable=True)]  # class by class, each in random order
    sizes = torch.bincount(labels)
    present = torch.nonzero(sizes).squeeze(1)
    present = present[random_order(len(present), generator)]  # which classes get the one more
    begins = sizes.cumsum(0) - sizes
    place = torch.arange(len(indices), device=indices.device)
    of_class, turn = present[place % len(present)], place // len(present)
    drawn: Tensor = indices[order[begins[of_class] + turn % sizes[of_class]]]
    return drawn

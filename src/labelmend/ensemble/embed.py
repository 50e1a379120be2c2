"""Run a net over samples without training it: features for the graphs, probabilities for the decision.

Knows a net and samples; does not know labels.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from labelmend.samples import Samples, at_once

EMBED_BATCH = 4096


@torch.no_grad()
def embed(
    net: nn.Module, samples: Samples, batch_size: int = EMBED_BATCH, indices: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Features and logits of every sample, or of those at `indices`, in eval mode and without augmentation."""
    net.eval()
    wanted = torch.arange(len(samples), device=samples.device) if indices is None else indices
    parts = [net(samples.batch(some, "none", generator=None)) for some in wanted.split(at_once(samples, batch_size))]
    features, logits = (torch.cat(pieces) for pieces in zip(*parts, strict=True))
    return features, logits

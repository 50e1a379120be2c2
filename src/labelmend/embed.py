"""Run a net over samples without training it: features for the graphs, probabilities for the decision.

Knows a net and samples; does not know labels.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from labelmend.data.samples import Samples, at_once

EMBED_BATCH = 4096


@torch.no_grad()
def embed(net: nn.Module, samples: Samples, batch_size: int = EMBED_BATCH) -> tuple[Tensor, Tensor]:
    """Features and logits of every sample, in eval mode and without augmentation."""
    net.eval()
    everyone = torch.arange(len(samples), device=samples.device)
    parts = [
        net(samples.batch(indices, "none", generator=None)) for indices in everyone.split(at_once(samples, batch_size))
    ]
    features, logits = (torch.cat(pieces) for pieces in zip(*parts, strict=True))
    return features, logits

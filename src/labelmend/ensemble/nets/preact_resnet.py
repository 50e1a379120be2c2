"""A residual net for small pictures, normalisation before the weights (PreActResNet-18 of the CIFAR recipes).

Knows float batches (n, C, H, W); does not know how pictures are read, changed or labelled.
On a GPU it computes in bfloat16 with channels last; features and logits come out as float32.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from labelmend.ensemble.nets.norm_relu import NormReLU

BLOCKS = (2, 2, 2, 2)


class PreActBlock(nn.Module):
    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.norm1 = NormReLU(n_in)
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, padding=1, bias=False)
        self.norm2 = NormReLU(n_out)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, padding=1, bias=False)
        self.shortcut = nn.Conv2d(n_in, n_out, 1, stride, bias=False) if stride != 1 or n_in != n_out else None

    def forward(self, x: Tensor, beside: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Takes and gives a batch as two whose sum it is: the next normalisation adds them while it reads them."""
        x, active = (x, self.norm1(x)) if beside is None else self.norm1.of_sum(x, beside)
        kept = x if self.shortcut is None else self.shortcut(active)
        return self.conv2(self.norm2.of_convolution(self.conv1, active)), kept


class PreActResNet(nn.Module):
    """`width` channels in the first stage, eight times as many features at the end; 64 is PreActResNet-18."""

    def __init__(self, n_channels: int, n_classes: int, width: int = 64) -> None:
        super().__init__()
        self.stem = nn.Conv2d(n_channels, width, 3, padding=1, bias=False)
        stages: list[nn.Module] = []
        n_in = width
        for stage, n_blocks in enumerate(BLOCKS):
            for block in range(n_blocks):
                n_out = width * 2**stage
                stages.append(PreActBlock(n_in, n_out, stride=2 if stage and not block else 1))
                n_in = n_out
        self.blocks = nn.Sequential(*stages)
        self.norm = NormReLU(n_in)
        self.head = nn.Linear(n_in, n_classes)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=x.is_cuda):
            first, *others = self.blocks
            inner, kept = first(self.stem(x))
            for block in others:
                inner, kept = block(inner, kept)
            features = self.norm.of_sum(inner, kept)[1].mean(dim=(2, 3))
            logits = self.head(features)
        return features.float(), logits.float()

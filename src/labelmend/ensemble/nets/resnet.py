"""ResNet-50, the net of the paper for photographs.

Knows float batches (n, 3, H, W); does not know where its weights come from. Layers are named as in torchvision, so that
weights saved there fit. Computes like `preact_resnet.py`: bfloat16 with channels last on a GPU.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from labelmend.ensemble.nets.norm_relu import NormReLU

BLOCKS = (3, 4, 6, 3)
EXPANSION = 4


class Bottleneck(nn.Module):
    def __init__(self, n_in: int, n_inner: int, stride: int) -> None:
        super().__init__()
        n_out = EXPANSION * n_inner
        self.conv1 = nn.Conv2d(n_in, n_inner, 1, bias=False)
        self.bn1 = NormReLU(n_inner)
        self.conv2 = nn.Conv2d(n_inner, n_inner, 3, stride, padding=1, bias=False)
        self.bn2 = NormReLU(n_inner)
        self.conv3 = nn.Conv2d(n_inner, n_out, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(n_out)
        self.downsample: nn.Module | None = None
        if stride != 1 or n_in != n_out:
            self.downsample = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))

    def forward(self, x: Tensor) -> Tensor:
        inner = self.bn2.of_convolution(self.conv2, self.bn1.of_convolution(self.conv1, x))
        inner = self.bn3(self.conv3(inner))
        return torch.relu(inner + (x if self.downsample is None else self.downsample(x)))


class ResNet50(nn.Module):
    """`width` channels in the first stage; 64 is ResNet-50 with 2,048 features."""

    def __init__(self, n_classes: int, width: int = 64) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
        self.bn1 = NormReLU(width)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        n_in = width
        for stage, n_blocks in enumerate(BLOCKS):
            blocks: list[nn.Module] = []
            for block in range(n_blocks):
                blocks.append(Bottleneck(n_in, width * 2**stage, stride=2 if stage and not block else 1))
                n_in = EXPANSION * width * 2**stage
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(n_in, n_classes)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=x.is_cuda):
            x = self.maxpool(self.bn1.of_convolution(self.conv1, x))
            for stage in range(len(BLOCKS)):
                x = getattr(self, f"layer{stage + 1}")(x)
            features = x.mean(dim=(2, 3))
            logits = self.fc(features)
        return features.float(), logits.float()

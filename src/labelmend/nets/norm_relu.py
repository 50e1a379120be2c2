"""Batch normalisation followed by ReLU, as one layer.

Knows float batches (n, C, H, W); does not know nets. On a GPU with Triton both are computed by the kernels of
`fused_norm.py`, which read and write every activation as few times as they can: a third of the time of a residual net
is spent here, and it is all memory traffic. Elsewhere it is torch's own layers, to which the kernels are compared.
"""

from __future__ import annotations

import importlib.util

import torch
from torch import Tensor, nn
from torch.nn import functional as F

HAS_TRITON = importlib.util.find_spec("triton") is not None


class NormReLU(nn.BatchNorm2d):
    def forward(self, x: Tensor) -> Tensor:
        if HAS_TRITON and x.is_cuda and self.momentum is not None and (self.training or not torch.is_grad_enabled()):
            from labelmend.nets.fused_norm import norm_relu

            return norm_relu(
                x, self.weight, self.bias, self.running_mean, self.running_var, self.training, self.momentum, self.eps
            )
        return F.relu(super().forward(x))

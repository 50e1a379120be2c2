"""Batch normalisation followed by ReLU, as one layer.

Knows float batches (n, C, H, W) and what comes before it, a sum or a convolution; does not know nets. A third of the
time of a residual net is spent here, and it is all memory traffic. So on a GPU with Triton the kernels of
`fused_norm.py` read and write every activation as few times as they can; and where nothing is learned, normalisation
becomes part of the convolution before it. Elsewhere it is torch's own layers, to which all of it is compared.
"""

from __future__ import annotations

import importlib.util

import torch
from torch import Tensor, nn
from torch.nn import functional as F

HAS_TRITON = importlib.util.find_spec("triton") is not None


class NormReLU(nn.BatchNorm2d):
    def forward(self, x: Tensor) -> Tensor:
        if self._fused(x):
            from labelmend.ensemble.nets.fused_norm import norm_relu

            return norm_relu(self, x)
        return F.relu(super().forward(x))

    def of_sum(self, x: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
        """The sum of two batches, and what this layer makes of it."""
        if self._fused(x):
            from labelmend.ensemble.nets.fused_norm import add_norm_relu

            return add_norm_relu(self, x, other)
        total = x + other
        return total, self(total)

    def of_convolution(self, convolution: nn.Conv2d, x: Tensor) -> Tensor:
        """What this layer makes of a convolution without bias."""
        if self.training or torch.is_grad_enabled():
            plain: Tensor = self(convolution(x))
            return plain
        weight, bias = self.folded_into(convolution)
        stride, padding, dilation = convolution.stride, convolution.padding, convolution.dilation
        if x.is_cuda and not isinstance(padding, str):
            kinds = weight.to(x.dtype), bias.to(x.dtype)
            return torch.cudnn_convolution_relu(x, *kinds, stride, padding, dilation, convolution.groups)
        return F.relu(F.conv2d(x, weight, bias, stride, padding, dilation, convolution.groups))

    def folded_into(self, convolution: nn.Conv2d) -> tuple[Tensor, Tensor]:
        """Weight and bias of the convolution that normalises its own output by the running statistics."""
        scale, shift = self.running_scale()
        return convolution.weight * scale.view(-1, 1, 1, 1), shift

    def running_scale(self) -> tuple[Tensor, Tensor]:
        """Normalisation by the running statistics as x * scale + shift."""
        assert self.running_mean is not None
        assert self.running_var is not None
        scale = self.weight * torch.rsqrt(self.running_var + self.eps)
        return scale, self.bias - self.running_mean * scale

    def _fused(self, x: Tensor) -> bool:
        learns = self.training and self.momentum is not None
        return HAS_TRITON and x.is_cuda and (learns or not (self.training or torch.is_grad_enabled()))

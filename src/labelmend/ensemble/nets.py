"""The nets: a small one for feature vectors, PreActResNet for small pictures, ResNet-50 for photographs.

Each gives (features, logits). Batch normalisation and ReLU are one layer: a third of the time of a residual net is
spent there, all of it memory traffic, so on a GPU with Triton the kernels of `fused_norm.py` read and write every
activation as few times as they can: a round takes 2.94 s, 3.71 with plain torch, 3.07 with torch.compile (H200).

Nets lie between nets: weights of two are interpolated, equation (1), and an average follows a net slowly.
"""

from __future__ import annotations

import copy
import importlib.util

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labelmend.samples import Samples

HAS_TRITON = importlib.util.find_spec("triton") is not None


class NormReLU(nn.BatchNorm2d):
    def forward(self, x: Tensor) -> Tensor:
        if self._fused(x):
            from labelmend.ensemble.fused_norm import norm_relu

            return norm_relu(self, x)
        return F.relu(super().forward(x))

    def of_sum(self, x: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
        """The sum of two batches, and what this layer makes of it."""
        if self._fused(x):
            from labelmend.ensemble.fused_norm import add_norm_relu

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


class MLP(nn.Module):
    def __init__(self, n_inputs: int, n_hidden: int, n_classes: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(n_inputs, n_hidden)
        self.head = nn.Linear(n_hidden, n_classes)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = torch.relu(self.hidden(x))
        return features, self.head(features)


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


RESNET_BLOCKS = (3, 4, 6, 3)
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
        for stage, n_blocks in enumerate(RESNET_BLOCKS):
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
            for stage in range(len(RESNET_BLOCKS)):
                x = getattr(self, f"layer{stage + 1}")(x)
            features = x.mean(dim=(2, 3))
            logits = self.fc(features)
        return features.float(), logits.float()


class FollowingNet:
    """`net` is the average; `follow()` moves it a step towards the followed one."""

    def __init__(self, followed: nn.Module, decay: float) -> None:
        self.net = copy.deepcopy(followed).eval().requires_grad_(False)
        self.followed, self.share = followed, 1 - decay

    @torch.no_grad()
    def follow(self) -> None:
        # Asked for anew every time: a pair of nets that was copied or moved together goes on following.
        torch._foreach_lerp_(self._floats(self.net), self._floats(self.followed), self.share)

    @staticmethod
    def _floats(net: nn.Module) -> list[Tensor]:
        return [value for value in (*net.parameters(), *net.buffers()) if value.is_floating_point()]


REFRESH_BATCHES = 1  # training moves the statistics on; these are only where it begins
REFRESH_BATCH = 2048  # few and large: a GPU waits for the start of every one


@torch.no_grad()
def interpolate(target: nn.Module, first: nn.Module, second: nn.Module, share: float) -> None:
    """target = (1 - share) * first + share * second, for every float parameter and buffer."""
    others = zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    for mine, (a, b) in zip(target.state_dict().values(), others, strict=True):
        mine.copy_(torch.lerp(a, b, share) if a.is_floating_point() else a)


@torch.no_grad()
def refresh_batch_norm(net: nn.Module, samples: Samples, generator: torch.Generator) -> None:
    """Estimate running statistics anew; does nothing for a net that keeps none."""
    layers = [m for m in net.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm) and m.track_running_stats]
    if not layers:
        return
    momenta = [layer.momentum for layer in layers]
    for layer in layers:
        layer.reset_running_stats()
    net.train()
    order = torch.randperm(len(samples), generator=generator, device=samples.device)[: REFRESH_BATCHES * REFRESH_BATCH]
    # Nearly equal batches: a last batch of one sample has no variance.
    for number, indices in enumerate(order.tensor_split(-(-len(order) // REFRESH_BATCH)), start=1):
        for layer in layers:
            layer.momentum = 1 / number  # the mean over the batches so far
        net(samples.batch(indices, "weak", generator))
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum

"""Nets between nets: weights of two interpolated, equation (1), and a net that follows another one slowly."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from labelmend.samples import Samples


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

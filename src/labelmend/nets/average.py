"""A net that follows another one slowly: the exponential average of its weights, steadier than any single step.

Ours, not the paper's. Running statistics of batch normalisation are averaged like weights.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn


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

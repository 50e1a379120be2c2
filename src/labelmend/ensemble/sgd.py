"""Stochastic gradient descent with momentum, and how its learning rate falls.

Knows weights and their gradients; does not know nets, losses or data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn


class Optimizer(Protocol):
    """What is used of an optimiser: those of torch have it."""

    param_groups: list[dict[str, Any]]  # the first has "params" and "lr"
    state: Any  # weight -> {"momentum_buffer": its momentum}

    def zero_grad(self) -> None: ...

    def step(self) -> Any: ...


class MomentumSGD:
    """`torch.optim.SGD` number for number, for a CPU.

    Torch's own loads its compiler when the first one is made: 1.5 s, as long as a small data set takes altogether.
    """

    def __init__(self, weights: Sequence[nn.Parameter], lr: float, momentum: float, weight_decay: float) -> None:
        self.param_groups: list[dict[str, Any]] = [{"params": list(weights), "lr": lr}]
        self.state: dict[nn.Parameter, dict[str, Tensor]] = {weight: {} for weight in weights}
        self.momentum, self.weight_decay = momentum, weight_decay

    def zero_grad(self) -> None:
        for weight in self.state:
            weight.grad = None

    @torch.no_grad()
    def step(self) -> None:
        lr = self.param_groups[0]["lr"]
        for weight, state in self.state.items():
            if weight.grad is None:
                continue
            slope = weight.grad.add(weight, alpha=self.weight_decay)
            if "momentum_buffer" in state:
                state["momentum_buffer"].mul_(self.momentum).add_(slope)
            else:
                state["momentum_buffer"] = slope
            weight.add_(state["momentum_buffer"], alpha=-lr)


def sgd(parameters: Iterable[nn.Parameter], lr: float, momentum: float, weight_decay: float) -> Optimizer:
    weights = list(parameters)
    if not all(weight.is_cuda for weight in weights):
        return MomentumSGD(weights, lr, momentum, weight_decay)
    # A recorded step can follow the learning rate only if that is a tensor.
    rate = torch.tensor(lr, device=weights[0].device)
    return torch.optim.SGD(weights, lr=rate, momentum=momentum, weight_decay=weight_decay, fused=True)


def learning_rate(lr: float, passed: float, schedule: str, milestones: Sequence[float]) -> float:
    """The rate when a share `passed` of the passes is over: by "cosine", or a tenth at each milestone."""
    if schedule == "cosine":
        return lr * (1 + math.cos(math.pi * passed)) / 2
    return lr * 0.1 ** sum(passed >= milestone for milestone in milestones)


def set_learning_rate(optimizer: Optimizer, lr: float) -> None:
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(lr)
        else:
            group["lr"] = lr

"""One optimisation step after another, the only place that calls backward(); on a GPU recorded, and side by side.

Stochastic gradient descent with momentum is our own, bit for bit torch's, whose module takes 1.5 s to import.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

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


def set_rate(optimizer: Optimizer, lr: float) -> None:
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(lr)
        else:
            group["lr"] = lr


EAGER_STEPS = 3  # before recording: the optimiser makes its state, libraries choose their kernels

StepLoss = Callable[..., Tensor]  # the tensors of one step -> loss


class Stepper:
    """Minimises `loss` step by step; `after` is called at the end of every step.

    It may serve many passes, and then a GPU records once for all: the loss must read what changes between passes
    (labels, weights) from tensors that stay where they are.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        loss: StepLoss,
        generator: torch.Generator,
        after: Callable[[], None] | None = None,
    ) -> None:
        self.optimizer, self.loss, self.generator, self.after = optimizer, loss, generator, after
        self.total = torch.zeros((), device=generator.device)  # sum of the losses of a pass, left on the device
        self.n_steps = 0
        self._n_eager = 0
        self._recorded: tuple[torch.cuda.CUDAGraph, tuple[Tensor, ...]] | None = None

    def begin_pass(self) -> None:
        self.total.zero_()
        self.n_steps = 0

    def __call__(self, *inputs: Tensor) -> None:
        self.n_steps += 1
        if not self.total.is_cuda or self._n_eager < EAGER_STEPS:
            self._n_eager += 1
            self._step(*inputs)
            return
        if self._recorded is None:
            self._recorded = self._record(inputs)
        graph, places = self._recorded
        if any(place.shape != value.shape for place, value in zip(places, inputs, strict=True)):
            self._step(*inputs)
            return
        torch._foreach_copy_(list(places), list(inputs))
        graph.replay()

    def mean_loss(self) -> Tensor:
        """Of the pass, still on the device: to look at it is to wait for it."""
        return self.total / max(self.n_steps, 1)

    def forget(self) -> None:
        """Begin with a fresh optimiser state, where a recorded step will find it."""
        for state in self.optimizer.state.values():
            if state.get("momentum_buffer") is not None:
                state["momentum_buffer"].zero_()

    def _record(self, inputs: tuple[Tensor, ...]) -> tuple[torch.cuda.CUDAGraph, tuple[Tensor, ...]]:
        places = tuple(value.clone() for value in inputs)
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self.generator)
        self.optimizer.zero_grad()
        with torch.cuda.graph(graph):
            self._step(*places)
        return graph, places

    def _step(self, *inputs: Tensor) -> None:
        self.optimizer.zero_grad()
        loss = self.loss(*inputs)
        loss.backward()
        self.optimizer.step()
        self.total += loss.detach()
        if self.after is not None:
            self.after()


Result = TypeVar("Result")


def side_by_side(jobs: Sequence[Callable[[], Result]], device: torch.device) -> list[Result]:
    """The results of all jobs. A job must not wait for the GPU, or those after it start late."""
    if device.type != "cuda":
        return [job() for job in jobs]
    now = torch.cuda.current_stream(device)
    results, streams = [], [torch.cuda.Stream(device) for _ in jobs]
    for job, stream in zip(jobs, streams, strict=True):
        stream.wait_stream(now)
        with torch.cuda.stream(stream):
            results.append(job())
    for stream in streams:
        now.wait_stream(stream)
    return results

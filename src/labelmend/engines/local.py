"""The default engine: everything in this process, one branch after another within a step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from labelmend.engines.base import Result
from labelmend.ensemble.fit import BranchesLoss, branches_step, train_branches_pass
from labelmend.ensemble.sgd import Optimizer
from labelmend.ensemble.stepper import Stepper
from labelmend.samples import Samples


@contextmanager
def fast_arithmetic(device: torch.device) -> Iterator[None]:
    """On a GPU: convolutions chosen by trial, float32 products rounded to 19 bits. Given back as it was."""
    if device.type != "cuda":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        with torch.backends.cudnn.flags(enabled=True, benchmark=True, allow_tf32=True):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


class LocalEngine:
    def branches_step(
        self,
        nets: Sequence[nn.Module],
        optimizer: Optimizer,
        loss: BranchesLoss,
        generator: torch.Generator,
    ) -> Stepper:
        return branches_step(nets, optimizer, loss, generator)

    def train_branches(
        self,
        nets: Sequence[nn.Module],
        step: Stepper,
        samples: Samples,
        subsets: Sequence[Tensor],
        batch_size: int,
        generator: torch.Generator,
    ) -> Tensor:
        return train_branches_pass(nets, step, samples, subsets, batch_size, generator)

    def map_graphs(self, build: Callable[[nn.Module], Result], nets: Sequence[nn.Module]) -> list[Result]:
        return [build(net) for net in nets]

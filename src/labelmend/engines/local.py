"""The default engine: everything in this process, one branch after another within a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from labelmend.data.samples import Samples
from labelmend.engines.base import Result
from labelmend.training.fit import BranchesLoss, train_branches_pass


class LocalEngine:
    def train_branches(
        self,
        nets: Sequence[nn.Module],
        optimizer: torch.optim.Optimizer,
        samples: Samples,
        subsets: Sequence[Tensor],
        batch_size: int,
        loss: BranchesLoss,
        generator: torch.Generator,
    ) -> float:
        return train_branches_pass(nets, optimizer, samples, subsets, batch_size, loss, generator)

    def map_graphs(self, build: Callable[[nn.Module], Result], nets: Sequence[nn.Module]) -> list[Result]:
        return [build(net) for net in nets]

"""What an engine is: the part of a round that can run somewhere else.

Branches are not independent jobs: the graph smoothness loss needs every branch's output at every step, so training
them is one call. Graphs are independent of one another once the branches are trained.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import torch
from torch import Tensor, nn

from labelmend.ensemble.fit import BranchesLoss
from labelmend.ensemble.sgd import Optimizer
from labelmend.ensemble.stepper import Stepper
from labelmend.samples import Samples

Result = TypeVar("Result")


class Engine(Protocol):
    def branches_step(
        self,
        nets: Sequence[nn.Module],
        optimizer: Optimizer,
        loss: BranchesLoss,
        generator: torch.Generator,
    ) -> Stepper:
        """What one step of all branches is; made once and used in every round."""
        ...

    def train_branches(
        self,
        nets: Sequence[nn.Module],
        step: Stepper,
        samples: Samples,
        subsets: Sequence[Tensor],
        batch_size: int,
        generator: torch.Generator,
    ) -> Tensor:
        """Train all branches one pass in step; returns the mean loss."""
        ...

    def map_graphs(self, build: Callable[[nn.Module], Result], nets: Sequence[nn.Module]) -> list[Result]:
        """`build` for every branch net, in the order of the nets."""
        ...

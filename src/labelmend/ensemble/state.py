"""What a run works on, and what lives from one round to the next."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from labelmend.config import Settings
from labelmend.ensemble.losses import Targets
from labelmend.ensemble.nets import FollowingNet
from labelmend.ensemble.records import RoundRecord
from labelmend.ensemble.split import Split
from labelmend.ensemble.stepper import Optimizer, Stepper, learning_rate, set_rate, sgd
from labelmend.samples import Samples

if TYPE_CHECKING:
    from labelmend.ensemble.vote import Vote


@dataclass(frozen=True)
class Problem:
    """What is corrected: samples, their given labels (-1: none), which of these are certain, how many classes.

    Where several people gave labels, the given label is their consensus, and `opinions` says who said what.
    """

    samples: Samples
    given_labels: Tensor
    trusted: Tensor
    n_classes: int
    opinions: Opinions | None = None

    @property
    def labels_in_use(self) -> Tensor:
        """The labels that are kept or corrected; -1: none."""
        return self.given_labels if self.opinions is None else self.opinions.in_use


@dataclass
class RoundState:
    """Everything that lives from one round to the next; what a checkpoint has to store."""

    noisy_net: nn.Module
    corrected_net: nn.Module
    branch_nets: list[nn.Module]
    noisy_optimizer: Optimizer
    corrected_optimizer: Optimizer
    generator: torch.Generator
    corrected_labels: Tensor
    omega: Tensor
    held_out: Tensor  # sum over rounds and graphs of what other samples' labels say about each sample
    targets: Targets
    steppers: dict[Hashable, Stepper] = field(default_factory=dict)  # made when first needed, kept for all rounds
    average: FollowingNet | None = None  # of corrected_net
    round_index: int = 0
    split: Split | None = None
    vote: Vote | None = None
    scaled_columns: bool = True  # propagation starts every class with the same mass
    neighbors: Tensor | None = None  # (n, <= 10) nearest samples in the space of the first branch
    branch_labels: Tensor | None = None  # (M, n) what each branch says, for those who look
    source_labels: Tensor | None = None  # (n,) what the net whose features were split says
    history: list[RoundRecord] = field(default_factory=list)

    def stepper(self, name: Hashable, make: Callable[[], Stepper]) -> Stepper:
        """The step of one training pass; what a GPU recorded in the first round serves all others."""
        if name not in self.steppers:
            self.steppers[name] = make()
        return self.steppers[name]

    @property
    def deployed_net(self) -> nn.Module:
        return self.corrected_net if self.average is None else self.average.net


def start(problem: Problem, make_net: Callable[[], nn.Module], settings: Settings) -> RoundState:
    """Nets of one architecture and one start, so that their weights can be interpolated."""
    generator = torch.Generator(problem.samples.device).manual_seed(settings.seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        nets = [make_net().to(problem.samples.device) for _ in range(2 + settings.n_branches)]
    noisy_net, corrected_net, *branch_nets = nets
    given = problem.given_labels
    shape = (len(given), problem.n_classes)
    omega = torch.where(given >= 0, 1.0, 0.0)
    answers = torch.zeros(shape, device=given.device) if settings.soft_labels else None
    in_the_step = settings.corrected_loss == "semi-supervised"  # soft labels are made there, and kept nowhere
    soft = None if answers is None or in_the_step else torch.zeros_like(answers)
    ramp = torch.ones((), device=given.device)
    return RoundState(
        noisy_net,
        corrected_net,
        branch_nets,
        sgd(noisy_net.parameters(), settings.lr, settings.momentum, settings.weight_decay),
        sgd(corrected_net.parameters(), settings.lr, settings.momentum, settings.weight_decay),
        generator,
        corrected_labels=given.clone(),
        omega=omega,
        held_out=torch.zeros(shape, device=given.device),
        targets=Targets(given.clone(), omega.clone(), problem.n_classes, soft, answers, ramp),
        scaled_columns=settings.scale_columns,
    )


@dataclass(frozen=True)
class Opinions:
    """Who said what: entry i says that `annotator[i]` gave `sample[i]` the label `label[i]`."""

    sample: Tensor
    annotator: Tensor
    label: Tensor
    n_annotators: int
    in_use: Tensor  # (n,) the labels that are kept or corrected; -1: none

    def entries(self) -> Tensor:
        """All of it in one tensor."""
        return torch.cat([self.sample, self.annotator, self.label, self.in_use])


def set_learning_rate(state: RoundState, settings: Settings) -> float:
    """Of this round, for both nets that go on learning."""
    passed = state.round_index / max(settings.n_rounds, 1)
    lr = learning_rate(settings.lr, passed, settings.lr_schedule, settings.lr_milestones)
    for optimizer in (state.noisy_optimizer, state.corrected_optimizer):
        set_rate(optimizer, lr)
    return lr

"""A net trained on labels as they are: plain cross entropy, with or without mixup.

The rows "cross entropy" and "mixup" of the paper's tables, and its new classifier on corrected labels. Knows a problem
and the recipe of a configuration; does not know votes or graphs. A GPU records the step like those of the rounds.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from labelmend.config import Settings
from labelmend.ensemble.fit import net_step, train_pass
from labelmend.ensemble.losses import Targets, corrected_loss
from labelmend.ensemble.state import Problem
from labelmend.ensemble.stepper import learning_rate, set_rate, sgd

AfterPass = Callable[[int, nn.Module], None]  # (passes done, the net)
Draw = Callable[[torch.Generator], Tensor]  # the samples of one pass; one that is drawn twice counts twice


def train_plain_net(
    problem: Problem,
    make_net: Callable[[], nn.Module],
    config: Settings,
    after_pass: AfterPass | None = None,
    draw: Draw | None = None,
) -> nn.Module:
    """`n_rounds` passes over the samples with a given label, by the learning rate, batch size and decay of `config`.

    `mixup` is read from it, and everything about rounds is not. `draw` chooses the
    samples of each pass, all of them by default.
    """
    n_passes, device = config.n_rounds, problem.samples.device
    generator = torch.Generator(device).manual_seed(config.seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        net = make_net().to(device)
    labels = problem.given_labels
    targets = Targets(labels, torch.ones(len(labels), device=device), problem.n_classes)
    labelled = torch.nonzero(labels >= 0).squeeze(1)

    def loss(net: nn.Module, indices: Tensor, x: Tensor) -> Tensor:
        return corrected_loss(net, x, indices, targets, config.mixup, 1.0, 0.0, generator)

    optimizer = sgd(net.parameters(), config.lr, config.momentum, config.weight_decay)
    step = net_step(net, optimizer, loss, generator)
    for done in range(n_passes):
        passed = done / n_passes
        set_rate(optimizer, learning_rate(config.lr, passed, config.lr_schedule, config.lr_milestones))
        indices = labelled if draw is None else draw(generator)
        train_pass(net, step, problem.samples, indices, config.batch_size, generator)
        if after_pass is not None:
            after_pass(done + 1, net)
    return net

"""Evidence for large data: nets not trained on the label of the sample they judge.

The samples are dealt into folds; the net of a fold learns the decided labels of all other folds and judges only
its own. Folds are random, not made of packages: dealt by packages the nets lost 2 points on CIFAR-10 features.

Knows nets, samples and labels; does not know graphs or how its answer is weighed.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labelmend.ensemble import losses
from labelmend.ensemble.fit import embed, net_step, train_pass
from labelmend.ensemble.stepper import set_learning_rate, sgd
from labelmend.samples import Samples

MIXED = 10  # the other sample's share is half a uniform number to this power, much like that of Beta(.1, .1)


def held_out_probabilities(
    nets: Sequence[nn.Module],
    samples: Samples,
    labels: Tensor,
    fold_of: Tensor,
    n_classes: int,
    n_passes: int,
    batch_size: int,
    lr: float,
    momentum: float,
    weight_decay: float,
    generator: torch.Generator,
    mixup: bool = False,
) -> Tensor:
    """(n, C) class probabilities by fresh nets, one per fold; the learning rate falls to zero over the passes.

    With `mixup` every sample is mixed with another, mostly a little: such nets are less sure of what they say.
    """

    def loss(net: nn.Module, indices: Tensor, x: Tensor) -> Tensor:
        if not mixup:
            return F.cross_entropy(net(x)[1], labels[indices])
        share = 1 - 0.5 * torch.rand((), generator=generator, device=x.device) ** MIXED
        goal = F.one_hot(labels[indices], n_classes).to(x.dtype)
        return F.cross_entropy(net(losses.mix(x, share))[1], losses.mix(goal, share))

    answers = torch.zeros(len(labels), n_classes, device=labels.device)
    for fold, net in enumerate(nets):
        judged = torch.nonzero(fold_of == fold).squeeze(1)
        learners = torch.nonzero((fold_of != fold) & (labels >= 0)).squeeze(1)
        step = net_step(net, sgd(net.parameters(), lr, momentum, weight_decay), loss, generator)
        for number in range(n_passes):
            set_learning_rate(step.optimizer, lr * (1 - number / n_passes))
            train_pass(net, step, samples, learners, batch_size, generator)
        answers[judged] = embed(net, samples, indices=judged)[1].softmax(dim=1)
    return answers

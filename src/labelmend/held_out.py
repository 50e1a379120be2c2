"""The second witness: nets that never saw the label of the sample they judge.

One net per subset of the last split, trained on the decided labels of all other subsets; it speaks only about its own.
Subsets are made of packages, so a whole mislabelled neighbourhood leaves together and cannot vouch for itself.

Knows nets, samples and labels; does not know graphs or how its answer is weighed.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labelmend.data.samples import Samples
from labelmend.embed import embed
from labelmend.training.fit import sgd, train_pass


def held_out_probabilities(
    make_net: Callable[[], nn.Module],
    samples: Samples,
    labels: Tensor,
    subset_of: Tensor,
    n_subsets: int,
    n_classes: int,
    n_passes: int,
    batch_size: int,
    lr: float,
    momentum: float,
    weight_decay: float,
    generator: torch.Generator,
) -> Tensor:
    """(n, C) class probabilities; a sample of no subset gets the mean of all nets."""

    def loss(net: nn.Module, x: Tensor, indices: Tensor) -> Tensor:
        return F.cross_entropy(net(x)[1], labels[indices])

    answers = torch.zeros(len(labels), n_classes, device=labels.device)
    outside = subset_of < 0
    for subset in range(n_subsets):
        learners = torch.nonzero((subset_of != subset) & (labels >= 0)).squeeze(1)
        net = make_net().to(labels.device)
        optimizer = sgd(net.parameters(), lr, momentum, weight_decay)
        for number in range(n_passes):
            for group in optimizer.param_groups:
                group["lr"] = lr * (1 - number / n_passes)
            train_pass(net, optimizer, samples, learners, batch_size, loss, generator)
        probabilities = embed(net, samples)[1].softmax(dim=1)
        answers[subset_of == subset] = probabilities[subset_of == subset]
        answers[outside] += probabilities[outside] / n_subsets
    return answers

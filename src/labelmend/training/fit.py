"""Training passes: the only place that calls backward().

Knows nets, optimisers and batches; does not know the method: what is minimised arrives as a function of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from labelmend.data.samples import Samples

SMALL_STEP = 10**7  # multiply-adds of a step forward, well under a millisecond on one core

BatchLoss = Callable[[nn.Module, Tensor, Tensor], Tensor]  # (net, x, indices) -> loss
BranchesLoss = Callable[[Tensor, Tensor, Tensor], Tensor]  # (features, logits, indices) of all branches -> loss


def sgd(parameters: Iterable[nn.Parameter], lr: float, momentum: float, weight_decay: float) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=lr, momentum=momentum, weight_decay=weight_decay)


@contextmanager
def threads_for(nets: Sequence[nn.Module], batch_size: int) -> Iterator[None]:
    """One CPU thread while small nets are trained.

    Their steps are too short to share, and on a busy machine each step waits for the slower of two threads: training
    was seen to take twenty times as long there.
    """
    weights = sum(p.numel() for net in nets for p in net.parameters())
    before = torch.get_num_threads()
    if weights * batch_size > SMALL_STEP or before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def train_pass(
    net: nn.Module,
    optimizer: torch.optim.Optimizer,
    samples: Samples,
    indices: Tensor,
    batch_size: int,
    batch_loss: BatchLoss,
    generator: torch.Generator,
) -> float:
    """One pass over `indices` in random order; returns the mean loss."""
    net.train()
    order = indices[torch.randperm(len(indices), generator=generator).to(indices.device)]
    total = 0.0
    with threads_for([net], batch_size):
        for batch in _batches(order, batch_size):
            loss = batch_loss(net, samples.batch(batch, augment=True, generator=generator), batch)
            _step(optimizer, loss)
            total += float(loss.detach()) * len(batch)
    return total / max(len(indices), 1)


def train_branches_pass(
    nets: Sequence[nn.Module],
    optimizer: torch.optim.Optimizer,
    samples: Samples,
    subsets: Sequence[Tensor],
    batch_size: int,
    loss: BranchesLoss,
    generator: torch.Generator,
) -> float:
    """One pass of all branches in step: every step takes an equal batch of every subset through its own branch.

    The loss sees the concatenation, so pairs reach across branches; a shorter subset starts again.
    """
    for net in nets:
        net.train()
    share = max(2, batch_size // max(len(nets), 1))
    n_steps = max(-(-len(subset) // share) for subset in subsets)  # 0 where no label was kept: nothing to learn from
    orders = [_cycled(subset, n_steps * share, generator) for subset in subsets]
    total = 0.0
    with threads_for(nets, share):
        for step in range(n_steps):
            batches = [order[step * share : (step + 1) * share] for order in orders]
            value = loss(*_through_own_branch(nets, samples, batches, generator), torch.cat(batches))
            _step(optimizer, value)
            total += float(value.detach())
    return total / max(n_steps, 1)


def _through_own_branch(
    nets: Sequence[nn.Module], samples: Samples, batches: Sequence[Tensor], generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Features and logits of all batches, each from its own net, one after another."""
    outputs = [
        net(samples.batch(batch, augment=True, generator=generator))
        for net, batch in zip(nets, batches, strict=True)
        if len(batch)
    ]
    features, logits = zip(*outputs, strict=True)
    return torch.cat(features), torch.cat(logits)


def _step(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()


def _batches(order: Tensor, batch_size: int) -> Iterator[Tensor]:
    """Batches of nearly equal size: a last batch of one sample would break batch statistics and kick the weights."""
    n_batches = max(1, round(len(order) / batch_size))
    yield from torch.tensor_split(order, n_batches) if len(order) else ()


def _cycled(subset: Tensor, length: int, generator: torch.Generator) -> Tensor:
    """`length` entries of `subset` in random order, in as many full turns as it takes."""
    if len(subset) == 0:
        return subset
    turns = -(-length // len(subset))
    orders = [subset[torch.randperm(len(subset), generator=generator).to(subset.device)] for _ in range(turns)]
    return torch.cat(orders)[:length]

"""Passes over samples: training ones, and one without learning that gives features and probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn

from labelmend.ensemble.stepper import Optimizer, Stepper, side_by_side
from labelmend.ensemble.torch_state import one_torch_thread
from labelmend.samples import Augment, Samples, at_once

BLOCK = 4096  # samples read and changed at once: fewer, larger kernels than one batch at a time
SMALL_STEP = 10**7  # multiply-adds of a step forward, well under a millisecond on one core

BatchLoss = Callable[..., Tensor]  # (net, indices, one batch per view) -> loss
BranchesLoss = Callable[[Tensor, Tensor, Tensor], Tensor]  # (features, logits, indices) of all branches -> loss


@contextmanager
def threads_for(nets: Sequence[nn.Module], batch_size: int) -> Iterator[None]:
    """One CPU thread while small nets are trained.

    Their steps are too short to share, and on a busy machine each step waits for the slower of two threads: training
    was seen to take twenty times as long there.
    """
    weights = sum(p.numel() for net in nets for p in net.parameters())
    if weights * batch_size > SMALL_STEP:
        yield
        return
    with one_torch_thread():
        yield


def net_step(
    net: nn.Module,
    optimizer: Optimizer,
    batch_loss: BatchLoss,
    generator: torch.Generator,
    after: Callable[[], None] | None = None,
) -> Stepper:
    """The step of one net, for any number of passes; `after` is called after every step."""
    return Stepper(optimizer, lambda batch, *seen: batch_loss(net, batch, *seen), generator, after)


def train_pass(
    net: nn.Module,
    step: Stepper,
    samples: Samples,
    indices: Tensor,
    batch_size: int,
    generator: torch.Generator,
    views: Sequence[Augment] = ("weak",),
) -> Tensor:
    """One pass over `indices` in random order; returns the mean loss."""
    net.train()
    order = indices[random_order(len(indices), generator)]
    step.begin_pass()
    with threads_for([net], batch_size):
        for batches in _blocks(order, batch_size, at_once(samples, BLOCK)):
            seen = [_views(samples, torch.cat(batches), augment, generator, batches) for augment in views]
            for batch, *parts in zip(batches, *seen, strict=True):
                step(batch, *parts)
    return step.mean_loss()


def branches_step(
    nets: Sequence[nn.Module], optimizer: Optimizer, loss: BranchesLoss, generator: torch.Generator
) -> Stepper:
    """The step of all branches: equal parts of a batch go through their own nets, the loss sees them together."""
    return Stepper(optimizer, lambda batch, x: loss(*_through_own_branch(nets, x.chunk(len(nets))), batch), generator)


def train_branches_pass(
    nets: Sequence[nn.Module],
    step: Stepper,
    samples: Samples,
    subsets: Sequence[Tensor],
    batch_size: int,
    generator: torch.Generator,
) -> Tensor:
    """One pass of all branches in step: every step takes an equal batch of every subset through its own branch.

    The loss sees the concatenation, so pairs reach across branches; a shorter subset starts again. No subset is empty.
    """
    share = max(2, batch_size // len(nets))
    n_steps = max(-(-len(subset) // share) for subset in subsets)
    return _equal_shares(nets, step, samples, subsets, share, n_steps, generator, ("weak",))


def train_groups_pass(
    net: nn.Module,
    step: Stepper,
    samples: Samples,
    groups: Sequence[Tensor],
    batch_size: int,
    generator: torch.Generator,
    views: Sequence[Augment] = ("weak",),
) -> Tensor:
    """One pass over the first group; every step takes an equal share of every group through the net.

    The other groups are seen in part, or again. No group is empty.
    """
    share = max(1, batch_size // len(groups))
    return _equal_shares([net], step, samples, groups, share, max(1, len(groups[0]) // share), generator, views)


def _equal_shares(
    nets: Sequence[nn.Module],
    step: Stepper,
    samples: Samples,
    subsets: Sequence[Tensor],
    share: int,
    n_steps: int,
    generator: torch.Generator,
    views: Sequence[Augment],
) -> Tensor:
    """Steps that all have the same number of every subset, so that one that was recorded serves all passes."""
    for net in nets:
        net.train()
    orders = [_cycled(subset, n_steps * share, generator).view(n_steps, share) for subset in subsets]
    plan = torch.cat(orders, dim=1)  # one row a step
    step.begin_pass()
    with threads_for(nets, share):
        for steps in plan.split(max(1, at_once(samples, BLOCK) // plan.shape[1])):
            seen = [samples.batch(steps.flatten(), view, generator).split(plan.shape[1]) for view in views]
            for batch, *parts in zip(steps, *seen, strict=True):
                step(batch, *parts)
    return step.mean_loss()


def random_order(n: int, generator: torch.Generator) -> Tensor:
    return torch.randperm(n, generator=generator, device=generator.device)


def _through_own_branch(nets: Sequence[nn.Module], parts: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Features and logits of all parts, each from its own net."""
    outputs = side_by_side([partial(net, part) for net, part in zip(nets, parts, strict=True)], parts[0].device)
    features, logits = zip(*outputs, strict=True)
    return torch.cat(features), torch.cat(logits)


def _blocks(order: Tensor, batch_size: int, block: int) -> Iterator[list[Tensor]]:
    """Batches of nearly equal size, several at a time.

    A last batch of one sample would break batch statistics and kick the weights. On a GPU all are equal, because a
    recorded step has one size; the few samples that are left over wait for the next pass.
    """
    if len(order) == 0:
        return
    n_batches = max(1, round(len(order) / batch_size))
    if order.is_cuda:
        order = order[: len(order) // n_batches * n_batches]
    batches = torch.tensor_split(order, n_batches)
    together = max(1, block // len(batches[0]))
    for first in range(0, n_batches, together):
        yield list(batches[first : first + together])


def _views(
    samples: Samples, indices: Tensor, augment: Augment, generator: torch.Generator, batches: Sequence[Tensor]
) -> Sequence[Tensor]:
    parts: Sequence[Tensor] = samples.batch(indices, augment, generator).split([len(batch) for batch in batches])
    return parts


def _cycled(subset: Tensor, length: int, generator: torch.Generator) -> Tensor:
    """`length` entries of `subset` in random order, in as many full turns as it takes."""
    if len(subset) == 0:
        return subset
    turns = -(-length // len(subset))
    return torch.cat([subset[random_order(len(subset), generator)] for _ in range(turns)])[:length]


def balanced(indices: Tensor, labels: Tensor, generator: torch.Generator) -> Tensor:
    """As many places as `indices` has, every class among them equally often, give or take one.

    `labels` are those of the samples at `indices`, none missing. Within a class every sample is drawn equally often,
    give or take one, and which ones are drawn more often is chance.
    """
    if len(indices) == 0:
        return indices
    order = random_order(len(indices), generator)
    order = order[labels[order].argsort(stable=True)]  # class by class, each in random order
    sizes = torch.bincount(labels)
    present = torch.nonzero(sizes).squeeze(1)
    present = present[random_order(len(present), generator)]  # which classes get the one more
    begins = sizes.cumsum(0) - sizes
    place = torch.arange(len(indices), device=indices.device)
    of_class, turn = present[place % len(present)], place // len(present)
    drawn: Tensor = indices[order[begins[of_class] + turn % sizes[of_class]]]
    return drawn


EMBED_BATCH = 4096


@torch.no_grad()
def embed(
    net: nn.Module, samples: Samples, batch_size: int = EMBED_BATCH, indices: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Features and logits of every sample, or of those at `indices`, in eval mode and without augmentation."""
    net.eval()
    wanted = torch.arange(len(samples), device=samples.device) if indices is None else indices
    parts = [net(samples.batch(some, "none", generator=None)) for some in wanted.split(at_once(samples, batch_size))]
    features, logits = (torch.cat(pieces) for pieces in zip(*parts, strict=True))
    return features, logits

"""Phase 2 of the paper (Sec. III-C): label propagation on one graph, equations (4), (5) and (8), by conjugate gradients
for many right-hand sides at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Solution:
    value: Tensor  # (n, columns)
    iterations: int
    residual: Tensor  # (columns,) |b - A x| / |b|
    converged: Tensor  # (columns,) residual <= tolerance


def conjugate_gradient(product: Callable[[Tensor], Tensor], rhs: Tensor, tolerance: float, max_iter: int) -> Solution:
    """Solve A x = rhs column by column, stopping when every column is below `tolerance` or after `max_iter`."""
    target = tolerance * rhs.norm(dim=0)
    value = torch.zeros_like(rhs)
    residual = rhs.clone()
    direction = rhs.clone()
    energy = (residual * residual).sum(dim=0)
    iterations = 0
    while iterations < max_iter and bool((energy.sqrt() > target).any()):
        image = product(direction)
        curvature = (direction * image).sum(dim=0)
        step = torch.where(curvature > 0, energy / curvature, 0.0)  # 0 / 0 for a column that is already solved
        value.addcmul_(direction, step)
        residual.addcmul_(image, step, value=-1)
        new_energy = (residual * residual).sum(dim=0)
        direction.mul_(torch.where(energy > 0, new_energy / energy, 0.0)).add_(residual)
        energy = new_energy
        iterations += 1
    norm = rhs.norm(dim=0)
    true_residual = (rhs - product(value)).norm(dim=0)
    relative = torch.where(norm > 0, true_residual / norm, 0.0)
    return Solution(value, iterations, relative, relative <= tolerance)


ABSTAIN = -1
BLOCK_ENTRIES = 2**23  # solution entries held at once: 32 MiB of float32, a few such arrays live in the solver


@dataclass(frozen=True)
class Suggestions:
    """What every (label source, subset) pair suggests for every sample, on one graph or on all."""

    labels: Tensor  # (n, s) class or ABSTAIN
    certainty: Tensor  # (n, s) 1 - H / log C, 0 where it abstains
    own: Tensor  # (n, s) True where the sample's own label is among the starting labels
    held_out: Tensor  # (n, C) mean of the distributions started without the sample's own label; 0 where there is none


@dataclass(frozen=True)
class SolverReport:
    iterations: int
    worst_residual: float
    converged: bool


def starting_rows(labels: Tensor, subset_of: Tensor, subset: int) -> tuple[Tensor, Tensor]:
    """(row, class) of the ones of Y_j: the labelled samples of one subset."""
    rows = torch.nonzero((subset_of == subset) & (labels >= 0)).squeeze(1)
    return rows, labels[rows]


def propagate(
    graph: Tensor,
    starts: list[tuple[Tensor, Tensor]],
    n_classes: int,
    alpha: float,
    scale_columns: bool,
    tolerance: float,
    max_iter: int,
) -> tuple[Suggestions, SolverReport]:
    """Solve (I - alpha W) Z = Y for every start and read labels, certainties and the mean distribution off Z.

    `scale_columns` divides a column of Y by the number of its ones, so that frequent classes do not win by number.
    """
    n, s = graph.shape[0], len(starts)
    device, dtype = graph.device, graph.dtype
    weights = [_one_over_class_size(classes, n_classes, scale_columns, dtype) for _, classes in starts]

    def product(x: Tensor) -> Tensor:
        return torch.add(x, graph @ x, alpha=-alpha)

    totals = torch.zeros(n, s, dtype=dtype, device=device)
    own = torch.zeros(n, s, dtype=torch.bool, device=device)
    for column, ((rows, _), weight) in enumerate(zip(starts, weights, strict=True)):
        totals[rows, column] = weight
        own[rows, column] = True
    solved = conjugate_gradient(product, totals, tolerance, max_iter)
    sums = solved.value.clamp(min=0)
    reached = sums > 1e-6 * sums.amax(dim=0, keepdim=True).clamp(min=torch.finfo(dtype).tiny)

    best = torch.zeros(n, s, dtype=dtype, device=device)
    labels = torch.full((n, s), ABSTAIN, dtype=torch.long, device=device)
    negentropy = torch.zeros(n, s, dtype=dtype, device=device)
    mass = torch.zeros(n, s, dtype=dtype, device=device)  # 1, but for what the solver leaves open
    held_out = torch.zeros(n, n_classes, dtype=dtype, device=device)
    iterations, worst = solved.iterations, float(solved.residual.max())
    block = max(1, min(n_classes, BLOCK_ENTRIES // (n * s)))
    for first in range(0, n_classes, block):
        width = min(block, n_classes - first)
        rhs = torch.zeros(n, s * width, dtype=dtype, device=device)
        for column, ((rows, classes), weight) in enumerate(zip(starts, weights, strict=True)):
            inside = (classes >= first) & (classes < first + width)
            rhs[rows[inside], column * width + classes[inside] - first] = weight[inside]
        solved = conjugate_gradient(product, rhs, tolerance, max_iter)
        iterations, worst = max(iterations, solved.iterations), max(worst, float(solved.residual.max()))
        shares = solved.value.clamp_(min=0).view(n, s, width)
        shares.mul_(torch.where(reached, 1 / sums, 0.0).unsqueeze(2))
        top = shares.max(dim=2)
        labels = torch.where(top.values > best, top.indices + first, labels)
        best = torch.maximum(best, top.values)
        negentropy += torch.special.xlogy(shares, shares).sum(dim=2)
        mass += shares.sum(dim=2)
        held_out[:, first : first + width] = (shares * ~own.unsqueeze(2)).sum(dim=1)
    entropy = mass.clamp(min=torch.finfo(dtype).tiny).log() - negentropy / mass.clamp(min=torch.finfo(dtype).tiny)
    certainty = torch.where(labels >= 0, (1 - entropy / math.log(n_classes)).clamp(0, 1), 0.0)
    held_out /= held_out.sum(dim=1, keepdim=True).clamp(min=torch.finfo(dtype).tiny)
    return Suggestions(labels, certainty, own, held_out), SolverReport(iterations, worst, worst <= tolerance)


def _one_over_class_size(classes: Tensor, n_classes: int, scale_columns: bool, dtype: torch.dtype) -> Tensor:
    if not scale_columns:
        return torch.ones(len(classes), dtype=dtype, device=classes.device)
    return 1 / torch.bincount(classes, minlength=n_classes).to(dtype)[classes]

"""Batch normalisation and ReLU in Triton, forward and backward; see `norm_relu.py`, which decides when to use it.

A batch (n, C, H, W) with channels last is a matrix of R = n H W rows and C columns, and everything is a sum over rows
or a change of single entries. Sums are taken in float32 over many short stretches of rows, around the first row, so
that a large mean does not swallow the variance.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

ROWS, COLUMNS = 64, 64  # of the tile one program works on
PROGRAMS = 528  # stretches of rows times tiles of columns: 4 programs for each of 132 multiprocessors
FINISHED = 8  # columns a program adds up over all stretches


@triton.jit
def _moments(x, sums, squares, n_rows, n_columns, n_stretches, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < n_columns
    origin = tl.load(x + columns, mask=inside, other=0.0).to(tl.float32)
    total = tl.zeros([COLUMNS], tl.float32)
    square = tl.zeros([COLUMNS], tl.float32)
    for start in range(tl.program_id(0) * ROWS, n_rows, n_stretches * ROWS):
        rows = start + tl.arange(0, ROWS)
        mask = (rows < n_rows)[:, None] & inside[None, :]
        at = rows.to(tl.int64)[:, None] * n_columns + columns[None, :]
        values = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
        away = tl.where(mask, values - origin[None, :], 0.0)
        total += tl.sum(away, axis=0)
        square += tl.sum(away * away, axis=0)
    tl.store(sums + tl.program_id(0) * n_columns + columns, total, mask=inside)
    tl.store(squares + tl.program_id(0) * n_columns + columns, square, mask=inside)


@triton.jit
def _finish_moments(
    x, sums, squares, weight, bias, running_mean, running_var, mean, inverse, scale, shift,
    n_rows, n_columns, n_stretches, momentum, epsilon, STRETCHES: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < n_columns
    stretches = tl.arange(0, STRETCHES)
    mask = (stretches < n_stretches)[:, None] & inside[None, :]
    at = stretches[:, None] * n_columns + columns[None, :]
    away = tl.sum(tl.load(sums + at, mask=mask, other=0.0), axis=0) / n_rows
    square = tl.sum(tl.load(squares + at, mask=mask, other=0.0), axis=0) / n_rows
    middle = tl.load(x + columns, mask=inside, other=0.0).to(tl.float32) + away
    variance = tl.maximum(square - away * away, 0.0)
    root = 1.0 / tl.sqrt(variance + epsilon)
    factor = tl.load(weight + columns, mask=inside, other=0.0) * root
    tl.store(mean + columns, middle, mask=inside)
    tl.store(inverse + columns, root, mask=inside)
    tl.store(scale + columns, factor, mask=inside)
    tl.store(shift + columns, tl.load(bias + columns, mask=inside, other=0.0) - middle * factor, mask=inside)
    old_mean = tl.load(running_mean + columns, mask=inside, other=0.0)
    old_variance = tl.load(running_var + columns, mask=inside, other=0.0)
    unbiased = variance * n_rows / (n_rows - 1)
    tl.store(running_mean + columns, old_mean + momentum * (middle - old_mean), mask=inside)
    tl.store(running_var + columns, old_variance + momentum * (unbiased - old_variance), mask=inside)


@triton.jit
def _scale_running(weight, bias, running_mean, running_var, scale, shift, n_columns, epsilon, COLUMNS: tl.constexpr):
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < n_columns
    root = 1.0 / tl.sqrt(tl.load(running_var + columns, mask=inside, other=0.0) + epsilon)
    factor = tl.load(weight + columns, mask=inside, other=0.0) * root
    middle = tl.load(running_mean + columns, mask=inside, other=0.0)
    tl.store(scale + columns, factor, mask=inside)
    tl.store(shift + columns, tl.load(bias + columns, mask=inside, other=0.0) - middle * factor, mask=inside)


@triton.jit
def _apply(x, y, scale, shift, n_rows, n_columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < n_columns
    mask = (rows < n_rows)[:, None] & inside[None, :]
    at = rows.to(tl.int64)[:, None] * n_columns + columns[None, :]
    factor = tl.load(scale + columns, mask=inside, other=0.0)[None, :]
    offset = tl.load(shift + columns, mask=inside, other=0.0)[None, :]
    out = tl.load(x + at, mask=mask, other=0.0).to(tl.float32) * factor + offset
    tl.store(y + at, tl.maximum(out, 0.0).to(y.dtype.element_ty), mask=mask)


@triton.jit
def _gradient_sums(
    x, gradient, scale, shift, mean, inverse, sums, products, n_rows, n_columns, n_stretches,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < n_columns
    factor = tl.load(scale + columns, mask=inside, other=0.0)[None, :]
    offset = tl.load(shift + columns, mask=inside, other=0.0)[None, :]
    middle = tl.load(mean + columns, mask=inside, other=0.0)[None, :]
    root = tl.load(inverse + columns, mask=inside, other=0.0)[None, :]
    total = tl.zeros([COLUMNS], tl.float32)
    product = tl.zeros([COLUMNS], tl.float32)
    for start in range(tl.program_id(0) * ROWS, n_rows, n_stretches * ROWS):
        rows = start + tl.arange(0, ROWS)
        mask = (rows < n_rows)[:, None] & inside[None, :]
        at = rows.to(tl.int64)[:, None] * n_columns + columns[None, :]
        values = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
        arriving = tl.load(gradient + at, mask=mask, other=0.0).to(tl.float32)
        passed = tl.where(values * factor + offset > 0.0, arriving, 0.0)
        total += tl.sum(passed, axis=0)
        product += tl.sum(passed * (values - middle) * root, axis=0)
    tl.store(sums + tl.program_id(0) * n_columns + columns, total, mask=inside)
    tl.store(products + tl.program_id(0) * n_columns + columns, product, mask=inside)


@triton.jit
def _finish_gradient_sums(
    sums, products, bias_gradient, weight_gradient, n_columns, n_stretches,
    STRETCHES: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < n_columns
    stretches = tl.arange(0, STRETCHES)
    mask = (stretches < n_stretches)[:, None] & inside[None, :]
    at = stretches[:, None] * n_columns + columns[None, :]
    tl.store(bias_gradient + columns, tl.sum(tl.load(sums + at, mask=mask, other=0.0), axis=0), mask=inside)
    tl.store(weight_gradient + columns, tl.sum(tl.load(products + at, mask=mask, other=0.0), axis=0), mask=inside)


@triton.jit
def _input_gradient(
    x, gradient, out, scale, shift, mean, inverse, bias_gradient, weight_gradient, n_rows, n_columns,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < n_columns
    mask = (rows < n_rows)[:, None] & inside[None, :]
    at = rows.to(tl.int64)[:, None] * n_columns + columns[None, :]
    factor = tl.load(scale + columns, mask=inside, other=0.0)[None, :]
    offset = tl.load(shift + columns, mask=inside, other=0.0)[None, :]
    middle = tl.load(mean + columns, mask=inside, other=0.0)[None, :]
    root = tl.load(inverse + columns, mask=inside, other=0.0)[None, :]
    common = tl.load(bias_gradient + columns, mask=inside, other=0.0)[None, :]
    along = tl.load(weight_gradient + columns, mask=inside, other=0.0)[None, :]
    values = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
    arriving = tl.load(gradient + at, mask=mask, other=0.0).to(tl.float32)
    passed = tl.where(values * factor + offset > 0.0, arriving, 0.0)
    result = factor * (passed - (common + (values - middle) * root * along) / n_rows)
    tl.store(out + at, result.to(out.dtype.element_ty), mask=mask)


class _NormReLU(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, running_mean: Tensor, running_var: Tensor,
        momentum: float, epsilon: float,
    ) -> Tensor:  # fmt: skip
        x = x.contiguous(memory_format=torch.channels_last)
        n_columns = x.shape[1]
        n_rows = x.numel() // n_columns
        tiles, stretches = _grid(n_rows, n_columns)
        sums, squares = _partial_sums(stretches, n_columns, x.device)
        mean, inverse, scale, shift = (torch.empty(n_columns, device=x.device) for _ in range(4))
        _moments[(stretches, tiles)](x, sums, squares, n_rows, n_columns, stretches, ROWS=ROWS, COLUMNS=COLUMNS)
        _finish_moments[(triton.cdiv(n_columns, FINISHED),)](
            x, sums, squares, weight, bias, running_mean, running_var, mean, inverse, scale, shift,
            n_rows, n_columns, stretches, momentum, epsilon,
            STRETCHES=triton.next_power_of_2(stretches), COLUMNS=FINISHED,
        )  # fmt: skip
        ctx.save_for_backward(x, scale, shift, mean, inverse)
        return _applied(x, scale, shift)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, scale, shift, mean, inverse = ctx.saved_tensors
        gradient = gradients[0].contiguous(memory_format=torch.channels_last)
        n_columns = x.shape[1]
        n_rows = x.numel() // n_columns
        tiles, stretches = _grid(n_rows, n_columns)
        sums, products = _partial_sums(stretches, n_columns, x.device)
        bias_gradient, weight_gradient = (torch.empty(n_columns, device=x.device) for _ in range(2))
        _gradient_sums[(stretches, tiles)](
            x, gradient, scale, shift, mean, inverse, sums, products, n_rows, n_columns, stretches,
            ROWS=ROWS, COLUMNS=COLUMNS,
        )  # fmt: skip
        _finish_gradient_sums[(triton.cdiv(n_columns, FINISHED),)](
            sums, products, bias_gradient, weight_gradient, n_columns, stretches,
            STRETCHES=triton.next_power_of_2(stretches), COLUMNS=FINISHED,
        )  # fmt: skip
        out = torch.empty_like(x)
        _input_gradient[(triton.cdiv(n_rows, ROWS), tiles)](
            x, gradient, out, scale, shift, mean, inverse, bias_gradient, weight_gradient, n_rows, n_columns,
            ROWS=ROWS, COLUMNS=COLUMNS,
        )  # fmt: skip
        return out, weight_gradient, bias_gradient, None, None, None, None


def norm_relu(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    epsilon: float,
) -> Tensor:
    """relu(batch_norm(x)); in training mode the running statistics move by `momentum`."""
    assert running_mean is not None
    assert running_var is not None
    if training:
        out: Tensor = _NormReLU.apply(x, weight, bias, running_mean, running_var, momentum, epsilon)
        return out
    x = x.contiguous(memory_format=torch.channels_last)
    n_columns = x.shape[1]
    scale, shift = (torch.empty(n_columns, device=x.device) for _ in range(2))
    _scale_running[(triton.cdiv(n_columns, COLUMNS),)](
        weight, bias, running_mean, running_var, scale, shift, n_columns, epsilon, COLUMNS=COLUMNS
    )
    return _applied(x, scale, shift)


def _applied(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    y = torch.empty_like(x)
    n_columns = x.shape[1]
    n_rows = x.numel() // n_columns
    grid = (triton.cdiv(n_rows, ROWS), triton.cdiv(n_columns, COLUMNS))
    _apply[grid](x, y, scale, shift, n_rows, n_columns, ROWS=ROWS, COLUMNS=COLUMNS)
    return y


def _grid(n_rows: int, n_columns: int) -> tuple[int, int]:
    """Tiles of columns, and stretches of rows: enough programs to fill the GPU, none without work."""
    tiles = triton.cdiv(n_columns, COLUMNS)
    return tiles, max(1, min(PROGRAMS // tiles, triton.cdiv(n_rows, ROWS)))


def _partial_sums(stretches: int, n_columns: int, device: torch.device) -> tuple[Tensor, Tensor]:
    return torch.empty(stretches, n_columns, device=device), torch.empty(stretches, n_columns, device=device)

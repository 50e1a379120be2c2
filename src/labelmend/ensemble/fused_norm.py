"""Batch normalisation and ReLU in Triton, forward and backward; see `nets.py`, which decides when to use it.

A batch (n, C, H, W) with channels last is a matrix of R = n H W rows and C columns, and everything is a sum over rows
or a change of single entries. Sums are taken in float32 over many short stretches of rows, around the first row, so
that a large mean does not swallow the variance. The batch may be the sum of two: then that is made, kept and
normalised on one way through memory, and so is its gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import triton
import triton.language as tl
from torch import Tensor

if TYPE_CHECKING:
    from labelmend.ensemble.nets import NormReLU


ROWS, COLUMNS = 64, 64  # of the tile one program works on
PROGRAMS = 528  # stretches of rows times tiles of columns: 4 programs for each of 132 multiprocessors
FINISHED = 8  # columns a program adds up over all stretches


@triton.jit
def _per_column(numbers, columns, n_columns):
    return tl.load(numbers + columns, mask=columns < n_columns, other=0.0).to(tl.float32)


@triton.jit
def _tile(rows, columns, n_rows, n_columns):
    """Where the entries of a tile are, and which of them exist."""
    exists = (rows < n_rows)[:, None] & (columns < n_columns)[None, :]
    return rows.to(tl.int64)[:, None] * n_columns + columns[None, :], exists


@triton.jit
def _entries(x, other, total, at, exists, ADDS: tl.constexpr):
    """Entries of x; or of x + other, as rounded, which are then stored in `total`."""
    values = tl.load(x + at, mask=exists, other=0.0)
    if ADDS:
        values = (values.to(tl.float32) + tl.load(other + at, mask=exists, other=0.0)).to(total.dtype.element_ty)
        tl.store(total + at, values, mask=exists)
    return values.to(tl.float32)


@triton.jit
def _column_sums(parts, columns, n_columns, n_stretches, STRETCHES: tl.constexpr):
    at, exists = _tile(tl.arange(0, STRETCHES), columns, n_stretches, n_columns)
    return tl.sum(tl.load(parts + at, mask=exists, other=0.0), axis=0)


@triton.jit
def _moments(
    x, other, total, origin, sums, squares, n_rows, n_columns, n_stretches,
    ADDS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    first = _per_column(x, columns, n_columns)
    if ADDS:
        first += _per_column(other, columns, n_columns)
    tl.store(origin + columns, first, mask=columns < n_columns)
    away_sum = tl.zeros([ROWS, COLUMNS], tl.float32)  # added up over the rows of the tile only once, at the end
    square_sum = tl.zeros([ROWS, COLUMNS], tl.float32)
    for start in range(tl.program_id(0) * ROWS, n_rows, n_stretches * ROWS):
        at, exists = _tile(start + tl.arange(0, ROWS), columns, n_rows, n_columns)
        away = tl.where(exists, _entries(x, other, total, at, exists, ADDS) - first[None, :], 0.0)
        away_sum += away
        square_sum += away * away
    place = tl.program_id(0) * n_columns + columns
    tl.store(sums + place, tl.sum(away_sum, axis=0), mask=columns < n_columns)
    tl.store(squares + place, tl.sum(square_sum, axis=0), mask=columns < n_columns)


@triton.jit
def _finish_moments(
    origin, sums, squares, weight, bias, running_mean, running_var, mean, inverse, scale, shift,
    n_rows, n_columns, n_stretches, momentum, epsilon, STRETCHES: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < n_columns
    away = _column_sums(sums, columns, n_columns, n_stretches, STRETCHES) / n_rows
    square = _column_sums(squares, columns, n_columns, n_stretches, STRETCHES) / n_rows
    middle = _per_column(origin, columns, n_columns) + away
    variance = tl.maximum(square - away * away, 0.0)
    root = 1.0 / tl.sqrt(variance + epsilon)
    factor = _per_column(weight, columns, n_columns) * root
    tl.store(mean + columns, middle, mask=inside)
    tl.store(inverse + columns, root, mask=inside)
    tl.store(scale + columns, factor, mask=inside)
    tl.store(shift + columns, _per_column(bias, columns, n_columns) - middle * factor, mask=inside)
    old_mean = _per_column(running_mean, columns, n_columns)
    old_variance = _per_column(running_var, columns, n_columns)
    unbiased = variance * n_rows / (n_rows - 1)
    tl.store(running_mean + columns, old_mean + momentum * (middle - old_mean), mask=inside)
    tl.store(running_var + columns, old_variance + momentum * (unbiased - old_variance), mask=inside)


@triton.jit
def _apply(
    x, other, total, y, scale, shift, n_rows, n_columns, ADDS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    at, exists = _tile(tl.program_id(0) * ROWS + tl.arange(0, ROWS), columns, n_rows, n_columns)
    factor = _per_column(scale, columns, n_columns)[None, :]
    offset = _per_column(shift, columns, n_columns)[None, :]
    out = _entries(x, other, total, at, exists, ADDS) * factor + offset
    tl.store(y + at, tl.maximum(out, 0.0).to(y.dtype.element_ty), mask=exists)


@triton.jit
def _passed_on(values, gradient, scale, shift, at, exists, columns, n_columns):
    """The gradient that the ReLU lets through."""
    factor = _per_column(scale, columns, n_columns)[None, :]
    offset = _per_column(shift, columns, n_columns)[None, :]
    arriving = tl.load(gradient + at, mask=exists, other=0.0).to(tl.float32)
    return tl.where(values * factor + offset > 0.0, arriving, 0.0)


@triton.jit
def _gradient_sums(
    x, gradient, scale, shift, mean, inverse, sums, products, n_rows, n_columns, n_stretches,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    middle = _per_column(mean, columns, n_columns)[None, :]
    root = _per_column(inverse, columns, n_columns)[None, :]
    passed_sum = tl.zeros([ROWS, COLUMNS], tl.float32)
    product_sum = tl.zeros([ROWS, COLUMNS], tl.float32)
    for start in range(tl.program_id(0) * ROWS, n_rows, n_stretches * ROWS):
        at, exists = _tile(start + tl.arange(0, ROWS), columns, n_rows, n_columns)
        values = tl.load(x + at, mask=exists, other=0.0).to(tl.float32)
        passed = _passed_on(values, gradient, scale, shift, at, exists, columns, n_columns)
        passed_sum += passed
        product_sum += passed * (values - middle) * root
    place = tl.program_id(0) * n_columns + columns
    tl.store(sums + place, tl.sum(passed_sum, axis=0), mask=columns < n_columns)
    tl.store(products + place, tl.sum(product_sum, axis=0), mask=columns < n_columns)


@triton.jit
def _finish_gradient_sums(
    sums, products, bias_gradient, weight_gradient, n_columns, n_stretches,
    STRETCHES: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < n_columns
    tl.store(bias_gradient + columns, _column_sums(sums, columns, n_columns, n_stretches, STRETCHES), mask=inside)
    tl.store(weight_gradient + columns, _column_sums(products, columns, n_columns, n_stretches, STRETCHES), mask=inside)


@triton.jit
def _input_gradient(
    x, gradient, beside, out, scale, shift, mean, inverse, bias_gradient, weight_gradient, n_rows, n_columns,
    ADDS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """`beside` is the gradient of the batch from its other use, if it has one."""
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    at, exists = _tile(tl.program_id(0) * ROWS + tl.arange(0, ROWS), columns, n_rows, n_columns)
    factor = _per_column(scale, columns, n_columns)[None, :]
    middle = _per_column(mean, columns, n_columns)[None, :]
    root = _per_column(inverse, columns, n_columns)[None, :]
    common = _per_column(bias_gradient, columns, n_columns)[None, :]
    along = _per_column(weight_gradient, columns, n_columns)[None, :]
    values = tl.load(x + at, mask=exists, other=0.0).to(tl.float32)
    passed = _passed_on(values, gradient, scale, shift, at, exists, columns, n_columns)
    result = factor * (passed - (common + (values - middle) * root * along) / n_rows)
    if ADDS:
        result += tl.load(beside + at, mask=exists, other=0.0).to(tl.float32)
    tl.store(out + at, result.to(out.dtype.element_ty), mask=exists)


class _NormReLU(torch.autograd.Function):
    """x -> relu(norm(x)); or x, other -> that of their sum, and the sum."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, other: Tensor | None, weight: Tensor, bias: Tensor, running_mean: Tensor,
        running_var: Tensor, momentum: float, epsilon: float,
    ) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
        x = _channels_last(x)
        n_rows, n_columns = _shape(x)
        tiles, stretches = _grid(n_rows, n_columns)
        sums, squares = _partial_sums(stretches, n_columns, x.device)
        origin, mean, inverse, scale, shift = (torch.empty(n_columns, device=x.device) for _ in range(5))
        total = x if other is None else torch.empty_like(x)
        _moments[(stretches, tiles)](
            x, x if other is None else _channels_last(other), total, origin, sums, squares,
            n_rows, n_columns, stretches, ADDS=other is not None, ROWS=ROWS, COLUMNS=COLUMNS,
        )  # fmt: skip
        _finish_moments[(triton.cdiv(n_columns, FINISHED),)](
            origin, sums, squares, weight, bias, running_mean, running_var, mean, inverse, scale, shift,
            n_rows, n_columns, stretches, momentum, epsilon,
            STRETCHES=triton.next_power_of_2(stretches), COLUMNS=FINISHED,
        )  # fmt: skip
        ctx.save_for_backward(total, scale, shift, mean, inverse)
        ctx.set_materialize_grads(False)
        active = _applied(total, None, scale, shift)[0]
        return active if other is None else (active, total)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None, beside: Tensor | None = None) -> tuple[Tensor | None, ...]:
        x, scale, shift, mean, inverse = ctx.saved_tensors
        if gradient is None:
            return (beside, beside, *(None,) * 6)
        gradient = _channels_last(gradient)
        n_rows, n_columns = _shape(x)
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
            x, gradient, gradient if beside is None else _channels_last(beside), out, scale, shift, mean, inverse,
            bias_gradient, weight_gradient, n_rows, n_columns,
            ADDS=beside is not None, ROWS=ROWS, COLUMNS=COLUMNS,
        )  # fmt: skip
        of_other = out if ctx.needs_input_grad[1] else None
        return out, of_other, weight_gradient, bias_gradient, None, None, None, None


def norm_relu(layer: NormReLU, x: Tensor) -> Tensor:
    """relu(batch_norm(x)); in training mode the running statistics of the layer move."""
    if layer.training:
        out: Tensor = _NormReLU.apply(x, None, *_numbers(layer))
        return out
    return _applied(_channels_last(x), None, *layer.running_scale())[0]


def add_norm_relu(layer: NormReLU, x: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """The sum of two batches and relu(batch_norm(sum))."""
    if layer.training:
        active, total = _NormReLU.apply(x, other, *_numbers(layer))
    else:
        active, total = _applied(_channels_last(x), _channels_last(other), *layer.running_scale())
    return total, active


def _numbers(layer: NormReLU) -> tuple[Any, ...]:
    return layer.weight, layer.bias, layer.running_mean, layer.running_var, layer.momentum, layer.eps


def _applied(x: Tensor, other: Tensor | None, scale: Tensor, shift: Tensor) -> tuple[Tensor, Tensor]:
    """relu(scale x + shift) and x, where x is the sum of both batches if there are two."""
    y, total = torch.empty_like(x), x if other is None else torch.empty_like(x)
    n_rows, n_columns = _shape(x)
    grid = (triton.cdiv(n_rows, ROWS), triton.cdiv(n_columns, COLUMNS))
    _apply[grid](
        x, x if other is None else other, total, y, scale, shift, n_rows, n_columns,
        ADDS=other is not None, ROWS=ROWS, COLUMNS=COLUMNS,
    )  # fmt: skip
    return y, total


def _channels_last(batch: Tensor) -> Tensor:
    return batch.contiguous(memory_format=torch.channels_last)


def _shape(batch: Tensor) -> tuple[int, int]:
    return batch.numel() // batch.shape[1], batch.shape[1]


def _grid(n_rows: int, n_columns: int) -> tuple[int, int]:
    """Tiles of columns, and stretches of rows: enough programs to fill the GPU, none without work."""
    tiles = triton.cdiv(n_columns, COLUMNS)
    return tiles, max(1, min(PROGRAMS // tiles, triton.cdiv(n_rows, ROWS)))


def _partial_sums(stretches: int, n_columns: int, device: torch.device) -> tuple[Tensor, Tensor]:
    return torch.empty(stretches, n_columns, device=device), torch.empty(stretches, n_columns, device=device)

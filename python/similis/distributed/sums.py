# SPDX-License-Identifier: Apache-2.0
"""Measures of slabs from whole sums: each rank adds up its own pixels in f64, all add these up in
the order of ranks, and the last formula runs on every rank."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Optional

import torch
from torch import Tensor

from .._library import measures
from .._torch.binding import run_measure
from .gathering import sum_of_ranks
from .operands import as_bytes, as_five
from .rows import refuse_second_derivative, whole_sum
from .slabs import Slabs

REDUCTIONS = ("mean", "sum", "per_image", "per_channel")


def result_dtype(x: Tensor) -> torch.dtype:
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def reduced(
    sums: Tensor, weights: Tensor, reduction: str, of_nothing: float = math.nan
) -> Tensor:
    """Whole sums over whole weights, both [N,C]; "sum" leaves the weights out. If these are 0, a
    mean is of_nothing, with gradient 0."""
    if reduction == "sum":
        return sums.sum()
    if reduction == "mean":
        sums, weights = sums.sum(), weights.sum()
    elif reduction == "per_image":
        sums, weights = sums.sum(1), weights.sum(1)
    is_empty = weights == 0
    means = sums / torch.where(is_empty, 1.0, weights)
    return torch.where(is_empty, torch.full_like(means, of_nothing), means)


def require_reduction(reduction: Any, also: tuple[str, ...] = ()) -> None:
    if reduction not in (*REDUCTIONS, *also):
        listed = ", ".join((*REDUCTIONS, *also))
        raise ValueError(f"reduction is {reduction!r}; it must be one of {listed}")


class _PixelErrors(torch.autograd.Function):
    """The sum of weighted errors of own pixels, [N,C] in f64: exact for integer images."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, y: Tensor, mask: Optional[Tensor], operation: str
    ) -> Tensor:
        ctx.operation = operation
        ctx.save_for_backward(x, y, mask)
        sums = x.new_zeros(x.shape[:2], dtype=torch.float64)
        measure = measures.parse(f"{operation} reduction=sum")
        for at, of_x, of_y, weights in _planes(x, y, mask):
            run_measure(measure, of_x, of_y, weights, None, None, sums[at], None, None)
        return sums

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
        refuse_second_derivative(ctx.operation)
        x, y, mask = ctx.saved_tensors
        gradients = [
            torch.empty_like(each) if of else None for each, of in zip((x, y), ctx.needs_input_grad)
        ]
        measure = measures.parse(f"{ctx.operation} reduction=sum")
        upstream = upstream.contiguous()
        for at, of_x, of_y, weights in _planes(x, y, mask):
            n, c = at
            by = [None if each is None else each[n : n + 1, c : c + 1] for each in gradients]
            run_measure(measure, of_x, of_y, weights, None, upstream[at], None, *by)
        return *gradients, None, None


def _planes(
    x: Tensor, y: Tensor, mask: Optional[Tensor]
) -> Iterator[tuple[Any, Tensor, Tensor, Optional[Tensor]]]:
    """(n, c) of each channel, its own rows of x and y, and its weights; nothing of an empty slab."""
    if not x.numel():
        return
    whole = None if mask is None else as_five(mask, x).expand(x.shape)
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            of_x, of_y, weights = (
                None if each is None else each[n : n + 1, c : c + 1] for each in (x, y, whole)
            )
            assert of_x is not None and of_y is not None
            yield (n, c), of_x, of_y, weights


def pixel_error_sums(
    operation: str, x: Tensor, y: Tensor, mask: Optional[Tensor], slabs: Slabs
) -> tuple[Tensor, Tensor]:
    """The whole's sum of weighted errors, and that of the weights, [N,C] in f64."""
    apply: Any = _PixelErrors.apply
    sums = apply(x, y, as_bytes(mask), operation)
    if mask is None:
        sums = whole_sum(sums, slabs)
        return sums, torch.full_like(sums, float(slabs.extent * math.prod(x.shape[3:])))
    of_weights = as_five(mask, x).flatten(2).sum(2, dtype=torch.float64).expand_as(sums)
    both = whole_sum(torch.stack([sums, of_weights]), slabs)
    return both[0], both[1].detach()


_CHUNK = 1 << 22  # voxels that are in f64 at a time


def _chunks(x: Tensor, y: Tensor) -> Any:
    """Rows of x and y in f64, a few at a time, and where they are."""
    rows = max(1, _CHUNK // max(math.prod(x.shape) // max(x.shape[2], 1), 1))
    for first in range(0, x.shape[2], rows):
        at = slice(first, min(first + rows, x.shape[2]))
        yield at, x[:, :, at].double(), y[:, :, at].double()


class _Ncc(torch.autograd.Function):
    """NCC of each channel, [N,C] in f64, from whole means and then whole moments about them."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, slabs: Slabs) -> Tensor:
        count = float(slabs.extent * math.prod(x.shape[3:]))
        sums = x.new_zeros((2, *x.shape[:2]), dtype=torch.float64)
        for _, a, b in _chunks(x, y):
            sums += torch.stack([a.flatten(2).sum(2), b.flatten(2).sum(2)])
        means = sum_of_ranks(slabs, sums) / count
        of_x, of_y = (each.reshape(*x.shape[:2], *[1] * (x.dim() - 2)) for each in means)
        moments = x.new_zeros((3, *x.shape[:2]), dtype=torch.float64)
        for _, a, b in _chunks(x, y):
            a, b = a - of_x, b - of_y
            products = (a * a, b * b, a * b)
            moments += torch.stack([each.flatten(2).sum(2) for each in products])
        xx, yy, xy = sum_of_ranks(slabs, moments)
        norm = xx.sqrt() * yy.sqrt()
        is_flat = norm == 0
        safe = torch.where(is_flat, torch.ones_like(norm), norm)
        value = torch.where(is_flat, torch.zeros_like(norm), (xy / safe).clamp(-1, 1))
        cross = torch.where(is_flat, torch.zeros_like(norm), 1 / safe)
        own_x = torch.where(is_flat, torch.zeros_like(norm), value / xx)
        own_y = torch.where(is_flat, torch.zeros_like(norm), value / yy)
        ctx.save_for_backward(x, y, means, cross, own_x, own_y)
        return value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
        refuse_second_derivative("ncc")
        x, y, means, *slopes = ctx.saved_tensors
        shape = [*x.shape[:2], *[1] * (x.dim() - 2)]
        of_x, of_y = (each.reshape(shape) for each in means)
        cross, own_x, own_y = ((each * upstream).reshape(shape) for each in slopes)
        gradients = [
            torch.empty_like(each) if of else None for each, of in zip((x, y), ctx.needs_input_grad)
        ]
        for at, a, b in _chunks(x, y):
            a, b = a - of_x, b - of_y
            if gradients[0] is not None:
                gradients[0][:, :, at] = cross * b - own_x * a
            if gradients[1] is not None:
                gradients[1][:, :, at] = cross * a - own_y * b
        return gradients[0], gradients[1], None


def correlation(x: Tensor, y: Tensor, slabs: Slabs, reduction: str) -> Tensor:
    """ncc, in f64."""
    apply: Any = _Ncc.apply
    values = apply(x, y, slabs)
    return reduced(values, torch.ones_like(values), reduction)


def weighted_sums(rows: Tensor, weights: Tensor, slabs: Slabs) -> tuple[Tensor, Tensor]:
    """Whole sums of own rows of an array, weighted, [N,C], and of the weights, shaped as it."""
    shape = rows.shape[:2]
    sums = (rows.double() * weights).flatten(2).sum(2)
    of_weights = weights.expand_as(rows).flatten(2).sum(2, dtype=torch.float64)
    both = whole_sum(torch.stack([sums, of_weights]).reshape(2, *shape), slabs)
    return both[0], both[1].detach()

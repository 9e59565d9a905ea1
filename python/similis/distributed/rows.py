# SPDX-License-Identifier: Apache-2.0
"""Rows of other ranks inside autograd."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import torch
from torch import Tensor

from .agreement import Agreement, heard
from .gathering import sum_of_ranks
from .slabs import Interval, Slabs
from .transport import Exchange, send_home


def refuse_second_derivative(operation: str) -> None:
    """Raises in a backward pass that is recorded; all ranks run the same one."""
    if torch.is_grad_enabled():
        raise NotImplementedError(f"{operation}: gradients of gradients are not supported")


class _Rows(torch.autograd.Function):
    """Rows wanted[rank] of x on each rank; their gradients go home."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, slabs: Slabs, wanted: Sequence[Interval], axis: int, wide: bool
    ) -> Tensor:
        ctx.slabs, ctx.wanted, ctx.axis, ctx.dtype = slabs, wanted, axis, x.dtype
        rows = Exchange(slabs, x, wanted, axis).rows()
        if wide and x.dtype in (torch.float16, torch.bfloat16):
            return rows.float()
        return rows.clone() if rows.data_ptr() == x.data_ptr() else rows

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
        refuse_second_derivative("halo")
        gradient = send_home(ctx.slabs, upstream, ctx.wanted, ctx.axis)
        return gradient.to(ctx.dtype), None, None, None, None


def rows_of(
    x: Tensor, slabs: Slabs, wanted: Sequence[Interval], axis: int, wide: bool = False
) -> Tensor:
    """wide: halves are f32 where rows come from others, so that the sum of their gradients alone is
    rounded; they travel as halves."""
    if list(wanted) == [slabs.rows(rank) for rank in range(slabs.ranks)]:
        return x
    apply: Any = _Rows.apply
    rows: Tensor = apply(x, slabs, list(wanted), axis, wide)
    return rows


def halos(slabs: Slabs, before: int, after: int) -> list[Interval]:
    """The rows of each rank and those around them, within the axis; none for an empty slab."""
    result = []
    for rank in range(slabs.ranks):
        start, stop = slabs.rows(rank)
        if start == stop:
            result.append((start, start))
        else:
            result.append((max(start - before, 0), min(stop + after, slabs.extent)))
    return result


@heard
def halo(x: Tensor, slabs: Slabs, before: int, after: int, axis: int = 2) -> Tensor:
    """The rank's rows of x with `before` rows in front of them and `after` behind.

    They come from whoever holds them, from several ranks where these have fewer, and are cut at the
    ends of the axis. An empty slab gets none. Differentiable once: gradients of rows go to their
    owner, which adds them in the order of ranks.
    """
    with Agreement("halo", slabs, before=before, after=after, axis=axis) as agreement:
        if not isinstance(axis, int):
            raise ValueError(f"axis is {axis!r}; it must be a whole number")
        agreement.array("x", x, slabs, axis)
        if not all(isinstance(each, int) and each >= 0 for each in (before, after)):
            raise ValueError(
                f"before is {before!r} and after is {after!r}; they must be whole numbers of 0 or more"
            )
    return rows_of(x, slabs, halos(slabs, before, after), axis % x.dim())


class _WholeSum(torch.autograd.Function):
    """The sum of all ranks' partials. Every rank's upstream gradient is the same, and is that of
    its own partials."""

    @staticmethod
    def forward(ctx: Any, partials: Tensor, slabs: Slabs) -> Tensor:
        return sum_of_ranks(slabs, partials)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
        return upstream, None


def whole_sum(partials: Tensor, slabs: Slabs) -> Tensor:
    apply: Any = _WholeSum.apply
    whole: Tensor = apply(partials, slabs)
    return whole

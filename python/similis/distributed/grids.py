# SPDX-License-Identifier: Apache-2.0
"""affine_grid() on slabs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import torch
from torch import Tensor

from .._functions.dispatch import Coordinates
from .._library import warp
from .._torch.binding import run_transform
from .agreement import Agreement
from .gathering import sum_of_ranks
from .rows import refuse_second_derivative
from .slabs import Slabs


def own_shape_of(out_shape: Optional[Sequence[int]], slabs: Slabs) -> Optional[list[int]]:
    if out_shape is None:
        return None
    if out_shape[0] != slabs.extent:
        raise ValueError(
            f"out_shape has {out_shape[0]} rows; slabs have {slabs.extent}: give the whole's shape"
        )
    return [slabs.stop - slabs.start, *out_shape[1:]]


class _AffineGrid(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, affine: Tensor, field: Optional[Tensor], slabs: Slabs, call: str, shape: Any
    ) -> Tensor:
        ctx.slabs, ctx.call = slabs, call
        ctx.save_for_backward(affine, field)
        result = (affine if field is None else field).new_empty(shape)
        if result.numel():
            run_transform(warp.parse(call), (affine, None, field, None), (result, None, None))
        return result

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
        refuse_second_derivative("affine_grid")
        affine, field = ctx.saved_tensors
        by_affine = by_field = None
        if ctx.needs_input_grad[0]:
            sums = torch.zeros_like(affine, dtype=torch.float64)
            if upstream.numel():
                operands = (affine, None, field, None)
                run_transform(warp.parse(ctx.call), operands, (None, upstream, sums))
            by_affine = sum_of_ranks(ctx.slabs, sums).to(affine.dtype)
        if field is not None and ctx.needs_input_grad[1]:
            by_field = upstream.to(field.dtype)
            if field.shape[0] != upstream.shape[0]:
                by_field = by_field.sum(0, keepdim=True)
        return by_affine, by_field, None, None, None


def affine_grid(
    affine: Tensor,
    displacement: Optional[Tensor],
    slabs: Slabs,
    *,
    out_shape: Optional[Sequence[int]] = None,
    align_corners: bool = True,
    min_coords: Coordinates = None,
    max_coords: Coordinates = None,
) -> Tensor:
    """similis.affine_grid(): own rows of A·x + u(x). out_shape is the whole's, needed without u."""
    options: dict[str, Any] = {
        "align_corners": align_corners,
        "min_coords": min_coords,
        "max_coords": max_coords,
    }
    with Agreement("affine_grid", slabs, out_shape=out_shape, **options) as agreement:
        agreement.whole("affine", affine)
        agreement.array("displacement", displacement, slabs, 1, may_be_none=True)
        if displacement is None and out_shape is None:
            raise ValueError("out_shape is None; give it or a displacement")
        own = own_shape_of(out_shape, slabs)
        shape = [affine.shape[0], *own, len(own)] if own else []
        if displacement is not None:
            shape = list(displacement.shape)
            shape[0] = max(affine.shape[0], displacement.shape[0])
        space = None if displacement is not None or own is None else [max(own[0], 1), *own[1:]]
        call = warp.text(
            "affine_grid", **options, out_shape=space, rows=(slabs.start, slabs.extent)
        )
    apply: Any = _AffineGrid.apply
    grid: Tensor = apply(affine, displacement, slabs, call, shape)
    return grid

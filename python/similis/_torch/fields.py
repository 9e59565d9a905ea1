# SPDX-License-Identifier: Apache-2.0
"""Exponential, inverse and Jacobian determinant of a vector field of torch.

similis::field_map  invert: the inverse and its residual; jacobian_determinant: that and its folds;
                    exponentiate: the exponential, and nothing
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import torch
from torch import Tensor

from .._library import warp
from . import elsewhere
from .binding import c_tensor, run_transform, stream_of
from .devices import is_elsewhere, widest
from .plain import transform_of
from .registry import define, differentiate
from .tensors import TELLS_KEYS, is_memory, is_traced, is_transformed, nobody_looks
from .transforms import is_deterministic, require_operands, transform

_Coordinates = Optional[Sequence[float]]
_Pair = Optional[Sequence[int]]


def _field_map_shapes(field: Tensor, number: Optional[int], call: str) -> tuple[Tensor, Tensor]:
    parsed = warp.parse(call)
    voxels = [field.shape[0], *(parsed.out_shape or field.shape[1:-1])]
    if parsed.operation == "invert":
        wide = torch.float64 if field.dtype == torch.float64 else torch.float32
        result = field.new_empty([*voxels, field.shape[-1]])
        return result, field.new_empty(field.shape[:1], dtype=wide)
    if parsed.operation == "exponentiate":
        return field.new_empty(field.shape), field.new_empty((0,))
    return field.new_empty(voxels), field.new_empty(field.shape[:1], dtype=torch.float64)


def _field_map(field: Tensor, number: Optional[int], call: str) -> tuple[Tensor, Tensor]:
    parsed = warp.parse(call)
    results = _field_map_shapes(field, number, call)
    if number is None:
        run_transform(parsed, (field, None, None, None), results)
        return results
    outputs = [c_tensor(each) for each in results if each.numel() != 0]
    threads = torch.get_num_threads()
    warp.run_on_field(parsed, c_tensor(field), number, outputs, stream_of(field), threads)
    return results


field_map_op = define(
    "field_map(Tensor field, int? number, str call) -> (Tensor, Tensor)",
    _field_map,
    _field_map_shapes,
)


def _exponential(v: Tensor, n: int, align_corners: bool) -> Tensor:
    """Repeated compose(), differentiable."""
    call = warp.text("compose", align_corners=align_corners, deterministic=is_deterministic())
    u = (v if v.dtype == torch.float64 else v.float()) * 2.0**-n
    for _ in range(n):
        operands = (u, None, u, None)
        plain = transform_of(call, operands)
        u = u + (transform(call, ("u", "affine", "v"), operands) if plain is None else plain)
    return u.to(v.dtype)


def determinant(
    u: Tensor, align_corners: bool, low: _Coordinates, high: _Coordinates, rows: _Pair, u_rows: _Pair
) -> Tensor:
    """In torch's operators, differentiable; of all rows, or of those of a longer field."""
    extent = 0 if u_rows is None else u_rows[1]
    det = _determinant_of_slopes(u, warp.voxel_spacing(u.shape, align_corners, low, high, extent))
    if rows is None or u_rows is None:
        return det
    return det.narrow(1, rows[0] - u_rows[0], rows[1] - rows[0])


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    field, ctx.number, ctx.call = inputs
    ctx.save_for_backward(field)
    ctx.mark_non_differentiable(output[1])


def _backward(ctx: Any, upstream: Tensor, _: Any) -> tuple[Tensor, None, None]:
    """The operator's gradient in a graph of torch.jit, by the differentiable functions above."""
    (field,) = ctx.saved_tensors
    parsed, again = warp.parse(ctx.call), torch.is_grad_enabled()
    options, rows, u_rows = parsed.values, None, None
    if parsed.out_shape:
        start, u_rows = options["rows"][0], options["image_rows"]
        rows = start, start + parsed.out_shape[0]
    with torch.enable_grad():
        if not again:
            field = field.detach().requires_grad_()
        if parsed.operation == "exponentiate":
            result = _exponential(field, ctx.number, options["align_corners"])
        else:
            result = determinant(
                field,
                options["align_corners"],
                options["min_coords"],
                options["max_coords"],
                rows,
                u_rows,
            )
        (gradient,) = torch.autograd.grad(result, field, upstream, create_graph=again)
    return gradient, None, None


differentiate("field_map", _backward, _remember)


def _map(field: Tensor, number: Optional[int], call: str) -> tuple[Tensor, Tensor]:
    """The operator, or its implementation, which takes half the time, where nobody looks."""
    if TELLS_KEYS and nobody_looks() and is_memory(field) and not is_transformed():
        return _field_map(field, number, call)
    result, other = field_map_op(field if is_traced() else field.detach(), number, call)
    return result, other


def _differentiates(field: Tensor) -> bool:
    """True if somebody may ask for a derivative of what is computed from the field now."""
    if torch.compiler.is_compiling() or not is_transformed():
        return torch.is_grad_enabled() and field.requires_grad
    return True


def exponentiate(v: Tensor, n: int, align_corners: bool, call: str) -> Tensor:
    require_operands("exponentiate", ("v",), (v,))
    if is_elsewhere(v):
        elsewhere.warn("exponentiate", v.device)
        return _exponential(v, n, align_corners)
    if _differentiates(v) and not is_traced():
        return _exponential(v, n, align_corners)
    return _map(v, n, call)[0]


def invert(u: Tensor, iterations: int, call: str) -> tuple[Tensor, Tensor]:
    require_operands("invert", ("u",), (u,))
    if is_elsewhere(u):
        return elsewhere.invert(u.detach(), iterations, warp.parse(call))
    return _map(u, iterations, call)


def jacobian_determinant(
    u: Tensor,
    call: str,
    align_corners: bool,
    low: _Coordinates,
    high: _Coordinates,
    rows: _Pair = None,
    u_rows: _Pair = None,
) -> tuple[Tensor, Tensor]:
    """The determinant and the number of folds."""
    require_operands("jacobian_determinant", ("u",), (u,))
    if is_elsewhere(u):
        elsewhere.warn("jacobian_determinant", u.device)
        det = determinant(u, align_corners, low, high, rows, u_rows)
        return det, (~(det > 0)).flatten(1).sum(1).to(widest(u.device))
    det, folds = _map(u, None, call)
    if _differentiates(u) and not is_traced():
        det = determinant(u, align_corners, low, high, rows, u_rows)
    return det, folds


def _determinant_of_slopes(u: Tensor, spacing: Sequence[float]) -> Tensor:
    """spacing: along (x, y, z)."""
    rank = u.dim() - 2
    wide = u if u.dtype == torch.float64 else u.float()
    columns = []
    for axis in range(rank):
        extent = u.shape[rank - axis]
        along = wide.movedim(rank - axis, 0)
        if extent == 1:
            slope = torch.zeros_like(along)
        else:
            inner = (along[2:] - along[:-2]) / (2 * spacing[axis])
            first = (along[1:2] - along[:1]) / spacing[axis]
            last = (along[-1:] - along[-2:-1]) / spacing[axis]
            slope = torch.cat([first, inner, last])
        columns.append(slope.movedim(0, rank - axis))
    j = torch.stack(columns, -1) + torch.eye(rank, dtype=wide.dtype, device=u.device)
    if rank == 2:
        result = j[..., 0, 0] * j[..., 1, 1] - j[..., 0, 1] * j[..., 1, 0]
    else:
        result = (torch.linalg.cross(j[..., :, 0], j[..., :, 1]) * j[..., :, 2]).sum(-1)
    return result.to(u.dtype)

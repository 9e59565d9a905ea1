# SPDX-License-Identifier: Apache-2.0
"""Exponential, inverse and Jacobian determinant of a vector field of torch.

similis::field_map  invert: the inverse and its residual; jacobian_determinant: that and its folds;
                    exponentiate: the exponential, and nothing
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

import torch
from torch import Tensor

from .._library import warp
from .binding import c_tensor, stream_of
from .registry import define
from .tensors import is_transformed
from .transforms import is_deterministic, require_operands, transform

_Coordinates = Optional[Sequence[float]]


def _field_map_shapes(field: Tensor, number: Optional[int], call: str) -> tuple[Tensor, Tensor]:
    if call.startswith("invert "):
        wide = torch.float64 if field.dtype == torch.float64 else torch.float32
        return field.new_empty(field.shape), field.new_empty(field.shape[:1], dtype=wide)
    if call.startswith("exponentiate "):
        return field.new_empty(field.shape), field.new_empty((0,))
    folds = field.new_empty(field.shape[:1], dtype=torch.float64)
    return field.new_empty(field.shape[:-1]), folds


def _field_map(field: Tensor, number: Optional[int], call: str) -> tuple[Tensor, Tensor]:
    results = _field_map_shapes(field, number, call)
    with torch.cuda.device_of(field):
        outputs = [c_tensor(each) for each in results if each.numel() != 0]
        warp.run_on_field(warp.parse(call), c_tensor(field), number, outputs, stream_of(field))
    return results


field_map_op = define(
    "field_map(Tensor field, int? number, str call) -> (Tensor, Tensor)",
    _field_map,
    _field_map_shapes,
)


def exponentiate(v: Tensor, n: int, align_corners: bool) -> Tensor:
    """The library's, or repeated compose() where somebody may differentiate it."""
    require_operands("exponentiate", ("v",), (v,))
    transformed = not torch.compiler.is_compiling() and is_transformed()
    if not transformed and not (torch.is_grad_enabled() and v.requires_grad):
        call = warp.text("exponentiate", align_corners=align_corners)
        return field_map_op(v.detach(), n, call)[0]
    call = warp.text("compose", align_corners=align_corners, deterministic=is_deterministic())
    u = (v if v.dtype == torch.float64 else v.float()) * 2.0**-n
    for _ in range(n):
        u = u + transform(call, ("u", "affine", "v"), (u, None, u, None))
    return u.to(v.dtype)


def invert(u: Tensor, iterations: int, call: str) -> tuple[Tensor, Tensor]:
    require_operands("invert", ("u",), (u,))
    inverse, residual = field_map_op(u.detach(), iterations, call)
    return inverse, residual


def _spacing(u: Tensor, align_corners: bool, low: _Coordinates, high: _Coordinates) -> list[float]:
    """The distance between voxels along (x, y, z)."""
    rank = u.dim() - 2
    result = []
    for axis in range(rank):
        n = int(u.shape[rank - axis])
        edge = 1.0 if align_corners else 1 - 1 / n
        first = -edge if low is None else low[axis]
        last = edge if high is None else high[axis]
        result.append((last - first) / max(n - 1, 1))
    return result


def jacobian_determinant(
    u: Tensor, call: str, align_corners: bool, low: _Coordinates, high: _Coordinates
) -> tuple[Tensor, Tensor]:
    """The determinant and the number of folds; a derivative is computed by decomposition."""
    require_operands("jacobian_determinant", ("u",), (u,))
    det, folds = field_map_op(u.detach(), None, call)
    transformed = not torch.compiler.is_compiling() and is_transformed()
    if transformed or (torch.is_grad_enabled() and u.requires_grad):
        det = _determinant(u, _spacing(u, align_corners, low, high))
    return det, folds


def _determinant(u: Tensor, spacing: Sequence[float]) -> Tensor:
    """The determinant in torch's operators, differentiable; spacing: along (x, y, z)."""
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

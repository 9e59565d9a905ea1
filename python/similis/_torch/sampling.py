# SPDX-License-Identifier: Apache-2.0
"""Sampling and composing in torch's own operators, for devices that the library has no kernels for.

    coordinate of a voxel ─ affine, field ─> index of a voxel ─ padding folded ─> voxels around it
    and their weights along each axis ─> gathered and added

Each step is differentiable. Indices are formed in f64 where the device has it; in f32 they are off
by up to 2⁻²⁴ of the axis, 1e-5 of a voxel for an axis of 200.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor

from .._library import warp
from .devices import widest

_FAR_OUTSIDE = -8.0  # an index that no voxel is near of


class _Axis(NamedTuple):
    """index = scale·(origin + step·i) + shift of the output's voxel i, under the identity; voxels of the
    output and extent of the image."""

    voxels: int
    extent: int
    origin: float
    step: float
    scale: float
    shift: float


def _cubic_weights(f: Tensor) -> list[Tensor]:
    """A cubic B-spline's weights of voxels -1, 0, 1 and 2, for a position f above voxel 0."""
    g = 1 - f
    return [
        g * g * g / 6,
        (4 - 3 * f * f * (2 - f)) / 6,
        (4 - 3 * g * g * (2 - g)) / 6,
        f * f * f / 6,
    ]


@functools.lru_cache(maxsize=16)
def _inverse_filter(count: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """From voxels along an axis to coefficients: the inverse of (c[i-1] + 4c[i] + c[i+1]) / 6,
    mirrored at both ends. It depends on the count alone, and is computed on the CPU in f64."""
    matrix = torch.zeros(count, count, dtype=torch.float64, device="cpu")
    for i in range(count):
        for neighbour, weight in ((i - 1, 1 / 6), (i, 4 / 6), (i + 1, 1 / 6)):
            at = abs(neighbour)
            matrix[i, at if at < count else 2 * (count - 1) - at] += weight
    return torch.linalg.inv(matrix).to(dtype).to(device)


def _coefficients(image: Tensor) -> Tensor:
    """Those of the cubic B-spline through the voxels of [N,C,…], along every spatial axis."""
    for axis in range(2, image.dim()):
        count = image.shape[axis]
        if count > 1:
            matrix = _inverse_filter(count, image.dtype, image.device)
            image = (image.movedim(axis, -1) @ matrix.T).movedim(-1, axis)
    return image


def require_shapes(
    call: warp.Call,
    names: Sequence[str],
    operand: Tensor,
    affine: Optional[Tensor],
    field: Optional[Tensor],
    grid_affine: Optional[Tensor],
) -> None:
    """Raises unless the operands' shapes fit, and for options that only the library takes."""
    operation = call.operation
    for name in ("image_rows", "cells"):
        if call.values.get(name) is not None:
            raise TypeError(
                f"{operation}: {name} is given and {names[0]} is on {operand.device}; parts of an "
                "image are sampled on the CPU"
            )
    if operation == "affine_grid":
        rank = operand.shape[1] if operand.dim() == 3 else 0
        affine = operand
    elif operation == "compose":
        rank = _rank_of_field(operation, names[0], operand)
    else:
        rank = operand.dim() - 2
        if rank not in (2, 3):
            raise ValueError(
                f"{operation}: {names[0]} has shape {list(operand.shape)}; it must be "
                "[N, C, Y, X] or [N, C, Z, Y, X]"
            )
    if field is not None and _rank_of_field(operation, names[2], field) != rank:
        raise ValueError(
            f"{operation}: {names[2]} has shape {list(field.shape)}; {names[0]} is {rank}D"
        )
    if field is None and grid_affine is not None:
        raise ValueError(
            f"{operation}: grid_affine is given without a displacement or a grid to multiply"
        )
    for matrix, name, columns in ((affine, "affine", rank + 1), (grid_affine, "grid_affine", rank)):
        if matrix is not None and (rank == 0 or list(matrix.shape[1:]) != [rank, columns]):
            wanted = f"[N, {rank}, {columns}]" if rank else "[N, 2, 3] or [N, 3, 4]"
            raise ValueError(
                f"{operation}: {name} has shape {list(matrix.shape)}; it must be {wanted}"
            )
    out_shape = call.values.get("out_shape")
    if out_shape is not None and len(out_shape) != rank:
        raise ValueError(f"{operation}: out_shape is {out_shape}; it must have {rank} extents")
    if out_shape is not None and field is not None and out_shape != list(field.shape[1:-1]):
        raise ValueError(
            f"{operation}: out_shape is {out_shape}; it must be that of the field, "
            f"{list(field.shape[1:-1])}"
        )
    _require_batches(operation, names, (operand, affine, field, grid_affine))


def _rank_of_field(operation: str, name: str, field: Tensor) -> int:
    rank = field.dim() - 2
    if rank not in (2, 3) or field.shape[-1] != rank:
        raise ValueError(
            f"{operation}: {name} has shape {list(field.shape)}; it must be [N, Y, X, 2] or "
            "[N, Z, Y, X, 3]"
        )
    return rank


def _require_batches(
    operation: str, names: Sequence[str], operands: Sequence[Optional[Tensor]]
) -> None:
    batch = 1
    for name, each in zip(names, operands):
        if each is None or each.shape[0] == 1:
            continue
        if batch not in (1, each.shape[0]):
            raise ValueError(
                f"{operation}: {name} has N = {each.shape[0]}, and another operand {batch}; they "
                "must be alike, or one of them 1"
            )
        batch = each.shape[0]


def _output_shape(call: warp.Call, operand: Tensor, field: Optional[Tensor]) -> list[int]:
    if field is not None:
        return list(field.shape[1:-1])
    if call.out_shape:
        return list(call.out_shape)
    return list(operand.shape[1:-1] if call.operation == "compose" else operand.shape[2:])


def _axes(call: warp.Call, output: Sequence[int], image: Sequence[int]) -> list[_Axis]:
    """Along x, y and z."""
    aligned = call.values["align_corners"]
    low, high = call.values.get("min_coords"), call.values.get("max_coords")
    rows = call.values.get("rows")
    axes = []
    for axis, (count, extent) in enumerate(zip(reversed(output), reversed(image))):
        whole, first = count, 0
        if rows is not None and axis == len(output) - 1:
            first, whole = rows[0], rows[1]
        edge = 1.0 if aligned else 1 - 1 / whole
        begin = -edge if low is None else low[axis]
        end = edge if high is None else high[axis]
        if whole == 1:
            origin, step = (begin + end) / 2, 0.0
        else:
            step = (end - begin) / (whole - 1)
            origin = begin + step * first
        scale = (extent - 1) / 2 if aligned else extent / 2
        axes.append(_Axis(count, extent, origin, step, scale, (extent - 1) / 2))
    return axes


def _along(axes: Sequence[_Axis], axis: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """0, 1, … along one axis of the output, shaped to be broadcast to it."""
    shape = [1] * len(axes)
    shape[len(axes) - 1 - axis] = axes[axis].voxels
    return torch.arange(axes[axis].voxels, dtype=dtype, device=device).reshape(shape)


def _indices(
    axes: Sequence[_Axis],
    is_grid: bool,
    affine: Optional[Tensor],
    field: Optional[Tensor],
    grid_affine: Optional[Tensor],
    like: Tensor,
) -> list[Tensor]:
    """The index of the image's voxel along x, y and z, [N,Y,X] or [N,Z,Y,X] of f64 or f32."""
    dtype, rank = widest(like.device), len(axes)
    if field is not None:
        field = field.to(dtype)
        if grid_affine is not None:
            matrix = grid_affine.to(dtype).reshape(-1, *[1] * rank, rank, rank)
            field = (matrix * field[..., None, :]).sum(-1)
    counters = [_along(axes, axis, dtype, like.device)[None] for axis in range(rank)]
    space = [axis.voxels for axis in reversed(axes)]
    indices = []
    for a, axis in enumerate(axes):
        index: Any = axis.shift
        if not is_grid and affine is None:
            index = axis.scale * axis.step * counters[a] + (axis.scale * axis.origin + axis.shift)
        elif not is_grid:
            assert affine is not None
            row = affine[:, a].to(dtype).reshape(-1, rank + 1, *[1] * rank)
            constant = row[:, rank] * axis.scale + axis.shift
            for j, other in enumerate(axes):
                constant = constant + row[:, j] * (other.origin * axis.scale)
                index = row[:, j] * (other.step * axis.scale) * counters[j] + (index if j else 0)
            index = index + constant
        if field is not None:
            index = index + axis.scale * field[..., a]
        indices.append(index.expand(-1, *space))
    return indices


def _folded(index: Tensor, last: int, padding: str, aligned: bool) -> Tensor:
    """The index with the padding folded in; its slope is 0 at and beyond the border."""
    given = index
    if padding == "reflection":
        low, span = (0.0, float(last)) if aligned else (-0.5, last + 1.0)
        if span > 0:
            distance = (index - low).abs()
            flips = (distance.detach() / span).floor()
            rest = distance - flips * span
            is_odd = flips - 2 * (flips / 2).floor() != 0
            index = low + torch.where(is_odd, span - rest, rest)
    if padding != "zeros":
        index = torch.where(index > 0, index, 0.0)
        index = torch.where(index < last, index, float(last))
    index = torch.where(torch.isfinite(given.detach()) & (index > _FAR_OUTSIDE), index, _FAR_OUTSIDE)
    return torch.where(index < last - _FAR_OUTSIDE, index, last - _FAR_OUTSIDE)


class _Taps(NamedTuple):
    """Voxels along one axis, whether they exist, and their weights."""

    voxel: Tensor
    exists: Tensor
    weight: Tensor


def _taps(index: Tensor, extent: int, mode: str) -> list[_Taps]:
    if mode == "nearest":
        voxel = index.detach().round().long()
        return [_inside(voxel, extent, torch.ones_like(index.detach()))]
    first = index.detach().floor()
    f, voxel = index - first, first.long()
    if mode == "linear":
        return [_inside(voxel, extent, 1 - f), _inside(voxel + 1, extent, f)]
    margin = 1e-6 if index.dtype == torch.float64 else 1e-4  # rounding moves a corner by less
    inside = (index >= -margin) & (index <= extent - 1 + margin)
    return [
        _Taps(_mirrored(voxel - 1 + k, extent), inside, weight)
        for k, weight in enumerate(_cubic_weights(f))
    ]


def _inside(voxel: Tensor, extent: int, weight: Tensor) -> _Taps:
    return _Taps(voxel.clamp(0, extent - 1), (voxel >= 0) & (voxel < extent), weight)


def _mirrored(voxel: Tensor, extent: int) -> Tensor:
    """Mirrored at the outermost voxels, without repeating them."""
    if extent == 1:
        return torch.zeros_like(voxel)
    rest = voxel.remainder(2 * (extent - 1))
    return torch.where(rest < extent, rest, 2 * (extent - 1) - rest)


class _Corners(NamedTuple):
    """The voxels around each coordinate: positions in the flat image [N,P], whether each exists,
    and weights [N,P]."""

    positions: list[Tensor]
    exists: list[Tensor]
    weights: list[Tensor]
    not_numbers: Tensor  # [N,P], NaN where the coordinate is, else 0; its gradient is NaN there


def _corners(
    call: warp.Call, axes: Sequence[_Axis], indices: Sequence[Tensor], mode: str
) -> _Corners:
    padding, aligned = call.values["padding_mode"], call.values["align_corners"]
    total = indices[0]
    for index in indices[1:]:
        total = total + index
    is_nan = torch.stack([index.detach().isnan() for index in indices]).any(0)
    marks = torch.where(is_nan, torch.nan, 0.0).to(total.dtype)
    finite = torch.where(torch.isfinite(total.detach()) | is_nan, total, 0.0)
    along = []
    for axis, index in zip(axes, indices):
        folded = _folded(index, axis.extent - 1, padding, aligned)
        along.append(_taps(folded, axis.extent, mode))
    corners = _Corners([], [], [], (finite * marks).flatten(1))
    for taps in itertools.product(*reversed(along)):  # x fastest
        position, exists, weight = taps[0]
        for axis, tap in zip(list(reversed(axes))[1:], taps[1:]):
            position = position * axis.extent + tap.voxel
            exists = exists & tap.exists
            weight = weight * tap.weight
        corners.positions.append(position.flatten(1))
        corners.exists.append(exists.flatten(1))
        corners.weights.append(weight.flatten(1))
    return corners


def _gathered(image: Tensor, positions: Tensor) -> Tensor:
    """[N,C,P] of an image [N,C,V] and positions [N,P]; each N may be 1."""
    batch = max(image.shape[0], positions.shape[0])
    index = positions[:, None].expand(batch, image.shape[1], -1)
    return image.expand(batch, -1, -1).gather(2, index)


def _prepared(
    call: warp.Call,
    image: Tensor,
    affine: Optional[Tensor],
    field: Optional[Tensor],
    grid_affine: Optional[Tensor],
    mode: str,
) -> tuple[_Corners, list[int]]:
    """The corners, and the shape of the output's space."""
    space = _output_shape(call, image, field)
    axes = _axes(call, space, image.shape[2:])
    indices = _indices(axes, call.is_grid, affine, field, grid_affine, image)
    return _corners(call, axes, indices, mode), space


def _sample(
    call: warp.Call,
    image: Tensor,
    affine: Optional[Tensor],
    field: Optional[Tensor],
    grid_affine: Optional[Tensor],
) -> Tensor:
    mode = call.values.get("mode", "linear")
    wide = torch.float64 if image.dtype == torch.float64 else torch.float32
    values = image.to(wide)
    if mode == "cubic" and call.values["prefilter"]:
        values = _coefficients(values)
    corners, space = _prepared(call, image, affine, field, grid_affine, mode)
    flat = values.flatten(2)
    result: Any = 0
    for position, exists, weight in zip(corners.positions, corners.exists, corners.weights):
        weight = torch.where(exists, weight, 0.0).to(wide)[:, None]
        # A voxel that weighs nothing adds nothing, whatever it holds.
        voxels = torch.where(exists[:, None], _gathered(flat, position), 0.0)
        result = result + weight * voxels
    marks = corners.not_numbers.to(wide)[:, None]
    result = torch.where(marks.detach().isnan(), marks, result)
    return result.unflatten(2, space).to(image.dtype)


def transform(
    call: warp.Call,
    operand: Tensor,
    affine: Optional[Tensor],
    field: Optional[Tensor],
    grid_affine: Optional[Tensor],
) -> Tensor:
    """sample, compose or affine_grid of operands whose shapes fit."""
    if call.operation == "sample":
        return _sample(call, operand, affine, field, grid_affine)
    if call.operation == "compose":
        image = operand.movedim(-1, 1)
        return _sample(call, image, affine, field, None).movedim(1, -1)
    return _affine_grid(call, operand, field)


def _affine_grid(call: warp.Call, affine: Tensor, field: Optional[Tensor]) -> Tensor:
    model = affine if field is None else field
    space = list(call.out_shape) if field is None else list(field.shape[1:-1])
    axes, dtype = _axes(call, space, space), widest(affine.device)
    columns = []
    for a in range(len(axes)):
        row = affine[:, a].to(dtype).reshape(-1, len(axes) + 1, *[1] * len(axes))
        total = row[:, len(axes)]
        for j, axis in enumerate(axes):
            counter = _along(axes, j, dtype, affine.device)[None]
            total = total + row[:, j] * (axis.origin + axis.step * counter)
        columns.append(total.expand(-1, *space))
    result = torch.stack(columns, -1)
    if field is not None:
        result = result + field.to(dtype)
    return result.to(model.dtype)


def labels(
    call: warp.Call,
    image: Tensor,
    affine: Optional[Tensor],
    field: Optional[Tensor],
    grid_affine: Optional[Tensor],
) -> tuple[Tensor, Tensor]:
    """Label and weight: labels keep their dtype and are compared as they are."""
    corners, space = _prepared(call, image, affine, field, grid_affine, "linear")
    wide = torch.float64 if image.dtype == torch.float64 else torch.float32
    flat = image.detach().flatten(2)
    smallest = call.values["smallest_label"]
    votes, found = [], []
    for position, exists, weight in zip(corners.positions, corners.exists, corners.weights):
        label = _gathered(flat, position)
        counts = exists[:, None] & (label == label)
        if smallest is not None and math.isfinite(smallest):
            counts = counts & (label >= smallest)
        found.append(label)
        votes.append(torch.where(counts, weight.to(wide)[:, None], 0.0))
    best = torch.zeros_like(votes[0])
    winner = torch.full_like(found[0], _background(call, image))
    for label in found:
        total: Any = 0
        for other, vote in zip(found, votes):
            total = total + torch.where(other == label, vote, 0.0)
        wins = total.detach() > best.detach()
        best, winner = torch.where(wins, total, best), torch.where(wins, label, winner)
    marks = corners.not_numbers.to(wide)[:, None]
    is_nan = marks.detach().isnan()
    best = torch.where(is_nan, marks, best)
    background = torch.full_like(winner, _background(call, image))
    winner = torch.where(is_nan, background, winner)
    return winner.unflatten(2, space), best.unflatten(2, space)


def _background(call: warp.Call, image: Tensor) -> Any:
    background = call.values["background"]
    return background if image.is_floating_point() else int(background)

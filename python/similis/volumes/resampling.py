# SPDX-License-Identifier: Apache-2.0
"""Volumes on the grid of another, by the rules of `similis warp` (docs/volumes.md)."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy
from numpy.typing import NDArray

from .._functions.transforms import sample, sample_labels
from .._library import values
from .grids import TURN, Grid, Matrix, Volume, as_grid, as_volume
from .transforms import Affine, Displacement, listed

_MODES = ("linear", "nearest", "cubic", "label")
_PADDINGS = ("zeros", "border", "reflection")
_SLAB_VOXELS = 1 << 19  # whose coordinates take 12 MiB
_CUBIC_SLAB_VOXELS = 1 << 25  # each slab computes the spline's coefficients anew


def _applied(matrix: Matrix, points: NDArray[Any]) -> NDArray[Any]:
    return points @ matrix[:3, :3].T + matrix[:3, 3]


def _outside(voxels: NDArray[Any], grid: Grid) -> NDArray[Any]:
    """True for positions in voxels more than half a voxel outside the outermost centres."""
    size = numpy.array(grid.size)
    result: NDArray[Any] = numpy.any((voxels < -0.5) | (voxels >= size - 0.5), axis=-1)
    return result


def _displaced(field: Displacement, points: NDArray[Any]) -> NDArray[Any]:
    voxels = _applied(numpy.linalg.inv(field.grid.voxel_to_lps), points)
    at = _applied(field.grid.voxel_to_normalized, voxels)
    vectors = numpy.asarray(field.vectors)
    if vectors.dtype not in (numpy.float32, numpy.float64):
        vectors = vectors.astype(numpy.float64)
    image = numpy.ascontiguousarray(numpy.moveaxis(vectors, -1, 0)[None])
    moved = sample(image.astype(numpy.float64), grid=at[None], padding_mode="border")
    u = numpy.moveaxis(moved[0], 0, -1)
    u[_outside(voxels, field.grid)] = 0
    result = points.copy()
    result[..., : u.shape[-1]] += u
    return result


def _positions(fixed: Grid, moving: Grid, transforms: Any, first: int, count: int) -> NDArray[Any]:
    """[count,Y,X,3]: the positions in voxels of the moving grid of slices of the fixed one."""
    x, y, _ = fixed.size
    indices = numpy.indices((count, y, x), dtype=numpy.float64)
    indices[0] += first
    points = numpy.moveaxis(indices[::-1], 0, -1)
    pending = fixed.voxel_to_lps
    for transform in transforms:
        if isinstance(transform, Affine):
            pending = transform.matrix @ pending
        else:
            points = _displaced(transform, _applied(pending, points))
            pending = numpy.eye(4)
    return _applied(numpy.linalg.inv(moving.voxel_to_lps) @ pending, points)


def coordinates(
    fixed: Any, moving: Any, transforms: Any = (), *, mark_outside: bool = False
) -> NDArray[Any]:
    """The places of fixed's voxels in moving: the grid that similis.sample takes.

    Args:
        fixed, moving: a Volume, a Grid, or an image of nibabel or SimpleITK.
        transforms: maps of space, or their files; of several the first is applied first
            to a point, as antsApplyTransforms does. Without any the images' own grids place them.
        mark_outside: coordinates more than half a voxel outside moving are NaN.

    Returns: [1,Z,Y,X,3], f64.
    """
    fixed, moving = as_grid(fixed), as_grid(moving)
    voxels = _positions(fixed, moving, listed(transforms), 0, fixed.size[2])
    result = _applied(moving.voxel_to_normalized, voxels)
    if mark_outside:
        result[_outside(voxels, moving)] = numpy.nan
    return result[None]


def affine_between(fixed: Any, moving: Any, transforms: Any = ()) -> NDArray[Any]:
    """The same map as the affine that similis.sample takes, [1,3,4], f64; of affine maps alone."""
    fixed, moving = as_grid(fixed), as_grid(moving)
    pending = fixed.voxel_to_lps @ fixed.normalized_to_voxel
    for transform in listed(transforms):
        if not isinstance(transform, Affine):
            raise TypeError(
                "affine_between: one of transforms is a displacement field; coordinates() takes it"
            )
        pending = transform.matrix @ pending
    matrix = moving.voxel_to_normalized @ numpy.linalg.inv(moving.voxel_to_lps) @ pending
    return matrix[None, :3]


def transform_of(affine: Any, fixed: Any, moving: Any) -> Affine:
    """The map of space in mm of an affine in similis's coordinates, [3,4] or [1,3,4]: the inverse
    of affine_between(). Axes of one voxel have no such map."""
    fixed, moving = as_grid(fixed), as_grid(moving)
    if min(*fixed.size, *moving.size) == 1:
        raise ValueError("transform_of: a grid has an axis of one voxel, which has no coordinates")
    given = affine.detach().cpu().numpy() if hasattr(affine, "detach") else affine
    matrix = numpy.eye(4)
    matrix[:3] = numpy.asarray(given, dtype=numpy.float64).reshape(3, 4)
    to_moving = moving.voxel_to_lps @ moving.normalized_to_voxel
    from_fixed = fixed.voxel_to_normalized @ numpy.linalg.inv(fixed.voxel_to_lps)
    return Affine(to_moving @ matrix @ from_fixed)


def warp(
    moving: Any,
    fixed: Any,
    transforms: Any = (),
    *,
    mode: str = "linear",
    padding: str = "zeros",
    background: float = 0.0,
) -> Volume:
    """The moving image on the grid of the fixed one, as `similis warp` writes it.

    Args:
        moving, fixed, transforms: as of coordinates(); of fixed the grid alone is read.
        mode: "linear", "nearest", "cubic", or "label": the label with the largest linear weight.
        padding: "zeros": voxels more than half a voxel outside are background, and the half voxel
            around the image has its outermost voxels, as in ITK; "border" repeats the outermost
            voxel and "reflection" mirrors.

    Returns: a Volume; of nearest and label with the type of the samples of moving.
    """
    values.one_of("warp", "mode", mode, _MODES)
    values.one_of("warp", "padding", padding, _PADDINGS)
    image, to = as_volume(moving), as_grid(fixed)
    if padding != "zeros" and background != 0:
        raise ValueError("warp: background is only for padding zeros; leave one of them out")
    if mode == "label" and (image.values != numpy.floor(image.values)).any():
        raise ValueError("warp: moving has values that are not integers; mode label takes labels")
    maps = listed(transforms)
    rim = padding
    if padding == "zeros":
        rim = "reflection" if mode == "cubic" else "border"
    channels = numpy.ascontiguousarray(image.image)
    result = numpy.empty((channels.shape[1], *to.shape), channels.dtype)
    depth, slice_voxels = to.size[2], to.size[0] * to.size[1]
    slab = _CUBIC_SLAB_VOXELS if mode == "cubic" else _SLAB_VOXELS
    step = min(max(slab // slice_voxels, 1), depth)
    for first in range(0, depth, step):
        count = min(step, depth - first)
        voxels = _positions(to, image.grid, maps, first, count)
        grid = _applied(image.grid.voxel_to_normalized, voxels)[None]
        if mode == "label":
            part = sample_labels(channels, grid=grid, padding_mode=rim)
        else:
            part = sample(channels, grid=grid, padding_mode=rim, mode=mode)
        if padding == "zeros":
            part[0][:, _outside(voxels, image.grid)] = background
        result[:, first : first + count] = part[0]
    keeps_type = mode in ("nearest", "label") and not image.is_scaled
    return dataclasses.replace(
        image,
        values=result.reshape(*image.values.shape[:2], *to.shape),
        grid=to,
        dtype=image.dtype if keeps_type else str(result.dtype),
        is_scaled=False,
    )


# ---- displacements in other units ----


def _plain(u: Any) -> Any:
    return u.detach().cpu().numpy() if hasattr(u, "detach") else numpy.asarray(u)


def _require_field(name: str, u: Any, grid: Grid) -> None:
    if tuple(u.shape[-4:]) != (*grid.shape, 3):
        raise ValueError(
            f"{name}: u has shape {list(u.shape)}; its last axes must be {[*grid.shape, 3]}, those "
            "of the grid and three components"
        )


def from_voxels(u: Any, order: str = "xyz") -> Any:
    """A displacement in voxels, [N,Z,Y,X,3] or [N,Y,X,2], in similis's units: 2 / (n - 1) a voxel.

    order: of the components, "xyz" as here, or "zyx" (or "yx") as MONAI, voxelmorph and SciPy have
    them. u may be of NumPy or torch, and has a gradient then.
    """
    return _scaled("from_voxels", u, order, lambda n: 2 / (n - 1) if n > 1 else 0.0, True)


def to_voxels(u: Any, order: str = "xyz") -> Any:
    """The displacement in voxels of one in similis's units; the inverse of from_voxels()."""
    return _scaled("to_voxels", u, order, lambda n: (n - 1) / 2, False)


def _scaled(name: str, u: Any, order: str, factor: Any, turns_first: bool) -> Any:
    rank = u.shape[-1]
    if u.ndim != rank + 2 or rank not in (2, 3):
        raise ValueError(
            f"{name}: u has shape {list(u.shape)}; it must be [N,Y,X,2] or [N,Z,Y,X,3]"
        )
    words = {"xyz"[:rank]: False, "zyx"[-rank:]: True}
    if rank == 2:
        words.update({"xyz": False, "zyx": True})
    if order not in words:
        raise ValueError(f"{name}: order is {order!r}; it must be xyz or zyx")
    factors = [factor(n) for n in reversed(u.shape[1:-1])]
    is_turned = words[order]

    def turned(field: Any) -> Any:
        if not is_turned:
            return field
        return field.flip(-1) if hasattr(field, "flip") else field[..., ::-1]

    scale = u.new_tensor(factors) if hasattr(u, "new_tensor") else numpy.array(factors, u.dtype)
    return turned(u) * scale if turns_first else turned(u * scale)


def from_world(u: Any, grid: Any) -> NDArray[Any]:
    """A displacement in mm with ITK's axes at the voxels of a grid, in similis's units there."""
    grid, u = as_grid(grid), _plain(u)
    _require_field("from_world", u, grid)
    matrix = grid.voxel_to_normalized @ numpy.linalg.inv(grid.voxel_to_lps)
    result: NDArray[Any] = u @ matrix[:3, :3].T
    return result


def to_world(u: Any, grid: Any) -> NDArray[Any]:
    """A displacement in similis's units in mm with ITK's axes; the inverse of from_world()."""
    grid, u = as_grid(grid), _plain(u)
    _require_field("to_world", u, grid)
    matrix = grid.voxel_to_lps @ grid.normalized_to_voxel
    result: NDArray[Any] = u @ matrix[:3, :3].T
    return result


def displacement_of(u: Any, grid: Any) -> Displacement:
    """The map of space of a displacement in similis's units, [1,Z,Y,X,3], between two images on
    this grid: what write_transform() takes."""
    grid = as_grid(grid)
    vectors = to_world(u, grid)
    if vectors.ndim == 5 and vectors.shape[0] == 1:
        vectors = vectors[0]
    return Displacement(vectors, grid)

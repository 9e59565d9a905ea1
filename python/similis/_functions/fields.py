# SPDX-License-Identifier: Apache-2.0
"""The public functions of one vector field: exponential, inverse, Jacobian determinant."""

from __future__ import annotations

from typing import Any, TypeVar

from .._arrays import transforms as arrays_transforms
from .._arrays.kinds import is_of
from .._library import values, warp
from .dispatch import (
    Coordinates,
    check_coordinates,
    for_jax_transforms,
    for_torch,
    rank_of,
    refuse_jax,
)

Array = TypeVar("Array")


def _require_field(operation: str, field: Any) -> None:
    rank = rank_of(field)
    if rank == 0 or field.shape[-1] != rank or 0 in field.shape:
        is_nested = is_of("torch", "Tensor", field) and field.is_nested
        shape = "nested" if is_nested else list(field.shape)
        raise ValueError(
            f"{operation}: the field has shape {shape}; it must be [N, Y, X, 2] or [N, Z, Y, X, 3]"
        )


def exponentiate(v: Array, n: int = 7, *, align_corners: bool = True) -> Array:
    """exp(v) by scaling and squaring: u = v/2ⁿ, then n times u ← u + u(x + u).

    v is [N,Y,X,2] or [N,Z,Y,X,3]; n from 0 to 32. torch's is differentiable once by v.
    """
    steps = values.integer("exponentiate", "n", n)
    if not 0 <= steps <= 32:
        raise ValueError(f"exponentiate: n is {n!r}; it must be from 0 to 32")
    if is_of("torch", "Tensor", v):
        _require_field("exponentiate", v)
        return for_torch().exponentiate(v, steps, align_corners)
    if is_of("jax", "Array", v):
        _require_field("exponentiate", v)
        return for_jax_transforms().exponentiate(v, steps, align_corners)
    return arrays_transforms.exponentiate(v, steps, align_corners)


def invert(
    u: Array, iterations: int = 30, *, align_corners: bool = True, tolerance: float = 0.01
) -> tuple[Array, Array]:
    """The displacement w with u(x + w) + w = 0, by damped Newton steps, and its residual.

    Each voxel takes steps until the norm of u(x + w) + w is at most tolerance, in voxels, or until
    it has taken `iterations` of them. Outside its grid u has the value at the border, so the rim
    converges as the inside does.

    Returns: w shaped as u, and residual [N]: the largest norm of u(x + w) + w over all voxels, in
        the units of u, in which a voxel is 2/(n-1) wide, or 2/n without align_corners. A residual
        of more than tolerance voxels says that x + u(x) folds (jacobian_determinant counts where),
        or needs more iterations; it is NaN where u is. Neither has a gradient.
    """
    steps = values.integer("invert", "iterations", iterations)
    call = warp.text("invert", align_corners=align_corners, tolerance=tolerance)
    if is_of("torch", "Tensor", u):
        _require_field("invert", u)
        return for_torch().invert(u, steps, call)
    if is_of("jax", "Array", u):
        _require_field("invert", u)
        return for_jax_transforms().invert(u, steps, call)
    return arrays_transforms.invert(u, steps, call)


def jacobian_determinant(
    u: Array,
    *,
    align_corners: bool = True,
    min_coords: Coordinates = None,
    max_coords: Coordinates = None,
) -> tuple[Array, Array]:
    """The determinant of the derivative of x + u(x), and the number of folds.

    Central differences inside, one-sided at the border, exact for affine maps.

    Returns: the determinant [N,Y,X] or [N,Z,Y,X] in u's dtype, torch's differentiable by u, and
        folds [N], f64: the number of voxels where it is not above 0, NaN included.
    """
    call = warp.text(
        "jacobian_determinant",
        align_corners=align_corners,
        min_coords=min_coords,
        max_coords=max_coords,
    )
    check_coordinates("jacobian_determinant", rank_of(u), min_coords, max_coords)
    if is_of("torch", "Tensor", u):
        _require_field("jacobian_determinant", u)
        return for_torch().jacobian_determinant(u, call, align_corners, min_coords, max_coords)
    refuse_jax("jacobian_determinant", "u", u)
    return arrays_transforms.jacobian_determinant(u, call)

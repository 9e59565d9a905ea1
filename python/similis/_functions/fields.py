# SPDX-License-Identifier: Apache-2.0
"""The public functions of one vector field: exponential, inverse, Jacobian determinant."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

from .._arrays import transforms as arrays_transforms
from .._arrays.kinds import is_of
from .._library import values, warp
from .._library.warp import Pair
from .dispatch import (
    Coordinates,
    check_coordinates,
    for_jax_transforms,
    for_torch,
    rank_of,
    text_of,
)
from .losses import without_unknown
from .unknown_options import refuse_options

Array = TypeVar("Array")


_exponentiate_text = text_of("exponentiate", "align_corners")
_invert_text = text_of("invert", "align_corners", "tolerance")
_jacobian_text = text_of("jacobian_determinant", "align_corners", "min_coords", "max_coords")


def _require_field(operation: str, field: Any) -> None:
    rank = rank_of(field)
    if rank == 0 or field.shape[-1] != rank or 0 in field.shape:
        is_nested = is_of("torch", "Tensor", field) and field.is_nested
        shape = "nested" if is_nested else list(field.shape)
        raise ValueError(
            f"{operation}: the field has shape {shape}; it must be [N, Y, X, 2] or [N, Z, Y, X, 3]"
        )


def _part(operation: str, u: Any, rows: Pair, u_rows: Pair) -> str:
    """The text of the options of a part of a field, behind that of the others: rows are (first,
    end) of the result, u_rows (start, extent) of the field."""
    if not is_of("torch", "Tensor", u) and is_of("jax", "Array", u):
        raise TypeError(f"{operation}: rows and u_rows take torch and NumPy; u is a jax.Array")
    for name, given in (("rows", rows), ("u_rows", u_rows)):
        if given is None or not isinstance(given, (tuple, list)) or len(given) != 2:
            kinds = "(first, end)" if name == "rows" else "(start, extent)"
            raise TypeError(f"{operation}: {name} is {values.shown(given)}; it must be {kinds}")
    assert rows is not None and u_rows is not None
    first, end = [values.integer(operation, "rows", each) for each in rows]
    if not first < end:
        raise ValueError(f"{operation}: rows are {first} to {end}; the end must be above the first")
    extent = values.integer(operation, "u_rows", u_rows[1])
    shape = [end - first, *u.shape[2:-1]]
    described = warp.text(operation, rows=(first, extent), image_rows=u_rows, part_shape=shape)
    return described.removeprefix(operation)


@without_unknown
def exponentiate(
    v: Array,
    n: int = 7,
    *,
    align_corners: bool = True,
    **unknown: NoReturn,
) -> Array:
    """exp(v) by scaling and squaring: u = v/2ⁿ, then n times u ← u + u(x + u).

    v is [N,Y,X,2] or [N,Z,Y,X,3]; n from 0 to 32. torch's is differentiable once by v.
    """
    if unknown:
        refuse_options("exponentiate", unknown, exponentiate)
    steps = values.integer("exponentiate", "n", n)
    if not 0 <= steps <= 32:
        raise ValueError(f"exponentiate: n is {n!r}; it must be from 0 to 32")
    if is_of("torch", "Tensor", v):
        _require_field("exponentiate", v)
        return for_torch().exponentiate(v, steps, align_corners, _exponentiate_text(align_corners))
    if is_of("jax", "Array", v):
        _require_field("exponentiate", v)
        return for_jax_transforms().exponentiate(v, steps, align_corners)
    return arrays_transforms.exponentiate(v, steps, align_corners)


@without_unknown
def invert(
    u: Array,
    iterations: int = 30,
    *,
    align_corners: bool = True,
    tolerance: float = 0.01,
    rows: Pair = None,
    u_rows: Pair = None,
    **unknown: NoReturn,
) -> tuple[Array, Array]:
    """The displacement w with u(x + w) + w = 0, by damped Newton steps, and its residual.

    Each voxel takes steps until the norm of u(x + w) + w is at most tolerance, in voxels, or until
    it has taken `iterations` of them. Outside its grid u has the value at the border, so the rim
    converges as the inside does.

    rows, u_rows: a part of a field that is cut along z, or y in 2D: the rows (first, end) of the
        whole to invert, and (start, extent): u holds the rows from start on of `extent`. If a
        row is needed that u lacks, the residual is infinite: give more. On the CPU.

    Returns: w shaped as u, and residual [N]: the largest norm of u(x + w) + w over all voxels, in
        the units of u, in which a voxel is 2/(n-1) wide, or 2/n without align_corners. A residual
        of more than tolerance voxels says that x + u(x) folds (jacobian_determinant counts where),
        or needs more iterations; it is NaN where u is. Neither has a gradient.
    """
    if unknown:
        refuse_options("invert", unknown, invert)
    steps = values.integer("invert", "iterations", iterations)
    if is_of("torch", "Tensor", u) or rows is not None or u_rows is not None:
        _require_field("invert", u)
    call = _invert_text(align_corners, tolerance)
    if rows is not None or u_rows is not None:
        call += _part("invert", u, rows, u_rows)
    if is_of("torch", "Tensor", u):
        return for_torch().invert(u, steps, call)
    if is_of("jax", "Array", u):
        _require_field("invert", u)
        return for_jax_transforms().invert(u, steps, call)
    return arrays_transforms.invert(u, steps, call)


@without_unknown
def jacobian_determinant(
    u: Array,
    *,
    align_corners: bool = True,
    min_coords: Coordinates = None,
    max_coords: Coordinates = None,
    rows: Pair = None,
    u_rows: Pair = None,
    **unknown: NoReturn,
) -> tuple[Array, Array]:
    """The determinant of the derivative of x + u(x), and the number of folds.

    Central differences inside, one-sided at the border, exact for affine maps.

    rows, u_rows: as of invert(); u holds a row more before and behind, where the whole has them.
        Coordinates are the whole's, and folds are counted in these rows.

    Returns: the determinant [N,Y,X] or [N,Z,Y,X] in u's dtype, differentiable by u, and
        folds [N], f64 (f32 where JAX has no f64): the number of voxels where it is not above 0,
        NaN included.
    """
    if unknown:
        refuse_options("jacobian_determinant", unknown, jacobian_determinant)
    if is_of("torch", "Tensor", u) or rows is not None or u_rows is not None:
        _require_field("jacobian_determinant", u)
    call = _jacobian_text(align_corners, min_coords, max_coords)
    if rows is not None or u_rows is not None:
        call += _part("jacobian_determinant", u, rows, u_rows)
    check_coordinates("jacobian_determinant", rank_of(u), min_coords, max_coords)
    if is_of("torch", "Tensor", u):
        return for_torch().jacobian_determinant(
            u, call, align_corners, min_coords, max_coords, rows, u_rows
        )
    if is_of("jax", "Array", u):
        _require_field("jacobian_determinant", u)
        field: Any = u
        spacing = warp.voxel_spacing(field.shape, align_corners, min_coords, max_coords)
        return for_jax_transforms().jacobian_determinant(u, call, tuple(spacing))
    return arrays_transforms.jacobian_determinant(u, call)

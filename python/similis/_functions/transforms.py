# SPDX-License-Identifier: Apache-2.0
"""The public functions that sample images and compose transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, NoReturn, Optional, TypeVar

from .._arrays import transforms as arrays_transforms
from .._arrays.kinds import is_of
from .._library import values, warp
from . import dispatch
from .dispatch import (
    Coordinates,
    are_algorithms_deterministic,
    check_coordinates,
    for_jax_transforms,
    for_torch,
    rank_of,
    text_of,
)
from .._library.warp import Pair
from .losses import without_unknown
from .unknown_options import refuse_options

Array = TypeVar("Array")


def _transform(
    describe: Callable[..., str],
    options: tuple[Any, ...],
    names: Sequence[str],
    arrays: Sequence[Any],
    output: Any = None,
) -> Any:
    """describe: one of text_of(), which makes the text of the options."""
    if output is None:
        result = dispatch.transform_plainly(describe, options, arrays)
        if result is not None:
            return result
    call = describe(*options)
    if is_of("torch", "Tensor", arrays[0]):
        return for_torch().transform(call, names, arrays, output)
    if is_of("jax", "Array", arrays[0]):
        return for_jax_transforms().transform(call, names, arrays, output)
    return arrays_transforms.run(call, names, arrays, output)


def _labels(call: str, names: Sequence[str], arrays: Sequence[Any]) -> tuple[Any, Any]:
    if is_of("torch", "Tensor", arrays[0]):
        return for_torch().labels(call, names, arrays)
    if is_of("jax", "Array", arrays[0]):
        return for_jax_transforms().labels(call, names, arrays)
    return arrays_transforms.labels(call, names, arrays)


def _field_of(operation: str, displacement: Any, grid: Any) -> tuple[str, Any]:
    if displacement is not None and grid is not None:
        raise ValueError(
            f"{operation}: grid is given with displacement; give one of them, as grid holds "
            "absolute coordinates"
        )
    return ("displacement", displacement) if grid is None else ("grid", grid)


_sample_text = text_of(
    "sample",
    "is_grid",
    "out_shape",
    "mode",
    "padding_mode",
    "align_corners",
    "prefilter",
    "min_coords",
    "max_coords",
    "rows",
    "image_rows",
    "cells",
    "deterministic",
)
_compose_text = text_of(
    "compose",
    "padding_mode",
    "align_corners",
    "min_coords",
    "max_coords",
    "rows",
    "image_rows",
    "cells",
    "deterministic",
)
_sample_labels_text = text_of(
    "sample_labels",
    "is_grid",
    "out_shape",
    "padding_mode",
    "align_corners",
    "min_coords",
    "max_coords",
    "rows",
    "image_rows",
    "cells",
    "background",
    "smallest_label",
)
_affine_grid_text = text_of(
    "affine_grid", "out_shape", "align_corners", "min_coords", "max_coords", "rows"
)


@without_unknown
def sample(
    image: Array,
    *,
    affine: Optional[Array] = None,
    displacement: Optional[Array] = None,
    grid: Optional[Array] = None,
    grid_affine: Optional[Array] = None,
    out_shape: Optional[Sequence[int]] = None,
    mode: str = "linear",
    padding_mode: str = "zeros",
    align_corners: bool = True,
    prefilter: bool = True,
    min_coords: Coordinates = None,
    max_coords: Coordinates = None,
    rows: Pair = None,
    image_rows: Pair = None,
    cells: Pair = None,
    deterministic: Optional[bool] = None,
    output: Optional[Array] = None,
    **unknown: NoReturn,
) -> Array:
    """The image at A·x + S·u(x), or at S·v(x).

    A transform maps a coordinate of the output to one of the image. Coordinates run from -1 to 1
    along each axis. With align_corners voxel i of n is at -1 + 2i/(n-1), without at (2i+1)/n - 1,
    so a shift of one voxel is 2/(n-1), or 2/n. Components are in the order (x, y, z); x is the last
    axis of the image, so an array in the order [X,Y,Z], as nibabel reads it, has to be transposed
    first. A coordinate that is NaN samples NaN, and its voxel's gradients to affine and field are
    NaN too; it changes no other voxel and adds nothing to the image's gradient. An infinite one
    samples 0.

    Args:
        image: [N,C,Y,X] or [N,C,Z,Y,X]; f16, bf16, f32 or f64.
        affine: A, [N,2,3] or [N,3,4]; by default the identity.
        displacement: u, [N,Y,X,2] or [N,Z,Y,X,3].
        grid: v, shaped likewise: absolute coordinates, instead of affine and displacement.
        grid_affine: S, [N,2,2] or [N,3,3], multiplies u or v; by default the identity.
        out_shape: [Y,X] or [Z,Y,X]; by default that of the field, or of the image.
        mode: "linear", "nearest" (halves to the even voxel) or "cubic": an interpolating B-spline,
            mirrored at the outermost voxels as SciPy's order=3, mode="mirror". SciPy with "nearest"
            differs near the rim: by 0.7 % of a brain's range within 4 voxels, 6e-7 after 8.
        padding_mode: "zeros", "border" or "reflection", as torch's grid_sample.
        prefilter: whether a cubic spline's coefficients are computed, or are what image holds.
        min_coords, max_coords: (x, y[, z]) of the output's first and last voxel, for a slab or a
            crop of a larger output; by default those of the whole grid.
        rows: (start, extent): the output is rows from start on of a longer one of this extent
            along z, or y in 2D; as many as the field or out_shape has. Coordinates are the whole's.
        image_rows: the same of the image: rows that it lacks weigh nothing, padding acts at the
            whole's ends. A cubic spline with prefilter needs 28 rows more before and behind.
        cells: (first, end): only voxels whose cell, the row at or before their coordinate, is in
            this range get something, the others 0, so that results of blocks of an image add up.
            The last row and all behind it are cell extent - 1, all before the first row cell -1.
            On a GPU cells, and image_rows of a part, are refused.
        deterministic: whether the image's gradient has the same bits in every run on a GPU too; by
            default what torch.use_deterministic_algorithms says.
        output: the result is added to it, and it is returned.

    Every N may be 1 where another is larger; arrays may differ in dtype.

    Returns: [N,C,…] in the image's dtype; torch's differentiable once by image, affine, field and
        grid_affine, of which only those that ask for a gradient are computed.

    Raises:
        ValueError, TypeError: shapes, dtypes, devices or options do not fit.
    """
    if unknown:
        refuse_options("sample", unknown, sample)
    name, field = "displacement", displacement
    if grid is not None:
        name, field = _field_of("sample", displacement, grid)
    options = (
        grid is not None,
        out_shape,
        mode,
        padding_mode,
        align_corners,
        prefilter,
        min_coords,
        max_coords,
        rows,
        image_rows,
        cells,
        are_algorithms_deterministic() if deterministic is None else deterministic,
    )
    if min_coords is not None or max_coords is not None:
        _sample_text(*options)  # refuses what are no coordinates
        check_coordinates("sample", rank_of(image), min_coords, max_coords)
    if grid is not None and affine is not None:
        raise ValueError(
            "sample: grid is given with affine; give one of them, as grid holds absolute "
            "coordinates"
        )
    names = ("image", "affine", name, "grid_affine")
    arrays = (image, affine, field, grid_affine)
    return _transform(_sample_text, options, names, arrays, output)


@without_unknown
def compose(
    u: Array,
    v: Array,
    *,
    affine: Optional[Array] = None,
    padding_mode: str = "zeros",
    align_corners: bool = True,
    min_coords: Coordinates = None,
    max_coords: Coordinates = None,
    rows: Pair = None,
    image_rows: Pair = None,
    cells: Pair = None,
    deterministic: Optional[bool] = None,
    output: Optional[Array] = None,
    **unknown: NoReturn,
) -> Array:
    """u(A·x + v(x)): one displacement at another. v + compose(u, v) is that of "v, then u".

    u and v are [N,Y,X,2] or [N,Z,Y,X,3]; the rest is as of sample(). Returns a field shaped as v,
    in u's dtype; torch's differentiable once by u, v and affine.
    """
    if unknown:
        refuse_options("compose", unknown, compose)
    options = (
        padding_mode,
        align_corners,
        min_coords,
        max_coords,
        rows,
        image_rows,
        cells,
        are_algorithms_deterministic() if deterministic is None else deterministic,
    )
    if min_coords is not None or max_coords is not None:
        _compose_text(*options)  # refuses what are no coordinates
        check_coordinates("compose", rank_of(u), min_coords, max_coords)
    if v is None:
        raise TypeError("compose: v is None; it must be a vector field")
    names = ("u", "affine", "v", "grid_affine")
    return _transform(_compose_text, options, names, (u, affine, v, None), output)


@without_unknown
def affine_grid(
    affine: Array,
    displacement: Optional[Array] = None,
    *,
    out_shape: Optional[Sequence[int]] = None,
    align_corners: bool = True,
    min_coords: Coordinates = None,
    max_coords: Coordinates = None,
    rows: Pair = None,
    output: Optional[Array] = None,
    **unknown: NoReturn,
) -> Array:
    """A·x + u(x): [N,Y,X,2] or [N,Z,Y,X,3], in the dtype of the displacement, or of A without one.

    out_shape is needed without a displacement. The result is added to output, if that is given, and
    it is returned; the rest is as of sample().
    """
    if unknown:
        refuse_options("affine_grid", unknown, affine_grid)
    options = (out_shape, align_corners, min_coords, max_coords, rows)
    if displacement is None and out_shape is None:
        raise ValueError("affine_grid: out_shape is None; give it or a displacement")
    if min_coords is not None or max_coords is not None:
        _affine_grid_text(*options)  # refuses what is no shape and what are no coordinates
        rank = rank_of(displacement) if out_shape is None else len(out_shape)
        check_coordinates("affine_grid", rank, min_coords, max_coords)
    names = ("affine", "", "displacement", "")
    arrays = (affine, None, displacement, None)
    return _transform(_affine_grid_text, options, names, arrays, output)


@without_unknown
def sample_labels(
    image: Array,
    *,
    affine: Optional[Array] = None,
    displacement: Optional[Array] = None,
    grid: Optional[Array] = None,
    grid_affine: Optional[Array] = None,
    out_shape: Optional[Sequence[int]] = None,
    padding_mode: str = "zeros",
    align_corners: bool = True,
    min_coords: Coordinates = None,
    max_coords: Coordinates = None,
    rows: Pair = None,
    image_rows: Pair = None,
    cells: Pair = None,
    background: float = 0,
    smallest_label: Optional[float] = None,
    return_weight: bool = False,
    **unknown: NoReturn,
) -> Any:
    """The label whose voxels around the coordinate have the largest sum of linear weights.

    Among equal sums the first voxel's label wins, x fastest. Voxels outside the image do not vote,
    nor do labels below smallest_label; the result is background if nobody votes. image is of any
    dtype, integers included. The rest is as of sample().

    Labels of bool, int8 and int16 are computed in f32, those of int32 and int64 in f64, which takes
    a copy of the image. f64 holds integers up to 2**53: int64 labels are checked for that, which
    synchronises a GPU once in each call outside torch.compile; int32 labels need no check.

    Returns: labels in the image's dtype; with return_weight also their weights, f32, or f64 for f64
        images; torch's weights are differentiable once by affine, field and grid_affine.

    Raises:
        ValueError: an int64 or uint64 label is beyond 2**53, background is not a value of the
            image's dtype, or as sample().
        TypeError: as sample().
    """
    if unknown:
        refuse_options("sample_labels", unknown, sample_labels)
    name, field = _field_of("sample_labels", displacement, grid)
    call = _sample_labels_text(
        grid is not None,
        out_shape,
        padding_mode,
        align_corners,
        min_coords,
        max_coords,
        rows,
        image_rows,
        cells,
        background,
        smallest_label,
    )
    check_coordinates("sample_labels", rank_of(image), min_coords, max_coords)
    with_weight = values.flag("sample_labels", "return_weight", return_weight)
    _require_label(image, background)
    names = ("image", "affine", name, "grid_affine")
    label, weight = _labels(call, names, (image, affine, field, grid_affine))
    return (label, weight) if with_weight else label


def _dtype_of(array: Any) -> str:
    if is_of("torch", "Tensor", array):
        return str(array.dtype).replace("torch.", "")
    return str(getattr(array, "dtype", ""))


def _require_label(image: Any, background: float) -> None:
    dtype = _dtype_of(image)
    if dtype not in arrays_transforms.INTEGERS:
        return
    low, high = arrays_transforms.INTEGERS[dtype]
    if not (low <= background <= high and background == int(background)):
        raise ValueError(
            f"sample_labels: background is {background!r}; it must be a value of image, which is "
            f"{dtype}"
        )

# SPDX-License-Identifier: Apache-2.0
"""The public functions that sample images and compose transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Optional, TypeVar

from .._arrays.numpy_cupy import Kind, require_kind
from .._library import c_abi, measures, warp
from .dispatch import is_of, kind_of, refuse_jax

Array = TypeVar("Array")
Coordinates = Optional[Sequence[float]]

_warp_torch_module: Any = None
_fields_torch_module: Any = None


def _torch() -> Any:
    """_torch/transforms.py, once torch has been imported by whoever made a tensor."""
    global _warp_torch_module
    if _warp_torch_module is None:
        from .._torch import transforms

        _warp_torch_module = transforms
    return _warp_torch_module


def _fields() -> Any:
    """_torch/fields.py, likewise."""
    global _fields_torch_module
    if _fields_torch_module is None:
        from .._torch import fields

        _fields_torch_module = fields
    return _fields_torch_module


def _jax() -> Any:
    """_arrays/jax_transforms.py, likewise; it takes this module's run()."""
    from .._arrays import jax_transforms

    return jax_transforms


def _is_jax(array: Any) -> bool:
    return not _is_torch(array) and is_of("jax", "Array", array)


def _is_torch(array: Any) -> bool:
    return is_of("torch", "Tensor", array)


def require_array(operation: str, name: str, array: Any) -> None:
    """Of any library but torch."""
    if str(array.dtype) not in c_abi.DTYPES:
        raise TypeError(f"{operation}: {name} is {array.dtype}; it must be {c_abi.DTYPE_NAMES}")
    if array.ndim < 2 or 0 in array.shape:
        raise ValueError(
            f"{operation}: {name} has shape {list(array.shape)}; every extent must be at least 1"
        )


def _described(
    operation: str, kind: Kind, names: Sequence[str], arrays: Sequence[Any]
) -> tuple[list[Any], list[Optional[c_abi.Tensor]]]:
    """The arrays as the library takes them; who keeps the first list keeps their memory."""
    held: list[Any] = []
    for name, array in zip(names, arrays):
        if array is None:
            held.append(None)
            continue
        require_kind(operation, kind, name, array)
        require_array(operation, name, array)
        held.append(kind.prepared(array))
    return held, [None if each is None else kind.describe(each) for each in held]


def run(call: str, names: Sequence[str], arrays: Sequence[Any], output: Any = None) -> Any:
    """Of NumPy's and CuPy's arrays: the result alone."""
    parsed = warp.parse(call)
    kind = kind_of(parsed.operation, arrays[0], names[0])
    held, described = _described(parsed.operation, kind, names, arrays)
    operand, _, field, _ = held
    shapes = [each.shape[0] for each in held if each is not None]
    shape = parsed.result_shape(operand.shape, shapes, None if field is None else field.shape)
    if output is not None:
        _check_output(parsed.operation, kind, output, shape, operand)
        given = [each for each in (*held, *arrays) if each is not None]
        if any(kind.may_share_memory(output, each) for each in given):
            output += run(call, names, arrays)  # where it lies, operands are still to be read
            return output
    like = field if parsed.operation == "affine_grid" and field is not None else operand
    result = kind.empty(shape, str(like.dtype), like=operand) if output is None else output
    outputs: list[Optional[c_abi.Tensor]] = [kind.describe(result)]
    weight = None
    if parsed.operation == "sample_labels":
        weight = kind.empty(
            shape, "float64" if str(operand.dtype) == "float64" else "float32", like=operand
        )
        outputs += [kind.describe(weight), *[None] * 4]
    else:
        outputs += [None] * {"sample": 5, "compose": 4, "affine_grid": 2}[parsed.operation]
    warp.run(parsed, described, outputs, kind.stream(), output is not None)
    return result if weight is None else (result, weight)


def _check_output(
    operation: str, kind: Kind, output: Any, shape: Sequence[int], operand: Any
) -> None:
    _described(operation, kind, ("output",), (output,))
    for what, given, wanted in (
        ("shape", list(output.shape), list(shape)),
        ("dtype", output.dtype, operand.dtype),
    ):
        if given != wanted:
            raise ValueError(
                f"{operation}: output has {what} {given}; it must be the result's, {wanted}"
            )
    if kind.prepared(output) is not output:
        raise ValueError(f"{operation}: output must be strided by whole elements")
    if not kind.is_writeable(output):
        raise ValueError(f"{operation}: output is read-only")


def _rank_of(operand: Any) -> int:
    """How many axes space has, 2 or 3; 0 for what will be refused."""
    if _is_torch(operand):
        rank = 0 if operand.is_nested else operand.dim() - 2
    else:
        rank = getattr(operand, "ndim", 0) - 2
    return rank if rank in (2, 3) else 0


def _check_coordinates(operation: str, rank: int, low: Coordinates, high: Coordinates) -> None:
    for name, given in (("min_coords", low), ("max_coords", high)):
        if given is not None and rank != 0 and len(given) != rank:
            raise ValueError(
                f"{operation}: {name} has {len(given)} numbers; it takes one for each of the {rank} "
                "axes"
            )


def _transform(call: str, names: Sequence[str], arrays: Sequence[Any], output: Any = None) -> Any:
    if _is_torch(arrays[0]):
        return _torch().transform(call, names, arrays, output)
    if _is_jax(arrays[0]):
        return _jax().transform(call, names, arrays, output)
    return run(call, names, arrays, output)


def _field_of(operation: str, displacement: Any, grid: Any) -> tuple[str, Any]:
    if displacement is not None and grid is not None:
        raise ValueError(
            f"{operation}: grid is given with displacement; it holds absolute coordinates and "
            "stands alone"
        )
    return ("displacement", displacement) if grid is None else ("grid", grid)


def _deterministic(given: Optional[bool]) -> bool:
    if given is None:
        return _warp_torch_module is not None and bool(_warp_torch_module.is_deterministic())
    return given


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
    deterministic: Optional[bool] = None,
    output: Optional[Array] = None,
) -> Array:
    """The image at A·x + S·u(x), or at S·v(x).

    A transform maps a coordinate of the output to one of the image. Coordinates run from -1 to 1
    along each axis, components are in the order (x, y, z), x the fastest axis; with align_corners
    voxel i of n is at -1 + 2i/(n-1), without at (2i+1)/n - 1.

    Args:
        image: [N,C,Y,X] or [N,C,Z,Y,X]; f16, bf16, f32 or f64.
        affine: A, [N,2,3] or [N,3,4]; by default the identity.
        displacement: u, [N,Y,X,2] or [N,Z,Y,X,3].
        grid: v, shaped likewise: absolute coordinates, instead of affine and displacement.
        grid_affine: S, [N,2,2] or [N,3,3], multiplies u or v; by default the identity.
        out_shape: [Y,X] or [Z,Y,X]; by default that of the field, or of the image.
        mode: "linear", "nearest" (halves to the even voxel) or "cubic" (interpolating B-spline).
        padding_mode: "zeros", "border" or "reflection", as torch's grid_sample.
        prefilter: whether a cubic spline's coefficients are computed, or are what image holds.
        min_coords, max_coords: (x, y[, z]) of the output's first and last voxel, for a slab or a
            crop of a larger output; by default those of the whole grid.
        deterministic: whether the image's gradient has the same bits in every run on a GPU too; by
            default what torch.use_deterministic_algorithms says.
        output: the result is added to it, and it is returned.

    Every N may be 1 where another is larger; arrays may differ in dtype.

    Returns: [N,C,…] in the image's dtype; torch's differentiable once by image, affine, field and
        grid_affine, of which only those that ask for a gradient are computed.

    Raises:
        ValueError, TypeError: shapes, dtypes, devices or options do not fit.
    """
    name, field = _field_of("sample", displacement, grid)
    call = warp.text(
        "sample",
        is_grid=grid is not None,
        out_shape=out_shape,
        mode=mode,
        padding_mode=padding_mode,
        align_corners=align_corners,
        prefilter=prefilter,
        min_coords=min_coords,
        max_coords=max_coords,
        deterministic=_deterministic(deterministic),
    )
    _check_coordinates("sample", _rank_of(image), min_coords, max_coords)
    if grid is not None and affine is not None:
        raise ValueError(
            "sample: grid is given with affine; it holds absolute coordinates and stands alone"
        )
    names = ("image", "affine", name, "grid_affine")
    return _transform(call, names, (image, affine, field, grid_affine), output)


def compose(
    u: Array,
    v: Array,
    *,
    affine: Optional[Array] = None,
    padding_mode: str = "zeros",
    align_corners: bool = True,
    min_coords: Coordinates = None,
    max_coords: Coordinates = None,
    deterministic: Optional[bool] = None,
    output: Optional[Array] = None,
) -> Array:
    """u(A·x + v(x)): one displacement at another. v + compose(u, v) is that of "v, then u".

    u and v are [N,Y,X,2] or [N,Z,Y,X,3]; the rest is as of sample(). Returns a field shaped as v,
    in u's dtype; torch's differentiable once by u, v and affine.
    """
    call = warp.text(
        "compose",
        padding_mode=padding_mode,
        align_corners=align_corners,
        min_coords=min_coords,
        max_coords=max_coords,
        deterministic=_deterministic(deterministic),
    )
    _check_coordinates("compose", _rank_of(u), min_coords, max_coords)
    if v is None:
        raise TypeError("compose: v is None; it must be a vector field")
    return _transform(call, ("u", "affine", "v", "grid_affine"), (u, affine, v, None), output)


def affine_grid(
    affine: Array,
    displacement: Optional[Array] = None,
    *,
    out_shape: Optional[Sequence[int]] = None,
    align_corners: bool = True,
    min_coords: Coordinates = None,
    max_coords: Coordinates = None,
) -> Array:
    """A·x + u(x): [N,Y,X,2] or [N,Z,Y,X,3], in the dtype of the displacement, or of A without one.

    out_shape is needed without a displacement; the rest is as of sample().
    """
    call = warp.text(
        "affine_grid",
        out_shape=out_shape,
        align_corners=align_corners,
        min_coords=min_coords,
        max_coords=max_coords,
    )
    if displacement is None and out_shape is None:
        raise ValueError("affine_grid: out_shape is None; without a displacement it is needed")
    rank = _rank_of(displacement) if out_shape is None else len(out_shape)
    _check_coordinates("affine_grid", rank, min_coords, max_coords)
    names = ("affine", "", "displacement", "")
    return _transform(call, names, (affine, None, displacement, None))


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
    background: float = 0,
    smallest_label: Optional[float] = None,
    return_weight: bool = False,
) -> Any:
    """The label whose voxels around the coordinate have the largest sum of linear weights.

    Of equals the first met, x fastest; voxels outside the image do not vote, and background is
    where nobody does. image is of any dtype, integers included; labels below smallest_label do not
    vote. The rest is as of sample().

    Returns: labels in the image's dtype; with return_weight also what they weigh, f32 (f64 for
        f64), torch's differentiable once by affine, field and grid_affine.
    """
    name, field = _field_of("sample_labels", displacement, grid)
    call = warp.text(
        "sample_labels",
        is_grid=grid is not None,
        out_shape=out_shape,
        padding_mode=padding_mode,
        align_corners=align_corners,
        min_coords=min_coords,
        max_coords=max_coords,
        background=background,
        smallest_label=smallest_label,
    )
    _check_coordinates("sample_labels", _rank_of(image), min_coords, max_coords)
    with_weight = measures.flag("sample_labels", "return_weight", return_weight)
    _require_label(image, background)
    names = ("image", "affine", name, "grid_affine")
    labels = _torch().labels if _is_torch(image) else _labels
    label, weight = labels(call, names, (image, affine, field, grid_affine))
    return (label, weight) if with_weight else label


_BITS = (8, 16, 32, 64)
# Smallest and largest value of each dtype of integers, by its name.
_LABELS = {
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in _BITS},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in _BITS},
}


def _dtype_of(array: Any) -> str:
    if _is_torch(array):
        return str(array.dtype).replace("torch.", "")
    return str(getattr(array, "dtype", ""))


def _require_label(image: Any, background: float) -> None:
    dtype = _dtype_of(image)
    low, high = _LABELS.get(dtype, (-math.inf, math.inf))
    if dtype in _LABELS and not (low <= background <= high and background == int(background)):
        raise ValueError(
            f"sample_labels: background is {background!r}; it must be a value of image, which is "
            f"{dtype}"
        )


def _labels(call: str, names: Sequence[str], arrays: Sequence[Any]) -> tuple[Any, Any]:
    """Of NumPy's and CuPy's; other integers than the library's pass through f64, which holds all of
    32 bits."""
    image, dtype = arrays[0], _dtype_of(arrays[0])
    if _is_jax(image):
        label, weight = _jax().transform(call, names, arrays, None)
        return label, weight
    if dtype in c_abi.DTYPES or not (dtype in _LABELS or dtype == "bool"):
        label, weight = run(call, names, arrays)
        return label, weight
    is_wide = dtype in ("int64", "uint64") and image.size
    if is_wide and (image.min() < -(2**53) or image.max() > 2**53):
        raise ValueError("sample_labels: image has labels beyond 2**53, which f64 rounds")
    label, weight = run(call, names, (image.astype("float64"), *arrays[1:]))
    return label.astype(dtype), weight.astype("float32")


def _require_field(operation: str, field: Any) -> None:
    rank = _rank_of(field)
    if rank == 0 or field.shape[-1] != rank or 0 in field.shape:
        is_nested = _is_torch(field) and field.is_nested
        shape = "nested" if is_nested else list(field.shape)
        raise ValueError(
            f"{operation}: the field has shape {shape}; it must be [N, Y, X, 2] or [N, Z, Y, X, 3]"
        )


def exponentiate(v: Array, n: int = 7, *, align_corners: bool = True) -> Array:
    """exp(v) by scaling and squaring: u = v/2ⁿ, then n times u ← u + u(x + u).

    v is [N,Y,X,2] or [N,Z,Y,X,3]; n from 0 to 32. torch's is differentiable once by v.
    """
    steps = measures.integer("exponentiate", "n", n)
    if not 0 <= steps <= 32:
        raise ValueError(f"exponentiate: n is {n!r}; it must be from 0 to 32")
    if _is_torch(v):
        _require_field("exponentiate", v)
        return _fields().exponentiate(v, steps, align_corners)
    if _is_jax(v):
        _require_field("exponentiate", v)
        return _jax().exponentiate(v, steps, align_corners)
    kind = kind_of("exponentiate", v, "v")
    (held,), (described,) = _described("exponentiate", kind, ("v",), (v,))
    result = kind.empty(held.shape, "same", like=held)
    call = warp.parse(warp.text("exponentiate", align_corners=align_corners))
    warp.run_on_field(call, described, steps, [kind.describe(result)], kind.stream())
    return result


def invert(u: Array, iterations: int = 30, *, align_corners: bool = True) -> tuple[Array, Array]:
    """The displacement w with w = -u(x + w), by that many iterations of it, and how well it holds.

    Returns: w shaped as u, and residual [N]: the largest norm of u(x + w) + w in u's units. It is
        small where the iteration converged, which it does where u changes by less than it moves.
        Neither has a gradient.
    """
    steps = measures.integer("invert", "iterations", iterations)
    if _is_torch(u):
        _require_field("invert", u)
        return _fields().invert(u, steps, align_corners)
    if _is_jax(u):
        _require_field("invert", u)
        return _jax().invert(u, steps, align_corners)
    kind = kind_of("invert", u, "u")
    (held,), (described,) = _described("invert", kind, ("u",), (u,))
    result = kind.empty(held.shape, "same", like=held)
    dtype = "float64" if str(held.dtype) == "float64" else "float32"
    residual = kind.empty(held.shape[:1], dtype, like=held)
    outputs = [kind.describe(each) for each in (result, residual)]
    call = warp.parse(warp.text("invert", align_corners=align_corners))
    warp.run_on_field(call, described, steps, outputs, kind.stream())
    return result, residual


def jacobian_determinant(
    u: Array,
    *,
    align_corners: bool = True,
    min_coords: Coordinates = None,
    max_coords: Coordinates = None,
) -> tuple[Array, Array]:
    """The determinant of the derivative of x + u(x), and how many are not positive.

    Central differences inside, one-sided at the border, exact for affine maps.

    Returns: the determinant [N,Y,X] or [N,Z,Y,X] in u's dtype, torch's differentiable by u, and
        folds [N], f64: voxels where it is not positive.
    """
    call = warp.text(
        "jacobian_determinant",
        align_corners=align_corners,
        min_coords=min_coords,
        max_coords=max_coords,
    )
    _check_coordinates("jacobian_determinant", _rank_of(u), min_coords, max_coords)
    if _is_torch(u):
        _require_field("jacobian_determinant", u)
        return _fields().jacobian_determinant(u, call, align_corners, min_coords, max_coords)
    refuse_jax("jacobian_determinant", "u", u)
    kind = kind_of("jacobian_determinant", u, "u")
    (held,), (described,) = _described("jacobian_determinant", kind, ("u",), (u,))
    det = kind.empty(held.shape[:-1], "same", like=held)
    folds = kind.empty(held.shape[:1], "float64", like=held)
    outputs = [kind.describe(each) for each in (det, folds)]
    warp.run_on_field(warp.parse(call), described, None, outputs, kind.stream())
    return det, folds

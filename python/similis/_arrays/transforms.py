# SPDX-License-Identifier: Apache-2.0
"""Sampling and composing NumPy's and CuPy's arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from .._library import c_abi, warp
from .._library.refusals import require_extents, require_output
from .kinds import Kind, kind_of, require_dtype, require_kind

# The arguments after the result of each C function, upstream and gradients, if none is asked for.
_NO_GRADIENTS = {"sample": 5, "compose": 4, "affine_grid": 2}
_BITS = (8, 16, 32, 64)
# Smallest and largest value of each dtype of integers, by its name.
INTEGERS = {
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in _BITS},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in _BITS},
}


def require_array(operation: str, name: str, array: Any) -> None:
    """Raises unless the library takes an array of this dtype and shape."""
    require_dtype(operation, name, array)
    require_extents(operation, name, array.shape, least_axes=2)


def _described(
    operation: str, kind: Kind, names: Sequence[str], arrays: Sequence[Any]
) -> tuple[list[Any], list[Optional[c_abi.Tensor]]]:
    """The arrays, and their descriptions for the library, which do not keep the memory alive."""
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
    """The result of a call without gradients, or label and weight."""
    parsed = warp.parse(call)
    kind = kind_of(parsed.operation, arrays[0], names[0])
    held, described = _described(parsed.operation, kind, names, arrays)
    operand, _, field, _ = held
    shapes = [each.shape[0] for each in held if each is not None]
    shape = parsed.result_shape(operand.shape, shapes, None if field is None else field.shape)
    like = field if parsed.operation == "affine_grid" and field is not None else operand
    if output is not None:
        _check_output(parsed.operation, kind, output, shape, like)
        given = [each for each in (*held, *arrays) if each is not None]
        if any(kind.may_share_memory(output, each) for each in given):
            output += run(call, names, arrays)  # the library must not write what it still reads
            return output
    result = kind.empty(shape, str(like.dtype), like=operand) if output is None else output
    outputs: list[Optional[c_abi.Tensor]] = [kind.describe(result)]
    weight = None
    if parsed.operation == "sample_labels":
        weight = kind.empty(
            shape, "float64" if str(operand.dtype) == "float64" else "float32", like=operand
        )
        outputs += [kind.describe(weight), *[None] * 4]
    else:
        outputs += [None] * _NO_GRADIENTS[parsed.operation]
    warp.run(parsed, described, outputs, kind.stream(), output is not None)
    return result if weight is None else (result, weight)


def _check_output(
    operation: str, kind: Kind, output: Any, shape: Sequence[int], like: Any
) -> None:
    _described(operation, kind, ("output",), (output,))
    require_output(operation, output, shape, like.dtype)
    if kind.prepared(output) is not output:
        raise ValueError(f"{operation}: the strides of output must be multiples of an element")
    if not kind.is_writeable(output):
        raise ValueError(f"{operation}: output is read-only")


def labels(call: str, names: Sequence[str], arrays: Sequence[Any]) -> tuple[Any, Any]:
    """Label and weight. Integers that the library does not take pass through f64."""
    image = arrays[0]
    dtype = str(getattr(image, "dtype", ""))
    if dtype in c_abi.DTYPES or not (dtype in INTEGERS or dtype == "bool"):
        label, weight = run(call, names, arrays)
        return label, weight
    is_wide = dtype in ("int64", "uint64") and image.size
    if is_wide and (image.min() < -(2**53) or image.max() > 2**53):
        raise ValueError("sample_labels: image has labels beyond 2**53, which f64 rounds")
    label, weight = run(call, names, (image.astype("float64"), *arrays[1:]))
    return label.astype(dtype), weight.astype("float32")


def exponentiate(v: Any, steps: int, align_corners: bool) -> Any:
    kind = kind_of("exponentiate", v, "v")
    (held,), (described,) = _described("exponentiate", kind, ("v",), (v,))
    result = kind.empty(held.shape, "same", like=held)
    call = warp.parse(warp.text("exponentiate", align_corners=align_corners))
    warp.run_on_field(call, described, steps, [kind.describe(result)], kind.stream())
    return result


def invert(u: Any, steps: int, call: str) -> tuple[Any, Any]:
    kind = kind_of("invert", u, "u")
    (held,), (described,) = _described("invert", kind, ("u",), (u,))
    voxels = [held.shape[0], *(warp.parse(call).out_shape or held.shape[1:-1])]
    result = kind.empty([*voxels, held.shape[-1]], "same", like=held)
    dtype = "float64" if str(held.dtype) == "float64" else "float32"
    residual = kind.empty(held.shape[:1], dtype, like=held)
    outputs = [kind.describe(each) for each in (result, residual)]
    warp.run_on_field(warp.parse(call), described, steps, outputs, kind.stream())
    return result, residual


def jacobian_determinant(u: Any, call: str) -> tuple[Any, Any]:
    kind = kind_of("jacobian_determinant", u, "u")
    (held,), (described,) = _described("jacobian_determinant", kind, ("u",), (u,))
    voxels = [held.shape[0], *(warp.parse(call).out_shape or held.shape[1:-1])]
    det = kind.empty(voxels, "same", like=held)
    folds = kind.empty(held.shape[:1], "float64", like=held)
    outputs = [kind.describe(each) for each in (det, folds)]
    warp.run_on_field(warp.parse(call), described, None, outputs, kind.stream())
    return det, folds

# SPDX-License-Identifier: Apache-2.0
"""Errors that arrays of every library have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def type_name(value: Any) -> str:
    """The type with its module, as torch.Tensor and numpy.ndarray; a built-in one by its name."""
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


_OF_PLANES = ("integer_ssim", "float_ssim", "float_ms_ssim", "libvmaf_psnr")
_OF_IMAGES = (
    "ssim l1_ssim ms_ssim lncc ncc mutual_information histogram mse mae psnr"
).split()


_OF_FLOATS = (
    "sample compose affine_grid exponentiate invert jacobian_determinant smooth"
).split()
_FLOATS = "float16, bfloat16, float32 or float64"


def dtype_names(operation: str, name: str) -> str:
    """The dtypes that an argument of an operation may have, as one list for every error."""
    if operation in _OF_PLANES:
        return "uint8 or uint16"
    if operation in _OF_IMAGES and "mask" not in name:
        return "bool, uint8, uint16, int16, int32, float16, bfloat16, float32 or float64"
    if operation in _OF_FLOATS:
        labels = "; convert it, or give labels to sample_labels"
        return _FLOATS + (labels if (operation, name) == ("sample", "image") else "")
    if operation == "sample_labels":
        return f"bool, an integer, {_FLOATS}" if name == "image" else _FLOATS
    names = "uint8, uint16, float16, bfloat16, float32 or float64"
    return f"bool, {names}" if "mask" in name else names


def require_same_shape(
    operation: str, names: tuple[str, str], x: Sequence[int], y: Sequence[int]
) -> None:
    """x, y: the shapes of the two images that have these names."""
    if y != x:
        raise ValueError(
            f"{operation}: {names[1]} has shape {list(y)}; it must be that of {names[0]}, {list(x)}"
        )


def require_same_dtype(operation: str, names: tuple[str, str], x: str, y: str) -> None:
    """x, y: the dtypes of the two images that have these names."""
    if y != x:
        raise ValueError(f"{operation}: {names[1]} is {y}; it must be {x} as {names[0]} is")


def require_extents(operation: str, name: str, shape: Sequence[int], least_axes: int = 0) -> None:
    if len(shape) < least_axes or 0 in shape:
        raise ValueError(
            f"{operation}: {name} has shape {list(shape)}; every extent must be at least 1"
        )


def require_output(operation: str, output: Any, shape: Sequence[int], dtype: Any) -> None:
    """Raises unless a result of this shape and dtype can be added to the output."""
    for quality, own, wanted in (
        ("shape", list(output.shape), list(shape)),
        ("dtype", output.dtype, dtype),
    ):
        if own != wanted:
            raise ValueError(
                f"{operation}: output has {quality} {own}; it must be the result's, {wanted}"
            )

# SPDX-License-Identifier: Apache-2.0
"""Errors that arrays of every library have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def type_name(value: Any) -> str:
    """The type with its module, as torch.Tensor and numpy.ndarray; a built-in one by its name."""
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def require_same_shape(
    operation: str, names: tuple[str, str], x: Sequence[int], y: Sequence[int]
) -> None:
    """x, y: the shapes of the two images that have these names."""
    if y != x:
        raise ValueError(
            f"{operation}: {names[1]} has shape {list(y)}; it must be that of {names[0]}, {list(x)}"
        )


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

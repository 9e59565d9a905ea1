# SPDX-License-Identifier: Apache-2.0
"""The public function that smooths images and vector fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn, TypeVar, Union

from .._arrays import smooth as arrays_smooth
from .._arrays.kinds import is_of
from .._library import smooth as library
from .dispatch import described_once, for_jax_smooth, for_torch, spatial
from .losses import without_unknown
from .unknown_options import refuse_options

Array = TypeVar("Array")

_OPTIONS = ("sigma", "field", "truncate", "padding")
_text = described_once(lambda axes, *given: library.text(axes, **dict(zip(_OPTIONS, given))))


@without_unknown
def smooth(
    x: Array,
    sigma: Union[float, Sequence[float]],
    *,
    field: bool = False,
    truncate: float = 3.0,
    padding: str = "replicate",
    **unknown: NoReturn,
) -> Array:
    """x smoothed by a Gaussian along every spatial axis.

    Args:
        x: an image [N,C,Y,X] or [N,C,Z,Y,X], or with field a vector field [N,Y,X,2] or
            [N,Z,Y,X,3]; f16, bf16, f32 or f64, with any strides.
        sigma: standard deviation in voxels, one number or one per axis, (y, x) or (z, y, x); 0
            leaves an axis as it is.
        field: whether x is a vector field, whose last axis is not smoothed.
        truncate: the taps reach truncate·sigma voxels, rounded; they sum to 1.
        padding: "replicate" takes the outermost voxel's value outside, "zeros" takes 0.

    Returns: an array like x. Sums are f32, or f64 for f64. Derivatives of any order, of torch's and
        JAX's arrays, are smoothings too. It runs where x is: on the CPU, on a CUDA device, and in
        torch on Apple's and Intel's GPUs.
    """
    if unknown:
        refuse_options("smooth", unknown, smooth)
    call = _text(spatial(x), sigma, field, truncate, padding)
    if is_of("torch", "Tensor", x):
        return for_torch().smooth(x, call)
    if is_of("jax", "Array", x):
        return for_jax_smooth().smooth(x, call)
    return arrays_smooth.smooth(x, call)

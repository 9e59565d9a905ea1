# SPDX-License-Identifier: Apache-2.0
"""Errors of single pixels."""

from __future__ import annotations

from typing import Optional, TypeVar

from .._arrays import measures as arrays_measures
from .._arrays.kinds import is_of, kind_of
from .._library import measures
from .dispatch import described_once, evaluate, for_jax, for_torch, options_of

Array = TypeVar("Array")


def mse(x: Array, y: Array, *, reduction: str = "mean") -> Array:
    """Mean squared error, in squared units of a pixel; sums are kept in f64.

    Args:
        x, y: [N,C,…] of any rank from 2 to 8; u8, u16, f16, bf16, f32 or f64; alike in all but
            their strides.
        reduction: "mean", "sum", "per_image" or "per_channel".

    Returns: f32, or f64 for f64 images; a scalar, [N] or [N,C]; differentiable by x and y.

    Raises:
        ValueError, TypeError: x and y are not alike or have no elements, or reduction is another.
    """
    return evaluate("mse", _mse_text(0, reduction), x, y)


_mse_text = described_once(measures.writer("mse", *options_of(mse)))


def mae(x: Array, y: Array, *, reduction: str = "mean") -> Array:
    """Mean absolute error, in units of a pixel; its gradient is 0 where x and y are equal.

    Takes, returns and raises what mse() does.
    """
    return evaluate("mae", _mae_text(0, reduction), x, y)


_mae_text = described_once(measures.writer("mae", *options_of(mae)))


def psnr(
    x: Array, y: Array, *, data_range: Optional[float] = None, reduction: str = "mean"
) -> Array:
    """Peak signal-to-noise ratio, 10·log10(data_range² / MSE), in dB; infinite if x equals y.

    Args:
        x, y: as of mse().
        data_range: largest minus smallest value a pixel can take; by default 1 for floats, 255 for
            u8, 65535 for u16.
        reduction: of the squared error, before the logarithm: "mean", "per_image" or "per_channel".

    Returns: f32, or f64 for f64 images; a scalar, [N] or [N,C]; torch's differentiable by x and y.

    Raises:
        ValueError, TypeError: as mse(), and if data_range is not positive.
    """
    if is_of("torch", "Tensor", x):
        return for_torch().psnr(data_range, reduction, x, y)
    if is_of("jax", "Array", x):
        return for_jax().psnr(data_range, reduction, x, y)
    text = _psnr_text(0, data_range, reduction)
    return arrays_measures.evaluate("psnr", text, kind_of("psnr", x), x, y)[0]


_psnr_text = described_once(measures.writer("psnr", *options_of(psnr)))

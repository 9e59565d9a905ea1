# SPDX-License-Identifier: Apache-2.0
"""Errors of single pixels."""

from __future__ import annotations

from typing import Any, Optional, TypeVar

from .._arrays import measures as arrays_measures
from .._arrays.kinds import is_of, kind_of
from .._library import measures, range_warning, values
from .._library.values import DataRange
from . import layouts
from .dispatch import (
    described_once,
    evaluate_images,
    for_jax,
    for_torch,
    is_usual,
    options_of,
)

Array = TypeVar("Array")


def mse(
    x: Array, y: Array, *, reduction: str = "mean", channel_axis: Optional[int] = None
) -> Array:
    """Mean squared error, in squared units of a pixel; sums are kept in f64.

    Args:
        x, y: [H,W], [C,H,W], or [N,C,…] of 4 to 8 axes; bool, integers of 8, 16 or 32 bits, f16,
            bf16, f32 or f64; alike in all but their strides.
        reduction: "mean", "sum", "per_image" or "per_channel".
        channel_axis: as of ssim().

    Returns: f32, or f64 for f64 images; a scalar, [N] or [N,C]; differentiable by x and y.

    Raises:
        ValueError, TypeError: x and y are not alike or have no elements, or reduction is another.
    """
    return evaluate_images("mse", _mse_text(0, reduction), x, y, None, None, channel_axis)


_mse_text = described_once(measures.writer("mse", *options_of(mse)))


def mae(
    x: Array, y: Array, *, reduction: str = "mean", channel_axis: Optional[int] = None
) -> Array:
    """Mean absolute error, in units of a pixel; its gradient is 0 where x and y are equal.

    Takes, returns and raises what mse() does.
    """
    return evaluate_images("mae", _mae_text(0, reduction), x, y, None, None, channel_axis)


_mae_text = described_once(measures.writer("mae", *options_of(mae)))


def psnr(
    x: Array,
    y: Array,
    *,
    data_range: DataRange = None,
    reduction: str = "mean",
    channel_axis: Optional[int] = None,
) -> Array:
    """Peak signal-to-noise ratio, 10·log10(data_range² / MSE), in dB; infinite if x equals y.

    Args:
        x, y, channel_axis: as of mse().
        data_range: largest minus smallest value a pixel can take, or (smallest, largest); by
            default 1 for floats and bool, 255 for u8, 65535 for u16.
        reduction: of the squared error, before the logarithm: "mean", "per_image" or "per_channel".

    Returns: f32, or f64 for f64 images; a scalar, [N] or [N,C]; torch's differentiable by x and y.

    Raises:
        ValueError, TypeError: as mse(), and if data_range is not positive.
    """
    if data_range is not None and data_range.__class__ is not float:
        data_range = values.plain_range("psnr", data_range)
    if channel_axis is None and is_usual(x):
        return _psnr(data_range, reduction, x, y)

    def run(value_range: Optional[float], x: Array, y: Array, *_: Any) -> Array:
        return _psnr(value_range or data_range, reduction, x, y)

    return layouts.evaluate(run, "psnr", (x, y), (), channel_axis, data_range is None)


def _psnr(data_range: Any, reduction: str, x: Any, y: Any) -> Any:
    if is_of("torch", "Tensor", x):
        return for_torch().psnr(data_range, reduction, x, y)
    if is_of("jax", "Array", x):
        return for_jax().psnr(data_range, reduction, x, y)
    text = _psnr_text(0, data_range, reduction)
    kind = kind_of("psnr", x)
    value = arrays_measures.evaluate("psnr", text, kind, x, y)[0]
    is_known = is_of("numpy", "ndarray", x)  # without waiting for a GPU
    if is_known and range_warning.psnr_wants_look(x.size, str(x.dtype)):
        range_warning.look_at_psnr(float(value.min()), data_range or 1.0)
    return value


_psnr_text = described_once(measures.writer("psnr", *options_of(psnr)))

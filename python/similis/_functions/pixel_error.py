# SPDX-License-Identifier: Apache-2.0
"""Errors of single pixels."""

from __future__ import annotations

import math
from typing import Any, NoReturn, Optional, TypeVar

from .._arrays import measures as arrays_measures
from .._arrays.kinds import is_of, kind_of
from .._library import measures, range_warning, values
from .._library.values import DataRange
from . import layouts
from .dispatch import (
    WithGradient,
    described_once,
    evaluate_images,
    for_jax,
    for_torch,
    is_usual_array,
    options_of,
)
from .losses import without_unknown
from .unknown_options import refuse_options

Array = TypeVar("Array")


@without_unknown
def mse(
    x: Array,
    y: Array,
    *,
    reduction: str = "mean",
    mask: Optional[Array] = None,
    channel_axis: Optional[int] = None,
    **unknown: NoReturn,
) -> Array:
    """Mean squared error, in squared units of a pixel; sums are kept in f64.

    Args:
        x, y: [H,W], [C,H,W], or [N,C,…] of 4 to 8 axes; bool, integers of 8, 16 or 32 bits, f16,
            bf16, f32 or f64; alike in all but their strides.
        reduction: "mean", "sum", "per_image" or "per_channel".
        mask: weights of the pixels, finite and not negative, shaped as x with N and C left out or 1
            where they are the same for all: the mean is Σ mask·error / Σ mask. A pixel of weight 0
            may hold anything, NaN included, and has gradient 0. If the weights add up to 0, the
            mean is NaN, with gradient 0.
        channel_axis: as of ssim().

    Returns: f32, or f64 for f64 images; a scalar, [N] or [N,C]; differentiable by x and y.

    Raises:
        ValueError, TypeError: x and y are not alike or have no elements, reduction is another, or
            the mask does not broadcast or, on the CPU, holds a weight that is negative or not
            finite.
    """
    if unknown:
        refuse_options("mse", unknown, mse)
    return evaluate_images("mse", _mse_text, (0, reduction), x, y, mask, None, channel_axis)


_mse_text = described_once(measures.writer("mse", *options_of(mse)))


@without_unknown
def mae(
    x: Array,
    y: Array,
    *,
    reduction: str = "mean",
    mask: Optional[Array] = None,
    channel_axis: Optional[int] = None,
    **unknown: NoReturn,
) -> Array:
    """Mean absolute error, in units of a pixel; its gradient is 0 where x and y are equal.

    Takes, returns and raises what mse() does.
    """
    if unknown:
        refuse_options("mae", unknown, mae)
    return evaluate_images("mae", _mae_text, (0, reduction), x, y, mask, None, channel_axis)


_mae_text = described_once(measures.writer("mae", *options_of(mae)))


@without_unknown
def psnr(
    x: Array,
    y: Array,
    *,
    data_range: DataRange = None,
    reduction: str = "mean",
    mask: Optional[Array] = None,
    channel_axis: Optional[int] = None,
    **unknown: NoReturn,
) -> Array:
    """Peak signal-to-noise ratio, 10·log10(data_range² / MSE), in dB; infinite if x equals y.

    Args:
        x, y, mask, channel_axis: as of mse().
        data_range: largest minus smallest value a pixel can take, or (smallest, largest); by
            default 1 for floats and bool, 255 for u8, 65535 for u16.
        reduction: of the squared error, before the logarithm: "mean", "per_image" or "per_channel".

    Returns: f32, or f64 for f64 images; a scalar, [N] or [N,C]; torch's differentiable by x and y.

    Raises:
        ValueError, TypeError: as mse(), and if data_range is not positive.
    """
    if unknown:
        refuse_options("psnr", unknown, psnr)
    if data_range is not None and data_range.__class__ is not float:
        data_range = values.plain_range("psnr", data_range)
    if isinstance(x, WithGradient) and is_of("torch", "Tensor", x.image):
        given: Any = None  # for autograd to compute
        if channel_axis is None:
            given = for_torch().psnr_with_gradients(
                data_range, reduction, x.image, y, mask, x.of_x, x.of_y
            )
        return given
    if channel_axis is None:
        if is_of("torch", "Tensor", x):
            value = for_torch().psnr(data_range, reduction, x, y, mask, usual_only=True)
            if value is not None:
                return value
        elif not isinstance(x, WithGradient) and is_usual_array(x):
            return _psnr(data_range, reduction, x, y, mask)
    image: Any = x.image if isinstance(x, WithGradient) else x

    def run(value_range: Optional[float], arranged_x: Any, y: Any, mask: Any) -> Any:
        if isinstance(x, WithGradient):
            arranged_x = WithGradient(arranged_x, x.of_x, x.of_y)
        return _psnr(value_range or data_range, reduction, arranged_x, y, mask)

    return layouts.evaluate(run, "psnr", (image, y), (mask,), channel_axis, data_range is None)


def _psnr(data_range: Any, reduction: str, x: Any, y: Any, mask: Any) -> Any:
    if is_of("torch", "Tensor", x):
        return for_torch().psnr(data_range, reduction, x, y, mask)
    if isinstance(x, WithGradient):
        return _psnr_and_gradients(data_range, reduction, x, y, mask)
    if is_of("jax", "Array", x) or is_of("jax", "Array", y):
        return for_jax().psnr(data_range, reduction, x, y, mask)
    text = _psnr_text(0, data_range, reduction)
    kind = kind_of("psnr", x)
    value = arrays_measures.evaluate("psnr", text, kind, x, y, mask)[0]
    is_known = is_of("numpy", "ndarray", x)  # without waiting for a GPU
    if is_known and range_warning.psnr_wants_look(x.size, str(x.dtype)):
        range_warning.look_at_psnr(float(value.min()), data_range or 1.0)
    return value


def _psnr_and_gradients(data_range: Any, reduction: str, x: WithGradient, y: Any, mask: Any) -> Any:
    """[value, gradients…]: by the error's gradients, whose upstream is -10 / (ln 10 · error)."""
    value = _psnr(data_range, reduction, x.image, y, mask)
    text = measures.psnr_error_text(data_range, reduction)
    kind = kind_of("psnr", x.image)
    error = arrays_measures.evaluate("psnr", f"{text} in_float64=1", kind, x.image, y, mask)[0]
    upstream = kind.empty(error.shape, "float64", like=x.image)
    upstream[...] = -10 / (math.log(10) * error)
    upstream[error != error] = 0  # an error of no pixels has no gradient
    gradients = arrays_measures.evaluate(
        "psnr", text, kind, x.image, y, mask, None, x.of_x, x.of_y, upstream
    )
    return [value, *gradients]


_psnr_text = described_once(measures.writer("psnr", *options_of(psnr)))

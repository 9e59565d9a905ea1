# SPDX-License-Identifier: Apache-2.0
"""Scores that equal a reference program's: libvmaf's, and SSIMULACRA 2. They have no gradient."""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple, NoReturn, Optional, TypeVar, overload

from .._library import measures, values
from .dispatch import (
    described_once,
    evaluate,
    look_at_range,
    options_of,
    refuse_jax,
    without_gradient,
)
from .layouts import pictures_first, planes_first
from .losses import without_unknown
from .unknown_options import refuse_options

Array = TypeVar("Array")


@without_unknown
def integer_ssim(
    x: Array,
    y: Array,
    *,
    bit_depth: Optional[int] = None,
    channel_axis: Optional[int] = None,
    **unknown: NoReturn,
) -> Array:
    """libvmaf's `ssim` of planes of video: SSIM of raw samples under a 9×9 window of integers.

    The window is cut at the borders, and each pixel is weighted by what is left of it. Exact: the
    bits are the same on every processor, number of threads and GPU. Source: libvmaf's integer_ssim.

    Args:
        x, y: a plane [H,W] or planes [N,H,W], of luma; u8, or u16 with samples in the low bits;
            alike in all but their strides.
        bit_depth: of a sample, 8, 10, 12 or 16; by default 8 for u8, 16 for u16.
        channel_axis: of one picture of three axes, of which each channel then is a plane. Without
            it [H,W,3] and [H,W,4] are refused.

    Returns: f64, a scalar or [N]. On a GPU a pair with a sample above 2^bit_depth - 1 is NaN.

    Raises:
        ValueError, TypeError: x and y are not alike or not that, bit_depth does not fit their
            dtype, or, on the CPU, a sample is above 2^bit_depth - 1.
    """
    if unknown:
        refuse_options("integer_ssim", unknown, integer_ssim)
    refuse_jax("integer_ssim", "x", x)
    x, y = (planes_first("integer_ssim", each, channel_axis) for each in (x, y))
    return evaluate("integer_ssim", _integer_ssim_text(0, bit_depth), x, y)


_integer_ssim_text = described_once(measures.writer("integer_ssim", *options_of(integer_ssim)))


class FloatSsimMeans(NamedTuple):
    """The results of float_ssim() and float_ms_ssim() with enable_lcs."""

    value: Any
    luminance: Any
    contrast: Any
    structure: Any


def _with_means(operation: str, text: str, x: Any, y: Any) -> FloatSsimMeans:
    result = evaluate(operation, text + measures.WITH_MEANS, x, y)
    means = measures.means_of_a_factor(operation)
    pairs, flat = list(result.shape[1:]), result.reshape(-1)
    count = flat.shape[0] // (1 + 3 * means)  # of pairs
    shape = pairs + [means] * (means > 1)
    ends = [count * (1 + factor * means) for factor in range(4)]
    factors = [flat[begin:end].reshape(shape) for begin, end in zip(ends, ends[1:])]
    # [()] makes a number of NumPy's array without axes, as other measures return it.
    value, *factors = [each[()] for each in (flat[:count].reshape(pairs), *factors)]
    return FloatSsimMeans(value, *factors)


@overload
def float_ssim(
    x: Array,
    y: Array,
    *,
    bit_depth: Optional[int] = ...,
    scale: Optional[int] = ...,
    enable_db: bool = ...,
    clip_db: bool = ...,
    enable_lcs: Literal[False] = ...,
    channel_axis: Optional[int] = ...,
) -> Array: ...


@overload
def float_ssim(
    x: Array,
    y: Array,
    *,
    bit_depth: Optional[int] = ...,
    scale: Optional[int] = ...,
    enable_db: bool = ...,
    clip_db: bool = ...,
    enable_lcs: Literal[True],
    channel_axis: Optional[int] = ...,
) -> FloatSsimMeans: ...


@without_unknown
def float_ssim(
    x: Any,
    y: Any,
    *,
    bit_depth: Optional[int] = None,
    scale: Optional[int] = None,
    enable_db: bool = False,
    clip_db: bool = False,
    enable_lcs: bool = False,
    channel_axis: Optional[int] = None,
    **unknown: NoReturn,
) -> Any:
    """libvmaf's `float_ssim` of planes of video: SSIM in f32, of planes that were shrunk first.

    All digits that libvmaf prints are the same. Source: libvmaf's float_ssim.

    Args:
        x, y, bit_depth, channel_axis: as of integer_ssim(), on the CPU.
        scale: the factor by which planes are shrunk first, from 1 to 10; by default, or 0, the
            shorter side / 256, rounded.
        enable_db: return -10·log10(1 - SSIM).
        clip_db: limit the decibels to those of a total squared error of one half.
        enable_lcs: return the means of SSIM's factors, too.

    Returns: f64, a scalar or [N]; with enable_lcs a tuple (value, luminance, contrast, structure)
        of such.

    Raises:
        ValueError, TypeError: as integer_ssim(), and if a shrunk side is below 11.
        DeviceError: the planes are on a GPU.
    """
    if unknown:
        refuse_options("float_ssim", unknown, float_ssim)
    refuse_jax("float_ssim", "x", x)
    x, y = (planes_first("float_ssim", each, channel_axis) for each in (x, y))
    text = _float_ssim_text(0, bit_depth, 0 if scale is None else scale, enable_db, clip_db)
    if values.flag("float_ssim", "enable_lcs", enable_lcs):
        return _with_means("float_ssim", text, x, y)
    return evaluate("float_ssim", text, x, y)


_float_ssim_text = described_once(measures.writer("float_ssim", *options_of(float_ssim)[:-1]))


@overload
def float_ms_ssim(
    x: Array,
    y: Array,
    *,
    bit_depth: Optional[int] = ...,
    enable_db: bool = ...,
    clip_db: bool = ...,
    enable_lcs: Literal[False] = ...,
    channel_axis: Optional[int] = ...,
) -> Array: ...


@overload
def float_ms_ssim(
    x: Array,
    y: Array,
    *,
    bit_depth: Optional[int] = ...,
    enable_db: bool = ...,
    clip_db: bool = ...,
    enable_lcs: Literal[True],
    channel_axis: Optional[int] = ...,
) -> FloatSsimMeans: ...


@without_unknown
def float_ms_ssim(
    x: Any,
    y: Any,
    *,
    bit_depth: Optional[int] = None,
    enable_db: bool = False,
    clip_db: bool = False,
    enable_lcs: bool = False,
    channel_axis: Optional[int] = None,
    **unknown: NoReturn,
) -> Any:
    """libvmaf's `float_ms_ssim` of planes of video: MS-SSIM in f32 of five scales.

    Takes, returns and raises what float_ssim() does; sides are at least 176. With enable_lcs the
    means are those of each scale, [5] or [N,5].
    """
    if unknown:
        refuse_options("float_ms_ssim", unknown, float_ms_ssim)
    refuse_jax("float_ms_ssim", "x", x)
    x, y = (planes_first("float_ms_ssim", each, channel_axis) for each in (x, y))
    text = _float_ms_ssim_text(0, bit_depth, enable_db, clip_db)
    if values.flag("float_ms_ssim", "enable_lcs", enable_lcs):
        return _with_means("float_ms_ssim", text, x, y)
    return evaluate("float_ms_ssim", text, x, y)


_float_ms_ssim_text = described_once(
    measures.writer("float_ms_ssim", *options_of(float_ms_ssim)[:-1])
)


@without_unknown
def libvmaf_psnr(
    x: Array,
    y: Array,
    *,
    bit_depth: Optional[int] = None,
    channel_axis: Optional[int] = None,
    **unknown: NoReturn,
) -> Array:
    """libvmaf's `psnr_y`, `psnr_cb` or `psnr_cr` of planes of video, in dB; finite for equal ones.

    Takes, returns and raises what integer_ssim() does; on the CPU.
    """
    if unknown:
        refuse_options("libvmaf_psnr", unknown, libvmaf_psnr)
    refuse_jax("libvmaf_psnr", "x", x)
    x, y = (planes_first("libvmaf_psnr", each, channel_axis) for each in (x, y))
    return evaluate("libvmaf_psnr", _libvmaf_psnr_text(0, bit_depth), x, y)


_libvmaf_psnr_text = described_once(measures.writer("libvmaf_psnr", *options_of(libvmaf_psnr)))


@without_unknown
def ssimulacra2(
    reference: Array,
    distorted: Array,
    *,
    mode: str = "exact",
    transfer: str = "srgb",
    channel_axis: Optional[int] = None,
    **unknown: NoReturn,
) -> Array:
    """SSIMULACRA 2.1: how visible the difference between a picture and a compressed copy is.

    100 is no difference, 90 not seen in a flicker test, 70 hard to notice, 50 slightly annoying, 10
    very low; there is no lowest score. The bits are the same on every processor, number of threads
    and GPU, and with mode "exact" the 8 decimals are the reference program's. Source: Jon Sneyers,
    Cloudinary, 2023. It has no gradient.

    Args:
        reference, distorted: [H,W], [C,H,W] or [N,C,H,W], at least 8 pixels high and wide; C is 1
            (grey), 2 (grey and alpha), 3 (RGB) or 4 (RGB and alpha); u8, u16, f16, bf16, f32 or f64; alike
            in all but their strides. Integers span their type's range, floats 0 to 1. Pictures with
            alpha are blended over 0.1 and over 0.9, and the lower score counts.
        mode: "exact", or "fast": a finite filter for the recursive blur, up to about a point away.
        transfer: the encoding of samples: "srgb", or "linear" light with sRGB's primaries.
        channel_axis: as of ssim(): -1 for [H,W,C] and [N,H,W,C].

    Returns: f64, a scalar or [N].

    Raises:
        ValueError, TypeError: the pictures are not that.
    """
    if unknown:
        refuse_options("ssimulacra2", unknown, ssimulacra2)
    names = ("reference", "distorted")
    x, y = (
        pictures_first("ssimulacra2", name, without_gradient(each), channel_axis)
        for name, each in zip(names, (reference, distorted))
    )
    text = _ssimulacra2_text(0, mode, transfer)
    try:
        value = evaluate("ssimulacra2", text, x, y, names=names)
    except ValueError as error:  # the library calls them x and y
        words = re.sub(r"\b[xy]\b", lambda match: names["xy".index(match[0])], str(error))
        raise ValueError(words) from None
    look_at_range("ssimulacra2", 1.0, reference=x, distorted=y)
    return value


_ssimulacra2_text = described_once(measures.writer("ssimulacra2", *options_of(ssimulacra2)))

# SPDX-License-Identifier: Apache-2.0
"""SSIM, its mixture with |x - y|, and SSIM at several scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, Optional, TypeVar

from .._library import measures, values
from .._library.values import DataRange
from .dispatch import described_once, evaluate_images, options_of, spatial
from .losses import Options, loss_of, without_unknown
from .._library.measures import PerAxisFloat, PerAxisInt
from .unknown_options import refuse_options

Array = TypeVar("Array")


@without_unknown
def ssim(
    x: Array,
    y: Array,
    *,
    data_range: DataRange = None,
    window_size: PerAxisInt = 11,
    window: str = "gaussian",
    sigma: PerAxisFloat = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    sample_covariance: bool = False,
    padding: str = "valid",
    reduction: str = "mean",
    rows: Optional[Sequence[int]] = None,
    sums: bool = False,
    mask: Optional[Array] = None,
    valid_mask: Optional[Array] = None,
    channel_axis: Optional[int] = None,
    **unknown: NoReturn,
) -> Array:
    """Structural similarity: how alike x and y are where a window sees them.

        (2 μx μy + C1)(2 σxy + C2) / ((μx² + μy² + C1)(σx² + σy² + C2))

    At most 1, and 1 if x and y are equal. Source: Z. Wang, A. C. Bovik, H. R. Sheikh,
    E. P. Simoncelli, "Image quality assessment: from error visibility to structural similarity",
    IEEE TIP 13(4), 2004.

    Args:
        x, y: images [N,C,H,W], [C,H,W] or [H,W], or volumes [N,C,D,H,W]; u8, f16, bf16, f32 or
            f64; alike in all but their strides. u16, i16, i32 and bool are converted first, i32 to
            f64.
        data_range: largest minus smallest value a pixel can take, or (smallest, largest); by
            default 1 for floats and bool, 255 for u8, 65535 for u16; i16 and i32 have none. Floats
            above twice that are warned of once, in images of 16,384 elements and more on the CPU.
        window_size: in pixels, odd; one number, or one for each axis, (y, x) or (z, y, x).
        window: "gaussian", or "box" with all weights alike, which is scikit-image's default.
        sigma: standard deviation of a Gaussian window in pixels; one number, or one for each axis.
        k1, k2: C1 = (k1·data_range)², C2 = (k2·data_range)².
        sample_covariance: multiply σx², σy² and σxy by n / (n - 1), n the window's pixels, as of a
            sample. scikit-image does by default.
        padding: what a window sees outside the image. "valid": only windows inside count; "same":
            zeros; "reflect": the image mirrored at its outermost pixels; "replicate": the outermost
            pixel; "renormalize": nothing, the cut window's weights sum to 1 again.
        reduction: "mean" or "sum": one number; "per_image": [N]; "per_channel": [N,C]; "none": the
            map, smaller than the image by window_size - 1 with padding "valid".
        rows: (first, end): the centres of windows that count, of part of a larger image, along its
            first spatial axis. All rows that these windows see must be given, and no others;
            padding acts where the given rows end. A map has these rows alone.
        sums: return [2,N,C] in f64 instead, Σ weight·SSIM and Σ weight of each channel: those of
            parts add up to the image's. reduction is not read.
        mask: weights of the map, finite and not negative, shaped as x with N and C left out or 1
            where they are the same for all: the mean is Σ mask·SSIM / Σ mask. If they add up to 0,
            SSIM is NaN and a loss 0, both with gradient 0.
        valid_mask: which pixels exist, 0 or a weight, shaped as mask is. The others may hold
            anything, NaN included, have gradient 0 and are NaN in a map.
        channel_axis: the axis of the channels, -1 for [H,W,C] and [N,H,W,C]. Without it the
            channels come first, and a picture whose last axis looks like channels (3 or 4, behind
            two of 8 or more) is refused. Results and masks are laid out as the images are.

    Returns: f32, or f64 for f64 images, on the device of x; differentiable by x and y any number of
        times.

    Raises:
        ValueError: x and y are not alike or have no elements, window_size is even or, with
            sample_covariance, 1, data_range or sigma is not positive, k1 or k2 is negative, the
            image is smaller than the window allows, a mask does not broadcast or, on the CPU, holds
            a weight that is negative or not finite, or a name is not one of those above.
        TypeError: an argument is of the wrong kind.
        DeviceError: the device cannot be used.
    """
    if unknown:
        refuse_options("ssim", unknown, ssim)
    if data_range is not None and data_range.__class__ is not float:
        data_range = values.plain_range("ssim", data_range)
    given = (
        spatial(x),
        data_range,
        window_size,
        window,
        sigma,
        k1,
        k2,
        sample_covariance,
        padding,
        reduction,
        "similarity",
        rows,
        sums,
    )
    return evaluate_images("ssim", ssim_text, given, x, y, mask, valid_mask, channel_axis)


_ssim_options = Options(ssim)
*_others, _rows, _sums = options_of(ssim)  # rows and sums stand last: most callers leave them out
ssim_text = described_once(measures.writer("ssim", *_others, "form", _rows, _sums))


@loss_of(ssim)
def ssim_loss(
    x: Any,
    y: Any,
    *,
    mask: Any = None,
    valid_mask: Any = None,
    channel_axis: Any = None,
    **options: Any,
) -> Any:
    """1 - SSIM, computed as such: it keeps its relative precision as x and y become equal.

    Takes, returns and raises what ssim() does; 0 if x and y are equal, at most 2.
    """
    *others, rows, sums = _ssim_options.completed("ssim_loss", options)
    given = (spatial(x), *others, "loss", rows, sums)
    return evaluate_images("ssim", ssim_text, given, x, y, mask, valid_mask, channel_axis)


@without_unknown
def l1_ssim(
    x: Array,
    y: Array,
    *,
    weight: float = 0.2,
    data_range: DataRange = None,
    window_size: PerAxisInt = 11,
    window: str = "gaussian",
    sigma: PerAxisFloat = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    sample_covariance: bool = False,
    padding: str = "valid",
    reduction: str = "mean",
    rows: Optional[Sequence[int]] = None,
    sums: bool = False,
    mask: Optional[Array] = None,
    valid_mask: Optional[Array] = None,
    channel_axis: Optional[int] = None,
    **unknown: NoReturn,
) -> Array:
    """(1 - weight)·mean|x - y| + weight·(1 - SSIM), in one pass: a loss, 0 if x and y are equal.

    The loss of 3D Gaussian splatting (Kerbl et al., ACM TOG 42(4), 2023), with weight 0.2 there.
    The mean of |x - y| runs over all pixels, weighted by the masks as SSIM's is.

    Takes, returns and raises what ssim() does; weight is from 0 to 1, and reduction "none" needs a
    padding other than "valid". |x - y| is taken of pixels in `rows`; on a GPU a mask is refused
    with them. `sums` are [4,N,C]: of weight·(1 - SSIM), of the map's weights, of
    (1 - weight)·|x - y|, and of the pixels' weights.
    """
    if unknown:
        refuse_options("l1_ssim", unknown, l1_ssim)
    if data_range is not None and data_range.__class__ is not float:
        data_range = values.plain_range("l1_ssim", data_range)
    given = (
        spatial(x),
        weight,
        data_range,
        window_size,
        window,
        sigma,
        k1,
        k2,
        sample_covariance,
        padding,
        reduction,
        rows,
        sums,
    )
    return evaluate_images("l1_ssim", _l1_ssim_text, given, x, y, mask, valid_mask, channel_axis)


_l1_ssim_text = described_once(measures.l1_ssim_writer(*options_of(l1_ssim)[1:]))


@without_unknown
def ms_ssim(
    x: Array,
    y: Array,
    *,
    data_range: DataRange = None,
    window_size: PerAxisInt = 11,
    sigma: PerAxisFloat = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    padding: str = "valid",
    reduction: str = "mean",
    weights: Optional[Sequence[float]] = None,
    downsample: str = "vainf",
    mask: Optional[Array] = None,
    channel_axis: Optional[int] = None,
    **unknown: NoReturn,
) -> Array:
    """Multi-scale SSIM: contrast and structure at several scales, luminance at the coarsest.

        Π_{l<L} mean(cs_l)^w_l · mean(SSIM_L)^w_L, of each channel of each image

    From 0 to 1, and 1 if x and y are equal; a negative mean counts as 0. Source: Z. Wang,
    E. P. Simoncelli, A. C. Bovik, "Multi-scale structural similarity for image quality assessment",
    Asilomar 2003.

    Args:
        x, y, data_range, window_size, sigma, k1, k2: as of ssim().
        padding: as of ssim(), at each level.
        reduction: "mean", "sum", "per_image" or "per_channel".
        weights: one for each level, finest first; by default the five of the paper.
        downsample: how an odd side is halved. "vainf": a rim of zeros, counted in the average
            (pytorch-msssim); "ceil": the last row or column is repeated (MATLAB, TensorFlow);
            "floor": it is left out (torchmetrics); "piq": one is repeated at the top and left.
        mask: weights of the pixels, shaped as ssim()'s. Each level halves them as it halves the
            images, and weighs its map by them. A channel whose weights add up to 0 at some level is
            NaN (a loss 0), with gradient 0; means and sums over channels leave it out.
        channel_axis: as of ssim().

    Returns: f32, or f64 for f64 images; a scalar, [N] or [N,C]; differentiable as ssim() is.

    Raises:
        ValueError: as ssim(), and if the coarsest level is smaller than the window: the message
            names the smallest size, 161 pixels for the defaults.
    """
    if unknown:
        refuse_options("ms_ssim", unknown, ms_ssim)
    if data_range is not None and data_range.__class__ is not float:
        data_range = values.plain_range("ms_ssim", data_range)
    given = (
        spatial(x),
        data_range,
        window_size,
        sigma,
        k1,
        k2,
        padding,
        reduction,
        weights,
        downsample,
        "similarity",
    )
    return evaluate_images("ms_ssim", ms_ssim_text, given, x, y, mask, None, channel_axis)


_ms_ssim_options = Options(ms_ssim)
ms_ssim_text = described_once(measures.writer("ms_ssim", *options_of(ms_ssim), "form"))


@loss_of(ms_ssim)
def ms_ssim_loss(
    x: Any, y: Any, *, mask: Any = None, channel_axis: Any = None, **options: Any
) -> Any:
    """1 - MS-SSIM, computed so that it keeps its relative precision as x and y become equal.

    Takes, returns and raises what ms_ssim() does.
    """
    given = (spatial(x), *_ms_ssim_options.completed("ms_ssim_loss", options), "loss")
    return evaluate_images("ms_ssim", ms_ssim_text, given, x, y, mask, None, channel_axis)

# SPDX-License-Identifier: Apache-2.0
"""similis measures how alike two images are, and how to make them more alike.

Every function takes two images x and y, alike in shape, dtype and device, with any strides, and
returns what it was given: torch.Tensor for torch.Tensor, differentiable by both images, and the
same for NumPy's, CuPy's and JAX's arrays. Images are [N,C,H,W], volumes [N,C,D,H,W]; u8, f16, bf16,
f32 or f64. Results are f32, or f64 for f64 images.

What is refused raises ValueError or TypeError with a sentence that names the argument; a device or
driver that is missing or too old raises similis.DeviceError. Images on a GPU are never moved.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Callable, Optional, TypeVar

from . import _arrays, _measure
from ._c import DeviceError, __version__
from ._dispatch import (
    WithGradient,
    described_once,
    evaluate,
    for_jax,
    for_torch,
    is_of,
    kind_of,
    spatial,
)
from ._measure import PerAxisFloat, PerAxisInt, Range
from ._transforms import (
    affine_grid,
    compose,
    exponentiate,
    invert,
    jacobian_determinant,
    sample,
    sample_labels,
)

__all__ = [
    "DeviceError",
    "__version__",
    "affine_grid",
    "compose",
    "exponentiate",
    "float_ms_ssim",
    "float_ssim",
    "histogram",
    "integer_ssim",
    "invert",
    "jacobian_determinant",
    "l1_ssim",
    "libvmaf_psnr",
    "lncc",
    "lncc_loss",
    "mae",
    "ms_ssim",
    "ms_ssim_loss",
    "mse",
    "mutual_information",
    "mutual_information_from_histogram",
    "mutual_information_loss",
    "psnr",
    "sample",
    "sample_labels",
    "ssim",
    "ssim_loss",
    "ssimulacra2",
    "value_and_gradient",
]

Array = TypeVar("Array")


def __getattr__(name: str) -> Any:
    """similis.nn and similis.compat, which import torch, once they are asked for."""
    if name in ("nn", "compat"):
        return importlib.import_module(f"similis.{name}")
    raise AttributeError(f"module 'similis' has no attribute {name!r}")


_ssim_text = described_once(_measure.ssim_text)
_l1_ssim_text = described_once(_measure.l1_ssim_text)
_ms_ssim_text = described_once(_measure.ms_ssim_text)
_lncc_text = described_once(_measure.lncc_text)
_pixel_error_text = described_once(_measure.pixel_error_text)
_of_planes_text = described_once(_measure.of_planes_text)
_float_ssim_text = described_once(_measure.float_ssim_text)
_ssimulacra2_text = described_once(_measure.ssimulacra2_text)
_mutual_information_text = described_once(_measure.mutual_information_text)


def ssim(
    x: Array,
    y: Array,
    *,
    data_range: Optional[float] = None,
    window_size: PerAxisInt = 11,
    sigma: PerAxisFloat = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    padding: str = "valid",
    reduction: str = "mean",
    mask: Optional[Array] = None,
    valid_mask: Optional[Array] = None,
) -> Array:
    """Structural similarity: how alike x and y are where a Gaussian window sees them.

        (2 μx μy + C1)(2 σxy + C2) / ((μx² + μy² + C1)(σx² + σy² + C2))

    At most 1, and 1 if x and y are equal. Source: Z. Wang, A. C. Bovik, H. R. Sheikh,
    E. P. Simoncelli, "Image quality assessment: from error visibility to structural similarity",
    IEEE TIP 13(4), 2004.

    Args:
        x, y: [N,C,H,W] or [N,C,D,H,W]; u8, f16, bf16, f32 or f64; alike in all but their strides.
        data_range: largest minus smallest value a pixel can take; by default 1 for floats, 255 for
            u8.
        window_size: in pixels, odd; one number, or one for each axis, (y, x) or (z, y, x).
        sigma: standard deviation of the window in pixels; one number, or one for each axis.
        k1, k2: C1 = (k1·data_range)², C2 = (k2·data_range)².
        padding: what a window sees outside the image. "valid": only windows inside count; "same":
            zeros; "reflect": the image mirrored at its outermost pixels; "replicate": the outermost
            pixel; "renormalize": nothing, the cut window's weights sum to 1 again.
        reduction: "mean" or "sum": one number; "per_image": [N]; "per_channel": [N,C]; "none": the
            map, smaller than the image by window_size - 1 with padding "valid".
        mask: weights of the map, not negative, shaped as x with N and C left out or 1 where they
            are the same for all: the mean is Σ mask·SSIM / Σ mask.
        valid_mask: which pixels exist, 0 or a weight, shaped as mask is. The others may hold
            anything, NaN included, and have gradient 0.

    Returns: f32, or f64 for f64 images, on the device of x; differentiable by x and y any number of
        times.

    Raises:
        ValueError: x and y are not alike or have no elements, window_size is even, data_range or
            sigma is not positive, k1 or k2 is negative, the image is smaller than the window
            allows, a mask does not broadcast, or a name is not one of those above.
        TypeError: an argument is of the wrong kind.
        DeviceError: the device cannot be used.
    """
    text = _ssim_text(
        spatial(x), data_range, window_size, sigma, k1, k2, padding, reduction, "similarity"
    )
    return evaluate("ssim", text, x, y, mask, valid_mask)


def ssim_loss(
    x: Array,
    y: Array,
    *,
    data_range: Optional[float] = None,
    window_size: PerAxisInt = 11,
    sigma: PerAxisFloat = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    padding: str = "valid",
    reduction: str = "mean",
    mask: Optional[Array] = None,
    valid_mask: Optional[Array] = None,
) -> Array:
    """1 - SSIM, computed as such: it keeps its relative precision as x and y become equal.

    Takes, returns and raises what ssim() does; 0 if x and y are equal, at most 2.
    """
    text = _ssim_text(
        spatial(x), data_range, window_size, sigma, k1, k2, padding, reduction, "loss"
    )
    return evaluate("ssim", text, x, y, mask, valid_mask)


def l1_ssim(
    x: Array,
    y: Array,
    *,
    weight: float = 0.2,
    data_range: Optional[float] = None,
    window_size: PerAxisInt = 11,
    sigma: PerAxisFloat = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    padding: str = "valid",
    reduction: str = "mean",
    mask: Optional[Array] = None,
    valid_mask: Optional[Array] = None,
) -> Array:
    """(1 - weight)·mean|x - y| + weight·(1 - SSIM), in one pass: a loss, 0 if x and y are equal.

    The loss of 3D Gaussian splatting (Kerbl et al., ACM TOG 42(4), 2023), with weight 0.2 there.
    The mean of |x - y| runs over all pixels, weighted by the masks as SSIM's is.

    Takes, returns and raises what ssim() does; weight is from 0 to 1, and reduction "none" needs a
    padding other than "valid".
    """
    text = _l1_ssim_text(
        spatial(x), weight, data_range, window_size, sigma, k1, k2, padding, reduction
    )
    return evaluate("l1_ssim", text, x, y, mask, valid_mask)


def ms_ssim(
    x: Array,
    y: Array,
    *,
    data_range: Optional[float] = None,
    window_size: PerAxisInt = 11,
    sigma: PerAxisFloat = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    padding: str = "valid",
    reduction: str = "mean",
    weights: Optional[Sequence[float]] = None,
    downsample: str = "vainf",
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

    Returns: f32, or f64 for f64 images; a scalar, [N] or [N,C]; differentiable as ssim() is.

    Raises:
        ValueError: as ssim(), and if the coarsest level is smaller than the window: the message
            names the smallest size, 161 pixels for the defaults.
    """
    text = _ms_ssim_text(
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
    return evaluate("ms_ssim", text, x, y)


def ms_ssim_loss(
    x: Array,
    y: Array,
    *,
    data_range: Optional[float] = None,
    window_size: PerAxisInt = 11,
    sigma: PerAxisFloat = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    padding: str = "valid",
    reduction: str = "mean",
    weights: Optional[Sequence[float]] = None,
    downsample: str = "vainf",
) -> Array:
    """1 - MS-SSIM, computed so that it keeps its relative precision as x and y become equal.

    Takes, returns and raises what ms_ssim() does.
    """
    text = _ms_ssim_text(
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
        "loss",
    )
    return evaluate("ms_ssim", text, x, y)


def lncc(
    x: Array,
    y: Array,
    *,
    window_size: PerAxisInt = 3,
    window: str = "box",
    sigma: PerAxisFloat = 1.5,
    padding: str = "same",
    reduction: str = "mean",
    smooth_nr: float = 1e-5,
    smooth_dr: float = 1e-5,
    signed: bool = False,
    gradient: str = "exact",
    mask: Optional[Array] = None,
    valid_mask: Optional[Array] = None,
) -> Array:
    """Local normalised cross-correlation: how well y follows x, up to contrast and brightness.

        clamp((A² + nr) / (B·C + dr), -1, 1),  A = k·(E[xy] - E[x]E[y]),
        B = max(k·(E[x²] - E[x]²), dr),  C likewise of y

    with E the average under a window of k taps, nr = smooth_nr·k, dr = smooth_dr·k. Source:
    B. B. Avants et al., "Symmetric diffeomorphic image registration with cross-correlation",
    Medical Image Analysis 12(1), 2008.

    Args:
        x, y: [N,C,H,W] or [N,C,D,H,W]; u8, f16, bf16, f32 or f64; alike in all but their strides.
        window_size: in pixels, odd; one number, or one for each axis, (y, x) or (z, y, x).
        window: "box" or "gaussian".
        sigma: standard deviation of the Gaussian in pixels; one number, or one for each axis.
        padding: what a window sees outside the image. "same": zeros; "renormalize": nothing, it
            averages what it has; "valid": only windows inside count.
        reduction: "mean" or "sum": one number; "per_image": [N]; "per_channel": [N,C]; "none": the
            map, smaller than the image by window_size - 1 with padding "valid".
        smooth_nr, smooth_dr: steady windows that are flat.
        signed: clamp(A / (√B·√C), -1, 1) instead, which tells x from -x.
        gradient: "exact": the derivative; "ants": that of each pixel's own window, its means held.
        mask: weights of the map, not negative, shaped as x with N and C left out or 1 where they
            are the same for all: the mean is Σ mask·LNCC / Σ mask.
        valid_mask: which pixels exist, 0 or a weight, shaped as mask is. The others may hold
            anything, NaN included, and have gradient 0.

    Returns: f32, or f64 for f64 images, on the device of x; differentiable by x and y any number of
        times, with gradient "ants" once.

    Raises:
        ValueError: x and y are not alike or have no elements, window_size is even, sigma or
            smooth_dr is not positive, smooth_nr is negative, padding is valid and the image smaller
            than the window, gradient is "ants" and signed, a mask does not broadcast, or a name is
            not one of those above.
        TypeError: an argument is of the wrong kind.
        DeviceError: the device cannot be used.
    """
    text = _lncc_text(
        spatial(x),
        window_size,
        window,
        sigma,
        padding,
        reduction,
        smooth_nr,
        smooth_dr,
        signed,
        gradient,
        1.0,
    )
    return evaluate("lncc", text, x, y, mask, valid_mask)


def lncc_loss(
    x: Array,
    y: Array,
    *,
    window_size: PerAxisInt = 3,
    window: str = "box",
    sigma: PerAxisFloat = 1.5,
    padding: str = "same",
    reduction: str = "mean",
    smooth_nr: float = 1e-5,
    smooth_dr: float = 1e-5,
    signed: bool = False,
    gradient: str = "exact",
    mask: Optional[Array] = None,
    valid_mask: Optional[Array] = None,
) -> Array:
    """-LNCC: what registration minimises, -1 at best.

    Takes, returns and raises what lncc() does.
    """
    text = _lncc_text(
        spatial(x),
        window_size,
        window,
        sigma,
        padding,
        reduction,
        smooth_nr,
        smooth_dr,
        signed,
        gradient,
        -1.0,
    )
    return evaluate("lncc", text, x, y, mask, valid_mask)


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
    return evaluate("mse", _pixel_error_text("mse", None, reduction), x, y)


def mae(x: Array, y: Array, *, reduction: str = "mean") -> Array:
    """Mean absolute error, in units of a pixel; its gradient is 0 where x and y are equal.

    Takes, returns and raises what mse() does.
    """
    return evaluate("mae", _pixel_error_text("mae", None, reduction), x, y)


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
    text = _pixel_error_text("psnr", data_range, reduction)
    return _arrays.evaluate("psnr", text, kind_of("psnr", x), x, y)[0]


def integer_ssim(x: Array, y: Array, *, bit_depth: Optional[int] = None) -> Array:
    """libvmaf's `ssim` of planes of video: SSIM of raw samples under a 9×9 window of integers.

    The window is cut at the borders, and each pixel is weighted by what is left of it. Exact: the
    bits are the same on every processor, number of threads and GPU. Source: libvmaf's integer_ssim.

    Args:
        x, y: a plane [H,W] or planes [N,H,W], of luma; u8, or u16 with samples in the low bits;
            alike in all but their strides.
        bit_depth: of a sample, 8, 10, 12 or 16; by default 8 for u8, 16 for u16.

    Returns: f64, a scalar or [N]. On a GPU a pair with a sample above 2^bit_depth - 1 is NaN.

    Raises:
        ValueError, TypeError: x and y are not alike or not that, bit_depth does not fit their
            dtype, or, on the CPU, a sample is above 2^bit_depth - 1.
    """
    _refuse_jax("integer_ssim", "x", x)
    return evaluate("integer_ssim", _of_planes_text("integer_ssim", bit_depth), x, y)


def float_ssim(
    x: Array,
    y: Array,
    *,
    bit_depth: Optional[int] = None,
    scale: Optional[int] = None,
    enable_db: bool = False,
    clip_db: bool = False,
) -> Array:
    """libvmaf's `float_ssim` of planes of video: SSIM in f32, of planes that were shrunk first.

    All digits that libvmaf prints are the same. Source: libvmaf's float_ssim.

    Args:
        x, y, bit_depth: as of integer_ssim(), on the CPU.
        scale: shrink by this first, from 1 to 10; by default the shorter side / 256, rounded.
        enable_db: whether the score is -10·log10(1 - SSIM).
        clip_db: whether it is at most the decibels of half a squared error in all.

    Returns: f64, a scalar or [N].

    Raises:
        ValueError, TypeError: as integer_ssim(), and if a shrunk side is below 11.
        DeviceError: the planes are on a GPU.
    """
    _refuse_jax("float_ssim", "x", x)
    text = _float_ssim_text("float_ssim", bit_depth, scale, enable_db, clip_db)
    return evaluate("float_ssim", text, x, y)


def float_ms_ssim(
    x: Array,
    y: Array,
    *,
    bit_depth: Optional[int] = None,
    enable_db: bool = False,
    clip_db: bool = False,
) -> Array:
    """libvmaf's `float_ms_ssim` of planes of video: MS-SSIM in f32 of five scales.

    Takes, returns and raises what float_ssim() does; sides are at least 176.
    """
    _refuse_jax("float_ms_ssim", "x", x)
    text = _float_ssim_text("float_ms_ssim", bit_depth, None, enable_db, clip_db)
    return evaluate("float_ms_ssim", text, x, y)


def libvmaf_psnr(x: Array, y: Array, *, bit_depth: Optional[int] = None) -> Array:
    """libvmaf's `psnr_y`, `psnr_cb` or `psnr_cr` of planes of video, in dB; finite for equal ones.

    Takes, returns and raises what integer_ssim() does; on the CPU.
    """
    _refuse_jax("libvmaf_psnr", "x", x)
    return evaluate("libvmaf_psnr", _of_planes_text("libvmaf_psnr", bit_depth), x, y)


def ssimulacra2(
    reference: Array, distorted: Array, *, mode: str = "exact", transfer: str = "srgb"
) -> Array:
    """SSIMULACRA 2.1: how visible the difference between a picture and a compressed copy is.

    100 is no difference, 90 not seen in a flicker test, 70 hard to notice, 50 slightly annoying, 10
    very low; there is no lowest score. The bits are the same on every processor, number of threads
    and GPU, and with mode "exact" the 8 decimals are the reference program's. Source: Jon Sneyers,
    Cloudinary, 2023. It has no gradient.

    Args:
        reference, distorted: [C,H,W] or [N,C,H,W], at least 8 pixels high and wide; C is 1 (grey), 2
            (grey and alpha), 3 (RGB) or 4 (RGB and alpha); u8, u16, f16, bf16, f32 or f64; alike in
            all but their strides. Integers span their type's range, floats 0 to 1. Pictures with
            alpha are blended over 0.1 and over 0.9, and the lower score counts.
        mode: "exact", or "fast": a finite filter for the recursive blur, up to about a point away.
        transfer: what samples mean: "srgb", or "linear" light with sRGB's primaries.

    Returns: f64, a scalar or [N].

    Raises:
        ValueError, TypeError: the pictures are not that.
    """
    _refuse_jax("ssimulacra2", "reference", reference)
    if is_of("torch", "Tensor", reference) and is_of("torch", "Tensor", distorted):
        reference, distorted = reference.detach(), distorted.detach()
    return evaluate("ssimulacra2", _ssimulacra2_text(mode, transfer), reference, distorted)


def _refuse_jax(operation: str, name: str, array: Any) -> None:
    if is_of("jax", "Array", array):
        raise TypeError(
            f"{operation}: {name} is JAX's, which has no float64 by default; give NumPy's"
        )


def mutual_information(
    x: Array,
    y: Array,
    *,
    num_bins: int = 32,
    kernel: str = "b_spline",
    sigma_ratio: float = 1.0,
    range: Range = "per_image",
    normalized: bool = False,
    smooth_nr: float = 0.0,
    smooth_dr: float = 0.0,
    method: str = "exact",
    sampling: float = 1.0,
    seed: int = 0,
    reduction: str = "mean",
    mask: Optional[Array] = None,
) -> Array:
    """Mutual information: how much the values of x tell about those of y at the same voxels.

        Σ_ab p_ab log(p_ab / (p_a p_b)), in nats

    0 if they are independent; what registers images of different modalities. p_ab is a joint
    histogram in which each voxel counts by smooth weights, so that it has a gradient. Sources:
    P. Viola, W. M. Wells, "Alignment by maximization of mutual information", IJCV 24(2), 1997;
    D. Mattes et al., "PET-CT image registration in the chest using free-form deformations", IEEE
    TMI 22(1), 2003.

    Args:
        x, y: [N,C,…] of 3 to 8 axes; u8, u16, f16, bf16, f32 or f64; alike in all but their strides.
        num_bins: of each image's histogram, 4 to 256.
        kernel: how a voxel counts in the bins about its value. "b_spline": a cubic B-spline, in 4;
            "gaussian": of standard deviation sigma_ratio / 2 bins; "delta": all in the bin that
            holds the value, which has no gradient.
        sigma_ratio: of the Gaussian, at least 0.1.
        range: which values the first bin begins and the last ends at: (low, high), with values
            outside clamped to them; "per_image": smallest and largest of a channel of an image;
            "common": the same, of x and y together. Found limits are constants for the gradient.
        normalized: (H(x) + H(y)) / H(x,y) instead, from 1 to 2.
        smooth_nr, smooth_dr: if either is above 0 the logarithm is that of
            (p_ab + nr) / (p_a p_b + dr) + dr.
        method: "binned" counts whole voxels and then blurs the histogram by the Gaussian; the
            gradient takes the kernel's weights all the same.
        sampling: share of the voxels that are looked at, chosen by the seed.
        reduction: over N and C: "mean" or "sum": one number; "per_image": [N]; "none" or
            "per_channel": [N,C].
        mask: which voxels exist, those above 0; shaped as x with N and C left out or 1 where they
            are the same for all. The others may hold anything and have gradient 0.

    Returns: f32, or f64 for f64 images, on the device of x; differentiable by x and y. NaN if a
        voxel that counts is.

    Raises:
        ValueError, TypeError: x and y are not alike or have no elements, the mask does not
            broadcast, an option is not one of those above, or a gradient is asked for with kernel
            "delta".
        DeviceError: the device cannot be used.
    """
    text = _mutual_information_text(
        "mutual_information",
        num_bins,
        kernel,
        sigma_ratio,
        range,
        normalized,
        smooth_nr,
        smooth_dr,
        method,
        sampling,
        seed,
        reduction,
        "measure",
    )
    return evaluate("mutual_information", text, x, y, mask)


def mutual_information_loss(
    x: Array,
    y: Array,
    *,
    num_bins: int = 32,
    kernel: str = "b_spline",
    sigma_ratio: float = 1.0,
    range: Range = "per_image",
    normalized: bool = False,
    smooth_nr: float = 0.0,
    smooth_dr: float = 0.0,
    method: str = "exact",
    sampling: float = 1.0,
    seed: int = 0,
    reduction: str = "mean",
    mask: Optional[Array] = None,
) -> Array:
    """The negative of mutual_information(), to be minimised.

    Takes, returns and raises what mutual_information() does.
    """
    text = _mutual_information_text(
        "mutual_information",
        num_bins,
        kernel,
        sigma_ratio,
        range,
        normalized,
        smooth_nr,
        smooth_dr,
        method,
        sampling,
        seed,
        reduction,
        "loss",
    )
    return evaluate("mutual_information", text, x, y, mask)


def histogram(
    x: Array,
    y: Array,
    *,
    num_bins: int = 32,
    kernel: str = "b_spline",
    sigma_ratio: float = 1.0,
    range: Range = "per_image",
    method: str = "exact",
    sampling: float = 1.0,
    seed: int = 0,
    mask: Optional[Array] = None,
) -> Array:
    """The joint histogram behind mutual_information(), in voxels: it sums to their number.

    With a range of (low, high) those of parts of an image add up to that of the whole, from which
    mutual_information_from_histogram() computes. With method "binned" it is not blurred yet.

    Returns: f64, [N,C,num_bins,num_bins], without a gradient.
    """
    _refuse_jax("histogram", "x", x)
    text = _mutual_information_text(
        "histogram",
        num_bins,
        kernel,
        sigma_ratio,
        range,
        False,
        0.0,
        0.0,
        method,
        sampling,
        seed,
        "mean",
        "measure",
    )
    return evaluate("histogram", text, x, y, mask)


def mutual_information_from_histogram(
    histogram: Array,
    *,
    sigma_ratio: float = 1.0,
    normalized: bool = False,
    smooth_nr: float = 0.0,
    smooth_dr: float = 0.0,
    method: str = "exact",
    reduction: str = "mean",
) -> Array:
    """The mutual information that a histogram(), or a sum of them, says.

    Args:
        histogram: [N,C,bins,bins], f64, dense.
        sigma_ratio, normalized, smooth_nr, smooth_dr, method, reduction: as of
            mutual_information().

    Returns: f64, a scalar, [N] or [N,C], without a gradient.
    """
    name = "mutual_information_from_histogram"
    _refuse_jax(name, "histogram", histogram)
    text = _mutual_information_text(
        name,
        32,
        "b_spline",
        sigma_ratio,
        "per_image",
        normalized,
        smooth_nr,
        smooth_dr,
        method,
        1.0,
        0,
        reduction,
        "measure",
    )
    return evaluate(name, text, histogram, histogram)


def value_and_gradient(
    measure: Callable[..., Any], x: Array, y: Array, *, wrt: str = "x", **options: Any
) -> tuple[Array, ...]:
    """The value of measure(x, y, **options), and the gradients of its sum over all results.

    For NumPy's and CuPy's arrays, in one pass over the images; torch and JAX have autograd.

    Args:
        measure: similis.ssim, ssim_loss, l1_ssim, ms_ssim, ms_ssim_loss, lncc, lncc_loss,
            mutual_information, mutual_information_loss, mse or mae.
        x, y: as the measure takes them, in f16, bf16, f32 or f64.
        wrt: which gradients are returned: "x", "y" or "both".
        options: those of the measure.

    Returns: (value, gradient), or (value, gradient by x, gradient by y); gradients have the shape
        and dtype of x.

    Raises:
        ValueError, TypeError: as the measure, and if the images are integers.
    """
    if measure not in _WITH_GRADIENT:
        names = ", ".join(each.__name__ for each in _WITH_GRADIENT)
        raise TypeError(f"value_and_gradient: measure is {measure!r}; it must be one of {names}")
    if wrt not in ("x", "y", "both"):
        raise ValueError(f"value_and_gradient: wrt is {wrt!r}; it must be x, y or both")
    kind_of("value_and_gradient", x)
    return tuple(measure(WithGradient(x, wrt != "y", wrt != "x"), y, **options))


_WITH_GRADIENT = (
    ssim,
    ssim_loss,
    l1_ssim,
    ms_ssim,
    ms_ssim_loss,
    lncc,
    lncc_loss,
    mutual_information,
    mutual_information_loss,
    mse,
    mae,
)

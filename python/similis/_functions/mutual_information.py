# SPDX-License-Identifier: Apache-2.0
"""Mutual information, and the joint histogram behind it."""

from __future__ import annotations

from typing import Any, Callable, NoReturn, Optional, TypeVar

from .._arrays import measures as arrays_measures
from .._arrays.kinds import is_of, kind_of
from .._library import measures
from . import layouts
from .dispatch import (
    WithGradient,
    described_once,
    evaluate,
    evaluate_images,
    for_torch,
    options_of,
    without_gradient,
)
from .losses import Options, loss_of, without_unknown
from .._library.measures import Range
from .unknown_options import refuse_options

Array = TypeVar("Array")


@without_unknown
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
    histogram: Optional[Array] = None,
    limits: Optional[Array] = None,
    channel_axis: Optional[int] = None,
    **unknown: NoReturn,
) -> Array:
    """Mutual information: how much the values of x tell about those of y at the same voxels.

        Σ_ab p_ab log(p_ab / (p_a p_b)), in nats

    0 if they are independent. It registers images of different modalities. p_ab is a joint
    histogram to which each voxel adds smooth weights, so that it has a gradient. Sources:
    P. Viola, W. M. Wells, "Alignment by maximization of mutual information", IJCV 24(2), 1997;
    D. Mattes et al., "PET-CT image registration in the chest using free-form deformations", IEEE
    TMI 22(1), 2003.

    Args:
        x, y: [H,W], [C,H,W], or [N,C,…] of 4 to 8 axes; bool, integers of 8, 16 or 32 bits, f16,
            bf16, f32 or f64; alike in all but their strides.
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
            are the same for all. The others may hold anything and have gradient 0. Numbers are
            finite and not negative. If no voxel is left, the measure is NaN and the loss 0.
        histogram: [N,C,num_bins,num_bins], f64, dense: the sum of the histogram()s of an image's
            parts, of which x and y are one. The value is then the whole image's, and gradients are
            those of the whole's value. A constant for the gradient.
        limits: [N,C,4], f64, dense: the values at which the first bin begins and the last ends, x's
            two and then y's, for each channel. They take the place of range, so that a part counts
            as the whole does; values outside are clamped. A constant for the gradient.
        channel_axis: as of ssim().

    histogram and limits take torch, NumPy and CuPy. With them torch's gradients are differentiable
    once, and torch.compile and torch.func are refused.

    Returns: f32, or f64 for f64 images, on the device of x; differentiable by x and y. NaN if a
        voxel that counts is.

    Raises:
        ValueError, TypeError: x and y are not alike or have no elements, the mask does not
            broadcast, an option is not one of those above, or a gradient is asked for with kernel
            "delta".
        DeviceError: the device cannot be used.
    """
    if unknown:
        refuse_options("mutual_information", unknown, mutual_information)
    given = (
        0,
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
    describe = _mutual_information_text
    return _evaluate(
        "mutual_information", describe, given, x, y, mask, channel_axis, histogram, limits
    )


_options = Options(mutual_information)
_mutual_information_text = described_once(
    measures.writer("mutual_information", *options_of(mutual_information), "form")
)


@loss_of(mutual_information)
def mutual_information_loss(
    x: Any,
    y: Any,
    *,
    mask: Any = None,
    histogram: Any = None,
    limits: Any = None,
    channel_axis: Any = None,
    **options: Any,
) -> Any:
    """The negative of mutual_information(), to be minimised.

    Takes, returns and raises what mutual_information() does.
    """
    completed = _options.completed("mutual_information_loss", options)
    given = (0, *completed, "loss")
    describe = _mutual_information_text
    return _evaluate(
        "mutual_information", describe, given, x, y, mask, channel_axis, histogram, limits
    )


def _evaluate(
    operation: str,
    describe: Callable[..., str],
    given: tuple[Any, ...],
    x: Any,
    y: Any,
    mask: Any,
    channel_axis: Optional[int],
    histogram: Any,
    limits: Any,
) -> Any:
    """The measure of images, or of a part of them if the whole's histogram or limits are given."""
    if histogram is None and limits is None:
        return evaluate_images(operation, describe, given, x, y, mask, None, channel_axis)
    text = describe(*given)
    image = x.image if isinstance(x, WithGradient) else x
    if image is not x and is_of("torch", "Tensor", image):
        return None  # autograd computes it
    if not is_of("torch", "Tensor", image) and is_of("jax", "Array", image):
        raise TypeError(
            f"{operation}: histogram and limits take torch, NumPy and CuPy; x is a jax.Array"
        )

    def run(_: Any, part: Any, other: Any, weights: Any) -> Any:
        if is_of("torch", "Tensor", part):
            return for_torch().information_of_part(
                operation, text, part, other, weights, histogram, limits
            )
        results = arrays_measures.evaluate(
            operation,
            text,
            kind_of(operation, part),
            part,
            other,
            weights,
            of_x=isinstance(x, WithGradient) and x.of_x,
            of_y=isinstance(x, WithGradient) and x.of_y,
            histogram=histogram,
            limits=limits,
        )
        return results if isinstance(x, WithGradient) else results[0]

    if not hasattr(image, "shape"):
        kind_of(operation, image)  # refuses it
    return layouts.evaluate(run, operation, (image, y), (mask,), channel_axis, False)


@without_unknown
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
    limits: Optional[Array] = None,
    channel_axis: Optional[int] = None,
    **unknown: NoReturn,
) -> Array:
    """The joint histogram behind mutual_information(), in voxels: it sums to their number.

    With a range of (low, high), or with limits, those of parts of an image add up to that of the
    whole, from which mutual_information_from_histogram() computes, and mutual_information() the
    gradient of a part. With method "binned" it is not blurred yet.

    limits: as of mutual_information().

    Returns: f64 (f32 where JAX has no f64), [N,C,num_bins,num_bins], without a gradient.
    """
    if unknown:
        refuse_options("histogram", unknown, histogram)
    x, y = without_gradient(x), without_gradient(y)
    given = (0, num_bins, kernel, sigma_ratio, range, method, sampling, seed)
    return _evaluate(
        "histogram", _histogram_text, given, x, y, mask, channel_axis, None, limits
    )


_histogram_text = described_once(measures.writer("histogram", *options_of(histogram)))


@without_unknown
def mutual_information_from_histogram(
    histogram: Array,
    *,
    sigma_ratio: float = 1.0,
    normalized: bool = False,
    smooth_nr: float = 0.0,
    smooth_dr: float = 0.0,
    method: str = "exact",
    reduction: str = "mean",
    **unknown: NoReturn,
) -> Array:
    """The mutual information of a histogram(), or of a sum of them.

    Args:
        histogram: [N,C,bins,bins], f64, dense.
        sigma_ratio, normalized, smooth_nr, smooth_dr, method, reduction: as of
            mutual_information().

    Returns: f64, a scalar, [N] or [N,C], without a gradient.
    """
    if unknown:
        refuse_options("mutual_information_from_histogram", unknown, mutual_information_from_histogram)
    name = "mutual_information_from_histogram"
    histogram = without_gradient(histogram)
    text = _from_histogram_text(
        0, sigma_ratio, normalized, smooth_nr, smooth_dr, method, reduction
    )
    return evaluate(name, text, histogram, histogram, names=("histogram", "histogram"))


_from_histogram_text = described_once(
    measures.writer(
        "mutual_information_from_histogram", *options_of(mutual_information_from_histogram)
    )
)

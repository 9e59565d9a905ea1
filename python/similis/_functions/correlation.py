# SPDX-License-Identifier: Apache-2.0
"""Cross-correlation, under a window or of whole images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, Optional, TypeVar

from .._library import measures
from .dispatch import described_once, evaluate_images, options_of, spatial
from .losses import Options, loss_of, without_unknown
from .._library.measures import PerAxisFloat, PerAxisInt
from .unknown_options import refuse_options

Array = TypeVar("Array")


@without_unknown
def lncc(
    x: Array,
    y: Array,
    *,
    window_size: PerAxisInt = 3,
    window: str = "box",
    sigma: PerAxisFloat = 1.5,
    padding: str = "same",
    reduction: str = "mean",
    rows: Optional[Sequence[int]] = None,
    sums: bool = False,
    smooth_nr: float = 1e-5,
    smooth_dr: float = 1e-5,
    signed: bool = False,
    gradient: str = "exact",
    workspace: str = "auto",
    mask: Optional[Array] = None,
    valid_mask: Optional[Array] = None,
    channel_axis: Optional[int] = None,
    **unknown: NoReturn,
) -> Array:
    """Local normalised cross-correlation: how well y follows x, up to contrast and brightness.

        clamp((A² + nr) / (B·C + dr), -1, 1),  A = k·(E[xy] - E[x]E[y]),
        B = max(k·(E[x²] - E[x]²), dr),  C likewise of y

    with E the average under a window of k taps, nr = smooth_nr·k, dr = smooth_dr·k. Source:
    B. B. Avants et al., "Symmetric diffeomorphic image registration with cross-correlation",
    Medical Image Analysis 12(1), 2008.

    Args:
        x, y: images [N,C,H,W], [C,H,W] or [H,W], or volumes [N,C,D,H,W]; u8, f16, bf16, f32 or
            f64; alike in all but their strides. u16, i16, i32 and bool are converted first, i32 to
            f64.
        window_size: in pixels, odd; one number, or one for each axis, (y, x) or (z, y, x).
        window: "box" or "gaussian".
        sigma: standard deviation of the Gaussian in pixels; one number, or one for each axis.
        padding: what a window sees outside the image. "same": zeros; "renormalize": nothing, it
            averages what it has; "valid": only windows inside count.
        reduction: "mean" or "sum": one number; "per_image": [N]; "per_channel": [N,C]; "none": the
            map, smaller than the image by window_size - 1 with padding "valid".
        rows, sums: as of ssim().
        smooth_nr, smooth_dr: regularise the quotient where a window is flat.
        signed: clamp(A / (√B·√C), -1, 1) instead, which tells x from -x.
        gradient: "exact": the derivative; "ants": that of each pixel's own window with its means
            held constant.
        workspace: memory that an exact gradient takes on a GPU. "auto": up to 16 B a pixel where
            that is at most 1 GiB, else as "small": a twelfth of a byte a pixel (2 B for f16 and
            bf16), or up to 64 MiB for up to 8 million pixels, wide windows and gradients that are
            not dense. Results are the same.
        mask: weights of the map, finite and not negative, shaped as x with N and C left out or 1
            where they are the same for all: the mean is Σ mask·LNCC / Σ mask. If they add up to 0,
            LNCC is NaN and a loss 0, both with gradient 0.
        valid_mask: which pixels exist, 0 or a weight, shaped as mask is. The others may hold
            anything, NaN included, have gradient 0 and are NaN in a map.
        channel_axis: as of ssim().

    Returns: f32, or f64 for f64 images, on the device of x; differentiable by x and y any number of
        times, with gradient "ants" once.

    Raises:
        ValueError: x and y are not alike or have no elements, window_size is even or 1, sigma or
            smooth_dr is not positive, smooth_nr is negative, padding is valid and the image smaller
            than the window, gradient is "ants" and signed, a mask does not broadcast or, on the
            CPU, holds a weight that is negative or not finite, or a name is not one of those
            above.
        TypeError: an argument is of the wrong kind.
        DeviceError: the device cannot be used.
    """
    if unknown:
        refuse_options("lncc", unknown, lncc)
    given = (
        spatial(x),
        window_size,
        window,
        sigma,
        padding,
        reduction,
        rows,
        sums,
        smooth_nr,
        smooth_dr,
        signed,
        gradient,
        workspace,
        1.0,
    )
    return evaluate_images("lncc", _lncc_text, given, x, y, mask, valid_mask, channel_axis)


_lncc_options = Options(lncc)
_lncc_text = described_once(measures.writer("lncc", *options_of(lncc), "weight"))


@loss_of(lncc)
def lncc_loss(
    x: Any,
    y: Any,
    *,
    mask: Any = None,
    valid_mask: Any = None,
    channel_axis: Any = None,
    **options: Any,
) -> Any:
    """-LNCC, which registration minimises; -1 at best.

    Takes, returns and raises what lncc() does.
    """
    given = (spatial(x), *_lncc_options.completed("lncc_loss", options), -1.0)
    return evaluate_images("lncc", _lncc_text, given, x, y, mask, valid_mask, channel_axis)


@without_unknown
def ncc(
    x: Array, y: Array, *, reduction: str = "mean", channel_axis: Optional[int] = None,
    **unknown: NoReturn,
) -> Array:
    """Normalised cross-correlation of whole images: Pearson's correlation of their pixels.

        Σ (x - x̄)(y - ȳ) / √(Σ (x - x̄)² · Σ (y - ȳ)²), of each channel of each image

    From -1 to 1, and 1 if y is x up to contrast and brightness; 0, with gradient 0, if either is
    flat. Sums are kept in f64.

    Args:
        x, y: images [N,C,H,W], [C,H,W] or [H,W], or volumes [N,C,D,H,W]; u8, f16, bf16, f32 or
            f64; alike in all but their strides. u16, i16, i32 and bool are converted first, i32 to
            f64.
        reduction: of the channels' numbers: "mean", "sum", "per_image" or "per_channel".
        channel_axis: as of ssim().

    Returns: f32, or f64 for f64 images; a scalar, [N] or [N,C]; differentiable by x and y any
        number of times.

    Raises:
        ValueError, TypeError: x and y are not alike or have no elements, or reduction is another.
        DeviceError: the device cannot be used.
    """
    if unknown:
        refuse_options("ncc", unknown, ncc)
    return evaluate_images("ncc", _ncc_text, (0, reduction, 1.0), x, y, None, None, channel_axis)


_ncc_text = described_once(measures.writer("ncc", *options_of(ncc), "weight"))

@loss_of(ncc)
def ncc_loss(
    x: Any, y: Any, *, reduction: str = "mean", channel_axis: Any = None, **unknown: Any
) -> Any:
    """-NCC, which registration of one modality minimises; -1 at best.

    Takes, returns and raises what ncc() does.
    """
    if unknown:
        refuse_options("ncc_loss", unknown, ncc)
    return evaluate_images("ncc", _ncc_text, (0, reduction, -1.0), x, y, None, None, channel_axis)

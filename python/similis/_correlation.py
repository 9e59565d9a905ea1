# SPDX-License-Identifier: Apache-2.0
"""Cross-correlation under a window."""

from __future__ import annotations

from typing import Optional, TypeVar

from . import _measure
from ._dispatch import described_once, evaluate, spatial
from ._measure import PerAxisFloat, PerAxisInt

Array = TypeVar("Array")
_lncc_text = described_once(_measure.lncc_text)


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

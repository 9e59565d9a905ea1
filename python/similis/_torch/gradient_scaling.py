# SPDX-License-Identifier: Apache-2.0
"""Gradient scaling: gradients of a mean in f16, computed before their upstream gradient is known.

The gradients of a mean over N pixels are about 10 / N, which f16 would round to 0. Those of SSIM and
LNCC have a bound. They are multiplied by a factor that brings the bound just below f16's largest
number.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Optional

from .._library import measures


def power_of_two(text: str, shape: Sequence[int], has_mask: bool) -> Optional[float]:
    """The factor of the gradient, or None if the gradient has no bound.

    MS-SSIM's has none, as its means may be near 0, nor has that of a mean over few pixels of a
    mask. The factor is a power of 2, which rounds nothing, as a loss scale that is a power of 2
    does.
    """
    of_one = bound_of_one(text, len(shape) - 2)
    if of_one is None or has_mask:
        return None
    sizes = measures.parse(text).window_size[2 - len(shape) :]
    is_valid = " padding=valid" in text
    count = shape[0] * shape[1]
    for extent, size in zip(shape[2:], sizes):
        count *= max(extent - size + 1, 1) if is_valid else extent
    _, exponent = math.frexp(2.0**15 * int(count) / of_one)
    return math.ldexp(1.0, exponent - 1)


@functools.lru_cache(maxsize=1024)
def bound_of_one(text: str, spatial: int) -> Optional[float]:
    """The largest derivative, by one pixel, of N times a mean; None if it is not known."""
    measure = measures.parse(text)
    if getattr(measure, "reduction", None) != "mean":
        return None
    if measure.operation == "ssim":
        return _bound_of_ssim(measure, spatial)
    return _bound_of_lncc(measure, spatial) if measure.operation == "lncc" else None


def _bound_of_ssim(measure: measures.Measure, spatial: int) -> Optional[float]:
    """The bound of SSIM's gradient, mixed with |x - y| or not.

    A factor (2ab + C) / (a² + b² + C) of SSIM changes by at most √(2 / C) per unit of a. If a is a
    mean, that unit is the pixel's weight w; if a is a deviation, it is √w at most, by Cauchy and
    Schwarz. With half widths r, Π(2r + 1) windows see a pixel, and its weights in them sum to 1, or
    to Π(r + 1) at most where padding repeats the pixel. The bound holds for exact arithmetic, so
    None is returned if C is not well above the rounding errors of squared pixels in f32.
    """
    sizes, weights = measure.window_size[-spatial:], 1
    windows, k2 = math.prod(sizes), measure.k2
    if measure.sample_covariance:  # C2 is smaller then
        k2 *= math.sqrt((windows - 1) / windows)
    if min(measure.k1, k2) < 2.0**-8:
        return None
    if measure.padding not in ("valid", "same"):
        weights = math.prod([size // 2 + 1 for size in sizes])
    slope = math.sqrt(2) * (weights / measure.k1 + math.sqrt(windows * weights) / k2)
    return measure.ssim_weight * slope / (measure.data_range or 1.0) + measure.l1_weight


def _bound_of_lncc(measure: measures.Measure, spatial: int) -> Optional[float]:
    """The bound of LNCC's gradient, squared or signed.

    A pixel of weight w changes A by √(kw)·√C and B by 2·√(kw)·√B at most, by Cauchy and Schwarz, so
    A² / (BC) changes by 4·√(kw / B), of which B is no less than smooth_dr·k. The weights of a pixel
    in the k windows that see it sum to 1, so their roots sum to √k; windows that average what they
    have see half of their pixels along each axis at least. ANTs' gradient is that of one window.
    None is returned where gradients of ordinary images would be too small for f16 beside the bound.
    """
    windows = math.prod(measure.window_size[-spatial:])
    if measure.gradient == "ants":
        slope = 4 / math.sqrt(measure.smooth_dr * windows)
    else:
        share = 2**spatial if measure.padding == "renormalize" else 1
        slope = 4 * math.sqrt(share * windows / measure.smooth_dr)
    return abs(measure.weight) * slope if slope <= 2.0**17 else None

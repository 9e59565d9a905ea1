# SPDX-License-Identifier: Apache-2.0
"""scikit-image's structural_similarity: its arguments, defaults and numbers, of NumPy's arrays.

Images have one to three axes beside that of channel_axis; four and more are refused. Numbers are
computed in f64, or in f32 for f16 and f32 images, and are f64. An option by another name is
refused, where scikit-image reads no name that it does not know. scikit-image itself is not needed.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, Optional

from .._arrays.kinds import kind_of
from .._arrays.measures import evaluate
from .._functions.ssim import ssim_text
from .._library import values
from .._library.refusals import require_same_shape, type_name

__all__ = ["structural_similarity"]

_NAME = "structural_similarity"
_HUGE = 1e18  # a constant beside which means or variances vanish, so that their quotient is 1


class _Window:
    """The window and the constants that the arguments ask for."""

    def __init__(
        self,
        win_size: Optional[int],
        gaussian_weights: bool,
        sigma: float,
        constants: tuple[float, float],
        use_sample_covariance: bool,
        rank: int,
    ) -> None:
        self.radius = int(3.5 * sigma + 0.5) if gaussian_weights else 3
        if win_size is not None and not gaussian_weights:
            self.radius = (win_size - 1) // 2
        self.rim = self.radius if win_size is None else (win_size - 1) // 2
        self.is_gaussian, self.sigma, self.rank = gaussian_weights, sigma or 1.0, rank
        pixels = (2 * self.rim + 1) ** rank
        if use_sample_covariance and pixels == 1:
            raise ValueError(
                f"{_NAME}: win_size is 1; with use_sample_covariance it must be at least 3, as one "
                "pixel has no variance"
            )
        # Variances times n / (n - 1) are a C2 times (n - 1) / n. n is that of win_size, which need
        # not be the Gaussian's.
        self.of_sample = (pixels - 1) / pixels if use_sample_covariance else 1.0
        self.k1, self.k2 = constants[0], constants[1] * math.sqrt(self.of_sample)

    def text(self, data_range: float, reduction: str, term: str = "ssim") -> str:
        """term: "ssim", or one of its factors, "luminance" or "contrast"."""
        size = 2 * self.radius + 1
        return ssim_text(
            max(self.rank, 2),
            data_range,
            (1, size) if self.rank == 1 else size,
            "gaussian" if self.is_gaussian else "box",
            self.sigma,
            _HUGE if term == "contrast" else self.k1,
            _HUGE if term == "luminance" else self.k2,
            False,
            "valid",
            reduction,
            "similarity",
        )


def _extended(image: Any, margin: int) -> Any:
    """[1,C,…] with so many pixels more on each side, mirrored at the edges; fewer if below 0."""
    import numpy

    if margin < 0:
        return image[(slice(None), slice(None), *[slice(-margin, margin)] * (image.ndim - 2))]
    around = [(0, 0), (0, 0), *[(margin, margin)] * (image.ndim - 2)]
    return numpy.pad(image, around, mode="symmetric") if margin else image


def _with_plane(image: Any, rank: int) -> Any:
    return image[:, :, None] if rank == 1 else image


def _gradient(window: _Window, data_range: float, x: Any, y: Any) -> Any:
    """The gradient to y of the sum over the map that goes on, mirrored, beyond the edges.

    scikit-image leaves the factor n / (n - 1) out of the derivative of a sample's covariance, and
    so does this: that of the variances' quotient alone is divided by the factor.
    """

    def gradient(text: str, upstream: Any = None) -> Any:
        return evaluate(
            _NAME, text, kind_of(_NAME, x), x, y, of_y=True, upstream=upstream
        )[-1]

    whole = gradient(window.text(data_range, "sum"))
    if window.of_sample == 1:
        return whole
    contrast = evaluate(
        _NAME, window.text(data_range, "none", "contrast"), kind_of(_NAME, x), x, y
    )[0]
    of_means = gradient(window.text(data_range, "none", "luminance"), contrast)
    return window.of_sample * whole + (1 - window.of_sample) * of_means


def _default_range(im1: Any, im2: Any) -> float:
    import numpy

    if im1.dtype.kind == "f" or im2.dtype.kind == "f":
        raise ValueError(
            f"{_NAME}: data_range is None, and floats have no usual range; give the largest minus "
            "the smallest value that a pixel can take"
        )
    if im1.dtype != im2.dtype:
        warnings.warn(
            f"{_NAME}: Inputs have mismatched dtypes. Setting data_range based on im1.dtype.",
            stacklevel=3,
        )
    if im1.dtype == bool:
        return 1.0
    limits = numpy.iinfo(im1.dtype)
    data_range = float(int(limits.max) - int(limits.min))
    if im1.dtype != numpy.uint8:
        warnings.warn(
            f"{_NAME}: Setting data_range based on im1.dtype, {im1.dtype}, to {data_range:.0f}; "
            "give data_range if pixels take less of it",
            stacklevel=3,
        )
    return data_range


def _checked_options(given: dict[str, Any]) -> tuple[tuple[float, float], float, bool]:
    """K1 and K2, sigma, and use_sample_covariance."""
    known = {"K1": 0.01, "K2": 0.03, "sigma": 1.5, "use_sample_covariance": True}
    for name in given:
        if name not in known:
            hint = "; here it is channel_axis" if name == "multichannel" else ""
            raise TypeError(f"{_NAME}: there is no option {name}{hint}")
    options: dict[str, Any] = {**known, **given}
    for name in ("K1", "K2", "sigma"):
        if not values.number(_NAME, name, options[name]) >= 0:
            raise ValueError(f"{_NAME}: {name} is {options[name]!r}; it must be 0 or more")
    constants = (float(options["K1"]), float(options["K2"]))
    return constants, float(options["sigma"]), bool(options["use_sample_covariance"])


def _checked_size(win_size: Optional[int], default: int, shape: Sequence[int]) -> None:
    size = default if win_size is None else values.integer(_NAME, "win_size", win_size)
    if size < 1 or size % 2 == 0:
        raise ValueError(f"{_NAME}: win_size is {size}; it must be odd and positive")
    if min(shape) < size:
        raise ValueError(
            f"{_NAME}: win_size is {size}; it must not be above the smallest side of im1, whose "
            f"sides are {list(shape)}; give channel_axis=-1 if the last axis has the colours"
        )


def structural_similarity(
    im1: Any,
    im2: Any,
    *,
    win_size: Optional[int] = None,
    gradient: bool = False,
    data_range: Optional[float] = None,
    channel_axis: Optional[int] = None,
    gaussian_weights: bool = False,
    full: bool = False,
    **kwargs: Any,
) -> Any:
    """Mean SSIM of two images, with its gradient to im2, and its map, if they are asked for.

    Further options: K1, K2, sigma and use_sample_covariance, which is True by default.
    """
    import numpy

    for name, image in (("im1", im1), ("im2", im2)):
        if not isinstance(image, numpy.ndarray):
            raise TypeError(
                f"{_NAME}: {name} is of type {type_name(image)}; it must be a numpy.ndarray"
            )
    require_same_shape(_NAME, ("im1", "im2"), im1.shape, im2.shape)
    constants, sigma, of_sample = _checked_options(kwargs)
    x, y = [_channels_first(each, channel_axis) for each in (im1, im2)]
    rank = x.ndim - 2
    if not 1 <= rank <= 3:
        raise ValueError(
            f"{_NAME}: im1 has shape {list(im1.shape)}; it must have 1 to 3 axes beside "
            "channel_axis"
        )
    default = 2 * int(3.5 * sigma + 0.5) + 1 if gaussian_weights else 7
    _checked_size(win_size, default, x.shape[2:])
    if data_range is None:
        data_range = _default_range(im1, im2)
    window = _Window(win_size, gaussian_weights, sigma, constants, of_sample, rank)
    wide = numpy.float32 if im1.dtype in (numpy.float16, numpy.float32) else numpy.float64
    if im1.dtype != numpy.uint8 or im2.dtype != numpy.uint8:
        x, y = x.astype(wide, copy=False), y.astype(wide, copy=False)

    def pair(margin: int) -> list[Any]:
        return [_with_plane(_extended(each, margin), rank) for each in (x, y)]

    text = f"{window.text(data_range, 'mean')} in_float64=1"
    near_x, near_y = pair(window.radius - window.rim)
    results = [evaluate(_NAME, text, kind_of(_NAME, near_x), near_x, near_y)[0]]
    x, y = x.astype(numpy.float64, copy=False), y.astype(numpy.float64, copy=False)
    if gradient:
        slope = _gradient(window, data_range, *pair(2 * window.radius))
        if rank == 1:
            slope = slope[:, :, 0]
        results.append(_extended(slope, -2 * window.radius) * (x.shape[1] / x.size))
    if full:
        wide_x, wide_y = pair(window.radius)
        text = window.text(data_range, "none")
        results.append(evaluate(_NAME, text, kind_of(_NAME, x), wide_x, wide_y)[0])
        if rank == 1:
            results[-1] = results[-1][:, :, 0]
    for index in range(1, len(results)):
        restored = results[index][0].astype(wide, copy=False)
        results[index] = (
            restored[0] if channel_axis is None else numpy.moveaxis(restored, 0, channel_axis)
        )
    return tuple(results) if len(results) > 1 else results[0]


def _channels_first(image: Any, channel_axis: Optional[int]) -> Any:
    """[1,C,…]"""
    import numpy

    if channel_axis is None:
        return image[None, None]
    axis = values.integer(_NAME, "channel_axis", channel_axis)
    if not -image.ndim <= axis < image.ndim:
        raise ValueError(
            f"{_NAME}: channel_axis is {axis}; it must be an axis of im1, which has {image.ndim}"
        )
    return numpy.moveaxis(image, axis, 0)[None]

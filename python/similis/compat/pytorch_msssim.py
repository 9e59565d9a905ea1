# SPDX-License-Identifier: Apache-2.0
"""pytorch-msssim (VainF/pytorch-msssim): SSIM and MS-SSIM with padding "valid".

Unlike there, results of f16 and bf16 images are f32, and MS-SSIM's gradient is 0, not NaN, where
a mean is not positive. Windows that are no Gaussian, and sides that fall below the window at a
coarser level, are computed by torch's convolutions, as there.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor

from .._library import measures, values
from .._functions.dispatch import for_torch, require_tensor
from .._functions.ssim import ms_ssim_text, ssim_text

__all__ = ["MS_SSIM", "SSIM", "ms_ssim", "ssim"]


def _squeezed(name: str, X: Tensor, Y: Tensor) -> tuple[Tensor, Tensor]:
    """Without spatial axes of one pixel."""
    require_tensor(name, "X", X)
    require_tensor(name, "Y", Y)
    if X.shape != Y.shape:
        raise ValueError(
            f"{name}: Y has shape {list(Y.shape)}; it must be that of X, {list(X.shape)}"
        )
    shape = [*X.shape[:2], *(side for side in X.shape[2:] if side != 1)]
    X, Y = X.reshape(shape), Y.reshape(shape)
    if X.dim() not in (4, 5):
        raise ValueError(f"{name}: X has shape {shape}; it must have 4 or 5 axes")
    return X, Y


def _window_size(
    name: str,
    X: Tensor,
    win_size: int,
    win: Optional[Tensor],
    data_range: float,
    K: Sequence[float],
) -> int:
    """The size of the given or default window. It checks the other options, too."""
    if not isinstance(K, (tuple, list)) or len(K) != 2:
        raise TypeError(f"{name}: K is {K!r}; it must be two numbers")
    if not values.number(name, "data_range", data_range) > 0:
        raise ValueError(f"{name}: data_range is {data_range!r}; it must be a number above 0")
    size = values.integer(name, "win_size", win_size)
    if win is not None:
        require_tensor(name, "win", win)
        wanted = [X.shape[1], *[1] * (X.dim() - 2), win.shape[-1] if win.dim() else 1]
        if list(win.shape) != wanted:
            raise ValueError(f"{name}: win has shape {list(win.shape)}; it must be {wanted}")
        size = wanted[-1]
    if size % 2 != 1:
        raise ValueError("Window size should be odd.")
    return size


def _window_sizes(name: str, shape: Sequence[int], win_size: int) -> tuple[int, ...]:
    """One for each axis: an axis that is shorter than the window is not smoothed."""
    for axis, side in enumerate(shape[2:], start=2):
        if side < win_size:
            warnings.warn(
                f"{name}: axis {axis} is {side}, shorter than the window, {win_size}; it is not "
                "smoothed",
                stacklevel=4,
            )
    return tuple(win_size if side >= win_size else 1 for side in shape[2:])


def ssim(
    X: Tensor,
    Y: Tensor,
    data_range: float = 255,
    size_average: bool = True,
    win_size: int = 11,
    win_sigma: float = 1.5,
    win: Optional[Tensor] = None,
    K: Sequence[float] = (0.01, 0.03),
    nonnegative_ssim: bool = False,
) -> Tensor:
    """SSIM of [N,C,H,W] or [N,C,D,H,W] images: a scalar, or [N] without size_average.

    win: a window for each channel, [C,1,…,1,size]. nonnegative_ssim: the mean of a channel counts
    as 0 where it is negative.
    """
    X, Y = _squeezed("ssim", X, Y)
    _window_size("ssim", X, win_size, win, data_range, K)
    if win is not None:
        means = _decomposed_means(X, Y, win, data_range, K)[0]
    elif nonnegative_ssim:
        means = _kernel(X, Y, data_range, win_size, win_sigma, K, "per_channel")
    else:
        reduction = "mean" if size_average else "per_image"
        return _kernel(X, Y, data_range, win_size, win_sigma, K, reduction)
    if nonnegative_ssim:
        means = means.relu()
    return means.mean() if size_average else means.mean(1)


def _kernel(
    X: Tensor,
    Y: Tensor,
    data_range: float,
    win_size: int,
    win_sigma: float,
    K: Sequence[float],
    reduction: str,
) -> Tensor:
    sizes = _window_sizes("ssim", X.shape, win_size)
    text = ssim_text(
        len(sizes),
        data_range,
        sizes,
        "gaussian",
        win_sigma,
        K[0],
        K[1],
        False,
        "valid",
        reduction,
        "similarity",
    )
    result: Tensor = for_torch().evaluate("ssim", text, X, Y, names=("X", "Y"))
    return result


def ms_ssim(
    X: Tensor,
    Y: Tensor,
    data_range: float = 255,
    size_average: bool = True,
    win_size: int = 11,
    win_sigma: float = 1.5,
    win: Optional[Tensor] = None,
    weights: Optional[Sequence[float]] = None,
    K: Sequence[float] = (0.01, 0.03),
) -> Tensor:
    """MS-SSIM of [N,C,H,W] or [N,C,D,H,W] images: a scalar, or [N] without size_average.

    Raises AssertionError if H or W is not above (window - 1)·16, as pytorch-msssim does.
    """
    X, Y = _squeezed("ms_ssim", X, Y)
    size = _window_size("ms_ssim", X, win_size, win, data_range, K)
    least = (size - 1) * 16
    assert min(X.shape[-2:]) > least, f"Image size should be larger than {least}"
    if weights is None:
        weights = measures.table("ms_ssim").options["weights"].default
    weights = tuple(float(each) for each in weights)
    sides = _coarsest(X.shape[2:], len(weights))
    if win is None and min(sides) >= size:
        text = ms_ssim_text(
            X.dim() - 2,
            data_range,
            size,
            win_sigma,
            K[0],
            K[1],
            "valid",
            "mean" if size_average else "per_image",
            weights,
            "vainf",
            "similarity",
        )
        result: Tensor = for_torch().evaluate("ms_ssim", text, X, Y, names=("X", "Y"))
        return result
    if win is None:
        win = _gaussian(size, win_sigma, X.shape[1], X.dim() - 2)
    product = _decomposed_product(X, Y, win, data_range, weights, K)
    return product.mean() if size_average else product.mean(1)


def _coarsest(sides: Sequence[int], levels: int) -> list[int]:
    for _ in range(levels - 1):
        sides = [(side + 1) // 2 for side in sides]
    return list(sides)


def _gaussian(size: int, sigma: float, channels: int, spatial_dims: int) -> Tensor:
    """[channels,1,…,1,size], f64."""
    distance = torch.arange(size, dtype=torch.float64) - size // 2
    taps = torch.exp(-(distance**2) / (2 * sigma**2))
    return (taps / taps.sum()).expand([channels] + [1] * spatial_dims + [size])


def _smoothed(images: Tensor, win: Tensor) -> Tensor:
    """The images under the window of each channel, along the axes that are long enough."""
    convolve = F.conv2d if images.dim() == 4 else F.conv3d
    for axis, size in enumerate(_window_sizes("ssim", images.shape, win.shape[-1]), start=2):
        if size > 1:
            images = convolve(images, win.transpose(axis, -1), groups=images.shape[1])
    return images


def _decomposed_means(
    X: Tensor, Y: Tensor, win: Tensor, data_range: float, K: Sequence[float]
) -> tuple[Tensor, Tensor]:
    """Means of SSIM, and of its contrast term, of each channel, [N,C]."""
    dtype = torch.float64 if X.dtype == torch.float64 else torch.float32
    X, Y, win = X.to(dtype), Y.to(dtype), win.to(X.device, dtype)
    c1, c2 = (K[0] * data_range) ** 2, (K[1] * data_range) ** 2
    s, d = X + Y, X - Y
    mean_s, mean_d = _smoothed(s, win), _smoothed(d, win)
    var_s = _smoothed(s * s, win) - mean_s**2
    var_d = _smoothed(d * d, win) - mean_d**2
    contrast = 1 - var_d / ((var_s + var_d) / 2 + c2)
    luminance = 1 - mean_d**2 / ((mean_s**2 + mean_d**2) / 2 + c1)
    return (luminance * contrast).flatten(2).mean(-1), contrast.flatten(2).mean(-1)


def _decomposed_product(
    X: Tensor,
    Y: Tensor,
    win: Tensor,
    data_range: float,
    weights: Sequence[float],
    K: Sequence[float],
) -> Tensor:
    pool = F.avg_pool2d if X.dim() == 4 else F.avg_pool3d
    product = None
    for level, weight in enumerate(weights):
        if level > 0:
            rim = [side % 2 for side in X.shape[2:]]
            X, Y = pool(X, 2, padding=rim), pool(Y, 2, padding=rim)
        whole, contrast = _decomposed_means(X, Y, win, data_range, K)
        mean = whole if level == len(weights) - 1 else contrast
        power = torch.where(mean > 0, mean.clamp(min=1e-38) ** weight, 0.0)
        product = power if product is None else product * power
    assert product is not None
    return product


class _Module(torch.nn.Module):
    """Options that are given once."""

    def __init__(self, win_size: int, win_sigma: float, channel: int, spatial_dims: int) -> None:
        super().__init__()
        self.win_size = win_size
        self.win_sigma = win_sigma
        self._axes = channel, spatial_dims
        self._given: Optional[Tensor] = None

    @property
    def win(self) -> Tensor:
        """The window of each channel, [channel,1,…,1,win_size] in f32.

        One that is assigned is used. Until then it is the Gaussian, which `channel` and
        `spatial_dims` shape here and nowhere else: forward() takes images of any.
        """
        if self._given is not None:
            return self._given
        return _gaussian(self.win_size, self.win_sigma, *self._axes).float()

    @win.setter
    def win(self, given: Tensor) -> None:
        require_tensor(type(self).__name__, "win", given)
        self._given = given


class SSIM(_Module):
    """ssim() with options that are given once."""

    def __init__(
        self,
        data_range: float = 255,
        size_average: bool = True,
        win_size: int = 11,
        win_sigma: float = 1.5,
        channel: int = 3,
        spatial_dims: int = 2,
        K: Sequence[float] = (0.01, 0.03),
        nonnegative_ssim: bool = False,
    ) -> None:
        super().__init__(win_size, win_sigma, channel, spatial_dims)
        self.data_range = data_range
        self.size_average = size_average
        self.K = K
        self.nonnegative_ssim = nonnegative_ssim

    def forward(self, X: Tensor, Y: Tensor) -> Tensor:
        return ssim(
            X,
            Y,
            self.data_range,
            self.size_average,
            self.win_size,
            self.win_sigma,
            self._given,
            K=self.K,
            nonnegative_ssim=self.nonnegative_ssim,
        )


class MS_SSIM(_Module):
    """ms_ssim() with options that are given once."""

    def __init__(
        self,
        data_range: float = 255,
        size_average: bool = True,
        win_size: int = 11,
        win_sigma: float = 1.5,
        channel: int = 3,
        spatial_dims: int = 2,
        weights: Optional[Sequence[float]] = None,
        K: Sequence[float] = (0.01, 0.03),
    ) -> None:
        super().__init__(win_size, win_sigma, channel, spatial_dims)
        self.data_range = data_range
        self.size_average = size_average
        self.weights = weights
        self.K = K

    def forward(self, X: Tensor, Y: Tensor) -> Tensor:
        return ms_ssim(
            X,
            Y,
            self.data_range,
            self.size_average,
            self.win_size,
            self.win_sigma,
            self._given,
            weights=self.weights,
            K=self.K,
        )

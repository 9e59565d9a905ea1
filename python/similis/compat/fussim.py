# SPDX-License-Identifier: Apache-2.0
"""fussim (OpsiClear/fussim): fused_ssim with a choice of windows, and pytorch-msssim's names.

Unlike there, images may lie on the CPU, [N,H,W,3] is refused, and every window is a Gaussian with σ = 1.5 whose taps sum
to 1, as fussim's documentation says; its window of 7 has σ = 1.0, and its window of 9 taps that sum
to 0.54. Autocast leaves f32 images as they are: they are read once either way, and f16 would only
round them.
"""

from __future__ import annotations

import math
from typing import Final, Optional

import torch
from torch import Tensor

from .._library.values import number
from .._functions.dispatch import for_torch
from .._functions.ssim import ssim_text
from .fused_ssim import refuse_channel_last

__all__ = ["SSIM", "SUPPORTED_WINDOW_SIZES", "FusedSSIMMap", "fused_ssim", "ssim"]

SUPPORTED_WINDOW_SIZES: Final = (7, 9, 11)
ALLOWED_PADDING: Final = ("same", "valid")


def _evaluate(
    name: str,
    img1: Tensor,
    img2: Tensor,
    constants: tuple[float, float],
    window_size: int,
    padding: str,
    reduction: str,
    train: bool = True,
) -> Tensor:
    """constants: C1 and C2."""
    if isinstance(img1, Tensor):
        if img1.dim() != 4:
            raise ValueError(
                f"{name}: img1 must be a 4D tensor (B, C, H, W), but has shape {list(img1.shape)}"
            )
        if padding == "same":  # "valid" refuses what is narrower than the window
            refuse_channel_last(name, img1)
    if padding not in ALLOWED_PADDING:
        raise ValueError(f"{name}: padding is {padding!r}; it must be same or valid")
    k1, k2 = math.sqrt(constants[0]), math.sqrt(constants[1])
    text = ssim_text(
        2, 1.0, window_size, "gaussian", 1.5, k1, k2, False, padding, reduction, "similarity"
    )
    names = ("X", "Y") if name == "ssim" else ("img1", "img2")
    result: Tensor = for_torch().evaluate(name, text, img1, img2, one_pass=train, names=names)
    return result


def _require_window(name: str, argument: str, size: int) -> None:
    if size not in SUPPORTED_WINDOW_SIZES:
        raise ValueError(f"{name}: {argument} is {size!r}; it must be 7, 9 or 11")


def _require_options(name: str, win_size: int, win_sigma: float, K: tuple[float, float]) -> None:
    _require_window(name, "win_size", win_size)
    if win_sigma != 1.5:
        raise ValueError(
            f"{name}: win_sigma is {win_sigma!r}; it must be 1.5; similis.ssim takes other values"
        )
    if not (isinstance(K, (tuple, list)) and len(K) == 2 and all(0 < each < 1 for each in K)):
        raise ValueError(f"{name}: K is {K!r}; it must be two numbers between 0 and 1")


def fused_ssim(
    img1: Tensor, img2: Tensor, padding: str = "same", train: bool = True, window_size: int = 11
) -> Tensor:
    """Mean SSIM of [N,C,H,W] images in [0, 1]; zeros outside, or with "valid" windows inside only.

    window_size: 7, 9 or 11. train: whether the gradient is computed together with the value.
    """
    _require_window("fused_ssim", "window_size", window_size)
    constants = (0.01**2, 0.03**2)
    return _evaluate("fused_ssim", img1, img2, constants, window_size, padding, "mean", train)


class FusedSSIMMap:
    """The map whose mean fused_ssim() is."""

    @staticmethod
    def apply(
        C1: float,
        C2: float,
        img1: Tensor,
        img2: Tensor,
        padding: str = "same",
        train: bool = True,
        window_size: int = 11,
    ) -> Tensor:
        _require_window("FusedSSIMMap", "window_size", window_size)
        return _evaluate("FusedSSIMMap", img1, img2, (C1, C2), window_size, padding, "none", train)


def ssim(
    X: Tensor,
    Y: Tensor,
    data_range: float = 255,
    size_average: bool = True,
    win_size: int = 11,
    win_sigma: float = 1.5,
    win: Optional[Tensor] = None,
    K: tuple[float, float] = (0.01, 0.03),
    nonnegative_ssim: bool = False,
) -> Tensor:
    """SSIM with padding "valid": a scalar, or [N] without size_average.

    nonnegative_ssim: negative values of the map count as 0; in pytorch-msssim, negative means do.
    """
    _require_options("ssim", win_size, win_sigma, K)
    if win is not None:
        raise ValueError("ssim: win is given; similis.compat.pytorch_msssim takes windows")
    if not number("ssim", "data_range", data_range) > 0:
        raise ValueError(f"ssim: data_range is {data_range!r}; it must be a number above 0")
    constants = (K[0] * data_range) ** 2, (K[1] * data_range) ** 2
    if nonnegative_ssim:
        values = _evaluate("ssim", X, Y, constants, win_size, "valid", "none").clamp(min=0)
        return values.mean() if size_average else values.mean(dim=(1, 2, 3))
    reduction = "mean" if size_average else "per_image"
    return _evaluate("ssim", X, Y, constants, win_size, "valid", reduction)


class SSIM(torch.nn.Module):
    """ssim() with options that are given once; `channel` is not read."""

    def __init__(
        self,
        data_range: float = 255,
        size_average: bool = True,
        win_size: int = 11,
        win_sigma: float = 1.5,
        channel: int = 3,
        spatial_dims: int = 2,
        K: tuple[float, float] = (0.01, 0.03),
        nonnegative_ssim: bool = False,
    ) -> None:
        super().__init__()
        _require_options("SSIM", win_size, win_sigma, K)
        if spatial_dims != 2:
            raise ValueError(f"SSIM: spatial_dims is {spatial_dims!r}; it must be 2")
        self.data_range = data_range
        self.size_average = size_average
        self.win_size = win_size
        self.K = (K[0], K[1])
        self.nonnegative_ssim = nonnegative_ssim

    def forward(self, X: Tensor, Y: Tensor) -> Tensor:
        return ssim(
            X,
            Y,
            self.data_range,
            self.size_average,
            self.win_size,
            K=self.K,
            nonnegative_ssim=self.nonnegative_ssim,
        )

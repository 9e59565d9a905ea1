# SPDX-License-Identifier: Apache-2.0
"""fused-ssim (rahul-goel/fused-ssim): SSIM of images in [0, 1] under an 11×11 Gaussian window.

Unlike there, images may lie on the CPU or on any stream and have any strides (channels_last copies
nothing), img2 may ask for a gradient, backward works after train=False, and images smaller than the
window are refused with padding "valid", [N,H,W,3] with either. SSIM is not clamped.
"""

from __future__ import annotations

import math
from typing import Final

from torch import Tensor

from .._functions import dispatch
from .._functions.dispatch import described_once, for_torch
from .._functions.layouts import looks_channel_last
from .._functions.ssim import ssim_text
from .._torch.tensors import is_exporting

__all__ = ["FusedSSIMMap", "allowed_padding", "fused_ssim", "fused_ssim3d"]

allowed_padding: Final = ["same", "valid"]
is_3D_supported: Final = True


def refuse_channel_last(name: str, img1: Tensor) -> None:
    """Raises for [N,H,W,C], which fused-ssim takes for pictures of W rows and C columns."""
    if not is_exporting() and looks_channel_last(img1.shape):
        raise ValueError(
            f"{name}: img1 has shape {list(img1.shape)}, which looks channel-last; give "
            "img1.permute(0, 3, 1, 2), which copies nothing, and img2 likewise; similis.ssim with "
            f"channel_axis=1 takes pictures of {img1.shape[1]} channels that are so narrow"
        )


@described_once
def _text(spatial: int, constants: tuple[float, float], padding: str, reduction: str) -> str:
    k1, k2 = math.sqrt(constants[0]), math.sqrt(constants[1])
    return ssim_text(
        spatial, 1.0, 11, "gaussian", 1.5, k1, k2, False, padding, reduction, "similarity"
    )


def _evaluate(
    name: str,
    spatial: int,
    images: tuple[Tensor, Tensor],
    constants: tuple[float, float],
    padding: str,
    reduction: str,
    train: bool,
) -> Tensor:
    if padding not in allowed_padding:
        raise ValueError(f"{name}: padding is {padding!r}; it must be same or valid")
    if isinstance(images[0], Tensor):
        if images[0].dim() != 2 + spatial:
            raise ValueError(
                f"{name}: img1 has shape {list(images[0].shape)}; it must have {2 + spatial} axes"
            )
        refuse_channel_last(name, images[0])
    options = (spatial, constants, padding, reduction)
    result: Tensor
    if train:
        result = dispatch.evaluate_plainly(name, _text, options, *images)
        if result is not None:
            return result
    text = _text(*options)
    result = for_torch().evaluate(
        name, text, *images, one_pass=train, names=("img1", "img2")
    )
    return result


def fused_ssim(img1: Tensor, img2: Tensor, padding: str = "same", train: bool = True) -> Tensor:
    """Mean SSIM of [N,C,H,W] images; zeros outside them, or with "valid" windows inside only.

    train: whether the gradient is computed together with the value, which saves reading the images
    again; it can be asked for either way.
    """
    return _evaluate("fused_ssim", 2, (img1, img2), (0.01**2, 0.03**2), padding, "mean", train)


def fused_ssim3d(img1: Tensor, img2: Tensor, padding: str = "same", train: bool = True) -> Tensor:
    """Mean SSIM of [N,C,D,H,W] volumes, as fused_ssim()."""
    return _evaluate("fused_ssim3d", 3, (img1, img2), (0.01**2, 0.03**2), padding, "mean", train)


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
        spatial_dims: int = 2,
    ) -> Tensor:
        if spatial_dims not in (2, 3):
            raise ValueError(f"FusedSSIMMap: spatial_dims is {spatial_dims!r}; it must be 2 or 3")
        return _evaluate(
            "FusedSSIMMap", spatial_dims, (img1, img2), (C1, C2), padding, "none", train
        )

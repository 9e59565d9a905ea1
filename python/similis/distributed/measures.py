# SPDX-License-Identifier: Apache-2.0
"""The public measures of images in slabs."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from .._library import values
from .._library.measures import DATA_RANGES, psnr_error_text
from .._library.values import DataRange
from . import information, levels, sums, windows
from .agreement import Agreement
from .calls import channels_second, layout_of, takes_channel_axis
from .operands import require_images, require_mask, taken_images
from .slabs import Slabs


def mse(
    x: Tensor,
    y: Tensor,
    slabs: Slabs,
    *,
    reduction: str = "mean",
    mask: Optional[Tensor] = None,
    channel_axis: Optional[int] = None,
) -> Tensor:
    """similis.mse() of images in slabs: the same number on every rank. A mask lies in slabs as x
    does."""
    return _pixel_error("mse", x, y, slabs, mask, channel_axis, {"reduction": reduction})


def mae(
    x: Tensor,
    y: Tensor,
    slabs: Slabs,
    *,
    reduction: str = "mean",
    mask: Optional[Tensor] = None,
    channel_axis: Optional[int] = None,
) -> Tensor:
    """similis.mae() of images in slabs; see mse()."""
    return _pixel_error("mae", x, y, slabs, mask, channel_axis, {"reduction": reduction})


def psnr(
    x: Tensor,
    y: Tensor,
    slabs: Slabs,
    *,
    data_range: DataRange = None,
    reduction: str = "mean",
    mask: Optional[Tensor] = None,
    channel_axis: Optional[int] = None,
) -> Tensor:
    """similis.psnr() of images in slabs; see mse()."""
    given = {"reduction": reduction, "data_range": data_range}
    return _pixel_error("psnr", x, y, slabs, mask, channel_axis, given)


def _pixel_error(
    operation: str,
    x: Tensor,
    y: Tensor,
    slabs: Slabs,
    mask: Any,
    channel_axis: Optional[int],
    options: dict[str, Any],
) -> Tensor:
    layout = layout_of(operation, x, channel_axis)
    x, y, mask = (channels_second(layout, each) for each in (x, y, mask))
    with Agreement(operation, slabs, **options) as agreement:
        require_images(agreement, x, y, slabs)
        require_mask(agreement, "mask", mask, x, slabs)
        x, y = taken_images(operation, x, y, options, operation == "psnr")
        reduction = options["reduction"]
        sums.require_reduction(reduction)
        largest = 1.0
        if operation == "psnr":
            given = options["data_range"]
            given = None if given is None else values.plain_range("psnr", given)
            psnr_error_text(given, reduction)  # refuses what no call takes
            dtype = str(x.dtype).replace("torch.", "")
            largest = DATA_RANGES.get(dtype, 1.0) if given is None else float(given)
    of_errors = sums.pixel_error_sums("mae" if operation == "mae" else "mse", x, y, mask, slabs)
    error = sums.reduced(*of_errors, reduction)
    if operation == "psnr":
        error = 10 * torch.log10(largest * largest / error)
    return error.to(sums.result_dtype(x))


def ncc(
    x: Tensor,
    y: Tensor,
    slabs: Slabs,
    *,
    reduction: str = "mean",
    channel_axis: Optional[int] = None,
) -> Tensor:
    """similis.ncc() of images in slabs, from the whole's moments."""
    return _correlation("ncc", x, y, slabs, channel_axis, reduction)


def ncc_loss(
    x: Tensor,
    y: Tensor,
    slabs: Slabs,
    *,
    reduction: str = "mean",
    channel_axis: Optional[int] = None,
) -> Tensor:
    """-NCC."""
    return -_correlation("ncc_loss", x, y, slabs, channel_axis, reduction)


def _correlation(
    operation: str,
    x: Tensor,
    y: Tensor,
    slabs: Slabs,
    channel_axis: Optional[int],
    reduction: str,
) -> Tensor:
    layout = layout_of(operation, x, channel_axis)
    x, y = channels_second(layout, x), channels_second(layout, y)
    with Agreement(operation, slabs, reduction=reduction) as agreement:
        require_images(agreement, x, y, slabs)
        x, y = taken_images(operation, x, y, {}, has_range=False)
        sums.require_reduction(reduction)
    return sums.correlation(x, y, slabs, reduction).to(sums.result_dtype(x))


@takes_channel_axis
def mutual_information(
    x: Tensor, y: Tensor, slabs: Slabs, *, mask: Optional[Tensor] = None, **options: Any
) -> Tensor:
    """similis.mutual_information() of images in slabs, from the whole's histogram.

    options: as of similis.mutual_information(). Limits that the images give are the whole's, and
    so are the voxels that sampling chooses.
    """
    return information.information("mutual_information", 1, x, y, slabs, mask, options)


@takes_channel_axis
def mutual_information_loss(
    x: Tensor, y: Tensor, slabs: Slabs, *, mask: Optional[Tensor] = None, **options: Any
) -> Tensor:
    """The negative of mutual_information()."""
    return information.information("mutual_information_loss", -1, x, y, slabs, mask, options)


@takes_channel_axis
def histogram(
    x: Tensor, y: Tensor, slabs: Slabs, *, mask: Optional[Tensor] = None, **options: Any
) -> Tensor:
    """similis.histogram() of images in slabs: the whole's, on every rank."""
    return information.histogram_of_slabs(x, y, slabs, mask, options)


@takes_channel_axis
def ssim(x: Tensor, y: Tensor, slabs: Slabs, **options: Any) -> Tensor:
    """similis.ssim() of images in slabs, with its options; reduction "none" gives the rows of the
    map whose centres are own rows. Masks lie in slabs as x does."""
    return windows.ssim_of_slabs(x, y, slabs, **options)


@takes_channel_axis
def ssim_loss(x: Tensor, y: Tensor, slabs: Slabs, **options: Any) -> Tensor:
    """similis.ssim_loss() of images in slabs; see ssim()."""
    return windows.ssim_loss_of_slabs(x, y, slabs, **options)


@takes_channel_axis
def l1_ssim(x: Tensor, y: Tensor, slabs: Slabs, *, weight: float = 0.2, **options: Any) -> Tensor:
    """similis.l1_ssim() of images in slabs; see ssim()."""
    return windows.l1_ssim_of_slabs(x, y, slabs, weight=weight, **options)


@takes_channel_axis
def ms_ssim(x: Tensor, y: Tensor, slabs: Slabs, **options: Any) -> Tensor:
    """similis.ms_ssim() of images in slabs, with its options. A mask lies in slabs as x does."""
    return levels.ms_ssim_of_slabs(x, y, slabs, **options)


@takes_channel_axis
def ms_ssim_loss(x: Tensor, y: Tensor, slabs: Slabs, **options: Any) -> Tensor:
    """similis.ms_ssim_loss() of images in slabs; see ms_ssim()."""
    return levels.ms_ssim_loss_of_slabs(x, y, slabs, **options)


@takes_channel_axis
def lncc(x: Tensor, y: Tensor, slabs: Slabs, **options: Any) -> Tensor:
    """similis.lncc() of images in slabs; see ssim()."""
    return windows.lncc_of_slabs(x, y, slabs, **options)


@takes_channel_axis
def lncc_loss(x: Tensor, y: Tensor, slabs: Slabs, **options: Any) -> Tensor:
    """similis.lncc_loss() of images in slabs; see ssim()."""
    return windows.lncc_loss_of_slabs(x, y, slabs, **options)

# SPDX-License-Identifier: Apache-2.0
"""The public measures of images in slabs."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from .._library import values
from .._library.measures import DATA_RANGES
from . import information, levels, sums, windows
from .agreement import Agreement
from .slabs import Slabs


def mse(x: Tensor, y: Tensor, slabs: Slabs, *, reduction: str = "mean") -> Tensor:
    """similis.mse() of images in slabs: the same number on every rank."""
    return _pixel_error("mse", x, y, slabs, reduction).to(sums.result_dtype(x))


def mae(x: Tensor, y: Tensor, slabs: Slabs, *, reduction: str = "mean") -> Tensor:
    """similis.mae() of images in slabs."""
    return _pixel_error("mae", x, y, slabs, reduction).to(sums.result_dtype(x))


def psnr(
    x: Tensor,
    y: Tensor,
    slabs: Slabs,
    *,
    data_range: Optional[float] = None,
    reduction: str = "mean",
) -> Tensor:
    """similis.psnr() of images in slabs."""
    error = _pixel_error("psnr", x, y, slabs, reduction, data_range=data_range)
    dtype = str(x.dtype).replace("torch.", "")
    largest = DATA_RANGES.get(dtype, 1.0) if data_range is None else float(data_range)
    return (10 * torch.log10(largest * largest / error)).to(sums.result_dtype(x))


def _pixel_error(
    operation: str, x: Tensor, y: Tensor, slabs: Slabs, reduction: str, **options: Any
) -> Tensor:
    with Agreement(operation, slabs, reduction=reduction, **options) as agreement:
        windows.require_images(agreement, x, y, slabs)
        sums.require_reduction(reduction)
        if operation == "psnr" and reduction == "sum":
            raise ValueError("reduction is 'sum'; it must be mean, per_image or per_channel")
        given = options.get("data_range")
        if given is not None and not values.number(operation, "data_range", given) > 0:
            raise ValueError(f"data_range is {given!r}; it must be above 0")
    return sums.pixel_error("mae" if operation == "mae" else "mse", x, y, slabs, reduction)


def ncc(x: Tensor, y: Tensor, slabs: Slabs, *, reduction: str = "mean") -> Tensor:
    """similis.ncc() of images in slabs, from the whole's moments."""
    return _correlation("ncc", x, y, slabs, reduction).to(sums.result_dtype(x))


def ncc_loss(x: Tensor, y: Tensor, slabs: Slabs, *, reduction: str = "mean") -> Tensor:
    """-NCC."""
    return -_correlation("ncc_loss", x, y, slabs, reduction).to(sums.result_dtype(x))


def _correlation(operation: str, x: Tensor, y: Tensor, slabs: Slabs, reduction: str) -> Tensor:
    with Agreement(operation, slabs, reduction=reduction) as agreement:
        windows.require_images(agreement, x, y, slabs)
        sums.require_reduction(reduction)
    return sums.correlation(x, y, slabs, reduction)


def mutual_information(
    x: Tensor, y: Tensor, slabs: Slabs, *, mask: Optional[Tensor] = None, **options: Any
) -> Tensor:
    """similis.mutual_information() of images in slabs, from the whole's histogram.

    options: as of similis.mutual_information(). Limits that the images give are the whole's, and
    so are the voxels that sampling chooses.
    """
    return information.information("mutual_information", 1, x, y, slabs, mask, options)


def mutual_information_loss(
    x: Tensor, y: Tensor, slabs: Slabs, *, mask: Optional[Tensor] = None, **options: Any
) -> Tensor:
    """The negative of mutual_information()."""
    return information.information("mutual_information_loss", -1, x, y, slabs, mask, options)


def histogram(
    x: Tensor, y: Tensor, slabs: Slabs, *, mask: Optional[Tensor] = None, **options: Any
) -> Tensor:
    """similis.histogram() of images in slabs: the whole's, on every rank."""
    return information.histogram_of_slabs(x, y, slabs, mask, options)


def ssim(x: Tensor, y: Tensor, slabs: Slabs, **options: Any) -> Tensor:
    """similis.ssim() of images in slabs, with its options; reduction "none" gives the rows of the
    map whose centres are own rows. Masks lie in slabs as x does."""
    return windows.ssim_of_slabs(x, y, slabs, **options)


def ssim_loss(x: Tensor, y: Tensor, slabs: Slabs, **options: Any) -> Tensor:
    """similis.ssim_loss() of images in slabs; see ssim()."""
    return windows.ssim_loss_of_slabs(x, y, slabs, **options)


def l1_ssim(x: Tensor, y: Tensor, slabs: Slabs, *, weight: float = 0.2, **options: Any) -> Tensor:
    """similis.l1_ssim() of images in slabs; see ssim()."""
    return windows.l1_ssim_of_slabs(x, y, slabs, weight=weight, **options)


def ms_ssim(x: Tensor, y: Tensor, slabs: Slabs, **options: Any) -> Tensor:
    """similis.ms_ssim() of images in slabs, with its options. A mask lies in slabs as x does."""
    return levels.ms_ssim_of_slabs(x, y, slabs, **options)


def ms_ssim_loss(x: Tensor, y: Tensor, slabs: Slabs, **options: Any) -> Tensor:
    """similis.ms_ssim_loss() of images in slabs; see ms_ssim()."""
    return levels.ms_ssim_loss_of_slabs(x, y, slabs, **options)


def lncc(x: Tensor, y: Tensor, slabs: Slabs, **options: Any) -> Tensor:
    """similis.lncc() of images in slabs; see ssim()."""
    return windows.lncc_of_slabs(x, y, slabs, **options)


def lncc_loss(x: Tensor, y: Tensor, slabs: Slabs, **options: Any) -> Tensor:
    """similis.lncc_loss() of images in slabs; see ssim()."""
    return windows.lncc_loss_of_slabs(x, y, slabs, **options)

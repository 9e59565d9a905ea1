# SPDX-License-Identifier: Apache-2.0
# Written by scripts/python_stubs.py.
from collections.abc import Sequence
from typing import Any, Literal, Optional, Union

import torch
from torch import Tensor

from similis._library.measures import PerAxisFloat, PerAxisInt, Range
from similis._library.values import DataRange


__all__ = [
    "LNCC",
    "MAE",
    "MSE",
    "NCC",
    "PSNR",
    "SSIM",
    "SSIMULACRA2",
    "VMAF",
    "FloatMSSSIM",
    "FloatSSIM",
    "IntegerSSIM",
    "L1SSIMLoss",
    "LNCCLoss",
    "LibvmafPSNR",
    "MSSSIM",
    "MSSSIMLoss",
    "MutualInformation",
    "MutualInformationLoss",
    "NCCLoss",
    "SSIMLoss",
]

class LNCC(torch.nn.Module):
    """similis.lncc()."""
    def __init__(
        self, *, window_size: PerAxisInt = 3, window: Literal["box", "gaussian"] = "box", sigma:
        PerAxisFloat = 1.5, padding: Literal["valid", "same", "renormalize"] = "same", reduction:
        Literal["mean", "sum", "none", "per_image", "per_channel"] = "mean", rows:
        Optional[Sequence[int]] = None, sums: bool = False, smooth_nr: float = 1e-05, smooth_dr:
        float = 1e-05, signed: bool = False, gradient: Literal["exact", "ants"] = "exact",
        workspace: Literal["auto", "small"] = "auto", channel_axis: Optional[int] = None
    ) -> None: ...
    def forward(
        self, x: Tensor, y: Tensor, *, mask: Optional[Tensor] = None, valid_mask: Optional[Tensor]
        = None
    ) -> Tensor: ...
    def __call__(
        self, x: Tensor, y: Tensor, *, mask: Optional[Tensor] = None, valid_mask: Optional[Tensor]
        = None
    ) -> Tensor: ...

class MAE(torch.nn.Module):
    """similis.mae(), a loss as it is."""
    def __init__(
        self, reduction: Literal["mean", "sum", "per_image", "per_channel"] = "mean", channel_axis:
        Optional[int] = None
    ) -> None: ...
    def forward(self, x: Tensor, y: Tensor, *, mask: Optional[Tensor] = None) -> Tensor: ...
    def __call__(self, x: Tensor, y: Tensor, *, mask: Optional[Tensor] = None) -> Tensor: ...

class MSE(torch.nn.Module):
    """similis.mse(), a loss as it is."""
    def __init__(
        self, reduction: Literal["mean", "sum", "per_image", "per_channel"] = "mean", channel_axis:
        Optional[int] = None
    ) -> None: ...
    def forward(self, x: Tensor, y: Tensor, *, mask: Optional[Tensor] = None) -> Tensor: ...
    def __call__(self, x: Tensor, y: Tensor, *, mask: Optional[Tensor] = None) -> Tensor: ...

class NCC(torch.nn.Module):
    """similis.ncc()."""
    def __init__(
        self, reduction: Literal["mean", "sum", "per_image", "per_channel"] = "mean", channel_axis:
        Optional[int] = None
    ) -> None: ...
    def forward(self, x: Tensor, y: Tensor) -> Tensor: ...
    def __call__(self, x: Tensor, y: Tensor) -> Tensor: ...

class PSNR(torch.nn.Module):
    """similis.psnr(), in dB."""
    def __init__(
        self, data_range: DataRange = None, reduction: Literal["mean", "per_image", "per_channel"]
        = "mean", channel_axis: Optional[int] = None
    ) -> None: ...
    def forward(self, x: Tensor, y: Tensor, *, mask: Optional[Tensor] = None) -> Tensor: ...
    def __call__(self, x: Tensor, y: Tensor, *, mask: Optional[Tensor] = None) -> Tensor: ...

class SSIM(torch.nn.Module):
    """similis.ssim()."""
    def __init__(
        self, *, data_range: DataRange = None, window_size: PerAxisInt = 11, window: Literal["box",
        "gaussian"] = "gaussian", sigma: PerAxisFloat = 1.5, k1: float = 0.01, k2: float = 0.03,
        sample_covariance: bool = False, padding: Literal["valid", "same", "reflect", "replicate",
        "renormalize"] = "valid", reduction: Literal["mean", "sum", "none", "per_image",
        "per_channel"] = "mean", rows: Optional[Sequence[int]] = None, sums: bool = False,
        channel_axis: Optional[int] = None
    ) -> None: ...
    def forward(
        self, x: Tensor, y: Tensor, *, mask: Optional[Tensor] = None, valid_mask: Optional[Tensor]
        = None
    ) -> Tensor: ...
    def __call__(
        self, x: Tensor, y: Tensor, *, mask: Optional[Tensor] = None, valid_mask: Optional[Tensor]
        = None
    ) -> Tensor: ...

class SSIMULACRA2(torch.nn.Module):
    """similis.ssimulacra2(), which has no gradient."""
    def __init__(
        self, *, mode: Literal["exact", "fast"] = "exact", transfer: Literal["srgb", "linear"] =
        "srgb", channel_axis: Optional[int] = None
    ) -> None: ...
    def forward(self, x: Tensor, y: Tensor) -> Tensor: ...
    def __call__(self, x: Tensor, y: Tensor) -> Tensor: ...

class VMAF(torch.nn.Module):
    """similis.vmaf() of clips, which has no gradient."""
    def __init__(
        self, model: str = "vmaf_v0.6.1", *, bit_depth: Optional[int] = None, features: bool =
        False
    ) -> None: ...
    def forward(self, x: Tensor, y: Tensor) -> Tensor: ...
    def __call__(self, x: Tensor, y: Tensor) -> Tensor: ...

class FloatMSSSIM(torch.nn.Module):
    """similis.float_ms_ssim(), which has no gradient."""
    def __init__(
        self, *, bit_depth: Optional[int] = None, enable_db: bool = False, clip_db: bool = False,
        enable_lcs: bool = False, channel_axis: Optional[int] = None
    ) -> None: ...
    def forward(self, x: Tensor, y: Tensor) -> Tensor: ...
    def __call__(self, x: Tensor, y: Tensor) -> Tensor: ...

class FloatSSIM(torch.nn.Module):
    """similis.float_ssim(), which has no gradient."""
    def __init__(
        self, *, bit_depth: Optional[int] = None, scale: Optional[int] = None, enable_db: bool =
        False, clip_db: bool = False, enable_lcs: bool = False, channel_axis: Optional[int] = None
    ) -> None: ...
    def forward(self, x: Tensor, y: Tensor) -> Tensor: ...
    def __call__(self, x: Tensor, y: Tensor) -> Tensor: ...

class IntegerSSIM(torch.nn.Module):
    """similis.integer_ssim(), which has no gradient."""
    def __init__(
        self, *, bit_depth: Optional[int] = None, channel_axis: Optional[int] = None
    ) -> None: ...
    def forward(self, x: Tensor, y: Tensor) -> Tensor: ...
    def __call__(self, x: Tensor, y: Tensor) -> Tensor: ...

class L1SSIMLoss(torch.nn.Module):
    """similis.l1_ssim(), (1 - weight)·mean|x - y| + weight·(1 - SSIM)."""
    def __init__(
        self, weight: float = 0.2, *, data_range: DataRange = None, window_size: PerAxisInt = 11,
        window: Literal["box", "gaussian"] = "gaussian", sigma: PerAxisFloat = 1.5, k1: float =
        0.01, k2: float = 0.03, sample_covariance: bool = False, padding: Literal["valid", "same",
        "reflect", "replicate", "renormalize"] = "valid", reduction: Literal["mean", "sum", "none",
        "per_image", "per_channel"] = "mean", rows: Optional[Sequence[int]] = None, sums: bool =
        False, channel_axis: Optional[int] = None
    ) -> None: ...
    def forward(
        self, x: Tensor, y: Tensor, *, mask: Optional[Tensor] = None, valid_mask: Optional[Tensor]
        = None
    ) -> Tensor: ...
    def __call__(
        self, x: Tensor, y: Tensor, *, mask: Optional[Tensor] = None, valid_mask: Optional[Tensor]
        = None
    ) -> Tensor: ...

class LNCCLoss(torch.nn.Module):
    """similis.lncc_loss(), -LNCC."""
    def __init__(
        self, *, window_size: PerAxisInt = 3, window: Literal["box", "gaussian"] = "box", sigma:
        PerAxisFloat = 1.5, padding: Literal["valid", "same", "renormalize"] = "same", reduction:
        Literal["mean", "sum", "none", "per_image", "per_channel"] = "mean", rows:
        Optional[Sequence[int]] = None, sums: bool = False, smooth_nr: float = 1e-05, smooth_dr:
        float = 1e-05, signed: bool = False, gradient: Literal["exact", "ants"] = "exact",
        workspace: Literal["auto", "small"] = "auto", channel_axis: Optional[int] = None
    ) -> None: ...
    def forward(
        self, x: Tensor, y: Tensor, *, mask: Optional[Tensor] = None, valid_mask: Optional[Tensor]
        = None
    ) -> Tensor: ...
    def __call__(
        self, x: Tensor, y: Tensor, *, mask: Optional[Tensor] = None, valid_mask: Optional[Tensor]
        = None
    ) -> Tensor: ...

class LibvmafPSNR(torch.nn.Module):
    """similis.libvmaf_psnr(), which has no gradient."""
    def __init__(
        self, *, bit_depth: Optional[int] = None, channel_axis: Optional[int] = None
    ) -> None: ...
    def forward(self, x: Tensor, y: Tensor) -> Tensor: ...
    def __call__(self, x: Tensor, y: Tensor) -> Tensor: ...

class MSSSIM(torch.nn.Module):
    """similis.ms_ssim()."""
    def __init__(
        self, weights: Optional[Sequence[float]] = None, downsample: Literal["vainf", "ceil",
        "floor", "piq"] = "vainf", *, data_range: DataRange = None, window_size: PerAxisInt = 11,
        sigma: PerAxisFloat = 1.5, k1: float = 0.01, k2: float = 0.03, padding: Literal["valid",
        "same", "reflect", "replicate", "renormalize"] = "valid", reduction: Literal["mean", "sum",
        "per_image", "per_channel"] = "mean", channel_axis: Optional[int] = None
    ) -> None: ...
    def forward(self, x: Tensor, y: Tensor, *, mask: Optional[Tensor] = None) -> Tensor: ...
    def __call__(self, x: Tensor, y: Tensor, *, mask: Optional[Tensor] = None) -> Tensor: ...

class MSSSIMLoss(torch.nn.Module):
    """similis.ms_ssim_loss(), 1 - MS-SSIM."""
    def __init__(
        self, weights: Optional[Sequence[float]] = None, downsample: Literal["vainf", "ceil",
        "floor", "piq"] = "vainf", *, data_range: DataRange = None, window_size: PerAxisInt = 11,
        sigma: PerAxisFloat = 1.5, k1: float = 0.01, k2: float = 0.03, padding: Literal["valid",
        "same", "reflect", "replicate", "renormalize"] = "valid", reduction: Literal["mean", "sum",
        "per_image", "per_channel"] = "mean", channel_axis: Optional[int] = None
    ) -> None: ...
    def forward(self, x: Tensor, y: Tensor, *, mask: Optional[Tensor] = None) -> Tensor: ...
    def __call__(self, x: Tensor, y: Tensor, *, mask: Optional[Tensor] = None) -> Tensor: ...

class MutualInformation(torch.nn.Module):
    """similis.mutual_information()."""
    def __init__(
        self, *, num_bins: int = 32, kernel: Literal["b_spline", "gaussian", "delta"] = "b_spline",
        sigma_ratio: float = 1.0, range: Range = "per_image", normalized: bool = False, smooth_nr:
        float = 0.0, smooth_dr: float = 0.0, method: Literal["exact", "binned"] = "exact",
        sampling: float = 1.0, seed: int = 0, reduction: Literal["mean", "sum", "none",
        "per_image", "per_channel"] = "mean", channel_axis: Optional[int] = None
    ) -> None: ...
    def forward(self, x: Tensor, y: Tensor, *, mask: Optional[Tensor] = None) -> Tensor: ...
    def __call__(self, x: Tensor, y: Tensor, *, mask: Optional[Tensor] = None) -> Tensor: ...

class MutualInformationLoss(torch.nn.Module):
    """similis.mutual_information_loss(), the negative."""
    def __init__(
        self, *, num_bins: int = 32, kernel: Literal["b_spline", "gaussian", "delta"] = "b_spline",
        sigma_ratio: float = 1.0, range: Range = "per_image", normalized: bool = False, smooth_nr:
        float = 0.0, smooth_dr: float = 0.0, method: Literal["exact", "binned"] = "exact",
        sampling: float = 1.0, seed: int = 0, reduction: Literal["mean", "sum", "none",
        "per_image", "per_channel"] = "mean", channel_axis: Optional[int] = None
    ) -> None: ...
    def forward(self, x: Tensor, y: Tensor, *, mask: Optional[Tensor] = None) -> Tensor: ...
    def __call__(self, x: Tensor, y: Tensor, *, mask: Optional[Tensor] = None) -> Tensor: ...

class NCCLoss(torch.nn.Module):
    """similis.ncc_loss(), -NCC."""
    def __init__(
        self, reduction: Literal["mean", "sum", "per_image", "per_channel"] = "mean", channel_axis:
        Optional[int] = None
    ) -> None: ...
    def forward(self, x: Tensor, y: Tensor) -> Tensor: ...
    def __call__(self, x: Tensor, y: Tensor) -> Tensor: ...

class SSIMLoss(torch.nn.Module):
    """similis.ssim_loss(), 1 - SSIM."""
    def __init__(
        self, *, data_range: DataRange = None, window_size: PerAxisInt = 11, window: Literal["box",
        "gaussian"] = "gaussian", sigma: PerAxisFloat = 1.5, k1: float = 0.01, k2: float = 0.03,
        sample_covariance: bool = False, padding: Literal["valid", "same", "reflect", "replicate",
        "renormalize"] = "valid", reduction: Literal["mean", "sum", "none", "per_image",
        "per_channel"] = "mean", rows: Optional[Sequence[int]] = None, sums: bool = False,
        channel_axis: Optional[int] = None
    ) -> None: ...
    def forward(
        self, x: Tensor, y: Tensor, *, mask: Optional[Tensor] = None, valid_mask: Optional[Tensor]
        = None
    ) -> Tensor: ...
    def __call__(
        self, x: Tensor, y: Tensor, *, mask: Optional[Tensor] = None, valid_mask: Optional[Tensor]
        = None
    ) -> Tensor: ...

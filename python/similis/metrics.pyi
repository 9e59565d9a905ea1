# SPDX-License-Identifier: Apache-2.0
# Written by scripts/python_stubs.py.
from collections.abc import Sequence
from typing import Any, Literal, Optional, Union

from torch import Tensor
from torchmetrics import Metric as Metric

from similis._library.measures import PerAxisFloat, PerAxisInt, Range
from similis._library.values import DataRange


__all__ = [
    "L1SSIM",
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
    "LibvmafPSNR",
    "MSSSIM",
    "MutualInformation",
]

def of_batches(batches: Any) -> Tensor: ...

class L1SSIM(Metric):
    """similis.l1_ssim() over batches."""
    def __init__(
        self, weight: float = 0.2, *, data_range: DataRange = None, window_size: PerAxisInt = 11,
        window: Literal["box", "gaussian"] = "gaussian", sigma: PerAxisFloat = 1.5, k1: float =
        0.01, k2: float = 0.03, sample_covariance: bool = False, padding: Literal["valid", "same",
        "reflect", "replicate", "renormalize"] = "valid", channel_axis: Optional[int] = None,
        reduction: Literal["mean", "sum", "none"] = "mean", **of_metric: Any
    ) -> None: ...
    def update(
        self, x: Tensor, y: Tensor, mask: Optional[Tensor] = None, valid_mask: Optional[Tensor] =
        None
    ) -> None: ...
    def compute(self) -> Tensor: ...

class LNCC(Metric):
    """similis.lncc() over batches."""
    def __init__(
        self, *, window_size: PerAxisInt = 3, window: Literal["box", "gaussian"] = "box", sigma:
        PerAxisFloat = 1.5, padding: Literal["valid", "same", "renormalize"] = "same", smooth_nr:
        float = 1e-05, smooth_dr: float = 1e-05, signed: bool = False, gradient: Literal["exact",
        "ants"] = "exact", workspace: Literal["auto", "small"] = "auto", channel_axis:
        Optional[int] = None, reduction: Literal["mean", "sum", "none"] = "mean", **of_metric: Any
    ) -> None: ...
    def update(
        self, x: Tensor, y: Tensor, mask: Optional[Tensor] = None, valid_mask: Optional[Tensor] =
        None
    ) -> None: ...
    def compute(self) -> Tensor: ...

class MAE(Metric):
    """similis.mae() over batches."""
    def __init__(
        self, *, channel_axis: Optional[int] = None, reduction: Literal["mean", "sum", "none"] =
        "mean", **of_metric: Any
    ) -> None: ...
    def update(self, x: Tensor, y: Tensor, mask: Optional[Tensor] = None) -> None: ...
    def compute(self) -> Tensor: ...

class MSE(Metric):
    """similis.mse() over batches."""
    def __init__(
        self, *, channel_axis: Optional[int] = None, reduction: Literal["mean", "sum", "none"] =
        "mean", **of_metric: Any
    ) -> None: ...
    def update(self, x: Tensor, y: Tensor, mask: Optional[Tensor] = None) -> None: ...
    def compute(self) -> Tensor: ...

class NCC(Metric):
    """similis.ncc() over batches."""
    def __init__(
        self, *, channel_axis: Optional[int] = None, reduction: Literal["mean", "sum", "none"] =
        "mean", **of_metric: Any
    ) -> None: ...
    def update(self, x: Tensor, y: Tensor) -> None: ...
    def compute(self) -> Tensor: ...

class PSNR(Metric):
    """similis.psnr() over batches: the mean of the images' decibels."""
    def __init__(
        self, data_range: DataRange = None, *, channel_axis: Optional[int] = None, reduction:
        Literal["mean", "sum", "none"] = "mean", **of_metric: Any
    ) -> None: ...
    def update(self, x: Tensor, y: Tensor, mask: Optional[Tensor] = None) -> None: ...
    def compute(self) -> Tensor: ...

class SSIM(Metric):
    """similis.ssim() over batches."""
    def __init__(
        self, *, data_range: DataRange = None, window_size: PerAxisInt = 11, window: Literal["box",
        "gaussian"] = "gaussian", sigma: PerAxisFloat = 1.5, k1: float = 0.01, k2: float = 0.03,
        sample_covariance: bool = False, padding: Literal["valid", "same", "reflect", "replicate",
        "renormalize"] = "valid", channel_axis: Optional[int] = None, reduction: Literal["mean",
        "sum", "none"] = "mean", **of_metric: Any
    ) -> None: ...
    def update(
        self, x: Tensor, y: Tensor, mask: Optional[Tensor] = None, valid_mask: Optional[Tensor] =
        None
    ) -> None: ...
    def compute(self) -> Tensor: ...

class SSIMULACRA2(Metric):
    """similis.ssimulacra2() over batches."""
    def __init__(
        self, *, mode: Literal["exact", "fast"] = "exact", transfer: Literal["srgb", "linear"] =
        "srgb", channel_axis: Optional[int] = None, reduction: Literal["mean", "sum", "none"] =
        "mean", **of_metric: Any
    ) -> None: ...
    def update(self, x: Tensor, y: Tensor) -> None: ...
    def compute(self) -> Tensor: ...

class VMAF(Metric):
    """similis.vmaf() over clips: each update() takes a whole clip, and frames are averaged."""
    def __init__(
        self, model: str = "vmaf_v0.6.1", *, bit_depth: Optional[int] = None, reduction:
        Literal["mean", "sum", "none"] = "mean", **of_metric: Any
    ) -> None: ...
    def update(self, x: Tensor, y: Tensor) -> None: ...
    def compute(self) -> Tensor: ...

class FloatMSSSIM(Metric):
    """similis.float_ms_ssim() over batches of planes."""
    def __init__(
        self, *, bit_depth: Optional[int] = None, enable_db: bool = False, clip_db: bool = False,
        channel_axis: Optional[int] = None, reduction: Literal["mean", "sum", "none"] = "mean",
        **of_metric: Any
    ) -> None: ...
    def update(self, x: Tensor, y: Tensor) -> None: ...
    def compute(self) -> Tensor: ...

class FloatSSIM(Metric):
    """similis.float_ssim() over batches of planes."""
    def __init__(
        self, *, bit_depth: Optional[int] = None, scale: Optional[int] = None, enable_db: bool =
        False, clip_db: bool = False, channel_axis: Optional[int] = None, reduction:
        Literal["mean", "sum", "none"] = "mean", **of_metric: Any
    ) -> None: ...
    def update(self, x: Tensor, y: Tensor) -> None: ...
    def compute(self) -> Tensor: ...

class IntegerSSIM(Metric):
    """similis.integer_ssim() over batches of planes."""
    def __init__(
        self, *, bit_depth: Optional[int] = None, channel_axis: Optional[int] = None, reduction:
        Literal["mean", "sum", "none"] = "mean", **of_metric: Any
    ) -> None: ...
    def update(self, x: Tensor, y: Tensor) -> None: ...
    def compute(self) -> Tensor: ...

class LibvmafPSNR(Metric):
    """similis.libvmaf_psnr() over batches of planes."""
    def __init__(
        self, *, bit_depth: Optional[int] = None, channel_axis: Optional[int] = None, reduction:
        Literal["mean", "sum", "none"] = "mean", **of_metric: Any
    ) -> None: ...
    def update(self, x: Tensor, y: Tensor) -> None: ...
    def compute(self) -> Tensor: ...

class MSSSIM(Metric):
    """similis.ms_ssim() over batches."""
    def __init__(
        self, *, data_range: DataRange = None, window_size: PerAxisInt = 11, sigma: PerAxisFloat =
        1.5, k1: float = 0.01, k2: float = 0.03, padding: Literal["valid", "same", "reflect",
        "replicate", "renormalize"] = "valid", weights: Optional[Sequence[float]] = None,
        downsample: Literal["vainf", "ceil", "floor", "piq"] = "vainf", channel_axis: Optional[int]
        = None, reduction: Literal["mean", "sum", "none"] = "mean", **of_metric: Any
    ) -> None: ...
    def update(self, x: Tensor, y: Tensor, mask: Optional[Tensor] = None) -> None: ...
    def compute(self) -> Tensor: ...

class MutualInformation(Metric):
    """similis.mutual_information() over batches."""
    def __init__(
        self, *, num_bins: int = 32, kernel: Literal["b_spline", "gaussian", "delta"] = "b_spline",
        sigma_ratio: float = 1.0, range: Range = "per_image", normalized: bool = False, smooth_nr:
        float = 0.0, smooth_dr: float = 0.0, method: Literal["exact", "binned"] = "exact",
        sampling: float = 1.0, seed: int = 0, channel_axis: Optional[int] = None, reduction:
        Literal["mean", "sum", "none"] = "mean", **of_metric: Any
    ) -> None: ...
    def update(self, x: Tensor, y: Tensor, mask: Optional[Tensor] = None) -> None: ...
    def compute(self) -> Tensor: ...

# SPDX-License-Identifier: Apache-2.0
"""The measures as torch modules: options once, images at each call.

A module with Loss in its name is to be minimised; any other one measures how alike two images are.
Each takes the options of the function it is named after. None has parameters or buffers.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Callable, ClassVar, Optional, TypedDict

import torch

from ._functions.correlation import lncc_loss, ncc_loss
from ._functions.mutual_information import mutual_information, mutual_information_loss
from ._functions.pixel_error import psnr
from ._functions.ssim import l1_ssim, ms_ssim, ms_ssim_loss, ssim, ssim_loss
from ._functions.unknown_options import refuse_options
from ._library.measures import PerAxisFloat, PerAxisInt, Range, check_options
from ._library.values import DataRange

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "PSNR",
    "SSIM",
    "L1SSIMLoss",
    "LNCCLoss",
    "MSSSIM",
    "MSSSIMLoss",
    "MutualInformation",
    "MutualInformationLoss",
    "NCCLoss",
    "SSIMLoss",
]


class WindowOptions(TypedDict, total=False):
    """The options of all measures with a window; see similis.ssim()."""

    data_range: DataRange
    window_size: PerAxisInt
    sigma: PerAxisFloat
    k1: float
    k2: float
    padding: str
    reduction: str
    channel_axis: Optional[int]


class _Measure(torch.nn.Module):
    """Calls a function with options that were given once."""

    function: ClassVar[Callable[..., torch.Tensor]]

    def __init__(self, **options: Any) -> None:
        super().__init__()
        function, called = type(self).function, f"nn.{type(self).__name__}"
        names = list(inspect.signature(function).parameters)[2:]
        if any(name not in names for name in options):
            refuse_options(called, options, function)
        check_options(called, function.__name__.removesuffix("_loss"), options)
        self.options = options

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self.options.items())

    def forward(self, x: torch.Tensor, y: torch.Tensor, **masks: torch.Tensor) -> torch.Tensor:
        return type(self).function(x, y, **self.options, **masks)


class SSIM(_Measure):
    """similis.ssim(); forward(x, y) also takes mask and valid_mask by name."""

    function = staticmethod(ssim)

    def __init__(self, **options: Unpack[WindowOptions]) -> None:
        super().__init__(**options)


class SSIMLoss(_Measure):
    """similis.ssim_loss(), 1 - SSIM; forward(x, y) also takes mask and valid_mask by name."""

    function = staticmethod(ssim_loss)

    def __init__(self, **options: Unpack[WindowOptions]) -> None:
        super().__init__(**options)


class L1SSIMLoss(_Measure):
    """similis.l1_ssim(), (1 - weight)·mean|x - y| + weight·(1 - SSIM)."""

    function = staticmethod(l1_ssim)

    def __init__(self, weight: float = 0.2, **options: Unpack[WindowOptions]) -> None:
        super().__init__(weight=weight, **options)


class MSSSIM(_Measure):
    """similis.ms_ssim()."""

    function = staticmethod(ms_ssim)

    def __init__(
        self,
        weights: Optional[Sequence[float]] = None,
        downsample: str = "vainf",
        **options: Unpack[WindowOptions],
    ) -> None:
        super().__init__(weights=weights, downsample=downsample, **options)


class MSSSIMLoss(MSSSIM):
    """similis.ms_ssim_loss(), 1 - MS-SSIM."""

    function = staticmethod(ms_ssim_loss)


class LNCCOptions(TypedDict, total=False):
    """See similis.lncc()."""

    window_size: PerAxisInt
    window: str
    sigma: PerAxisFloat
    padding: str
    reduction: str
    smooth_nr: float
    smooth_dr: float
    signed: bool
    gradient: str
    workspace: str
    channel_axis: Optional[int]


class LNCCLoss(_Measure):
    """similis.lncc_loss(), -LNCC; forward(x, y) also takes mask and valid_mask by name."""

    function = staticmethod(lncc_loss)

    def __init__(self, **options: Unpack[LNCCOptions]) -> None:
        super().__init__(**options)


class NCCLoss(_Measure):
    """similis.ncc_loss(), -NCC."""

    function = staticmethod(ncc_loss)

    def __init__(self, reduction: str = "mean", channel_axis: Optional[int] = None) -> None:
        super().__init__(reduction=reduction, channel_axis=channel_axis)


class MutualInformationOptions(TypedDict, total=False):
    """See similis.mutual_information()."""

    num_bins: int
    kernel: str
    sigma_ratio: float
    range: Range
    normalized: bool
    smooth_nr: float
    smooth_dr: float
    method: str
    sampling: float
    seed: int
    reduction: str
    channel_axis: Optional[int]


class MutualInformation(_Measure):
    """similis.mutual_information(); forward(x, y) also takes a mask by name."""

    function = staticmethod(mutual_information)

    def __init__(self, **options: Unpack[MutualInformationOptions]) -> None:
        super().__init__(**options)


class MutualInformationLoss(MutualInformation):
    """similis.mutual_information_loss(), the negative."""

    function = staticmethod(mutual_information_loss)


class PSNR(_Measure):
    """similis.psnr(), in dB."""

    function = staticmethod(psnr)

    def __init__(
        self,
        data_range: DataRange = None,
        reduction: str = "mean",
        channel_axis: Optional[int] = None,
    ) -> None:
        super().__init__(data_range=data_range, reduction=reduction, channel_axis=channel_axis)

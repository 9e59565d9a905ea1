# SPDX-License-Identifier: Apache-2.0
"""The measures as torch modules: options once, images at each call.

A module with Loss in its name is to be minimised; any other one measures how alike two images are.
Each takes the options of the function it is named after, which are checked when it is made. None
has parameters or buffers. forward(x, y) takes masks by name where the function does.
"""

from __future__ import annotations

from typing import Any, Callable, ClassVar

import torch

from ._functions.correlation import lncc, lncc_loss, ncc, ncc_loss
from ._functions.mutual_information import mutual_information, mutual_information_loss
from ._functions.pixel_error import mae, mse, psnr
from ._functions.scores import float_ms_ssim, float_ssim, integer_ssim, libvmaf_psnr, ssimulacra2
from ._functions.ssim import l1_ssim, ms_ssim, ms_ssim_loss, ssim, ssim_loss
from ._functions.vmaf import vmaf
from ._torch.options import require_options, with_options_of

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


class _Measure(torch.nn.Module):
    """Calls a function with options that were given once."""

    function: ClassVar[Callable[..., Any]]

    def __init__(self, **options: Any) -> None:
        super().__init__()
        require_options(f"nn.{type(self).__name__}", type(self).function, options)
        self.options = options

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self.options.items())

    def forward(self, x: torch.Tensor, y: torch.Tensor, **masks: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = type(self).function(x, y, **self.options, **masks)
        return result


@with_options_of(ssim)
class SSIM(_Measure):
    """similis.ssim()."""


@with_options_of(ssim_loss)
class SSIMLoss(_Measure):
    """similis.ssim_loss(), 1 - SSIM."""


@with_options_of(l1_ssim, "weight")
class L1SSIMLoss(_Measure):
    """similis.l1_ssim(), (1 - weight)·mean|x - y| + weight·(1 - SSIM)."""


@with_options_of(ms_ssim, "weights", "downsample")
class MSSSIM(_Measure):
    """similis.ms_ssim()."""


@with_options_of(ms_ssim_loss, "weights", "downsample")
class MSSSIMLoss(_Measure):
    """similis.ms_ssim_loss(), 1 - MS-SSIM."""


@with_options_of(lncc)
class LNCC(_Measure):
    """similis.lncc()."""


@with_options_of(lncc_loss)
class LNCCLoss(_Measure):
    """similis.lncc_loss(), -LNCC."""


@with_options_of(ncc, "reduction", "channel_axis")
class NCC(_Measure):
    """similis.ncc()."""


@with_options_of(ncc_loss, "reduction", "channel_axis")
class NCCLoss(_Measure):
    """similis.ncc_loss(), -NCC."""


@with_options_of(mutual_information)
class MutualInformation(_Measure):
    """similis.mutual_information()."""


@with_options_of(mutual_information_loss)
class MutualInformationLoss(_Measure):
    """similis.mutual_information_loss(), the negative."""


@with_options_of(psnr, "data_range", "reduction", "channel_axis")
class PSNR(_Measure):
    """similis.psnr(), in dB."""


@with_options_of(mse, "reduction", "channel_axis")
class MSE(_Measure):
    """similis.mse(), a loss as it is."""


@with_options_of(mae, "reduction", "channel_axis")
class MAE(_Measure):
    """similis.mae(), a loss as it is."""


@with_options_of(ssimulacra2)
class SSIMULACRA2(_Measure):
    """similis.ssimulacra2(), which has no gradient."""


@with_options_of(integer_ssim)
class IntegerSSIM(_Measure):
    """similis.integer_ssim(), which has no gradient."""


@with_options_of(float_ssim)
class FloatSSIM(_Measure):
    """similis.float_ssim(), which has no gradient."""


@with_options_of(float_ms_ssim)
class FloatMSSSIM(_Measure):
    """similis.float_ms_ssim(), which has no gradient."""


@with_options_of(libvmaf_psnr)
class LibvmafPSNR(_Measure):
    """similis.libvmaf_psnr(), which has no gradient."""


@with_options_of(vmaf, "model")
class VMAF(_Measure):
    """similis.vmaf() of clips, which has no gradient."""

# SPDX-License-Identifier: Apache-2.0
"""The measures as torchmetrics.Metric: update(x, y) batch by batch, compute() over all of them.

Each takes the options of the function it is named after, which are checked when it is made, a
reduction over images, and the arguments of every Metric. reduction "mean" is the mean over images,
each of which counts once whatever the batches are, "sum" their sum and "none" the numbers of all;
VMAF's are frames. Sums are f64, and are added up over the processes of torch.distributed. PSNR is
the mean of the images' decibels: that of all pixels together is
similis.compat.torchmetrics.image.PeakSignalNoiseRatio. It needs torchmetrics.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Callable, ClassVar

import torch
from torch import Tensor

try:
    from torchmetrics import Metric
except ImportError as error:
    raise ImportError(
        "similis.metrics needs torchmetrics, which is not installed: pip install torchmetrics"
    ) from error

from ._functions.correlation import lncc, ncc
from ._functions.mutual_information import mutual_information
from ._functions.pixel_error import mae, mse, psnr
from ._functions.scores import float_ms_ssim, float_ssim, integer_ssim, libvmaf_psnr, ssimulacra2
from ._functions.ssim import l1_ssim, ms_ssim, ssim
from ._functions.vmaf import vmaf
from ._library import values
from ._torch.options import option_parameters, require_options, with_options_of

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

# Arguments of every torchmetrics.Metric.
_OF_METRICS = (
    "compute_on_cpu",
    "dist_sync_on_step",
    "process_group",
    "dist_sync_fn",
    "distributed_available_fn",
    "sync_on_compute",
    "compute_with_cache",
)
_REDUCTION = inspect.Parameter(
    "reduction", inspect.Parameter.KEYWORD_ONLY, default="mean", annotation="str"
)
_FURTHER = (_REDUCTION, inspect.Parameter("of_metric", inspect.Parameter.VAR_KEYWORD))
# Results that are no number of each image.
_LEFT_OUT = ("reduction", "rows", "sums", "enable_lcs", "features")


def of_batches(batches: Any) -> Tensor:
    """A list state as one tensor; torchmetrics leaves a tensor where processes were synchronised."""
    if isinstance(batches, Tensor):
        return batches
    return torch.cat(batches) if batches else torch.zeros(0)


class _OfImages(Metric):
    """The mean, the sum or the list of a measure of each image."""

    if TYPE_CHECKING:  # torch.jit.script would read them, and does not know these names
        function: ClassVar[Callable[..., Any]]
        total: Tensor
        images: Tensor
        each: Any
    is_differentiable = True
    higher_is_better = True
    full_state_update = False

    def __init__(self, *, reduction: str = "mean", **options: Any) -> None:
        of_metric = {name: options.pop(name) for name in _OF_METRICS if name in options}
        super().__init__(**of_metric)
        called = f"metrics.{type(self).__name__}"
        self.reduction = values.one_of(called, "reduction", reduction, ("mean", "sum", "none"))
        for name in _LEFT_OUT:
            if name in options:
                raise TypeError(f"{called}: there is no option {name}")
        require_options(called, type(self).function, options)
        self.options = options
        if self.reduction == "none":
            self.add_state("each", default=[], dist_reduce_fx="cat")
        else:
            zero = torch.zeros((), dtype=torch.float64)
            self.add_state("total", default=zero, dist_reduce_fx="sum")
            self.add_state("images", default=torch.tensor(0), dist_reduce_fx="sum")

    def _of_each(self, x: Tensor, y: Tensor, **masks: Any) -> Tensor:
        function = type(self).function
        options = dict(self.options)
        if any(each.name == "reduction" for each in option_parameters(function)):
            options["reduction"] = "per_image"
        given = {name: mask for name, mask in masks.items() if mask is not None}
        result: Tensor = function(x, y, **options, **given)
        return result.reshape(-1)

    def _add(self, each: Tensor) -> None:
        if self.reduction == "none":
            self.each.append(each)
        else:
            self.total = self.total + each.double().sum()
            self.images = self.images + each.numel()

    def update(self, x: Tensor, y: Tensor) -> None:
        """Adds the images of a batch, or a clip."""
        self._add(self._of_each(x, y))

    def compute(self) -> Tensor:
        """f64, or the numbers of all images as the function returns them; NaN for a mean of none."""
        if self.reduction == "none":
            return of_batches(self.each)
        return self.total / self.images if self.reduction == "mean" else self.total


class _WithMask(_OfImages):
    def update(  # type: ignore[override]
        self, x: Tensor, y: Tensor, mask: Any = None
    ) -> None:
        """Adds the images of a batch; mask as of the function."""
        self._add(self._of_each(x, y, mask=mask))


class _WithMasks(_OfImages):
    def update(  # type: ignore[override]
        self, x: Tensor, y: Tensor, mask: Any = None, valid_mask: Any = None
    ) -> None:
        """Adds the images of a batch; masks as of the function."""
        self._add(self._of_each(x, y, mask=mask, valid_mask=valid_mask))


def _of(function: Callable[..., Any], *positional: str) -> Any:
    return with_options_of(function, *positional, left_out=_LEFT_OUT, further=_FURTHER)


@_of(ssim)
class SSIM(_WithMasks):
    """similis.ssim() over batches."""


@_of(l1_ssim, "weight")
class L1SSIM(_WithMasks):
    """similis.l1_ssim() over batches."""

    higher_is_better = False


@_of(ms_ssim)
class MSSSIM(_OfImages):
    """similis.ms_ssim() over batches."""


@_of(lncc)
class LNCC(_WithMasks):
    """similis.lncc() over batches."""


@_of(ncc)
class NCC(_OfImages):
    """similis.ncc() over batches."""


@_of(mutual_information)
class MutualInformation(_WithMask):
    """similis.mutual_information() over batches."""


@_of(psnr, "data_range")
class PSNR(_OfImages):
    """similis.psnr() over batches: the mean of the images' decibels."""


@_of(mse)
class MSE(_OfImages):
    """similis.mse() over batches."""

    higher_is_better = False


@_of(mae)
class MAE(_OfImages):
    """similis.mae() over batches."""

    higher_is_better = False


class _Score(_OfImages):
    is_differentiable = False


@_of(ssimulacra2)
class SSIMULACRA2(_Score):
    """similis.ssimulacra2() over batches."""


@_of(integer_ssim)
class IntegerSSIM(_Score):
    """similis.integer_ssim() over batches of planes."""


@_of(float_ssim)
class FloatSSIM(_Score):
    """similis.float_ssim() over batches of planes."""


@_of(float_ms_ssim)
class FloatMSSSIM(_Score):
    """similis.float_ms_ssim() over batches of planes."""


@_of(libvmaf_psnr)
class LibvmafPSNR(_Score):
    """similis.libvmaf_psnr() over batches of planes."""


@_of(vmaf, "model")
class VMAF(_Score):
    """similis.vmaf() over clips: each update() takes a whole clip, and frames are averaged."""

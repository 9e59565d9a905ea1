# SPDX-License-Identifier: Apache-2.0
"""MONAI's losses of registration: local cross-correlation, mutual information and SSIM.

    from similis.compat.monai import LocalNormalizedCrossCorrelationLoss, SSIMLoss
    from similis.compat.monai import GlobalMutualInformationLoss

MONAI itself is not needed. Sums are f64 here, so that flat backgrounds and large intensities keep
their digits, and correlations are from -1 to 1. torch's operators compute what similis's kernels
lack: triangular windows, a smooth_nr above 0, and the B-spline of mutual information, which
MONAI puts on one image alone. Options of SSIMLoss that MONAI does not read are read here: an
unknown kernel_type is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

import torch
import torch.nn.functional as F
from torch import Tensor

from .._functions.correlation import lncc
from .._functions.dispatch import for_torch, require_tensor
from .._functions.mutual_information import mutual_information_loss
from .._functions.ssim import ssim_text
from .._library import values
from .._library.refusals import require_same_shape

__all__ = ["GlobalMutualInformationLoss", "LocalNormalizedCrossCorrelationLoss", "SSIMLoss"]


def _word(name: str, option: str, given: Any, words: Sequence[str]) -> str:
    """A word, which MONAI also takes as a member of its enumerations."""
    given = getattr(given, "value", given)
    if given not in words:
        raise ValueError(f"{name}: {option} is {given!r}; it must be {values.listed(words)}")
    return str(given)


_REDUCTIONS = ("none", "mean", "sum")


class _Loss(torch.nn.Module):
    def __init__(self, reduction: Any) -> None:
        super().__init__()
        self.reduction = _word(type(self).__name__, "reduction", reduction, _REDUCTIONS)

    def _checked(self, names: tuple[str, str], x: Tensor, y: Tensor) -> None:
        for name, image in zip(names, (x, y)):
            require_tensor(type(self).__name__, name, image)
        require_same_shape(type(self).__name__, names, x.shape, y.shape)

    def _reduced(self, losses: Tensor) -> Tensor:
        if self.reduction == "mean":
            return losses.mean()
        return losses.sum() if self.reduction == "sum" else losses


def _triangle(size: int) -> Tensor:
    """A box of about half the size, averaged with itself."""
    half = (size + 1) // 2
    half -= 1 - half % 2
    distance = (torch.arange(size) - size // 2).abs()
    return (half - distance).clamp(min=0).double() / half**2


class LocalNormalizedCrossCorrelationLoss(_Loss):
    """Minus the squared correlation under a window of kernel_size pixels, with zeros outside.

    spatial_dims is 1, 2 or 3; kernel_type "rectangular", "triangular" or "gaussian", whose standard
    deviation is a third of kernel_size. smooth_dr is the least sum of squares in a window.
    """

    def __init__(
        self,
        spatial_dims: int = 3,
        kernel_size: int = 3,
        kernel_type: str = "rectangular",
        reduction: Any = "mean",
        smooth_nr: float = 0.0,
        smooth_dr: float = 1e-5,
    ) -> None:
        super().__init__(reduction)
        name = type(self).__name__
        if spatial_dims not in (1, 2, 3):
            raise ValueError(f"{name}: spatial_dims is {spatial_dims!r}; it must be 1, 2 or 3")
        if values.integer(name, "kernel_size", kernel_size) < 1 or kernel_size % 2 == 0:
            raise ValueError(f"{name}: kernel_size is {kernel_size}; it must be odd")
        self.ndim, self.kernel_size = spatial_dims, kernel_size
        self.kernel_type = _word(
            name, "kernel_type", kernel_type, ("rectangular", "triangular", "gaussian")
        )
        self.smooth_nr, self.smooth_dr = float(smooth_nr), float(smooth_dr)
        distance = torch.arange(kernel_size, dtype=torch.float64) - kernel_size // 2
        self.taps = {
            "rectangular": torch.ones_like(distance),
            "triangular": _triangle(kernel_size),
            "gaussian": torch.exp(-4.5 * (distance / kernel_size) ** 2),
        }[self.kernel_type]

    def forward(self, pred: Tensor, target: Tensor) -> Tensor:
        name = type(self).__name__
        self._checked(("pred", "target"), pred, target)
        if pred.dim() != self.ndim + 2:
            raise ValueError(
                f"{name}: pred has shape {list(pred.shape)}; with spatial_dims {self.ndim} it must "
                f"have {self.ndim + 2} axes"
            )
        is_composed = self.kernel_type == "triangular" or self.smooth_nr != 0
        if is_composed or self.smooth_dr <= 0 or self.kernel_size == 1:
            return self._reduced(-self._composed(pred, target))
        if self.ndim == 1:
            pred, target = pred[:, :, None], target[:, :, None]
        correlation = lncc(
            pred,
            target,
            window_size=(1, self.kernel_size) if self.ndim == 1 else self.kernel_size,
            window="box" if self.kernel_type == "rectangular" else "gaussian",
            sigma=self.kernel_size / 3,
            signed=True,  # its square has no smoothing in the denominator
            smooth_dr=self.smooth_dr / float(self.taps.sum()) ** self.ndim,
            reduction="none",
        )
        if self.ndim == 1:
            correlation = correlation[:, :, 0]
        return self._reduced(-correlation.square())

    def _composed(self, pred: Tensor, target: Tensor) -> Tensor:
        """The map, of torch's convolutions in f64."""
        x, y = pred.double(), target.double()
        shape = x.shape
        planes = torch.cat([x, y, x * x, y * y, x * y]).reshape(-1, 1, *shape[2:])
        convolve = (F.conv1d, F.conv2d, F.conv3d)[self.ndim - 1]
        taps = self.taps.to(x.device)
        for axis in range(self.ndim):
            around, kernel = [0] * self.ndim, [1] * (self.ndim + 2)
            around[axis], kernel[axis + 2] = self.kernel_size // 2, self.kernel_size
            planes = convolve(planes, taps.reshape(kernel), padding=around)
        sums = planes.reshape(5, *shape)
        total = float(taps.sum()) ** self.ndim
        covariance = sums[4] - sums[0] * sums[1] / total
        squares = [sums[2 + i] - sums[i].square() / total for i in range(2)]
        squares = [torch.where(each > self.smooth_dr, each, self.smooth_dr) for each in squares]
        result = (covariance.square() + self.smooth_nr) / (squares[0] * squares[1])
        return result if pred.dtype == torch.float64 else result.float()


class GlobalMutualInformationLoss(_Loss):
    """Minus the mutual information of each pair [B,…], all of whose other axes are samples.

    kernel_type "gaussian": values are clamped to the unit interval, where the outer bins have their
    centres at 0 and 1. "b-spline": a cubic one for pred, whole bins for target, between the
    smallest and largest value of all of pred, and of all of target.
    """

    def __init__(
        self,
        kernel_type: str = "gaussian",
        num_bins: int = 23,
        sigma_ratio: float = 0.5,
        reduction: Any = "mean",
        smooth_nr: float = 1e-7,
        smooth_dr: float = 1e-7,
    ) -> None:
        super().__init__(reduction)
        name = type(self).__name__
        self.kernel_type = _word(name, "kernel_type", kernel_type, ("gaussian", "b-spline"))
        least = 4 if self.kernel_type == "gaussian" else 5
        if not least <= values.integer(name, "num_bins", num_bins) <= 256:
            raise ValueError(f"{name}: num_bins is {num_bins}; it must be from {least} to 256")
        self.num_bins, self.sigma_ratio = num_bins, float(sigma_ratio)
        self.smooth_nr, self.smooth_dr = float(smooth_nr), float(smooth_dr)

    def forward(self, pred: Tensor, target: Tensor) -> Tensor:
        self._checked(("pred", "target"), pred, target)
        if self.kernel_type == "b-spline":
            return self._reduced(-self._of_b_splines(pred, target))
        rim = 0.5 / (self.num_bins - 1)
        x, y = (each.clamp(0, 1).reshape(each.shape[0], 1, 1, -1) for each in (pred, target))
        losses = mutual_information_loss(
            x,
            y,
            num_bins=self.num_bins,
            kernel="gaussian",
            sigma_ratio=2 * self.sigma_ratio,  # MONAI's is a standard deviation in bins
            range=(-rim, 1 + rim),
            smooth_nr=self.smooth_nr,
            smooth_dr=self.smooth_dr,
            reduction="per_image",
        )
        return self._reduced(losses)

    def _terms(self, image: Tensor) -> Tensor:
        """The place of each sample in the bins, of which two on each side are a rim: [B,V]."""
        image = image.double().flatten(1)
        low, width = image.min(), (image.max() - image.min()) / (self.num_bins - 4)
        return ((image - low) / width + 2).clamp(2, self.num_bins - 3)

    def _of_b_splines(self, pred: Tensor, target: Tensor) -> Tensor:
        place, other = self._terms(pred), self._terms(target).detach()
        first = place.detach().floor()
        joint = place.new_zeros(place.shape[0], self.num_bins * self.num_bins)
        rows = []  # (bin, weight) of each of the four bins about a value
        for step in range(-1, 3):
            distance = (place - first - step).abs()
            outer, inner = (2 - distance).clamp(min=0), (1 - distance).clamp(min=0)
            rows.append((first + step, (outer**3 - 4 * inner**3) / 6))
        # A value midway between two bins counts half in each.
        for column in ((other - 0.5).ceil(), (other + 0.5).floor()):
            for row, weight in rows:
                index = (row * self.num_bins + column).long()
                joint = joint.scatter_add(1, index, weight / 2)
        p = (joint / place.shape[1]).reshape(-1, self.num_bins, self.num_bins)
        product = p.sum(2, keepdim=True) * p.sum(1, keepdim=True)
        logarithm = torch.log(
            (p + self.smooth_nr) / (product + self.smooth_dr) + self.smooth_dr
        )
        result = (p * logarithm).sum((1, 2))
        return result if pred.dtype == torch.float64 else result.float()


class SSIMLoss(_Loss):
    """1 - SSIM of [B,C,H,W] or [B,C,H,W,D] images, of windows that lie inside.

    kernel_type is "gaussian" or "uniform". With reduction "none" the result is [B,1].
    """

    def __init__(
        self,
        spatial_dims: int,
        data_range: float = 1.0,
        kernel_type: Any = "gaussian",
        win_size: Union[int, Sequence[int]] = 11,
        kernel_sigma: Union[float, Sequence[float]] = 1.5,
        k1: float = 0.01,
        k2: float = 0.03,
        reduction: Any = "mean",
    ) -> None:
        super().__init__(reduction)
        name = type(self).__name__
        if spatial_dims not in (2, 3):
            raise ValueError(f"{name}: spatial_dims is {spatial_dims!r}; it must be 2 or 3")
        self.spatial_dims, self.data_range = spatial_dims, data_range
        self.kernel_type = _word(name, "kernel_type", kernel_type, ("gaussian", "uniform"))
        self.kernel_size, self.kernel_sigma = win_size, kernel_sigma
        self.k1, self.k2 = k1, k2
        self._text(spatial_dims)  # refuses an option that is wrong

    def _text(self, axes: int) -> str:
        def plain(given: Any) -> Any:
            return tuple(given) if isinstance(given, (tuple, list)) else given

        return ssim_text(
            axes,
            self.data_range,
            plain(self.kernel_size),
            "gaussian" if self.kernel_type == "gaussian" else "box",
            plain(self.kernel_sigma),
            self.k1,
            self.k2,
            False,
            "valid",
            "per_image",
            "loss",
        )

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        name = type(self).__name__
        self._checked(("input", "target"), input, target)
        if input.dim() != self.spatial_dims + 2:
            raise ValueError(
                f"{name}: input has shape {list(input.shape)}; with spatial_dims "
                f"{self.spatial_dims} it must have {self.spatial_dims + 2} axes"
            )
        pair = [input.float(), target.float()] if input.dtype != target.dtype else [input, target]
        text = self._text(self.spatial_dims)
        losses: Tensor = for_torch().evaluate(name, text, *pair, names=("input", "target"))
        return self._reduced(losses[:, None])

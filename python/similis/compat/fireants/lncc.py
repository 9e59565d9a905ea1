# SPDX-License-Identifier: Apache-2.0
"""FireANTs' fused loss of local normalised cross-correlation, written from its description.

Values are FireANTs'. Its gradients are off by a constant factor, which an optimiser with a step of
its own may have been tuned for: gradient_scale="fireants" brings it back. Sums under the
window are f64 here, so flat backgrounds, intensities of 12 bits and f16 images are right.
"""

from __future__ import annotations

import math
from typing import Any, Optional

import torch
from torch import Tensor

from ..._functions.correlation import lncc_loss
from ..._functions.dispatch import require_tensor
from ._masks import require_mode, separated

_WINDOWS = {"rectangular": "box", "gaussian": "gaussian"}
_REDUCTIONS = ("mean", "sum", "none")
_NAME = "FusedLocalNormalizedCrossCorrelationLoss"


class _ScaledGradient(torch.autograd.Function):
    """The loss itself, with a gradient times a factor."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return value.clone()

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        return upstream * ctx.factor, None


_with_scaled_gradient: Any = _ScaledGradient.apply


def _one_of(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    if value not in choices:
        listed = ", ".join(map(repr, choices[:-1]))
        raise ValueError(f"{_NAME}: {name} is {value!r}; it must be {listed} or {choices[-1]!r}")


class FusedLocalNormalizedCrossCorrelationLoss(torch.nn.Module):
    """-LNCC of pred and target, under a window of kernel_size pixels, zeros outside the images.

    Args:
        spatial_dims: 2 or 3.
        kernel_size: of the window, odd.
        reduction: "mean", "sum" or "none".
        smooth_nr, smooth_dr: as of similis.lncc(); smooth_dr may be 0, which is taken as 1e-15, so
            that flat windows are 0 and not NaN.
        use_ants_gradient: the gradient of each voxel's own window alone instead of the exact one.
        use_separable: changes nothing here: windows are always added up axis by axis.
        kernel_type: "rectangular" or "gaussian".
        sigma: of the Gaussian, in voxels.
        masked: the last channel of both images is a mask; voxels under it still count in windows
            around others. The mean is then that of all items' Σ map·mask / Σ mask, the map summed
            over channels; an item whose mask is empty counts as 0.
        mask_mode: how the two masks combine: "mult" by their product, "max" by the larger.
        gradient_scale: "fireants" multiplies the gradient as FireANTs does: under a box that of a
            mean by the number of voxels of all images and channels, and without use_ants_gradient
            any by 1 over the window's voxels; None leaves it right.
    """

    def __init__(
        self,
        spatial_dims: int = 3,
        kernel_size: int = 3,
        reduction: str = "mean",
        smooth_nr: float = 1e-5,
        smooth_dr: float = 1e-5,
        use_ants_gradient: bool = True,
        use_separable: bool = True,
        kernel_type: str = "rectangular",
        sigma: float = 1.5,
        masked: bool = False,
        mask_mode: str = "mult",
        gradient_scale: Optional[str] = None,
    ) -> None:
        super().__init__()
        _one_of("spatial_dims", spatial_dims, (2, 3))
        _one_of("reduction", reduction, _REDUCTIONS)
        _one_of("kernel_type", kernel_type, tuple(_WINDOWS))
        require_mode(_NAME, mask_mode)
        _one_of("gradient_scale", gradient_scale, (None, "fireants"))
        self.spatial_dims, self.kernel_size = spatial_dims, kernel_size
        self.reduction, self.sigma = reduction, sigma
        self.smooth_nr, self.smooth_dr = smooth_nr, smooth_dr
        self.use_ants_gradient, self.use_separable = use_ants_gradient, use_separable
        self.kernel_type, self.masked, self.mask_mode = kernel_type, masked, mask_mode
        self.gradient_scale = gradient_scale

    def forward(self, pred: Tensor, target: Tensor, mask: Optional[Tensor] = None) -> Tensor:
        for name, image in (("pred", pred), ("target", target)):
            require_tensor(_NAME, name, image)
            if image.dim() != self.spatial_dims + 2:
                raise ValueError(
                    f"{_NAME}: {name} has shape {list(image.shape)}; it must have "
                    f"{self.spatial_dims + 2} axes"
                )
        if self.masked:
            if mask is not None:
                raise ValueError(f"{_NAME}: masked is True and a mask is given; give the mask once")
            pred, target, mask = separated(_NAME, pred, target, self.mask_mode)
        has_means = mask is not None and self.reduction == "mean"  # one of each item
        loss = lncc_loss(
            pred,
            target,
            window_size=self.kernel_size,
            window=_WINDOWS[self.kernel_type],
            sigma=self.sigma,
            reduction="per_image" if has_means else self.reduction,
            smooth_nr=self.smooth_nr,
            smooth_dr=1e-15 if self.smooth_dr == 0 else self.smooth_dr,
            gradient="ants" if self.use_ants_gradient else "exact",
            mask=mask,
        )
        if has_means:
            loss = loss.mean() * pred.shape[1]
        if self.gradient_scale is None:
            return loss
        return _with_scaled_gradient(loss, self._factor(pred))

    def _factor(self, pred: Tensor) -> float:
        is_summed = self.reduction == "mean" and self.kernel_type == "rectangular"
        averaged = 1 if self.use_ants_gradient else self.kernel_size**self.spatial_dims
        return (math.prod(pred.shape) if is_summed else 1) / averaged

# SPDX-License-Identifier: Apache-2.0
"""FireANTs' fused mutual information: its names, arguments, defaults and values.

Gradients are right where FireANTs' are not: of B-splines, whose gradient there has a wrong sign on
one side and lacks the width of a bin; of all channels, where it is 0 beyond the first; and of any
number of voxels.
"""

from __future__ import annotations

from typing import Optional

import torch
from torch import Tensor

from ..._functions.dispatch import require_tensor
from ..._functions.mutual_information import mutual_information_loss
from ._masks import require_mode, separated

_NAME = "FusedGlobalMutualInformationLoss"
_KERNELS = {"b-spline": "b_spline", "bspline": "b_spline", "gaussian": "gaussian", "delta": "delta"}


class FusedGlobalMutualInformationLoss(torch.nn.Module):
    """The negative mutual information of two tensors [N,C,…].

    kernel_type: "gaussian", "b-spline" or "delta". normalize_image_if_required: values are those of
    the unit interval if all lie there, else between the smallest and largest of both tensors;
    without it they are clamped to the unit interval. approximate_reduction: voxels are counted in
    whole bins and the histogram is blurred; the gradient takes the kernel's weights. masked: the
    last channels of both tensors are masks, combined by product ("mult") or "max", and voxels with
    0.5 or more count; one batch item at a time, as their ranges are their own. An item without such
    voxels has the value 0. torch_compile and suppress_logging are not read.
    """

    def __init__(
        self,
        kernel_type: str = "gaussian",
        num_bins: int = 32,
        reduction: str = "mean",
        normalize_image_if_required: bool = True,
        smooth_nr: float = 1e-5,
        smooth_dr: float = 1e-5,
        sigma_ratio: float = 1.0,
        approximate_reduction: bool = True,
        torch_compile: bool = False,
        masked: bool = False,
        mask_mode: str = "mult",
        suppress_logging: bool = False,
    ) -> None:
        super().__init__()
        if kernel_type not in _KERNELS:
            raise ValueError(
                f"{_NAME}: kernel_type is {kernel_type!r}; it must be gaussian, b-spline or delta"
            )
        require_mode(_NAME, mask_mode)
        self.kernel = _KERNELS[kernel_type]
        self.num_bins = num_bins
        self.reduction = reduction
        self.normalize_image_if_required = normalize_image_if_required
        self.smooth_nr = smooth_nr
        self.smooth_dr = smooth_dr
        self.sigma_ratio = sigma_ratio
        self.approximate_reduction = approximate_reduction
        self.masked = masked
        self.mask_mode = mask_mode

    def forward(self, pred: Tensor, target: Tensor) -> Tensor:
        if not self.masked:
            return self._loss(pred, target, None, self.reduction)
        for name, image in (("pred", pred), ("target", target)):
            require_tensor(_NAME, name, image)
        pred, target, mask = separated(_NAME, pred, target, self.mask_mode)
        items = zip(pred.split(1), target.split(1), (mask >= 0.5).split(1))
        losses = torch.cat([self._loss(*item, "none") for item in items])
        if self.reduction == "none":
            return losses
        return losses.sum() if self.reduction == "sum" else losses.mean()

    def _loss(self, pred: Tensor, target: Tensor, mask: Optional[Tensor], reduction: str) -> Tensor:
        return mutual_information_loss(
            pred,
            target,
            num_bins=self.num_bins,
            kernel=self.kernel,
            sigma_ratio=self.sigma_ratio,
            range="unit_or_common" if self.normalize_image_if_required else (0.0, 1.0),
            smooth_nr=self.smooth_nr,
            smooth_dr=self.smooth_dr,
            method="binned" if self.approximate_reduction else "exact",
            reduction=reduction,
            mask=mask,
        )

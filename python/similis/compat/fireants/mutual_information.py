# SPDX-License-Identifier: Apache-2.0
"""FireANTs' fused mutual information: its names, arguments, defaults and values.

Gradients are right where FireANTs' are not: of B-splines, whose gradient there has a wrong sign on
one side and lacks the width of a bin; of all channels, where it is 0 beyond the first; and of any
number of voxels.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ... import mutual_information_loss

_KERNELS = {"b-spline": "b_spline", "bspline": "b_spline", "gaussian": "gaussian", "delta": "delta"}


class FusedGlobalMutualInformationLoss(torch.nn.Module):
    """The negative mutual information of two tensors [N,C,…].

    kernel_type: "gaussian", "b-spline" or "delta". normalize_image_if_required: values are those of
    the unit interval if all lie there, else between the smallest and largest of both tensors;
    without it they are clamped to the unit interval. approximate_reduction: voxels are counted in
    whole bins and the histogram is blurred; the gradient takes the kernel's weights.
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
    ) -> None:
        super().__init__()
        if kernel_type not in _KERNELS:
            raise ValueError(
                f"FusedGlobalMutualInformationLoss: kernel_type is {kernel_type!r}; it must be "
                "gaussian, b-spline or delta"
            )
        self.kernel = _KERNELS[kernel_type]
        self.num_bins = num_bins
        self.reduction = reduction
        self.normalize_image_if_required = normalize_image_if_required
        self.smooth_nr = smooth_nr
        self.smooth_dr = smooth_dr
        self.sigma_ratio = sigma_ratio
        self.approximate_reduction = approximate_reduction

    def forward(self, pred: Tensor, target: Tensor) -> Tensor:
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
            reduction=self.reduction,
        )

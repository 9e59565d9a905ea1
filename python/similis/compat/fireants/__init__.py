# SPDX-License-Identifier: Apache-2.0
"""Names, arguments, defaults and values of FireANTs' fused operations, on similis's kernels."""

from __future__ import annotations

from .interpolator import (
    affine_warp_2d,
    affine_warp_3d,
    fireants_interpolator,
    fused_affine_warp_2d,
    fused_affine_warp_3d,
    fused_grid_sampler_2d,
    fused_grid_sampler_2d_generic_label,
    fused_grid_sampler_3d,
    fused_grid_sampler_3d_generic_label,
    fused_warp_composer_2d,
    fused_warp_composer_3d,
    warp_composer_2d,
    warp_composer_3d,
)
from .lncc import FusedLocalNormalizedCrossCorrelationLoss
from .mutual_information import FusedGlobalMutualInformationLoss

__all__ = [
    "FusedGlobalMutualInformationLoss",
    "FusedLocalNormalizedCrossCorrelationLoss",
    "affine_warp_2d",
    "affine_warp_3d",
    "fireants_interpolator",
    "fused_affine_warp_2d",
    "fused_affine_warp_3d",
    "fused_grid_sampler_2d",
    "fused_grid_sampler_2d_generic_label",
    "fused_grid_sampler_3d",
    "fused_grid_sampler_3d_generic_label",
    "fused_warp_composer_2d",
    "fused_warp_composer_3d",
    "warp_composer_2d",
    "warp_composer_3d",
]

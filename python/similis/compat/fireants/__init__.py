# SPDX-License-Identifier: Apache-2.0
"""Names, arguments, defaults and values of FireANTs' fused operations, on similis's kernels."""

from __future__ import annotations

from .interpolator import fireants_interpolator
from .lncc import FusedLocalNormalizedCrossCorrelationLoss
from .mutual_information import FusedGlobalMutualInformationLoss

__all__ = [
    "FusedGlobalMutualInformationLoss",
    "FusedLocalNormalizedCrossCorrelationLoss",
    "fireants_interpolator",
]

# SPDX-License-Identifier: Apache-2.0
"""Names, arguments, defaults and values of FireANTs' fused operations, on similis's kernels."""

from __future__ import annotations

from .lncc import FusedLocalNormalizedCrossCorrelationLoss

__all__ = ["FusedLocalNormalizedCrossCorrelationLoss"]

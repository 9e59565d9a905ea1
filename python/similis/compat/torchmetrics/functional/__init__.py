# SPDX-License-Identifier: Apache-2.0
"""torchmetrics' functions of images."""

from __future__ import annotations

from .image import (
    multiscale_structural_similarity_index_measure,
    peak_signal_noise_ratio,
    structural_similarity_index_measure,
)

__all__ = [
    "multiscale_structural_similarity_index_measure",
    "peak_signal_noise_ratio",
    "structural_similarity_index_measure",
]

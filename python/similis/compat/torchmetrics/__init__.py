# SPDX-License-Identifier: Apache-2.0
"""torchmetrics (Lightning-AI/torchmetrics): SSIM, MS-SSIM and PSNR of images.

    from similis.compat.torchmetrics.functional.image import structural_similarity_index_measure
    from similis.compat.torchmetrics.image import StructuralSimilarityIndexMeasure

The functions need torch alone, the classes torchmetrics too, whose Metric they are. Unlike there,
results of f16 and bf16 images are f32, sums over batches are kept in f64, MS-SSIM of a mean that is
not positive has the gradient 0, and a window of one pixel along an axis has a contrast.
"""

from __future__ import annotations

from . import functional

__all__ = ["functional"]

# SPDX-License-Identifier: Apache-2.0
"""Drop-ins: the names, arguments, defaults and numbers of other packages, on similis's kernels.

    from similis.compat.fused_ssim import fused_ssim           # rahul-goel/fused-ssim
    from similis.compat.fussim import fused_ssim, ssim, SSIM   # OpsiClear/fussim
    from similis.compat.fireants import FusedGlobalMutualInformationLoss  # rohitrango/FireANTs
    from similis.compat.pytorch_msssim import ssim, ms_ssim, SSIM, MS_SSIM  # VainF/pytorch-msssim
    from similis.compat.fireants import FusedLocalNormalizedCrossCorrelationLoss  # FireANTs
    from similis.compat.fireants.interpolator import fireants_interpolator  # rohitrango/FireANTs
    from similis.compat.skimage import structural_similarity  # scikit-image, of NumPy's arrays
    from similis.compat.torchmetrics.image import StructuralSimilarityIndexMeasure  # torchmetrics
    from similis.compat.torchmetrics.functional.image import peak_signal_noise_ratio  # torchmetrics
    from similis.compat.monai import LocalNormalizedCrossCorrelationLoss, SSIMLoss  # Project-MONAI

Changing the import is the whole migration. The faults of each package are corrected here, or raise
an error; its module lists them.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = [
    "fireants",
    "fused_ssim",
    "fussim",
    "monai",
    "pytorch_msssim",
    "skimage",
    "torchmetrics",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return importlib.import_module(f"similis.compat.{name}")
    raise AttributeError(f"module 'similis.compat' has no attribute {name!r}")

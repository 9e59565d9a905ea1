# SPDX-License-Identifier: Apache-2.0
"""torchmetrics' classes: SSIM, MS-SSIM and PSNR of all batches, each a torchmetrics.Metric.

They go into a MetricCollection and are synchronised as torchmetrics' own are. Sums are f64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Optional, Union

import torch
from torch import Tensor

from ...metrics import Metric, of_batches
from .functional import image as functional
from .functional.image import BETAS, DataRange, PerAxisFloat, PerAxisInt

__all__ = [
    "MultiScaleStructuralSimilarityIndexMeasure",
    "PeakSignalNoiseRatio",
    "StructuralSimilarityIndexMeasure",
]


class _Similarity(Metric):
    """The mean, the sum or the list of a measure of each image."""

    is_differentiable = True
    higher_is_better = True
    full_state_update = False
    plot_lower_bound = 0.0
    plot_upper_bound = 1.0

    if TYPE_CHECKING:  # torch.jit.script would read them, and does not know these names
        similarity: Any
        total: Tensor

    def __init__(self, reduction: Optional[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        functional.require_reduction(type(self).__name__, reduction)
        self.reduction = reduction
        self.keeps_all = reduction in ("none", None)
        if self.keeps_all:
            self.add_state("similarity", default=[], dist_reduce_fx="cat")
        else:
            zero = torch.zeros((), dtype=torch.float64)
            self.add_state("similarity", default=zero, dist_reduce_fx="sum")
        self.add_state("total", default=torch.tensor(0), dist_reduce_fx="sum")
        self.is_wide = False

    def _add(self, each: Tensor) -> None:
        self.is_wide = each.dtype == torch.float64
        if self.keeps_all:
            self.similarity.append(each)
        else:
            self.similarity = self.similarity + each.double().sum()
        self.total = self.total + each.numel()

    def _result(self) -> Tensor:
        if self.keeps_all:
            return of_batches(self.similarity)
        similarity: Tensor = self.similarity
        if self.reduction == "elementwise_mean":
            similarity = similarity / self.total
        return similarity if self.is_wide else similarity.float()


class StructuralSimilarityIndexMeasure(_Similarity):
    """structural_similarity_index_measure() of all batches; of each the range is its own if
    data_range is None."""

    if TYPE_CHECKING:
        image_return: list[Tensor]

    def __init__(
        self,
        gaussian_kernel: bool = True,
        sigma: PerAxisFloat = 1.5,
        kernel_size: PerAxisInt = 11,
        reduction: Optional[str] = "elementwise_mean",
        data_range: DataRange = None,
        k1: float = 0.01,
        k2: float = 0.03,
        return_full_image: bool = False,
        return_contrast_sensitivity: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(reduction, **kwargs)
        self.gaussian_kernel, self.sigma, self.kernel_size = gaussian_kernel, sigma, kernel_size
        self.data_range, self.k1, self.k2 = data_range, k1, k2
        self.return_full_image = return_full_image
        self.return_contrast_sensitivity = return_contrast_sensitivity
        if return_full_image or return_contrast_sensitivity:
            self.add_state("image_return", default=[], dist_reduce_fx="cat")

    def update(self, preds: Tensor, target: Tensor) -> None:
        each, image = functional.ssim_of_each(
            preds,
            target,
            self.gaussian_kernel,
            self.sigma,
            self.kernel_size,
            self.data_range,
            self.k1,
            self.k2,
            self.return_full_image,
            self.return_contrast_sensitivity,
        )
        self._add(each)
        if image is not None:
            self.image_return.append(image)

    def compute(self) -> Any:
        if self.return_full_image or self.return_contrast_sensitivity:
            return self._result(), of_batches(self.image_return)
        return self._result()


class MultiScaleStructuralSimilarityIndexMeasure(_Similarity):
    """multiscale_structural_similarity_index_measure() of all batches."""

    def __init__(
        self,
        gaussian_kernel: bool = True,
        kernel_size: PerAxisInt = 11,
        sigma: PerAxisFloat = 1.5,
        reduction: Optional[str] = "elementwise_mean",
        data_range: DataRange = None,
        k1: float = 0.01,
        k2: float = 0.03,
        betas: tuple[float, ...] = BETAS,
        normalize: Optional[str] = "relu",
        **kwargs: Any,
    ) -> None:
        super().__init__(reduction, **kwargs)
        functional.require_betas(type(self).__name__, betas, normalize)
        self.gaussian_kernel, self.sigma, self.kernel_size = gaussian_kernel, sigma, kernel_size
        self.data_range, self.k1, self.k2 = data_range, k1, k2
        self.betas, self.normalize = betas, normalize

    def update(self, preds: Tensor, target: Tensor) -> None:
        self._add(
            functional.ms_ssim_of_each(
                preds,
                target,
                self.gaussian_kernel,
                self.sigma,
                self.kernel_size,
                self.data_range,
                self.k1,
                self.k2,
                self.betas,
                self.normalize,
            )
        )

    def compute(self) -> Tensor:
        return self._result()


class PeakSignalNoiseRatio(Metric):
    """PSNR of the pixels of all batches together, or of those along the axes of dim."""

    is_differentiable = True
    higher_is_better = True
    full_state_update = False
    plot_lower_bound = 0.0

    if TYPE_CHECKING:
        sum_squared_error: Any
        total: Any

    def __init__(
        self,
        data_range: Union[float, tuple[float, float]],
        base: float = 10.0,
        reduction: Optional[str] = "elementwise_mean",
        dim: Optional[Union[int, tuple[int, ...]]] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        functional.warn_of_reduction("PeakSignalNoiseRatio", reduction, dim)
        if dim is None:
            zero = torch.zeros((), dtype=torch.float64)
            self.add_state("sum_squared_error", default=zero, dist_reduce_fx="sum")
            self.add_state("total", default=torch.tensor(0), dist_reduce_fx="sum")
        else:
            self.add_state("sum_squared_error", default=[], dist_reduce_fx="cat")
            self.add_state("total", default=[], dist_reduce_fx="cat")
        self.limits = data_range if isinstance(data_range, tuple) else None
        span = data_range[1] - data_range[0] if isinstance(data_range, tuple) else data_range
        self.add_state("data_range", default=torch.tensor(float(span)), dist_reduce_fx="mean")
        self.base, self.reduction = base, reduction
        self.dim = tuple(dim) if isinstance(dim, Sequence) else dim
        self.is_wide = False

    def update(self, preds: Tensor, target: Tensor) -> None:
        if self.limits is not None:
            preds, target = preds.clamp(*self.limits), target.clamp(*self.limits)
        error, count = functional.squared_errors(preds, target, self.dim)
        self.is_wide = preds.dtype == torch.float64
        if self.dim is None:
            self.sum_squared_error = self.sum_squared_error + error * count
            self.total = self.total + count
        else:
            self.sum_squared_error.append((error * count).flatten())
            self.total.append(count.flatten())

    def compute(self) -> Tensor:
        errors, counts = self.sum_squared_error, self.total
        if self.dim is not None:
            errors, counts = of_batches(errors), of_batches(counts)
        span: Any = self.data_range
        result = functional.decibels(errors / counts, span, self.base, self.reduction)
        return result if self.is_wide else result.float()

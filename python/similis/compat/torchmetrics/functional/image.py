# SPDX-License-Identifier: Apache-2.0
"""torchmetrics' SSIM, MS-SSIM and PSNR, of torch's tensors."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, Optional, Union

import torch
import torch.nn.functional as F
from torch import Tensor

from ...._functions.dispatch import for_torch, require_tensor
from ...._functions.ssim import ssim_text
from ...._library import values
from ...._library.refusals import require_same_shape

__all__ = [
    "multiscale_structural_similarity_index_measure",
    "peak_signal_noise_ratio",
    "structural_similarity_index_measure",
]

DataRange = Optional[Union[float, tuple[float, float]]]
PerAxisFloat = Union[float, Sequence[float]]
PerAxisInt = Union[int, Sequence[int]]
_HUGE = 1e18  # a k1 beside which the means vanish, so that their quotient is 1
_REDUCTIONS = ("elementwise_mean", "sum", "none", None)
_SSIM = "structural_similarity_index_measure"
_MS_SSIM = "multiscale_structural_similarity_index_measure"
_PSNR = "peak_signal_noise_ratio"


def require_reduction(name: str, reduction: Optional[str]) -> None:
    if reduction not in _REDUCTIONS:
        raise ValueError(
            f"{name}: reduction is {reduction!r}; it must be elementwise_mean, sum, none or None"
        )


def _reduced(name: str, numbers: Tensor, reduction: Optional[str]) -> Tensor:
    require_reduction(name, reduction)
    if reduction == "elementwise_mean":
        return numbers.mean()
    return numbers.sum() if reduction == "sum" else numbers


def checked_images(name: str, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The images, the target in the dtype of the prediction."""
    require_tensor(name, "preds", preds)
    require_tensor(name, "target", target)
    require_same_shape(name, ("preds", "target"), preds.shape, target.shape)
    if preds.dim() not in (4, 5):
        raise ValueError(
            f"{name}: preds has shape {list(preds.shape)}; it must be [B,C,H,W] or [B,C,D,H,W]"
        )
    return preds, target.to(preds.dtype)


class Windows:
    """SSIM of images under torchmetrics' window, with the images mirrored around it."""

    def __init__(
        self,
        name: str,
        axes: int,
        gaussian_kernel: bool,
        sigma: PerAxisFloat,
        kernel_size: PerAxisInt,
        k1: float,
        k2: float,
    ) -> None:
        self.name, self.is_gaussian, self.k1, self.k2 = name, gaussian_kernel, k1, k2
        self.sigma = self._per_axis("sigma", sigma, axes)
        sizes = self._per_axis("kernel_size", kernel_size, axes)
        for each in self.sigma:
            if not values.number(name, "sigma", each) > 0:
                raise ValueError(f"{name}: sigma is {sigma!r}; it must be above 0")
        for each in sizes:
            if values.integer(name, "kernel_size", each) < 1 or each % 2 == 0:
                raise ValueError(f"{name}: kernel_size is {kernel_size!r}; it must be odd")
        self.sizes = self.of_box = sizes
        if gaussian_kernel:
            self.sizes = [2 * int(3.5 * each + 0.5) + 1 for each in self.sigma]
        self.mirrored = [size // 2 for size in self.sizes]
        if axes == 3:  # as there, also where the Gaussian is wider or narrower
            self.mirrored[2] = sizes[2] // 2

    def _per_axis(self, option: str, given: Any, axes: int) -> list[Any]:
        if not isinstance(given, (tuple, list)):
            return [given] * axes
        if len(given) != axes:
            raise ValueError(
                f"{self.name}: {option} has {len(given)} numbers; it takes one, or one for each of "
                f"the {axes} axes"
            )
        return list(given)

    def _evaluate(
        self, x: Tensor, y: Tensor, data_range: float, k1: float, padding: str, reduction: str
    ) -> Tensor:
        text = ssim_text(
            x.dim() - 2,
            data_range,
            tuple(self.sizes),
            "gaussian" if self.is_gaussian else "box",
            tuple(map(float, self.sigma)),
            k1,
            self.k2,
            False,
            padding,
            reduction,
            "similarity",
        )
        result: Tensor = for_torch().evaluate(self.name, text, x, y, names=("preds", "target"))
        return result

    def similarity(self, x: Tensor, y: Tensor, data_range: float, reduction: str) -> Tensor:
        """The mean SSIM of each image, or the map."""
        padding = "reflect"
        if self.mirrored != [size // 2 for size in self.sizes]:
            around = [rim for rim in reversed(self.mirrored) for _ in range(2)]
            x, y = (F.pad(each, around, mode="reflect") for each in (x, y))
            padding = "valid"
        return self._evaluate(x, y, data_range, self.k1, padding, reduction)

    def contrast(self, x: Tensor, y: Tensor, data_range: float) -> Tensor:
        """The mean of the contrast and structure of each image, where windows lie inside."""
        return self._evaluate(x, y, data_range, _HUGE, "valid", "per_image")


def with_range(
    preds: Tensor, target: Tensor, data_range: DataRange
) -> tuple[Tensor, Tensor, float]:
    """The images and their range of values.

    A range that is found in the images divides them, and is 1 then: it stays on their device, and
    the gradient knows of it, as there.
    """
    if data_range is None:
        if not preds.is_floating_point():
            preds, target = preds.float(), target.float()
        found = torch.maximum(preds.max() - preds.min(), target.max() - target.min())
        return preds / found, target / found, 1.0
    if isinstance(data_range, tuple):
        low, high = data_range
        return preds.clamp(low, high), target.clamp(low, high), float(high - low)
    return preds, target, data_range


def ssim_of_each(
    preds: Tensor,
    target: Tensor,
    gaussian_kernel: bool,
    sigma: PerAxisFloat,
    kernel_size: PerAxisInt,
    data_range: DataRange,
    k1: float,
    k2: float,
    return_full_image: bool,
    return_contrast_sensitivity: bool,
) -> tuple[Tensor, Optional[Tensor]]:
    """SSIM of each image, and the map or the contrast of each if one is asked for."""
    preds, target = checked_images(_SSIM, preds, target)
    if return_full_image and return_contrast_sensitivity:
        raise ValueError(
            f"{_SSIM}: return_full_image and return_contrast_sensitivity are both True; one of "
            "them can be returned"
        )
    windows = Windows(_SSIM, preds.dim() - 2, gaussian_kernel, sigma, kernel_size, k1, k2)
    x, y, value_range = with_range(preds, target, data_range)
    each = windows.similarity(x, y, value_range, "per_image")
    if return_full_image:
        return each, windows.similarity(x, y, value_range, "none")
    if return_contrast_sensitivity:
        return each, windows.contrast(x, y, value_range)
    return each, None


def structural_similarity_index_measure(
    preds: Tensor,
    target: Tensor,
    gaussian_kernel: bool = True,
    sigma: PerAxisFloat = 1.5,
    kernel_size: PerAxisInt = 11,
    reduction: Optional[str] = "elementwise_mean",
    data_range: DataRange = None,
    k1: float = 0.01,
    k2: float = 0.03,
    return_full_image: bool = False,
    return_contrast_sensitivity: bool = False,
) -> Any:
    """SSIM of [B,C,H,W] or [B,C,D,H,W] images, mirrored at their edges.

    A Gaussian window has 2·int(3.5·sigma + 0.5) + 1 pixels; kernel_size is that of a box. A
    data_range of two numbers clamps the images, too.
    """
    each, image = ssim_of_each(
        preds,
        target,
        gaussian_kernel,
        sigma,
        kernel_size,
        data_range,
        k1,
        k2,
        return_full_image,
        return_contrast_sensitivity,
    )
    result = _reduced(_SSIM, each, reduction)
    return result if image is None else (result, image)


def _require_room(shape: Sequence[int], sizes: Sequence[int], levels: int) -> None:
    """Refuses what torchmetrics refuses."""
    least = 2**levels
    times = max(1, levels - 1) ** 2
    for axis, side, size in (("height", shape[-2], sizes[0]), ("width", shape[-1], sizes[1])):
        if side < least:
            raise ValueError(
                f"{_MS_SSIM}: the {axis} is {side}; with {levels} betas it must be at least {least}"
            )
        if side // times <= size - 1:
            raise ValueError(
                f"{_MS_SSIM}: the {axis} is {side}; with {levels} betas and a kernel_size of {size} "
                f"it must be above {(size - 1) * times}"
            )


def ms_ssim_of_each(
    preds: Tensor,
    target: Tensor,
    gaussian_kernel: bool,
    sigma: PerAxisFloat,
    kernel_size: PerAxisInt,
    data_range: DataRange,
    k1: float,
    k2: float,
    betas: tuple[float, ...],
    normalize: Optional[str],
) -> Tensor:
    """MS-SSIM of each image: contrasts are averaged over its channels before they are multiplied."""
    preds, target = checked_images(_MS_SSIM, preds, target)
    axes = preds.dim() - 2
    windows = Windows(_MS_SSIM, axes, gaussian_kernel, sigma, kernel_size, k1, k2)
    _require_room(preds.shape, windows.of_box, len(betas))
    if not preds.is_floating_point():
        preds, target = preds.float(), target.float()
    pool = F.avg_pool2d if axes == 2 else F.avg_pool3d
    product = None
    for level, beta in enumerate(betas):
        if level > 0:
            preds, target = pool(preds, 2), pool(target, 2)
        x, y, value_range = with_range(preds, target, data_range)
        if level == len(betas) - 1:
            mean = windows.similarity(x, y, value_range, "per_image")
        else:
            mean = windows.contrast(x, y, value_range)
        if normalize == "relu":  # 0 to a power has the gradient infinity
            power = torch.where(mean > 0, mean, 1.0) ** beta
            power = torch.where(mean > 0, power, float(beta == 0))
        else:
            power = ((mean + 1) / 2 if normalize == "simple" else mean) ** beta
        product = power if product is None else product * power
    assert product is not None
    return product


def require_betas(name: str, betas: Any, normalize: Any) -> None:
    if not isinstance(betas, tuple) or not betas or not all(type(each) is float for each in betas):
        raise ValueError(f"{name}: betas is {betas!r}; it must be a tuple of floats")
    if normalize not in (None, "relu", "simple"):
        raise ValueError(f"{name}: normalize is {normalize!r}; it must be relu, simple or None")


BETAS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)


def multiscale_structural_similarity_index_measure(
    preds: Tensor,
    target: Tensor,
    gaussian_kernel: bool = True,
    sigma: PerAxisFloat = 1.5,
    kernel_size: PerAxisInt = 11,
    reduction: Optional[str] = "elementwise_mean",
    data_range: DataRange = None,
    k1: float = 0.01,
    k2: float = 0.03,
    betas: tuple[float, ...] = BETAS,
    normalize: Optional[str] = "relu",
) -> Tensor:
    """MS-SSIM of [B,C,H,W] or [B,C,D,H,W] images, halved by averages that leave odd rims out."""
    require_betas(_MS_SSIM, betas, normalize)
    each = ms_ssim_of_each(
        preds,
        target,
        gaussian_kernel,
        sigma,
        kernel_size,
        data_range,
        k1,
        k2,
        betas,
        normalize,
    )
    return _reduced(_MS_SSIM, each, reduction)


def decibels(error: Tensor, data_range: Tensor, base: float, reduction: Optional[str]) -> Tensor:
    """PSNR of mean squared errors."""
    ratio = 2 * torch.log(data_range) - torch.log(error)
    return _reduced(_PSNR, ratio * (10 / math.log(base)), reduction)


def warn_of_reduction(name: str, reduction: Optional[str], dim: Any) -> None:
    if dim is None and reduction != "elementwise_mean":
        warnings.warn(
            f"{name}: The `reduction={reduction}` will not have any effect when `dim` is None.",
            stacklevel=3,
        )


def _mean_squared_error(preds: Tensor, target: Tensor) -> Tensor:
    pair = [preds, target]
    if preds.dtype != target.dtype or not (preds.is_floating_point() or preds.dtype == torch.uint8):
        pair = [each.float() for each in pair]
    if preds.dim() not in (4, 5):
        pair = [each.reshape(1, 1, 1, -1) for each in pair]
    text = "mse reduction=mean in_float64=1"
    result: Tensor = for_torch().evaluate(_PSNR, text, *pair, names=("preds", "target"))
    return result


def squared_errors(preds: Tensor, target: Tensor, dim: Any) -> tuple[Tensor, Tensor]:
    """The mean squared errors, in f64 over all pixels or along the axes of dim, and how many each
    is of."""
    require_tensor(_PSNR, "preds", preds)
    require_tensor(_PSNR, "target", target)
    require_same_shape(_PSNR, ("preds", "target"), preds.shape, target.shape)
    if dim is None or (isinstance(dim, Sequence) and not dim):
        count = torch.tensor(target.numel(), device=target.device)
        return _mean_squared_error(preds, target), count
    if not preds.is_floating_point():
        preds = preds.float()
    if not target.is_floating_point():
        target = target.float()
    axes = [dim] if isinstance(dim, int) else list(dim)
    error = (preds - target).square().mean(dim=axes)
    count = torch.tensor(math.prod(target.shape[axis] for axis in axes), device=target.device)
    return error, count.expand_as(error)


def peak_signal_noise_ratio(
    preds: Tensor,
    target: Tensor,
    data_range: Union[float, tuple[float, float]],
    base: float = 10.0,
    reduction: Optional[str] = "elementwise_mean",
    dim: Optional[Union[int, tuple[int, ...]]] = None,
) -> Tensor:
    """PSNR of all pixels, or of the pixels along the axes of dim; a data_range of two numbers
    clamps the images, too."""
    warn_of_reduction(_PSNR, reduction, dim)
    if isinstance(data_range, tuple):
        preds = preds.clamp(data_range[0], data_range[1])
        target = target.clamp(data_range[0], data_range[1])
        data_range = data_range[1] - data_range[0]
    error, _ = squared_errors(preds, target, dim)
    value_range = torch.tensor(float(data_range), device=preds.device)
    result = decibels(error, value_range, base, reduction)
    return result if preds.dtype == torch.float64 else result.float()

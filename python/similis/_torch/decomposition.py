# SPDX-License-Identifier: Apache-2.0
"""The decomposition of the measures into torch's own operators.

Second derivatives, forward mode and vmap are computed by it, and what elsewhere.py has no kernel
for. It is slower than the kernels and needs more memory, but it is differentiable any number of
times and under every transform of torch.func. The formulas are those of the papers, not those of
the kernels. Numbers are f64, but for second derivatives of SSIM and MS-SSIM of narrower images,
which are f32, and on devices without f64. There variances are Window.moments(), which lose no
digits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Callable, NamedTuple, Optional

import torch
import torch.nn.functional as F
from torch import Tensor

from .._library.measures import Measure
from . import mutual_information as information
from .devices import has_float64, widest
from .reductions import checked_weights, poisoned, reduced
from .tensors import is_transformed
from .windows import Window


def _quotient(numerator: Tensor, denominator: Tensor, constant: float) -> Tensor:
    """The quotient of numbers that both hold the constant.

    Without a constant 0/0 is 1, as for two black or flat images.
    """
    if constant > 0:
        return numerator / denominator
    is_zero = denominator == 0
    return torch.where(is_zero, 1.0, numerator / torch.where(is_zero, 1.0, denominator))


class _Terms(NamedTuple):
    """The maps of luminance, of contrast and structure, and of 1 less their product."""

    luminance: Tensor
    contrast: Tensor
    loss: Tensor


def _terms(x: Tensor, y: Tensor, window: Window, c1: float, c2: float) -> _Terms:
    if not has_float64(x.device):
        return _terms_in_float32(x, y, window, c1, c2)
    twice_y = y + y  # 2·x·y in every place without a factor that derivatives would repeat
    mean_x, mean_y, squares, products = window.averages(x, twice_y, x * x + y * y, x * twice_y)
    # The averages come from one tensor, so that autograd would follow those of constants too.
    mean_x, mean_y = _constant_as(x, mean_x), _constant_as(y, mean_y)
    product, square = mean_x * mean_y, mean_x * mean_x + 0.25 * (mean_y * mean_y)
    luminance = _quotient(product + c1, square + c1, c1)
    contrast = _quotient(products - product + c2, squares - square + c2, c2)
    return _Terms(luminance, contrast, 1 - luminance * contrast)


def _constant_as(image: Tensor, mean: Tensor) -> Tensor:
    return mean if image.requires_grad or is_transformed() else mean.detach()


def _terms_in_float32(x: Tensor, y: Tensor, window: Window, c1: float, c2: float) -> _Terms:
    """By sums and differences, as in src/ssim/formula.h: the loss keeps its relative precision."""
    (mean_s, mean_d), (var_s, var_d) = window.moments((x + y, x - y), ((0, 0), (1, 1)))
    square_d = mean_d * mean_d
    p = _share(2 * square_d, mean_s * mean_s + square_d + 2 * c1, c1)
    q = _share(2 * var_d, var_s + var_d + 2 * c2, c2)
    return _Terms(1 - p, 1 - q, p + q - p * q)


def _share(part: Tensor, whole: Tensor, constant: float) -> Tensor:
    """part / whole; 0/0 is 0."""
    if constant > 0:
        return part / whole
    return part / torch.where(whole == 0, 1.0, whole)


def data_range_of(measure: Measure, x: Tensor) -> float:
    return float(measure.data_range or (255.0 if x.dtype == torch.uint8 else 1.0))


def _constants(measure: Measure, x: Tensor) -> tuple[float, float]:
    data_range = data_range_of(measure, x)
    c1, c2 = (measure.k1 * data_range) ** 2, (measure.k2 * data_range) ** 2
    if measure.values.get("sample_covariance"):  # C2 shrinks instead of the variances growing
        pixels = math.prod(measure.window_size[-(x.dim() - 2) :])
        c2 *= (pixels - 1) / pixels
    return c1, c2


def _planes(image: Tensor, dtype: torch.dtype) -> Tensor:
    """[N,C,…] as [N·C,1,…]."""
    return image.to(dtype).reshape(-1, 1, *image.shape[2:])


def _mask_planes(mask: Optional[Tensor], like: Tensor, dtype: torch.dtype) -> Optional[Tensor]:
    """The weights, NaN where one is none."""
    return None if mask is None else checked_weights(_planes(mask.expand(like.shape), dtype))


class _Weights:
    """Means, sums and maps under a mask and a mask of valid pixels."""

    def __init__(self, mask: Optional[Tensor], valid: Optional[Tensor], reduction: str) -> None:
        self.exists = None if valid is None else valid > 0
        self.weights = mask
        if self.exists is not None and reduction != "none":
            assert valid is not None
            self.weights = torch.where(self.exists, valid if mask is None else mask, 0.0)

    def reduce(
        self, losses: Tensor, shape: Sequence[int], reduction: str, of_nothing: float = 0.0
    ) -> Tensor:
        """A map is NaN where there is no pixel."""
        if self.exists is not None:
            losses = torch.where(self.exists, losses, torch.nan if reduction == "none" else 0.0)
        return reduced(losses, self.weights, shape, reduction, of_nothing)

    def sums(self, losses: Tensor, shape: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Σ weight·loss and Σ weight of each channel, [N,C]."""
        if self.exists is not None:
            losses = torch.where(self.exists, losses, 0.0)
        weights = torch.ones_like(losses) if self.weights is None else self.weights
        both = (losses * weights).flatten(1).sum(1), weights.flatten(1).sum(1)
        return both[0].reshape(list(shape[:2])), both[1].reshape(list(shape[:2]))

    def total(self, like: Tensor, shape: Sequence[int], reduction: str) -> Tensor:
        """The result if every number is 1; NaN for a mean over nothing."""
        return reduced(torch.ones_like(like), self.weights, shape, reduction, torch.nan)


def _ssim(
    x: Tensor,
    y: Tensor,
    mask: Optional[Tensor],
    valid_mask: Optional[Tensor],
    measure: Measure,
    dtype: torch.dtype,
) -> Tensor:
    shape, reduction = x.shape, measure.reduction
    c1, c2 = _constants(measure, x)
    planes_x, planes_y = _planes(x, dtype), _planes(y, dtype)
    weights, valid = _mask_planes(mask, x, dtype), _mask_planes(valid_mask, x, dtype)
    if valid is not None:
        planes_x = torch.where(valid > 0, planes_x, 0.0)
        planes_y = torch.where(valid > 0, planes_y, 0.0)
    planes_x, planes_y = (poisoned(each, weights, valid) for each in (planes_x, planes_y))
    window = Window(measure, planes_x, valid)
    losses = window.counted(_terms(planes_x, planes_y, window, c1, c2).loss)
    on_map = _Weights(
        None if weights is None else window.cropped(weights),
        None if valid is None else window.cropped(valid),
        reduction,
    )
    if measure.l1_weight != 0:
        differences = window.counted_pixels((planes_x - planes_y).abs())
        on_pixels = _Weights(
            None if weights is None else window.counted_pixels(weights),
            None if valid is None else window.counted_pixels(valid),
            reduction,
        )
    if measure.sums:
        result, total = on_map.sums(losses, shape)
        if measure.form == "similarity":
            result = total - result
        parts = [measure.ssim_weight * result, total]
        if measure.l1_weight != 0:
            result, total = on_pixels.sums(differences, shape)
            parts += [measure.l1_weight * result, total]
        return torch.stack(parts)
    result = on_map.reduce(losses, shape, reduction)
    if measure.form == "similarity":
        result = on_map.total(losses, shape, reduction) - result
    result = measure.ssim_weight * result
    if measure.l1_weight != 0:
        result = result + measure.l1_weight * on_pixels.reduce(differences, shape, reduction)
    return result


def _lncc(
    x: Tensor, y: Tensor, mask: Optional[Tensor], valid_mask: Optional[Tensor], measure: Measure
) -> Tensor:
    if measure.gradient == "ants":
        raise TypeError(
            "lncc: gradient is ants, which is no derivative; torch.func and second derivatives "
            "need exact"
        )
    dtype = widest(x.device)
    planes_x, planes_y = _planes(x, dtype), _planes(y, dtype)
    weights, valid = _mask_planes(mask, x, dtype), _mask_planes(valid_mask, x, dtype)
    if valid is not None:
        planes_x = torch.where(valid > 0, planes_x, 0.0)
        planes_y = torch.where(valid > 0, planes_y, 0.0)
    planes_x, planes_y = (poisoned(each, weights, valid) for each in (planes_x, planes_y))
    window = Window(measure, planes_x, valid)
    taps = math.prod(measure.window_size[-(x.dim() - 2) :])
    nr, dr = measure.smooth_nr * taps, measure.smooth_dr * taps
    covariance, variance_x, variance_y = [
        taps * each for each in _covariances(window, planes_x, planes_y)
    ]
    variance_x = torch.where(variance_x > dr, variance_x, dr)
    variance_y = torch.where(variance_y > dr, variance_y, dr)
    if measure.signed:
        correlation = covariance / (variance_x.sqrt() * variance_y.sqrt())
    else:
        correlation = (covariance**2 + nr) / (variance_x * variance_y + dr)
    on_map = _Weights(
        None if weights is None else window.cropped(weights),
        None if valid is None else window.cropped(valid),
        measure.reduction,
    )
    correlation = window.counted(correlation).clamp(-1, 1)
    if measure.sums:
        result, total = on_map.sums(correlation, x.shape)
        return torch.stack([measure.weight * result, total])
    return measure.weight * on_map.reduce(
        correlation,
        x.shape,
        measure.reduction,
        of_nothing=0.0 if measure.weight < 0 else torch.nan,
    )


def _covariances(window: Window, x: Tensor, y: Tensor) -> Sequence[Tensor]:
    """The covariance of x and y, and their variances."""
    if not has_float64(x.device):
        return window.moments((x, y), ((0, 1), (0, 0), (1, 1)))[1]
    mean_x, mean_y, *products = window.averages(x, y, x * y, x * x, y * y)
    of_means = mean_x * mean_y, mean_x * mean_x, mean_y * mean_y
    return [product - of_mean for product, of_mean in zip(products, of_means)]


def _ncc(x: Tensor, y: Tensor, measure: Measure) -> Tensor:
    dtype = widest(x.device)
    planes_x, planes_y = _planes(x, dtype).flatten(1), _planes(y, dtype).flatten(1)
    # A mean of equal numbers is not quite theirs; less one of them they are exactly 0.
    planes_x, planes_y = planes_x - planes_x[:, :1].detach(), planes_y - planes_y[:, :1].detach()
    planes_x = planes_x - planes_x.mean(1, keepdim=True)
    planes_y = planes_y - planes_y.mean(1, keepdim=True)
    squares_x, squares_y = (planes_x**2).sum(1), (planes_y**2).sum(1)
    varies = (squares_x > 0) & (squares_y > 0)  # their product may be beyond f32
    norm = torch.where(varies, squares_x, 1.0).sqrt() * torch.where(varies, squares_y, 1.0).sqrt()
    correlation = torch.where(varies, (planes_x * planes_y).sum(1) / norm, 0.0)
    return measure.weight * reduced(correlation[:, None], None, x.shape, measure.reduction)


def _halved(planes: Tensor, rule: str) -> Tensor:
    sides = planes.shape[2:]
    pool = F.avg_pool2d if len(sides) == 2 else F.avg_pool3d
    if rule == "vainf" and min(sides) > 1:
        return pool(planes, 2, padding=[side % 2 for side in sides])
    if rule == "vainf":  # torch refuses to pool an axis of one voxel in 3D, whatever its padding
        rims = [side % 2 for side in reversed(sides) for _ in range(2)]
        return pool(F.pad(planes, rims), 2)
    before = int(rule == "piq" and any(side % 2 for side in sides))
    around = []
    for side in reversed(sides):
        around += [before, side % 2 if rule == "ceil" else 0]
    return pool(F.pad(planes, around, mode="replicate") if any(around) else planes, 2)


def level_mean(
    x: Tensor, y: Tensor, measure: Measure, data_range: float, is_last: bool
) -> Tensor:
    """The mean [B] over planes [B,1,…] of contrast and structure, or of SSIM at the last level."""
    c1, c2 = (measure.k1 * data_range) ** 2, (measure.k2 * data_range) ** 2
    terms = _terms(x, y, Window(measure, x, None), c1, c2)
    return (terms.luminance * terms.contrast if is_last else terms.contrast).flatten(1).mean(1)


LevelMean = Callable[[Tensor, Tensor, Measure, float, bool], Tensor]


def _ms_ssim(
    x: Tensor,
    y: Tensor,
    mask: Optional[Tensor],
    measure: Measure,
    dtype: torch.dtype,
    mean_of: LevelMean,
) -> Tensor:
    shape = x.shape
    data_range = data_range_of(measure, x)
    c1, c2 = _constants(measure, x)
    planes_x, planes_y = _planes(x, dtype), _planes(y, dtype)
    weights = _mask_planes(mask, x, dtype)
    planes_x, planes_y = poisoned(planes_x, weights), poisoned(planes_y, weights)
    exists = torch.ones_like(planes_x[:, 0].flatten(1)[:, 0], dtype=torch.bool)
    product = torch.ones_like(planes_x[:, 0].flatten(1)[:, 0])
    for level, weight in enumerate(measure.weights):
        if level > 0:
            planes_x = _halved(planes_x, measure.downsample)
            planes_y = _halved(planes_y, measure.downsample)
            weights = None if weights is None else _halved(weights, measure.downsample)
        is_last = level == len(measure.weights) - 1
        if weights is None:
            mean = mean_of(planes_x, planes_y, measure, data_range, is_last)
        else:
            window = Window(measure, planes_x, None)
            terms = _terms(planes_x, planes_y, window, c1, c2)
            of_map = (terms.luminance * terms.contrast if is_last else terms.contrast).flatten(1)
            of_weights = window.cropped(weights).flatten(1)
            total = of_weights.sum(1)
            mean = (of_weights * of_map).sum(1) / torch.where(total == 0, 1.0, total)
            if weight != 0:
                exists = exists & (total != 0)
        is_cut = mean <= 0  # NaN is not
        power = torch.where(is_cut, 1.0, mean) ** weight
        product = product * torch.where(is_cut, float(weight == 0), power)
    if measure.form == "loss":
        product = 1 - product
    product = torch.where(exists, product, 0.0)
    return reduced(
        product[:, None],
        exists.to(dtype)[:, None],
        shape,
        measure.reduction,
        of_nothing=0.0 if measure.form == "loss" else torch.nan,
    )


def evaluate(
    x: Tensor,
    y: Tensor,
    mask: Optional[Tensor],
    valid_mask: Optional[Tensor],
    measure: Measure,
    in_float32: bool = False,
    mean_of: LevelMean = level_mean,
) -> Tensor:
    """The measure in the dtype that the library returns, of images that the library takes.

    Args:
        in_float32: compute SSIM and MS-SSIM of images narrower than f64 in f32, whose roundings
            are small beside C1 and C2. The other measures have no such constants and stay in f64.
        mean_of: computes the means of MS-SSIM's levels.
    """
    wide = widest(x.device)
    dtype = torch.float32 if in_float32 and x.dtype != torch.float64 else wide
    if measure.operation == "ssim":
        result = _ssim(x, y, mask, valid_mask, measure, dtype)
    elif measure.operation == "ms_ssim":
        result = _ms_ssim(x, y, mask, measure, dtype, mean_of)
    elif measure.operation == "lncc":
        result = _lncc(x, y, mask, valid_mask, measure)
    elif measure.operation == "ncc":
        result = _ncc(x, y, measure)
    elif measure.operation in information.OPERATIONS:
        result = information.evaluate(x, y, mask, measure, wide)
    elif measure.operation not in ("mse", "mae"):
        raise TypeError(f"{measure.operation}: torch.func is not supported")
    else:
        planes_x, planes_y = _planes(x, wide), _planes(y, wide)
        weights = _mask_planes(mask, x, wide)
        if weights is not None:  # a pixel of weight 0 may hold anything
            planes_x = poisoned(torch.where(weights == 0, 0.0, planes_x), weights)
            planes_y = torch.where(weights == 0, 0.0, planes_y)
        difference = planes_x - planes_y
        errors = difference**2 if measure.operation == "mse" else difference.abs()
        result = reduced(errors, weights, x.shape, measure.reduction, of_nothing=torch.nan)
    is_wide = measure.in_float64 or x.dtype == torch.float64
    return result.to(wide) if is_wide else result.float()

# SPDX-License-Identifier: Apache-2.0
"""The decomposition of the measures into torch's own operators.

Second derivatives, forward mode and vmap are computed by it. It is slower than the kernels and
needs more memory, but it is differentiable any number of times and under every transform of
torch.func. The formulas are those of the papers, not those of the kernels. Numbers are f64, but for
second derivatives of SSIM and MS-SSIM of narrower images, which are f32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor

from .._library.measures import Measure
from .windows import Window


def _quotient(numerator: Tensor, denominator: Tensor, constant: float) -> Tensor:
    """The quotient of numbers that both hold the constant.

    Without a constant 0/0 is 1, as for two black or flat images.
    """
    if constant > 0:
        return numerator / denominator
    is_zero = denominator == 0
    return torch.where(is_zero, 1.0, numerator / torch.where(is_zero, 1.0, denominator))


def _terms(x: Tensor, y: Tensor, window: Window, c1: float, c2: float) -> tuple[Tensor, Tensor]:
    """The maps of luminance, and of contrast and structure."""
    mean_x, mean_y, squares, products = window.averages(x, y, x * x + y * y, x * y)
    product, square = mean_x * mean_y, mean_x * mean_x + mean_y * mean_y
    luminance = _quotient(2 * product + c1, square + c1, c1)
    return luminance, _quotient(2 * (products - product) + c2, squares - square + c2, c2)


def _constants(measure: Measure, x: Tensor) -> tuple[float, float]:
    data_range = measure.data_range or (255.0 if x.dtype == torch.uint8 else 1.0)
    c1, c2 = (measure.k1 * data_range) ** 2, (measure.k2 * data_range) ** 2
    if measure.values.get("sample_covariance"):  # C2 shrinks instead of the variances growing
        pixels = math.prod(measure.window_size[-(x.dim() - 2) :])
        c2 *= (pixels - 1) / pixels
    return c1, c2


def _planes(image: Tensor, dtype: torch.dtype = torch.float64) -> Tensor:
    """[N,C,…] as [N·C,1,…]."""
    return image.to(dtype).reshape(-1, 1, *image.shape[2:])


def _mask_planes(
    mask: Optional[Tensor], like: Tensor, dtype: torch.dtype = torch.float64
) -> Optional[Tensor]:
    """The weights, NaN where one is none."""
    return None if mask is None else _weights(_planes(mask.expand(like.shape), dtype))


def _weights(mask: Tensor) -> Tensor:
    """torch.func's tensors cannot be looked at, so what a CPU refuses is NaN, as on a GPU."""
    return torch.where((mask >= 0) & (mask < torch.inf), mask, torch.nan)


def _poisoned(planes: Tensor, *masks: Optional[Tensor]) -> Tensor:
    """[B,…] planes; NaN where a weight of their plane is."""
    for mask in masks:
        if mask is not None:
            is_bad = mask.isnan().flatten(1).any(1).reshape([-1] + [1] * (planes.dim() - 1))
            planes = planes * torch.where(is_bad, torch.nan, 1.0)
    return planes


def _reduced(
    numbers: Tensor,
    weights: Optional[Tensor],
    shape: Sequence[int],
    reduction: str,
    of_nothing: float = 0.0,
) -> Tensor:
    """[N·C,1,…] numbers and their weights as the result; shape: of the images.

    of_nothing: the mean where the weights add up to 0.
    """
    full = [*shape[:2], *numbers.shape[2:]]
    if reduction == "none":
        return (numbers if weights is None else numbers * weights).reshape(full)
    groups = {"per_image": shape[0], "per_channel": shape[0] * shape[1]}.get(reduction, 1)
    numbers = numbers.reshape(groups, -1)
    weights = torch.ones_like(numbers) if weights is None else weights.reshape(groups, -1)
    result = (numbers * weights).sum(1)
    if reduction != "sum":
        total = weights.sum(1)
        mean = result / torch.where(total == 0, 1.0, total)
        result = torch.where(total == 0, of_nothing, mean)
    if reduction == "per_channel":
        return result.reshape(list(shape[:2]))
    return result if reduction == "per_image" else result.reshape([])


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
        return _reduced(losses, self.weights, shape, reduction, of_nothing)

    def total(self, like: Tensor, shape: Sequence[int], reduction: str) -> Tensor:
        """The result if every number is 1; NaN for a mean over nothing."""
        return _reduced(torch.ones_like(like), self.weights, shape, reduction, torch.nan)


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
    planes_x, planes_y = (_poisoned(each, weights, valid) for each in (planes_x, planes_y))
    window = Window(measure, planes_x, valid)
    luminance, contrast = _terms(planes_x, planes_y, window, c1, c2)
    losses = 1 - luminance * contrast
    on_map = _Weights(
        None if weights is None else window.cropped(weights),
        None if valid is None else window.cropped(valid),
        reduction,
    )
    result = on_map.reduce(losses, shape, reduction)
    if measure.form == "similarity":
        result = on_map.total(losses, shape, reduction) - result
    result = measure.ssim_weight * result
    if measure.l1_weight != 0:
        differences = (planes_x - planes_y).abs()
        on_pixels = _Weights(weights, valid, reduction)
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
    planes_x, planes_y = _planes(x), _planes(y)
    weights, valid = _mask_planes(mask, x), _mask_planes(valid_mask, x)
    if valid is not None:
        planes_x = torch.where(valid > 0, planes_x, 0.0)
        planes_y = torch.where(valid > 0, planes_y, 0.0)
    planes_x, planes_y = (_poisoned(each, weights, valid) for each in (planes_x, planes_y))
    window = Window(measure, planes_x, valid)
    taps = math.prod(measure.window_size[-(x.dim() - 2) :])
    nr, dr = measure.smooth_nr * taps, measure.smooth_dr * taps
    mean_x, mean_y, products, squares_x, squares_y = window.averages(
        planes_x, planes_y, planes_x * planes_y, planes_x * planes_x, planes_y * planes_y
    )
    covariance = taps * (products - mean_x * mean_y)
    variance_x = taps * (squares_x - mean_x * mean_x)
    variance_y = taps * (squares_y - mean_y * mean_y)
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
    return measure.weight * on_map.reduce(
        correlation.clamp(-1, 1),
        x.shape,
        measure.reduction,
        of_nothing=0.0 if measure.weight < 0 else torch.nan,
    )


def _ncc(x: Tensor, y: Tensor, measure: Measure) -> Tensor:
    planes_x, planes_y = _planes(x).flatten(1), _planes(y).flatten(1)
    planes_x = planes_x - planes_x.mean(1, keepdim=True)
    planes_y = planes_y - planes_y.mean(1, keepdim=True)
    squares = (planes_x**2).sum(1) * (planes_y**2).sum(1)
    norm = torch.where(squares > 0, squares, 1.0).sqrt()
    correlation = torch.where(squares > 0, (planes_x * planes_y).sum(1) / norm, 0.0)
    return measure.weight * _reduced(correlation[:, None], None, x.shape, measure.reduction)


def _halved(planes: Tensor, rule: str) -> Tensor:
    sides = planes.shape[2:]
    pool = F.avg_pool2d if len(sides) == 2 else F.avg_pool3d
    if rule == "vainf":
        return pool(planes, 2, padding=[side % 2 for side in sides])
    before = int(rule == "piq" and any(side % 2 for side in sides))
    around = []
    for side in reversed(sides):
        around += [before, side % 2 if rule == "ceil" else 0]
    return pool(F.pad(planes, around, mode="replicate") if any(around) else planes, 2)


def _ms_ssim(
    x: Tensor, y: Tensor, mask: Optional[Tensor], measure: Measure, dtype: torch.dtype
) -> Tensor:
    shape = x.shape
    c1, c2 = _constants(measure, x)
    planes_x, planes_y = _planes(x, dtype), _planes(y, dtype)
    weights = _mask_planes(mask, x, dtype)
    planes_x, planes_y = _poisoned(planes_x, weights), _poisoned(planes_y, weights)
    exists = torch.ones_like(planes_x[:, 0].flatten(1)[:, 0], dtype=torch.bool)
    product = torch.ones_like(planes_x[:, 0].flatten(1)[:, 0])
    for level, weight in enumerate(measure.weights):
        if level > 0:
            planes_x = _halved(planes_x, measure.downsample)
            planes_y = _halved(planes_y, measure.downsample)
            weights = None if weights is None else _halved(weights, measure.downsample)
        window = Window(measure, planes_x, None)
        luminance, contrast = _terms(planes_x, planes_y, window, c1, c2)
        is_last = level == len(measure.weights) - 1
        of_map = (luminance * contrast if is_last else contrast).flatten(1)
        if weights is None:
            mean = of_map.mean(1)
        else:
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
    return _reduced(
        product[:, None],
        exists.to(dtype)[:, None],
        shape,
        measure.reduction,
        of_nothing=0.0 if measure.form == "loss" else torch.nan,
    )


def _limits(values: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """The smallest and the largest value of the voxels that count, [R,1] of [R,V]."""
    low = torch.where(counts, values, torch.inf).amin(1, keepdim=True)
    high = torch.where(counts, values, -torch.inf).amax(1, keepdim=True)
    return low, high


def _value_ranges(
    x: Tensor, y: Tensor, counts: Tensor, measure: Measure
) -> list[tuple[Tensor, Tensor]]:
    """The limits of x's and of y's histogram."""
    kind = measure.range
    if kind == "fixed":
        return [(x.new_tensor([[measure.low]]), x.new_tensor([[measure.high]]))] * 2
    found = [_limits(image.detach(), counts) for image in (x, y)]
    if kind == "per_image":
        return found
    low = torch.minimum(found[0][0], found[1][0])
    high = torch.maximum(found[0][1], found[1][1])
    if kind == "unit_or_common":
        low, high = low.amin(0, keepdim=True), high.amax(0, keepdim=True)
        is_unit = (low >= 0) & (high <= 1)
        low, high = torch.where(is_unit, 0.0, low), torch.where(is_unit, 1.0, high)
    return [(low, high)] * 2


def _parzen_weights(
    values: Tensor, limits: tuple[Tensor, Tensor], measure: Measure
) -> Tensor:
    """The weight of each voxel in each bin, [R,V,bins] of [R,V]."""
    bins, (low, high) = measure.num_bins, limits
    span = torch.where(high > low, high - low, torch.inf)
    share = ((values - low) / span).clamp(0, 1)
    distance = share[..., None] * bins - 0.5 - torch.arange(bins, device=values.device)
    if measure.kernel == "gaussian":
        weights = torch.exp(-2 * (distance / measure.sigma_ratio) ** 2)
    else:
        outer, inner = (2 - distance.abs()).clamp(min=0), (1 - distance.abs()).clamp(min=0)
        weights = (outer**3 - 4 * inner**3) / 6
    return weights / weights.sum(-1, keepdim=True)


def _entropy(p: Tensor) -> Tensor:
    return -(p * torch.where(p > 0, p, 1.0).log()).flatten(1).sum(1)


def _information(p: Tensor, measure: Measure) -> Tensor:
    """[R] of [R,bins,bins]."""
    p_x, p_y = p.sum(2, keepdim=True), p.sum(1, keepdim=True)
    if measure.normalized:
        joint = _entropy(p)
        share = (_entropy(p_x) + _entropy(p_y)) / torch.where(joint > 0, joint, 1.0)
        return torch.where(joint > 0, share, 1.0)
    nr, dr = measure.smooth_nr, measure.smooth_dr
    if nr == 0 and dr == 0:
        return _entropy(p_x) + _entropy(p_y) - _entropy(p)
    denominator = p_x * p_y + dr
    argument = (p + nr) / torch.where(denominator > 0, denominator, 1.0) + dr
    return (p * torch.where(argument > 0, argument, 1.0).log()).flatten(1).sum(1)


def _mutual_information(x: Tensor, y: Tensor, mask: Optional[Tensor], measure: Measure) -> Tensor:
    if measure.method == "binned" or measure.sampling < 1:
        raise TypeError(
            "mutual_information: method is binned or sampling is below 1; torch.func and second "
            "derivatives need exact and 1"
        )
    if measure.kernel == "delta":
        raise TypeError(
            "mutual_information: kernel is delta, which has no derivative; torch.func needs "
            "b_spline or gaussian"
        )
    results = x.shape[0] * x.shape[1]
    planes_x, planes_y = x.double().reshape(results, -1), y.double().reshape(results, -1)
    counts, weights = torch.ones_like(planes_x, dtype=torch.bool), None
    if mask is not None:
        weights = _weights(mask.double().expand(x.shape).reshape(results, -1))
        counts = weights > 0
        planes_x = _poisoned(torch.where(counts, planes_x, 0.0), weights)
        planes_y = _poisoned(torch.where(counts, planes_y, 0.0), weights)
    ranges = _value_ranges(planes_x, planes_y, counts, measure)
    weights_x = _parzen_weights(planes_x, ranges[0], measure) * counts[..., None]
    weights_y = _parzen_weights(planes_y, ranges[1], measure)
    voxels = counts.sum(1)
    joint = weights_x.transpose(1, 2) @ weights_y / voxels.clamp(min=1)[:, None, None]
    values = _information(joint, measure)
    is_loss = measure.form == "loss"
    return _reduced(
        -values[:, None] if is_loss else values[:, None],
        _poisoned((voxels > 0).double()[:, None], weights),
        x.shape,
        "per_channel" if measure.reduction == "none" else measure.reduction,
        of_nothing=0.0 if is_loss else torch.nan,
    )


def evaluate(
    x: Tensor,
    y: Tensor,
    mask: Optional[Tensor],
    valid_mask: Optional[Tensor],
    measure: Measure,
    in_float32: bool = False,
) -> Tensor:
    """The measure in the dtype that the library returns, of images that the library takes.

    Args:
        in_float32: compute SSIM and MS-SSIM of images narrower than f64 in f32, whose roundings
            are small beside C1 and C2. The other measures have no such constants and stay in f64.
    """
    dtype = torch.float32 if in_float32 and x.dtype != torch.float64 else torch.float64
    if measure.operation == "ssim":
        result = _ssim(x, y, mask, valid_mask, measure, dtype)
    elif measure.operation == "ms_ssim":
        result = _ms_ssim(x, y, mask, measure, dtype)
    elif measure.operation == "lncc":
        result = _lncc(x, y, mask, valid_mask, measure)
    elif measure.operation == "ncc":
        result = _ncc(x, y, measure)
    elif measure.operation == "mutual_information":
        result = _mutual_information(x, y, mask, measure)
    elif measure.operation not in ("mse", "mae"):
        raise TypeError(f"{measure.operation}: torch.func is not supported")
    else:
        planes_x, planes_y, weights = _planes(x), _planes(y), _mask_planes(mask, x)
        if weights is not None:  # a pixel of weight 0 may hold anything
            planes_x = _poisoned(torch.where(weights == 0, 0.0, planes_x), weights)
            planes_y = torch.where(weights == 0, 0.0, planes_y)
        difference = planes_x - planes_y
        errors = difference**2 if measure.operation == "mse" else difference.abs()
        result = _reduced(errors, weights, x.shape, measure.reduction, of_nothing=torch.nan)
    is_wide = measure.in_float64 or x.dtype == torch.float64
    return result.double() if is_wide else result.float()

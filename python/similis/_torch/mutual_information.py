# SPDX-License-Identifier: Apache-2.0
"""Mutual information in torch's own operators, for the decomposition."""

from __future__ import annotations

from typing import Optional

import torch
from torch import Tensor

from .._library.measures import Measure
from .reductions import checked_weights, poisoned, reduced


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
        limits = torch.tensor([[measure.low], [measure.high]], dtype=x.dtype, device=x.device)
        return [(limits[:1], limits[1:])] * 2
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


def _counted(
    x: Tensor, y: Tensor, mask: Optional[Tensor], measure: Measure, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Optional[Tensor]]:
    """The joint histograms [R,bins,bins], the voxels that count in each, and the mask."""
    results = x.shape[0] * x.shape[1]
    planes_x, planes_y = (each.to(dtype).reshape(results, -1) for each in (x, y))
    counts, weights = torch.ones_like(planes_x, dtype=torch.bool), None
    if mask is not None:
        weights = checked_weights(mask.to(dtype).expand(x.shape).reshape(results, -1))
        counts = weights > 0
        planes_x = poisoned(torch.where(counts, planes_x, 0.0), weights)
        planes_y = poisoned(torch.where(counts, planes_y, 0.0), weights)
    ranges = _value_ranges(planes_x, planes_y, counts, measure)
    weights_x = _parzen_weights(planes_x, ranges[0], measure) * counts[..., None]
    weights_y = _parzen_weights(planes_y, ranges[1], measure)
    return weights_x.transpose(1, 2) @ weights_y, counts.sum(1), weights


def _require_form(measure: Measure) -> None:
    values = measure.values
    if values["method"] == "binned" or values.get("sampling", 1) < 1:
        raise TypeError(
            f"{measure.operation}: method is binned or sampling is below 1; torch.func, second "
            "derivatives and GPUs of Apple and Intel need exact and 1"
        )
    if values.get("kernel") == "delta":
        raise TypeError(
            f"{measure.operation}: kernel is delta, which has no derivative; torch.func and GPUs "
            "of Apple and Intel need b_spline or gaussian"
        )


OPERATIONS = ("mutual_information", "histogram", "mutual_information_from_histogram")


def evaluate(
    x: Tensor, y: Tensor, mask: Optional[Tensor], measure: Measure, dtype: torch.dtype
) -> Tensor:
    """One of OPERATIONS; x is the histogram of the last, and dtype that of all sums."""
    _require_form(measure)
    weights: Optional[Tensor] = None
    if measure.operation == "mutual_information_from_histogram":
        counted = x.to(dtype).flatten(0, 1)
        voxels = counted.flatten(1).sum(1)
        joint = counted / torch.where(voxels > 0, voxels, 1.0)[:, None, None]
    else:
        counted, voxels, weights = _counted(x, y, mask, measure, dtype)
        if measure.operation == "histogram":
            return counted.reshape(*x.shape[:2], *counted.shape[1:])
        joint = counted / voxels.clamp(min=1)[:, None, None]
    values = _information(joint, measure)
    is_loss = measure.values.get("form") == "loss"
    return reduced(
        -values[:, None] if is_loss else values[:, None],
        poisoned((voxels > 0).to(dtype)[:, None], weights),
        x.shape,
        "per_channel" if measure.reduction == "none" else measure.reduction,
        of_nothing=0.0 if is_loss else torch.nan,
    )

# SPDX-License-Identifier: Apache-2.0
"""Weights of pixels, and the results that numbers are reduced to, in torch's own operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

import torch
from torch import Tensor


def checked_weights(mask: Tensor) -> Tensor:
    """torch.func's tensors cannot be looked at, so what a CPU refuses is NaN, as on a GPU."""
    return torch.where((mask >= 0) & (mask < torch.inf), mask, torch.nan)


def poisoned(planes: Tensor, *masks: Optional[Tensor]) -> Tensor:
    """[B,…] planes; NaN where a weight of their plane is."""
    for mask in masks:
        if mask is not None:
            is_bad = mask.isnan().flatten(1).any(1).reshape([-1] + [1] * (planes.dim() - 1))
            planes = planes * torch.where(is_bad, torch.nan, 1.0)
    return planes


def reduced(
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
    if weights is None:
        result = numbers.sum(1) if reduction == "sum" else numbers.mean(1)
    else:
        weights = weights.reshape(groups, -1)
        result = (numbers * weights).sum(1)
        if reduction != "sum":
            total = weights.sum(1)
            mean = result / torch.where(total == 0, 1.0, total)
            result = torch.where(total == 0, of_nothing, mean)
    if reduction == "per_channel":
        return result.reshape(list(shape[:2]))
    return result if reduction == "per_image" else result.reshape([])

# SPDX-License-Identifier: Apache-2.0
"""Intensities of an image in slabs: their range, and their noise."""

from __future__ import annotations

import math
from typing import Optional

import torch
from torch import Tensor

from .. import fields
from ..gathering import gathered, sum_of_ranks
from ..slabs import Slabs

_HIGHEST = 0.999  # share of the values above the least that [0, 1] holds
_TISSUE = 0.1  # intensity from which on a voxel counts for the noise
_DIGIT = 4  # bits of a whole number that all ranks count at a time
_COUNTED = 1 << 22  # whole numbers that are in one operation


def least_of_ranks(slabs: Slabs, value: float) -> float:
    return min(float(each) for each in gathered(slabs, torch.tensor([value], device="cpu").double()))


def _order(values: Tensor) -> Tensor:
    """Whole numbers that order as f32 values do."""
    bits = values.contiguous().view(torch.int32).long()
    return torch.where(bits < 0, -(bits & 0x7FFFFFFF), bits)


def _value(order: int) -> float:
    bits = order if order >= 0 else (-order) | -0x80000000
    return float(torch.tensor(bits, dtype=torch.int64).to(torch.int32).view(torch.float32))


def _count(slabs: Slabs, values: Tensor) -> int:
    """The number of values on all ranks."""
    return int(sum_of_ranks(slabs, torch.tensor([values.numel()], device="cpu")))


def _nth(slabs: Slabs, order: Tensor, before: int) -> tuple[int, int]:
    """The least of all ranks' whole numbers that has more than `before` of them up to it, and how many
    are up to it."""
    low, below, at = -(1 << 31), 0, 0
    for shift in range(32 - _DIGIT, -1, -_DIGIT):
        counts = torch.zeros(1 << _DIGIT, dtype=torch.int64, device="cpu")
        for part in order.split(_COUNTED):
            digits = (part - low) >> shift
            digits = digits[(digits >= 0) & (digits < 1 << _DIGIT)]
            counts += torch.bincount(digits, minlength=1 << _DIGIT).cpu()
        sums = sum_of_ranks(slabs, counts).cumsum(0) + below
        digit = int((sums > before).nonzero()[0])
        at, below = int(sums[digit]), int(sums[digit - 1]) if digit else below
        low += digit << shift
    return low, at


def without_gaps(
    name: str, values: Tensor, mask: Optional[Tensor], slabs: Slabs, may_mask: bool
) -> Optional[Tensor]:
    """The mask, [1,1,z,Y,X], less the voxels that are not finite if it may leave them out."""
    has_gaps = False
    for c in range(values.shape[1]):
        channel = values[:, c : c + 1].float()
        if mask is not None:
            has_gaps |= bool(((mask != 0) & ~channel.isfinite()).any())
        elif channel.numel():  # in f64 no sum of f32 is too large
            has_gaps |= not math.isfinite(float(channel.sum(dtype=torch.float64)))
    every = gathered(slabs, torch.tensor([has_gaps], device="cpu").double())
    if not any(bool(each) for each in every):
        return mask
    if not may_mask:
        raise ValueError(f"register: {name} has values that are not finite")
    result = values.new_ones([1, 1, *values.shape[2:]], dtype=torch.float32) if mask is None else mask
    for c in range(values.shape[1]):
        result = result * values[:, c : c + 1].float().isfinite()
    return result


def in_0_to_1(name: str, values: Tensor, mask: Optional[Tensor], slabs: Slabs) -> Tensor:
    """Each channel in [0, 1], which holds all but the highest thousandth above the least of the voxels
    that count; 0 where the mask is."""
    result = torch.empty_like(values, dtype=torch.float32)
    counts = None if mask is None else mask[:, 0] != 0
    for c in range(values.shape[1]):
        channel = values[:, c].float()
        inside = channel if counts is None else channel[counts]
        own = float(inside.min()) if inside.numel() else math.inf
        least = least_of_ranks(slabs, own)
        if least == math.inf:
            raise ValueError(f"register: {name}'s mask counts no voxel")
        order = _order(inside[inside > least])
        above = _count(slabs, order)
        if above == 0:
            where = "" if mask is None else " in its mask"
            raise ValueError(f"register: {name} is {least} everywhere{where}")
        place = _HIGHEST * (above - 1)
        before = int(place)
        low, upto = _nth(slabs, order, before)
        value = following = _value(low)
        if upto == before + 1 < above:
            larger = order[order > low]
            own = float(larger.min()) if larger.numel() else math.inf
            following = _value(int(least_of_ranks(slabs, own)))
        top = value + (place - before) * (following - value)
        by = float(torch.tensor(1 / (top - least)).float())
        scaled = ((channel - least) * by).clamp(0, 1)
        result[:, c] = scaled if counts is None else torch.where(counts, scaled, 0.0)
    return result


def noise_of(values: Tensor, slabs: Slabs) -> float:
    """noise_of() of src/registration/levels.cc: values are in [0, 1]."""
    sigma, median = 0.45, 0.674490
    beside = math.exp(-0.5 / sigma**2)
    rank = values.dim() - 2
    gain = (beside / (1 + 2 * beside) * math.sqrt(6)) ** rank
    squares = 0.0
    for c in range(values.shape[1]):
        channel = differences = values[:, c : c + 1]
        for axis in reversed(range(rank)):
            along = [sigma if a == axis else 0.0 for a in range(rank)]
            differences = fields.smooth(differences, along, slabs) - differences
        order = _order(differences.abs().clamp(max=1)[channel >= _TISSUE])
        count = _count(slabs, order)
        if count > 0:
            squares += (_value(_nth(slabs, order, count // 2)[0]) / (median * gain)) ** 2
    return math.sqrt(squares / values.shape[1])

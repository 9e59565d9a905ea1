# SPDX-License-Identifier: Apache-2.0
"""Intensities of an image in slabs: their range, and their noise."""

from __future__ import annotations

import math

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
    """How many values all ranks have."""
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


def in_0_to_1(name: str, values: Tensor, slabs: Slabs) -> Tensor:
    """Each channel in [0, 1], which holds all but the highest thousandth above the least."""
    result = torch.empty_like(values, dtype=torch.float32)
    for c in range(values.shape[1]):
        channel = values[:, c].float()
        own = float(channel.min()) if channel.numel() else math.inf
        has_gaps = bool(channel.numel()) and not math.isfinite(float(channel.sum(dtype=torch.float64)))
        words = torch.tensor([math.inf if has_gaps else own, float(has_gaps)], device="cpu")
        every = gathered(slabs, words.double())
        if any(bool(each[1]) for each in every):
            raise ValueError(f"register: {name} has values that are not finite")
        least = min(float(each[0]) for each in every)
        order = _order(channel[channel > least])
        above = _count(slabs, order)
        if above == 0:
            raise ValueError(f"register: {name} is {least} everywhere")
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
        result[:, c] = ((channel - least) * by).clamp(0, 1)
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

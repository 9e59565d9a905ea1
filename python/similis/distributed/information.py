# SPDX-License-Identifier: Apache-2.0
"""Mutual information of slabs: limits of the whole, then the whole's histogram, from which value
and gradient follow on every rank."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from typing import Any, Optional

import torch
from torch import Tensor

from .._functions.dispatch import options_of
from .._functions.mutual_information import (
    histogram,
    mutual_information,
    mutual_information_from_histogram,
)
from .._library import measures
from .._torch.information_parts import OfWhole
from .agreement import Agreement
from .gathering import gathered, sum_of_ranks
from .operands import as_bytes, as_five, taken_images
from .rows import refuse_second_derivative
from .slabs import Slabs
from .sums import require_reduction, result_dtype
from .windows import require_call

_DEFAULTS = {
    name: (mutual_information.__kwdefaults__ or {})[name] for name in options_of(mutual_information)
}
_OF_HISTOGRAM = tuple(options_of(histogram))
_OF_VALUE = tuple(
    each for each in options_of(mutual_information_from_histogram) if each != "reduction"
)


def _agree_on_values(agreement: Agreement, name: str, array: Any) -> None:
    """Compares a small array that every rank holds whole, values included."""
    agreement.whole(name, array)
    if array is not None:
        held = array.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes()
        agreement.entries[name]["values"] = hashlib.sha256(held).hexdigest()


class _Call:
    """A call that all ranks have agreed on."""

    def __init__(
        self, operation: str, x: Tensor, y: Tensor, slabs: Slabs, mask: Any, options: dict[str, Any]
    ) -> None:
        options = dict(options)
        given = {name: options.pop(name, None) for name in ("limits", "histogram")}
        with Agreement(operation, slabs, **options) as agreement:
            self.options = require_call(agreement, x, y, slabs, mask, options, _DEFAULTS)
            if operation == "histogram" and given["histogram"] is not None:
                raise ValueError("there is no option histogram on slabs")
            x, y = taken_images(operation, x, y, {}, has_range=False)
            require_reduction(self.options["reduction"], ("none",))
            for name, array in given.items():
                _agree_on_values(agreement, name, array)
            small = torch.zeros((*x.shape[:2], 2, 2), dtype=x.dtype, device=x.device)
            named = {name: self.options[name] for name in _OF_HISTOGRAM}
            counted = histogram(small, small, limits=given["limits"], **named)
            if given["histogram"] is not None:
                counted = given["histogram"]
                named.update((name, self.options[name]) for name in _OF_VALUE)
                mutual_information(small, small, histogram=counted, **named)
            mutual_information_from_histogram(
                counted, **{name: self.options[name] for name in _OF_VALUE}
            )
        self.slabs, self.mask = slabs, mask
        # [N,C,4]; given ones take the place of a range, and a given histogram that of slabs.
        self.limits: Optional[Tensor] = given["limits"]
        self.differentiable = (x, y)
        self.images = (x.detach(), y.detach())
        if self.options["sampling"] < 1:
            self._keep_sampled(x)
        if self.limits is None and isinstance(self.options["range"], str):
            self.limits = self._limits(x, y)
        counted = given["histogram"]
        self.histogram = self._whole_histogram() if counted is None else counted.detach()

    def _keep_sampled(self, x: Tensor) -> None:
        """Leaves the voxels that sampling chooses in the whole to the mask."""
        plane = math.prod(x.shape[3:])
        mask = torch.empty(x.shape[2:], dtype=torch.bool, device=x.device)
        for row in range(x.shape[2]):
            first = (self.slabs.start + row) * plane
            chosen = _is_sampled(
                first, plane, self.options["seed"], self.options["sampling"], x.device
            )
            mask[row] = chosen.reshape(x.shape[3:])
        self.mask = mask if self.mask is None else (self.mask > 0) & mask
        self.options["sampling"] = 1.0

    def _limits(self, x: Tensor, y: Tensor) -> Tensor:
        """Smallest and largest value of each channel of the whole x, and of y: [N,C,4] in f64."""
        extremes = []
        for image in (x.detach(), y.detach()):
            low = image.new_full(image.shape[:2], math.inf, dtype=torch.float64)
            high = -low
            for row in range(image.shape[2]):
                values = image[:, :, row].double()
                least, most = values, values
                if self.mask is not None:
                    counts = (as_five(self.mask, image)[:, :, row] > 0).expand_as(values)
                    least = torch.where(counts, values, math.inf)
                    most = torch.where(counts, values, -math.inf)
                low = torch.minimum(low, least.flatten(2).amin(2))
                high = torch.maximum(high, most.flatten(2).amax(2))
            extremes += [low, -high]
        every = torch.stack(gathered(self.slabs, torch.stack(extremes)))
        x_low, x_high, y_low, y_high = every.amin(0)
        low, high = torch.minimum(x_low, y_low), -torch.minimum(x_high, y_high)
        if self.options["range"] == "common":
            return torch.stack([low, high, low, high], -1)
        if self.options["range"] == "unit_or_common":
            ends = (low.amin(), high.amax())
            if float(ends[0]) >= 0 and float(ends[1]) <= 1:
                ends = (torch.zeros_like(ends[0]), torch.ones_like(ends[0]))
            return torch.stack([*ends, *ends]).expand(*low.shape, 4).contiguous()
        return torch.stack([x_low, -x_high, y_low, -y_high], -1)

    def _whole_histogram(self) -> Tensor:
        x, y = self.images
        bins = self.options["num_bins"]
        own = x.new_zeros((*x.shape[:2], bins, bins), dtype=torch.float64)
        if x.numel():
            text = measures.text("histogram", 0, **self._named(_OF_HISTOGRAM))
            arrays = (x, y, as_bytes(self.mask), None, None, own, None, None)
            OfWhole(limits=self.limits).run(text, arrays)
        return sum_of_ranks(self.slabs, own)

    def _named(self, names: Iterable[str]) -> dict[str, Any]:
        """The options of these names; limits take the place of a range."""
        named = {name: self.options[name] for name in names}
        if self.limits is not None:
            named["range"] = (0.0, 1.0)
        return named

    def values(self) -> Tensor:
        """The measure of each channel, [N,C] in f64."""
        named = {name: self.options[name] for name in _OF_VALUE}
        return mutual_information_from_histogram(self.histogram, **named, reduction="per_channel")

    def gradients(self, upstream: Tensor, asked: Any) -> list[Optional[Tensor]]:
        """The gradients of Σ upstream·values() to x and y."""
        x, y = self.images
        results = [torch.empty_like(x) if of else None for of in asked]
        if x.numel():
            named = self._named({*_OF_HISTOGRAM, *_OF_VALUE})
            text = measures.text("mutual_information", 0, **named, reduction="per_channel")
            tensors = (x, y, as_bytes(self.mask), None, upstream.contiguous(), None, *results)
            OfWhole(self.histogram, self.limits).run(text, tensors)
        return results


def _signed(word: int) -> int:
    """64 bits as torch counts them."""
    word %= 1 << 64
    return word - (1 << 64) if word >> 63 else word


def _shifted(words: Tensor, bits: int) -> Tensor:
    return (words >> bits) & ((1 << (64 - bits)) - 1)


def _is_sampled(
    first: int, count: int, seed: int, sampling: float, device: torch.device
) -> Tensor:
    """The choice of is_sampled() in src/mutual_information/formula.h, for voxels from first on."""
    z = torch.arange(first + 1, first + 1 + count, device=device) * _signed(0x9E3779B97F4A7C15)
    z += _signed(seed * 0xD1342543DE82EF95)
    for bits, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ _shifted(z, bits)) * _signed(factor)
    return _shifted(z ^ _shifted(z, 31), 32) < int(sampling * (1 << 32))


class _Information(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, call: _Call) -> Tensor:
        ctx.call = call
        return call.values()

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
        refuse_second_derivative("mutual_information")
        by_x, by_y = ctx.call.gradients(upstream, ctx.needs_input_grad[:2])
        return by_x, by_y, None


def information(
    operation: str, sign: float, x: Tensor, y: Tensor, slabs: Slabs, mask: Any, options: Any
) -> Tensor:
    call = _Call(operation, x, y, slabs, mask, options)
    apply: Any = _Information.apply
    values = apply(*call.differentiable, call)
    reduction = call.options["reduction"]
    counts = call.histogram.flatten(2).sum(2) > 0
    result = reduced_without_empty(torch.where(counts, values, 0.0), counts, reduction, sign < 0)
    return (sign * result).to(result_dtype(call.images[0]))


def reduced_without_empty(
    values: Tensor, counts: Tensor, reduction: str, is_loss: bool
) -> Tensor:
    """A mean leaves out channels without voxels; with none left a measure is NaN and a loss 0."""
    if reduction == "sum":
        return values.sum()
    number = counts.double()
    if reduction == "mean":
        values, number = values.sum(), number.sum()
    elif reduction == "per_image":
        values, number = values.sum(1), number.sum(1)
    nothing = torch.zeros_like(values) if is_loss else torch.full_like(values, math.nan)
    return torch.where(number > 0, values / number.clamp(min=1), nothing)


def histogram_of_slabs(x: Tensor, y: Tensor, slabs: Slabs, mask: Any, options: Any) -> Tensor:
    return _Call("histogram", x, y, slabs, mask, options).histogram

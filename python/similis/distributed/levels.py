# SPDX-License-Identifier: Apache-2.0
"""MS-SSIM of images in slabs.

    own rows ─> windows as ssim's ─> whole sums of 1 - cs ─┐
        │ a row where a pair lies in two slabs             │
        └─> halved rows ─> windows ─> … ─> 1 - SSIM ───────┴─> the product, on every rank

Pairs of rows lie as on the whole axis, and a halved row belongs to the owner of the first of its
two rows inside the volume. Halved images are f64.
"""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from .._functions.ssim import ms_ssim, ssim
from .._library import measures, values
from .._library.schema import TABLES
from .agreement import Agreement
from .information import reduced_without_empty
from .operands import as_five, taken_images
from .rows import rows_of
from .slabs import Interval, Slabs
from .sums import reduced, require_reduction, result_dtype
from .windows import Centres, require_call

_DEFAULTS: dict[str, Any] = ms_ssim.__kwdefaults__ or {}
_WEIGHTS: Any = TABLES["ms_ssim"].options["weights"].default
# SSIM's luminance term is 1 to all digits with so large a constant, and contrast and structure are
# left.
_LUMINANCE_CONSTANT = 1e16


class _Halving:
    """An axis halved: element i is the mean of elements 2i - before and 2i + 1 - before."""

    def __init__(self, extent: int, rule: str, is_any_odd: bool) -> None:
        self.extent = extent
        self.before = after = 0
        if rule == "vainf":
            self.before = after = extent % 2
        elif rule == "ceil":
            after = extent % 2
        elif rule == "piq":
            self.before = int(is_any_odd)
        self.counts_outside_as_0 = rule == "vainf"
        self.half = (self.before + extent + after) // 2

    def of_axis(self, x: Tensor, axis: int, coarse: Interval, first: int) -> Tensor:
        """The halved elements `coarse` of x, which begins with element `first` of the axis."""
        sides = []
        for behind in (0, 1):
            wanted = torch.arange(coarse[0], coarse[1], device=x.device) * 2 + behind - self.before
            is_inside = (wanted >= 0) & (wanted < self.extent)
            side = x.index_select(axis, wanted.clamp(0, self.extent - 1) - first).double()
            if self.counts_outside_as_0 and self.before:
                shape = [-1 if at == axis else 1 for at in range(x.dim())]
                side = side * is_inside.reshape(shape)
            sides.append(side)
        return (sides[0] + sides[1]) / 2

    def source(self, coarse: Interval) -> Interval:
        """The elements that the halved ones are made of."""
        first = max(2 * coarse[0] - self.before, 0)
        return first, min(2 * coarse[1] - self.before, self.extent)


class _Level:
    """Extents and slabs of a level, and how it is halved to the next."""

    def __init__(self, slabs: Slabs, plane: list[int], rule: str) -> None:
        self.slabs, self.plane = slabs, plane
        extents = [slabs.extent, *plane]
        is_any_odd = any(each % 2 for each in extents)
        self.halvings = [_Halving(each, rule, is_any_odd) for each in extents]
        rows = self.halvings[0]
        owners = [max(2 * i - rows.before, 0) for i in range(rows.half)]
        bounds = [slabs.rows(rank) for rank in range(slabs.ranks)]
        self.next_sizes = [sum(a <= owner < b for owner in owners) for a, b in bounds]

    def next(self, rule: str) -> _Level:
        extents = [each.half for each in self.halvings]
        if 0 in extents:
            raise ValueError(
                f"a level has extents {[self.slabs.extent, *self.plane]}; it cannot be halved"
            )
        return _Level(Slabs(self.next_sizes, self.slabs.mesh), extents[1:], rule)

    def halved(self, x: Tensor) -> Tensor:
        """Own rows of the next level, of an array whose last axes are the spatial ones."""
        along = x.dim() - len(self.halvings)
        coarse, wanted = [], []
        for rank in range(self.slabs.ranks):
            first = sum(self.next_sizes[:rank])
            coarse.append((first, first + self.next_sizes[rank]))
            start = self.slabs.rows(rank)[0]
            is_empty = self.next_sizes[rank] == 0
            wanted.append((start, start) if is_empty else self.halvings[0].source(coarse[rank]))
        rank = self.slabs.rank
        x = rows_of(x, self.slabs, wanted, along)
        x = self.halvings[0].of_axis(x, along, coarse[rank], wanted[rank][0])
        for at, halving in enumerate(self.halvings[1:], along + 1):
            x = halving.of_axis(x, at, (0, halving.half), 0)
        return x


class _Call:
    """A call that all ranks have agreed on."""

    def __init__(
        self, operation: str, x: Tensor, y: Tensor, slabs: Slabs, mask: Any, options: dict[str, Any]
    ) -> None:
        with Agreement(operation, slabs, **options) as agreement:
            given = require_call(agreement, x, y, slabs, mask, options, _DEFAULTS)
            if given["data_range"] is not None:
                given["data_range"] = values.plain_range(operation, given["data_range"])
            x, y = taken_images(operation, x, y, given, has_range=True)
            if x.dtype in (torch.float16, torch.bfloat16):
                # Each pixel has a gradient of several levels, and their sum alone is rounded.
                x, y = x.float(), y.float()
            self.images = x, y
            self.reduction = given["reduction"]
            require_reduction(self.reduction)
            measures.parse(measures.text("ms_ssim", x.dim() - 2, **given, form="loss"))
            self.weights = [float(each) for each in given.pop("weights") or _WEIGHTS]
            rule = given.pop("downsample")
            given.pop("reduction")
            if given["data_range"] is None:
                dtype = str(x.dtype).replace("torch.", "")
                given["data_range"] = measures.DATA_RANGES.get(dtype, 1.0)
            self.options = given
            self.levels = [_Level(slabs, list(x.shape[3:]), rule)]
            while len(self.levels) < len(self.weights):
                self.levels.append(self.levels[-1].next(rule))
            for level in self.levels:
                shape = [1, 1, level.slabs.extent, *level.plane]
                Centres(level.slabs, x.dim(), given).try_on(ssim, shape, x.dtype, x.device)
        self.slabs = slabs

    def means(self, mask: Optional[Tensor]) -> tuple[Tensor, Tensor]:
        """The mean of 1 - cs at each level, of 1 - SSIM at the last, and the sum of its weights:
        both [levels,N,C]."""
        means, counts = [], []
        x, y = self.images
        if mask is not None:
            mask = as_five(mask, x)
        for k, level in enumerate(self.levels):
            is_last = k + 1 == len(self.levels)
            options = dict(self.options)
            if not is_last:
                options["k1"] = _LUMINANCE_CONSTANT / options["data_range"]
            centres = Centres(level.slabs, x.dim(), options, mask)
            sums, of_weights = centres.sums("ssim_loss", x, y, "per_channel")
            means.append(reduced(sums, of_weights, "per_channel", 0.0))
            counts.append(of_weights)
            if not is_last:
                x, y = level.halved(x), level.halved(y)
                mask = None if mask is None else level.halved(mask)
        return torch.stack(means), torch.stack(counts)

    def dissimilarity(self, means: Tensor) -> Tensor:
        """1 - MS-SSIM of each channel; 1, with gradient 0, where a level's mean is not positive."""
        logarithm = torch.zeros_like(means[0])
        is_zero = torch.zeros_like(means[0], dtype=torch.bool)
        for mean, weight in zip(means, self.weights):
            if weight == 0:
                continue
            is_zero = is_zero | (mean >= 1)
            logarithm = logarithm + weight * torch.log1p(-torch.where(mean >= 1, 0 * mean, mean))
        return torch.where(is_zero, 1.0, -torch.expm1(logarithm))


def _ms_ssim(
    operation: str, x: Tensor, y: Tensor, slabs: Slabs, mask: Any, options: dict[str, Any]
) -> Tensor:
    call = _Call(operation, x, y, slabs, mask, options)
    means, counts = call.means(mask)
    is_loss = operation.endswith("loss")
    each = call.dissimilarity(means)
    each = each if is_loss else 1 - each
    counted = (counts > 0).all(0)
    each = torch.where(counted, each, 0 * each)
    result = reduced_without_empty(each, counted, call.reduction, is_loss)
    return result.to(result_dtype(call.images[0]))


def ms_ssim_of_slabs(
    x: Tensor, y: Tensor, slabs: Slabs, *, mask: Optional[Tensor] = None, **options: Any
) -> Tensor:
    return _ms_ssim("ms_ssim", x, y, slabs, mask, options)


def ms_ssim_loss_of_slabs(
    x: Tensor, y: Tensor, slabs: Slabs, *, mask: Optional[Tensor] = None, **options: Any
) -> Tensor:
    return _ms_ssim("ms_ssim_loss", x, y, slabs, mask, options)

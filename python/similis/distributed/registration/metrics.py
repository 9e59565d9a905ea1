# SPDX-License-Identifier: Apache-2.0
"""The metrics of an image in slabs and another that a field moves, and their derivative by the field."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Optional, Union

import torch
from torch import Tensor

from .. import measures, transforms
from ..gathering import sum_of_ranks
from ..rows import whole_sum
from .images import Image, between, coordinates, units

Metric = Union[str, tuple[str, dict[str, Any]]]
Term = tuple[str, dict[str, Any]]
_OPTIONS: dict[str, dict[str, Any]] = {
    "lncc": {"window_size": 5, "weight": 1.0},
    "ncc": {"weight": 1.0},
    "mse": {"weight": 1.0},
    "mi": {"bins": 48, "sampling": 1.0, "weight": 1.0},
    "dice": {"weight": 1.0},
}
_SLACK = 1e-3  # voxels outside of a grid that count as inside, against rounding
# Places are often voxels exactly, where rounding would choose the side on which a slope is taken.
_BESIDE_VOXELS = 1e-4
_INSIDE_MASK = 0.999  # of a moved mask, which counts from there on


def terms_of(metrics: Sequence[Metric]) -> list[Term]:
    """Names and all their options."""
    result = []
    if not isinstance(metrics, (str, tuple, list)):
        raise ValueError(f"metrics is {metrics!r}; it must be a list of names")
    for each in [metrics] if isinstance(metrics, str) else metrics:
        is_pair = isinstance(each, (tuple, list)) and len(each) == 2 and isinstance(each[1], dict)
        if not isinstance(each, str) and not is_pair:
            raise ValueError(
                f"metrics has {each!r}; it must be a name, or (name, options) as "
                '("lncc", {"window_size": 5})'
            )
        name, options = (each, {}) if isinstance(each, str) else each
        if name not in _OPTIONS:
            raise ValueError(f"metrics has {name!r}; it must be one of {', '.join(_OPTIONS)}")
        unknown = [key for key in options if key not in _OPTIONS[name]]
        if unknown:
            raise ValueError(f"metrics: {name} has no option {unknown[0]}")
        result.append((name, {**_OPTIONS[name], **options}))
    if not result:
        raise ValueError("metrics is empty; give one or more")
    return result


class _Placed:
    """The places of `still`'s voxels in `moved`, another image, under a map and a field."""

    def __init__(self, still: Image, moved: Image, affine: Tensor, beside: float = 0.0) -> None:
        self.still, self.moved = still, moved
        self.linear, shift = between(still, affine, moved)
        self.shift = shift + beside
        device = still.values.device
        self.matrix = coordinates(self.linear, self.shift, still.size, moved.size).to(device)
        self.by_u = units(self.linear, moved.size).to(device)

    def sampled(self, values: Tensor, u: Optional[Tensor]) -> Tensor:
        """Values of `moved` at own voxels, 0 outside."""
        field: dict[str, Any] = {"out_shape": self.still.size}
        if u is not None:
            field = {"displacement": u, "grid_affine": self.by_u}
        return transforms.sample(
            values, self.moved.slabs, slabs=self.still.slabs, affine=self.matrix, **field
        )

    def inside(self, u: Optional[Tensor]) -> Tensor:
        """1 where a voxel counts and is moved to one that does, else 0: [1,1,z,Y,X]."""
        still, moved = self.still, self.moved
        d, slabs, device = len(still.scale), still.slabs, still.values.device
        dtype = still.values.dtype
        ranges = [torch.arange(n, device=device).double() for n in still.size]
        ranges[0] = ranges[0][slabs.start : slabs.stop]
        inside = torch.ones([1, *still.values.shape[2:]], dtype=torch.bool, device=device)
        for a in range(d):
            at = torch.full([1] * (d + 1), float(self.shift[a]), device=device).to(dtype)
            for c in range(d):
                shape = [-1 if k == d - c else 1 for k in range(d + 1)]
                along = float(self.linear[a, c]) * ranges[d - 1 - c]
                at = at + along.to(dtype).reshape(shape)
                if u is not None:
                    at = at + float(self.linear[a, c]) * u[..., c]
            inside &= (at >= -_SLACK) & (at <= moved.size[d - 1 - a] - 1 + _SLACK)
        inside = inside[:, None]
        if still.mask is not None:
            inside &= still.mask != 0
        if moved.mask is not None:
            inside &= self.sampled(moved.mask, u) >= _INSIDE_MASK
        return inside.to(dtype)


def laid_on(grid: Image, moved: Image, affine: Tensor) -> Image:
    """An image where the map lays it on a level's grid; voxels outside of it do not count."""
    empty = Image(grid.values, grid.slabs, grid.scale, grid.shift)
    place = _Placed(empty, moved, affine)
    mask: Optional[Tensor] = place.inside(None)
    if _count(empty, mask) == math.prod(grid.size):
        mask = None
    values = place.sampled(moved.values, None)
    return Image(values, grid.slabs, grid.scale, grid.shift, mask)


def _count(image: Image, weights: Optional[Tensor]) -> float:
    assert weights is not None
    own = weights.sum(dtype=torch.float64).reshape(1)
    return float(sum_of_ranks(image.slabs, own))


class _MovedMetric:
    def __init__(
        self, still: Image, moved: Image, affine: Tensor, terms: list[Term], seed: int
    ) -> None:
        self.place = _Placed(still, moved, affine, _BESIDE_VOXELS)
        self.still, self.moved, self.terms, self.seed = still, moved, terms, seed

    def value_and_gradient(self, u: Tensor) -> tuple[float, Tensor]:
        """The metrics' weighted sum, and its derivative by u times the number of voxels."""
        weights = self.place.inside(u)
        count = _count(self.still, weights)
        u = u.detach().requires_grad_()
        with torch.enable_grad():
            moved = self.place.sampled(self.moved.values, u)
        if count == 0:
            return -math.inf, torch.zeros_like(u)
        held = None if count == math.prod(self.still.size) else weights
        with torch.enable_grad():
            j = moved.detach().requires_grad_()
            total: Any = 0.0
            value = 0.0
            for name, options in self.terms:
                one = self._metric(name, options, j, held, count)
                value += options["weight"] * float(one.detach())
                total = total + options["weight"] * count * one
        (by_moved,) = torch.autograd.grad(total, j)
        (gradient,) = torch.autograd.grad(moved, u, by_moved)
        return value, gradient

    def _metric(
        self, name: str, options: dict[str, Any], j: Tensor, weights: Optional[Tensor], count: float
    ) -> Tensor:
        f, slabs = self.still.values, self.still.slabs
        if name == "lncc":
            return measures.lncc(
                f, j, slabs, window_size=options["window_size"], padding="renormalize",
                valid_mask=weights,
            ).double()  # fmt: skip
        if name == "mi":
            return measures.mutual_information(
                f, j, slabs, num_bins=options["bins"], range=(0.0, 1.0),
                sampling=options["sampling"], seed=self.seed, mask=weights,
            ).double()  # fmt: skip
        w = 1.0 if weights is None else weights.double()
        a, b = f.double(), j.double()
        if name == "mse":
            return -self._whole(w * (a - b).square()).mean() / count
        if name == "dice":
            both, either = self._whole(w * a * b), self._whole(w * (a + b))
            return torch.where(either > 0, 2 * both / torch.where(either > 0, either, 1.0), 0.0).mean()
        # The derivative by the means is 0: deviations add up to 0, though not those of one rank.
        mean_f, mean_j = ((self._whole(w * each) / count).detach() for each in (a, b))
        shape = [1, -1, *[1] * (f.dim() - 2)]
        a, b = a - mean_f.reshape(shape), b - mean_j.reshape(shape)
        ff, jj, fj = (self._whole(w * each) for each in (a * a, b * b, a * b))
        norm = (ff * jj).sqrt()
        return torch.where(norm > 0, fj / torch.where(norm > 0, norm, 1.0), 0.0).mean()

    def _whole(self, values: Tensor) -> Tensor:
        """The sum of each channel over all ranks, differentiable."""
        return whole_sum(values.flatten(2).sum(2)[0], self.still.slabs)


class MovedMetrics:
    """The metrics of a pair of images, and dice of their labels, which have a channel each."""

    def __init__(
        self,
        images: tuple[Image, Image],
        labels: Optional[tuple[Image, Image]],
        affine: Tensor,
        terms: list[Term],
        seed: int,
    ) -> None:
        self._parts: list[_MovedMetric] = []
        for pair, is_dice in ((images, False), (labels, True)):
            chosen = [each for each in terms if (each[0] == "dice") == is_dice]
            if pair is not None and chosen:
                self._parts.append(_MovedMetric(*pair, affine, chosen, seed))

    def value_and_gradient(self, u: Tensor) -> tuple[float, Tensor]:
        """The weighted sum, and its derivative by u times the number of voxels that count."""
        first, *others = self._parts
        value, gradient = first.value_and_gradient(u)
        for each in others:
            more, by_u = each.value_and_gradient(u)
            value, gradient = value + more, gradient.add_(by_u)
        return value, gradient

# SPDX-License-Identifier: Apache-2.0
"""Damped Gauss-Newton steps of src/registration/curvature on slabs.

    products of edges over the variance about a voxel ─ smoothed ─> H at every fourth voxel
    λ = damping · mean trace / 3 ─> Q = H / λ, of which each rank has the rows about its own
    g ─> (1 + Q)⁻¹·g, with Q linear between
"""

from __future__ import annotations

import math
from typing import Optional

import torch
from torch import Tensor

from .. import fields, transforms
from ..gathering import sum_of_ranks
from ..rows import halos, rows_of
from ..slabs import Slabs
from .images import Image, averaged, coordinates

_WINDOW = 1.5  # σ in voxels of the Gaussian that averages about a voxel
_FLOOR = 1e-3  # of the variance, where images are in [0, 1]
_TISSUE = 0.1  # of the intensities' range
_STRIDE = 4
_AXES = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))  # of x, y, z
_VOXELS_AT_ONCE = 1 << 22


class _Beside:
    """The neighbours along an axis (0: x) of own voxels, of arrays with a row beside own ones; at a
    border the voxel itself."""

    def __init__(self, slabs: Slabs, first: int, axis: int, size: list[int], like: Tensor) -> None:
        self._at = 4 - axis
        n = size[2 - axis]
        own = torch.arange(n, device=like.device)
        offset = 0
        if axis == 2:
            own, offset = own[slabs.start : slabs.stop], first
        self._before = (own - 1).clamp(min=0) - offset
        self._behind = (own + 1).clamp(max=n - 1) - offset
        self._rows = None if axis == 2 else (slabs.start - first, slabs.stop - slabs.start)
        shape = [-1 if k == self._at else 1 for k in range(5)]
        is_inside = (own > 0) & (own + 1 < n)
        self._share = torch.where(is_inside, 0.5, 1.0).reshape(shape)

    def both(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        if self._rows is not None:
            rows = rows.narrow(2, *self._rows)
        return rows.index_select(self._at, self._before), rows.index_select(self._at, self._behind)

    def slope(self, rows: Tensor) -> Tensor:
        before, behind = self.both(rows)
        return self._share * (behind - before)


class Preconditioner:
    """(1 + Q)⁻¹ of a level's fixed volume."""

    def __init__(self, image: Image, fluid: float, damping: float) -> None:
        """fluid: σ that gradients are smoothed by. damping: λ in thirds of H's mean trace."""
        self._slabs, size = image.slabs, image.size
        self._size = size
        self._coarse = [(n + _STRIDE - 2) // _STRIDE + 1 for n in size]
        coarse_slabs = Slabs.even(self._coarse[0], image.slabs.mesh)
        eye, zero = torch.eye(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
        matrix = coordinates(_STRIDE * eye, zero, self._coarse, size).to(image.values.device)

        def sampled(values: Tensor) -> Tensor:
            return transforms.sample(
                values, image.slabs, slabs=coarse_slabs, affine=matrix, out_shape=self._coarse,
                padding_mode="border",
            )  # fmt: skip

        h = torch.cat([sampled(each) for each in _curvature(image, fluid)], 1)
        trace = h[:, 0] + h[:, 1] + h[:, 2]
        tissue = sampled(image.values[:, :1])[:, 0] >= _TISSUE
        tissue &= trace >= torch.finfo(torch.float32).tiny
        sums = torch.stack([trace[tissue].sum(dtype=torch.float64), tissue.sum().double()])
        whole, count = sum_of_ranks(image.slabs, sums).tolist()
        mean = whole / count if count else math.nan
        self.is_empty = not damping * mean / 3 > 0
        if self.is_empty:
            return
        h *= 1 / torch.tensor(damping * mean / 3).float().item()
        wanted = []
        for rank in range(image.slabs.ranks):
            start, stop = image.slabs.rows(rank)
            first = start // _STRIDE
            last = min((stop - 1) // _STRIDE + 1, self._coarse[0] - 1)
            wanted.append((first, last + 1) if start < stop else (0, 0))
        self._first = wanted[image.slabs.rank][0]
        self._q = rows_of(h, coarse_slabs, wanted, 2)[0]

    def solve(self, field: Tensor) -> Tensor:
        """(1 + Q)⁻¹·field, [1,z,Y,X,3]."""
        if self.is_empty or not field.numel():
            return field
        result = torch.empty_like(field)
        at_once = max(1, _VOXELS_AT_ONCE // (field.shape[2] * field.shape[3]))
        for row in range(0, field.shape[1], at_once):
            part = field[0, row : row + at_once]
            result[0, row : row + at_once] = _solved(self._between(row, len(part)), part)
        return result

    def _between(self, row: int, count: int) -> Tensor:
        """Q at some own rows, [6,z,Y,X]; linear along y, then z, then x."""
        q, last = self._q, [n - 1 for n in self._coarse]
        device = q.device

        def places(first: int, n: int, axis: int, offset: int) -> tuple[Tensor, Tensor, Tensor]:
            at = torch.arange(first, first + n, device=device)
            near = at // _STRIDE
            far = (near + 1).clamp(max=last[axis])
            share = (at % _STRIDE).float() / _STRIDE
            return near - offset, far - offset, share

        def linear(values: Tensor, axis: int, of: tuple[Tensor, Tensor, Tensor]) -> Tensor:
            near, far, share = of
            a = values.index_select(axis, near)
            shape = [-1 if k == axis else 1 for k in range(4)]
            return a + share.reshape(shape) * (values.index_select(axis, far) - a)

        size = self._size
        z = places(self._slabs.start + row, count, 0, self._first)
        low, high = int(z[0][0]), int(z[1][-1]) + 1
        q = linear(q[:, low:high], 2, places(0, size[1], 1, 0))
        q = linear(q, 1, (z[0] - low, z[1] - low, z[2]))
        return linear(q, 3, places(0, size[2], 2, 0))


def _curvature(image: Image, fluid: float) -> list[Tensor]:
    """Products of edges along xx, yy, zz, xy, xz and yz, smoothed and added over channels."""
    slabs, mask = image.slabs, image.mask
    share = None if mask is None else fields.smooth(mask, _WINDOW, slabs)
    wanted = halos(slabs, 1, 1)
    first = wanted[slabs.rank][0]
    beside = [_Beside(slabs, first, axis, image.size, image.values) for axis in range(3)]
    all_count: list[Optional[Tensor]] = [None] * 3
    if mask is not None:
        rows = rows_of(mask, slabs, wanted, 2)
        all_count = [mask * before * behind for before, behind in (b.both(rows) for b in beside)]
    products: list[Optional[Tensor]] = [None] * 6
    for c in range(image.values.shape[1]):
        channel = image.values[:, c : c + 1].contiguous()
        mean = averaged(fields.smooth(channel, _WINDOW, slabs), share)
        square = averaged(fields.smooth(channel * channel, _WINDOW, slabs), share)
        variance = (square - mean * mean).clamp(min=0) + _FLOOR
        rows = rows_of(channel, slabs, wanted, 2)
        slopes = [each.slope(rows) for each in beside]
        for k, (a, b) in enumerate(_AXES):
            product = slopes[a] * slopes[b] / variance
            of_a, of_b = all_count[a], all_count[b]
            if of_a is not None and of_b is not None:
                product = torch.where(of_a * of_b != 0, product, 0.0)
            soft = fields.smooth(product, fluid, slabs)
            before = products[k]
            products[k] = soft if before is None else before + soft
    return [each for each in products if each is not None]


def _solved(q: Tensor, field: Tensor) -> Tensor:
    """By L·D·Lᵀ, as solve_damped() of src/registration/curvature/formula.h."""
    x = 1 / (1 + q[0]).clamp(min=1)
    yx, zx = q[3] * x, q[4] * x
    y = 1 / (1 + q[1] - yx * q[3]).clamp(min=1)
    across = q[5] - zx * q[3]
    zy = across * y
    z = 1 / (1 + q[2] - zx * q[4] - zy * across).clamp(min=1)
    v0 = field[..., 0]
    v1 = field[..., 1] - yx * v0
    v2 = (field[..., 2] - (zx * v0 + zy * v1)) * z
    v1 = v1 * y - zy * v2
    return torch.stack([v0 * x - yx * v1 - zx * v2, v1, v2], -1)

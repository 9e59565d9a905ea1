# SPDX-License-Identifier: Apache-2.0
"""The inverse of x + u(x) in torch's own operators: w with u(x + w) + w = 0 at every voxel.

The damped Newton steps of src/fields/inverse.h, taken by all voxels at once. A voxel that has
converged keeps its w; nothing is read from the device to end early.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import torch
from torch import Tensor

_LEAST_STEP, _SINGULAR = 1 / 64, 1e-3


class _Grid(NamedTuple):
    """A field [N,…,rank] as [N·V] voxels; scales are of voxels in a unit of u, along (x, y, z)."""

    field: Tensor  # [N, V, rank]
    voxels: list[Tensor]  # of each: its number along x, y and z, [V]
    extents: list[int]
    scales: list[float]


def _grid(u: Tensor, aligned: bool) -> _Grid:
    extents = list(reversed(u.shape[1:-1]))
    ranges = [torch.arange(n, device=u.device) for n in u.shape[1:-1]]
    voxels = [each.flatten() for each in reversed(torch.meshgrid(*ranges, indexing="ij"))]
    scales = [0.0 if n == 1 else (n - 1) / 2 if aligned else n / 2 for n in extents]
    return _Grid(u.flatten(1, -2), voxels, extents, scales)


class _Residual(NamedTuple):
    r: Tensor  # [N, V, rank]
    by_w: Tensor  # [N, V, component, axis]
    norm_squared: Tensor  # [N, V], in voxels


def _residual(grid: _Grid, w: Tensor) -> _Residual:
    cells, beside, fractions, slopes = [], [], [], []
    for axis, (extent, scale) in enumerate(zip(grid.extents, grid.scales)):
        last = extent - 1
        v = torch.nan_to_num(w[..., axis] * scale, nan=-(last + 2.0)).clamp(-(last + 2), last + 2)
        whole = v.floor()
        cell = grid.voxels[axis] + whole.long()
        outside = (cell < 0) | (cell >= last)
        fractions.append(torch.where(outside, 0.0, v - whole))
        slopes.append(torch.where(outside, 0.0, scale))
        cell = cell.clamp(0, last)
        cells.append(cell)
        beside.append((cell + 1).clamp(max=last))
    rank = len(cells)
    corners = {}
    for bits in itertools.product((0, 1), repeat=rank):  # along x, y and z
        position: Tensor = (beside if bits[-1] else cells)[-1]
        for axis in range(rank - 2, -1, -1):
            position = position * grid.extents[axis] + (beside if bits[axis] else cells)[axis]
        index = position[..., None].expand(-1, -1, rank)
        corners[bits] = grid.field.expand(index.shape[0], -1, -1).gather(1, index)

    def blended(without: int) -> Tensor:
        """The field between the corners; its difference along the axis `without`."""
        values = dict(corners)
        for axis in range(rank):
            f = fractions[axis][..., None]
            merged = {}
            for bits in itertools.product((0, 1), repeat=rank - axis - 1):
                low, high = values[(0, *bits)], values[(1, *bits)]
                merged[bits] = high - low if axis == without else low + f * (high - low)
            values = merged
        return values[()]

    by_w = [slopes[axis][..., None] * blended(axis) for axis in range(rank)]
    r = w + blended(-1)
    units = torch.tensor([each or 1.0 for each in grid.scales], dtype=w.dtype, device=w.device)
    return _Residual(r, torch.stack(by_w, -1), ((r * units) ** 2).sum(-1))


def _newton_step(at: _Residual) -> Tensor:
    """(1 + J)⁻¹·r; r itself where 1 + J is nearly singular."""
    rank = at.r.shape[-1]
    m = at.by_w + torch.eye(rank, dtype=at.r.dtype, device=at.r.device)
    if rank == 2:
        a, b, c, d = m[..., 0, 0], m[..., 0, 1], m[..., 1, 0], m[..., 1, 1]
        det = a * d - b * c
        adjugate = torch.stack([torch.stack([d, -b], -1), torch.stack([-c, a], -1)], -2)
    else:
        rows = [m[..., i, :] for i in range(3)]
        columns = [
            torch.linalg.cross(rows[1], rows[2]),
            torch.linalg.cross(rows[2], rows[0]),
            torch.linalg.cross(rows[0], rows[1]),
        ]
        adjugate = torch.stack(columns, -1)
        det = (rows[0] * columns[0]).sum(-1)
    is_regular = det.abs() > _SINGULAR
    by = torch.where(is_regular, 1 / torch.where(is_regular, det, 1.0), 0.0)
    solved = (adjugate * at.r[..., None, :]).sum(-1) * by[..., None]
    return torch.where(is_regular[..., None], solved, at.r)


def inverse(u: Tensor, iterations: int, aligned: bool, tolerance: float) -> tuple[Tensor, Tensor]:
    """w shaped as u, and the largest norm of u(x + w) + w of each N, in u's units."""
    wide = torch.float64 if u.dtype == torch.float64 else torch.float32
    grid = _grid(u.to(wide), aligned)
    w = -grid.field
    best = _residual(grid, w)
    r, norm_squared, step = best.r, best.norm_squared, _newton_step(best)
    length = torch.ones_like(norm_squared)
    for _ in range(iterations):
        goes_on = norm_squared > tolerance**2
        other = w - length[..., None] * step
        at = _residual(grid, other)
        gains = goes_on & (at.norm_squared < norm_squared)
        is_least = goes_on & ~gains & (length <= _LEAST_STEP)
        w = torch.where(gains[..., None], other, w)
        r = torch.where(gains[..., None], at.r, r)
        norm_squared = torch.where(gains, at.norm_squared, norm_squared)
        step = torch.where(gains[..., None], _newton_step(at), step)
        step = torch.where(is_least[..., None], r, step)
        longer = (2 * length).clamp(max=1)
        shorter = torch.where(is_least, 1.0, length / 2)
        length = torch.where(gains, longer, torch.where(goes_on, shorter, length))
    residual = (r**2).sum(-1).sqrt()
    return w.reshape(u.shape).to(u.dtype), residual.amax(1)

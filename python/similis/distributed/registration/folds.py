# SPDX-License-Identifier: Apache-2.0
"""The guard against folds of src/registration/guard.cc on slabs: no field whose least determinant of
one-sided differences is below a bound is kept."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor
from torch.nn import functional

from .. import fields
from ..gathering import gathered
from ..rows import halos, rows_of
from ..slabs import Slabs

REPAIRS = 20
_DILATION = 2


def _differences(rows: Tensor, axis: int, forward: bool) -> Tensor:
    """To the next voxel along an axis, or from the one before; at the border to the other side."""
    n = rows.shape[axis]
    if n == 1:
        return torch.zeros_like(rows)
    steps = rows.narrow(axis, 1, n - 1) - rows.narrow(axis, 0, n - 1)
    end = steps.narrow(axis, n - 2 if forward else 0, 1)
    return torch.cat([steps, end] if forward else [end, steps], axis)


def _determinants(u: Tensor, slabs: Slabs) -> Tensor:
    """The least of the 2ⁿ determinants of one-sided differences at own voxels, [1,z,Y,X]."""
    wanted = halos(slabs, 1, 1)
    rows = rows_of(u, slabs, wanted, 1)
    if not u.numel():
        return u[..., 0]
    rank = u.shape[-1]
    first = slabs.start - wanted[slabs.rank][0]
    sides = []
    for a in range(rank):  # x, y, z
        axis = rank - a
        both = [_differences(rows, axis, forward) for forward in (True, False)]
        sides.append([each.narrow(1, first, slabs.stop - slabs.start) for each in both])
    least = None
    for chosen in itertools.product((0, 1), repeat=rank):
        c = [[sides[a][chosen[a]][..., i] for a in range(rank)] for i in range(rank)]
        if rank == 2:
            det = (1 + c[0][0]) * (1 + c[1][1]) - c[0][1] * c[1][0]
        else:
            j00, j11, j22 = 1 + c[0][0], 1 + c[1][1], 1 + c[2][2]
            det = j00 * (j11 * j22 - c[1][2] * c[2][1])
            det = det - c[0][1] * (c[1][0] * j22 - c[1][2] * c[2][0])
            det = det + c[0][2] * (c[1][0] * c[2][1] - j11 * c[2][0])
        least = det if least is None else torch.minimum(least, det)
    assert least is not None
    return least


def bad_voxels(u: Tensor, slabs: Slabs, bound: float) -> tuple[Tensor, int, float]:
    """Which own voxels are below the bound, how many of all are, and the least determinant."""
    found = _determinants(u, slabs)
    bad = ~(found >= bound)
    own = float(found.min()) if found.numel() else math.inf
    every = gathered(slabs, torch.tensor([float(bad.sum()), own], dtype=torch.float64, device="cpu"))
    leasts = [float(each[1]) for each in every]
    least = math.nan if any(math.isnan(each) for each in leasts) else min(leasts)
    return bad, int(sum(float(each[0]) for each in every)), least


def repaired(u: Tensor, bad: Tensor, slabs: Slabs) -> Tensor:
    """u smoothed about bad voxels."""
    flags = bad[:, None].to(u.dtype)
    wanted = halos(slabs, _DILATION, _DILATION)
    rows = rows_of(flags, slabs, wanted, 2)
    if flags.numel():
        pool = functional.max_pool3d if flags.dim() == 5 else functional.max_pool2d
        rows = pool(rows, 2 * _DILATION + 1, stride=1, padding=_DILATION)
        flags = rows.narrow(2, slabs.start - wanted[slabs.rank][0], slabs.stop - slabs.start)
    share = fields.smooth(flags, 1.0, slabs)[:, 0, ..., None]
    soft = fields.smooth(u, 1.5, slabs, field=True, truncate=2.0)
    return u + share * (soft - u)


def guard(u: Tensor, slabs: Slabs, bound: float) -> tuple[bool, Tensor, float]:
    """True if u passes, at once or smoothed about its bad voxels up to 20 times; that field, and
    its least determinant. The same answer on every rank."""
    bad, count, least = bad_voxels(u, slabs, bound)
    for _ in range(REPAIRS):
        if count == 0:
            break
        u = repaired(u, bad, slabs)
        bad, count, least = bad_voxels(u, slabs, bound)
    return count == 0, u, least


def guard_or_shorten(u: Tensor, slabs: Slabs, bound: float) -> tuple[Tensor, float]:
    """A field that passes: u, repaired, or 0.9·u until it does, which ends as the identity does."""
    passed, u, least = guard(u, slabs, bound)
    while not passed:
        passed, u, least = guard(u * 0.9, slabs, bound)
    return u, least

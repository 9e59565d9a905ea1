# SPDX-License-Identifier: Apache-2.0
"""The common part of the levels of both deformable stages."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Optional

import torch
from torch import Tensor

from .. import transforms
from .images import Image, identity, units

MOMENTUM = 0.95  # share of the last smoothed gradient that is added to the next one


@dataclass
class LevelPair:
    """fixed on a level's grid; soft_fixed and moving as smooth as the level asks, on their own
    grids. Only the symmetric stage reads soft_fixed."""

    fixed: Image
    soft_fixed: Image
    moving: Image


@dataclass
class Settings:
    """Settings of a level. damping: of Gauss-Newton steps; None if steps follow the gradient."""

    fluid: float
    elastic: float
    min_jacobian: float
    damping: Optional[float]


def without_last_digits(number: float) -> float:
    """A number to 30 bits."""
    mantissa, exponent = math.frexp(number)
    return math.ldexp(round(math.ldexp(mantissa, 30)), exponent - 30)


def drop_last_digits(field: Tensor, largest: float) -> Tensor:
    """A field of f64, whose vectors are about as long as `largest` at most, rounded so far that any
    split goes on from the same bits. A field of f32 stays."""
    if field.dtype != torch.float64:
        return field
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1 - 16)
    return (field / unit).round_().mul_(unit)


def displaced(u: Tensor, by: Tensor, grid: Image) -> Tensor:
    """u(x + by(x)), both in voxels of a grid; beyond the border as there."""
    by_voxel = units(identity(u.shape[-1])[:, :-1], grid.size).to(u.device)
    moved = transforms.sample(
        u.movedim(-1, 1), grid.slabs, displacement=by, grid_affine=by_voxel, padding_mode="border"
    )
    return moved.movedim(1, -1)

# SPDX-License-Identifier: Apache-2.0
"""What the levels of both deformable stages have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

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
    """Of a level; damping of Gauss-Newton steps, None where steps are those of gradients."""

    fluid: float
    elastic: float
    min_jacobian: float
    damping: Optional[float]


def displaced(u: Tensor, by: Tensor, grid: Image) -> Tensor:
    """u(x + by(x)), both in voxels of a grid; beyond the border as there."""
    by_voxel = units(identity(u.shape[-1])[:, :-1], grid.size).to(u.device)
    moved = transforms.sample(
        u.movedim(-1, 1), grid.slabs, displacement=by, grid_affine=by_voxel, padding_mode="border"
    )
    return moved.movedim(1, -1)

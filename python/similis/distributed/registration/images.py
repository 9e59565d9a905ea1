# SPDX-License-Identifier: Apache-2.0
"""Images and fields of a registration on slabs, on the grids of its levels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Optional

import torch
from torch import Tensor

from .. import fields, transforms
from ..slabs import Slabs

_FEWEST = 16  # voxels along an axis of a level
LEAST_SHARE = 1e-3  # of an average that a mask leaves
_HALF = 0.4999  # rounding must not decide on voxels that a mask's edge halves
SOFTNESS = 0.35  # σ of the smoothing of both images before a level, in its voxels


@dataclass
class Image:
    """Rows of an image [1,C,z,Y,X]; the place of voxel i is scale·i + shift in voxels of the level
    at full resolution, by z, y, x. mask: [1,1,z,Y,X] in f32, 1 or 0, and values are 0 where it is;
    None where all voxels count."""

    values: Tensor
    slabs: Slabs
    scale: list[float]
    shift: list[float]
    mask: Optional[Tensor] = None

    @property
    def size(self) -> list[int]:
        return [self.slabs.extent, *self.values.shape[3:]]


def rows_first(numbers: Sequence[float]) -> list[float]:
    return list(numbers)[::-1]


def coordinates(linear: Tensor, shift: Tensor, size: Sequence[int], to: Sequence[int]) -> Tensor:
    """sample()'s matrix [1,d,d+1] of a map of voxels, all by x, y, z; sizes by z, y, x."""
    d = len(to)
    unit = torch.tensor([0.0 if n == 1 else 2 / (n - 1) for n in rows_first(to)]).double()
    half = torch.tensor([(n - 1) / 2 for n in rows_first(size)]).double()
    matrix = torch.zeros(1, d, d + 1, dtype=torch.float64)
    matrix[0, :, :d] = unit[:, None] * linear * half
    moved = unit * (shift + linear @ half) - 1
    matrix[0, :, d] = torch.where(unit == 0, 0.0, moved)
    return matrix


def units(linear: Tensor, to: Sequence[int]) -> Tensor:
    unit = torch.tensor([0.0 if n == 1 else 2 / (n - 1) for n in rows_first(to)]).double()
    return (unit[:, None] * linear)[None]


def between(fixed: Image, affine: Tensor, moving: Image) -> tuple[Tensor, Tensor]:
    """The map of fixed's voxels to moving's, by x, y, z."""

    def of(numbers: Sequence[float]) -> Tensor:
        return torch.tensor(rows_first(numbers)).double()

    d = len(fixed.scale)
    linear = affine[:, :d] * of(fixed.scale) / of(moving.scale)[:, None]
    shift = (affine[:, :d] @ of(fixed.shift) + affine[:, d] - of(moving.shift)) / of(moving.scale)
    return linear, shift


def identity(d: int) -> Tensor:
    return torch.eye(d, d + 1, dtype=torch.float64)


def averaged(values: Tensor, share: Optional[Tensor]) -> Tensor:
    """Averages over the voxels that count; share: of an average that the mask leaves."""
    if share is None:
        return values
    return torch.where(share > LEAST_SHARE, values / share, 0.0)


def in_f64(image: Image) -> Image:
    mask = None if image.mask is None else image.mask.double()
    return replace(image, values=image.values.double(), mask=mask)


def _binary(mask: Optional[Tensor]) -> Optional[Tensor]:
    return None if mask is None else (mask >= _HALF).to(mask.dtype)


def _smoothed(image: Image, sigma: Sequence[float]) -> Image:
    """Its mask has shares."""
    share = None if image.mask is None else fields.smooth(image.mask, sigma, image.slabs)
    values = averaged(fields.smooth(image.values, sigma, image.slabs), share)
    return replace(image, values=values, mask=share)


def blurred(image: Image, sigma: Sequence[float]) -> Image:
    soft = _smoothed(image, sigma)
    return replace(soft, mask=_binary(soft.mask))


def shrunk(image: Image, factor: float, spacing: Sequence[float]) -> Image:
    wanted = factor * min(spacing)
    size = []
    for n, own in zip(image.size, spacing):
        size.append(max(math.floor(n / max(1.0, wanted / own) + 0.5), min(n, _FEWEST)))
    shrink = [n / m for n, m in zip(image.size, size)]
    sigma = [SOFTNESS * each if each > 1.01 else 0.0 for each in shrink]
    if not any(sigma):
        return image
    soft = _smoothed(image, sigma)
    shift = [(n - 1) / 2 - each * (m - 1) / 2 for n, m, each in zip(image.size, size, shrink)]
    empty = soft.values.new_empty([1, 0, 0, *size[1:]])
    grid = Image(empty, Slabs.even(size[0], image.slabs.mesh), shrink, shift)
    result = resampled(soft, grid)
    if soft.mask is None:
        return result
    return replace(result, mask=_binary(resampled(replace(soft, values=soft.mask), grid).values))


def resampled(image: Image, grid: Image) -> Image:
    """An image at the voxels of another grid, replicated outside."""
    linear, shift = between(grid, identity(len(grid.scale)), image)
    matrix = coordinates(linear, shift, grid.size, image.size).to(image.values.device)
    values = transforms.sample(
        image.values, image.slabs, slabs=grid.slabs, affine=matrix, out_shape=grid.size,
        padding_mode="border",
    )  # fmt: skip
    return Image(values, grid.slabs, grid.scale, grid.shift)


def resampled_field(u: Tensor, old: Image, grid: Image) -> Tensor:
    """A field on another grid, in the type of its image."""
    as_image = Image(u.movedim(-1, 1), old.slabs, old.scale, old.shift)
    moved = resampled(as_image, grid).values.movedim(1, -1)
    factors = [a / b for a, b in zip(rows_first(old.scale), rows_first(grid.scale))]
    in_f64 = moved.double() * torch.tensor(factors).double().to(u.device)
    return in_f64.to(grid.values.dtype)

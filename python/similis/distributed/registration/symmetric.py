# SPDX-License-Identifier: Apache-2.0
"""The symmetric stage on slabs, that of src/registration/symmetric.cc: a velocity v moves both images,
by φ = exp(v) and ψ = exp(-v). Per iteration, with M' the moving image at A(x):

    a = ∂/∂φ of metrics(F, M at A(φ)), b = ∂/∂ψ of metrics(M', F at ψ); loss -½ of their sum
      ─> g = G_fluid (a - b + momentum · g) ─> v' = G_elastic (v + step · g / largest)

One of both images is the base by what it is, so that swapped images invert each other: where it is
moving, `inverse_on` lays the result on fixed's grid.
"""

from __future__ import annotations

import itertools
import math
from typing import Optional

import torch
from torch import Tensor

from ...volumes.register_inputs import axes_turn
from .. import fields, transforms
from ..gathering import gathered, sum_of_ranks
from ..slabs import Slabs
from .folds import REPAIRS, bad_voxels, guard_or_shorten, repaired
from .images import Image, coordinates, identity, rows_first, units
from .levels import MOMENTUM, LevelPair, Settings, displaced, drop_last_digits
from .linear import Placed
from .metrics import MovedMetrics, Term, laid_on

_LEAST_SQUARINGS, _MOST_SQUARINGS = 6, 30
_SHORT = 0.25  # voxels that the first of the squared steps is at most
_LEAST_OF_INVERSE = 1e-2  # determinant of one-sided differences
_STEPS_OF_INVERSE = 3
_SAME = 1e-9  # sums of two splits differ by less


def exponential(v: Tensor, grid: Image, sign: int) -> Tensor:
    """exp(±v) - x, in voxels."""
    own = float(v.square().sum(-1).max()) if v.numel() else 0.0
    every = gathered(grid.slabs, torch.tensor([own], device="cpu").double())
    largest = math.sqrt(max(float(each) for each in every))
    squarings = _LEAST_SQUARINGS
    while squarings < _MOST_SQUARINGS and math.ldexp(largest, -squarings) >= _SHORT:
        squarings += 1
    u = v * math.ldexp(sign, -squarings)
    for _ in range(squarings):
        u = u + displaced(u, u, grid)
    return u


def guard_exponentials(v: Tensor, grid: Image, bound: float) -> tuple[Tensor, float]:
    """A velocity neither of whose exponentials folds: v, smoothed about bad voxels, or shorter; and
    the least determinant."""
    for attempt in itertools.count():
        least, is_bad = 1.0, False
        for sign in (1, -1):
            bad, count, found = bad_voxels(exponential(v, grid, sign), grid.slabs, bound)
            least, is_bad = min(least, found), is_bad or count > 0
            if count > 0 and attempt < REPAIRS:
                v = repaired(v, bad, grid.slabs)
        if not is_bad:
            break
        if attempt >= REPAIRS:
            v = v * 0.9
    return v, least


class SymmetricLevel:
    """field: v in voxels of the level. along: the direction of the next step."""

    along: Tensor

    def __init__(
        self,
        images: LevelPair,
        labels: Optional[LevelPair],
        affine: Tensor,
        terms: list[Term],
        seed: int,
        v: Tensor,
        settings: Settings,
    ) -> None:
        self.field, self._settings, self._grid = v, settings, images.fixed
        unmoved = identity(len(images.fixed.scale))

        def both_ways(pair: LevelPair) -> tuple[tuple[Image, Image], tuple[Image, Image]]:
            still = laid_on(images.fixed, pair.soft_fixed, unmoved)
            other = laid_on(images.fixed, pair.moving, affine)
            return (still, pair.moving), (other, pair.soft_fixed)

        forward, backward = both_ways(images)
        labels_forward, labels_backward = (None, None) if labels is None else both_ways(labels)
        self._forward = MovedMetrics(forward, labels_forward, affine, terms, seed)
        self._backward = MovedMetrics(backward, labels_backward, unmoved, terms, seed)
        self._last: Optional[Tensor] = None

    def differentiate(self) -> float:
        """Finds the next direction; returns the loss."""
        by_moving, g = self._forward.value_and_gradient(exponential(self.field, self._grid, 1))
        by_fixed, other = self._backward.value_and_gradient(exponential(self.field, self._grid, -1))
        g = g.sub_(other)
        if self._last is not None:
            g = g.add_(self._last, alpha=MOMENTUM)
        self.along = self._last = fields.smooth(
            g, self._settings.fluid, self._grid.slabs, field=True, padding="zeros"
        )
        return -(by_moving + by_fixed) / 2

    def advance(self, length: float, largest: float) -> bool:
        """Takes a step of so many voxels along a direction whose longest vector is `largest`. Folds
        are looked for at a level's end."""
        self.along = self._last = drop_last_digits(self.along, largest)
        v = self.field.add(self.along, alpha=length / largest)
        v = fields.smooth(v, self._settings.elastic, self._grid.slabs, field=True)
        self.field = drop_last_digits(v, 1)
        return True


def _numbers_of(placed: Placed, world: str) -> list[float]:
    """The numbers that decide which of two images is the base: of its grid and first channel."""
    image = placed.image
    size = rows_first(image.size)
    values = image.values[0, 0].double()
    sums = [values.sum(), values.square().sum()]
    d = len(size)
    for a in range(d):  # x, y, z
        axis = d - 1 - a
        at = torch.arange(values.shape[axis], device=values.device).double()
        if axis == 0:
            at = at + image.slabs.start
        along = values.sum([k for k in range(d) if k != axis])
        sums.append((along * at).sum())
    whole = sum_of_ranks(image.slabs, torch.stack(sums).cpu()).tolist()
    kept = [*range(d), 3]
    to_itk = torch.tensor(axes_turn(world)[kept][:, kept], device="cpu").double()
    place = (to_itk @ placed.to_mm)[:-1].flatten().tolist()
    return [float(math.prod(size)), *map(float, size), *place, *whole]


def is_base(moving: Placed, fixed: Placed, world: str) -> bool:
    """True if moving is the base: it has fewer voxels, or its grid or intensities come first."""
    for own, other in zip(_numbers_of(moving, world), _numbers_of(fixed, world)):
        if abs(own - other) > _SAME * (abs(own) + abs(other)):
            return own < other
    return False


def _inverse_of(u: Tensor, slabs: Slabs, size: list[int]) -> Tensor:
    """The inverse of u, both in voxels; it may fold."""
    by = torch.tensor([2 / (n - 1) for n in rows_first(size)], device=u.device).to(u.dtype)
    w, _ = fields.invert(u * by, slabs, 60, tolerance=0.002)
    return w / by


def _turned(u: Tensor, linear: Tensor) -> Tensor:
    return u @ linear.to(u.device, u.dtype).T


def inverse_on(to: Image, base: Image, u: Tensor, matrix: Tensor, bound: float) -> tuple[Tensor, float]:
    """For T(p) = A(p + u(p)), u on the base's grid and A its map of voxels to those of `to`, the u' on
    the grid `to` for which T⁻¹(q) = A⁻¹(q + u'(q)); and its least determinant.

    With w the inverse of u and L the linear part of A, u' = L·w(A⁻¹(q)): that is where the search for
    u' = -L·u(A⁻¹(q + u'(q))) starts.
    """
    linear, device = matrix[:, :-1], u.device
    back = torch.linalg.inv(linear)
    place = coordinates(back, -back @ matrix[:, -1], to.size, base.size).to(device)
    by_u = units(back, base.size).to(device)
    w, _ = guard_or_shorten(_inverse_of(u, base.slabs, base.size), base.slabs, _LEAST_OF_INVERSE)
    result = transforms.sample(
        w.movedim(-1, 1), base.slabs, slabs=to.slabs, affine=place, out_shape=to.size,
        padding_mode="border",
    )  # fmt: skip
    found = _turned(result.movedim(1, -1), linear)
    for _ in range(_STEPS_OF_INVERSE):
        moved = transforms.sample(
            u.movedim(-1, 1), base.slabs, slabs=to.slabs, affine=place, displacement=found,
            grid_affine=by_u, padding_mode="border",
        )  # fmt: skip
        found = _turned(moved.movedim(1, -1), -linear)
    return guard_or_shorten(found, to.slabs, bound)

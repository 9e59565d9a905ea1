# SPDX-License-Identifier: Apache-2.0
"""The greedy stage of similis.register() on slabs, from the sharded operations.

    own rows of both images, in [0, 1] by the whole's quantiles
      └─ per level: fixed smoothed and shrunk, moving smoothed; u from the level before
           └─ per iteration: moved = moving at A(x + u) ─> metrics, whole sums ─> gradient to u
              + momentum · the last g ─> G_fluid = g ─> step / largest ─> u' = d + u(x + d) ─> G_elastic ─> guard

The steps are those of src/registration/greedy.cc and docs/registration.md; u is in voxels of a
level. No rank holds a whole image or field.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Callable, Optional, Union

import torch
from torch import Tensor

from ..._functions.register import forward_slabs_to
from ..._functions.register import register as plain_register
from .. import fields, measures, transforms
from ..agreement import Agreement
from .folds import guard, guard_or_shorten
from .intensities import in_0_to_1, least_of_ranks, noise_of
from .images import (
    SOFTNESS,
    Image,
    between,
    coordinates,
    identity,
    resampled_field,
    rows_first,
    shrunk,
    units,
)
from ..gathering import sum_of_ranks
from ..rows import whole_sum
from ..slabs import Slabs

Metric = Union[str, tuple[str, dict[str, Any]]]
_PRESETS = {"quick": (30, 20, 10), "balanced": (50, 40, 20), "accurate": (100, 100, 20)}
_OPTIONS: dict[str, dict[str, Any]] = {
    "lncc": {"window_size": 5, "weight": 1.0},
    "ncc": {"weight": 1.0},
    "mse": {"weight": 1.0},
    "mi": {"bins": 48, "sampling": 1.0, "weight": 1.0},
}
_HALVINGS = 4
_LOSSES_OF_SLOPE = 10
_MOMENTUM = 0.95  # share of the last smoothed gradient that is added to the next one


_QUIET, _ONE_VOXEL = 0.01, 0.02  # noise from which on fluid grows, and by how much for one voxel


@dataclass
class Registered:
    """displacement: own rows of u, [1,z,Y,X,3] in voxels of the fixed image, x first: its point
    x + u(x) lies at A(x + u(x)) of the moving one. history: (shrink factor, iteration, loss) of
    each iteration. min_jacobian: the smallest determinant of x + u(x), one-sided differences."""

    displacement: Tensor
    min_jacobian: float
    history: list[tuple[int, int, float]] = field(default_factory=list)


class _Level:
    def __init__(
        self, fixed: Image, moving: Image, affine: Tensor, terms: list[tuple[str, dict[str, Any]]]
    ) -> None:
        self.fixed, self.moving, self.terms = fixed, moving, terms
        self.linear, self.shift = between(fixed, affine, moving)
        device = fixed.values.device
        self.matrix = coordinates(self.linear, self.shift, fixed.size, moving.size).to(device)
        self.by_u = units(self.linear, moving.size).to(device)

    def inside(self, u: Tensor) -> Tensor:
        """1 where a voxel is moved into the moving image, else 0: [1,1,z,Y,X]."""
        d, slabs = len(self.fixed.scale), self.fixed.slabs
        ranges = [torch.arange(n, device=u.device).double() for n in self.fixed.size]
        ranges[0] = ranges[0][slabs.start : slabs.stop]
        inside = torch.ones(u.shape[:-1], dtype=torch.bool, device=u.device)
        for a in range(d):
            at = torch.full([1] * (d + 1), float(self.shift[a]), device=u.device).float()
            for c in range(d):
                shape = [-1 if k == d - c else 1 for k in range(d + 1)]
                along = float(self.linear[a, c]) * ranges[d - 1 - c]
                at = at + along.float().reshape(shape) + float(self.linear[a, c]) * u[..., c]
            inside &= (at >= 0) & (at <= self.moving.size[d - 1 - a] - 1)
        return inside[:, None].float()

    def value_and_gradient(self, u: Tensor) -> tuple[float, Tensor]:
        """The metrics' weighted sum, and its derivative by u times the number of voxels."""
        slabs = self.fixed.slabs
        weights = self.inside(u)
        count = float(sum_of_ranks(slabs, weights.sum(dtype=torch.float64).reshape(1)))
        u = u.detach().requires_grad_()
        with torch.enable_grad():
            moved = transforms.sample(
                self.moving.values, self.moving.slabs, slabs=slabs, affine=self.matrix,
                displacement=u, grid_affine=self.by_u,
            )  # fmt: skip
        if count == 0:
            return -math.inf, torch.zeros_like(u)
        voxels = math.prod(self.fixed.size)
        held = None if count == voxels else weights
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
        f, slabs = self.fixed.values, self.fixed.slabs
        if name == "lncc":
            return measures.lncc(
                f, j, slabs, window_size=options["window_size"], padding="renormalize",
                valid_mask=weights,
            ).double()  # fmt: skip
        if name == "mi":
            return measures.mutual_information(
                f, j, slabs, num_bins=options["bins"], range=(0.0, 1.0),
                sampling=options["sampling"], mask=weights,
            ).double()  # fmt: skip
        w = 1.0 if weights is None else weights.double()
        a, b = f.double(), j.double()
        if name == "mse":
            return -self._whole(w * (a - b).square()).mean() / count
        # The derivative by the means is 0: deviations add up to 0, though not those of one rank.
        mean_f, mean_j = ((self._whole(w * each) / count).detach() for each in (a, b))
        shape = [1, -1, *[1] * (f.dim() - 2)]
        a, b = a - mean_f.reshape(shape), b - mean_j.reshape(shape)
        ff, jj, fj = (self._whole(w * each) for each in (a * a, b * b, a * b))
        norm = (ff * jj).sqrt()
        return torch.where(norm > 0, fj / torch.where(norm > 0, norm, 1.0), 0.0).mean()

    def _whole(self, values: Tensor) -> Tensor:
        """The sum of each channel over all ranks, differentiable."""
        return whole_sum(values.flatten(2).sum(2)[0], self.fixed.slabs)


def _slope(losses: list[float]) -> float:
    middle = (_LOSSES_OF_SLOPE - 1) / 2
    last = losses[-_LOSSES_OF_SLOPE:]
    squares = sum((i - middle) ** 2 for i in range(_LOSSES_OF_SLOPE))
    return sum((i - middle) * each for i, each in enumerate(last)) / squares


def _terms(metrics: Sequence[Metric]) -> list[tuple[str, dict[str, Any]]]:
    result = []
    for each in [metrics] if isinstance(metrics, str) else metrics:
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


def register(
    fixed: Tensor,
    moving: Tensor,
    slabs: Slabs,
    moving_slabs: Optional[Slabs] = None,
    *,
    affine: Optional[Tensor] = None,
    callback: Optional[Callable[[int, int, float], Any]] = None,
    **options: Any,
) -> Registered:
    """The deformable stage of similis.register() of images in slabs: no rank holds a whole one.

    Args:
        fixed, moving: own rows, [1,C,z,Y,X] or [1,C,y,X], finite; slabs and moving_slabs say which.
        affine: [d,d+1], from fixed's voxels (x, y, z) to moving's: the map before the stage, as
            similis.register() finds it on smaller copies; by default the identity.
        callback: called as callback(level, iteration, loss) on every rank.
        options: spacing, of both images, metrics, preset, iterations, levels, fluid, elastic, step,
            min_jacobian and tolerance, as of similis.register().
    """
    moving_slabs = slabs if moving_slabs is None else moving_slabs
    compared: dict[str, Any] = {name: repr(value) for name, value in options.items()}
    with Agreement("register", slabs, moving_slabs=moving_slabs.sizes, **compared) as agreement:
        (
            spacing, metrics, preset, iterations, levels, fluid, elastic, step, min_jacobian,
            tolerance,
        ) = _completed(options)  # fmt: skip
        agreement.array("fixed", fixed, slabs, 2)
        agreement.array("moving", moving, moving_slabs, 2)
        agreement.whole("affine", affine)
        rank = fixed.dim() - 2
        if rank not in (2, 3) or moving.dim() != fixed.dim() or fixed.shape[0] != 1:
            raise ValueError(
                f"fixed has shape {list(fixed.shape)} and moving {list(moving.shape)}; give "
                "[1,C,z,Y,X] or [1,C,y,X] both"
            )
        if moving.shape[1] != fixed.shape[1]:
            raise ValueError(
                f"moving has {moving.shape[1]} channels and fixed {fixed.shape[1]}; give as many"
            )
        terms = _terms(metrics)
        if preset not in _PRESETS:
            raise ValueError(f"preset is {preset!r}; it must be one of {', '.join(_PRESETS)}")
        if affine is not None and tuple(affine.shape) != (rank, rank + 1):
            raise ValueError(
                f"affine has shape {list(affine.shape)}; it must be {[rank, rank + 1]}"
            )
        millimetres = [1.0] * rank if spacing is None else rows_first(spacing)
        if len(millimetres) != rank or min(millimetres) <= 0:
            raise ValueError(f"spacing is {spacing!r}; it must be {rank} numbers above 0")
        size = [slabs.extent, *fixed.shape[3:]]
        factors, counts = _schedule(size, preset, levels, iterations)
    is_mi = all(name == "mi" for name, _ in terms)
    follows_noise = fluid is None and not is_mi and factors[-1] == 1
    fluid = (4.0 if is_mi else 3.0) if fluid is None else fluid
    elastic = 0.25 if elastic is None else elastic
    matrix = identity(rank) if affine is None else affine.double().cpu()
    one, zero = [1.0] * rank, [0.0] * rank
    with torch.no_grad():
        whole = Image(in_0_to_1("fixed", fixed.detach(), slabs), slabs, one, zero)
        other = Image(in_0_to_1("moving", moving.detach(), moving_slabs), moving_slabs, one, zero)
        by_noise = 0.0
        if follows_noise:
            own, others = noise_of(whole.values, slabs), noise_of(other.values, moving_slabs)
            noise = math.hypot(own, others) / math.sqrt(2)
            by_noise = min(max((noise - _QUIET) / _ONE_VOXEL, 0.0), 1.0)
        history: list[tuple[int, int, float]] = []
        u, before = None, whole
        goes_on = True
        for factor, count in zip(factors, counts):
            grid = shrunk(whole, factor, millimetres)
            soft = other
            if factor > 1:
                sigma = [SOFTNESS * factor * min(millimetres) / each for each in millimetres]
                soft = Image(
                    fields.smooth(other.values, sigma, moving_slabs), moving_slabs, one, zero
                )
            if u is None:
                u = grid.values.new_zeros([1, *grid.values.shape[2:], rank])
            elif grid.size != before.size:
                u = resampled_field(u, before, grid)
            u, _ = guard_or_shorten(u, grid.slabs, min_jacobian)
            before = grid
            if factor == 1:
                fluid += by_noise
            level = _Level(grid, soft, matrix, terms)
            losses: list[float] = []
            last: Optional[Tensor] = None
            for k in range(count):
                value, g = level.value_and_gradient(u)
                losses.append(-value)
                history.append((factor, k, -value))
                if callback is not None and callback(factor, k, -value) is False:
                    goes_on = False
                    break
                if last is not None:
                    g = g.add_(last, alpha=_MOMENTUM)
                last = g = fields.smooth(g, fluid, grid.slabs, field=True, padding="zeros")
                share = k / count
                is_full_step = share < 0.5
                length = step * (1.0 if is_full_step else 0.2 + 1.6 * (1 - share))
                found = _stepped(u, g, grid, length, elastic, min_jacobian)
                if found is None:
                    break
                u = found
                is_flat = len(losses) >= _LOSSES_OF_SLOPE and -_slope(losses) < tolerance
                if is_flat and not is_full_step:
                    break
            if not goes_on:
                break
        assert u is not None
        if before.size != whole.size:
            u = resampled_field(u, before, whole)
        u, least = guard_or_shorten(u, slabs, min_jacobian)
    return Registered(u, least, history)


forward_slabs_to(register)

_TAKEN = (
    "spacing", "metrics", "preset", "iterations", "levels", "fluid", "elastic", "step",
    "min_jacobian", "tolerance",
)  # fmt: skip


def _completed(options: dict[str, Any]) -> list[Any]:
    """The values of the options that are taken, completed by similis.register()'s defaults."""
    for name in options:
        if name not in _TAKEN:
            raise ValueError(f"there is no option {name} on slabs")
    defaults: dict[str, Any] = plain_register.__kwdefaults__ or {}
    return [options.get(name, defaults[name]) for name in _TAKEN]


def _schedule(
    size: Sequence[int],
    preset: str,
    levels: Optional[Sequence[int]],
    iterations: Optional[Sequence[int]],
) -> tuple[list[int], list[int]]:
    factors = [4, 2, 1] if levels is None else [int(each) for each in levels]
    if levels is None:
        most = 150
        while max(size) > most and (iterations is None or len(iterations) != len(factors)):
            factors.insert(0, 2 * factors[0])
            most *= 2
    counts = [] if iterations is None else [int(each) for each in iterations]
    if iterations is None:
        last = len(factors) - 1
        counts = [_PRESETS[preset][max(2 - (last - i), 0)] for i in range(len(factors))]
    if len(counts) != len(factors) or not factors or min(factors) < 1 or min(counts) < 0:
        raise ValueError(
            f"levels is {factors} and iterations {counts}; give as many numbers of one as of the "
            "other"
        )
    return factors, counts


def _stepped(
    u: Tensor, g: Tensor, grid: Image, length: float, elastic: float, bound: float
) -> Optional[Tensor]:
    """The field after a step of so many voxels along g; None if no step is valid."""
    own = float(g.square().sum(-1).max()) if g.numel() else 0.0
    largest = math.sqrt(-least_of_ranks(grid.slabs, -own))
    if not largest > 0 or not math.isfinite(largest):
        return None
    d = g * (length / largest)
    by_voxel = units(identity(u.shape[-1])[:, :-1], grid.size).to(u.device)
    for halvings in range(_HALVINGS + 1):
        d = d * 0.5 if halvings else d
        moved = transforms.sample(
            u.movedim(-1, 1), grid.slabs, displacement=d, grid_affine=by_voxel,
            padding_mode="border",
        )  # fmt: skip
        composed = d + moved.movedim(1, -1)
        composed = fields.smooth(composed, elastic, grid.slabs, field=True)
        passed, repaired, _ = guard(composed, grid.slabs, bound)
        if passed:
            return repaired
    return None

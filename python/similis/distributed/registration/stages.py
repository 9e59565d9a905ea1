# SPDX-License-Identifier: Apache-2.0
"""similis.register() on slabs, whose greedy stage is made of the sharded operations.

    own rows of both images, in [0, 1] by the whole's quantiles
      │ linear stages on smaller copies, which find A (linear.py)
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
from .curvature import Preconditioner
from .intensities import in_0_to_1, noise_of, without_gaps
from .linear import (
    LINEAR,
    Placed,
    found_map,
    mask_of,
    place_of,
    refuse_options,
    stages_of,
    start_of,
)
from .images import (
    SOFTNESS,
    Image,
    between,
    blurred,
    coordinates,
    identity,
    resampled_field,
    shrunk,
    units,
)
from ..gathering import gathered, sum_of_ranks
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
_INSIDE_MASK = 0.999  # of a moved mask, which counts from there on
_HALVINGS = 4
_LOSSES_OF_SLOPE = 10
_MOMENTUM = 0.95  # share of the last smoothed gradient that is added to the next one


_QUIET, _ONE_VOXEL = 0.01, 0.02  # noise from which on fluid grows, and by how much for one voxel
_UNDAMPED = 0.0075  # noise up to which the damping of Gauss-Newton steps is 1


@dataclass
class Registered:
    """affine: A, [d,d+1] in f64, from fixed's voxels (x, y, z) to moving's, on every rank.
    displacement: own rows of u, [1,z,Y,X,3] in voxels of the fixed image, x first: its point
    x lies at A(x + u(x)) of the moving one; None without a deformable stage. min_jacobian: the
    smallest determinant of x + u(x), one-sided differences. history: of each iteration its stage,
    level (shrink factor; 0 in linear stages), iteration and loss."""

    affine: Tensor
    displacement: Optional[Tensor]
    min_jacobian: float
    history: list[dict[str, Any]] = field(default_factory=list)


class _Level:
    def __init__(
        self,
        fixed: Image,
        moving: Image,
        affine: Tensor,
        terms: list[tuple[str, dict[str, Any]]],
        seed: int,
    ) -> None:
        self.fixed, self.moving, self.terms, self.seed = fixed, moving, terms, seed
        self.linear, self.shift = between(fixed, affine, moving)
        device = fixed.values.device
        self.matrix = coordinates(self.linear, self.shift, fixed.size, moving.size).to(device)
        self.by_u = units(self.linear, moving.size).to(device)

    def inside(self, u: Tensor) -> Tensor:
        """1 where a voxel counts and is moved to one that does, else 0: [1,1,z,Y,X]."""
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
        inside = inside[:, None]
        if self.fixed.mask is not None:
            inside &= self.fixed.mask != 0
        if self.moving.mask is not None:
            moved = transforms.sample(
                self.moving.mask, self.moving.slabs, slabs=slabs, affine=self.matrix,
                displacement=u, grid_affine=self.by_u,
            )  # fmt: skip
            inside &= moved >= _INSIDE_MASK
        return inside.float()

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
                sampling=options["sampling"], seed=self.seed, mask=weights,
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
    init: Any = "auto",
    fixed_mask: Optional[Tensor] = None,
    moving_mask: Optional[Tensor] = None,
    callback: Optional[Callable[[str, int, int, float], Any]] = None,
    **options: Any,
) -> Registered:
    """similis.register() of images in slabs: no rank holds a large one whole.

    Linear stages are similis.register()'s on copies of at most 165 voxels along the longest side,
    which every rank has; their map is the same bits on all ranks and for any split.

    Args:
        fixed, moving: own rows, [1,C,z,Y,X] or [1,C,y,X]; slabs and moving_slabs say which.
        affine: instead of init, [d,d+1] from fixed's voxels (x, y, z) to moving's.
        init: the map before the first stage, as of similis.register(); a map is in mm. Without a
            linear stage nothing compares maps, and "auto" is the identity.
        fixed_mask, moving_mask: own rows [z,Y,X] or [1,1,z,Y,X], in slabs as their image; voxels that
            are 0 add nothing.
        callback: called as callback(stage, level, iteration, loss), on every rank that gives one. If
            one of them returns False, all end after this iteration with the last valid field.
        options: stages (but symmetric), metrics (but dice), linear_metric, preset, iterations,
            levels, fluid, elastic, step, min_jacobian, tolerance, nan, seed, spacing, fixed_affine,
            moving_affine and world, as of similis.register().
    """
    moving_slabs = slabs if moving_slabs is None else moving_slabs
    compared: dict[str, Any] = {name: repr(value) for name, value in options.items()}
    with Agreement(
        "register", slabs, moving_slabs=moving_slabs.sizes, init=repr(init), **compared
    ) as agreement:
        given = _completed(options)
        agreement.array("fixed", fixed, slabs, 2)
        agreement.array("moving", moving, moving_slabs, 2)
        agreement.whole("affine", affine)
        rank = fixed.dim() - 2
        _require_pair(fixed, moving, slabs, moving_slabs)
        own_mask = mask_of(agreement, "fixed_mask", fixed_mask, fixed, slabs)
        other_mask = mask_of(agreement, "moving_mask", moving_mask, moving, moving_slabs)
        if callback is not None and not callable(callback):
            raise TypeError(f"callback is of type {type(callback).__name__}; it must be a function")
        terms = _terms(given["metrics"])
        stages = stages_of(given["stages"])
        own_to_mm, other_to_mm = (place_of(name, given, rank) for name in ("fixed", "moving"))
        start = start_of(init, affine, own_to_mm, other_to_mm, given["world"])
        numbers = {"fixed_affine": own_to_mm, "moving_affine": other_to_mm, "init": start}
        for name, each in numbers.items():  # repr() rounds those of arrays
            agreement.entries[name] = each if isinstance(each, str) else each.tolist()
        size = [slabs.extent, *fixed.shape[3:]]
        if given["preset"] not in _PRESETS:
            raise ValueError(
                f"preset is {given['preset']!r}; it must be one of {', '.join(_PRESETS)}"
            )
        factors, counts = _schedule(size, given["preset"], given["levels"], given["iterations"])
        of_linear = {name: given[name] for name in ("linear_metric", "seed", "world")}
        if given["nan"] not in ("error", "mask"):
            raise ValueError(f"nan is {given['nan']!r}; it must be error or mask")
        of_greedy = {
            name: given[name]
            for name in (
                "metrics", "preset", "fluid", "elastic", "step", "min_jacobian", "tolerance",
            )
        }  # fmt: skip
        refuse_options(
            rank, {**of_linear, **of_greedy, "stages": stages, "levels": factors, "iterations": counts}
        )
    linear = [each for each in stages if each in LINEAR]
    with torch.no_grad():

        def placed(
            name: str, values: Tensor, mask: Optional[Tensor], rows: Slabs, to_mm: Tensor
        ) -> Placed:
            values = values.detach()
            mask = without_gaps(name, values, mask, rows, given["nan"] == "mask")
            scaled = in_0_to_1(name, values, mask, rows)
            return Placed(values, Image(scaled, rows, [1.0] * rank, [0.0] * rank, mask), to_mm)

        own_placed = placed("fixed", fixed, own_mask, slabs, own_to_mm)
        other_placed = placed("moving", moving, other_mask, moving_slabs, other_to_mm)
        found = found_map(own_placed, other_placed, start, linear, of_linear, callback)
        in_voxels = torch.linalg.inv(other_to_mm) @ found.in_mm @ own_to_mm
        result = Registered(in_voxels[:-1], None, 1.0, found.history)
        if "deformable" not in stages or found.was_stopped:
            return result
        greedy = _Greedy(own_placed, other_placed, in_voxels[:-1], terms, of_greedy, given["seed"])
        result.displacement, result.min_jacobian = greedy.run(
            factors, counts, callback, result.history
        )
    return result


forward_slabs_to(register)

_TAKEN = (
    "stages", "metrics", "linear_metric", "preset", "iterations", "levels", "fluid", "elastic", "step",
    "min_jacobian", "tolerance", "nan", "seed", "spacing", "fixed_affine", "moving_affine", "world",
)  # fmt: skip


def _completed(options: dict[str, Any]) -> dict[str, Any]:
    """The options that are taken, completed by similis.register()'s defaults."""
    for name in options:
        if name not in _TAKEN:
            raise ValueError(f"there is no option {name} on slabs")
    defaults: dict[str, Any] = plain_register.__kwdefaults__ or {}
    return {name: options.get(name, defaults[name]) for name in _TAKEN}


def _require_pair(fixed: Tensor, moving: Tensor, slabs: Slabs, moving_slabs: Slabs) -> None:
    if fixed.dim() not in (4, 5) or moving.dim() != fixed.dim() or fixed.shape[0] != 1:
        raise ValueError(
            f"fixed has shape {list(fixed.shape)} and moving {list(moving.shape)}; give "
            "[1,C,z,Y,X] or [1,C,y,X] both"
        )
    if moving.shape[1] != fixed.shape[1]:
        raise ValueError(
            f"moving has {moving.shape[1]} channels and fixed {fixed.shape[1]}; give as many"
        )
    for name, image, rows in (("fixed", fixed, slabs), ("moving", moving, moving_slabs)):
        if min(rows.extent, *image.shape[3:]) < 2:
            raise ValueError(f"{name} has an axis of 1 voxel; every axis must have 2 or more")


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


class _Greedy:
    """The greedy stage."""

    def __init__(
        self,
        fixed: Placed,
        moving: Placed,
        matrix: Tensor,
        terms: list[tuple[str, dict[str, Any]]],
        options: dict[str, Any],
        seed: int,
    ) -> None:
        self.fixed, self.moving, self.matrix, self.terms = fixed, moving, matrix, terms
        self.seed, self.step, self.tolerance = seed, options["step"], options["tolerance"]
        self.min_jacobian = options["min_jacobian"]
        is_mi = all(name == "mi" for name, _ in terms)
        fluid, elastic = options["fluid"], options["elastic"]
        self.follows_noise = fluid is None and not is_mi
        has_mask = fixed.image.mask is not None or moving.image.mask is not None
        has_lncc = any(name == "lncc" for name, _ in terms)
        # Volumes with a mask take Gauss-Newton steps in the last level.
        self.is_damped = len(fixed.image.size) == 3 and has_mask and has_lncc
        self.fluid = (4.0 if is_mi else 3.0) if fluid is None else fluid
        self.elastic = 0.25 if elastic is None else elastic

    def run(
        self,
        factors: Sequence[int],
        counts: Sequence[int],
        callback: Optional[Callable[[str, int, int, float], Any]],
        history: list[dict[str, Any]],
    ) -> tuple[Tensor, float]:
        """Own rows of u, and the least determinant."""
        whole, slabs = self.fixed.image, self.fixed.image.slabs
        asks_for_noise = (self.follows_noise or self.is_damped) and factors[-1] == 1
        noise = self._noise() if asks_for_noise else 0.0
        u, before = None, whole
        for factor, count in zip(factors, counts):
            grid, soft = self._level_images(factor)
            if u is None:
                u = grid.values.new_zeros([1, *grid.values.shape[2:], len(grid.scale)])
            elif grid.size != before.size:
                u = resampled_field(u, before, grid)
            u, _ = guard_or_shorten(u, grid.slabs, self.min_jacobian)
            before = grid
            fluid, damped = self.fluid, None
            if factor == 1 and self.follows_noise:
                fluid += min(max((noise - _QUIET) / _ONE_VOXEL, 0.0), 1.0)
            if factor == 1 and self.is_damped:
                damped = Preconditioner(grid, fluid, max(noise / _UNDAMPED, 1.0) ** 4)
            level = _Level(grid, soft, self.matrix, self.terms, self.seed)
            losses: list[float] = []
            last: Optional[Tensor] = None
            goes_on = True
            for k in range(count):
                value, g = level.value_and_gradient(u)
                losses.append(-value)
                history.append(
                    {"stage": "deformable", "level": factor, "iteration": k, "loss": -value}
                )
                if callback is not None:
                    goes_on = callback("deformable", factor, k, -value) is not False
                if last is not None:
                    g = g.add_(last, alpha=_MOMENTUM)
                last = g = fields.smooth(g, fluid, grid.slabs, field=True, padding="zeros")
                along = g if damped is None else damped.solve(g)
                largest, goes_on = _largest(along, grid.slabs, goes_on)
                if not goes_on:
                    break
                share = k / count
                is_full_step = share < 0.5
                length = self.step * (1.0 if is_full_step else 0.2 + 1.6 * (1 - share))
                found = _stepped(u, along, grid, largest, length, self.elastic, self.min_jacobian)
                if found is None:
                    break
                u = found
                is_flat = len(losses) >= _LOSSES_OF_SLOPE and -_slope(losses) < self.tolerance
                if is_flat and not is_full_step:
                    break
            if not goes_on:
                break
        assert u is not None
        if before.size != whole.size:
            u = resampled_field(u, before, whole)
        return guard_or_shorten(u, slabs, self.min_jacobian)

    def _noise(self) -> float:
        own, other = (noise_of(each.image.values, each.image.slabs) for each in (self.fixed, self.moving))
        return math.hypot(own, other) / math.sqrt(2)

    def _level_images(self, factor: int) -> tuple[Image, Image]:
        """fixed on the level's grid, and moving as smooth, on its own."""
        spacing, moving = self.fixed.spacing, self.moving.image
        grid = shrunk(self.fixed.image, factor, spacing)
        if factor == 1:
            return grid, moving
        sigma = [SOFTNESS * factor * min(spacing) / each for each in self.moving.spacing]
        return grid, blurred(moving, sigma)


def _largest(g: Tensor, slabs: Slabs, goes_on: bool) -> tuple[float, bool]:
    """The length of the longest vector of all ranks, and whether no rank ends here."""
    own = float(g.square().sum(-1).max()) if g.numel() else 0.0
    every = gathered(slabs, torch.tensor([own, float(goes_on)], device="cpu").double())
    return math.sqrt(max(float(each[0]) for each in every)), all(bool(each[1]) for each in every)


def _stepped(
    u: Tensor,
    g: Tensor,
    grid: Image,
    largest: float,
    length: float,
    elastic: float,
    bound: float,
) -> Optional[Tensor]:
    """The field after a step of so many voxels along g, whose longest vector is `largest`; None if no
    step is valid."""
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

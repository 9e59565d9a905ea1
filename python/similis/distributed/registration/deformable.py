# SPDX-License-Identifier: Apache-2.0
"""The levels of a deformable stage on slabs, their steps and their ends, as those of
src/registration/deformable.cc. greedy.py and symmetric.py have the stages' own steps.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable, Optional, Union

import torch
from torch import Tensor

from ..gathering import gathered
from ..slabs import Slabs
from .folds import guard_or_shorten
from .greedy import GreedyLevel
from .images import SOFTNESS, Image, blurred, in_f64, resampled_field, shrunk
from .intensities import noise_of
from .levels import LevelPair, Settings, without_last_digits
from .linear import Placed
from .metrics import Term
from .symmetric import SymmetricLevel, exponential, guard_exponentials

Level = Union[GreedyLevel, SymmetricLevel]
Callback = Callable[[str, int, int, float], Any]
_PRESETS = {"quick": (30, 20, 10), "balanced": (50, 40, 20), "accurate": (100, 100, 20)}
_LOSSES_OF_SLOPE = 10
_QUIET, _ONE_VOXEL = 0.01, 0.02  # noise from which on fluid grows, and by how much for one voxel
_IN_PLANE = 2.7  # how much more noise counts in a plane, where smoothing averages fewer voxels
_UNDAMPED = 0.0075  # noise up to which the damping of Gauss-Newton steps is 1


def schedule_of(
    size: Sequence[int],
    preset: str,
    levels: Optional[Sequence[int]],
    iterations: Optional[Sequence[int]],
) -> tuple[list[int], list[int]]:
    """Shrink factors, and iterations of each."""
    for name, given in (("levels", levels), ("iterations", iterations)):
        if given is not None and not _are_whole(given):
            raise ValueError(f"{name} is {given!r}; it must be whole numbers, coarse to fine")
    if preset not in _PRESETS:
        raise ValueError(f"preset is {preset!r}; it must be one of {', '.join(_PRESETS)}")
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


def _are_whole(given: Any) -> bool:
    try:
        return bool([operator.index(each) for each in given]) and not isinstance(given, (str, bytes))
    except TypeError:
        return False


@dataclass
class Pair:
    """The images of a stage, at full resolution. labels: images with a channel for each label;
    None if no metric is dice. matrix: the map before the stage, of voxels."""

    fixed: Placed
    moving: Placed
    labels: Optional[tuple[Image, Image]]
    matrix: Tensor


def _slope(losses: list[float]) -> float:
    middle = (_LOSSES_OF_SLOPE - 1) / 2
    last = losses[-_LOSSES_OF_SLOPE:]
    squares = sum((i - middle) ** 2 for i in range(_LOSSES_OF_SLOPE))
    return sum((i - middle) * each for i, each in enumerate(last)) / squares


class Deformable:
    """The deformable or the symmetric stage."""

    def __init__(
        self,
        stage: str,
        pair: Pair,
        terms: list[Term],
        options: dict[str, Any],
    ) -> None:
        self.stage, self.pair, self.terms = stage, pair, terms
        self.is_symmetric = stage == "symmetric"
        self.seed, self.step, self.tolerance = options["seed"], options["step"], options["tolerance"]
        self.min_jacobian = options["min_jacobian"]
        names = [name for name, _ in terms]
        fluid, elastic = options["fluid"], options["elastic"]
        # Labels have no noise, and mutual information is smoothed more already.
        self.follows_noise = fluid is None and any(each not in ("mi", "dice") for each in names)
        images = (pair.fixed.image, pair.moving.image)
        has_mask = any(each.mask is not None for each in images)
        # Volumes with a mask take Gauss-Newton steps in the last level of the greedy stage.
        is_greedy_volume = not self.is_symmetric and len(images[0].size) == 3
        self.is_damped = is_greedy_volume and has_mask and "lncc" in names
        default = 4.0 if all(each == "mi" for each in names) else 2.5 if self.is_symmetric else 3.0
        self.fluid = default if fluid is None else fluid
        self.elastic = 0.25 if elastic is None else elastic

    def run(
        self,
        factors: Sequence[int],
        counts: Sequence[int],
        callback: Optional[Callback],
        history: list[dict[str, Any]],
    ) -> tuple[Tensor, float]:
        """Own rows of u, and the least determinant."""
        whole = self.pair.fixed.image
        asks_for_noise = (self.follows_noise or self.is_damped) and factors[-1] == 1
        noise = self._noise() if asks_for_noise else 0.0
        field: Optional[Tensor] = None
        before = whole
        for factor, count in zip(factors, counts):
            images = self._level_images(self.pair.fixed.image, self.pair.moving.image, factor)
            labels = None
            if self.pair.labels is not None:
                labels = self._level_images(*self.pair.labels, factor)
            grid = images.fixed
            if field is None:
                field = grid.values.new_zeros([1, *grid.values.shape[2:], len(grid.scale)])
            else:
                if grid.size != before.size or field.dtype != grid.values.dtype:
                    field = resampled_field(field, before, grid)
                field, _ = self._settled(field, grid)
            before = grid
            level = self._level(factor, images, labels, field, noise)
            field = None  # the level holds it, and frees it with its first step
            goes_on = self._iterated(level, factor, count, grid.slabs, callback, history)
            field = level.field
            del level
            if self.is_symmetric:
                field, _ = self._settled(field, grid)
            if not goes_on:
                break
        assert field is not None
        if field.dtype != whole.values.dtype:
            field = resampled_field(field, before, whole)
        field, least = self._settled(field, whole)
        return exponential(field, whole, 1) if self.is_symmetric else field, least

    def _settled(self, field: Tensor, grid: Image) -> tuple[Tensor, float]:
        """A field that passes the guard, and its least determinant."""
        if self.is_symmetric:
            return guard_exponentials(field, grid, self.min_jacobian)
        return guard_or_shorten(field, grid.slabs, self.min_jacobian)

    def _level(
        self,
        factor: int,
        images: LevelPair,
        labels: Optional[LevelPair],
        field: Tensor,
        noise: float,
    ) -> Level:
        settings = Settings(self.fluid, self.elastic, self.min_jacobian, None)
        if factor == 1 and self.follows_noise:
            counted = _IN_PLANE * noise if field.shape[-1] == 2 else noise
            settings.fluid += min(max((counted - _QUIET) / _ONE_VOXEL, 0.0), 1.0)
        if factor == 1 and self.is_damped:
            settings.damping = max(noise / _UNDAMPED, 1.0) ** 4
        make = SymmetricLevel if self.is_symmetric else GreedyLevel
        return make(images, labels, self.pair.matrix, self.terms, self.seed, field, settings)

    def _iterated(
        self,
        level: Level,
        factor: int,
        count: int,
        slabs: Slabs,
        callback: Optional[Callback],
        history: list[dict[str, Any]],
    ) -> bool:
        """True if no rank's callback has ended the stage."""
        losses: list[float] = []
        for k in range(count):
            goes_on = True
            losses.append(level.differentiate())
            history.append(
                {"stage": self.stage, "level": factor, "iteration": k, "loss": losses[-1]}
            )
            if callback is not None:
                goes_on = callback(self.stage, factor, k, losses[-1]) is not False
            largest, goes_on = _largest(level.along, slabs, goes_on)
            if not goes_on:
                return False
            share = k / count
            is_full_step = share < 0.5
            length = self.step * (1.0 if is_full_step else 0.2 + 1.6 * (1 - share))
            if not largest > 0 or not math.isfinite(largest) or not level.advance(length, largest):
                break
            is_flat = len(losses) >= _LOSSES_OF_SLOPE and -_slope(losses) < self.tolerance
            if is_flat and not is_full_step:
                break
        return True

    def _noise(self) -> float:
        images = (self.pair.fixed.image, self.pair.moving.image)
        own, other = (noise_of(each.values, each.slabs) for each in images)
        return math.hypot(own, other) / math.sqrt(2)

    def _level_images(self, fixed: Image, moving: Image, factor: int) -> LevelPair:
        """fixed on the level's grid, and both as smooth on their own; those of coarse levels in f64."""
        spacing, other = self.pair.fixed.spacing, self.pair.moving.spacing
        if factor == 1:
            return LevelPair(fixed, fixed, moving)
        fixed, moving = in_f64(fixed), in_f64(moving)
        millimetres = SOFTNESS * factor * min(spacing)
        soft = fixed
        if self.is_symmetric:
            soft = blurred(fixed, [millimetres / each for each in spacing])
        sigma = [millimetres / each for each in other]
        return LevelPair(shrunk(fixed, factor, spacing), soft, blurred(moving, sigma))


def _largest(g: Tensor, slabs: Slabs, goes_on: bool) -> tuple[float, bool]:
    """The length of the longest vector of all ranks, and whether no rank ends here."""
    own = float(g.square().sum(-1).max()) if g.numel() else 0.0
    every = gathered(slabs, torch.tensor([own, float(goes_on)], device="cpu").double())
    largest = without_last_digits(math.sqrt(max(float(each[0]) for each in every)))
    return largest, all(bool(each[1]) for each in every)

# SPDX-License-Identifier: Apache-2.0
"""similis.register() on slabs, whose deformable stages are made of the sharded operations.

    own rows of both images, in [0, 1] by the whole's quantiles
      │ linear stages on smaller copies, which find A (linear.py)
      └─ per level: fixed smoothed and shrunk, moving smoothed; the field from the level before
           └─ per iteration: a step of the greedy stage (greedy.py) or the symmetric one (symmetric.py)

The steps are those of src/registration and docs/registration.md; fields are in voxels of a level.
No rank holds a whole image or field.
"""

from __future__ import annotations

from typing import Any, Callable, Optional

import torch
from torch import Tensor

from ..._functions.register import forward_slabs_to
from ..._functions.register import register as plain_register
from ..agreement import Agreement, heard
from ..slabs import Slabs, require_slabs
from .deformable import Deformable, Pair, schedule_of
from .images import Image
from .intensities import in_0_to_1, without_gaps
from .labels import channels_of, labels_of, overlaps
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
from .metrics import terms_of
from .registered import Places, Registered, laid
from .symmetric import inverse_on, is_base

@heard
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
    fixed_labels: Optional[Tensor] = None,
    moving_labels: Optional[Tensor] = None,
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
        fixed_labels, moving_labels: own rows of integers, given like masks. The result has own rows
            of moving's on fixed's grid, and the overlap of each label over all ranks. They enter the
            loss only with the metric dice.
        callback: called as callback(stage, level, iteration, loss), on every rank that gives one. If
            one of them returns False, all end after this iteration with the last valid field.
        options: stages, metrics, linear_metric, preset, iterations,
            levels, fluid, elastic, step, min_jacobian, tolerance, nan, seed, spacing, fixed_affine,
            moving_affine and world, as of similis.register().
    """
    moving_slabs = slabs if moving_slabs is None else moving_slabs
    require_slabs("register", "moving_slabs", moving_slabs)
    compared: dict[str, Any] = {name: repr(value) for name, value in options.items()}
    with Agreement(
        "register", slabs, moving_slabs=moving_slabs.sizes, init=repr(init), **compared
    ) as agreement:
        given = _completed(options)
        for name, image, rows in (("fixed", fixed, slabs), ("moving", moving, moving_slabs)):
            if isinstance(image, Tensor) and image.dim() not in (4, 5):
                raise ValueError(
                    f"{name} has shape {list(image.shape)}; it must be [1,C,z,Y,X] or [1,C,y,X]"
                )
            agreement.array(name, image, rows, 2)
        agreement.whole("affine", affine)
        rank = fixed.dim() - 2
        _require_pair(fixed, moving, slabs, moving_slabs)
        own_mask = mask_of(agreement, "fixed_mask", fixed_mask, fixed, slabs)
        other_mask = mask_of(agreement, "moving_mask", moving_mask, moving, moving_slabs)
        if callback is not None and not callable(callback):
            raise TypeError(f"callback is of type {type(callback).__name__}; it must be a function")
        of_fixed = labels_of(agreement, "fixed_labels", fixed_labels, fixed, slabs)
        of_moving = labels_of(agreement, "moving_labels", moving_labels, moving, moving_slabs)
        terms = terms_of(given["metrics"])
        has_dice = any(name == "dice" for name, _ in terms)
        if of_fixed is not None and of_moving is None:
            raise ValueError(
                "fixed_labels are given without moving_labels, with which they are compared"
            )
        if has_dice and of_fixed is None:
            raise ValueError(
                "the metric dice is given without fixed_labels and moving_labels, which it compares"
            )
        stages = stages_of(given["stages"])
        own_to_mm, other_to_mm = (place_of(name, given, rank) for name in ("fixed", "moving"))
        start = start_of(init, affine, own_to_mm, other_to_mm, given["world"])
        numbers = {"fixed_affine": own_to_mm, "moving_affine": other_to_mm, "init": start}
        for name, each in numbers.items():  # repr() rounds those of arrays
            agreement.entries[name] = each if isinstance(each, str) else each.tolist()
        size = [slabs.extent, *fixed.shape[3:]]
        factors, counts = schedule_of(size, given["preset"], given["levels"], given["iterations"])
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

        own = placed("fixed", fixed, own_mask, slabs, own_to_mm)
        other = placed("moving", moving, other_mask, moving_slabs, other_to_mm)
        places = Places(slabs, size, [moving_slabs.extent, *moving.shape[3:]])
        channels = None
        if has_dice and of_fixed is not None and of_moving is not None:
            channels = channels_of((of_fixed, own.image), (of_moving, other.image))
        is_swapped = stages[-1] == "symmetric" and is_base(other, own, given["world"])
        base, moved = (other, own) if is_swapped else (own, other)
        if is_swapped and not isinstance(start, str):
            start = torch.linalg.inv(start)
        found = found_map(base, moved, start, linear, of_linear, callback)
        result = Registered(torch.empty(0), None, 1.0, found.history, _places=places)
        matrix = (torch.linalg.inv(moved.to_mm) @ found.in_mm @ base.to_mm)[:-1]
        in_mm = torch.linalg.inv(found.in_mm) if is_swapped else found.in_mm
        result.affine = (torch.linalg.inv(other_to_mm) @ in_mm @ own_to_mm)[:-1]
        if stages[-1] not in LINEAR and not found.was_stopped:
            if is_swapped and channels is not None:
                channels = channels[::-1]
            stage = Deformable(
                stages[-1], Pair(base, moved, channels, matrix), terms, {**of_greedy, "seed": given["seed"]}
            )
            u, least = stage.run(factors, counts, callback, result.history)
            del stage
            if is_swapped:
                u, least = inverse_on(own.image, other.image, u, matrix, given["min_jacobian"])
            result.displacement, result.min_jacobian = u, least
        if of_moving is not None and moving_labels is not None:
            unmoved = (torch.linalg.inv(other_to_mm) @ own_to_mm)[:-1]
            _add_labels(result, of_fixed, of_moving, moving_slabs, unmoved)
            assert result.labels is not None
            shape = [*moving_labels.shape[:-rank], *result.labels.shape[2:]]
            result.labels = result.labels.reshape(shape)
    return result


def _add_labels(
    result: Registered,
    of_fixed: Optional[Tensor],
    of_moving: Tensor,
    moving_slabs: Slabs,
    unmoved: Tensor,
) -> None:
    """Own rows of moving's labels on fixed's grid, and overlaps before (where the images lie) and after."""
    places: Places = result._places

    def laid_by(affine: Tensor, u: Optional[Tensor]) -> Tensor:
        return laid(of_moving, moving_slabs, places, affine, u, "label")

    result.labels = laid_by(result.affine, result.displacement)
    if of_fixed is not None:
        others = {"before": laid_by(unmoved, None), "after": result.labels}
        result.dice = overlaps(of_fixed, others, places.slabs)


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

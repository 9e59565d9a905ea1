# SPDX-License-Identifier: Apache-2.0
"""The public function that registers two images."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Callable, NoReturn, Optional

from .._arrays.kinds import imported, is_of
from .._library import register as library, values
from .._library.refusals import type_name
from .._library.register import Callback, Metric
from .losses import without_unknown
from .unknown_options import refuse_options

if TYPE_CHECKING:
    from ..volumes.registration import Registration


@without_unknown
def register(
    fixed: Any,
    moving: Any,
    *,
    fixed_affine: Any = None,
    moving_affine: Any = None,
    spacing: Optional[Sequence[float]] = None,
    world: str = "ras",
    stages: Sequence[str] = ("rigid", "affine", "deformable"),
    metrics: Sequence[Metric] = ("lncc", "ncc"),
    linear_metric: Metric = ("mi", {"bins": 32}),
    preset: str = "balanced",
    init: Any = "auto",
    iterations: Optional[Sequence[int]] = None,
    levels: Optional[Sequence[int]] = None,
    fluid: Optional[float] = None,
    elastic: Optional[float] = None,
    step: float = 0.5,
    min_jacobian: float = 0.1,
    tolerance: float = 1e-5,
    fixed_mask: Any = None,
    moving_mask: Any = None,
    fixed_labels: Any = None,
    moving_labels: Any = None,
    nan: str = "error",
    seed: int = 0,
    slabs: Any = None,
    moving_slabs: Any = None,
    callback: Optional[Callback] = None,
    **unknown: NoReturn,
) -> Registration:
    """The map that lays moving over fixed, without a fold. It runs where the arrays are: on the CPU,
    with the same bits for any number of threads, or on a CUDA device, with the same bits in every
    run. Maps of both agree to 0.02 voxel on average.

    Args:
        fixed, moving: arrays [Z,Y,X] or [C,Z,Y,X] of NumPy, torch or CuPy, both on one device, or
            pictures [Y,X] ([C,Y,X] with a spacing of 2 numbers or an affine [3,3]); or volumes
            with a place: paths, a similis.Volume, images of nibabel or SimpleITK.
        fixed_affine, moving_affine: of arrays, [4,4] from voxels (x, y, z) to mm; by default a
            voxel is 1 mm.
        spacing: instead of affines, mm between voxels along x, y (and z) of both arrays.
        world: the axes of affines, of points, and of the results' vectors: "ras" as nibabel has
            them, or "lps" as ITK does.
        stages: any of translation, rigid, similarity, affine, and deformable or symmetric, in
            this order. The symmetric stage takes both images alike: swapped, they give the inverse.
        metrics: of the deformable stage, which maximises their weighted sum: "lncc", "ncc", "mi",
            "mse", "dice" (the mean overlap of the labels), or with options, as ("lncc", {"window_size": 5, "weight": 1}) or ("mi",
            {"bins": 48, "sampling": 1}).
        linear_metric: of all other stages: mi, ncc or mse.
        preset: "quick", "balanced" or "accurate": how many iterations.
        init: the map before the first stage: "auto" tries several, "centers" (of the grids),
            "moments" (centres of mass), "identity", an affine [4,4], volumes.Affine or its file.
        iterations, levels: of the deformable stage, coarse to fine, as (50, 40, 20) and the shrink
            factors (4, 2, 1); by default the preset's, with more levels for large images.
        fluid, elastic: σ of the gradient's and the field's smoothing, in voxels of a level; by
            default 3 (symmetric: 2.5, mi as the only metric: 4) and 0.25; by default noise adds up
            to 1 to fluid at full resolution.
        step: the largest displacement of an iteration, in voxels of a level.
        min_jacobian: the least determinant that the guard against folds accepts.
        tolerance: a level ends where the loss falls by less in an iteration.
        fixed_mask, moving_mask: arrays [Z,Y,X] or [Y,X], or volumes on their image's grid; voxels
            that are 0 add nothing.
        fixed_labels, moving_labels: integers, given like masks. The report has the Dice overlap of
            each label before and after, and the result's `labels` are moving's on fixed's grid.
            They enter the loss only with the metric dice.
        nan: "error", or "mask" for samples that are not finite.
        seed: which voxels the sampling of mi takes.
        slabs, moving_slabs: similis.distributed.Slabs, of fixed and moving, which are then own rows
            [1,C,z,Y,X] or [1,C,y,X], of volumes that no rank holds whole. It is then
            similis.distributed.register(), which returns own rows of the field. moving_slabs are
            by default those of fixed. Masks and labels are own rows likewise.
        callback: called as callback(stage, level, iteration, loss) after each iteration; returning
            False ends the registration with the last valid field. On a GPU it is told of up to
            10 iterations of the deformable stage at a time, after all of them.

    Returns: a volumes.Registration; with slabs a distributed.Registered.

    Raises:
        ValueError, TypeError: in one sentence that names the argument or file.
        KeyboardInterrupt: Ctrl-C ends it after the iteration under way; nothing is left behind.
    """
    if slabs is not None or moving_slabs is not None:
        return _on_slabs(locals())
    if unknown:
        refuse_options("register", unknown, register)
    from ..volumes import register_inputs as inputs
    from ..volumes.registration import Registration

    values.one_of("register", "world", world, ("ras", "lps"))
    if callback is not None and not callable(callback):
        raise TypeError(f"register: callback is {values.shown(callback)}; it must be a function")
    own = inputs.image_of("fixed", fixed, fixed_affine, spacing, world)
    other = inputs.image_of("moving", moving, moving_affine, spacing, world)
    if own.rank != other.rank:
        kinds = {2: "a picture", 3: "a volume"}
        raise ValueError(
            f"register: {own.name} is {kinds[own.rank]} but {other.name} is {kinds[other.rank]}; "
            "register two of one kind"
        )
    start, initial = inputs.start_of(init, own.rank, world)
    options = library.options_of(
        stages=stages,
        metrics=metrics,
        linear_metric=linear_metric,
        preset=preset,
        start=start,
        initial=initial,
        iterations=iterations,
        levels=levels,
        fluid=fluid,
        elastic=elastic,
        step=step,
        min_jacobian=min_jacobian,
        tolerance=tolerance,
        nan=nan,
        seed=seed,
        names=(own.name, other.name),
    )
    masks = [
        inputs.mask_of("fixed_mask", fixed_mask, own),
        inputs.mask_of("moving_mask", moving_mask, other),
    ]
    labels = (
        inputs.labels_of("fixed_labels", fixed_labels, own),
        inputs.labels_of("moving_labels", moving_labels, other),
    )
    if labels[0] is not None and labels[1] is None:
        raise ValueError(
            "register: fixed_labels are given without moving_labels, with which they are compared"
        )
    library.set_pair(options, "mask", [None if m is None else inputs.described(m) for m in masks])
    if any((each if isinstance(each, str) else each[0]) == "dice" for each in metrics):
        if labels[0] is None or labels[1] is None:
            raise ValueError(
                "register: the metric dice is given without fixed_labels and moving_labels, which it "
                "compares"
            )
        beside = [inputs.labels_beside(labels[0], own), inputs.labels_beside(labels[1], other)]
        library.set_pair(options, "labels", [inputs.described(each) for each in beside])
    threads = imported("torch").get_num_threads() if is_of("torch", "Tensor", fixed) else 0
    begin = time.perf_counter()
    stream = inputs.stream_of(own.data)
    found = library.run(own.volume(), other.volume(), options, callback, threads, stream)
    seconds = time.perf_counter() - begin
    return Registration(found, own, other, world, seconds, labels, masks)


# similis.distributed.register(), once somebody has imported similis.distributed, as who has slabs did.
_register_slabs: Optional[Callable[..., Any]] = None


def forward_slabs_to(function: Callable[..., Any]) -> None:
    global _register_slabs
    _register_slabs = function


def _on_slabs(given: dict[str, Any]) -> Any:
    """similis.distributed.register() of the arguments of register()."""
    defaults: dict[str, Any] = register.__kwdefaults__ or {}
    slabs = given["slabs"]
    if slabs is None:
        raise ValueError("register: moving_slabs are given without slabs; give those of fixed too")
    if _register_slabs is None:
        raise TypeError(
            f"register: slabs is of type {type_name(slabs)}; it must be similis.distributed.Slabs"
        )
    taken = {name: given[name] for name in defaults if name not in ("slabs", "moving_slabs")}
    taken.update(given["unknown"])
    return _register_slabs(given["fixed"], given["moving"], slabs, given["moving_slabs"], **taken)

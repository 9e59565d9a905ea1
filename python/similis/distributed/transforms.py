# SPDX-License-Identifier: Apache-2.0
"""sample() and its kin on slabs.

    own coordinates ─> least and largest row that they touch ─ one gather ─> blocks of rows from
    their owners, a row of overlap, the next on its way while one is sampled ─> own output

Each voxel is computed in the block that holds its cell, and cells are found on the whole axis: no
bit depends on how rows are cut. The backward pass fetches the blocks again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Optional

import torch
from torch import Tensor

from .._library import warp
from .._torch.binding import DTYPES, run_transform
from .._torch.transform_operators import NO_GRADIENTS
from .._torch.transforms import _as_float, _require_exact_labels, is_deterministic
from .agreement import Agreement
from .gradients import Gradients, narrowed
from .grids import own_shape_of
from .inner import inner_of
from .notes import are_taken
from .plan import Plan, result_shape
from .reach import Reach
from .rows import refuse_second_derivative
from .slabs import Slabs, require_slabs

Coordinates = Optional[Sequence[float]]


def _mark_beyond(plan: Plan, result: Tensor, value: float) -> None:
    """Sets voxels whose rows a given reach has not fetched."""
    if plan.reach is None or plan.notes is not None:
        return
    for rows, outside in plan.reach.beyond(plan.reached):
        if plan.operation == "compose":
            result[:, rows].masked_fill_(outside[..., None], value)
        else:
            result[:, :, rows].masked_fill_(outside[:, None], value)
        plan.slabs.note_beyond(plan.operation, outside.any())


class _Transform(torch.autograd.Function):
    """sample() or compose()."""

    @staticmethod
    def forward(
        ctx: Any,
        image: Tensor,
        affine: Optional[Tensor],
        field: Optional[Tensor],
        grid_affine: Optional[Tensor],
        plan: Plan,
    ) -> Tensor:
        ctx.plan = plan
        operands = (image, affine, field, grid_affine)
        shape = result_shape(plan, operands)
        result = image.new_empty(shape)
        kept = _sample_blocks(plan, operands, result, any(ctx.needs_input_grad))
        ctx.save_for_backward(*operands, *kept)
        if plan.notes is not None:
            plan.has_marked = True
            plan.slabs.note_beyond(plan.operation, plan.notes.beyond())
        _mark_beyond(plan, result, math.nan)
        return result

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
        plan: Plan = ctx.plan
        refuse_second_derivative(plan.operation)
        image, affine, field, grid_affine, *kept = ctx.saved_tensors
        gradients = Gradients(plan, ctx.needs_input_grad, image, affine, field, grid_affine)
        for k, block, own, call in plan.each_block(image, kept):
            by_block = gradients.of_rows(k, block, call is not None)
            if call is not None:
                part = narrowed(field, own, 1)
                by_affine, by_field, by_s = gradients.of_block(part, own)
                of_rows = narrowed(upstream, own, plan.image_axis)
                outputs = warp.gradient_outputs(
                    plan.operation, of_rows, by_block, by_affine, by_field, by_s
                )
                operands = (block, gradients.affine, part, gradients.grid_affine)
                noted = None if plan.notes is None else plan.notes.tensor
                noted = noted if gradients.leaves_out(by_block, by_affine, by_s) else None
                run_transform(call, operands, outputs, gradients.adds_to_field, None, noted)
                gradients.add(own, by_affine, by_field, by_s)
            if by_block is not None and by_block is not gradients.by_image:
                gradients.send_home(by_block, plan.wanted(k))
        return *gradients.finished(), None


def _sample_blocks(
    plan: Plan, operands: Sequence[Optional[Tensor]], result: Tensor, has_backward: bool
) -> list[Tensor]:
    """Returns the rows of all rounds but the first, if they are kept for the backward pass."""
    image, affine, field, grid_affine = operands
    assert image is not None
    is_set, inner = False, plan.inner
    kept: list[Tensor] = []
    for k, block, own, call in plan.each_block(image, keeps=kept):
        if call is None:
            continue
        of_rows = (block, affine, narrowed(field, own, 1), grid_affine)
        outputs = (narrowed(result, own, plan.image_axis), *NO_GRADIENTS[plan.operation])
        notes = None if plan.notes is None else plan.notes.tensor
        elsewhere, noted = (notes, None) if k == 0 else (None, notes)
        if k == 0 and inner is not None and own == inner.rows:
            elsewhere = inner.notes.tensor
        run_transform(call, of_rows, outputs, is_set and k > 0, elsewhere, noted)
        is_set = True
    if not plan.is_confirmed(image):
        return _sample_blocks(plan, operands, result, has_backward)
    return kept if has_backward else []


class _Labels(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        image: Tensor,
        affine: Optional[Tensor],
        field: Optional[Tensor],
        grid_affine: Optional[Tensor],
        plan: Plan,
    ) -> tuple[Tensor, Tensor]:
        ctx.plan = plan
        ctx.save_for_backward(image, affine, field, grid_affine)
        shape = result_shape(plan, (image, affine, field, grid_affine))
        label = torch.full(shape, plan.options["background"], device=image.device).to(image.dtype)
        wide = _held(image[:0]).dtype == torch.float64
        weight = label.new_zeros(shape, dtype=torch.float64 if wide else torch.float32)
        for _, block, own, call in plan.each_block(image):
            if call is None:
                continue
            held = _held(block)
            labels, weights = (each.narrow(2, own[0], own[1] - own[0]) for each in (label, weight))
            of_block = held.new_empty(labels.shape)
            weighs = weights.new_empty(weights.shape)
            operands = (held, affine, narrowed(field, own, 1), grid_affine)
            run_transform(call, operands, [of_block, weighs, None, None, None, None])
            labels.copy_(torch.where(weighs > 0, of_block.to(image.dtype), labels))
            weights += weighs
        _mark_beyond(plan, label, plan.options["background"])
        _mark_beyond(plan, weight, math.nan)
        ctx.mark_non_differentiable(label)
        return label, weight if image.dtype in DTYPES else weight.float()

    @staticmethod
    def backward(ctx: Any, _: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
        plan: Plan = ctx.plan
        refuse_second_derivative(plan.operation)
        image, affine, field, grid_affine = ctx.saved_tensors
        asked = (False, *ctx.needs_input_grad[1:4])
        gradients = Gradients(plan, asked, image, affine, field, grid_affine)
        for _, block, own, call in plan.each_block(image):
            if call is None:
                continue
            part = narrowed(field, own, 1)
            by_affine, by_field, by_s = gradients.of_block(part, own)
            outputs = [None, None, narrowed(upstream, own, 2), by_affine, by_field, by_s]
            operands = (_held(block), gradients.affine, part, gradients.grid_affine)
            run_transform(call, operands, outputs)
            gradients.add(own, by_affine, by_field, by_s)
        return *gradients.finished(), None


def _held(image: Tensor) -> Tensor:
    """Labels of a dtype that the library takes, as sample_labels() converts others."""
    return image if image.dtype in DTYPES else _as_float(image)


_LEAST_BLOCK_BYTES = 256 << 20


def _block_rows(image: Tensor, axis: int, block_bytes: Optional[int], slabs: Slabs) -> int:
    """The number of the image's rows that fit a block. Each block is a pass over the rows of the
    output that may have voxels in it, so that the default is few blocks, each as large as the
    largest slab."""
    of_row = image.element_size()
    for i, extent in enumerate(image.shape):
        of_row *= extent if i != axis else 1
    if block_bytes is None:
        return max(_LEAST_BLOCK_BYTES // max(of_row, 1), *slabs.sizes, 1)
    return max(block_bytes // max(of_row, 1), 1)


def _are_rows(reach: Any) -> bool:
    is_pair = isinstance(reach, (tuple, list)) and len(reach) == 2
    return is_pair and all(isinstance(each, int) and each >= 0 for each in reach)


def _plan(
    operation: str,
    image: Tensor,
    image_slabs: Slabs,
    affine: Optional[Tensor],
    name: str,
    field: Optional[Tensor],
    grid_affine: Optional[Tensor],
    slabs: Optional[Slabs],
    out_shape: Optional[Sequence[int]],
    block_bytes: Optional[int],
    reach_rows: Optional[Sequence[int]],
    image_axis: int,
    options: dict[str, Any],
) -> Plan:
    """Agrees on the call with all ranks, and finds the blocks."""
    slabs = image_slabs if slabs is None else slabs
    require_slabs(operation, "image_slabs", image_slabs)
    given = {**options, "out_shape": out_shape, "block_bytes": block_bytes, "reach": reach_rows}
    with Agreement(
        operation, slabs, later=True, image_slabs=image_slabs.sizes, **given
    ) as agreement:
        operand = "u" if operation == "compose" else "image"
        if isinstance(image, Tensor) and image.dim() not in (4, 5):
            shapes = "[N,Y,X,2] or [N,Z,Y,X,3]" if operation == "compose" else "[N,C,Y,X] or [N,C,Z,Y,X]"
            raise ValueError(f"{operand} has shape {list(image.shape)}; it must be {shapes}")
        agreement.array(operand, image, image_slabs, image_axis)
        agreement.array(name, field, slabs, 1, may_be_none=True)
        agreement.whole("affine", affine)
        agreement.whole("grid_affine", grid_affine)
        if reach_rows is not None and not _are_rows(reach_rows):
            raise ValueError(f"reach is {reach_rows!r}; it must be two whole numbers of 0 or more")
        if block_bytes is not None and (not isinstance(block_bytes, int) or block_bytes < 1):
            raise ValueError(
                f"block_bytes is {block_bytes!r}; it must be a whole number of 1 or more"
            )
        rank = image.dim() - 2
        if not (image.is_floating_point() or operation == "sample_labels"):
            raise ValueError(f"{operand} is {image.dtype}; it must be of a float type")
        if field is not None and (field.dim() != rank + 2 or field.shape[-1] != rank):
            shape = "[N,Y,X,2]" if rank == 2 else "[N,Z,Y,X,3]"
            raise ValueError(
                f"{name} has shape {list(field.shape)}; it must be {shape}, as {operand} is {rank}D"
            )
        if operation == "sample_labels" and image.dtype == torch.int64 and image.numel():
            _require_exact_labels(image)
        own_shape = own_shape_of(out_shape, slabs)
        if field is None and own_shape is None:
            own_shape = [slabs.stop - slabs.start, *image.shape[3:]]
        called = dict(options)
        if field is None and own_shape is not None:
            called["out_shape"] = own_shape if own_shape[0] else [1, *own_shape[1:]]
        warp.text(operation, **called)  # refuses values that no call takes
        reach = Reach(
            image_slabs.extent, slabs, rank, own_shape, affine, field, grid_affine, options
        )
        plan = Plan(
            operation,
            called,
            image_slabs,
            slabs,
            _block_rows(image, image_axis, block_bytes, image_slabs),
            image_axis,
        )
    plan.settle = agreement.settle
    is_plain = operation == "sample" and options["mode"] == "linear" and grid_affine is None
    notes_cells = is_plain and field is not None and are_taken(image, field)
    if reach_rows is not None:
        plan.reach, plan.reached = reach, plan.reach_rows(*reach_rows)
        if notes_cells:
            plan.mark(image.device)
        return plan
    if notes_cells and affine is None and not options["is_grid"]:
        assert field is not None
        voxels = field.shape[0] * field.shape[2:-1].numel()
        plan.inner = inner_of(slabs, image_slabs, voxels, image.device)
    plan.look(reach, image)
    return plan


def sample(
    image: Tensor,
    image_slabs: Slabs,
    *,
    slabs: Optional[Slabs] = None,
    affine: Optional[Tensor] = None,
    displacement: Optional[Tensor] = None,
    grid: Optional[Tensor] = None,
    grid_affine: Optional[Tensor] = None,
    out_shape: Optional[Sequence[int]] = None,
    mode: str = "linear",
    padding_mode: str = "zeros",
    align_corners: bool = True,
    prefilter: bool = True,
    min_coords: Coordinates = None,
    max_coords: Coordinates = None,
    deterministic: Optional[bool] = None,
    reach: Optional[tuple[int, int]] = None,
    block_bytes: Optional[int] = None,
) -> Tensor:
    """similis.sample() of an image in slabs: own rows of the output.

    slabs: those of the output and of displacement or grid; by default the image's. affine and
    grid_affine are whole on every rank, and so are their gradients. out_shape and coordinates are
    those of the whole output. reach: numbers of rows before and behind the image's own ones that
    are fetched, so that nobody looks at coordinates first; a voxel that needs others is NaN, and
    then slabs.check(), or on the CPU the next call, raises a ValueError on all ranks. block_bytes:
    rows that come from other ranks arrive in blocks of about this size, two at a time; by default
    256 MiB or the largest slab, whichever is more. The rest is
    as of similis.sample(); with mode "cubic" and prefilter the last bits depend on how rows are cut.
    """
    options = {
        "is_grid": grid is not None,
        "mode": mode,
        "padding_mode": padding_mode,
        "align_corners": align_corners,
        "prefilter": prefilter,
        "min_coords": min_coords,
        "max_coords": max_coords,
        "deterministic": is_deterministic() if deterministic is None else deterministic,
    }
    name, field = _field("sample", affine, displacement, grid)
    plan = _plan(
        "sample", image, image_slabs, affine, name, field, grid_affine, slabs, out_shape,
        block_bytes, reach, 2, options,
    )  # fmt: skip
    return _on_own_rows(_Transform, plan, image, affine, field, grid_affine)


def sample_labels(
    image: Tensor,
    image_slabs: Slabs,
    *,
    slabs: Optional[Slabs] = None,
    affine: Optional[Tensor] = None,
    displacement: Optional[Tensor] = None,
    grid: Optional[Tensor] = None,
    grid_affine: Optional[Tensor] = None,
    out_shape: Optional[Sequence[int]] = None,
    padding_mode: str = "zeros",
    align_corners: bool = True,
    min_coords: Coordinates = None,
    max_coords: Coordinates = None,
    background: float = 0,
    smallest_label: Optional[float] = None,
    return_weight: bool = False,
    reach: Optional[tuple[int, int]] = None,
    block_bytes: Optional[int] = None,
) -> Any:
    """similis.sample_labels() of an image in slabs: own rows of the output; see sample()."""
    options = {
        "is_grid": grid is not None,
        "padding_mode": padding_mode,
        "align_corners": align_corners,
        "min_coords": min_coords,
        "max_coords": max_coords,
        "background": background,
        "smallest_label": smallest_label,
    }
    name, field = _field("sample_labels", affine, displacement, grid)
    plan = _plan(
        "sample_labels", image, image_slabs, affine, name, field, grid_affine, slabs, out_shape,
        block_bytes, reach, 2, options,
    )  # fmt: skip
    label, weight = _on_own_rows(_Labels, plan, image, affine, field, grid_affine)
    return (label, weight) if return_weight else label


def compose(
    u: Tensor,
    v: Tensor,
    u_slabs: Slabs,
    *,
    slabs: Optional[Slabs] = None,
    affine: Optional[Tensor] = None,
    padding_mode: str = "zeros",
    align_corners: bool = True,
    min_coords: Coordinates = None,
    max_coords: Coordinates = None,
    deterministic: Optional[bool] = None,
    reach: Optional[tuple[int, int]] = None,
    block_bytes: Optional[int] = None,
) -> Tensor:
    """similis.compose() of fields in slabs, u(A·x + v(x)): own rows of v; see sample()."""
    options = {
        "padding_mode": padding_mode,
        "align_corners": align_corners,
        "min_coords": min_coords,
        "max_coords": max_coords,
        "deterministic": is_deterministic() if deterministic is None else deterministic,
    }
    plan = _plan(
        "compose", u, u_slabs, affine, "v", v, None, slabs, None, block_bytes, reach, 1, options
    )
    return _on_own_rows(_Transform, plan, u, affine, v, None)


def _field(
    operation: str, affine: Optional[Tensor], displacement: Optional[Tensor], grid: Optional[Tensor]
) -> tuple[str, Optional[Tensor]]:
    if grid is not None and (affine is not None or displacement is not None):
        other = "affine" if displacement is None else "displacement"
        raise ValueError(f"{operation}: grid is given with {other}; give one of them")
    return ("displacement", displacement) if grid is None else ("grid", grid)


def _on_own_rows(function: Any, plan: Plan, image: Tensor, *others: Optional[Tensor]) -> Any:
    """Computes; for an empty slab the result has no rows, and this rank serves the others."""
    return function.apply(image, *others, plan)

# SPDX-License-Identifier: Apache-2.0
"""Three operators for sampling images and composing transforms.

similis::transform           sample, compose or affine_grid
similis::transform_gradient  gradients to the operands that ask for one, in one pass
similis::labels              label and weight
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Optional

import torch
from torch import Tensor

from .._library import warp
from .binding import Tensors, dense_like, run_transform
from .registry import define

# The arguments after the result of each C function, upstream and gradients, if none is asked for.
NO_GRADIENTS = {"sample": (None,) * 5, "compose": (None,) * 4, "affine_grid": (None,) * 2}


def result_shape(
    call: warp.Call,
    operand: Tensor,
    affine: Optional[Tensor],
    field: Optional[Tensor],
    grid_affine: Optional[Tensor],
) -> list[Any]:
    given = (operand, affine, field, grid_affine)
    shapes = [each.shape for each in given if each is not None]  # each costs a tenth of a µs
    of_field = None if field is None else shapes[1 if affine is None else 2]
    return call.result_shape(shapes[0], [each[0] for each in shapes], of_field)


def result_model(call: warp.Call, operand: Tensor, field: Optional[Tensor]) -> Tensor:
    """The operand whose dtype and device the result has."""
    return field if field is not None and call.shape_rule == "coordinates" else operand


def _empty(
    call: warp.Call,
    operand: Tensor,
    affine: Optional[Tensor],
    field: Optional[Tensor],
    grid_affine: Optional[Tensor],
) -> Tensor:
    shape = result_shape(call, operand, affine, field, grid_affine)
    return result_model(call, operand, field).new_empty(shape)


@functools.lru_cache(maxsize=1024)
def shape_unlike(
    call: str,
    operand: Sequence[int],
    affine: Optional[Sequence[int]],
    field: Optional[Sequence[int]],
    grid_affine: Optional[Sequence[int]],
) -> Optional[tuple[int, ...]]:
    """The shape of the result, or None if it is that of result_model(), as most are."""
    parsed = warp.parse(call)
    batches = [each[0] for each in (operand, affine, field, grid_affine) if each is not None]
    shape = tuple(parsed.result_shape(operand, batches, field))
    model = field if field is not None and parsed.shape_rule == "coordinates" else operand
    return None if shape == tuple(model) else shape


def compute_transform(
    operand: Tensor,
    affine: Optional[Tensor],
    field: Optional[Tensor],
    grid_affine: Optional[Tensor],
    call: str,
) -> Tensor:
    parsed = warp.parse(call)
    shape = shape_unlike(
        call,
        operand.shape,
        None if affine is None else affine.shape,
        None if field is None else field.shape,
        None if grid_affine is None else grid_affine.shape,
    )
    model = result_model(parsed, operand, field)
    # new_empty() reads a shape number by number, in twice the time.
    result = dense_like(model) if shape is None else model.new_empty(shape)
    operands = (operand, affine, field, grid_affine)
    run_transform(parsed, operands, (result, *NO_GRADIENTS[parsed.operation]))
    return result


def compute_labels(
    operand: Tensor,
    affine: Optional[Tensor],
    field: Optional[Tensor],
    grid_affine: Optional[Tensor],
    call: str,
) -> tuple[Tensor, Tensor]:
    parsed = warp.parse(call)
    operands = (operand, affine, field, grid_affine)
    label, weight = _label_shapes(*operands, call)
    run_transform(parsed, operands, [label, weight, None, None, None, None])
    return label, weight


def _label_shapes(
    operand: Tensor,
    affine: Optional[Tensor],
    field: Optional[Tensor],
    grid_affine: Optional[Tensor],
    call: str,
) -> tuple[Tensor, Tensor]:
    label = _empty(warp.parse(call), operand, affine, field, grid_affine)
    dtype = torch.float64 if operand.dtype == torch.float64 else torch.float32
    return label, torch.empty_like(label, dtype=dtype)


def _gradient_shapes(
    operand: Tensor,
    affine: Optional[Tensor],
    field: Optional[Tensor],
    grid_affine: Optional[Tensor],
    upstream: Tensor,
    of_operand: bool,
    of_affine: bool,
    of_field: bool,
    of_grid_affine: bool,
    call: str,
) -> list[Tensor]:
    wanted = (
        (operand, of_operand),
        (affine, of_affine),
        (field, of_field),
        (grid_affine, of_grid_affine),
    )
    return [dense_like(each) for each, of in wanted if of and each is not None]


def gradient_of_each(
    operands: Tensors, upstream: Tensor, asked: Sequence[bool], call: str
) -> list[Optional[Tensor]]:
    """One gradient or None for each operand, of tensors with memory."""
    parsed = warp.parse(call)
    by_each: list[Optional[Tensor]] = [None, None, None, None]
    for i, each in enumerate(operands):
        if asked[i] and each is not None:
            by_each[i] = dense_like(each)
    run_transform(parsed, operands, warp.gradient_outputs(parsed.operation, upstream, *by_each))
    return by_each


def compute_gradient(
    operand: Tensor,
    affine: Optional[Tensor],
    field: Optional[Tensor],
    grid_affine: Optional[Tensor],
    upstream: Tensor,
    of_operand: bool,
    of_affine: bool,
    of_field: bool,
    of_grid_affine: bool,
    call: str,
) -> list[Tensor]:
    operands = (operand, affine, field, grid_affine)
    asked = (of_operand, of_affine, of_field, of_grid_affine)
    by_each = gradient_of_each(operands, upstream, asked, call)
    return [each for each in by_each if each is not None]


def _transform_shape(
    operand: Tensor,
    affine: Optional[Tensor],
    field: Optional[Tensor],
    grid_affine: Optional[Tensor],
    call: str,
) -> Tensor:
    return _empty(warp.parse(call), operand, affine, field, grid_affine)


_OPERANDS = "Tensor operand, Tensor? affine, Tensor? field, Tensor? grid_affine"
transform_op = define(
    f"transform({_OPERANDS}, str call) -> Tensor", compute_transform, _transform_shape
)
labels_op = define(
    f"labels({_OPERANDS}, str call) -> (Tensor, Tensor)", compute_labels, _label_shapes
)
gradient_op = define(
    f"transform_gradient({_OPERANDS}, Tensor upstream, bool of_operand, bool of_affine, "
    "bool of_field, bool of_grid_affine, str call) -> Tensor[]",
    compute_gradient,
    _gradient_shapes,
)

# SPDX-License-Identifier: Apache-2.0
"""Three operators for sampling images and composing transforms.

similis::transform           sample, compose or affine_grid
similis::transform_gradient  gradients to the operands that ask for one, in one pass
similis::labels              label and weight
"""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from .._library import warp
from .binding import run_transform
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


def _like(tensor: Tensor) -> Tensor:
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


def compute_transform(
    operand: Tensor,
    affine: Optional[Tensor],
    field: Optional[Tensor],
    grid_affine: Optional[Tensor],
    call: str,
) -> Tensor:
    parsed = warp.parse(call)
    operands = (operand, affine, field, grid_affine)
    shape = tuple(result_shape(parsed, *operands))
    model = result_model(parsed, operand, field)
    # Most results are like the image. new_empty() reads a shape number by number, in twice the time.
    result = _like(model) if model.shape == shape else model.new_empty(shape)
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
    return [_like(each) for each, of in wanted if of and each is not None]


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
    parsed = warp.parse(call)
    operands = (operand, affine, field, grid_affine)
    asked = (of_operand, of_affine, of_field, of_grid_affine)
    by_each = [
        _like(each) if of and each is not None else None for each, of in zip(operands, asked)
    ]
    run_transform(parsed, operands, warp.gradient_outputs(parsed.operation, upstream, *by_each))
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

# SPDX-License-Identifier: Apache-2.0
"""Sampling and composing torch's tensors: operators, and autograd around them.

similis::transform           sample, compose or affine_grid
similis::transform_gradient  gradients to the operands that ask for one, in one pass
similis::labels              label and weight
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import torch
from torch import Tensor

from . import _c, _warp
from ._torch import _DTYPES, _c_tensor, _ops

_Coordinates = Optional[Sequence[float]]
_TAGS = (torch.Tag.pt2_compliant_tag,)
_OPERANDS = "Tensor operand, Tensor? affine, Tensor? field, Tensor? grid_affine"
_ops.define(f"transform({_OPERANDS}, str call) -> Tensor", tags=_TAGS)
_ops.define(f"labels({_OPERANDS}, str call) -> (Tensor, Tensor)", tags=_TAGS)
_ops.define(
    f"transform_gradient({_OPERANDS}, Tensor upstream, bool of_operand, bool of_affine, "
    "bool of_field, bool of_grid_affine, str call) -> Tensor[]",
    tags=_TAGS,
)


def _stream(tensor: Tensor) -> int:
    return torch.cuda.current_stream(tensor.device).cuda_stream if tensor.is_cuda else 0


def _shape(
    call: _warp.Call,
    operand: Tensor,
    affine: Optional[Tensor],
    field: Optional[Tensor],
    grid_affine: Optional[Tensor],
) -> list[Any]:
    given = [each for each in (operand, affine, field, grid_affine) if each is not None]
    shape = None if field is None else field.shape
    return call.result_shape(operand.shape, [each.shape[0] for each in given], shape)


def _empty(call: _warp.Call, *operands: Optional[Tensor]) -> Tensor:
    operand, _, field, _ = operands
    assert operand is not None
    model = field if call.operation == "affine_grid" and field is not None else operand
    return model.new_empty(_shape(call, *operands))  # type: ignore[arg-type]


def _run(
    call: _warp.Call,
    operands: Sequence[Optional[Tensor]],
    outputs: Sequence[Optional[Tensor]],
    accumulate: bool = False,
) -> None:
    operand = operands[0]
    assert operand is not None
    with torch.cuda.device_of(operand):
        _warp.run(
            call,
            [_c_tensor(each) for each in operands],
            [_c_tensor(each) for each in outputs],
            _stream(operand),
            accumulate,
        )


def _transform(
    operand: Tensor,
    affine: Optional[Tensor],
    field: Optional[Tensor],
    grid_affine: Optional[Tensor],
    call: str,
) -> Tensor:
    parsed = _warp.parse(call)
    operands = (operand, affine, field, grid_affine)
    result = _empty(parsed, *operands)
    _run(parsed, operands, [result, *[None] * _GRADIENTS[parsed.operation]])
    return result


# What follows the result among the arguments of each C function: upstream, then gradients.
_GRADIENTS = {"sample": 5, "compose": 4, "affine_grid": 2}


def _labels(
    operand: Tensor,
    affine: Optional[Tensor],
    field: Optional[Tensor],
    grid_affine: Optional[Tensor],
    call: str,
) -> tuple[Tensor, Tensor]:
    parsed = _warp.parse(call)
    operands = (operand, affine, field, grid_affine)
    label, weight = _label_shapes(*operands, call)
    _run(parsed, operands, [label, weight, None, None, None, None])
    return label, weight


def _label_shapes(
    operand: Tensor,
    affine: Optional[Tensor],
    field: Optional[Tensor],
    grid_affine: Optional[Tensor],
    call: str,
) -> tuple[Tensor, Tensor]:
    label = _empty(_warp.parse(call), operand, affine, field, grid_affine)
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
    return [each.new_empty(each.shape) for each, of in wanted if of and each is not None]


def _transform_gradient(
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
    parsed = _warp.parse(call)
    asked = (of_operand, of_affine, of_field, of_grid_affine)
    gradients = _gradient_shapes(operand, affine, field, grid_affine, upstream, *asked, call)
    left = iter(gradients)
    by_operand, by_affine, by_field, by_s = [next(left) if of else None for of in asked]
    outputs: dict[str, list[Optional[Tensor]]] = {
        "sample": [None, upstream, by_operand, by_affine, by_field, by_s],
        "sample_labels": [None, None, upstream, by_affine, by_field, by_s],
        "compose": [None, upstream, by_operand, by_field, by_affine],
        "affine_grid": [None, upstream, by_operand],
    }
    _run(parsed, (operand, affine, field, grid_affine), outputs[parsed.operation])
    return gradients


for _device in "CPU", "CUDA":
    _ops.impl("transform", _transform, _device)
    _ops.impl("labels", _labels, _device)
    _ops.impl("transform_gradient", _transform_gradient, _device)
torch.library.register_fake(
    "similis::transform",
    lambda operand, affine, field, grid_affine, call: _empty(
        _warp.parse(call), operand, affine, field, grid_affine
    ),
    lib=_ops,
)
torch.library.register_fake("similis::labels", _label_shapes, lib=_ops)
torch.library.register_fake("similis::transform_gradient", _gradient_shapes, lib=_ops)
_transform_op = torch.ops.similis.transform.default
_labels_op = torch.ops.similis.labels.default
_gradient_op = torch.ops.similis.transform_gradient.default


def _once(call: str) -> None:
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        name = call.split(" ", 1)[0]
        raise NotImplementedError(
            f"{name}: the gradient of a gradient is asked for; there is none, so leave create_graph "
            "False"
        )


class _Transform(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        operand: Tensor,
        affine: Optional[Tensor],
        field: Optional[Tensor],
        grid_affine: Optional[Tensor],
        call: str,
    ) -> Tensor:
        ctx.call = call
        ctx.save_for_backward(operand, affine, field, grid_affine)
        return _transform_op(operand, affine, field, grid_affine, call)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
        _once(ctx.call)
        operands = ctx.saved_tensors
        asked = list(ctx.needs_input_grad[:4])
        by_field = None
        if ctx.call.startswith("affine_grid "):  # x + u(x) hands the upstream on to u
            if asked[2]:
                by_field = upstream.to(operands[2].dtype)
                if operands[2].shape[0] != upstream.shape[0]:
                    by_field = by_field.sum(0, keepdim=True)
            asked[2] = False
        gradients = iter(_gradient_op(*operands, upstream, *asked, ctx.call) if any(asked) else ())
        results = [next(gradients) if of else None for of in asked]
        if by_field is not None:
            results[2] = by_field
        return *results, None


class _Labels(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        operand: Tensor,
        affine: Optional[Tensor],
        field: Optional[Tensor],
        grid_affine: Optional[Tensor],
        call: str,
    ) -> tuple[Tensor, Tensor]:
        ctx.call = call
        ctx.save_for_backward(operand, affine, field, grid_affine)
        label, weight = _labels_op(operand, affine, field, grid_affine, call)
        ctx.mark_non_differentiable(label)
        return label, weight

    @staticmethod
    def backward(ctx: Any, _: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
        _once(ctx.call)
        asked = [False, *ctx.needs_input_grad[1:4]]
        gradients = iter(_gradient_op(*ctx.saved_tensors, upstream, *asked, ctx.call))
        return *[next(gradients) if of else None for of in asked], None


_apply_transform: Any = _Transform.apply
_apply_labels: Any = _Labels.apply


def _checked(operation: str, names: Sequence[str], operands: Sequence[Any]) -> None:
    first = operands[0]
    for name, tensor in zip(names, operands):
        if tensor is None and name != names[0]:
            continue
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"{operation}: {name} is a {type(tensor).__name__}; it must be a torch.Tensor"
            )
        if tensor.layout != torch.strided:
            raise TypeError(f"{operation}: {name} is {tensor.layout}; it must be torch.strided")
        if tensor.dtype not in _DTYPES:
            raise TypeError(f"{operation}: {name} is {tensor.dtype}; it must be {_c.DTYPE_NAMES}")
        if tensor.device != first.device:
            raise ValueError(
                f"{operation}: {name} is on {tensor.device}; it must be on {first.device} as "
                f"{names[0]} is"
            )
        if tensor.dim() < 2 or 0 in tensor.shape:
            raise ValueError(
                f"{operation}: {name} has shape {list(tensor.shape)}; every extent must be at "
                "least 1"
            )
    if first.device.type not in ("cpu", "cuda", "meta"):
        raise ValueError(f"{operation}: {names[0]} is on {first.device}; it must be on cpu or cuda")


def _asks_for_gradient(operands: Sequence[Optional[Tensor]]) -> bool:
    return torch.is_grad_enabled() and any(
        each is not None and each.requires_grad for each in operands
    )


def transform(
    call: str, names: Sequence[str], operands: Sequence[Any], output: Optional[Tensor] = None
) -> Tensor:
    """operands: image, u or A; affine; field; grid_affine."""
    _checked(call.split(" ", 1)[0], names, operands)
    if torch.compiler.is_compiling() and operands[2] is operands[0]:
        # It traces no autograd.Function that is given one tensor twice.
        operands = (operands[0], operands[1], operands[2].view_as(operands[2]), operands[3])
    if _asks_for_gradient(operands):
        result = _apply_transform(*operands, call)
    elif output is not None and not torch.compiler.is_compiling() and not output.requires_grad:
        parsed = _warp.parse(call)
        _run(parsed, operands, [output, *[None] * _GRADIENTS[parsed.operation]], accumulate=True)
        return output
    else:
        result = _transform_op(*operands, call)
    return result if output is None else output.add_(result)


def labels(call: str, names: Sequence[str], operands: Sequence[Any]) -> tuple[Tensor, Tensor]:
    """Label and weight; labels in the image's dtype, which may be any of torch's integers."""
    image, *others = operands
    held = image
    if not image.dtype.is_floating_point and image.dtype not in _DTYPES:
        if image.dtype == torch.int64 and int(image.abs().max()) > 2**53:
            raise ValueError("sample_labels: image has labels above 2**53, which float64 rounds")
        held = image.double()  # holds every label of 32 bits
    _checked("sample_labels", names, (held, *others))
    evaluate = _apply_labels if _asks_for_gradient(others) else _labels_op
    label, weight = evaluate(held, *others, call)
    return label.to(image.dtype), weight


def _on_field(
    operation: str,
    field: Tensor,
    number: Optional[int],
    align_corners: bool,
    outputs: Sequence[Tensor],
    coordinates: Any = (None, None),
) -> None:
    with torch.cuda.device_of(field):
        _warp.run_on_field(
            operation,
            _c_tensor(field),
            number,
            align_corners,
            [_c_tensor(each) for each in outputs],
            _stream(field),
            coordinates,
        )


def is_deterministic() -> bool:
    return not torch.compiler.is_compiling() and torch.are_deterministic_algorithms_enabled()


def exponentiate(v: Tensor, n: int, align_corners: bool) -> Tensor:
    """By compose(), and differentiable as that is; halves in f32 on the way."""
    call = _warp.text("compose", align_corners=align_corners, deterministic=is_deterministic())
    u = (v if v.dtype == torch.float64 else v.float()) * 2.0**-n
    for _ in range(n):
        u = u + transform(call, ("u", "affine", "v"), (u, None, u, None))
    return u.to(v.dtype)


def invert(u: Tensor, iterations: int, align_corners: bool) -> tuple[Tensor, Tensor]:
    u = u.detach()
    wide = torch.float64 if u.dtype == torch.float64 else torch.float32
    result, residual = torch.empty_like(u), u.new_empty(u.shape[:1], dtype=wide)
    _on_field("invert", u, iterations, align_corners, [result, residual])
    return result, residual


def _spacing(u: Tensor, align_corners: bool, low: _Coordinates, high: _Coordinates) -> list[float]:
    """Between voxels, along (x, y, z)."""
    rank = u.dim() - 2
    result = []
    for axis in range(rank):
        n = int(u.shape[rank - axis])
        edge = 1.0 if align_corners else 1 - 1 / n
        first = -edge if low is None else low[axis]
        last = edge if high is None else high[axis]
        result.append((last - first) / max(n - 1, 1))
    return result


def jacobian_determinant(
    u: Tensor, align_corners: bool, low: _Coordinates, high: _Coordinates
) -> tuple[Tensor, Tensor]:
    """The determinant, composed where it is differentiated, and the number of folds."""
    det = u.new_empty(u.shape[:-1])
    folds = u.new_empty(u.shape[:1], dtype=torch.float64)
    _on_field(
        "jacobian_determinant", u.detach(), None, align_corners, [det, folds], (low, high)
    )
    if torch.is_grad_enabled() and u.requires_grad:
        det = _determinant(u, _spacing(u, align_corners, low, high))
    return det, folds


def _determinant(u: Tensor, spacing: Sequence[float]) -> Tensor:
    """In torch's operators, differentiable; spacing: along (x, y, z)."""
    rank = u.dim() - 2
    wide = u if u.dtype == torch.float64 else u.float()
    columns = []
    for axis in range(rank):
        extent = u.shape[rank - axis]
        along = wide.movedim(rank - axis, 0)
        if extent == 1:
            slope = torch.zeros_like(along)
        else:
            inner = (along[2:] - along[:-2]) / (2 * spacing[axis])
            first = (along[1:2] - along[:1]) / spacing[axis]
            last = (along[-1:] - along[-2:-1]) / spacing[axis]
            slope = torch.cat([first, inner, last])
        columns.append(slope.movedim(0, rank - axis))
    j = torch.stack(columns, -1) + torch.eye(rank, dtype=wide.dtype, device=u.device)
    if rank == 2:
        result = j[..., 0, 0] * j[..., 1, 1] - j[..., 0, 1] * j[..., 1, 0]
    else:
        result = (torch.linalg.cross(j[..., :, 0], j[..., :, 1]) * j[..., :, 2]).sum(-1)
    return result.to(u.dtype)

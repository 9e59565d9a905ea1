# SPDX-License-Identifier: Apache-2.0
"""Sampling and composing torch's tensors: operators, and autograd around them.

similis::transform           sample, compose or affine_grid
similis::transform_gradient  gradients to the operands that ask for one, in one pass
similis::labels              label and weight
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, Optional

import torch
from torch import Tensor

from . import _warp
from ._torch import (
    _c_tensor,
    _is_memory,
    _is_transformed,
    _nobody_looks,
    _ops,
    _refuse_image,
    _require_same_device,
    _stream_of,
    _TELLS_KEYS,
)

_TAGS = (torch.Tag.pt2_compliant_tag,)
_OPERANDS = "Tensor operand, Tensor? affine, Tensor? field, Tensor? grid_affine"
_ops.define(f"transform({_OPERANDS}, str call) -> Tensor", tags=_TAGS)
_ops.define(f"labels({_OPERANDS}, str call) -> (Tensor, Tensor)", tags=_TAGS)
_ops.define(
    f"transform_gradient({_OPERANDS}, Tensor upstream, bool of_operand, bool of_affine, "
    "bool of_field, bool of_grid_affine, str call) -> Tensor[]",
    tags=_TAGS,
)


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
            _stream_of(operand),
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
    outputs = _warp.gradient_outputs(
        parsed.operation, upstream, *[next(left) if of else None for of in asked]
    )
    _run(parsed, (operand, affine, field, grid_affine), outputs)
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


def _looped(
    function: Any, info: Any, in_dims: tuple[Any, ...], arguments: tuple[Any, ...]
) -> tuple[Any, Any]:
    """vmap's rule for a function of tensors: one call for each element."""
    results = [
        function.apply(
            *[each if at is None else each.select(at, i) for each, at in zip(arguments, in_dims)]
        )
        for i in range(info.batch_size)
    ]
    if isinstance(results[0], Tensor):
        return torch.stack(results), 0
    return tuple(torch.stack(each) for each in zip(*results)), (0,) * len(results[0])


class _Gradient(torch.autograd.Function):
    """The operator where its results may be differentiated, which they cannot."""

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Any, Any]:
        return _looped(_Gradient, info, in_dims, arguments)

    @staticmethod
    def forward(*arguments: Any) -> tuple[Tensor, ...]:
        return tuple(_gradient_op(*arguments))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.call = inputs[-1]

    @staticmethod
    def backward(ctx: Any, *upstreams: Tensor) -> NoReturn:
        raise NotImplementedError(
            f"{ctx.call.split(' ', 1)[0]}: the gradient of a gradient is asked for; there is none"
        )


def _gradients(
    operands: Sequence[Optional[Tensor]], upstream: Tensor, asked: Sequence[bool], call: str
) -> list[Optional[Tensor]]:
    """In the operands' places."""
    if not any(asked):
        return [None] * len(asked)
    differentiable = torch.is_grad_enabled() and not torch.compiler.is_compiling()
    compute: Any = _Gradient.apply if differentiable else _gradient_op
    computed = iter(compute(*operands, upstream, *asked, call))
    return [next(computed) if of else None for of in asked]


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
        operands = ctx.saved_tensors
        asked = list(ctx.needs_input_grad[:4])
        by_field = None
        if ctx.call.startswith("affine_grid "):  # x + u(x) hands the upstream on to u
            if asked[2]:
                by_field = upstream.to(operands[2].dtype)
                if operands[2].shape[0] != upstream.shape[0]:
                    by_field = by_field.sum(0, keepdim=True)
            asked[2] = False
        results = _gradients(operands, upstream, asked, ctx.call)
        if by_field is not None:
            results[2] = by_field
        return *results, None


class _TransformUnderFunctorch(_Transform):
    """The same in the form of torch.func's grad and vmap, which costs a call of autograd 15 µs."""

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Any, Any]:
        return _looped(_TransformUnderFunctorch, info, in_dims, arguments)

    @staticmethod
    def forward(*arguments: Any) -> Tensor:
        return _transform_op(*arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.call = inputs[-1]
        ctx.save_for_backward(*inputs[:-1])


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
        asked = [False, *ctx.needs_input_grad[1:4]]
        return *_gradients(ctx.saved_tensors, upstream, asked, ctx.call), None


class _LabelsUnderFunctorch(_Labels):
    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Any, Any]:
        return _looped(_LabelsUnderFunctorch, info, in_dims, arguments)

    @staticmethod
    def forward(*arguments: Any) -> tuple[Tensor, Tensor]:
        label, weight = _labels_op(*arguments)
        return label, weight

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.call = inputs[-1]
        ctx.save_for_backward(*inputs[:-1])
        ctx.mark_non_differentiable(output[0])


_apply_transform: Any = _Transform.apply
_apply_labels: Any = _Labels.apply


def _chosen(
    operator: Any, apply: Any, under_functorch: Any, operands: Sequence[Optional[Tensor]]
) -> Any:
    """The operator by itself where nobody asks for a derivative; torch refuses forward mode, which
    the others have not."""
    if torch.compiler.is_compiling():
        return apply if _asks_for_gradient(operands) else operator
    if torch._C._are_functorch_transforms_active():
        return under_functorch.apply
    return apply if _asks_for_gradient(operands) or _is_transformed() else operator


def _checked(operation: str, names: Sequence[str], operands: Sequence[Any]) -> None:
    for name, tensor in zip(names, operands):
        if tensor is None and name != names[0]:
            continue
        _refuse_image(operation, name, tensor)
        _require_same_device(operation, name, tensor, names[0], operands[0])
        if tensor.dim() < 2 or 0 in tensor.shape:
            raise ValueError(
                f"{operation}: {name} has shape {list(tensor.shape)}; every extent must be at "
                "least 1"
            )


def _check_output(call: _warp.Call, output: Any, operands: Sequence[Optional[Tensor]]) -> None:
    operand = operands[0]
    assert operand is not None
    _refuse_image(call.operation, "output", output)
    _require_same_device(call.operation, "output", output, "the result", operand)
    for what, given, wanted in (
        ("shape", list(output.shape), _shape(call, operand, *operands[1:])),
        ("dtype", output.dtype, operand.dtype),
    ):
        if given != wanted:
            raise ValueError(
                f"{call.operation}: output has {what} {given}; it must be the result's, {wanted}"
            )


def _is_memory_apart(output: Tensor, operands: Sequence[Optional[Tensor]]) -> bool:
    """Whether the library may write to it: nobody else sees to that, or reads there."""
    if output.requires_grad or not _nobody_looks():
        return False
    given = [each for each in operands if each is not None]
    if not (_TELLS_KEYS and all(_is_memory(each) for each in (output, *given))):
        return False
    memory = output.untyped_storage().data_ptr()
    return all(each.untyped_storage().data_ptr() != memory for each in given)


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
    compute = _chosen(_transform_op, _apply_transform, _TransformUnderFunctorch, operands)
    if output is None:
        return compute(*operands, call)
    if torch.compiler.is_compiling():
        return output.add_(compute(*operands, call))
    parsed = _warp.parse(call)
    _check_output(parsed, output, operands)
    if compute is not _transform_op or not _is_memory_apart(output, operands):
        return output.add_(compute(*operands, call))
    _run(parsed, operands, [output, *[None] * _GRADIENTS[parsed.operation]], accumulate=True)
    if not output.is_inference():
        torch.autograd.graph.increment_version(output)
    return output


def labels(call: str, names: Sequence[str], operands: Sequence[Any]) -> tuple[Tensor, Tensor]:
    """Label and weight; labels in the image's dtype, which may be any of torch's integers."""
    image, *others = operands
    held = image
    if isinstance(image, Tensor) and image.dtype in _INTEGERS:
        is_known = image.device.type != "meta" and not torch.compiler.is_compiling()
        if image.dtype == torch.int64 and is_known and image.numel() != 0:
            if image.amin() < -(2**53) or image.amax() > 2**53:
                raise ValueError("sample_labels: image has labels beyond 2**53, which f64 rounds")
        held = image.double()  # holds every label of 32 bits
    _checked("sample_labels", names, (held, *others))
    compute = _chosen(_labels_op, _apply_labels, _LabelsUnderFunctorch, others)
    label, weight = compute(held, *others, call)
    return label.to(image.dtype), weight


_INTEGERS = (torch.bool, torch.int8, torch.int16, torch.int32, torch.int64)


def is_deterministic() -> bool:
    return not torch.compiler.is_compiling() and torch.are_deterministic_algorithms_enabled()

# SPDX-License-Identifier: Apache-2.0
"""Sampling and composing torch's tensors: operators, and autograd around them, as in measures.py.

similis::transform           sample, compose or affine_grid
similis::transform_gradient  gradients to the operands that ask for one, in one pass
similis::labels              label and weight
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, NoReturn, Optional

import torch
from torch import Tensor

from .._library import c_abi, warp
from .measures import (
    _c_tensor,
    _DTYPES,
    _functions,
    _is_memory,
    _is_transformed,
    _nobody_looks,
    _ops,
    _refuse_image,
    _require_same_device,
    _stream_of,
    _TELLS_KEYS,
)

_Tensors = Sequence[Optional[Tensor]]
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
    call: warp.Call,
    operand: Tensor,
    affine: Optional[Tensor],
    field: Optional[Tensor],
    grid_affine: Optional[Tensor],
) -> list[Any]:
    given = [each for each in (operand, affine, field, grid_affine) if each is not None]
    shape = None if field is None else field.shape
    return call.result_shape(operand.shape, [each.shape[0] for each in given], shape)


def _empty(call: warp.Call, *operands: Optional[Tensor]) -> Tensor:
    operand, _, field, _ = operands
    assert operand is not None
    model = field if call.operation == "affine_grid" and field is not None else operand
    return model.new_empty(_shape(call, *operands))  # type: ignore[arg-type]


def _run_by_ctypes(
    call: warp.Call, operands: _Tensors, outputs: _Tensors, accumulate: bool = False
) -> None:
    described = [_c_tensor(each) for each in operands]
    results = [_c_tensor(each) for each in outputs]
    assert operands[0] is not None
    warp.run(call, described, results, _stream_of(operands[0]), accumulate)


def _run_by_tvm_ffi(functions: dict[str, Any]) -> Callable[..., None]:
    def run(
        call: warp.Call, operands: _Tensors, outputs: _Tensors, accumulate: bool = False
    ) -> None:
        function = functions[call.operation]
        status = function(call.options_address, call.is_grid, accumulate, *operands, *outputs)
        if status != 0:
            c_abi.raise_last_error(status)

    return run


_run = _run_by_tvm_ffi(_functions) if _functions else _run_by_ctypes


def _transform(
    operand: Tensor,
    affine: Optional[Tensor],
    field: Optional[Tensor],
    grid_affine: Optional[Tensor],
    call: str,
) -> Tensor:
    parsed = warp.parse(call)
    operands = (operand, affine, field, grid_affine)
    result = _empty(parsed, *operands)
    _run(parsed, operands, (result, *_NO_GRADIENTS[parsed.operation]))
    return result


# What follows the result among the arguments of each C function: upstream, then gradients.
_NO_GRADIENTS = {"sample": (None,) * 5, "compose": (None,) * 4, "affine_grid": (None,) * 2}


def _labels(
    operand: Tensor,
    affine: Optional[Tensor],
    field: Optional[Tensor],
    grid_affine: Optional[Tensor],
    call: str,
) -> tuple[Tensor, Tensor]:
    parsed = warp.parse(call)
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
    parsed = warp.parse(call)
    asked = (of_operand, of_affine, of_field, of_grid_affine)
    gradients = _gradient_shapes(operand, affine, field, grid_affine, upstream, *asked, call)
    left = iter(gradients)
    outputs = warp.gradient_outputs(
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
        warp.parse(call), operand, affine, field, grid_affine
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
    operands: _Tensors,
    upstream: Tensor,
    asked: Sequence[bool],
    call: str,
    differentiate: Any = _gradient_op,
) -> list[Optional[Tensor]]:
    """In the operands' places."""
    if not any(asked):
        return [None] * len(asked)
    differentiable = torch.is_grad_enabled() and not torch.compiler.is_compiling()
    compute: Any = _Gradient.apply if differentiable else differentiate
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
        return _transform_backward(ctx, ctx.saved_tensors, upstream, _gradient_op)


def _transform_backward(
    ctx: Any, operands: _Tensors, upstream: Tensor, differentiate: Any
) -> tuple[Optional[Tensor], ...]:
    asked = list(ctx.needs_input_grad[:4])
    field, by_field = operands[2], None
    if ctx.call.startswith("affine_grid "):  # x + u(x) hands the upstream on to u
        if field is not None and asked[2]:
            by_field = upstream.to(field.dtype)
            if field.shape[0] != upstream.shape[0]:
                by_field = by_field.sum(0, keepdim=True)
        asked[2] = False
    results = _gradients(operands, upstream, asked, ctx.call, differentiate)
    if by_field is not None:
        results[2] = by_field
    return *results, None


class _PlainTransform(torch.autograd.Function):
    """The same of _are_plain() operands, which goes past the operators."""

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
        return _transform(operand, affine, field, grid_affine, call)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
        operands = ctx.saved_tensors  # which hooks may have replaced
        plain = _nobody_looks() and _are_memory((*operands, upstream))
        differentiate = _transform_gradient if plain else _gradient_op
        return _transform_backward(ctx, operands, upstream, differentiate)


# As in measures.py.
_apply_plainly: Any = super(torch.autograd.Function, _PlainTransform).apply


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


def _are_memory(tensors: _Tensors) -> bool:
    for each in tensors:
        if each is not None and not _is_memory(each):
            return False
    return True


def _are_plain(operands: _Tensors) -> bool:
    """Whether _checked() would take them as they are, asked in fewer words, and nobody needs to see
    the operators, as torch.func and forward mode do."""
    if not (_TELLS_KEYS and _nobody_looks() and _are_memory(operands)) or _is_transformed():
        return False
    assert operands[0] is not None
    device = operands[0].get_device()
    for each in operands:
        if each is not None and not (
            each.dtype in _DTYPES
            and each.get_device() == device
            and each.dim() > 1
            and each.numel() != 0
        ):
            return False
    return True


_apply_transform: Any = _Transform.apply
_apply_labels: Any = _Labels.apply


def _chosen(operator: Any, apply: Any, under_functorch: Any, operands: _Tensors) -> Any:
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


def _check_output(call: warp.Call, output: Any, operands: _Tensors) -> None:
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


def _is_memory_apart(output: Tensor, operands: _Tensors) -> bool:
    """Whether the library may write to it: nobody reads there, or asks for a gradient."""
    if output.requires_grad or not _is_memory(output):
        return False
    memory = output.untyped_storage().data_ptr()
    return all(each is None or each.untyped_storage().data_ptr() != memory for each in operands)


def _asks_for_gradient(operands: _Tensors) -> bool:
    return torch.is_grad_enabled() and any(
        each is not None and each.requires_grad for each in operands
    )


def transform(
    call: str, names: Sequence[str], operands: Sequence[Any], output: Optional[Tensor] = None
) -> Tensor:
    """operands: image, u or A; affine; field; grid_affine."""
    is_compiling = torch.compiler.is_compiling()
    compute: Any
    if _are_plain(operands):
        compute = _apply_plainly if _asks_for_gradient(operands) else _transform
    else:
        _checked(call.split(" ", 1)[0], names, operands)
        if is_compiling and operands[2] is operands[0]:
            # It traces no autograd.Function that is given one tensor twice.
            operands = (operands[0], operands[1], operands[2].view_as(operands[2]), operands[3])
        compute = _chosen(_transform_op, _apply_transform, _TransformUnderFunctorch, operands)
    if output is None:
        return compute(*operands, call)
    if is_compiling:
        return output.add_(compute(*operands, call))
    parsed = warp.parse(call)
    _check_output(parsed, output, operands)
    if compute is not _transform or not _is_memory_apart(output, operands):
        return output.add_(compute(*operands, call))
    _run(parsed, operands, (output, *_NO_GRADIENTS[parsed.operation]), accumulate=True)
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

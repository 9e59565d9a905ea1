# SPDX-License-Identifier: Apache-2.0
"""Autograd around the operators of sampling and composing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, Optional

import torch
from torch import Tensor

from .binding import Tensors
from .registry import differentiate
from .tensors import is_traced, is_transformed
from .transform_operators import (
    gradient_op,
    labels_op,
    transform_op,
)


def _looped(
    function: Any, info: Any, in_dims: tuple[Any, ...], arguments: tuple[Any, ...]
) -> tuple[Any, Any]:
    """vmap's rule for a function of tensors: it calls the function once for each element."""
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
    """The gradients, where autograd records them; their own derivative is refused."""

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Any, Any]:
        return _looped(_Gradient, info, in_dims, arguments)

    @staticmethod
    def forward(*arguments: Any) -> tuple[Tensor, ...]:
        return tuple(gradient_op(*arguments))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.call = inputs[-1]

    @staticmethod
    def backward(ctx: Any, *upstreams: Tensor) -> NoReturn:
        raise NotImplementedError(
            f"{ctx.call.split(' ', 1)[0]}: gradients of gradients are not supported"
        )


def _gradients(
    operands: Tensors, upstream: Tensor, asked: Sequence[bool], call: str
) -> list[Optional[Tensor]]:
    """One gradient or None for each operand."""
    if not any(asked):
        return [None] * len(asked)
    differentiable = torch.is_grad_enabled() and not torch.compiler.is_compiling()
    compute: Any = _Gradient.apply if differentiable else gradient_op
    computed = iter(compute(*operands, upstream, *asked, call))
    return [next(computed) if of else None for of in asked]


def _keep(ctx: Any, arguments: tuple[Any, ...]) -> None:
    """Keeps an operator's arguments, four operands and a call, for its backward."""
    ctx.call = arguments[-1]
    ctx.save_for_backward(*arguments[:-1])


class _Transform(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Tensor:
        _keep(ctx, arguments)
        return transform_op(*arguments)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
        return transform_backward(ctx, ctx.saved_tensors, upstream)


def transform_backward(
    ctx: Any, operands: Tensors, upstream: Tensor
) -> tuple[Optional[Tensor], ...]:
    asked = list(ctx.needs_input_grad[:4])
    field, by_field = operands[2], None
    if ctx.call.startswith("affine_grid"):  # the derivative of x + u(x) by u is 1
        if field is not None and asked[2]:
            by_field = upstream.to(field.dtype)
            if field.shape[0] != upstream.shape[0]:
                by_field = by_field.sum(0, keepdim=True)
        asked[2] = False
    results = _gradients(operands, upstream, asked, ctx.call)
    if by_field is not None:
        results[2] = by_field
    return *results, None


class _TransformUnderFunctorch(_Transform):
    """_Transform in the form that torch.func needs; it makes a call of autograd 15 µs slower."""

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Any, Any]:
        return _looped(_TransformUnderFunctorch, info, in_dims, arguments)

    @staticmethod
    def forward(*arguments: Any) -> Tensor:
        return transform_op(*arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _keep(ctx, inputs)


class _Labels(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, Tensor]:
        _keep(ctx, arguments)
        label, weight = labels_op(*arguments)
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
        label, weight = labels_op(*arguments)
        return label, weight

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        _keep(ctx, inputs)
        ctx.mark_non_differentiable(output[0])


differentiate("transform", _Transform.backward, _TransformUnderFunctorch.setup_context)
differentiate("labels", _Labels.backward, _LabelsUnderFunctorch.setup_context)


def asks_for_gradient(operands: Tensors) -> bool:
    if torch.is_grad_enabled():
        for each in operands:
            if each is not None and each.requires_grad:
                return True
    return False


_apply_transform: Any = _Transform.apply
_apply_labels: Any = _Labels.apply


def _choose(operator: Any, apply: Any, under_functorch: Any, operands: Tensors) -> Any:
    """The operator itself if nobody asks for a derivative.

    In forward mode an autograd.Function is chosen, which torch then refuses to differentiate.
    """
    if torch.compiler.is_compiling():
        return apply if asks_for_gradient(operands) else operator
    if torch._C._are_functorch_transforms_active():
        return under_functorch.apply
    if is_traced():
        return operator
    return apply if asks_for_gradient(operands) or is_transformed() else operator


def transform_function(operands: Tensors) -> Any:
    """The function of the operands and the call that computes sample, compose and affine_grid."""
    return _choose(transform_op, _apply_transform, _TransformUnderFunctorch, operands)


def labels_function(operands: Tensors) -> Any:
    """The same for labels and weights, whose image has no gradient; operands: the others."""
    return _choose(labels_op, _apply_labels, _LabelsUnderFunctorch, operands)

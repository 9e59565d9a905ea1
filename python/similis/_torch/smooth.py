# SPDX-License-Identifier: Apache-2.0
"""Smoothing torch's tensors.

similis::smooth  x smoothed, or the adjoint of that

Smoothing is linear, so its tangents are smoothings and its gradients are adjoints, of any order.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .._library import measures
from .._library import smooth as library
from .._library.smooth import adjoint_of
from . import elsewhere
from .binding import are_plain, c_tensor, compute, stream_of
from .devices import is_elsewhere
from .plain import NOT_PLAIN
from .registry import applied_plainly, define, differentiate
from .tensors import TELLS_KEYS, is_traced, is_transformed
from .transforms import require_operands


def _shape(x: Tensor, call: str) -> Tensor:
    return x.new_empty(x.shape)


def _compute(x: Tensor, call: str) -> Tensor:
    result = _shape(x, call)
    described, output = c_tensor(x), c_tensor(result)
    assert described is not None and output is not None
    with torch.cuda.device_of(x):
        library.run(call, described, output, stream_of(x), torch.get_num_threads())
    return result


smooth_op = define("smooth(Tensor x, str call) -> Tensor", _compute, _shape)


def _plainly(x: Any, call: str) -> Any:
    """The operator's result where nobody looks between autograd and the library, or None."""
    try:
        if not TELLS_KEYS or torch.compiler.is_compiling() or x is None or not are_plain(x):
            return None
        if not (x.is_cpu or x.is_cuda):
            return None
        if x.requires_grad and torch.is_grad_enabled():
            return _apply_plainly(x, call)
        results = compute(measures.parse(call).plan, (x,), (x,))
        return None if results is None else results[0]
    except NOT_PLAIN:
        return None


class _Smooth(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, call: str) -> Tensor:
        ctx.call = call
        result = _plainly(x, call)
        return smooth_op(x, call) if result is None else result

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        return differentiable(upstream, adjoint_of(ctx.call)), None


class _SmoothUnderFunctorch(torch.autograd.Function):
    """_Smooth in the form that torch.func and forward mode need."""

    @staticmethod
    def forward(x: Tensor, call: str) -> Tensor:
        return smooth_op(x, call)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.call = inputs[1]

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        return differentiable(upstream, adjoint_of(ctx.call)), None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: None) -> Tensor:
        return differentiable(tangent, ctx.call)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], x: Tensor, call: str) -> tuple[Tensor, int]:
        """The mapped axis joins N."""
        batched = x.movedim(in_dims[0], 0)
        result = differentiable(batched.flatten(0, 1), call)
        return result.unflatten(0, batched.shape[:2]), 0


differentiate("smooth", _Smooth.backward, _SmoothUnderFunctorch.setup_context)
_apply: Any = _Smooth.apply
_apply_plainly: Any = applied_plainly(_Smooth)
_apply_under_functorch: Any = _SmoothUnderFunctorch.apply


def differentiable(x: Tensor, call: str) -> Tensor:
    """The operator, or a function with derivatives where somebody may ask for them."""
    plain: Any = _plainly(x, call)
    if plain is not None:
        return plain
    if torch.compiler.is_compiling():
        wanted = torch.is_grad_enabled() and x.requires_grad
        return _apply(x, call) if wanted else smooth_op(x, call)
    if is_transformed():
        return _apply_under_functorch(x, call)
    if torch.is_grad_enabled() and x.requires_grad and not is_traced():
        return _apply(x, call)
    return smooth_op(x, call)


def smooth(x: Tensor, call: str) -> Tensor:
    plain: Any = _plainly(x, call)
    if plain is not None:
        return plain
    require_operands("smooth", ("x",), (x,))
    if is_elsewhere(x):
        return elsewhere.smooth(x, call)
    return differentiable(x, call)

# SPDX-License-Identifier: Apache-2.0
"""The fast path of the measures and of the transforms.

It takes tensors that are nothing but memory while nobody looks between autograd and the library,
and asks only what the library cannot see. All else the library refuses before it writes anything:
a function here then returns None, and the caller goes the way that asks in full, which converts
what can be converted and raises the sentence that a user reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import torch
from torch import Tensor

from .._library import measures, range_warning, warp
from . import gradient_scaling
from .binding import DTYPES, Tensors, attempt, scale
from .measure_operators import compute_gradient, empty_value, number_like
from .measures import Plan, differentiated, if_plain, is_usual_shape, largest
from .tensors import (
    PLAIN,
    TELLS_KEYS,
    USUAL_DTYPES,
    is_memory,
    is_transformed,
    somebody_looks,
)
from .transform_autograd import transform_backward
from .transform_operators import (
    NO_GRADIENTS,
    gradient_of_each,
    like,
    result_model,
    shape_unlike,
)

_is_grad_enabled = torch.is_grad_enabled
_threads = torch.get_num_threads
_empty_like = torch.empty_like


def _product(gradient: Optional[Tensor], upstream: Tensor) -> Optional[Tensor]:
    """A new tensor, as is_grads_batched of torch.autograd.grad() multiplies by many numbers."""
    if gradient is None or gradient.dtype is not torch.bfloat16:
        return None if gradient is None else gradient * upstream
    return (gradient.float() * upstream).to(torch.bfloat16)


class _Refused(Exception):
    """The library refused what an autograd.Function gave it."""


class _Evaluation(torch.autograd.Function):
    """A measure that is one number, with its gradients, which are computed in the forward pass."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, y: Tensor, measure: measures.Measure, of_x: bool, of_y: bool
    ) -> Tensor:
        value = _empty_like(number_like(measure.in_float64 or x.dtype is torch.float64, x.device))
        x_gradient = _empty_like(x) if of_x else None
        y_gradient = _empty_like(y) if of_y else None
        address, threads, unasked = measure.options_address, _threads(), measure.unasked
        if attempt(measure.index, address, threads, x, y, *unasked, value, x_gradient, y_gradient):
            raise _Refused
        # While a GPU is at work.
        ctx.save_for_backward(x, y)
        ctx.measure, ctx.gradients = measure, (x_gradient, y_gradient)
        return value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
        x, y = ctx.saved_tensors  # raises if they have changed or been freed
        gradients = ctx.gradients
        if gradients is None or _is_grad_enabled():
            of_x, of_y, *_ = ctx.needs_input_grad
            plan = Plan(ctx.measure.described, of_x, of_y, 1.0, True)
            return *differentiated((x, y, None, None), plan, upstream), None, None, None
        ctx.gradients = None
        if somebody_looks() or not is_memory(upstream):
            return *[_product(each, upstream) for each in gradients], None, None, None
        if not (upstream.is_cpu and upstream.item() == 1):  # on a GPU scale() asks
            for each in gradients:
                if each is not None:
                    scale(each, upstream)
        return *gradients, None, None, None


# Function.apply() calls this, after a search for leftovers of transforms that takes 1.5 µs.
_evaluated: Any = super(torch.autograd.Function, _Evaluation).apply


# What torch, the bindings and an autograd.Function raise for tensors of another kind. The way that
# asks in full raises it again.
_NOT_PLAIN = (_Refused, RuntimeError, ValueError, TypeError, KeyError, BufferError)


def _measure_if_plain(operation: str, text: str, x: Any, y: Any) -> Optional[measures.Measure]:
    """The measure if its images need no other layout or type and nobody looks, or None."""
    if somebody_looks() or type(x) not in PLAIN or type(y) not in PLAIN:
        return None
    dtype, shape = x.dtype, x.shape
    rank = len(shape)
    if (
        dtype not in USUAL_DTYPES
        or rank < 4
        or (rank == 4 and (shape[3] == 3 or shape[3] == 4))
        or x.is_neg()
        or y.is_neg()
    ):
        return None
    measure = measures.parse(text)
    if not measure.is_plain:
        return None
    if x.is_cpu:
        elements = x.numel()
        if elements >= range_warning.LOOK_FROM:
            if y.shape != shape or not y.is_cpu or y.dtype is not dtype:
                return None
            if range_warning.wants_look(operation, elements, DTYPES[dtype]):
                range_warning.look(operation, text, largest, x=x, y=y)
    elif not x.is_cuda:
        return None
    return measure


def evaluate(operation: str, text: str, x: Any, y: Any) -> Optional[Tensor]:
    """The value of a measure of two images that need no other layout or type, or None."""
    try:
        measure = _measure_if_plain(operation, text, x, y)
        if measure is None:
            return None
        dtype = x.dtype
        of_x, of_y = x.requires_grad, y.requires_grad
        if (of_x or of_y) and _is_grad_enabled():
            if not measure.is_scalar or dtype is torch.float16:
                return None  # their gradients wait for the upstream gradient, or are scaled
            differentiable: Tensor = _evaluated(x, y, measure, of_x, of_y)
            return differentiable
        if measure.is_scalar:
            is_wide = measure.in_float64 or dtype is torch.float64
            value = _empty_like(number_like(is_wide, x.device))
        else:
            value = empty_value(x, measure)
        address, threads, unasked = measure.options_address, _threads(), measure.unasked
        status = attempt(measure.index, address, threads, x, y, *unasked, value, None, None)
        return None if status else value
    except _NOT_PLAIN:
        return None


def with_gradients(
    operation: str,
    text: str,
    x: Any,
    y: Any,
    mask: Optional[Tensor],
    valid_mask: Optional[Tensor],
    of_x: bool,
    of_y: bool,
) -> Optional[list[Tensor]]:
    """A measure's value and the gradients of the sum over it, in one pass and without autograd, with
    the bits that autograd gives; or None."""
    try:
        if " sums=1" in text:  # f64, in which the kernels with and without gradients differ
            return None
        is_simple = mask is None and valid_mask is None and x.dtype is not torch.float16
        if not is_simple or not TELLS_KEYS:
            return _with_gradients(operation, text, x, y, mask, valid_mask, of_x, of_y)
        measure = _measure_if_plain(operation, text, x, y)
        if measure is None:  # it may be a measure that takes more than two images
            return _with_gradients(operation, text, x, y, mask, valid_mask, of_x, of_y)
        if measure.is_scalar:
            is_wide = measure.in_float64 or x.dtype is torch.float64
            results = [_empty_like(number_like(is_wide, x.device))]
        else:
            results = [empty_value(x, measure)]
        x_gradient = y_gradient = None
        if of_x:
            results.append(x_gradient := _empty_like(x))
        if of_y:
            results.append(y_gradient := _empty_like(y))
        given = (x, y, *measure.unasked, results[0], x_gradient, y_gradient)
        status = attempt(measure.index, measure.options_address, _threads(), *given)
        return None if status else results
    except _NOT_PLAIN:
        return None


def _with_gradients(
    operation: str,
    text: str,
    x: Tensor,
    y: Any,
    mask: Optional[Tensor],
    valid_mask: Optional[Tensor],
    of_x: bool,
    of_y: bool,
) -> Optional[list[Tensor]]:
    found = if_plain(x, y, mask, valid_mask)
    if found is None or not is_usual_shape(found[0]) or is_transformed():
        return None
    _, mask, valid_mask = found
    if x.is_cpu and x.numel() >= range_warning.LOOK_FROM:
        if range_warning.wants_look(operation, x.numel(), DTYPES[x.dtype]):
            range_warning.look(operation, text, largest, x=x, y=y)
    scaled_by: Optional[float] = None
    if x.dtype is torch.float16 and measures.is_scalar(text):
        has_mask = mask is not None or valid_mask is not None
        scaled_by = gradient_scaling.power_of_two(text, x.shape, has_mask)
    upstream = None if scaled_by is None else x.new_full((), scaled_by, dtype=torch.float32)
    results = compute_gradient(x, y, mask, valid_mask, upstream, True, of_x, of_y, text)
    if scaled_by is not None:  # the product is rounded as a backward pass rounds it
        for each in results[1:]:
            scale(each, x.new_full((), 1 / scaled_by, dtype=torch.float32))
    return results


def by_autograd(
    measure: Any, x: Tensor, y: Any, of_x: bool, of_y: bool, options: dict[str, Any]
) -> list[Tensor]:
    """The same of a function of images of any kind, by autograd."""
    with torch.enable_grad():
        x = x.detach().requires_grad_(of_x)
        if isinstance(y, Tensor):  # the measure refuses all others
            y = y.detach().requires_grad_(of_y)
        value = measure(x, y, **options)
        variables = [each for each, wanted in ((x, of_x), (y, of_y)) if wanted]
        gradients = torch.autograd.grad(value if value.dim() == 0 else value.sum(), variables)
    return [value.detach(), *gradients]


def _computed(call: str, operands: Tensors) -> Optional[Tensor]:
    """The result of a transform, or None if the library refuses the operands.

    Most results are shaped as an operand, and the library refuses a result that is not right. So
    shapes are looked at only once there has been another one in a call with these options.
    """
    operand, affine, field, grid_affine = operands
    assert operand is not None
    parsed = warp.parse(call)
    model = result_model(parsed, operand, field)
    given = parsed.arrange((operand, affine, field, grid_affine, None, None, None))
    index, address, threads = parsed.index, parsed.options_address, _threads()
    behind = NO_GRADIENTS[parsed.operation]
    is_guess = parsed.is_as_model
    if is_guess:
        result = like(model)
        if attempt(index, address, threads, *given, result, *behind) == 0:
            return result
    shape = shape_unlike(call, *[None if each is None else each.shape for each in operands])
    if shape is not None:
        parsed.is_as_model = False
        result = model.new_empty(shape)
    elif is_guess:
        return None
    else:
        result = like(model)
    return None if attempt(index, address, threads, *given, result, *behind) else result


class _Transform(torch.autograd.Function):
    """Sampling, composing or a grid."""

    @staticmethod
    def forward(
        ctx: Any,
        operand: Tensor,
        affine: Optional[Tensor],
        field: Optional[Tensor],
        grid_affine: Optional[Tensor],
        call: str,
    ) -> Tensor:
        result = _computed(call, (operand, affine, field, grid_affine))
        if result is None:
            raise _Refused
        # While a GPU is at work.
        ctx.call = call
        ctx.save_for_backward(operand, affine, field, grid_affine)
        return result

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
        operands = ctx.saved_tensors  # hooks may have replaced them
        call = ctx.call
        if (
            _is_grad_enabled()
            or somebody_looks()
            or call.startswith("affine_grid")
            or not is_memory(upstream)
            or not _are_plain(operands)
        ):
            return transform_backward(ctx, operands, upstream)
        return *gradient_of_each(operands, upstream, ctx.needs_input_grad, call), None


_transformed: Any = super(torch.autograd.Function, _Transform).apply


def _are_plain(operands: Sequence[Any]) -> bool:
    for each in operands:
        if each is not None and (type(each) not in PLAIN or each.is_neg()):
            return False
    return True


def transform(call: str, operands: Sequence[Any]) -> Optional[Tensor]:
    """operands: image, u or A; affine; field; grid_affine. The result, or None."""
    if operands[0] is None or somebody_looks():
        return None
    try:
        if not _are_plain(operands):
            return None
        for each in operands:
            if each is not None and each.requires_grad and _is_grad_enabled():
                differentiable: Tensor = _transformed(*operands, call)
                return differentiable
        return _computed(call, operands)
    except _NOT_PLAIN:
        return None

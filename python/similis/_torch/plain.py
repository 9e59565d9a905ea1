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
from .binding import DTYPES, Tensors, attempt, attempt_images, scale
from .measure_operators import compute_gradient, empty_value, number_like
from .measures import Plan, differentiated, if_plain, is_usual_shape, largest
from .registry import applied_plainly
from .tensors import (
    PLAIN,
    TELLS_KEYS,
    has_memory,
    is_transformed,
    somebody_looks,
)
from .transform_autograd import transform_backward
from .transform_operators import (
    NO_GRADIENTS,
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


class Refused(Exception):
    """The library refused what an autograd.Function gave it."""


def number(measure: measures.Measure, x: Tensor) -> Tensor:
    """Memory for a measure that is one number."""
    dtype, device, number = measure.number
    if x.dtype is not dtype or x.device != device:
        number = number_like(measure.in_float64 or x.dtype is torch.float64, x.device)
        measure.number = x.dtype, x.device, number
    return _empty_like(number)


class _Evaluation(torch.autograd.Function):
    """A measure that is one number, with its gradients, which are computed in the forward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, measure: measures.Measure) -> Tensor:
        of_x, of_y, _ = ctx.needs_input_grad
        value = number(measure, x)
        x_gradient = _empty_like(x) if of_x else None
        y_gradient = _empty_like(y) if of_y else None
        if attempt_images(
            measure.index,
            measure.options_address,
            _threads(),
            measure.unasked,
            x,
            y,
            value,
            x_gradient,
            y_gradient,
        ):
            raise Refused
        # While a GPU is at work.
        ctx.save_for_backward(x, y)
        ctx.measure, ctx.gradients = measure, (x_gradient, y_gradient)
        return value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
        x, y = ctx.saved_tensors  # raises if they have changed or been freed
        gradients = ctx.gradients
        if gradients is None or _is_grad_enabled():
            of_x, of_y, _ = ctx.needs_input_grad
            plan = Plan(ctx.measure.described, of_x, of_y, 1.0, True)
            return *differentiated((x, y, None, None), plan, upstream), None
        ctx.gradients = None
        if somebody_looks() or not has_memory(upstream):
            return *[_product(each, upstream) for each in gradients], None
        if not (upstream.is_cpu and upstream.item() == 1):  # on a GPU scale() asks
            for each in gradients:
                if each is not None:
                    scale(each, upstream)
        return *gradients, None


_evaluated = applied_plainly(_Evaluation)


# What torch, the bindings and an autograd.Function raise for tensors of another kind. The way that
# asks in full raises it again.
NOT_PLAIN = (Refused, RuntimeError, ValueError, TypeError, KeyError, BufferError)


def are_plain_images(x: Any, y: Any) -> bool:
    """True if attempt_images() may be asked for the images, while nobody looks."""
    return type(x) in PLAIN and type(y) in PLAIN and not x.is_neg() and not y.is_neg()


def _takes(measure: measures.Measure, operation: str, x: Any, y: Any) -> bool:
    """The same of images of a measure. Warns of values out of range."""
    if not are_plain_images(x, y) or not measure.is_plain:
        return False
    if operation in range_warning.OPERATIONS and x.is_cpu:
        elements, dtype = x.numel(), x.dtype
        if elements >= range_warning.LOOK_FROM and dtype in DTYPES:
            if y.shape != x.shape or not y.is_cpu or y.dtype is not dtype:
                return False
            if range_warning.wants_look(operation, elements, DTYPES[dtype]):
                range_warning.look(operation, measure.described, largest, x=x, y=y)
    return True


def evaluate(operation: str, describe: Any, options: Sequence[Any], x: Any, y: Any) -> Any:
    """The value of a measure of two images that need no other layout or type, or None.

    describe: makes the text of options, as dispatch.py's functions of described_once() do.
    """
    if somebody_looks():
        return None
    try:
        measure = measures.parse(describe.remembered(options))
        if not _takes(measure, operation, x, y):
            return None
        if (x.requires_grad or y.requires_grad) and _is_grad_enabled():
            if not measure.is_scalar or x.dtype is torch.float16:
                return None  # their gradients wait for the upstream gradient, or are scaled
            return _evaluated(x, y, measure)
        value = number(measure, x) if measure.is_scalar else empty_value(x, measure)
        address, unasked = measure.options_address, measure.unasked
        status = attempt_images(
            measure.index, address, _threads(), unasked, x, y, value, None, None
        )
        return None if status else value
    except NOT_PLAIN:
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
        measure = None if somebody_looks() else measures.parse(text)
        if measure is None or not _takes(measure, operation, x, y):
            return _with_gradients(operation, text, x, y, mask, valid_mask, of_x, of_y)
        results = [number(measure, x) if measure.is_scalar else empty_value(x, measure)]
        x_gradient = y_gradient = None
        if of_x:
            results.append(x_gradient := _empty_like(x))
        if of_y:
            results.append(y_gradient := _empty_like(y))
        given = (measure.unasked, x, y, results[0], x_gradient, y_gradient)
        status = attempt_images(measure.index, measure.options_address, _threads(), *given)
        return None if status else results
    except NOT_PLAIN:
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
            raise Refused
        # While a GPU is at work.
        ctx.call = call
        ctx.save_for_backward(operand, affine, field, grid_affine)
        return result

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
        operands = ctx.saved_tensors  # hooks may have replaced them
        call, asked = ctx.call, ctx.needs_input_grad
        if (
            not _is_grad_enabled()
            and not somebody_looks()
            and not call.startswith("affine_grid")
            and _are_plain((upstream, *operands))
        ):
            parsed = warp.parse(call)
            by_each: list[Optional[Tensor]] = [None, None, None, None]
            for i, each in enumerate(operands):
                if asked[i]:
                    by_each[i] = like(each)
            given = parsed.arrange((*operands, None, None, None))
            results = warp.gradient_outputs(parsed.operation, upstream, *by_each)
            try:
                index, address = parsed.index, parsed.options_address
                if attempt(index, address, _threads(), *given, *results) == 0:
                    return *by_each, None
            except NOT_PLAIN:
                pass
        return transform_backward(ctx, operands, upstream)


_transformed = applied_plainly(_Transform)


def _are_plain(operands: Sequence[Any]) -> bool:
    for each in operands:
        if each is not None and (type(each) not in PLAIN or each.is_neg()):
            return False
    return True


def transform(describe: Any, options: Sequence[Any], operands: Sequence[Any]) -> Optional[Tensor]:
    """operands: image, u or A; affine; field; grid_affine. The result, or None.

    describe: makes the text of options, as of evaluate().
    """
    if operands[0] is None or somebody_looks() or not _are_plain(operands):
        return None
    try:
        call = describe.remembered(options)
        if _is_grad_enabled():
            for each in operands:
                if each is not None and each.requires_grad:
                    differentiable: Tensor = _transformed(*operands, call)
                    return differentiable
        return _computed(call, operands)
    except NOT_PLAIN:
        return None

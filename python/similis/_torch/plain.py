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
from .._library.c_abi import raise_last_error
from . import gradient_scaling
from .binding import DTYPES, are_plain, compute, multiply
from .measure_operators import empty_value, number_like
from .measures import Plan, differentiated, largest
from .registry import applied_plainly
from .tensors import TELLS_KEYS
from .transform_autograd import transform_backward
from .transform_operators import result_model, shape_unlike

_is_grad_enabled = torch.is_grad_enabled
_is_compiling = torch.compiler.is_compiling  # asked for first, as a compiler traces no builtin function


def _product(gradient: Optional[Tensor], upstream: Tensor) -> Optional[Tensor]:
    """A new tensor, as is_grads_batched of torch.autograd.grad() multiplies by many numbers."""
    if gradient is None or gradient.dtype in (torch.float32, torch.float64):
        return None if gradient is None else gradient * upstream
    return (gradient.float() * upstream).to(gradient.dtype)


class Refused(Exception):
    """The library refused what an autograd.Function gave it."""


def number(measure: measures.Measure, x: Tensor) -> Tensor:
    """A tensor like which to allocate the value of a measure that is one number."""
    dtype, device, number = measure.number
    if x.dtype is not dtype or x.get_device() != device:
        number = number_like(measure.in_float64 or x.dtype is torch.float64, x.device)
        measure.number = x.dtype, x.get_device(), number
    like: Tensor = number
    return like


class _Evaluation(torch.autograd.Function):
    """A measure that is one number, with its gradients, which are computed in the forward pass.

    Those of f16 images are computed times a scale, as measures.py does it.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, y: Tensor, measure: measures.Measure, *masks: Optional[Tensor]
    ) -> Tensor:
        needed = ctx.needs_input_grad
        models = (number(measure, x), x if needed[0] else None, y if needed[1] else None)
        scale, upstream = 1.0, None
        if x.dtype is torch.float16:
            scale = _scale(measure, x, len(masks) != 0) or 1.0
            upstream = x.new_full((), scale, dtype=torch.float32)
        given: Any = (x, y)
        if masks or upstream is not None:
            given = (x, y, *(masks or _NO_MASKS), upstream)
        results = compute(measure.plan, given, models)
        if results is None:
            raise Refused
        value: Tensor
        value, x_gradient, y_gradient = results
        # While a GPU is at work.
        if masks:
            ctx.save_for_backward(x, y, *masks)
            ctx.gradients = (x_gradient, y_gradient, None, *_NO_MASKS)
        else:
            ctx.save_for_backward(x, y)
            ctx.gradients = (x_gradient, y_gradient, None)
        ctx.measure, ctx.scale = measure, scale
        return value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
        saved = ctx.saved_tensors  # raises if they have changed or been freed
        gradients: Optional[tuple[Optional[Tensor], ...]] = ctx.gradients
        if gradients is None or _is_grad_enabled():
            return _differentiated(ctx, saved, upstream, ctx.scale)
        ctx.gradients = None
        if ctx.scale != 1:
            upstream = upstream / ctx.scale
        status = -1 if _is_compiling() else multiply(upstream, *gradients)
        if status == 0:
            return gradients
        if status > 0:
            raise_last_error(status)
        return tuple([_product(each, upstream) for each in gradients])


class _LateEvaluation(torch.autograd.Function):
    """A measure whose gradients wait for the upstream gradient: of several numbers, or of f16."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, y: Tensor, measure: measures.Measure, *masks: Optional[Tensor]
    ) -> Tensor:
        value = plain_value(measure, x, y, *(masks or _NO_MASKS))
        if value is None:
            raise Refused
        ctx.save_for_backward(x, y, *masks)
        ctx.measure = measure
        return value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
        x, y, *masks = saved = ctx.saved_tensors  # hooks may have replaced them
        if not _is_grad_enabled() and not _is_compiling():
            needed = ctx.needs_input_grad
            models = (None, x if needed[0] else None, y if needed[1] else None)
            try:
                if are_plain(upstream, *saved):
                    given = (x, y, *(masks or _NO_MASKS), upstream)
                    results = compute(ctx.measure.plan, given, models)
                    if results is not None:
                        return results[1], results[2], None, *_NO_MASKS[: len(masks)]
            except NOT_PLAIN:
                pass
        return _differentiated(ctx, saved, upstream, None)


_NO_MASKS = (None, None)


def _differentiated(
    ctx: Any, saved: tuple[Any, ...], upstream: Tensor, gradient_scale: Optional[float]
) -> tuple[Optional[Tensor], ...]:
    """The backward pass by operators, with gradients that can be differentiated where autograd records."""
    x, y, *masks = saved
    of_x, of_y, *_ = ctx.needs_input_grad
    plan = Plan(ctx.measure.described, of_x, of_y, gradient_scale, True)
    by_both = differentiated((x, y, *(masks or _NO_MASKS)), plan, upstream)
    return *by_both, None, *_NO_MASKS[: len(masks)]


def plain_value(
    measure: measures.Measure,
    x: Tensor,
    y: Tensor,
    mask: Optional[Tensor],
    valid_mask: Optional[Tensor],
) -> Optional[Tensor]:
    """The value, or None if the library refuses what is given."""
    if measure.is_scalar:
        results = compute(measure.plan, (x, y, mask, valid_mask), (number(measure, x),))
        return None if results is None else results[0]
    value = empty_value(x, measure)
    given = (x, y, mask, valid_mask, None, value)
    return None if compute(measure.plan_into, given, ()) is None else value


_evaluated = applied_plainly(_Evaluation)
_evaluated_late = applied_plainly(_LateEvaluation)


# Exceptions of torch, the bindings and an autograd.Function for other tensors. The way that
# asks in full raises it again.
NOT_PLAIN = (Refused, RuntimeError, ValueError, TypeError, KeyError, BufferError)


def _takes(measure: measures.Measure, operation: str, x: Any, y: Any) -> bool:
    """True if compute() may be asked for plain images. Warns of values out of range."""
    if not measure.is_plain:
        return False
    if operation in range_warning.OPERATIONS and x.is_cpu:
        elements, dtype = x.numel(), x.dtype
        if elements >= range_warning.LOOK_FROM and dtype in DTYPES:
            if y.shape != x.shape or not y.is_cpu or y.dtype is not dtype:
                return False
            if range_warning.wants_look(operation, elements, DTYPES[dtype]):
                range_warning.look(operation, measure.described, largest, x=x, y=y)
    return True


def _weights(mask: Optional[Tensor]) -> Optional[Tensor]:
    if mask is None:
        return None
    if mask.requires_grad:
        raise Refused
    return mask.view(torch.uint8) if mask.dtype is torch.bool else mask


def _scale(measure: measures.Measure, x: Tensor, has_mask: bool) -> Optional[float]:
    """The factor of f16 gradients of a measure that is one number; None: they wait."""
    return gradient_scaling.power_of_two(measure.described, x.shape, has_mask)


def evaluate(
    operation: str,
    describe: Any,
    options: Sequence[Any],
    x: Any,
    y: Any,
    mask: Optional[Tensor] = None,
    valid_mask: Optional[Tensor] = None,
) -> Any:
    """The value of a measure of two images that need no other layout or type, or None.

    describe: makes the text of options, as dispatch.py's functions of described_once() do.
    """
    try:
        if _is_compiling() or x is None or y is None or not are_plain(x, y, mask, valid_mask):
            return None
        measure = measures.parse(describe.remembered(options))
        if not _takes(measure, operation, x, y):
            return None
        masks: tuple[Optional[Tensor], ...] = ()
        if mask is not None or valid_mask is not None:
            masks = mask, valid_mask = _weights(mask), _weights(valid_mask)
        if (x.requires_grad or y.requires_grad) and _is_grad_enabled():
            is_late = not measure.is_scalar or (
                x.dtype is torch.float16 and _scale(measure, x, len(masks) != 0) is None
            )
            return (_evaluated_late if is_late else _evaluated)(x, y, measure, *masks)
        return plain_value(measure, x, y, mask, valid_mask)
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
        if not TELLS_KEYS or _is_compiling() or y is None or not are_plain(x, y, mask, valid_mask):
            return None
        measure = measures.parse(text)
        if not _takes(measure, operation, x, y):
            return None
        scale, upstream = None, None
        if x.dtype is torch.float16 and measure.is_scalar:
            scale = _scale(measure, x, mask is not None or valid_mask is not None)
            if scale is not None:
                upstream = x.new_full((), scale, dtype=torch.float32)
        given = (x, y, _weights(mask), _weights(valid_mask), upstream)
        models = (x if of_x else None, y if of_y else None)
        if measure.is_scalar:
            results = compute(measure.plan, given, (number(measure, x), *models))
        else:
            value = empty_value(x, measure)
            results = compute(measure.plan_into, (*given, value), models)
            results = None if results is None else (value, *results)
        if results is None:
            return None
        if scale is not None:  # the product is rounded as a backward pass rounds it
            status = multiply(x.new_full((), 1 / scale, dtype=torch.float32), *results[1:])
            if status != 0:
                raise_last_error(status)
        return [each for each in results if each is not None]
    except NOT_PLAIN:
        return None


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


def _computed(call: str, operands: tuple[Optional[Tensor], ...]) -> Optional[Tensor]:
    """The result of a transform, or None if the library refuses the operands.

    Most results are shaped as an operand, and the library refuses a result that is not right. So
    shapes are looked at only once there has been another one in a call with these options.
    """
    operand, _, field, _ = operands
    assert operand is not None
    parsed = warp.parse(call)
    model = result_model(parsed, operand, field)
    is_guess = parsed.is_as_model
    if is_guess:
        results = compute(parsed.plan, operands, (model,))
        if results is not None:
            return results[0]
    shape = shape_unlike(call, *[None if each is None else each.shape for each in operands])
    if shape is not None:
        parsed.is_as_model = False
        result: Tensor = model.new_empty(shape)
        return None if compute(parsed.plan_into, (*operands, result), ()) is None else result
    results = None if is_guess else compute(parsed.plan, operands, (model,))
    return None if results is None else results[0]


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
        if not _is_grad_enabled() and not _is_compiling():
            try:
                if are_plain(upstream, *operands):
                    gradients = _gradients(warp.parse(ctx.call), operands, upstream, ctx)
                    if gradients is not None:
                        return *gradients, None
            except NOT_PLAIN:
                pass
        return transform_backward(ctx, operands, upstream)


def _gradients(
    call: warp.Call, operands: tuple[Any, ...], upstream: Tensor, ctx: Any
) -> Optional[tuple[Optional[Tensor], ...]]:
    """The gradients to plain operands that ask for one, or None."""
    operand, affine, field, grid_affine = operands
    of_operand, of_affine, of_field, of_grid_affine, _ = ctx.needs_input_grad
    by_field: Optional[Tensor] = None
    if of_field and call.operation == "affine_grid":  # the derivative of x + u(x) by u is 1
        if upstream.dtype is not field.dtype or upstream.shape != field.shape:
            return None
        by_field, of_field = upstream, False
        if not of_operand:
            return None, None, by_field, None
    models = (
        operand if of_operand else None,
        affine if of_affine else None,
        field if of_field else None,
        grid_affine if of_grid_affine else None,
    )
    gradients: tuple[Optional[Tensor], ...] = compute(
        call.plan_of_gradients, (*operands, upstream), models
    )
    if by_field is not None and gradients is not None:
        return gradients[0], None, by_field, None
    return gradients


_transformed = applied_plainly(_Transform)


def transform(
    describe: Any, options: Sequence[Any], operands: tuple[Any, ...]
) -> Optional[Tensor]:
    """operands: image, u or A; affine; field; grid_affine. The result, or None.

    describe: makes the text of options, as of evaluate().
    """
    try:
        if operands[0] is None or _is_compiling() or not are_plain(*operands):
            return None
        return _of_plain(describe.remembered(options), operands)
    except NOT_PLAIN:
        return None


def transform_of(call: str, operands: tuple[Any, ...]) -> Optional[Tensor]:
    """The same of options as text."""
    try:
        if not TELLS_KEYS or operands[0] is None or _is_compiling() or not are_plain(*operands):
            return None
        return _of_plain(call, operands)
    except NOT_PLAIN:
        return None


def _of_plain(call: str, operands: tuple[Any, ...]) -> Optional[Tensor]:
    """The same of plain operands."""
    if _is_grad_enabled():
        for each in operands:
            if each is not None and each.requires_grad:
                differentiable: Tensor = _transformed(*operands, call)
                return differentiable
    return _computed(call, operands)

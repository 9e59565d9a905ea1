# SPDX-License-Identifier: Apache-2.0
"""PSNR of torch's tensors: the logarithm of the library's mean squared error.

A training step of plain images has one autograd.Function, as that of mse() has. If somebody
looks between autograd and the library, torch's operators take the logarithm of evaluate()'s error.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Optional

import torch
from torch import Tensor

from .._library import measures, range_warning
from . import decomposition
from .binding import DTYPES, are_plain, compute, scale
from .measure_operators import compute_gradient, compute_value
from .measures import evaluate, if_plain, is_plain, is_usual_shape
from .plain import NOT_PLAIN, Refused, number, plain_value
from .registry import applied_plainly
from .tensors import TELLS_KEYS, is_transformed

_SLOPE = -10 / math.log(10)  # of the decibels by the error, times the error


def _decibels(error: Tensor, of_range: float, has_mask: bool) -> Tensor:
    """The PSNR of errors in f64. of_range: 20·log10(data_range)."""
    if not has_mask:  # two operators, forward and backward; 10·log10(range²/error) takes four
        return torch.rsub(torch.log10(error), of_range, alpha=10)
    exists = ~error.isnan()  # an error of no pixels is NaN, and its gradient is to be 0
    known = torch.where(exists, error, 1.0)
    decibels = torch.rsub(torch.log10(known), of_range, alpha=10)
    return torch.where(exists, decibels, torch.nan)


def _is_ahead(x: Tensor, text: str) -> bool:
    """True if gradients are computed with the error."""
    return x.dtype is not torch.float16 and measures.is_scalar(text)


def _error_plainly(
    x: Tensor, y: Tensor, of_x: bool, of_y: bool, text: str
) -> tuple[Tensor, list[Tensor]]:
    """_error() of images of which are_plain() and _is_ahead() are true; raises Refused."""
    measure = measures.parse(text)
    models = (number(measure, x), x if of_x else None, y if of_y else None)
    results = compute(measure.plan, (x, y), models)
    if results is None:
        raise Refused
    error, *gradients = results
    return error, [each for each in gradients if each is not None]


def _error(
    x: Tensor, y: Tensor, mask: Optional[Tensor], of_x: bool, of_y: bool, text: str
) -> tuple[Tensor, Optional[list[Tensor]]]:
    """The error and, of a mean in all but f16, its gradients in the same pass."""
    if not _is_ahead(x, text):
        return compute_value(x, y, mask, None, text), None
    error, *gradients = compute_gradient(x, y, mask, None, None, True, of_x, of_y, text)
    return error, gradients


def _rounded_decibels(error: Tensor, of_range: float, dtype: torch.dtype) -> Tensor:
    """_decibels() in the dtype of the result of images in this one, NaN of a NaN."""
    wide = dtype == torch.float64
    decibels = torch.empty_like(error, dtype=torch.float64 if wide else torch.float32)
    torch.xlogy(_SLOPE, error, out=decibels)  # one operator, rounded once
    return decibels.add_(of_range) if of_range else decibels


def _times(
    factor: Tensor,
    ahead: Optional[list[Tensor]],
    error: Tensor,
    x: Tensor,
    y: Tensor,
    mask: Optional[Tensor],
    of_x: bool,
    of_y: bool,
    text: str,
) -> list[Tensor]:
    """The error's gradients times the factor, in place where they have been computed ahead."""
    if mask is not None:
        factor.masked_fill_(error.isnan(), 0.0)
    if ahead is None:
        return compute_gradient(x, y, mask, None, factor, False, of_x, of_y, text)
    for each in ahead:
        scale(each, factor)
    return ahead


class _Psnr(torch.autograd.Function):
    """PSNR of plain images, with gradients to those that ask for one.

    The gradients of a mean in f32 and f64 are computed ahead, and backward multiplies them by the
    slope of the decibels, as _Evaluation in measures.py does with the upstream gradient. All others
    are computed in the backward pass.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        y: Tensor,
        mask: Optional[Tensor],
        text: str,
        of_range: float,
        is_checked: bool,
    ) -> Tensor:
        of_x, of_y = ctx.needs_input_grad[:2]
        if is_checked:
            error, ctx.gradients = _error(x, y, mask, of_x, of_y, text)
        else:
            error, ctx.gradients = _error_plainly(x, y, of_x, of_y, text)
        ctx.is_ahead = ctx.gradients is not None
        ctx.save_for_backward(x, y, mask, error)
        ctx.text, ctx.of_range = text, of_range
        return _rounded_decibels(error, of_range, x.dtype)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
        x, y, mask, error = ctx.saved_tensors  # raises if they have changed or been freed
        of_x, of_y = ctx.needs_input_grad[:2]
        if torch.is_grad_enabled():
            gradients = _differentiable_gradients(ctx, x, y, mask, upstream)
        else:
            ahead, ctx.gradients = ctx.gradients, None
            if ahead is None and ctx.is_ahead:
                ahead = compute_gradient(x, y, mask, None, None, False, of_x, of_y, ctx.text)
            factor = torch.div(upstream, error).mul_(_SLOPE)
            gradients = _times(factor, ahead, error, x, y, mask, of_x, of_y, ctx.text)
        return gradients[0] if of_x else None, gradients[-1] if of_y else None, *_NO_GRADIENTS


def _differentiable_gradients(
    ctx: Any, x: Tensor, y: Tensor, mask: Optional[Tensor], upstream: Tensor
) -> Any:
    """The gradients of the decomposition, which can be differentiated again."""
    measure = measures.parse(ctx.text)
    error = decomposition.evaluate(x, y, mask, None, measure, in_float32=True)
    value = _decibels(error, ctx.of_range, mask is not None).to(upstream.dtype)
    wanted = ctx.needs_input_grad[:2]
    variables = [image for image, of in zip((x, y), wanted) if of]
    return torch.autograd.grad(value, variables, upstream, create_graph=True)


_NO_GRADIENTS = (None,) * 4  # for the arguments after the images
_apply_plainly = applied_plainly(_Psnr)


def _texts(data_range: Optional[float], reduction: str) -> tuple[str, str]:
    """The measure, and its error in f64."""
    of_error = f"{measures.psnr_error_text(data_range, reduction)} in_float64=1"
    return measures.text("psnr", 0, data_range=data_range, reduction=reduction), of_error


_remembered_texts = functools.lru_cache(64, typed=True)(_texts)


def _texts_once(data_range: Optional[float], reduction: str) -> tuple[str, str]:
    """The same options are checked once, but for torch.compile, which ignores caches with a warning."""
    if not torch.compiler.is_compiling():
        try:
            return _remembered_texts(data_range, reduction)
        except TypeError:  # one of them is a list, or is refused, as it is again below
            pass
    return _texts(data_range, reduction)


def _range_of(data_range: Optional[float], x: Any) -> float:
    dtype = getattr(x, "dtype", None)
    return float(data_range or measures.DATA_RANGES.get(DTYPES.get(dtype, ""), 1.0))


def _psnr_plainly(
    data_range: Optional[float], text: str, of_error: str, x: Any, y: Any
) -> Optional[Tensor]:
    """psnr() of images that need no other layout or type, while nobody looks; or None."""
    try:
        if torch.compiler.is_compiling() or y is None or not are_plain(x, y):
            return None
        measure = measures.parse(text)
        value_range = _range_of(data_range, x)
        if torch.is_grad_enabled() and (x.requires_grad or y.requires_grad):
            if not _is_ahead(x, of_error):
                return None
            of_range = 20 * math.log10(value_range)
            decibels: Tensor = _apply_plainly(x, y, None, of_error, of_range, False)
        else:
            found = plain_value(measure, x, y, None, None)
            if found is None:
                return None
            decibels = found
    except NOT_PLAIN:
        return None
    if x.is_cpu and x.numel() >= range_warning.LOOK_FROM:
        _look_at_range(x, decibels, value_range)
    return decibels


def psnr(
    data_range: Optional[float],
    reduction: str,
    x: Any,
    y: Any,
    mask: Optional[Tensor] = None,
    usual_only: bool = False,
) -> Optional[Tensor]:
    """PSNR from the MSE in f64; differentiable as the MSE is. usual_only: as of evaluate()."""
    text, of_error = _texts_once(data_range, reduction)
    if mask is None and usual_only and TELLS_KEYS:
        plain = _psnr_plainly(data_range, text, of_error, x, y)
        if plain is not None:
            return plain
    found = if_plain(x, y, mask, None)
    if found is not None:
        if usual_only and not is_usual_shape(found[0]):
            return None
        if is_transformed():
            found = None
    value_range = _range_of(data_range, x)
    of_range = 20 * math.log10(value_range)
    try:
        if found is None:
            error = evaluate("psnr", of_error, x, y, mask, usual_only=usual_only)
            if error is None:
                return None
            decibels = _decibels(error, of_range, mask is not None)
            decibels = decibels if x.dtype == torch.float64 else decibels.float()
        elif torch.is_grad_enabled() and (x.requires_grad or y.requires_grad):
            decibels = _apply_plainly(x, y, found[1], of_error, of_range, True)
        else:
            decibels = compute_value(x, y, found[1], None, text)
    except ValueError as refusal:  # the library knows only the error inside
        raise ValueError(str(refusal).replace("mse: ", "psnr: ", 1)) from None
    if x.numel() >= range_warning.LOOK_FROM and x.is_cpu and is_plain(x, y):
        _look_at_range(x, decibels, value_range)
    return decibels


def _look_at_range(x: Tensor, decibels: Tensor, value_range: float) -> None:
    if range_warning.psnr_wants_look(x.numel(), DTYPES[x.dtype]):
        lowest = decibels.detach() if decibels.dim() == 0 else decibels.detach().amin()
        range_warning.look_at_psnr(lowest.item(), value_range)


def psnr_with_gradients(
    data_range: Optional[float],
    reduction: str,
    x: Tensor,
    y: Any,
    mask: Optional[Tensor],
    of_x: bool,
    of_y: bool,
) -> Optional[list[Tensor]]:
    """with_gradients() of plain.py, for PSNR."""
    _, text = _texts_once(data_range, reduction)
    found = if_plain(x, y, mask, None)
    if found is None or not is_usual_shape(found[0]) or is_transformed():
        return None
    mask = found[1]
    value_range = _range_of(data_range, x)
    try:
        error, ahead = _error(x, y, mask, of_x, of_y, text)
        factor = torch.reciprocal(error).mul_(_SLOPE)
        gradients = _times(factor, ahead, error, x, y, mask, of_x, of_y, text)
    except ValueError:  # psnr() raises it again, in its own name
        return None
    decibels = _rounded_decibels(error, 20 * math.log10(value_range), x.dtype)
    if x.numel() >= range_warning.LOOK_FROM and x.is_cpu:
        _look_at_range(x, decibels, value_range)
    return [decibels, *gradients]

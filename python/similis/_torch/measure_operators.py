# SPDX-License-Identifier: Apache-2.0
"""Two operators for all measures.

similis::value     the result
similis::gradient  gradients to x, y or both in one pass, and the result with them if asked for
"""

from __future__ import annotations

import functools
from typing import Optional

import torch
from torch import Tensor

from .._library import measures
from . import ssim_kernels
from .binding import run_measure
from .devices import is_elsewhere
from .registry import define


@functools.lru_cache(maxsize=64)
def number_like(is_wide: bool, device: torch.device) -> Tensor:
    """A number in f64 or f32, to allocate others as it."""
    return torch.empty((), dtype=torch.float64 if is_wide else torch.float32, device=device)


def _empty_result(x: Tensor, measure: measures.Measure) -> Tensor:
    """empty_value() of a tensor with memory. A number is allocated as another one is, which takes
    torch half the time that it takes to read a shape and a dtype."""
    if not measure.is_scalar:
        return empty_value(x, measure)
    is_wide = measure.in_float64 or x.dtype is torch.float64
    return torch.empty_like(number_like(is_wide, x.device))


def empty_value(x: Tensor, measure: measures.Measure) -> Tensor:
    is_wide = measure.in_float64 or x.dtype == torch.float64
    dtype = torch.float64 if is_wide else torch.float32
    shape = () if measure.is_scalar else measure.result_shape(x.shape)
    return x.new_empty(shape, dtype=dtype)


def compute_value(
    x: Tensor, y: Tensor, mask: Optional[Tensor], valid_mask: Optional[Tensor], measure: str
) -> Tensor:
    parsed = measures.parse(measure)
    if is_elsewhere(x):
        value = ssim_kernels.evaluate(parsed, x, y)[0]
        assert value is not None
        return value
    result = _empty_result(x, parsed)
    run_measure(parsed, x, y, mask, valid_mask, None, result, None, None)
    return result


def compute_gradient(
    x: Tensor,
    y: Tensor,
    mask: Optional[Tensor],
    valid_mask: Optional[Tensor],
    upstream: Optional[Tensor],
    with_value: bool,
    of_x: bool,
    of_y: bool,
    measure: str,
) -> list[Tensor]:
    parsed = measures.parse(measure)
    if is_elsewhere(x):
        results = ssim_kernels.evaluate(parsed, x, y, upstream, with_value, of_x, of_y)
        return [each for each in results if each is not None]
    allocated: list[Tensor] = []
    result = x_gradient = y_gradient = None
    if with_value:
        allocated.append(result := _empty_result(x, parsed))
    if of_x:
        allocated.append(x_gradient := torch.empty_like(x))
    if of_y:
        allocated.append(y_gradient := torch.empty_like(y))
    run_measure(parsed, x, y, mask, valid_mask, upstream, result, x_gradient, y_gradient)
    return allocated


def _value_shape(
    x: Tensor, y: Tensor, mask: Optional[Tensor], valid_mask: Optional[Tensor], measure: str
) -> Tensor:
    return empty_value(x, measures.parse(measure))


def _gradient_shapes(
    x: Tensor,
    y: Tensor,
    mask: Optional[Tensor],
    valid_mask: Optional[Tensor],
    upstream: Optional[Tensor],
    with_value: bool,
    of_x: bool,
    of_y: bool,
    measure: str,
) -> list[Tensor]:
    results = [empty_value(x, measures.parse(measure))] if with_value else []
    return results + [torch.empty_like(of) for of, wanted in ((x, of_x), (y, of_y)) if wanted]


_IMAGES = "Tensor x, Tensor y, Tensor? mask, Tensor? valid_mask"
value_op = define(f"value({_IMAGES}, str measure) -> Tensor", compute_value, _value_shape)
gradient_op = define(
    f"gradient({_IMAGES}, Tensor? upstream, bool with_value, bool of_x, bool of_y, str measure)"
    " -> Tensor[]",
    compute_gradient,
    _gradient_shapes,
)

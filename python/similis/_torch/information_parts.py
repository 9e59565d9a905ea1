# SPDX-License-Identifier: Apache-2.0
"""Mutual information and histograms of a part of an image, by the whole's limits and histogram."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import torch
from torch import Tensor

from .._library import measures
from .._library.refusals import require_extents, require_same_dtype, require_same_shape
from .binding import c_tensor, stream_of
from .devices import is_elsewhere
from .elsewhere import place
from .tensors import is_transformed, refuse_tensor, require_same_device


class OfWhole:
    """The whole's histogram and the limits of its bins, or one of them, for a part of it."""

    def __init__(self, histogram: Optional[Tensor] = None, limits: Optional[Tensor] = None) -> None:
        self.histogram = None if histogram is None else histogram.detach()
        self.limits = None if limits is None else limits.detach()

    def run(self, text: str, tensors: Sequence[Optional[Tensor]]) -> None:
        """One pass over (x, y, mask, None, upstream, value, x_gradient, y_gradient)."""
        x = tensors[0]
        assert x is not None
        measures.run(
            measures.parse(text),
            [c_tensor(each) for each in tensors],
            stream_of(x),
            torch.get_num_threads(),
            histogram=c_tensor(self.histogram),
            limits=c_tensor(self.limits),
        )


class _Information(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, y: Tensor, mask: Optional[Tensor], text: str, whole: OfWhole
    ) -> Tensor:
        ctx.text, ctx.whole = text, whole
        ctx.save_for_backward(x, y, mask)
        measure = measures.parse(text)
        is_wide = measure.in_float64 or x.dtype == torch.float64
        dtype = torch.float64 if is_wide else torch.float32
        value = x.new_empty(measure.result_shape(x.shape), dtype=dtype)
        whole.run(text, (x, y, mask, None, None, value, None, None))
        return value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
        if torch.is_grad_enabled():
            raise NotImplementedError(
                "mutual_information: with histogram or limits gradients are differentiable once"
            )
        x, y, mask = ctx.saved_tensors
        results = [
            torch.empty_like(each) if of else None for each, of in zip((x, y), ctx.needs_input_grad)
        ]
        ctx.whole.run(ctx.text, (x, y, mask, None, upstream.contiguous(), None, *results))
        return *results, None, None, None


_apply: Any = _Information.apply


def information_of_part(
    operation: str,
    text: str,
    x: Tensor,
    y: Any,
    mask: Any,
    histogram: Any,
    limits: Any,
) -> Tensor:
    """mutual_information() or histogram() with arrays of the whole."""
    if torch.compiler.is_compiling() or is_transformed():
        raise NotImplementedError(
            f"{operation}: histogram and limits are not taken by torch.compile and torch.func"
        )
    refuse_tensor(operation, "x", x)
    if is_elsewhere(x):
        raise TypeError(f"{operation}: histogram and limits are not taken on {place(x.device)}")
    refuse_tensor(operation, "y", y)
    require_same_dtype(operation, ("x", "y"), str(x.dtype), str(y.dtype))
    require_same_shape(operation, ("x", "y"), x.shape, y.shape)
    require_extents(operation, "x", x.shape)
    if mask is not None and isinstance(mask, Tensor) and mask.dtype == torch.bool:
        mask = mask.view(torch.uint8)
    others = {"y": y, "mask": mask, "histogram": histogram, "limits": limits}
    for name, given in others.items():
        if given is None:
            continue
        refuse_tensor(operation, name, given)
        require_same_device(operation, name, given, "x", x)
    if mask is not None and mask.requires_grad:
        raise ValueError(f"{operation}: mask asks for a gradient; only x and y can have one")
    result: Tensor = _apply(x, y, mask, text, OfWhole(histogram, limits))
    return result

# SPDX-License-Identifier: Apache-2.0
"""Sums of SSIM and LNCC over the windows that are centred on own rows.

    windows inside own rows ──────────────────────────────────┐
    rows beside own ones ─> windows at the two borders ───────┴─> sums [2,N,C]
                            └─> gradients of others' rows go home

There is no map. Where a gradient will be asked for, each piece gives it with its sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, Optional

import torch
from torch import Tensor

from .._library import measures
from .._torch.binding import run_measure, scale
from .pieces import Piece, Split, in_pieces
from .rows import refuse_second_derivative, whole_sum
from .slabs import Interval, Slabs
from .transport import Homeward, Messages


class Plan(Split):
    """The windows of each rank in pieces."""

    def __init__(
        self, slabs: Slabs, radius: int, cut: int, settle: Callable[[], None] = lambda: None
    ) -> None:
        """settle: waits until all ranks have agreed on the call."""
        super().__init__(slabs, radius, cut)
        self.settle = settle


def _weights(plan: Plan, piece: Piece, x: Tensor, mask: Optional[Tensor]) -> Optional[Tensor]:
    """The mask at a piece's rows; those of other ranks do not count."""
    if mask is None:
        return None
    axis, start = 2 - x.dim() + mask.dim(), plan.slabs.start
    first, end = max(piece.rows[0], start), min(piece.rows[1], plan.slabs.stop)
    own = mask.narrow(axis, first - start, end - first)
    if piece.rows == (first, end):
        return own
    shape = list(mask.shape)
    shape[axis] = piece.rows[1] - piece.rows[0]
    result = mask.new_zeros(shape)
    result.narrow(axis, first - piece.rows[0], end - first).copy_(own)
    return result


class _Sums(torch.autograd.Function):
    """Σ weight·value and Σ weight of own centres, [2,N,C] in f64.

    With a factor, the upstream gradient that is to be expected, the gradients are computed beside
    the sums, which reads the images once; backward multiplies them by what remains, mostly 1.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        y: Tensor,
        mask: Any,
        valid_mask: Any,
        plan: Plan,
        text: str,
        factor: Optional[float],
    ) -> Tensor:
        ctx.plan, ctx.text, ctx.factor, ctx.operands = plan, text, factor, None
        asked = ctx.needs_input_grad[:2] if factor is not None else (False, False)
        like = x.new_empty([2, *x.shape[:2]], dtype=torch.float64)
        upstream = None if factor is None else torch.full_like(like, factor)
        found = [_Gradient(plan, image) if of else None for image, of in zip((x, y), asked)]
        sums = []

        def add_up(piece: Piece, seen: Sequence[Any]) -> None:
            sums.append(torch.empty_like(like))
            by = _keep_piece(found, piece, seen)
            arrays = (*seen[:2], _weights(plan, piece, x, mask), seen[2])
            run_measure(_measure(text, piece), *arrays, upstream, sums[-1], *by)

        arrays = [
            None if each is None else (each, 2 - x.dim() + each.dim())
            for each in (x, y, valid_mask)
        ]
        operands = in_pieces(
            plan, arrays, add_up, plan.settle, lambda: _send(found), borders_last=factor is not None
        )
        total = torch.zeros_like(like)
        for each in sums:
            total += each
        ctx.gradients = None if factor is None else _finished(found)
        if factor is None and any(ctx.needs_input_grad[:2]):
            ctx.operands = operands
        ctx.save_for_backward(x, y, mask, valid_mask)
        return total

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
        refuse_second_derivative(ctx.text.split(" ", 1)[0])
        gradients, ctx.gradients = ctx.gradients, None
        if gradients is None:
            gradients = _gradients(ctx, upstream)
        else:
            for gradient in gradients:
                if gradient is not None and gradient.numel():
                    _multiply(gradient, upstream[0] / ctx.factor)
        return *gradients, None, None, None, None, None


def _gradients(ctx: Any, upstream: Tensor) -> list[Optional[Tensor]]:
    """Computed at the borders first, whose part for other ranks goes home meanwhile."""
    plan: Plan = ctx.plan
    x, y, mask, valid_mask = ctx.saved_tensors
    upstream = upstream.contiguous()
    asked = ctx.needs_input_grad[:2]
    found = [_Gradient(plan, image) if of else None for image, of in zip((x, y), asked)]

    def differentiate(piece: Piece, seen: Sequence[Any]) -> None:
        by = _keep_piece(found, piece, seen)
        arrays = (*seen[:2], _weights(plan, piece, x, mask), seen[2])
        run_measure(_measure(ctx.text, piece), *arrays, upstream, None, *by)

    for side, piece in enumerate(plan.borders):
        if piece is not None:
            differentiate(piece, ctx.operands.at(side))
    _send(found)
    if plan.inside is not None:
        differentiate(plan.inside, (x, y, valid_mask))
    return _finished(found)


def _keep_piece(
    found: Sequence[Optional[_Gradient]], piece: Piece, seen: Sequence[Any]
) -> list[Optional[Tensor]]:
    """Memory for the gradients to a piece's rows."""
    by = []
    for gradient, array in zip(found, seen):
        by.append(None if gradient is None else torch.empty_like(array))
        if gradient is not None:
            gradient.keep(piece, by[-1])
    return by


def _send(found: Sequence[Optional[_Gradient]]) -> None:
    """Sends the gradients to rows of others home."""
    asked = [each for each in found if each is not None]
    if asked:
        messages = Messages(asked[0].plan.slabs)
        for each in asked:
            each.send(messages)
        messages.begin()


def _finished(found: Sequence[Optional[_Gradient]]) -> list[Optional[Tensor]]:
    return [None if each is None else each.finished() for each in found]


def _multiply(gradient: Tensor, factors: Tensor) -> None:
    """Multiplies each channel in place by its factor, [N,C] in f64; one of 1 touches no memory."""
    for n, of_image in enumerate(factors):
        for c, factor in enumerate(of_image):
            scale(gradient[n, c], factor)


class _Gradient:
    """The gradient to own rows of an image: inside, at the borders, and of other ranks' windows."""

    def __init__(self, plan: Plan, image: Tensor) -> None:
        self.plan, self.image = plan, image
        self.whole: Optional[Tensor] = None
        self._at_borders: dict[Interval, Tensor] = {}  # by the rows that its windows see
        self._going: list[Homeward] = []

    def keep(self, piece: Piece, gradient: Any) -> None:
        if piece is self.plan.inside:
            self.whole = gradient
        else:
            self._at_borders[piece.rows] = gradient

    def send(self, messages: Messages) -> None:
        """Gives the gradients to rows of others to what goes to them."""
        slabs = self.plan.slabs
        for piece, wanted in zip(self.plan.borders, self.plan.wanted):
            shape = list(self.image.shape)
            shape[2] = 0
            rows = self.image.new_empty(shape) if piece is None else self._at_borders[piece.rows]
            self._going.append(Homeward(slabs, rows, wanted, 2, messages))

    def finished(self) -> Tensor:
        wide = torch.float64 if self.image.dtype == torch.float64 else torch.float32
        if self.whole is None:
            whole = torch.zeros_like(self.image, dtype=wide)
        else:
            whole = self.whole.to(wide)
        for going in self._going:
            going.add_to(whole)
        return whole.to(self.image.dtype)


def _measure(text: str, piece: Piece) -> measures.Measure:
    first, end = (each - piece.rows[0] for each in piece.centres)
    return measures.parse(f"{text} rows={first},{end}")


def window_sums(
    x: Tensor, y: Tensor, mask: Optional[Tensor], valid_mask: Optional[Tensor], plan: Plan,
    text: str, expected: float,
) -> tuple[Tensor, Tensor]:
    """The whole's Σ weight·value and Σ weight, [N,C] in f64; text: a measure with sums, without
    rows; expected: the gradient by the first of these, most likely."""
    flags = [
        each.to(torch.uint8) if each is not None and each.dtype == torch.bool else each
        for each in (mask, valid_mask)
    ]
    # f16 would lose what is small before it is multiplied.
    is_early = torch.is_grad_enabled() and x.dtype != torch.float16
    apply: Any = _Sums.apply
    early = expected if is_early else None
    sums = whole_sum(apply(x, y, *flags, plan, text, early), plan.slabs)
    return sums[0], sums[1].detach()

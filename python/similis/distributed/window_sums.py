# SPDX-License-Identifier: Apache-2.0
"""Sums of SSIM and LNCC over the windows that are centred on own rows.

    windows inside own rows ──────────────────────────────────┐
    rows beside own ones ─> windows at the two borders ───────┴─> sums [2,N,C]
                            └─> gradients of others' rows go home

There is no map. If a gradient will be asked for, each piece gives it with its sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, Optional

import torch
from torch import Tensor

from .._library import measures
from .._torch.binding import run_measure, scale
from .middles import is_read, middle_of
from .pieces import Piece, Split, in_pieces
from .rows import refuse_second_derivative, whole_sum
from .slabs import Interval, Slabs
from .transport import Homeward, Messages


class Plan(Split):
    """The windows of each rank in pieces.

    An edge is rows beside another slab whose gradient comes in parts, from windows inside and at
    the border. A part rounded to a half would lose digits of the sum: for halves, windows at the
    border give theirs in f32, and those inside that see an edge, its seam, are differentiated once
    more in f32.
    """

    def __init__(
        self,
        slabs: Slabs,
        radius: int,
        cut: int,
        settle: Callable[[], None] = lambda: None,
        of_halves: bool = False,
    ) -> None:
        """settle: waits until all ranks have agreed on the call."""
        super().__init__(slabs, radius, cut, 4 * radius if of_halves else 0)
        self.settle, self.of_halves = settle, of_halves
        self.seams: list[tuple[Interval, Piece]] = []  # each edge, and the windows inside it
        if not of_halves or self.inside is None:
            return
        start, stop = slabs.start, slabs.stop
        for side, piece in enumerate(self.borders):
            if piece is not None:
                n = 2 * radius
                edge = (start, start + n) if side == 0 else (stop - n, stop)
                low, high = (start, start + 2 * n) if side == 0 else (stop - 2 * n, stop)
                self.seams.append((edge, Piece((low + radius, high - radius), (low, high))))


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


class _Call:
    """A measure of own rows, a piece at a time."""

    def __init__(
        self,
        plan: Plan,
        text: str,
        x: Tensor,
        y: Tensor,
        masks: tuple[Optional[Tensor], Optional[Tensor]],
        middle: Optional[Tensor] = None,
    ) -> None:
        """masks: mask and valid_mask. middle: the volume's, if it was found before."""
        self._plan, self._text, self.middle = plan, text, middle
        self.x, self.y, (self._mask, self._valid_mask) = x, y, masks
        if middle is None and is_read(text, x):
            plan.settle()
            self.middle = middle_of(x, y, self._valid_mask, plan.slabs)

    @property
    def axes(self) -> list[Optional[tuple[Tensor, int]]]:
        """The arrays that windows see, and the axis of their rows."""
        arrays = (self.x, self.y, self._valid_mask)
        return [
            None if each is None else (each, 2 - self.x.dim() + each.dim()) for each in arrays
        ]

    def run(
        self,
        piece: Piece,
        seen: Sequence[Any],
        found: Sequence[Optional[_Gradient]],
        upstream: Optional[Tensor],
        sums: Optional[Tensor],
    ) -> None:
        """The sums of a piece, if they are asked for, and its gradients."""
        is_inside = piece is self._plan.inside
        if self._plan.of_halves and not is_inside:
            seen = [seen[0].float(), seen[1].float(), seen[2]]
        by = [None if each is None else torch.empty_like(seen[0]) for each in found]
        for gradient, array in zip(found, by):
            if gradient is not None:
                gradient.keep(piece, array)
        self._measure(piece, seen, upstream, sums, by)
        if not is_inside or all(each is None for each in found):
            return
        for edge, seam in self._plan.seams:
            seen = [
                None if each is None else self._plan.own(each[0], seam.rows, each[1])
                for each in self.axes
            ]
            seen[:2] = [each.float() for each in seen[:2]]
            by = [None if each is None else torch.empty_like(seen[0]) for each in found]
            self._measure(seam, seen, upstream, None, by)
            for gradient, array in zip(found, by):
                if gradient is not None:
                    gradient.keep_edge(edge, seam, array)

    def _measure(
        self,
        piece: Piece,
        seen: Sequence[Any],
        upstream: Optional[Tensor],
        sums: Optional[Tensor],
        by: Sequence[Optional[Tensor]],
    ) -> None:
        first, end = (each - piece.rows[0] for each in piece.centres)
        measure = measures.parse(f"{self._text} rows={first},{end}")
        mask = _weights(self._plan, piece, self.x, self._mask)
        arrays = (*seen[:2], mask, seen[2], upstream, sums, *by)
        if self.middle is None:
            run_measure(measure, *arrays)
        else:
            run_measure(measure, *arrays, self.middle)


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
        call = _Call(plan, text, x, y, (mask, valid_mask))
        ctx.middle = call.middle
        sums = []

        def add_up(piece: Piece, seen: Sequence[Any]) -> None:
            sums.append(torch.empty_like(like))
            call.run(piece, seen, found, upstream, sums[-1])

        operands = in_pieces(
            plan, call.axes, add_up, plan.settle, lambda: _send(found),
            borders_last=factor is not None,
        )  # fmt: skip
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
    call = _Call(plan, ctx.text, x, y, (mask, valid_mask), ctx.middle)
    for side, piece in enumerate(plan.borders):
        if piece is not None:
            call.run(piece, ctx.operands.at(side), found, upstream, None)
    _send(found)
    if plan.inside is not None:
        call.run(plan.inside, (x, y, valid_mask), found, upstream, None)
    return _finished(found)


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
        self._wide = torch.float64 if image.dtype == torch.float64 else torch.float32
        self.whole: Optional[Tensor] = None
        self._edges: list[tuple[Interval, Tensor]] = []  # of halves, beside an inside
        self._at_borders: dict[Interval, Tensor] = {}  # by the rows that its windows see
        self._going: list[Homeward] = []

    def keep(self, piece: Piece, gradient: Any) -> None:
        if piece is self.plan.inside:
            self.whole = gradient
        else:
            self._at_borders[piece.rows] = gradient

    def keep_edge(self, edge: Interval, seam: Piece, gradient: Any) -> None:
        first = edge[0] - seam.rows[0]
        self._edges.append((edge, gradient.narrow(2, first, edge[1] - edge[0])))

    def send(self, messages: Messages) -> None:
        """Gives the gradients to rows of others to what goes to them."""
        slabs = self.plan.slabs
        for piece, wanted in zip(self.plan.borders, self.plan.wanted):
            shape = list(self.image.shape)
            shape[2] = 0
            if piece is None:
                rows = self.image.new_empty(shape, dtype=self._wide)
            else:
                rows = self._at_borders[piece.rows]
            self._going.append(Homeward(slabs, rows, wanted, 2, messages))

    def finished(self) -> Tensor:
        if self.whole is not None and self.plan.of_halves:
            for edge, gradient in self._edges:
                for going in self._going:
                    going.add_to(gradient, edge)
                self.plan.own(self.whole, edge, 2).copy_(gradient)
            return self.whole
        if self.whole is None:
            whole = torch.zeros_like(self.image, dtype=self._wide)
        else:
            whole = self.whole.to(self._wide)
        for going in self._going:
            going.add_to(whole)
        return whole.to(self.image.dtype)


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
    # f16 would lose what is small before it is multiplied, and under a mask halves would be rounded
    # a second time, as nobody expects the right factor.
    has_mask = mask is not None or valid_mask is not None
    is_late = x.dtype == torch.float16 or (x.dtype == torch.bfloat16 and has_mask)
    is_early = torch.is_grad_enabled() and not is_late
    apply: Any = _Sums.apply
    early = expected if is_early else None
    sums = whole_sum(apply(x, y, *flags, plan, text, early), plan.slabs)
    return sums[0], sums[1].detach()

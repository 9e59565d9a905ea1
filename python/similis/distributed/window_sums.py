# SPDX-License-Identifier: Apache-2.0
"""Sums of SSIM and LNCC over the windows that are centred on own rows.

    rows beside own ones on their way │ windows inside own rows
    rows arrive                       └─> windows at the two borders ─> sums [2,N,C]

Own rows are not copied, and there is no map: the border's windows see twice their radius of own
rows. Where a gradient will be asked for, each piece gives it with its sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor

from .._library import measures
from .._torch.binding import run_measure, scale
from .rows import refuse_second_derivative, whole_sum
from .slabs import Interval, Slabs
from .transport import Exchange, Homeward


class Piece(NamedTuple):
    """Centres of windows, and the rows that they see, of which those before and behind own ones
    come from other ranks."""

    centres: Interval
    rows: Interval


class Plan:
    """The windows of each rank in pieces, and the rows that they need of others."""

    def __init__(self, slabs: Slabs, radius: int, cut: int) -> None:
        """cut: centres are at least so far from the axis's ends."""
        self.slabs, self.radius = slabs, radius
        self.before: list[Interval] = []
        self.behind: list[Interval] = []
        for rank in range(slabs.ranks):
            start, stop = slabs.rows(rank)
            first, end = max(start, cut), min(stop, slabs.extent - cut)
            has_centres = first < end
            self.before.append((max(first - radius, 0), start) if has_centres else (start, start))
            self.behind.append(
                (stop, min(end + radius, slabs.extent)) if has_centres else (stop, stop)
            )
            if rank == slabs.rank:
                self.centres: Interval = (first, end)
        # The first, if there are several, needs nothing of other ranks.
        self.pieces = self._pieces() if self.centres[0] < self.centres[1] else []

    def _pieces(self) -> list[Piece]:
        (start, stop), radius = (self.slabs.start, self.slabs.stop), self.radius
        first, end = self.centres
        before, behind = self.before[self.slabs.rank], self.behind[self.slabs.rank]
        inner = (
            start + radius if before[0] < start else first,
            stop - radius if behind[1] > stop else end,
        )
        if inner[0] >= inner[1] or stop - start < 2 * radius + 1:
            return [Piece((first, end), (before[0], behind[1]))]
        pieces = [Piece(inner, (start, stop))]
        if before[0] < start:
            pieces.append(Piece((first, inner[0]), (before[0], inner[0] + radius)))
        if behind[1] > stop:
            pieces.append(Piece((inner[1], end), (inner[1] - radius, behind[1])))
        return pieces


class _Beside:
    """Rows of an array on their way from before and behind own ones."""

    def __init__(self, plan: Plan, array: Tensor, axis: int) -> None:
        self.axis = axis
        self._coming = [
            Exchange(plan.slabs, array, wanted, axis) for wanted in (plan.before, plan.behind)
        ]
        self._rows: Optional[list[Tensor]] = None

    def of(self, plan: Plan, piece: Piece, own: Tensor) -> Tensor:
        """The rows of a piece; a view of own ones if it needs no others."""
        start, stop = plan.slabs.start, plan.slabs.stop
        first, end = max(piece.rows[0], start), min(piece.rows[1], stop)
        mine = own.narrow(self.axis, first - start, end - first)
        if piece.rows == (first, end):
            return mine
        before, behind = self.arrived()
        parts = [mine]
        if piece.rows[0] < start:
            parts.insert(0, before)
        if piece.rows[1] > stop:
            parts.append(behind)
        return torch.cat(parts, self.axis)

    def arrived(self) -> list[Tensor]:
        """The rows before own ones and behind them, once they are there."""
        if self._rows is None:
            self._rows = [each.rows() for each in self._coming]
            self._coming = []
        return self._rows


class _Operands:
    """x, y, mask and valid_mask, and the rows of others that windows see of them."""

    def __init__(self, plan: Plan, x: Tensor, y: Tensor, mask: Any, valid_mask: Any) -> None:
        self.plan = plan
        self.beside = []
        for array in (x, y, valid_mask):
            axis = 0 if array is None else 2 - x.dim() + array.dim()
            self.beside.append(None if array is None else _Beside(plan, array, axis))

    def of(self, piece: Piece, x: Tensor, y: Tensor, mask: Any, valid_mask: Any) -> list[Any]:
        arrays = [
            None if beside is None else beside.of(self.plan, piece, own)
            for beside, own in zip(self.beside, (x, y, valid_mask))
        ]
        return [*arrays[:2], self._mask(piece, x, mask), arrays[2]]

    def _mask(self, piece: Piece, x: Tensor, mask: Optional[Tensor]) -> Optional[Tensor]:
        """Weights of a piece's rows; those of other ranks do not count."""
        if mask is None:
            return None
        axis, start = 2 - x.dim() + mask.dim(), self.plan.slabs.start
        first, end = max(piece.rows[0], start), min(piece.rows[1], self.plan.slabs.stop)
        shape = list(mask.shape)
        shape[axis] = piece.rows[1] - piece.rows[0]
        if shape[axis] == end - first:
            return mask.narrow(axis, first - start, end - first)
        result = mask.new_zeros(shape)
        result.narrow(axis, first - piece.rows[0], end - first).copy_(
            mask.narrow(axis, first - start, end - first)
        )
        return result

    def arrived(self) -> None:
        """Waits also for rows that no piece of this rank has asked for."""
        for each in self.beside:
            if each is not None:
                each.arrived()


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
        operands = _Operands(plan, x, y, mask, valid_mask)
        ctx.plan, ctx.text, ctx.operands, ctx.factor = plan, text, operands, factor
        total = x.new_zeros([2, *x.shape[:2]], dtype=torch.float64)
        asked = ctx.needs_input_grad[:2] if factor is not None else (False, False)
        upstream = None if factor is None else torch.full_like(total, factor)
        found = [_Gradient(plan, image) if of else None for image, of in zip((x, y), asked)]
        for piece in plan.pieces:
            sums = torch.empty_like(total)
            arrays = operands.of(piece, x, y, mask, valid_mask)
            by = _add_piece(found, piece, arrays)
            run_measure(_measure(text, piece), *arrays, upstream, sums, *by)
            total += sums
        operands.arrived()
        _send(found)
        ctx.gradients = None if factor is None else _finished(found)
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
    borders, inside = _borders_first(plan)
    for piece in borders:
        arrays = ctx.operands.of(piece, x, y, mask, valid_mask)
        by = _add_piece(found, piece, arrays)
        run_measure(_measure(ctx.text, piece), *arrays, upstream, None, *by)
    _send(found)
    if inside is not None:
        arrays = ctx.operands.of(inside, x, y, mask, valid_mask)
        by = _add_piece(found, inside, arrays)
        run_measure(_measure(ctx.text, inside), *arrays, upstream, None, *by)
    return _finished(found)


def _add_piece(
    found: Sequence[Optional[_Gradient]], piece: Piece, arrays: Sequence[Any]
) -> list[Optional[Tensor]]:
    """Memory for the gradients to a piece's rows."""
    by = []
    for gradient, array in zip(found, arrays):
        by.append(None if gradient is None else torch.empty_like(array))
        if gradient is not None:
            gradient.keep(piece, by[-1])
    return by


def _send(found: Sequence[Optional[_Gradient]]) -> None:
    for gradient in found:
        if gradient is not None:
            gradient.send()


def _finished(found: Sequence[Optional[_Gradient]]) -> list[Optional[Tensor]]:
    return [None if each is None else each.finished() for each in found]


def _multiply(gradient: Tensor, factors: Tensor) -> None:
    """Multiplies each channel in place by its factor, [N,C] in f64; one of 1 touches no memory."""
    for n, of_image in enumerate(factors):
        for c, factor in enumerate(of_image):
            scale(gradient[n, c], factor)


def _borders_first(plan: Plan) -> tuple[Sequence[Piece], Optional[Piece]]:
    """The pieces that see rows of others, and the one whose rows are own ones."""
    if not plan.pieces or plan.pieces[0].rows != (plan.slabs.start, plan.slabs.stop):
        return plan.pieces, None
    return plan.pieces[1:], plan.pieces[0]


class _Gradient:
    """The gradient to own rows of an image: inside, at the borders, and of other ranks' windows."""

    def __init__(self, plan: Plan, image: Tensor) -> None:
        self.plan, self.image = plan, image
        self.whole: Optional[Tensor] = None
        self._kept: list[tuple[Piece, Tensor]] = []
        self._going: list[Homeward] = []

    def keep(self, piece: Piece, gradient: Any) -> None:
        if piece.rows == (self.plan.slabs.start, self.plan.slabs.stop):
            self.whole = gradient
        else:
            self._kept.append((piece, gradient))

    def send(self) -> None:
        """Sends the gradients to rows of others home."""
        slabs = self.plan.slabs
        for is_before, wanted in ((True, self.plan.before), (False, self.plan.behind)):
            first, end = wanted[slabs.rank]
            shape = list(self.image.shape)
            shape[2] = 0
            away = self.image.new_empty(shape)
            for piece, gradient in self._kept:
                begins = piece.rows[0] < slabs.start if is_before else piece.rows[1] > slabs.stop
                if begins:
                    away = gradient.narrow(2, first - piece.rows[0], end - first)
            self._going.append(Homeward(slabs, away, wanted, 2))

    def finished(self) -> Tensor:
        wide = torch.float64 if self.image.dtype == torch.float64 else torch.float32
        slabs = self.plan.slabs
        if self.whole is None:
            whole = torch.zeros_like(self.image, dtype=wide)
        else:
            whole = self.whole.to(wide)
        for piece, gradient in self._kept:
            first, end = max(piece.rows[0], slabs.start), min(piece.rows[1], slabs.stop)
            mine = gradient.narrow(2, first - piece.rows[0], end - first)
            whole.narrow(2, first - slabs.start, end - first).add_(mine)
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

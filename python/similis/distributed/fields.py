# SPDX-License-Identifier: Apache-2.0
"""Exponentials, inverses and Jacobian determinants of fields in slabs, and smoothing: inner rows are
computed while those at the borders wait for rows of others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Callable, Optional, Union

import torch
from torch import Tensor

from .._functions import fields
from .._functions.dispatch import Coordinates, spatial
from .._functions.smooth import smooth as plain_smooth
from .._library import smooth as library
from .._torch.fields import determinant
from .._torch.smooth import smooth_op
from .agreement import Agreement
from .gathering import gathered, sum_of_ranks
from .pieces import Piece, Split, in_pieces
from .rows import refuse_second_derivative
from .slabs import Interval, Slabs
from .transforms import compose
from .transport import Homeward, Messages


def _require_field(agreement: Agreement, name: str, field: Any, slabs: Slabs) -> None:
    rank = field.dim() - 2 if isinstance(field, Tensor) else 2
    if rank in (2, 3):
        agreement.array(name, field, slabs, 1)
    if rank not in (2, 3) or field.shape[-1] != rank or not field.is_floating_point():
        raise ValueError(
            f"{name} is {field.dtype} {list(field.shape)}; it must be [N,Y,X,2] or [N,Z,Y,X,3] of "
            "a float type"
        )


def exponentiate(v: Tensor, slabs: Slabs, n: int = 7, *, align_corners: bool = True) -> Tensor:
    """similis.exponentiate(): own rows of exp(v), differentiable once by v."""
    with Agreement("exponentiate", slabs, n=n, align_corners=align_corners) as agreement:
        _require_field(agreement, "v", v, slabs)
        if isinstance(n, bool) or not isinstance(n, int) or not 0 <= n <= 32:
            raise ValueError(f"n is {n!r}; it must be a whole number from 0 to 32")
    u = (v if v.dtype == torch.float64 else v.float()) * 2.0**-n
    for _ in range(n):
        u = u + compose(u, u, slabs, align_corners=align_corners)
    return u.to(v.dtype)


def invert(
    u: Tensor,
    slabs: Slabs,
    iterations: int = 30,
    *,
    align_corners: bool = True,
    tolerance: float = 0.01,
) -> tuple[Tensor, Tensor]:
    """similis.invert(): own rows of the inverse, and the whole's residual [N]; without gradients.

    Rows are fetched as far as the largest displacement reaches, and as far again where a step went
    beyond them, until no rank needs others.
    """
    options: dict[str, Any] = {"align_corners": align_corners, "tolerance": tolerance}
    with Agreement("invert", slabs, iterations=iterations, **options) as agreement:
        _require_field(agreement, "u", u, slabs)
        shape = [1, *[1] * (u.dim() - 2), u.dim() - 2]
        fields.invert(torch.zeros(shape, dtype=u.dtype), iterations, **options)
    u = u.detach()
    scale = (slabs.extent - 1) / 2 if align_corners else slabs.extent / 2
    own = float(u[..., -1].abs().nan_to_num(0, 0, 0).max()) * scale if u.numel() else 0.0
    largest = max(float(each) for each in gathered(slabs, torch.tensor([own], device="cpu").double()))
    margin = int(min(largest, slabs.extent)) + 2
    while True:
        parts, residual = _inverted(u, Split(slabs, margin), iterations, options)
        every = torch.cat(gathered(slabs, residual[None]))
        if bool(torch.isfinite(every).all()) or margin >= slabs.extent:
            break
        margin *= 2
    w = torch.empty_like(u)
    for rows, part in parts:
        w.narrow(1, rows[0] - slabs.start, rows[1] - rows[0]).copy_(part)
    return w, every.amax(0)


def _inverted(
    u: Tensor, split: Split, iterations: int, options: dict[str, Any]
) -> tuple[list[tuple[Interval, Tensor]], Tensor]:
    """The inverse in own rows, and its residual, which is infinite where a step needs rows further
    away than the split's radius."""
    parts: list[tuple[Interval, Tensor]] = []
    wide = torch.float64 if u.dtype == torch.float64 else torch.float32
    residuals = [u.new_zeros(u.shape[:1], dtype=wide)]

    def compute(piece: Piece, seen: Sequence[Any]) -> None:
        field = (piece.rows[0], split.slabs.extent)
        part, residual = fields.invert(
            seen[0], iterations, **options, rows=piece.centres, u_rows=field
        )
        parts.append((piece.centres, part))
        residuals.append(residual)

    in_pieces(split, [(u, 1)], compute)
    return parts, torch.stack(residuals).amax(0)  # NaN where one is


def jacobian_determinant(
    u: Tensor,
    slabs: Slabs,
    *,
    align_corners: bool = True,
    min_coords: Coordinates = None,
    max_coords: Coordinates = None,
) -> tuple[Tensor, Tensor]:
    """similis.jacobian_determinant(): own rows, differentiable once by u, and the whole's folds."""
    options: dict[str, Any] = {
        "align_corners": align_corners,
        "min_coords": min_coords,
        "max_coords": max_coords,
    }
    with Agreement("jacobian_determinant", slabs, later=True, **options) as agreement:
        _require_field(agreement, "u", u, slabs)
        shape = [1, *[2] * (u.dim() - 2), u.dim() - 2]
        fields.jacobian_determinant(torch.zeros(shape), **options)
    apply: Any = _Determinants.apply
    det, folds = apply(u, slabs, options, agreement.settle)
    return det, sum_of_ranks(slabs, folds)


class _Determinants(torch.autograd.Function):
    """The determinants in own rows, and their folds."""

    @staticmethod
    def forward(
        ctx: Any, u: Tensor, slabs: Slabs, options: dict[str, Any], settle: Callable[[], None]
    ) -> tuple[Tensor, Tensor]:
        split = ctx.split = Split(slabs, 1)
        ctx.options = options
        ctx.save_for_backward(u)
        det = u.new_empty(u.shape[:-1])
        folds = [u.new_zeros(u.shape[:1], dtype=torch.float64)]

        def compute(piece: Piece, seen: Sequence[Any]) -> None:
            found, folded = fields.jacobian_determinant(
                seen[0].detach(), **options, **_part(split, piece)
            )
            if ctx.needs_input_grad[0]:  # as the plain function, whose last bits are others then
                found = _determinant(ctx, piece, seen[0])
            split.own(det, piece.centres, 1).copy_(found)
            folds.append(folded)

        ctx.neighbours = in_pieces(split, [(u.detach(), 1)], compute, settle)
        whole = torch.stack(folds).sum(0)
        ctx.mark_non_differentiable(whole)
        return det, whole

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, _: Any) -> tuple[Optional[Tensor], ...]:
        """At the borders first, whose part for other ranks goes home meanwhile."""
        refuse_second_derivative("jacobian_determinant")
        (u,) = ctx.saved_tensors
        split: Split = ctx.split
        going, messages = [], Messages(split.slabs)
        for side, piece in enumerate(split.borders):
            (rows,) = ctx.neighbours.at(side)
            wide = torch.float64 if u.dtype == torch.float64 else torch.float32
            gradient = rows[:, :0].to(wide)
            if piece is not None:
                gradient = _gradient_of_piece(ctx, piece, rows, upstream)
            going.append(Homeward(split.slabs, gradient, split.wanted[side], 1, messages))
        messages.begin()
        if split.inside is None:
            wide = torch.float64 if u.dtype == torch.float64 else torch.float32
            whole = torch.zeros_like(u, dtype=wide)
        else:
            whole = _gradient_of_piece(ctx, split.inside, u, upstream)
        for each in going:
            each.add_to(whole)
        return whole.to(u.dtype), None, None, None


def _part(split: Split, piece: Piece) -> dict[str, Any]:
    """A piece's place in the whole field, as options of the plain function."""
    return {"rows": piece.centres, "u_rows": (piece.rows[0], split.slabs.extent)}


def _determinant(ctx: Any, piece: Piece, rows: Tensor) -> Tensor:
    """The determinants of a piece, in torch's operators."""
    ends = (ctx.options["min_coords"], ctx.options["max_coords"])
    part = _part(ctx.split, piece).values()
    return determinant(rows, ctx.options["align_corners"], *ends, *part)


def _gradient_of_piece(ctx: Any, piece: Piece, rows: Tensor, upstream: Tensor) -> Tensor:
    """The gradient of a piece's determinants to the rows that they read, f32 for halves."""
    with torch.enable_grad():
        leaf = rows.detach()
        leaf = (leaf if leaf.dtype == torch.float64 else leaf.float()).requires_grad_()
        det = _determinant(ctx, piece, leaf)
        of_piece = ctx.split.own(upstream, piece.centres, 1).to(det.dtype)
        (gradient,) = torch.autograd.grad(det, leaf, of_piece)
    return gradient


def smooth(
    x: Tensor,
    sigma: Union[float, Sequence[float]],
    slabs: Slabs,
    *,
    field: bool = False,
    truncate: float = 3.0,
    padding: str = "replicate",
) -> Tensor:
    """similis.smooth(): own rows of x smoothed, differentiable once by x.

    Rows as far as the taps reach are fetched on each side; padding acts at the volume's ends.
    """
    axis = 1 if field else 2
    options: dict[str, Any] = {"field": field, "truncate": truncate, "padding": padding}
    with Agreement("smooth", slabs, later=True, sigma=sigma, **options) as agreement:
        agreement.array("x", x, slabs, axis)
        shape = list(x.shape)
        shape[axis] = 1
        plain_smooth(x.new_zeros(()).expand(shape)[:1], sigma, **options)
    along_rows = float(sigma[0] if isinstance(sigma, Sequence) else sigma)
    split = Split(slabs, math.floor(truncate * along_rows + 0.5))
    call = library.text(spatial(x), sigma=sigma, **options)
    apply: Any = _Smooth.apply
    result: Tensor = apply(x, split, call, axis, agreement.settle)
    return result


class _Smooth(torch.autograd.Function):
    """Own rows smoothed. Its gradient is the adjoint, which looks at the rows that it does."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, split: Split, call: str, axis: int, settle: Callable[[], None]
    ) -> Tensor:
        ctx.split, ctx.call, ctx.axis = split, call, axis
        return _smoothed(x, split, call, axis, settle)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
        refuse_second_derivative("smooth")
        gradient = _smoothed(upstream, ctx.split, library.adjoint_of(ctx.call), ctx.axis)
        return gradient, None, None, None, None


def _smoothed(
    x: Tensor,
    split: Split,
    call: str,
    axis: int,
    settle: Callable[[], None] = lambda: None,
) -> Tensor:
    """A piece's rows are smoothed as if they were all; what their false ends change is left out."""
    result: Optional[Tensor] = None
    borders: list[tuple[Interval, Tensor]] = []

    def compute(piece: Piece, seen: Sequence[Any]) -> None:
        nonlocal result
        smoothed = smooth_op(seen[0], call)
        if piece is split.inside:
            result = smoothed
        else:
            first, end = (each - piece.rows[0] for each in piece.centres)
            borders.append((piece.centres, smoothed.narrow(axis, first, end - first)))

    in_pieces(split, [(x.detach(), axis)], compute, settle)
    if result is None:
        result = x.new_empty(x.shape)
    for rows, smoothed in borders:
        split.own(result, rows, axis).copy_(smoothed)
    return result

# SPDX-License-Identifier: Apache-2.0
"""Exponentials, inverses and Jacobian determinants of fields in slabs, and smoothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Union

import torch
from torch import Tensor

from .._functions import fields
from .._functions.dispatch import Coordinates
from .._functions.smooth import smooth as plain_smooth
from .agreement import Agreement
from .rows import halos, rows_of
from .slabs import Slabs
from .transforms import compose
from .transport import Exchange, gathered, sum_of_ranks


def _require_field(agreement: Agreement, name: str, field: Any, slabs: Slabs) -> None:
    agreement.array(name, field, slabs, 1)
    rank = field.dim() - 2
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
            raise ValueError(f"n is {n!r}; it must be from 0 to 32")
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
        wanted = halos(slabs, margin, margin)
        rows = Exchange(slabs, u, wanted, 1).rows()
        wide = torch.float64 if u.dtype == torch.float64 else torch.float32
        w, residual = torch.empty_like(u), u.new_zeros(u.shape[:1], dtype=wide)
        if u.numel():
            w, residual = fields.invert(
                rows,
                iterations,
                **options,
                rows=(slabs.start, slabs.stop),
                u_rows=(wanted[slabs.rank][0], slabs.extent),
            )
        every = torch.stack(gathered(slabs, residual.to(u.device)))
        if bool(torch.isfinite(every).all()) or margin >= slabs.extent:
            return w, _largest(every)
        margin *= 2


def _largest(residuals: Tensor) -> Tensor:
    """The largest over ranks; NaN where one is."""
    return torch.where(residuals.isnan().any(0), torch.nan, residuals.nan_to_num(0).amax(0))


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
    with Agreement("jacobian_determinant", slabs, **options) as agreement:
        _require_field(agreement, "u", u, slabs)
        shape = [1, *[2] * (u.dim() - 2), u.dim() - 2]
        fields.jacobian_determinant(torch.zeros(shape), **options)
    wanted = halos(slabs, 1, 1)
    rows = rows_of(u, slabs, wanted, 1)
    if u.numel():
        det, folds = fields.jacobian_determinant(
            rows,
            **options,
            rows=(slabs.start, slabs.stop),
            u_rows=(wanted[slabs.rank][0], slabs.extent),
        )
    else:
        det, folds = rows[..., 0], u.new_zeros(u.shape[:1], dtype=torch.float64)
    return det, sum_of_ranks(slabs, folds)


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
    with Agreement("smooth", slabs, sigma=sigma, **options) as agreement:
        agreement.array("x", x, slabs, axis)
        shape = list(x.shape)
        shape[axis] = 1
        plain_smooth(x.new_zeros(()).expand(shape)[:1], sigma, **options)
    along_rows = float(sigma[0] if isinstance(sigma, Sequence) else sigma)
    radius = math.floor(truncate * along_rows + 0.5)
    wanted = halos(slabs, radius, radius)
    rows = rows_of(x, slabs, wanted, axis)
    if rows.shape[axis] == 0:
        return rows
    smoothed = plain_smooth(rows, sigma, **options)
    return smoothed.narrow(axis, slabs.start - wanted[slabs.rank][0], slabs.stop - slabs.start)

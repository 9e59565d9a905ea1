# SPDX-License-Identifier: Apache-2.0
"""FireANTs' interpolator (rohitrango/FireANTs): its names and arguments, on similis's kernels.

    from similis.compat.fireants.interpolator import fireants_interpolator

As there, a grid that is not a displacement holds absolute coordinates and the affine map is
ignored; "bilinear" is linear in 3D too; generic labels ignore what lies below the background, which
is the image's smallest label unless it is given. Different from there: coordinates are formed in
float64, a gradient is computed for any operand that asks for one and for no other, and any strides
are taken, those of `out.sum().backward()` included.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from typing import Any, Callable, Optional

from torch import Tensor

from ..._functions import transforms
from ..._functions.dispatch import require_tensor

__all__ = [
    "affine_warp_2d",
    "affine_warp_3d",
    "fireants_interpolator",
    "fused_affine_warp_2d",
    "fused_affine_warp_3d",
    "fused_grid_sampler_2d",
    "fused_grid_sampler_2d_generic_label",
    "fused_grid_sampler_3d",
    "fused_grid_sampler_3d_generic_label",
    "fused_warp_composer_2d",
    "fused_warp_composer_3d",
    "warp_composer_2d",
    "warp_composer_3d",
]

_MODES = {"bilinear": "linear", "linear": "linear", "nearest": "nearest"}
Shape = Optional[Sequence[int]]
Coordinates = Optional[Sequence[float]]


def _spatial(out_shape: Shape, rank: int) -> Optional[tuple[int, ...]]:
    """The spatial part of a shape, which may be a full one, [N, C, ...]."""
    return None if out_shape is None else tuple(out_shape)[-rank:]


def _transform(
    affine: Optional[Tensor], grid: Optional[Tensor], is_displacement: bool
) -> dict[str, Any]:
    if grid is None:
        return {"affine": affine}
    if is_displacement:
        return {"affine": affine, "displacement": grid}
    return {"grid": grid}


def _of_rank(rank: int, name: str, function: Callable[..., Any], operand: int = 0) -> Any:
    """The function under FireANTs' name for pictures or volumes; operand: the one to check."""

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        given = arguments[operand] if operand < len(arguments) else options.get(names[operand])
        axes = getattr(given, "ndim", rank + 2)  # anything but a tensor is refused later
        if axes != rank + 2:
            raise ValueError(f"{name}: {names[operand]} has {axes} axes; it takes {rank + 2}")
        return function(*arguments, **options)

    names = list(inspect.signature(function).parameters)
    call.__name__ = call.__qualname__ = name
    return call


def _sample(
    input: Tensor,
    affine: Optional[Tensor] = None,
    grid: Optional[Tensor] = None,
    grid_affine: Optional[Tensor] = None,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = True,
    min_coords: Coordinates = None,
    max_coords: Coordinates = None,
    out_shape: Shape = None,
    is_displacement: bool = True,
    output: Optional[Tensor] = None,
) -> Tensor:
    """The image at A·x + S·u(x), or at S·v(x) where grid is not a displacement: sample()."""
    require_tensor("fireants_interpolator", "input", input)
    if mode not in _MODES:
        raise ValueError(f"fireants_interpolator: mode is {mode!r}; it must be bilinear or nearest")
    return transforms.sample(
        input,
        **_transform(affine, grid, is_displacement),
        grid_affine=None if grid is None else grid_affine,
        mode=_MODES[mode],
        padding_mode=padding_mode,
        align_corners=align_corners,
        out_shape=_spatial(out_shape, input.dim() - 2) if grid is None else None,
        min_coords=min_coords,
        max_coords=max_coords,
        output=output,
    )


def _generic_label(
    input: Tensor,
    affine: Optional[Tensor] = None,
    grid: Optional[Tensor] = None,
    grid_affine: Optional[Tensor] = None,
    padding_mode: str = "zeros",
    align_corners: bool = True,
    min_coords: Coordinates = None,
    max_coords: Coordinates = None,
    out_shape: Shape = None,
    is_displacement: bool = True,
    return_probs: bool = False,
    background_label: Optional[float] = None,
    mode: str = "genericlabel",
) -> Any:
    """Labels by weight, and with return_probs their weights: sample_labels()."""
    require_tensor("fused_grid_sampler", "input", input)
    if mode != "genericlabel":
        raise ValueError(f"fused_grid_sampler: mode is {mode!r}; it must be genericlabel")
    background = float(input.min()) if background_label is None else float(background_label)
    return transforms.sample_labels(
        input,
        **_transform(affine, grid, is_displacement),
        grid_affine=None if grid is None else grid_affine,
        padding_mode=padding_mode,
        align_corners=align_corners,
        out_shape=_spatial(out_shape, input.dim() - 2) if grid is None else None,
        min_coords=min_coords,
        max_coords=max_coords,
        background=background,
        smallest_label=background,
        return_weight=return_probs,
    )


def _compose(
    u: Tensor,
    affine: Optional[Tensor] = None,
    v: Optional[Tensor] = None,
    align_corners: bool = True,
    min_coords: Coordinates = None,
    max_coords: Coordinates = None,
    grid: Optional[Tensor] = None,
    output: Optional[Tensor] = None,
) -> Tensor:
    """u(A·x + v(x)) of vector fields: compose()."""
    if v is None:
        raise TypeError("warp_composer: v is None; it must be a vector field")
    if grid is not None:
        raise ValueError("warp_composer: grid is given; v has its own grid, so leave it out")
    return transforms.compose(
        u,
        v,
        affine=affine,
        align_corners=align_corners,
        min_coords=min_coords,
        max_coords=max_coords,
        output=output,
    )


def _affine_warp(
    affine: Optional[Tensor],
    grid: Tensor,
    align_corners: bool = True,
    min_coords: Coordinates = None,
    max_coords: Coordinates = None,
) -> Tensor:
    """A·x + u(x) of a vector field; no affine map is the identity: affine_grid()."""
    require_tensor("affine_warp", "grid", grid)
    if affine is None:
        rank = grid.dim() - 2
        affine = grid.new_zeros((1, rank, rank + 1), dtype=grid.dtype)
        affine[:, range(rank), range(rank)] = 1
    return transforms.affine_grid(
        affine, grid, align_corners=align_corners, min_coords=min_coords, max_coords=max_coords
    )


fused_grid_sampler_2d = _of_rank(2, "fused_grid_sampler_2d", _sample)
fused_grid_sampler_3d = _of_rank(3, "fused_grid_sampler_3d", _sample)
fused_grid_sampler_2d_generic_label = _of_rank(
    2, "fused_grid_sampler_2d_generic_label", _generic_label
)
fused_grid_sampler_3d_generic_label = _of_rank(
    3, "fused_grid_sampler_3d_generic_label", _generic_label
)
warp_composer_2d = fused_warp_composer_2d = _of_rank(2, "warp_composer_2d", _compose)
warp_composer_3d = fused_warp_composer_3d = _of_rank(3, "warp_composer_3d", _compose)
affine_warp_2d = fused_affine_warp_2d = _of_rank(2, "affine_warp_2d", _affine_warp, operand=1)
affine_warp_3d = fused_affine_warp_3d = _of_rank(3, "affine_warp_3d", _affine_warp, operand=1)


class _Interpolator:
    """FireANTs' fireants_interpolator: a sampler of pictures and volumes, and more."""

    def __call__(
        self,
        input: Tensor,
        affine: Optional[Tensor] = None,
        grid: Optional[Tensor] = None,
        grid_affine: Optional[Tensor] = None,
        mode: str = "bilinear",
        padding_mode: str = "zeros",
        align_corners: bool = True,
        min_coords: Coordinates = None,
        max_coords: Coordinates = None,
        out_shape: Shape = None,
        is_displacement: bool = True,
        output: Optional[Tensor] = None,
        return_probs: bool = False,
        background_label: Optional[float] = None,
    ) -> Any:
        """The image at A·x + S·u(x), or at S·v(x) where grid is not a displacement.

        With mode "genericlabel" labels by weight, and with return_probs their weights, too; only
        this mode reads return_probs and background_label, and it takes no output.
        """
        if mode == "genericlabel":
            if output is not None:
                raise ValueError("fireants_interpolator: output is given; genericlabel takes none")
            return _generic_label(
                input,
                affine,
                grid,
                grid_affine,
                padding_mode,
                align_corners,
                min_coords,
                max_coords,
                out_shape,
                is_displacement,
                return_probs,
                background_label,
            )
        return _sample(
            input,
            affine,
            grid,
            grid_affine,
            mode,
            padding_mode,
            align_corners,
            min_coords,
            max_coords,
            out_shape,
            is_displacement,
            output,
        )

    warp_composer = staticmethod(_compose)
    affine_warp = staticmethod(_affine_warp)
    grid_sample_2d, grid_sample_3d = map(
        staticmethod, (fused_grid_sampler_2d, fused_grid_sampler_3d)
    )
    warp_composer_2d, warp_composer_3d = map(staticmethod, (warp_composer_2d, warp_composer_3d))
    affine_warp_2d, affine_warp_3d = map(staticmethod, (affine_warp_2d, affine_warp_3d))


fireants_interpolator = _Interpolator()

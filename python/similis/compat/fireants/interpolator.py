# SPDX-License-Identifier: Apache-2.0
"""FireANTs' interpolator (rohitrango/FireANTs): its names and arguments, on similis's kernels.

    from similis.compat.fireants.interpolator import fireants_interpolator

As there, a grid that is not a displacement holds absolute coordinates and the affine map is ignored;
"bilinear" is linear in 3D too; generic labels ignore what lies below the background, which is the
image's smallest label unless it is given. Different from there: coordinates are formed in float64,
a gradient is computed for any operand that asks for one and for no other, and any strides are taken,
those of `out.sum().backward()` included.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from torch import Tensor

from ... import _transforms

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
    """Of the spatial shape, or of a full one [N, C, ...]."""
    return None if out_shape is None else tuple(out_shape)[-rank:]


def _transform(
    affine: Optional[Tensor], grid: Optional[Tensor], is_displacement: bool
) -> dict[str, Any]:
    if grid is None:
        return {"affine": affine}
    if is_displacement:
        return {"affine": affine, "displacement": grid}
    return {"grid": grid}


def _require_rank(name: str, tensor: Tensor, rank: int) -> None:
    if tensor.dim() != rank + 2:
        raise ValueError(f"{name}: its first operand has {tensor.dim()} axes; it takes {rank + 2}")


def _sample(
    image: Tensor,
    affine: Optional[Tensor] = None,
    grid: Optional[Tensor] = None,
    grid_affine: Optional[Tensor] = None,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = True,
    out_shape: Shape = None,
    min_coords: Coordinates = None,
    max_coords: Coordinates = None,
    is_displacement: bool = True,
    output: Optional[Tensor] = None,
) -> Tensor:
    if mode not in _MODES:
        raise ValueError(f"fireants_interpolator: mode is {mode!r}; it must be bilinear or nearest")
    return _transforms.sample(
        image,
        **_transform(affine, grid, is_displacement),
        grid_affine=None if grid is None else grid_affine,
        mode=_MODES[mode],
        padding_mode=padding_mode,
        align_corners=align_corners,
        out_shape=_spatial(out_shape, image.dim() - 2) if grid is None else None,
        min_coords=min_coords,
        max_coords=max_coords,
        output=output,
    )


def fused_grid_sampler_2d(input: Tensor, *arguments: Any, **options: Any) -> Tensor:
    """The arguments of fused_grid_sampler_3d, of pictures."""
    _require_rank("fused_grid_sampler_2d", input, 2)
    return _sample(input, *arguments, **options)


def fused_grid_sampler_3d(input: Tensor, *arguments: Any, **options: Any) -> Tensor:
    """input, affine, grid, grid_affine, mode, padding_mode, align_corners, out_shape, min_coords,
    max_coords, is_displacement and output: sample() under FireANTs' names."""
    _require_rank("fused_grid_sampler_3d", input, 3)
    return _sample(input, *arguments, **options)


def _generic_label(
    input: Tensor,
    affine: Optional[Tensor] = None,
    grid: Optional[Tensor] = None,
    grid_affine: Optional[Tensor] = None,
    padding_mode: str = "zeros",
    align_corners: bool = True,
    out_shape: Shape = None,
    min_coords: Coordinates = None,
    max_coords: Coordinates = None,
    is_displacement: bool = True,
    return_weight: bool = False,
    background_label: Optional[float] = None,
) -> Any:
    background = float(input.min()) if background_label is None else float(background_label)
    return _transforms.sample_labels(
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
        return_weight=return_weight,
    )


def fused_grid_sampler_2d_generic_label(input: Tensor, *arguments: Any, **options: Any) -> Any:
    _require_rank("fused_grid_sampler_2d_generic_label", input, 2)
    return _generic_label(input, *arguments, **options)


def fused_grid_sampler_3d_generic_label(input: Tensor, *arguments: Any, **options: Any) -> Any:
    _require_rank("fused_grid_sampler_3d_generic_label", input, 3)
    return _generic_label(input, *arguments, **options)


def _compose(
    u: Tensor,
    affine: Optional[Tensor],
    v: Tensor,
    align_corners: bool = True,
    grid: Optional[Tensor] = None,
    min_coords: Coordinates = None,
    max_coords: Coordinates = None,
    output: Optional[Tensor] = None,
) -> Tensor:
    if grid is not None:
        raise ValueError("warp_composer: grid is given; coordinates are those of v's own grid")
    return _transforms.compose(
        u,
        v,
        affine=affine,
        align_corners=align_corners,
        min_coords=min_coords,
        max_coords=max_coords,
        output=output,
    )


def warp_composer_2d(
    u: Tensor, affine: Optional[Tensor] = None, v: Optional[Tensor] = None, **options: Any
) -> Tensor:
    """u(A·x + v(x)) of fields [N,Y,X,2]."""
    _require_rank("warp_composer_2d", u, 2)
    if v is None:
        raise TypeError("warp_composer_2d: v is None; it must be a vector field")
    return _compose(u, affine, v, **options)


def warp_composer_3d(
    u: Tensor, affine: Optional[Tensor] = None, v: Optional[Tensor] = None, **options: Any
) -> Tensor:
    """u(A·x + v(x)) of fields [N,Z,Y,X,3]."""
    _require_rank("warp_composer_3d", u, 3)
    if v is None:
        raise TypeError("warp_composer_3d: v is None; it must be a vector field")
    return _compose(u, affine, v, **options)


def _affine_warp(
    affine: Optional[Tensor],
    grid: Tensor,
    align_corners: bool = True,
    min_coords: Coordinates = None,
    max_coords: Coordinates = None,
) -> Tensor:
    if affine is None:
        rank = grid.dim() - 2
        affine = grid.new_zeros((1, rank, rank + 1), dtype=grid.dtype)
        affine[:, range(rank), range(rank)] = 1
    return _transforms.affine_grid(
        affine, grid, align_corners=align_corners, min_coords=min_coords, max_coords=max_coords
    )


def affine_warp_2d(affine: Optional[Tensor], grid: Tensor, **options: Any) -> Tensor:
    """A·x + u(x) of a field [N,Y,X,2]; no affine map is the identity."""
    _require_rank("affine_warp_2d", grid, 2)
    return _affine_warp(affine, grid, **options)


def affine_warp_3d(affine: Optional[Tensor], grid: Tensor, **options: Any) -> Tensor:
    """A·x + u(x) of a field [N,Z,Y,X,3]; no affine map is the identity."""
    _require_rank("affine_warp_3d", grid, 3)
    return _affine_warp(affine, grid, **options)


fused_warp_composer_2d, fused_warp_composer_3d = warp_composer_2d, warp_composer_3d
fused_affine_warp_2d, fused_affine_warp_3d = affine_warp_2d, affine_warp_3d


class _Interpolator:
    """Callable as FireANTs' fireants_interpolator, with its methods; 2D or 3D by the operand."""

    def __call__(
        self,
        image: Tensor,
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
        return _sample(
            image,
            affine,
            grid,
            grid_affine,
            mode,
            padding_mode,
            align_corners,
            out_shape,
            min_coords,
            max_coords,
            is_displacement,
            output,
        )

    def warp_composer(
        self,
        u: Tensor,
        affine: Optional[Tensor] = None,
        v: Optional[Tensor] = None,
        **options: Any,
    ) -> Tensor:
        return (warp_composer_2d if u.dim() == 4 else warp_composer_3d)(u, affine, v, **options)

    def affine_warp(self, affine: Optional[Tensor], grid: Tensor, **options: Any) -> Tensor:
        return (affine_warp_2d if grid.dim() == 4 else affine_warp_3d)(affine, grid, **options)


fireants_interpolator = _Interpolator()

# SPDX-License-Identifier: Apache-2.0
"""The result of register() on slabs, and images laid on fixed's grid by it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional

import torch
from torch import Tensor

from .. import transforms
from ..agreement import Agreement
from ..slabs import Slabs
from .images import coordinates, units

_MODES = ("linear", "nearest", "cubic", "label")
_ROWS_AT_ONCE = 1 << 24  # voxels


@dataclass
class Places:
    """The grids of fixed and moving: extents by z, y, x, and rows of fixed."""

    slabs: Slabs
    size: list[int]
    moving_size: list[int]


def laid(
    image: Tensor,
    image_slabs: Slabs,
    places: Places,
    affine: Tensor,
    u: Optional[Tensor],
    mode: str,
) -> Tensor:
    """Own rows of an image at A(x + u(x)); 0 more than half a voxel outside of it."""
    linear, shift = affine[:, :-1], affine[:, -1]
    device = image.device
    matrix = coordinates(linear, shift, places.size, places.moving_size).to(device)
    at: dict[str, Any] = {"out_shape": places.size}
    if u is not None:
        at = {"displacement": u, "grid_affine": units(linear, places.moving_size).to(device)}
    at.update(slabs=places.slabs, affine=matrix)
    result: Tensor
    if mode == "label":
        result = transforms.sample_labels(image, image_slabs, padding_mode="border", **at)
    else:
        held = image if image.is_floating_point() else image.double()
        rim = "reflection" if mode == "cubic" else "border"
        result = transforms.sample(held, image_slabs, mode=mode, padding_mode=rim, **at)
        if mode == "nearest":
            result = result.to(image.dtype)
    _clear_outside(result, places, linear, shift, u)
    return result


def _clear_outside(
    result: Tensor, places: Places, linear: Tensor, shift: Tensor, u: Optional[Tensor]
) -> None:
    """Sets voxels to 0 that lie more than half a voxel outside of moving, some rows at a time."""
    d, device = len(places.size), result.device
    rows = max(_ROWS_AT_ONCE // max(result[0, 0, :1].numel(), 1), 1)
    for first in range(0, result.shape[2], rows):
        part = result[:, :, first : first + rows]
        field = None if u is None else u[:, first : first + rows].double()
        ranges = [torch.arange(n, device=device).double() for n in part.shape[2:]]
        ranges[0] = ranges[0] + places.slabs.start + first
        outside = torch.zeros([1, *part.shape[2:]], dtype=torch.bool, device=device)
        for a in range(d):
            at = torch.full([1] * (d + 1), float(shift[a]), dtype=torch.float64, device=device)
            for c in range(d):
                shape = [-1 if k == d - c else 1 for k in range(d + 1)]
                along = ranges[d - 1 - c].reshape(shape)
                at = at + float(linear[a, c]) * (along if field is None else along + field[..., c])
            outside |= (at < -0.5) | (at >= places.moving_size[d - 1 - a] - 0.5)
        part.masked_fill_(outside[:, None], 0)


@dataclass
class Registered:
    """affine: A, [d,d+1] in f64, from fixed's voxels (x, y, z) to moving's, on every rank.
    displacement: own rows of u, [1,z,Y,X,d] in voxels of the fixed image, x first: its point
    x lies at A(x + u(x)) of the moving one; None without a deformable stage. min_jacobian: the
    smallest determinant of x + u(x), one-sided differences. history: of each iteration its stage,
    level (shrink factor; 0 in linear stages), iteration and loss. labels: own rows of moving_labels
    on fixed's grid, shaped as they were given, by the label with the largest linear weight; dice: the
    overlap of each label with fixed_labels, {"1": {"before": …, "after": …}}, of all ranks. Both are
    None where they were not given."""

    affine: Tensor
    displacement: Optional[Tensor]
    min_jacobian: float
    history: list[dict[str, Any]] = field(default_factory=list)
    labels: Optional[Tensor] = None
    dice: Optional[dict[str, dict[str, float]]] = None
    _places: Any = field(default=None, repr=False)

    def apply(self, image: Tensor, image_slabs: Slabs, *, mode: str = "linear") -> Tensor:
        """Own rows of an image on moving's grid, laid on fixed's: [1,C,z,Y,X] or [1,C,y,X].

        Args:
            image: own rows, [1,C,z,Y,X] or [1,C,y,X]; image_slabs say which.
            mode: "linear", "nearest", "cubic" or "label" (the label with the largest linear weight).

        Voxels more than half a voxel outside moving are 0.
        """
        places: Places = self._places
        with Agreement(
            "apply", places.slabs, image_slabs=getattr(image_slabs, "sizes", None), mode=mode
        ) as agreement:
            if not isinstance(image_slabs, Slabs):
                raise TypeError(
                    f"image_slabs is of type {type(image_slabs).__name__}; it must be Slabs"
                )
            agreement.array("image", image, image_slabs, 2)
            if mode not in _MODES:
                raise ValueError(f"mode is {mode!r}; it must be one of {', '.join(_MODES)}")
            wanted = places.moving_size
            if image.dim() != len(wanted) + 2 or [image_slabs.extent, *image.shape[3:]] != wanted:
                raise ValueError(
                    f"image has shape {[*image.shape[:2], image_slabs.extent, *image.shape[3:]]} on all "
                    f"ranks together; its last axes must be those of moving, {wanted}"
                )
            device = None if self.displacement is None else self.displacement.device
            if device is not None and image.device != device:
                raise ValueError(f"image is on {image.device}; it must be on {device} as fixed is")
        with torch.no_grad():
            return laid(image, image_slabs, places, self.affine, self.displacement, mode)

# SPDX-License-Identifier: Apache-2.0
"""The middle of a volume in slabs, about which a GPU sums the moments of SSIM's windows in f32.

One process takes a voxel of the volume. All ranks take the same one, so that a window has the same
rounding errors however the volume is cut; with a voxel of its own slab each rank would have others.
"""

from __future__ import annotations

import functools
from typing import Optional

import torch
from torch import Tensor

from .gathering import gathered
from .operands import as_five
from .slabs import Slabs

_PLACES = 32  # on the diagonal, from the middle on: src/ssim/cuda/any_window takes the first that exists


def is_read(text: str, x: Tensor) -> bool:
    """True if the measure of this text reads a middle."""
    return text.startswith("ssim ") and x.is_cuda and x.dim() == 5 and x.dtype != torch.float64


@functools.lru_cache(maxsize=64)
def _places(extents: tuple[int, ...]) -> list[tuple[int, ...]]:
    steps = [k // 2 if k % 2 == 0 else -(k // 2) - 1 for k in range(_PLACES)]
    return [tuple(n * (33 + 2 * step) // 66 for n in extents) for step in steps]


def middle_of(x: Tensor, y: Tensor, valid_mask: Optional[Tensor], slabs: Slabs) -> Tensor:
    """Half of x + y at the middle voxel of each channel, [N,C] in f32; under a valid_mask at the first
    place that exists. A collective call."""
    every = _places((slabs.extent, *x.shape[3:]))
    places = every[:1] if valid_mask is None else every
    valid = None if valid_mask is None else as_five(valid_mask, x)
    found = torch.full([*x.shape[:2], len(places)], torch.inf, device=x.device)
    for k, (z, row, column) in enumerate(places):
        if slabs.start <= z < slabs.stop:
            at = (slice(None), slice(None), z - slabs.start, row, column)
            half = (x[at].float() + y[at].float()) / 2
            found[..., k] = half if valid is None else torch.where(valid[at] > 0, half, torch.inf)
    held = gathered(slabs, found)
    # The rank that holds a place; elsewhere it is infinite.
    owners = [next(r for r in range(slabs.ranks) if _has(slabs, r, z)) for z, *_ in places]
    whole = torch.stack([held[rank][..., k] for k, rank in enumerate(owners)], -1)
    first = whole.isfinite().to(torch.uint8).argmax(-1, keepdim=True)
    return whole.gather(-1, first)[..., 0].contiguous()


def _has(slabs: Slabs, rank: int, row: int) -> bool:
    start, stop = slabs.rows(rank)
    return start <= row < stop

# SPDX-License-Identifier: Apache-2.0
"""The map before the greedy stage: linear stages of images in slabs, or a start alone.

    own rows ─> smoothed and shrunk to 165 voxels along the longest side ─> gathered by all ranks
    both copies ─> similis.register(), the same on every rank ─> the map that rank 0 has found

Linear stages look at grids of 27 and 55 voxels along that side, so a copy three times as fine is
enough. An image that is no larger is gathered as it is stored, and its map is that of one process.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

import numpy
import torch
from torch import Tensor

from ..._functions.register import register as plain_register
from ...volumes import register_inputs as inputs
from ..agreement import Agreement
from ..gathering import gathered, sum_of_ranks
from ..rows import rows_of
from ..slabs import Slabs
from .images import Image, rows_first, shrunk

LINEAR = ("translation", "rigid", "similarity", "affine")
STAGES = (*LINEAR, "deformable", "symmetric")
STARTS = ("auto", "centers", "moments", "identity")
_LONGEST = 165  # voxels along the longest side of fixed's copy
_LONGEST_OF_MOVING = 330  # at most, where moving is larger than fixed


@dataclass
class Placed:
    """An image in slabs: its own rows as given, the same in [0, 1], and its voxels' place in mm,
    [d+1,d+1] by x, y, z."""

    given: Tensor
    image: Image
    to_mm: Tensor

    @property
    def spacing(self) -> list[float]:
        """mm between voxels, by z, y, x."""
        d = len(self.to_mm) - 1
        return rows_first(self.to_mm[:d, :d].norm(dim=0).tolist())

    @property
    def longest(self) -> float:
        """The longest side in mm."""
        return max(n * each for n, each in zip(self.image.size, self.spacing))


@dataclass
class Found:
    """A map of fixed's millimetres to moving's, [d+1,d+1]."""

    in_mm: Tensor
    was_stopped: bool = False
    history: list[dict[str, Any]] = field(default_factory=list)


def _copy(placed: Placed, millimetres: float) -> tuple[Tensor, Optional[Tensor], Tensor]:
    """All rows of an image and of its mask, on a grid whose voxels are so large or larger, and their
    place in mm."""
    spacing = placed.spacing
    copy = shrunk(placed.image, millimetres / min(spacing), spacing)
    if copy is placed.image:
        values, slabs = placed.given.float(), copy.slabs
    else:
        values, slabs = copy.values, copy.slabs
    every = [(0, slabs.extent)] * slabs.ranks
    whole = rows_of(values, slabs, every, 2)
    mask = None if copy.mask is None else rows_of(copy.mask, slabs, every, 2)[0, 0]
    to_full = torch.eye(len(spacing) + 1, dtype=torch.float64)
    to_full.diagonal()[:-1] = torch.tensor(rows_first(copy.scale)).double()
    to_full[:-1, -1] = torch.tensor(rows_first(copy.shift)).double()
    return whole[0], mask, placed.to_mm @ to_full


def _centre(placed: Placed) -> Tensor:
    """The middle of the grid, in mm."""
    middle = [(n - 1) / 2 for n in rows_first(placed.image.size)]
    return placed.to_mm @ torch.tensor([*middle, 1.0]).double()


def _centre_of_mass(placed: Placed) -> Tensor:
    image = placed.image
    d, slabs = len(image.size), image.slabs
    sums = torch.zeros(d + 1, dtype=torch.float64, device=image.values.device)
    for row in range(image.values.shape[2]):
        values = image.values[0, :, row].sum(0, dtype=torch.float64)
        at = torch.full_like(values, float(slabs.start + row))
        ranges = [torch.arange(n, device=values.device).double() for n in values.shape]
        places = [*reversed(torch.meshgrid(*ranges, indexing="ij")), at]
        sums[:d] += torch.stack([(values * each).sum() for each in places])
        sums[d] += values.sum()
    whole = sum_of_ranks(slabs, sums).cpu()
    extent = max(n * each for n, each in zip(image.size, placed.spacing))
    unit = math.ldexp(1.0, math.frexp(extent)[1] - 1 - 20)  # no split's last digits
    centre = placed.to_mm @ (whole / whole[-1])
    centre[:-1] = (centre[:-1] / unit).round() * unit
    return centre


def _start(fixed: Placed, moving: Placed, init: str) -> Tensor:
    """The map that a word says, in mm; several that are compared begin with the identity."""
    result = torch.eye(len(fixed.to_mm), dtype=torch.float64)
    if init in ("centers", "moments"):
        of = _centre if init == "centers" else _centre_of_mass
        result[:, -1] += of(moving) - of(fixed)
    return result


def found_map(
    fixed: Placed,
    moving: Placed,
    init: Any,
    stages: Sequence[str],
    options: dict[str, Any],
    callback: Optional[Callable[[str, int, int, float], Any]],
) -> Found:
    """The map that linear stages find, the same bits on every rank. init: one of similis.register()'s
    words, or a map in mm. A callback that ends them on one rank does so on all, when the others are done."""
    slabs = fixed.image.slabs
    if not stages:
        return Found(_start(fixed, moving, init) if isinstance(init, str) else init)
    millimetres = max(fixed.longest / _LONGEST, moving.longest / _LONGEST_OF_MOVING)
    (f, f_mask, f_to_mm), (m, m_mask, m_to_mm) = (
        _copy(each, millimetres) for each in (fixed, moving)
    )
    was_stopped = False

    def tell(*about: Any) -> Any:
        nonlocal was_stopped
        assert callback is not None
        was_stopped = callback(*about) is False
        return not was_stopped

    # All ranks refuse faults that only the images show, such as an overlap that is too small.
    with Agreement("register", slabs, stages=list(stages)):
        found = plain_register(
            f, m, fixed_affine=f_to_mm.numpy(), moving_affine=m_to_mm.numpy(), stages=stages,
            fixed_mask=f_mask, moving_mask=m_mask,
            init=init if isinstance(init, str) else init.numpy(),
            callback=None if callback is None else tell, **options,
        )  # fmt: skip
    d = len(fixed.to_mm) - 1
    kept = [*range(d), 3]
    mine = torch.tensor(found.affine[kept][:, kept], device="cpu").double().flatten()
    about = mine.new_tensor([float(was_stopped), float(len(found.history))])
    every = gathered(slabs, torch.cat([mine, about]))
    ended = [each for each in every if bool(each[-2])]
    taken = (ended or every)[0]  # if one rank ends them, its result counts
    in_mm, iterations = taken[:-2].reshape(d + 1, d + 1), int(taken[-1])
    return Found(in_mm, bool(ended), found.history[:iterations])


def own_rows_of(
    agreement: Agreement, name: str, mask: Any, image: Tensor, slabs: Slabs
) -> Optional[Tensor]:
    """Own rows of what is given beside an image, as [1,1,z,Y,X]; it lies as its image."""
    if mask is None:
        agreement.entries[name] = None
        return None
    shape = list(image.shape[2:])
    is_long = isinstance(mask, Tensor) and mask.dim() == len(shape) + 2
    agreement.array(name, mask, slabs, 2 if is_long else 0)
    if list(mask.shape) not in (shape, [1, 1, *shape]):
        raise ValueError(f"{name} has shape {list(mask.shape)}; it must be that of its image, {shape}")
    if mask.is_complex() or mask.device != image.device:
        raise ValueError(
            f"{name} is {mask.dtype} on {mask.device}; it must be numbers on {image.device}"
        )
    rows: Tensor = mask.detach().reshape([1, 1, *shape])
    return rows


def mask_of(
    agreement: Agreement, name: str, mask: Any, image: Tensor, slabs: Slabs
) -> Optional[Tensor]:
    """Own rows of a mask as [1,1,z,Y,X], 1 or 0 in f32."""
    held = own_rows_of(agreement, name, mask, image, slabs)
    return None if held is None else ((held != 0) & (held == held)).float()


def stages_of(given: Any) -> list[str]:
    if not isinstance(given, (tuple, list)):
        raise TypeError(f"stages is {given!r}; it must be a tuple or a list")
    for each in given:
        if each not in STAGES:
            raise ValueError(f"stages has {each!r}; it must be of {', '.join(STAGES)}")
    return list(given)


def place_of(name: str, given: dict[str, Any], rank: int) -> Tensor:
    """The map of an image's voxels to mm, [d+1,d+1], which similis.register() finds in options."""
    like = numpy.zeros([1] + [2] * rank, numpy.float32)
    affine = given[f"{name}_affine"]
    if affine is None and given["spacing"] is None:
        return torch.eye(rank + 1, dtype=torch.float64, device="cpu")
    of = f"{name}_affine" if affine is not None else "spacing"
    try:
        image = inputs.image_of(name, like, affine, given["spacing"], given["world"])
    except ValueError as error:
        wrong = f"register: {name} has shape"
        if not str(error).startswith(wrong):
            raise
        raise ValueError(f"{of} is {given[of]!r}; it must be of {rank} dimensions") from None
    turn = inputs.axes_turn(given["world"])
    to_mm = turn @ image.grid.voxel_to_lps
    kept = [*range(rank), 3]
    return torch.tensor(to_mm[kept][:, kept], device="cpu").double()


def start_of(init: Any, affine: Any, own_to_mm: Tensor, other_to_mm: Tensor, world: str) -> Any:
    """One of the words of init, or a map in mm, [d+1,d+1]."""
    rank = len(own_to_mm) - 1
    for name, place in (("fixed", own_to_mm), ("moving", other_to_mm)):
        if abs(float(torch.linalg.det(place))) < 1e-12:
            raise ValueError(f"{name}_affine is singular")
    if affine is not None:
        if not isinstance(init, str) or init != "auto":
            raise ValueError("affine and init are given; leave one of them out")
        if tuple(affine.shape) != (rank, rank + 1):
            raise ValueError(
                f"affine has shape {list(affine.shape)}; it must be {[rank, rank + 1]}"
            )
        whole = torch.eye(rank + 1, dtype=torch.float64, device="cpu")
        whole[:-1] = affine.double().cpu()
        return other_to_mm @ whole @ torch.linalg.inv(own_to_mm)
    if isinstance(init, str) and init in STARTS:
        return init
    try:
        _, numbers = inputs.start_of(init, rank, world)
    except OSError as error:
        raise ValueError(f"init: {error}") from None
    turn, matrix = inputs.axes_turn(world), numpy.eye(4)
    matrix[:3] = numpy.reshape(numbers, (3, 4))  # type: ignore[arg-type]
    kept = [*range(rank), 3]
    return torch.tensor((turn @ matrix @ turn)[kept][:, kept], device="cpu").double()


_tried: set[str] = set()  # options that the plain function takes


def refuse_options(rank: int, options: dict[str, Any]) -> None:
    """Refuses what similis.register() refuses of options, by one iteration on tiny images."""
    tried = repr((rank, sorted(options.items())))
    if tried in _tried:
        return
    tiny = torch.arange(8.0**rank, device="cpu").reshape([1] + [8] * rank)
    place = torch.eye(rank + 1, device="cpu").numpy()
    labels = (tiny[0] > 9).int()
    plain_register(
        tiny, tiny.sqrt(), fixed_affine=place, moving_affine=place, init="identity", **options,
        fixed_labels=labels, moving_labels=labels, callback=lambda *_: False,
    )  # fmt: skip
    if len(_tried) < 1024:
        _tried.add(tried)

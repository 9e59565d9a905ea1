# SPDX-License-Identifier: Apache-2.0
"""Which rows of an axis each rank holds."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Optional

import torch.distributed as dist
from torch import Tensor

from .gathering import gathered_objects


def _group_of(mesh: Any) -> Any:
    """The process group of a mesh of one dimension; None: all processes."""
    if not dist.is_available() or not dist.is_initialized():
        raise ValueError(
            "Slabs: torch.distributed has no process group; call similis.distributed.init() first"
        )
    if mesh is None:
        return dist.group.WORLD
    if isinstance(mesh, dist.ProcessGroup):
        return mesh
    if getattr(mesh, "ndim", None) != 1:
        raise ValueError(
            "Slabs: mesh is not a DeviceMesh of one dimension; give that which the rows are cut "
            "along, as mesh['name']"
        )
    return mesh.get_group()


def _whole_numbers(sizes: Any) -> tuple[int, ...]:
    wrong = f"Slabs: sizes is {sizes!r}; it must be whole numbers, the rows of each rank"
    if isinstance(sizes, (str, bytes)):
        raise ValueError(wrong)
    try:
        return tuple(operator.index(each) for each in sizes)
    except TypeError:
        raise ValueError(wrong) from None


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


class Slabs:
    """The rows of the first spatial axis that each rank holds: those before it come first.

    sizes: rows of each rank, any numbers, 0 included. mesh: a DeviceMesh of one dimension, by
    default all processes.

    Attributes: sizes; extent, the sum of them; start and stop, the range of this rank's own rows;
    rank and ranks, its number and how many there are.
    """

    def __init__(self, sizes: Sequence[int], mesh: Any = None) -> None:
        self.mesh = mesh
        self._beyond: dict[str, Tensor] = {}
        self.group = _group_of(mesh)
        self.rank, self.ranks = dist.get_rank(self.group), dist.get_world_size(self.group)
        if self.rank < 0:
            raise ValueError("Slabs: this process is not in the mesh")
        self.sizes = _whole_numbers(sizes)
        if len(self.sizes) != self.ranks:
            raise ValueError(
                f"Slabs: sizes has {_counted(len(self.sizes), 'number')}; there "
                f"{'is' if self.ranks == 1 else 'are'} {_counted(self.ranks, 'rank')}"
            )
        if min(self.sizes) < 0 or sum(self.sizes) < 1:
            raise ValueError(
                f"Slabs: sizes is {list(self.sizes)}; rows must be 0 or more, and not all 0"
            )
        self.extent = sum(self.sizes)
        self.start, self.stop = self.rows(self.rank)

    @staticmethod
    def even(extent: int, mesh: Any = None) -> Slabs:
        """Rows split as torch.chunk does, and DTensor: the last ranks may have fewer, or none."""
        ranks = dist.get_world_size(_group_of(mesh))
        if isinstance(extent, bool) or not isinstance(extent, int) or extent < 1:
            raise ValueError(f"Slabs: extent is {extent!r}; it must be a whole number of 1 or more")
        each = -(-extent // ranks)
        return Slabs([max(0, min(each, extent - rank * each)) for rank in range(ranks)], mesh)

    def rows(self, rank: int) -> tuple[int, int]:
        """The first row of a rank, and the one behind its last."""
        start = sum(self.sizes[:rank])
        return start, start + self.sizes[rank]

    def note_beyond(self, operation: str, is_beyond: Tensor) -> None:
        """Keeps in mind that a coordinate was beyond the reach of an operation."""
        before = self._beyond.get(operation)
        self._beyond[operation] = is_beyond if before is None else before | is_beyond

    def taken_beyond(self) -> Optional[str]:
        """The refusal of coordinates that were noted, if there were any; they are forgotten."""
        noted, self._beyond = self._beyond, {}
        found = [operation for operation, is_beyond in noted.items() if bool(is_beyond)]
        return f"an earlier {found[0]} has coordinates beyond its reach" if found else None

    def has_beyond_on_cpu(self) -> bool:
        return any(each.device.type == "cpu" for each in self._beyond.values())

    def check(self) -> None:
        """Raises a ValueError on all ranks if a call of any of them with `reach` had coordinates
        beyond it. All ranks call it; it waits for the GPU."""
        for rank, refusal in enumerate(gathered_objects(self, self.taken_beyond())):
            if refusal is not None:
                raise ValueError(f"check: {refusal} (on rank {rank})")

    def __repr__(self) -> str:
        return f"Slabs({list(self.sizes)}), rank {self.rank}"


def require_slabs(operation: str, name: str, slabs: Any) -> None:
    if not isinstance(slabs, Slabs):
        raise TypeError(f"{operation}: {name} is of type {type(slabs).__name__}; it must be Slabs")


Interval = tuple[int, int]


def overlap(one: Interval, other: Interval) -> Optional[Interval]:
    """The rows in both, or None."""
    first, last = max(one[0], other[0]), min(one[1], other[1])
    return (first, last) if first < last else None

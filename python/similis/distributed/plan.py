# SPDX-License-Identifier: Apache-2.0
"""The blocks of an image that each rank samples from, in rounds that all ranks know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import torch
from torch import Tensor

from .._library import warp
from .failure import require_group
from .reach import Reach
from .slabs import Interval, Slabs
from .transport import Exchange, gathered

_LEAST_ROWS = 3  # of a block: with fewer a GPU takes another path, whose last bits differ
_SPLINE_ROWS = 28  # beside a block, after which the prefilter's memory is below f64's precision
_SPLINE_TAPS = 3


class Plan:
    """A call but for its tensors: the blocks of image rows that each rank takes, in rounds."""

    def __init__(
        self,
        operation: str,
        options: dict[str, Any],
        image_slabs: Slabs,
        slabs: Slabs,
        block_rows: int,
        image_axis: int,
    ) -> None:
        self.operation, self.options = operation, options
        self.image_slabs, self.slabs = image_slabs, slabs
        self.block_rows = max(block_rows, _LEAST_ROWS)
        self.image_axis = image_axis
        self.margin = 0
        if options.get("mode") == "cubic":
            self.margin = _SPLINE_ROWS if options["prefilter"] else _SPLINE_TAPS
        self.rounds: list[list[tuple[Interval, Optional[Interval]]]] = []
        self.reach: Optional[Reach] = None  # of a call that fetches rows without a gather
        self.reached: Interval = (0, 0)  # the cells that have their rows then
        self.own_rows: list[Interval] = []  # of the output, that have voxels in a round's block

    def find_blocks(self, own: Sequence[Interval]) -> None:
        """own: the first and last cell of the voxels in each of this rank's rows."""
        first = min((each[0] for each in own), default=0)
        last = max((each[1] for each in own), default=-1)
        mine = torch.tensor([first, last + 1], dtype=torch.int64, device="cpu")
        cells = [
            (int(a), int(b)) for a, b in (each.tolist() for each in gathered(self.slabs, mine))
        ]
        require_group(self.slabs)
        self._set_blocks(cells, own)

    def reach_rows(self, before: int, after: int) -> Interval:
        """Takes rows of the image beyond those that each rank has, without a word between ranks.
        Returns this rank's cells that have their rows."""
        extent = self.image_slabs.extent
        within, cells = (0, 0), []
        for rank in range(self.slabs.ranks):
            start, stop = self.image_slabs.rows(rank)
            first, end = max(start - before, 0), min(stop + after, extent)
            reached = (first if first > 0 else -1, end - 1 if end < extent else extent)
            if rank == self.slabs.rank:
                within = reached
            has_voxels = self.slabs.sizes[rank] > 0
            # A row more on each side: coordinates at the last cell's border are rounded.
            cells.append((max(first - 1, -1), min(end, extent)) if has_voxels else (0, 0))
        rows = self.slabs.stop - self.slabs.start
        self._set_blocks(cells, [(-1, extent - 1)] * rows)
        return within

    def _set_blocks(self, cells: list[Interval], own: Sequence[Interval]) -> None:
        blocks = [self._blocks(*each, rank) for rank, each in enumerate(cells)]
        none: tuple[Interval, Optional[Interval]] = ((0, 0), None)
        for k in range(max(len(each) for each in blocks)):
            self.rounds.append([each[k] if k < len(each) else none for each in blocks])
        self.is_split = len(blocks[self.slabs.rank]) > 1
        for _, counted in blocks[self.slabs.rank]:
            rows = [
                r
                for r, (low, high) in enumerate(own)
                if counted is None or (low < counted[1] and high >= counted[0])
            ]
            self.own_rows.append((rows[0], rows[-1] + 1) if rows else (0, 0))
        if self.is_split:  # the first block sets every voxel, and others add to some
            self.own_rows[0] = (0, len(own))

    def _blocks(self, first: int, end: int, rank: int) -> list[tuple[Interval, Optional[Interval]]]:
        """The blocks of a rank whose voxels have these cells: rows, and the cells that count. Own
        rows are one, however many they are: nobody sends them, and they are not copied."""
        if first >= end:
            return []
        own, inner = self.image_slabs.rows(rank), self._inner(rank)
        if inner is None or inner[1] <= first or inner[0] >= end:
            blocks = self._fetched_blocks(first, end)
        else:
            blocks = [(own, inner)]
            if first < inner[0]:
                blocks += self._fetched_blocks(first, inner[0])
            if inner[1] < end:
                blocks += self._fetched_blocks(inner[1], end)
        blocks.sort(key=lambda each: max(each[0][0] - own[1], own[0] - each[0][1], -1))
        return blocks

    def _inner(self, rank: int) -> Optional[Interval]:
        """The cells that a rank's own rows are enough for; None if there are none."""
        extent, (start, stop) = self.image_slabs.extent, self.image_slabs.rows(rank)
        first = start + self.margin if start > 0 else -1
        end = stop - 1 - self.margin if stop < extent else extent
        has_rows = stop - start >= min(_LEAST_ROWS, extent)
        return (first, end) if has_rows and first < min(end, extent - 1) else None

    def _fetched_blocks(self, first: int, end: int) -> list[tuple[Interval, Optional[Interval]]]:
        extent = self.image_slabs.extent
        low, high = max(first - self.margin, 0), min(end + 1 + self.margin, extent)
        low, high = min(low, extent - 1), max(high, 1)
        # The cell at the last row is in the block of the one before it, so that each block has a
        # cell with both of its rows: a GPU needs one for the path that the whole takes.
        first, end = min(first, extent - 2), extent if end >= extent - 1 else end
        if high - low <= self.block_rows + 1:
            return [(self._at_least(low, high), (first, end))]
        low_cell = max(first, 0)
        starts = list(range(low_cell, max(min(end, extent - 1), low_cell + 1), self.block_rows))
        blocks: list[tuple[Interval, Optional[Interval]]] = []
        for start, stop in zip(starts, [*starts[1:], end]):
            rows = max(start - self.margin, 0), min(stop + 1 + self.margin, extent)
            blocks.append((self._at_least(*rows), (first if start == low_cell else start, stop)))
        return blocks

    def _at_least(self, low: int, high: int) -> Interval:
        """Rows with neighbours, if they are too few."""
        extent = self.image_slabs.extent
        while high - low < min(_LEAST_ROWS, extent):
            low, high = max(low - 1, 0), min(high + 1, extent)
        return low, high

    def each_block(self, image: Tensor) -> Any:
        """Yields a round's number, this rank's rows of the image, its rows of the output that have
        voxels there, and their call, or None; the next block is on its way."""
        coming = self._fetch(image, 0)
        for k in range(len(self.rounds)):
            arriving, coming = coming, self._fetch(image, k + 1)
            rows = arriving.rows()
            interval, cells = self.rounds[k][self.slabs.rank]
            own = self.own_rows[k] if k < len(self.own_rows) else (0, 0)
            has_voxels = interval[0] < interval[1] and own[0] < own[1]
            yield k, rows, own, self._call(interval, cells, own) if has_voxels else None

    def wanted(self, k: int) -> list[Interval]:
        return [interval for interval, _ in self.rounds[k]]

    def are_own(self, k: int) -> bool:
        """Whether each rank's rows in a round are its own ones, all of them."""
        slabs = self.image_slabs
        return self.wanted(k) == [slabs.rows(rank) for rank in range(slabs.ranks)]

    def _fetch(self, image: Tensor, k: int) -> Any:
        if k >= len(self.rounds):
            return None
        return Exchange(self.image_slabs, image, self.wanted(k), self.image_axis)

    def _call(self, interval: Interval, cells: Optional[Interval], own: Interval) -> warp.Call:
        options = dict(self.options)
        if options.get("out_shape") is not None:
            options["out_shape"] = [own[1] - own[0], *options["out_shape"][1:]]
        if interval == (0, self.image_slabs.extent) and not self.is_split:
            cells = None
        else:
            options["image_rows"] = (interval[0], self.image_slabs.extent)
        if own[1] - own[0] != self.slabs.extent:
            options["rows"] = (self.slabs.start + own[0], self.slabs.extent)
        return warp.parse(warp.text(self.operation, **options, cells=cells))


def result_shape(plan: Plan, operands: Sequence[Optional[Tensor]]) -> list[int]:
    image, _, field, _ = operands
    assert image is not None
    call = warp.parse(warp.text(plan.operation, **plan.options))
    batches = [each.shape[0] for each in operands if each is not None]
    field_shape = None if field is None else field.shape
    shape = [int(each) for each in call.result_shape(image.shape, batches, field_shape)]
    shape[plan.image_axis] = plan.slabs.sizes[plan.slabs.rank]
    return shape

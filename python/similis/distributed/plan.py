# SPDX-License-Identifier: Apache-2.0
"""The blocks of an image that each rank samples from, in rounds that all ranks know."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Callable, Optional

import torch
from torch import Tensor

from .._library import warp
from .failure import require_group
from .gathering import gathered
from .inner import Answers, Inner
from .notes import Notes
from .reach import Reach
from .slabs import Interval, Slabs
from .transport import Exchange, beside, marked

_LEAST_ROWS = 3  # of a block: with fewer a GPU takes another path, whose last bits differ
_SPLINE_ROWS = 28  # beside a block, after which the prefilter's memory is below f64's precision
_SPLINE_TAPS = 3
_KEPT_BLOCKS = 2  # of rows from other ranks, at most, between a forward and its backward pass

# By device: the least bytes of a block that is fetched in two halves for values, so that one is
# sampled while the other arrives. Gradients take it whole: a block is a pass over the field.
_HALVED_BYTES = {"cuda": 256 << 20}

Block = tuple[Interval, Interval]  # rows, and the cells that count
_NOTHING: Block = ((0, 0), (0, 0))


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
        self.settle: Callable[[], None] = lambda: None  # waits until all have agreed on the call
        self.image_slabs, self.slabs = image_slabs, slabs
        self.block_rows = max(block_rows, _LEAST_ROWS)
        self.image_axis = image_axis
        self.margin = 0
        if options.get("mode") == "cubic":
            self.margin = _SPLINE_ROWS if options["prefilter"] else _SPLINE_TAPS
        # The rows of each rank and the cells that count, in rounds; the first has own rows alone.
        self.rounds = [[self._own_block(rank) for rank in range(image_slabs.ranks)]]
        self.looks_at: Optional[Reach] = None  # until the other rounds are found
        self.inner: Optional[Inner] = None  # own rows that are sampled before anyone looks at them
        self._found_by: Optional[Reach] = None
        self._has_inner = False  # on some rank
        self._answers: Optional[Answers] = None
        self.notes: Optional[Notes] = None  # of a call with a given reach whose kernel marks voxels
        self.has_marked = False
        self.reach: Optional[Reach] = None  # of a call that fetches rows without a gather
        self.reached: Interval = (0, 0)  # the cells that have their rows then
        # The output's rows of each round: this rank's first round sets every voxel, and others add
        # to the rows that have voxels in their block.
        self.own_rows: list[Interval] = [(0, slabs.stop - slabs.start)]
        self.is_split = False

    def look(self, reach: Reach, image: Tensor) -> None:
        """Begins to look which rows own coordinates touch, if others may be among them."""
        if self.slabs.ranks > 1:
            if self.inner is not None:
                reach.looked = self.inner.outer
            with beside(image.device):  # the image is ready there, too
                reach.begin()
            self.looks_at = reach

    def _find_blocks(self, device: torch.device) -> None:
        reach, self.looks_at = self.looks_at, None
        if reach is None:
            return
        with beside(device, waits=False):
            own = reach.cells()  # the first and last of the voxels in each of this rank's rows
        first, last = min(own[0], default=0), max(own[1], default=-1)
        every = self._gathered(first, last + 1, self.inner is not None)
        self._found_by, self._has_inner = reach, any(has_inner for *_, has_inner in every)
        self._set_blocks([(first, end) for first, end, _ in every], own)

    def _gathered(self, *mine: int) -> list[list[int]]:
        every = gathered(self.slabs, torch.tensor(mine, dtype=torch.int64, device="cpu"))
        require_group(self.slabs)
        return [each.tolist() for each in every]

    def is_confirmed(self, image: Tensor) -> bool:
        """True if no rank's inner rows look elsewhere. If one's do, the call begins again."""
        answers, self._answers = self._answers, None
        self.inner, self._has_inner = None, False
        if answers is None or answers.are_no():
            return True
        assert self._found_by is not None
        self._found_by.looked = self.own_rows[:1]
        del self.rounds[1:], self.own_rows[1:]
        self.is_split = False
        self.look(self._found_by, image)
        return False

    def mark(self, device: torch.device) -> None:
        """Lets the kernel that samples own rows note and mark what is beyond the given reach, and
        those behind it leave out rows without a note."""
        if self.slabs.ranks > 1 and self._inner(self.slabs.rank) is not None:
            self.notes = Notes(self.slabs.stop - self.slabs.start, device)

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
        self._set_blocks(cells, ([-1] * rows, [extent - 1] * rows))
        return within

    def _set_blocks(self, cells: list[Interval], own: tuple[list[int], list[int]]) -> None:
        blocks = [self._fetched_blocks(*each, rank) for rank, each in enumerate(cells)]
        for k in range(max(len(each) for each in blocks)):
            self.rounds.append([each[k] if k < len(each) else _NOTHING for each in blocks])
        mine = blocks[self.slabs.rank]
        has_own = self.rounds[0][self.slabs.rank] is not _NOTHING
        self.is_split = len(mine) + has_own > 1
        for k, (_, counted) in enumerate(mine):
            begin, end = counted
            rows = [r for r, (low, high) in enumerate(zip(*own)) if low < end and high >= begin]
            if k == 0 and not has_own:
                rows = list(range(len(own[0])))
            self.own_rows.append((rows[0], rows[-1] + 1) if rows else (0, 0))

    def _own_block(self, rank: int) -> Block:
        """Own rows, however many they are: nobody sends them, and they are not copied."""
        inner = self._inner(rank)
        return _NOTHING if inner is None else (self.image_slabs.rows(rank), inner)

    def _fetched_blocks(self, first: int, end: int, rank: int) -> list[Block]:
        """The blocks of a rank whose voxels have these cells, but for those of its own one."""
        if first >= end:
            return []
        inner = self._inner(rank)
        if inner is None or inner[1] <= first or inner[0] >= end:
            blocks = self._parts(first, end)
        else:
            blocks = self._parts(first, inner[0]) + self._parts(inner[1], end)
        own = self.image_slabs.rows(rank)
        blocks.sort(key=lambda each: max(each[0][0] - own[1], own[0] - each[0][1], -1))
        return blocks

    def _inner(self, rank: int) -> Optional[Interval]:
        """The cells that a rank's own rows are enough for; None if there are none."""
        extent, (start, stop) = self.image_slabs.extent, self.image_slabs.rows(rank)
        first = start + self.margin if start > 0 else -1
        end = stop - 1 - self.margin if stop < extent else extent
        if start > 0:
            first = max(first, self._least_end())
        has_rows = stop - start >= min(_LEAST_ROWS, extent)
        return (first, end) if has_rows and first < min(end, extent - 1) else None

    def _parts(self, first: int, end: int) -> list[Block]:
        """Blocks for these cells, each with the rows that they need."""
        if first >= end:
            return []
        extent = self.image_slabs.extent
        low, high = max(first - self.margin, 0), min(end + 1 + self.margin, extent)
        low, high = min(low, extent - 1), max(high, 1)
        # The cell at the last row is in the block of the one before it, so that each block has a
        # cell with both of its rows: a GPU needs one for the path that the whole takes. Where
        # padding moves voxels, the first cell is in the block of the second likewise.
        first, end = min(first, extent - 2), extent if end >= extent - 1 else end
        end = max(end, self._least_end())
        high = max(high, min(end + 1, extent))
        if high - low <= self.block_rows + 1:
            return [(self._at_least(low, high), (first, end))]
        low_cell = max(first, 0)
        starts = list(range(low_cell, max(min(end, extent - 1), low_cell + 1), self.block_rows))
        blocks: list[Block] = []
        for start, stop in zip(starts, [*starts[1:], end]):
            rows = max(start - self.margin, 0), min(stop + 1 + self.margin, extent)
            blocks.append((self._at_least(*rows), (first if start == low_cell else start, stop)))
        return blocks

    def _least_end(self) -> int:
        """The end of the cells of a block that begins with the first one, at least."""
        is_padded = self.options.get("padding_mode", "zeros") != "zeros"
        return min(2, self.image_slabs.extent - 1) if is_padded else -1

    def _at_least(self, low: int, high: int) -> Interval:
        """Rows with neighbours, if they are too few."""
        extent = self.image_slabs.extent
        while high - low < min(_LEAST_ROWS, extent):
            low, high = max(low - 1, 0), min(high + 1, extent)
        return low, high

    def each_block(
        self,
        image: Tensor,
        kept: Sequence[Tensor] = (),
        keeps: Optional[list[Tensor]] = None,
    ) -> Any:
        """Yields a round's number, this rank's rows of the image, its rows of the output that have
        voxels there, and their call, or None; the next block is on its way. A GPU computes the
        first round while the others are found; on a CPU, where looking takes as long as it takes,
        rows travel while the first is computed. keeps: takes the rows of all rounds but the first,
        if they are not too many, to be given as `kept` for the backward pass."""
        if kept:
            for k, rows in enumerate([self._own(image), *kept]):
                yield k, rows, self._own_rows_of(k), self._call(k)
            return
        before = marked(image.device)
        coming: list[tuple[Exchange, Block]] = []
        if not image.is_cuda:
            self.settle()
            self._find_blocks(image.device)
            coming = self._fetch(image, 1, keeps is not None)
        if self.inner is None:
            yield 0, self._own(image), self._own_rows_of(0), self._call(0)
        else:
            for own in (self.inner.rows, *self.inner.outer):
                yield 0, self._own(image), own, self._call(0, own)
                if own == self.inner.rows:
                    self.inner.mark(image.device)
        if image.is_cuda:
            self.settle()
            self._find_blocks(image.device)
            coming = self._fetch(image, 1, keeps is not None, after=before)
        if self._has_inner:
            self._answers = Answers(self.slabs, self.inner, image.device)
        for k in range(1, len(self.rounds)):
            arriving, coming = coming, self._fetch(image, k + 1, keeps is not None)
            for exchange, block in arriving:
                rows, own = exchange.rows(), self._own_rows_of(k)
                low = block[0][0] - self.rounds[k][self.slabs.rank][0][0]
                here = rows.narrow(self.image_axis, low, block[0][1] - block[0][0])
                yield k, here, own, self._call_of(block, own, k)
            if keeps is not None and self._may_keep():
                keeps.append(rows)

    def _own(self, image: Tensor) -> Tensor:
        start, stop = self.rounds[0][self.slabs.rank][0]
        return image.detach().narrow(self.image_axis, 0, stop - start)

    def _own_rows_of(self, k: int) -> Interval:
        return self.own_rows[k] if k < len(self.own_rows) else (0, 0)

    def _may_keep(self) -> bool:
        """True if rows from other ranks are kept for the backward pass; on all ranks alike."""
        most = sum(self._most_rows(k) for k in range(1, len(self.rounds)))
        return most <= _KEPT_BLOCKS * self.block_rows

    def _most_rows(self, k: int) -> int:
        return max(stop - start for start, stop in self.wanted(k))

    def wanted(self, k: int) -> list[Interval]:
        return [interval for interval, _ in self.rounds[k]]

    def _fetch(
        self, image: Tensor, k: int, in_halves: bool, after: Any = None
    ) -> list[tuple[Exchange, Block]]:
        """The exchanges of a round, in order, each with this rank's block after it; all rows come
        into one array. after: a mark; rows wait for no work that the GPU was given behind it."""
        if k >= len(self.rounds):
            return []
        self.settle()
        blocks, rank = self.rounds[k], self.slabs.rank
        least = _HALVED_BYTES.get(image.device.type)
        shape = list(image.shape)
        shape[self.image_axis] = self._most_rows(k)
        with beside(image.device, after=after):
            if not in_halves or least is None or math.prod(shape) * image.element_size() < least:
                exchange = Exchange(self.image_slabs, image, self.wanted(k), self.image_axis)
                return [(exchange, blocks[rank])]
            low, high = shape_of = blocks[rank][0]
            shape[self.image_axis] = high - low
            into = image.new_empty(shape), shape_of
            coming, halves = [], [_halves(each, self.margin) for each in blocks]
            for i in (0, 1):
                # A row that both halves see comes with the first.
                wanted = [each[0][0] if i == 0 else (each[0][0][1], each[1][0][1]) for each in halves]
                exchange = Exchange(self.image_slabs, image, wanted, self.image_axis, into=into)
                coming.append((exchange, halves[rank][i]))
            return coming

    def _call(self, k: int, own: Optional[Interval] = None) -> Optional[warp.Call]:
        """own: rows of the output, if not all that have voxels there."""
        return self._call_of(
            self.rounds[k][self.slabs.rank], self._own_rows_of(k) if own is None else own, k
        )

    def _call_of(self, block: Block, own: Interval, k: int) -> Optional[warp.Call]:
        (low, high), cells = block
        if low == high or own[0] == own[1]:
            return None
        options, extent = dict(self.options), self.image_slabs.extent
        if options.get("out_shape") is not None:
            options["out_shape"] = [own[1] - own[0], *options["out_shape"][1:]]
        is_whole = (low, high) == (0, extent) and (k == 0 or not self.is_split)
        if not is_whole:
            options.update(image_rows=(low, extent), cells=cells)
        if k == 0 and self.notes is not None and not self.has_marked:
            options["reached"] = self.reached
        if own[1] - own[0] != self.slabs.extent:
            options["rows"] = (self.slabs.start + own[0], self.slabs.extent)
        return warp.parse(warp.text(self.operation, **options))


def _halves(block: Block, margin: int) -> tuple[Block, Block]:
    """The second has no cells if the block is small."""
    (low, high), (first, end) = block
    middle = (low + high) // 2
    if margin > 0 or high - low < 2 * (_LEAST_ROWS + 1) or not first < middle < end:
        return block, ((high, high), (high, high))
    return ((low, middle + 1), (first, middle)), ((middle, high), (middle, end))


def result_shape(plan: Plan, operands: Sequence[Optional[Tensor]]) -> list[int]:
    image, _, field, _ = operands
    assert image is not None
    call = warp.parse(warp.text(plan.operation, **plan.options))
    batches = [each.shape[0] for each in operands if each is not None]
    field_shape = None if field is None else field.shape
    shape = [int(each) for each in call.result_shape(image.shape, batches, field_shape)]
    shape[plan.image_axis] = plan.slabs.sizes[plan.slabs.rank]
    return shape

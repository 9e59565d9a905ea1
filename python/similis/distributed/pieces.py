# SPDX-License-Identifier: Apache-2.0
"""Operations that look at the rows around a row, cut into what needs own rows alone and what needs
rows of other ranks.

    inside: own rows alone ────────────────────────────────┐
    rows beside own ones, on their way ─> the two borders ──┴─> own rows of the result

Own rows are not copied: the borders see twice the radius of own rows. On the CPU rows travel while
the inside is computed. A GPU is given the inside first; all that concerns the borders is beside it,
on its second stream, and it hides the wait for other ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, NamedTuple, Optional

from torch import Tensor

from .slabs import Interval, Slabs
from .transport import Exchange, Messages, beside, join, marked


class Piece(NamedTuple):
    """Rows to compute, the centres, and the rows that they look at, of which those before and
    behind own ones come from other ranks."""

    centres: Interval
    rows: Interval


class Pieces(NamedTuple):
    """Those of a rank: centres that look at own rows alone, and those at its borders. A slab that
    is too thin for an inside has one piece, the first border's."""

    inside: Optional[Piece]
    borders: tuple[Optional[Piece], Optional[Piece]]


class Split:
    """The pieces of this rank, and the rows that each rank needs of others."""

    def __init__(self, slabs: Slabs, radius: int, cut: int = 0, least: int = 0) -> None:
        """radius: how far a row looks. cut: centres are at least so far from the axis's ends. least: a
        thinner slab has no inside."""
        self.slabs, self.radius = slabs, radius
        least = max(least, 2 * radius + 1)
        every = [_pieces_of(slabs, rank, radius, cut, least) for rank in range(slabs.ranks)]
        self.inside, self.borders = every[slabs.rank]
        self.wanted: list[list[Interval]] = []  # the rows of each border on each rank
        for side in (0, 1):
            rows = []
            for rank, pieces in enumerate(every):
                piece, start = pieces.borders[side], slabs.rows(rank)[0]
                rows.append((start, start) if piece is None else piece.rows)
            self.wanted.append(rows)

    def own(self, array: Tensor, rows: Interval, axis: int) -> Tensor:
        """Some own rows of an array in slabs."""
        return array.narrow(axis, rows[0] - self.slabs.start, rows[1] - rows[0])


def _pieces_of(slabs: Slabs, rank: int, radius: int, cut: int, least: int) -> Pieces:
    start, stop = slabs.rows(rank)
    first, end = max(start, cut), min(stop, slabs.extent - cut)
    if first >= end:
        return Pieces(None, (None, None))
    before, behind = max(first - radius, 0), min(end + radius, slabs.extent)
    begins, ends = before < start, behind > stop  # True if others have rows there
    if not begins and not ends:
        return Pieces(Piece((first, end), (start, stop)), (None, None))
    inner = start + radius if begins else first, stop - radius if ends else end
    if inner[0] >= inner[1] or stop - start < least:
        return Pieces(None, (Piece((first, end), (before, behind)), None))
    return Pieces(
        Piece(inner, (start, stop)),
        (
            Piece((first, inner[0]), (before, inner[0] + radius)) if begins else None,
            Piece((inner[1], end), (inner[1] - radius, behind)) if ends else None,
        ),
    )


class Neighbours:
    """The rows of arrays at the borders, on their way together. arrays: each with the axis of its
    rows, or None."""

    def __init__(self, split: Split, arrays: Sequence[Optional[tuple[Tensor, int]]]) -> None:
        messages = Messages(split.slabs)
        self._coming: list[list[Optional[Exchange]]] = []
        for wanted in split.wanted:
            of_side: list[Optional[Exchange]] = []
            for given in arrays:
                exchange = None
                if given is not None:
                    exchange = Exchange(split.slabs, given[0], wanted, given[1], messages)
                of_side.append(exchange)
            self._coming.append(of_side)
        messages.begin()

    def at(self, side: int) -> list[Optional[Tensor]]:
        """The rows that a border looks at, once they are there."""
        return [None if each is None else each.rows() for each in self._coming[side]]

    def wait(self) -> None:
        """Waits also for rows that no piece of this rank has asked for."""
        for side in (0, 1):
            self.at(side)


def in_pieces(
    split: Split,
    arrays: Sequence[Optional[tuple[Tensor, int]]],
    compute: Callable[[Piece, Sequence[Any]], None],
    settle: Callable[[], None] = lambda: None,
    then: Callable[[], None] = lambda: None,
    borders_last: bool = False,
) -> Neighbours:
    """Calls compute(piece, rows of the arrays) for each piece of this rank.

    settle: waits until all ranks have agreed on the call. then: what else is to be done beside the
    inside, once the borders are computed. borders_last: a GPU computes the borders when the inside
    is done, because together they take longer. Memory that compute() allocates at a border is the
    second stream's: the current stream must be given its use before the next call.
    """
    (first, _), *_ = [each for each in arrays if each is not None]
    own = [None if each is None else each[0] for each in arrays]
    before = marked(first.device)
    if first.is_cuda and split.inside is not None:
        compute(split.inside, own)
    inside = marked(first.device)
    settle()
    with beside(first.device, after=before):
        neighbours = Neighbours(split, arrays)
        if not first.is_cuda and split.inside is not None:
            compute(split.inside, own)
    with beside(first.device, after=inside if borders_last else before):
        for side, piece in enumerate(split.borders):
            if piece is not None:
                compute(piece, neighbours.at(side))
        neighbours.wait()
        then()
    join(first.device)
    return neighbours

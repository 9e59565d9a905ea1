# SPDX-License-Identifier: Apache-2.0
"""The rows of an image that the coordinates of a rank's own output touch.

    index = scale·(A·x + S·u(x)) + shift along the first spatial axis

of which x runs over own rows. Own rows are looked at once: the least and largest of u in each. With
an affine map and a field the range is that of their sum, row by row, and may be wider than needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Optional

import torch
from torch import Tensor

from .on_host import OnHost
from .slabs import Interval, Slabs

Ends = tuple[Tensor, Tensor]  # the least and the largest number of each row, f64 on the CPU

_SLACK = 1e-5  # of a row, above the rounding of an index
_FAR = 1e9
_ROWS = 64  # that are compared with ends of the field at a time


class _Extremes:
    """The least and largest of a component in each row, NaN left out; 0 of rows that nobody looks
    at."""

    def __init__(self, field: Tensor, component: int, looked: Sequence[Interval]) -> None:
        self._values = field.detach()[..., component].flatten(2)
        ends = self._values.new_zeros(2, *self._values.shape[:2])
        for first, end in looked:
            found = torch.aminmax(self._values[:, first:end], dim=2)
            for to, each in zip(ends, found):
                to[:, first:end] = each
        self._ends = OnHost(ends.transpose(1, 2))  # [2,rows,N]

    def of_rows(self) -> Ends:
        low, high = self._ends.there()
        if bool(low.isnan().any()):
            low = torch.nan_to_num(self._values, nan=math.inf, posinf=math.inf).amin(2).T
            high = torch.nan_to_num(self._values, nan=-math.inf, neginf=-math.inf).amax(2).T
            low, high = low.double().cpu(), high.double().cpu()
        return low.amin(1), high.amax(1)


def _times(factor: float, interval: Ends) -> Ends:
    low, high = factor * interval[0], factor * interval[1]
    return torch.minimum(low, high), torch.maximum(low, high)


class Reach:
    def __init__(
        self,
        extent: int,
        slabs: Slabs,
        rank: int,
        out_shape: Optional[list[int]],
        affine: Optional[Tensor],
        field: Optional[Tensor],
        grid_affine: Optional[Tensor],
        options: dict[str, Any],
    ) -> None:
        self.extent, self.slabs, self.rank = extent, slabs, rank
        self.affine, self.field, self.grid_affine = affine, field, grid_affine
        self.options = options
        self.looked: list[Interval] = [(0, slabs.stop - slabs.start)]  # own rows whose field counts
        self._extremes: Optional[dict[int, _Extremes]] = None  # by component
        self._on_host: dict[str, OnHost] = {}  # the matrices
        space = list(field.shape[1:-1]) if field is not None else list(out_shape or [])
        self.space = [slabs.extent, *space[1:]]  # of the whole output, (z, y, x)

    def beyond(self, cells: Interval) -> Iterator[tuple[slice, Tensor]]:
        """Some own rows, and which of their voxels [N,…] have other cells than these."""
        own = self.slabs.stop - self.slabs.start
        low, high = float(cells[0]) - _SLACK, float(cells[1]) + _SLACK
        if self.options["padding_mode"] != "zeros":  # those beyond an end have the end's cell
            low = low if cells[0] > 0 else -math.inf
            high = high if cells[1] < self.extent - 1 else math.inf
        low = low if cells[0] > -1 else -math.inf
        high = high if cells[1] < self.extent else math.inf
        if (low, high) == (-math.inf, math.inf):
            return
        if self._is_place_and_field():
            assert self.field is not None
            ends = self._ends_of_field(low, high)
            for first in range(0, own, _ROWS):
                rows = slice(first, min(first + _ROWS, own))
                u = self.field.detach()[:, rows, ..., self.rank - 1]
                yield rows, (u < ends[0][rows]) | (u >= ends[1][rows])
            return
        for row in range(own):
            index = self._folded_index(self._index(row))
            yield slice(row, row + 1), ((index < low) | (index >= high))[:, None]

    def _is_place_and_field(self) -> bool:
        """True if the index is a row's place and a component of the field, as far as it matters."""
        is_plain = self.affine is None and self.grid_affine is None and self.field is not None
        return is_plain and self.options["padding_mode"] != "reflection"

    def _ends_of_field(self, low: float, high: float) -> list[Tensor]:
        """The field's components that give the indices `low` and `high`, in each own row."""
        assert self.field is not None
        scale, shift = self._scale_and_shift()
        rows = torch.arange(self.slabs.start, self.slabs.stop, device=self.field.device).double()
        first, step = self._first_and_step(self.rank - 1)
        places = torch.zeros_like(rows) if self.options.get("is_grid") else first + step * rows
        wide = torch.float64 if self.field.dtype == torch.float64 else torch.float32
        shape = [-1] + [1] * (self.rank - 1)
        result = []
        for index in (low, high):
            above = index - shift
            at = above / scale if scale > 0 else math.copysign(math.inf, above)  # of an axis of 1
            result.append((at - places).to(wide).reshape(shape))
        return result

    def _index(self, row: int) -> Tensor:
        """The index of the voxels of an own row, before padding."""
        axis = self.rank - 1
        like = self.field if self.field is not None else self.affine
        device = None if like is None else like.device
        index = torch.zeros([1] * self.rank, dtype=torch.float64, device=device)
        if not self.options.get("is_grid"):
            places = []
            for j in range(self.rank):
                first, step = self._first_and_step(j)
                extent = 1 if j == axis else self.space[axis - j]
                begin = self.slabs.start + row if j == axis else 0
                place = first + step * (begin + torch.arange(extent, device=device).double())
                places.append(place.reshape([-1 if a == axis - j else 1 for a in range(self.rank)]))
            if self.affine is None:
                index = index + places[axis]
            else:
                matrix = self.affine.detach().double()[:, axis]
                each = [matrix[:, j].reshape([-1] + [1] * axis) for j in range(self.rank + 1)]
                index = each[axis + 1] + sum(
                    m * place for m, place in zip(each, places, strict=False)
                )
        if self.field is not None:
            u = self.field.detach()[:, row].double()
            if self.grid_affine is None:
                index = index + u[..., axis]
            else:
                matrix = self.grid_affine.detach().double()[:, axis]
                for j in range(self.rank):
                    index = index + matrix[:, j].reshape([-1] + [1] * axis) * u[..., j]
        n = self.extent
        if self.options["align_corners"]:
            return (n - 1) / 2 * (index + 1)
        return n / 2 * (index + 1) - 0.5

    def _folded_index(self, index: Tensor) -> Tensor:
        last, padding = float(self.extent - 1), self.options["padding_mode"]
        if padding == "zeros":
            return index
        if padding == "reflection":
            low = 0.0 if self.options["align_corners"] else -0.5
            span = last if self.options["align_corners"] else last + 1
            if span <= 0:
                return torch.zeros_like(index)
            rest = (index - low).abs() % (2 * span)
            index = low + torch.where(rest > span, 2 * span - rest, rest)
        return index.clamp(0, last)

    def begin(self) -> None:
        """Begins to look at the field, or first at the matrices if there are any; cells() waits for
        what that finds."""
        self._extremes = None
        for name, matrix in (("affine", self.affine), ("grid_affine", self.grid_affine)):
            if matrix is not None:
                self._on_host[name] = OnHost(matrix)
        if not self._on_host:
            self._look()

    def _look(self) -> dict[int, _Extremes]:
        if self._extremes is None:
            self._extremes = {}
            if self.field is not None and 0 not in self.space:
                for j in {j for each in self._matrices() for j in range(self.rank) if each[j] != 0}:
                    self._extremes[j] = _Extremes(self.field, j, self.looked)
        return self._extremes

    def _matrices(self) -> list[list[float]]:
        """The index's coefficients of the field's components, for each matrix S."""
        if self.grid_affine is None:
            return [[float(j == self.rank - 1) for j in range(self.rank)]]
        rows: list[list[float]] = self._on_host["grid_affine"].there()[:, self.rank - 1].tolist()
        return rows

    def cells(self) -> tuple[list[int], list[int]]:
        """The first and the last cells of the voxels in each own row, from -1 to extent - 1; -1 for a
        row of NaN. A map that turns own rows over the whole image needs all rows, whatever the
        field is, so that nobody looks at it."""
        if self._is_spread():
            rows = self.slabs.stop - self.slabs.start
            return [-1] * rows, [self.extent - 1] * rows
        self._look()
        least, largest = self._intervals()
        ends = torch.stack(self._folded(least - _SLACK, largest + _SLACK))
        known = torch.where(least <= largest, ends, -1.0)
        first, last = known.floor().clamp(-1, self.extent - 1).long().tolist()
        return first, last

    def _is_spread(self) -> bool:
        """True if A·x alone takes own rows to the whole image."""
        if self.affine is None or 0 in self.space or self.slabs.stop == self.slabs.start:
            return False
        scale, shift = self._scale_and_shift()
        ends = [
            (scale * float(low.min()) + shift, scale * float(high.max()) + shift)
            for low, high in self._bases()
        ]
        return any(low <= _SLACK and high >= self.extent - 1 - _SLACK for low, high in ends)

    def _scale_and_shift(self) -> tuple[float, float]:
        """The scale and the shift from a coordinate to an index."""
        n = self.extent
        return ((n - 1) / 2, (n - 1) / 2) if self.options["align_corners"] else (n / 2, (n - 1) / 2)

    def _intervals(self) -> Ends:
        """The least and the largest index in each own row, before padding; of a row of NaN the
        least is above the largest."""
        rows = 0 if 0 in self.space else self.slabs.stop - self.slabs.start
        least = torch.full([rows], math.inf, dtype=torch.float64)
        largest = -least
        if rows == 0:
            return least, largest
        scale, shift = self._scale_and_shift()
        for base in self._bases():
            for field in self._fields():
                low, high = base[0] + field[0], base[1] + field[1]
                ends = (scale * low + shift).clamp(min=-_FAR), (scale * high + shift).clamp(max=_FAR)
                known = (low <= high) & (ends[0] <= ends[1])  # a row of NaN has none
                least = torch.where(known, torch.minimum(least, ends[0]), least)
                largest = torch.where(known, torch.maximum(largest, ends[1]), largest)
        return least, largest

    def _bases(self) -> list[Ends]:
        """A·x in own rows, for each matrix."""
        rows = torch.arange(self.slabs.start, self.slabs.stop, dtype=torch.float64)
        if self.options.get("is_grid"):
            return [(torch.zeros_like(rows), torch.zeros_like(rows))]
        axis = self.rank - 1
        origin, step = self._first_and_step(axis)
        own = origin + step * rows
        if self.affine is None:
            return [(own, own)]
        ranges = [self._coordinates(j) for j in range(axis)]
        result = []
        for matrix in self._on_host["affine"].there()[:, axis].tolist():
            low = high = matrix[self.rank]
            for factor, ends in zip(matrix, ranges):
                across = [factor * each for each in ends]
                low, high = low + min(across), high + max(across)
            result.append((low + matrix[axis] * own, high + matrix[axis] * own))
        return result

    def _first_and_step(self, axis: int) -> tuple[float, float]:
        n = self.space[self.rank - 1 - axis]
        edge = 0.0 if n == 1 else 1.0 if self.options["align_corners"] else 1 - 1 / n
        given = self.options.get("min_coords"), self.options.get("max_coords")
        low = -edge if given[0] is None else float(given[0][axis])
        high = edge if given[1] is None else float(given[1][axis])
        return ((low + high) / 2, 0.0) if n == 1 else (low, (high - low) / (n - 1))

    def _coordinates(self, axis: int) -> tuple[float, float]:
        first, step = self._first_and_step(axis)
        last = first + step * (self.space[self.rank - 1 - axis] - 1)
        return min(first, last), max(first, last)

    def _fields(self) -> list[Ends]:
        """S·u in own rows, for each matrix S; all fields of a batch together."""
        nothing = torch.zeros(self.slabs.stop - self.slabs.start, dtype=torch.float64)
        if self.field is None:
            return [(nothing, nothing)]
        extremes = {j: each.of_rows() for j, each in self._look().items()}
        result = []
        for matrix in self._matrices():
            low, high = nothing, nothing
            for j, ends in extremes.items():
                if matrix[j] != 0:
                    of_component = _times(matrix[j], ends)
                    low, high = low + of_component[0], high + of_component[1]
            result.append((low, high))
        return result

    def _folded(self, low: Tensor, high: Tensor) -> Ends:
        """The ranges of the index with the padding folded in."""
        last = float(self.extent - 1)
        padding = self.options["padding_mode"]
        if padding == "zeros":
            return low, high
        if padding == "reflection":
            edge = 0.0 if self.options["align_corners"] else -0.5
            span = last if self.options["align_corners"] else last + 1
            if span <= 0:
                return torch.zeros_like(low), torch.full_like(high, last)
            turns = [torch.floor((each - edge) / span) for each in (low, high)]
            ends = []
            for each, turn in zip((low, high), turns):
                rest = each - edge - turn * span
                ends.append(edge + torch.where(turn % 2 != 0, span - rest, rest))
            passed = torch.where(turns[0] % 2 == 0, edge + span, edge)  # an end between
            passed = torch.where(turns[0] != turns[1], passed, ends[0])
            is_all = high - low >= span
            low = torch.where(is_all, 0.0, torch.minimum(torch.minimum(*ends), passed))
            high = torch.where(is_all, last, torch.maximum(torch.maximum(*ends), passed))
        return low.clamp(0.0, last), high.clamp(0.0, last)

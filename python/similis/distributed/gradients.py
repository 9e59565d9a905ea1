# SPDX-License-Identifier: Apache-2.0
"""The gradients of sample() and its kin on slabs: sums over blocks, and over ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

import torch
from torch import Tensor

from .gathering import sum_of_ranks
from .plan import Plan
from .slabs import Interval
from .transport import Homeward


def _zeros(like: Optional[Tensor]) -> Optional[Tensor]:
    return None if like is None else torch.zeros_like(like)


def narrowed(array: Optional[Tensor], rows: Interval, axis: int) -> Optional[Tensor]:
    return None if array is None else array.narrow(axis, rows[0], rows[1] - rows[0])


def _wide(matrix: Optional[Tensor]) -> Optional[Tensor]:
    """A matrix in f64, so that its gradient is an f64 part of the whole's."""
    return None if matrix is None else matrix.detach().double()


class Gradients:
    """The gradients that are asked for: sums over blocks, and over ranks."""

    def __init__(
        self,
        plan: Plan,
        asked: Sequence[bool],
        image: Tensor,
        affine: Optional[Tensor],
        field: Optional[Tensor],
        grid_affine: Optional[Tensor],
    ) -> None:
        self.plan, self.operands = plan, (image, affine, field, grid_affine)
        self.of_image, self.of_affine, self.of_field, self.of_s = asked[:4]
        self.affine, self.grid_affine = _wide(affine), _wide(grid_affine)
        self.by_image: Optional[Tensor] = None
        self.by_affine = _zeros(self.affine) if self.of_affine else None
        self.by_s = _zeros(self.grid_affine) if self.of_s else None
        self.by_field: Optional[Tensor] = None
        self._going: Optional[Homeward] = None
        self.adds_to_field = False  # True: a block's is added where the others' are

    def of_rows(self, k: int, block: Tensor, is_written: bool) -> Optional[Tensor]:
        """Memory for the gradient to the rows of a round: of the first, own ones, the gradient
        itself."""
        if not self.of_image:
            return None
        memory = torch.empty_like(block) if is_written else torch.zeros_like(block)
        if k == 0 and is_written and block.dtype in (torch.float32, torch.float64):
            self.by_image = memory
        return memory

    def of_block(
        self, field: Optional[Tensor], rows: Interval
    ) -> tuple[Optional[Tensor], Optional[Tensor], Optional[Tensor]]:
        """Memory for those of a block to affine, its rows of the field, and grid_affine. A GPU adds
        to the field's gradient of the blocks before."""
        by_field = None
        self.adds_to_field = self.by_field is not None and self._can_add(self.by_field)
        if self.adds_to_field:
            by_field = narrowed(self.by_field, rows, 1)
        elif self.of_field and field is not None:
            by_field = torch.empty_like(field)
        return (
            torch.empty_like(self.by_affine) if self.by_affine is not None else None,
            by_field,
            torch.empty_like(self.by_s) if self.by_s is not None else None,
        )

    def add(
        self,
        rows: Interval,
        by_affine: Optional[Tensor],
        by_field: Optional[Tensor],
        by_s: Optional[Tensor],
    ) -> None:
        if by_affine is not None and self.by_affine is not None:
            self.by_affine += by_affine
        if by_s is not None and self.by_s is not None:
            self.by_s += by_s
        field = self.operands[2]
        if by_field is None or field is None or self.adds_to_field:
            return
        if by_field.shape == field.shape and self.by_field is None:
            self.by_field = by_field
            return
        if self.by_field is None:
            self.by_field = torch.zeros_like(field)
        # All addends of an element but one are 0.
        self.by_field.narrow(1, rows[0], rows[1] - rows[0]).add_(by_field)

    def leaves_out(self, *others: Optional[Tensor]) -> bool:
        """True if a call for the field's gradient alone may leave out rows without a note."""
        return self.adds_to_field and all(each is None for each in others)

    def _can_add(self, by_field: Tensor) -> bool:
        return by_field.is_cuda and self.plan.operation == "sample"

    def send_home(self, by_block: Tensor, wanted: Sequence[Interval]) -> None:
        """Sends the gradient to the rows of a round, while the next is computed."""
        going = Homeward(self.plan.image_slabs, by_block, wanted, self.plan.image_axis)
        self._add_what_came_home()
        self._going = going

    def _add_what_came_home(self) -> None:
        going, self._going = self._going, None
        image = self.operands[0]
        if going is None or image is None:
            return
        if self.by_image is None:
            wide = torch.float64 if image.dtype == torch.float64 else torch.float32
            self.by_image = torch.zeros_like(image, dtype=wide)
        going.add_to(self.by_image)

    def finished(self) -> tuple[Optional[Tensor], ...]:
        self._add_what_came_home()
        image, affine, field, grid_affine = self.operands
        by_image, by_field = self.by_image, self.by_field
        if self.of_image:
            assert image is not None
            by_image = torch.zeros_like(image) if by_image is None else by_image.to(image.dtype)
        if self.of_field and by_field is None and field is not None:
            by_field = torch.zeros_like(field)
        results = [by_image]
        for sums, matrix in ((self.by_affine, affine), (self.by_s, grid_affine)):
            whole = None
            if sums is not None and matrix is not None:
                whole = sum_of_ranks(self.plan.slabs, sums).to(matrix.dtype)
            results.append(whole)
        return results[0], results[1], by_field, results[2]

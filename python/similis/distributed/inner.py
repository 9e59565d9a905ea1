# SPDX-License-Identifier: Apache-2.0
"""Own rows far from other slabs, of which a GPU need not look at the field before it samples them.

    inner rows: sampled first, with notes ──────────────────> do voxels look elsewhere? mostly not
    outer rows: least and largest displacement ─> rows of others on their way; sampled meanwhile

A look reads the whole field for two numbers of each row, and takes memory's time from the kernel
that samples. That kernel has every cell in its hands and notes those that are elsewhere, but the
host, which must then ask for rows, would let the GPU wait. So outer rows are sampled last: they
take as long as the host needs for the notes of inner ones. Where these say that an inner voxel
looks elsewhere, the call begins again and looks at all rows.
"""

from __future__ import annotations

from typing import Optional

import torch

from .notes import Notes
from .on_host import OnHost
from .slabs import Interval, Slabs
from .transport import beside, marked

_OUTER_VOXELS = 5 << 25  # at least: 1.1 ms of an H200, as host and messages between ranks take
_OUTER_ROWS = 64  # at least, beside each border
_FROM = 1 << 20  # notes count cells down from here
NOBODY: Interval = (0, 0)  # the cells of inner voxels that look elsewhere
UNKNOWN: Interval = (-2, -2)


class Inner:
    def __init__(self, rows: Interval, own: int, device: torch.device) -> None:
        self.rows = rows
        self.outer = [each for each in ((0, rows[0]), (rows[1], own)) if each[0] < each[1]]
        self.notes = Notes(rows[1] - rows[0], device)
        self._device = device
        self._sampled: Optional[object] = None
        self._ends: Optional[OnHost] = None

    def mark(self) -> None:
        """The GPU has been given the inner rows."""
        self._sampled = marked(self._device)

    def begin_reading(self) -> None:
        with beside(self._device, after=self._sampled):
            notes = self.notes.tensor
            self._ends = OnHost(torch.stack([notes[:-1].amax(0), notes[-1]]))

    def cells(self) -> Interval:
        """The cells of voxels that look elsewhere, once the inner rows are sampled."""
        assert self._ends is not None
        (down, up), (has_noted, _) = self._ends.there().tolist()
        if has_noted == 0:
            return UNKNOWN
        return NOBODY if up == 0 else (int(_FROM - down), int(up) - 1)


def inner_of(
    slabs: Slabs, image_slabs: Slabs, row_voxels: int, device: torch.device
) -> Optional[Inner]:
    """The inner rows of this rank; None if the outer ones were most, or lie elsewhere."""
    own = slabs.stop - slabs.start
    begins, ends = slabs.start > 0, slabs.stop < slabs.extent
    if slabs.sizes != image_slabs.sizes or not (begins or ends):
        return None
    each = max(_OUTER_ROWS, -(-_OUTER_VOXELS // max(row_voxels * (begins + ends), 1)))
    rows = each if begins else 0, own - each if ends else own
    return Inner(rows, own, device) if own >= 2 * each * (begins + ends) else None

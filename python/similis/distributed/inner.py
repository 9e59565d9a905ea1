# SPDX-License-Identifier: Apache-2.0
"""Own rows far from other slabs, of which a GPU need not look at the field before it samples them.

    inner rows: sampled first, with notes ──────────────────> do voxels look elsewhere? mostly not
    outer rows: least and largest displacement ─> rows of others on their way; sampled meanwhile

A look reads the whole field for two numbers of each row, and takes memory's time from the kernel
that samples. That kernel has every cell in its hands and notes those that are elsewhere, but the
host, which must then ask for rows, would let the GPU wait. So outer rows are sampled last: they
take as long as the host needs for the notes of inner ones. If these say that an inner voxel
looks elsewhere, the call begins again and looks at all rows.
"""

from __future__ import annotations

from typing import Any, Optional

import torch

from .failure import require_group
from .gathering import gathered
from .notes import Notes
from .on_host import OnHost
from .slabs import Interval, Slabs
from .transport import beside, marked

_OUTER_VOXELS = 5 << 25  # at least: 1.1 ms of an H200, as host and messages between ranks take
_OUTER_ROWS = 64  # at least, beside each border


class Inner:
    """The inner rows of this rank."""

    def __init__(self, rows: Interval, own: int, device: torch.device) -> None:
        self.rows = rows
        self.outer = [each for each in ((0, rows[0]), (rows[1], own)) if each[0] < each[1]]
        self.notes = Notes(rows[1] - rows[0], device)
        self.sampled: Any = None  # a mark behind them

    def mark(self, device: torch.device) -> None:
        """The GPU has been given the inner rows."""
        self.sampled = marked(device)


class Answers:
    """Gathers the ranks' answers: do inner rows look elsewhere? Making one is a collective call."""

    def __init__(self, slabs: Slabs, inner: Optional[Inner], device: torch.device) -> None:
        with beside(device, after=None if inner is None else inner.sampled):
            if inner is None:
                mine = torch.tensor([[0.0, 0.0], [1.0, 1.0]], device=device)
            else:
                notes = inner.notes.tensor
                mine = torch.stack([notes[:-1].amax(0), notes[-1]])
            self._every = OnHost(torch.stack(gathered(slabs, mine)))
        self._slabs = slabs

    def are_no(self) -> bool:
        """Waits. False also if a rank's kernel takes no notes, so that its answer is not known."""
        every = self._every.there().tolist()
        require_group(self._slabs)  # a lost rank ends the wait, too
        return all(up == 0 and takes_notes > 0 for (_, up), (takes_notes, _) in every)


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

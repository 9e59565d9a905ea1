# SPDX-License-Identifier: Apache-2.0
"""Rows on their way between ranks.

A rank names an interval of whole rows and gets it from whoever holds it, point to point; nothing
else of an image travels. Rows travel as bytes: gloo does not know every dtype.

A call to NCCL takes the host some 0.3 ms, however little is sent: Messages begin together what a
call of an operation sends.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Optional

import torch
import torch.distributed as dist
from torch import Tensor

from .failure import LostRank, monitor_of, reported, uses_nccl
from .gathering import gathered, on_wire
from .monitor import watch
from .slabs import Interval, Slabs, overlap

# Bytes of rows that this process has sent to others; tests compare it with what is needed.
sent_bytes = 0

__all__ = [
    "Exchange",
    "Homeward",
    "LostRank",
    "Messages",
    "beside",
    "join",
    "marked",
    "connect",
    "send_home",
]


def connect(slabs: Slabs) -> None:
    """Connects all ranks' GPUs, once for a group: NCCL does so in its first call, in which all must
    take part, and a rank without rows has no part in an exchange."""
    if uses_nccl(slabs.group) and slabs.group not in _connected:
        gathered(slabs, torch.zeros(1, device="cuda"))
        _connected.add(slabs.group)


_connected: set[Any] = set()


@contextlib.contextmanager
def beside(device: torch.device, waits: bool = True, after: Any = None) -> Iterator[None]:
    """Work on a GPU's second stream, after what its current one has been given, if it waits; with
    after, after what it had been given at a mark.

    Memory from here is free for reuse here as soon as it is dropped: what the current stream does
    with it must have been given to it before this waits again, or before the next mark.
    """
    if device.type != "cuda":
        yield
        return
    stream = _second_stream(device)
    if after is not None:
        stream.wait_event(after)
    elif waits:
        stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        yield


def _second_stream(device: torch.device) -> Any:
    if device not in _streams:
        _streams[device] = torch.cuda.Stream(device, priority=-1)  # before what does not wait
    return _streams[device]


_streams: dict[torch.device, Any] = {}


def marked(device: torch.device) -> Any:
    """A mark behind the work that a GPU's current stream has been given so far; None on a CPU."""
    return torch.cuda.current_stream(device).record_event() if device.type == "cuda" else None


def join(device: torch.device) -> None:
    """Lets a GPU's current stream wait for what the second one has been given."""
    if device.type == "cuda":
        torch.cuda.current_stream(device).wait_stream(_second_stream(device))


def _as_bytes(tensor: Tensor) -> Tensor:
    return tensor.reshape(-1).view(torch.uint8)


def _start(
    slabs: Slabs, sends: list[tuple[int, Tensor]], receives: list[tuple[int, Tensor]]
) -> Any:
    global sent_bytes
    operations = []
    for kind, listed in ((dist.isend, sends), (dist.irecv, receives)):
        for rank, tensor in listed:
            peer = dist.get_global_rank(slabs.group, rank)
            operations.append(dist.P2POp(kind, _as_bytes(tensor), peer, slabs.group))
    sent_bytes += sum(tensor.numel() * tensor.element_size() for _, tensor in sends)
    if not operations:
        return []
    is_on_gpu = operations[0].tensor.is_cuda
    monitor = monitor_of(slabs) if is_on_gpu else None
    with reported(slabs):
        works = dist.batch_isend_irecv(operations)
        if monitor is not None:
            for work in works:
                watch(monitor, work)
    return works


class Messages:
    """Rows to and from other ranks, which begin together."""

    def __init__(self, slabs: Slabs) -> None:
        self._slabs = slabs
        self._sends: list[tuple[int, Tensor]] = []  # their memory must live until they are sent
        self._receives: list[tuple[int, Tensor]] = []
        self._works: Any = None

    def send(self, rank: int, rows: Tensor) -> None:
        self._sends.append((rank, rows))

    def receive(self, rank: int, rows: Tensor) -> None:
        """rows: contiguous memory."""
        self._receives.append((rank, rows))

    def begin(self) -> None:
        self._works = _start(self._slabs, self._sends, self._receives)

    def wait(self) -> None:
        """Waits until all is received; on a GPU its current stream does, once."""
        with reported(self._slabs):
            for work in self._works:
                work.wait()
        self._works, self._sends, self._receives = [], [], []


class _Shares:
    """The rows of an array in slabs that travel when rank r wants rows wanted[r], and its messages.

    All ranks know all of `wanted`. Messages begin at once, or when the caller's begin.
    """

    def __init__(
        self,
        slabs: Slabs,
        wanted: Sequence[Interval],
        axis: int,
        messages: Optional[Messages],
    ) -> None:
        self._slabs, self._axis = slabs, axis
        self._own, self._mine = slabs.rows(slabs.rank), wanted[slabs.rank]
        # By rank: own rows that it wants, and rows that this rank wants and it holds.
        self._lent: list[tuple[int, Interval]] = []
        self._held: list[tuple[int, Interval]] = []
        for rank, each in enumerate(wanted):
            for listed, one, other in (
                (self._lent, self._own, each),
                (self._held, slabs.rows(rank), self._mine),
            ):
                rows = overlap(one, other)
                if rows is not None:
                    listed.append((rank, rows))
        self._begins_alone = messages is None
        self._messages = Messages(slabs) if messages is None else messages

    def _begin(self) -> None:
        if self._begins_alone:
            self._messages.begin()

    def _part(self, array: Tensor, of: Interval, rows: Interval) -> Tensor:
        """Rows of an array that holds the rows `of`."""
        return array.narrow(self._axis, rows[0] - of[0], rows[1] - rows[0])

    def _shape(self, like: Tensor, rows: Interval) -> list[int]:
        shape = list(like.shape)
        shape[self._axis] = rows[1] - rows[0]
        return shape

    def _send(self, rank: int, rows: Tensor) -> None:
        self._messages.send(rank, rows.to(on_wire(self._slabs, rows)).contiguous())


class Exchange(_Shares):
    """Rows on their way: each rank gets the rows of x that it wants. rows() waits.

    Rows arrive where they stay: in one array with own rows among them.
    """

    def __init__(
        self,
        slabs: Slabs,
        x: Tensor,
        wanted: Sequence[Interval],
        axis: int,
        messages: Optional[Messages] = None,
        into: Optional[tuple[Tensor, Interval]] = None,
    ) -> None:
        """into: an array for these rows and others, and the rows that it holds."""
        super().__init__(slabs, wanted, axis, messages)
        x = x.detach()
        for rank, rows in self._lent:
            if rank != slabs.rank:
                self._send(rank, self._part(x, self._own, rows))
        self._arrived: list[tuple[Tensor, Tensor]] = []  # (place, memory to copy there)
        if into is None and [(slabs.rank, self._mine)] == self._held:
            self._rows = self._part(x, self._own, self._mine)
        elif into is None:
            self._rows = x.new_empty(self._shape(x, self._mine))
            self._receive(x, self._mine)
        else:
            self._rows, of = into
            self._receive(x, of)
        self._begin()

    def _receive(self, x: Tensor, of: Interval) -> None:
        wire = on_wire(self._slabs, x)
        for rank, rows in self._held:
            place = self._part(self._rows, of, rows)
            if rank == self._slabs.rank:
                place.copy_(self._part(x, self._own, rows))
                continue
            memory = place
            if wire != place.device or not place.is_contiguous():
                memory = torch.empty(place.shape, dtype=x.dtype, device=wire)
                self._arrived.append((place, memory))
            self._messages.receive(rank, memory)

    def rows(self) -> Tensor:
        """The rows that this rank wants, once they are there. Own rows alone are a view of x."""
        self._messages.wait()
        for place, memory in self._arrived:
            place.copy_(memory)
        self._arrived = []
        return self._rows


class Homeward(_Shares):
    """Exchange's adjoint on its way: gradients to this rank's wanted rows go to their owners. Those
    to halves are f32 on all ranks, so that only a sum is rounded.
    add_to() waits, and adds what all ranks have for own rows in their order."""

    def __init__(
        self,
        slabs: Slabs,
        gradient: Tensor,
        wanted: Sequence[Interval],
        axis: int,
        messages: Optional[Messages] = None,
    ) -> None:
        super().__init__(slabs, wanted, axis, messages)
        wire = on_wire(slabs, gradient)
        for rank, rows in self._held:
            if rank != slabs.rank:
                self._send(rank, self._part(gradient, self._mine, rows))
        self._parts: list[tuple[Interval, Tensor]] = []
        for rank, rows in self._lent:
            if rank == slabs.rank:
                piece = self._part(gradient, self._mine, rows)
            else:
                shape = self._shape(gradient, rows)
                piece = torch.empty(shape, dtype=gradient.dtype, device=wire)
                self._messages.receive(rank, piece)
            self._parts.append((rows, piece))
        self._begin()

    def add_to(self, into: Tensor, of: Optional[Interval] = None) -> None:
        """of: the rows that `into` holds, if not all own ones."""
        self._messages.wait()
        of = self._own if of is None else of
        for rows, piece in self._parts:
            part = overlap(rows, of)
            if part is not None:
                added = self._part(piece, rows, part).to(into.device)
                self._part(into, of, part).add_(added)


def send_home(
    slabs: Slabs, gradient: Tensor, wanted: Sequence[Interval], axis: int
) -> Tensor:
    """The sum of the gradients to own rows that all ranks have, in their order; f32 for halves.

    gradient: to this rank's wanted rows.
    """
    shape = list(gradient.shape)
    shape[axis] = slabs.stop - slabs.start
    wide = torch.float64 if gradient.dtype == torch.float64 else torch.float32
    result = gradient.new_zeros(shape, dtype=wide)
    Homeward(slabs, gradient, wanted, axis).add_to(result)
    return result

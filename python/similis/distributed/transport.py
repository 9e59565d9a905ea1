# SPDX-License-Identifier: Apache-2.0
"""Rows and sums on their way between ranks.

A rank names an interval of whole rows and gets it from whoever holds it, point to point; nothing
else of an image travels. Sums are gathered by all and added in the order of ranks, so that every
rank has the same bits. Rows travel as bytes: gloo does not know every dtype.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Optional

import torch
import torch.distributed as dist
from torch import Tensor

from .failure import LostRank, monitor_of, reported, sends_from_cpu, uses_nccl
from .monitor import watch
from .slabs import Interval, Slabs, overlap

# Bytes of rows that this process has sent to others; tests compare it with what is needed.
sent_bytes = 0

__all__ = [
    "Exchange",
    "Homeward",
    "LostRank",
    "beside",
    "connect",
    "gathered",
    "send_home",
    "sum_of_ranks",
]


def _on_wire(slabs: Slabs, tensor: Tensor) -> torch.device:
    """The device that the group sends from: NCCL's is the GPU, gloo's the CPU."""
    if tensor.is_cuda and uses_nccl(slabs.group):
        return tensor.device
    return torch.device("cpu" if sends_from_cpu(slabs.group) else "cuda")


def connect(slabs: Slabs) -> None:
    """Connects all ranks' GPUs, once for a group: NCCL does so in its first call, in which all must
    take part, and a rank without rows has no part in an exchange."""
    if uses_nccl(slabs.group) and slabs.group not in _connected:
        gathered(slabs, torch.zeros(1, device="cuda"))
        _connected.add(slabs.group)


_connected: set[Any] = set()


@contextlib.contextmanager
def beside(device: torch.device, waits: bool = True) -> Iterator[None]:
    """Work on a GPU's second stream, after what its current one has been given, if it waits.

    Memory from here is free for reuse here as soon as it is dropped: what the current stream does
    with it must have been given to it before this waits again.
    """
    if device.type != "cuda":
        yield
        return
    if device not in _streams:
        _streams[device] = torch.cuda.Stream(device, priority=-1)  # before what does not wait
    stream = _streams[device]
    if waits:
        stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        yield


_streams: dict[torch.device, Any] = {}


def gathered(slabs: Slabs, tensor: Tensor) -> list[Tensor]:
    """The tensor of each rank, alike in shape and dtype; a collective call."""
    device = _on_wire(slabs, tensor)
    mine = tensor.detach().to(device).contiguous()
    results = [torch.empty_like(mine) for _ in range(slabs.ranks)]
    monitor = monitor_of(slabs) if mine.is_cuda else None
    with reported(slabs):
        if monitor is None:
            dist.all_gather(results, mine, group=slabs.group)
        else:
            work = dist.all_gather(results, mine, group=slabs.group, async_op=True)
            watch(monitor, work)
            work.wait()  # on the stream
    return [each.to(tensor.device) for each in results]


def sum_of_ranks(slabs: Slabs, tensor: Tensor) -> Tensor:
    """The sum over ranks, in their order."""
    first, *others = gathered(slabs, tensor)
    for each in others:
        first = first + each
    return first


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


class Exchange:
    """Rows on their way: rank r gets rows wanted[r] of x, which lies in slabs along an axis.

    All ranks know all of `wanted`. Sending begins at once; rows() waits.
    """

    def __init__(self, slabs: Slabs, x: Tensor, wanted: Sequence[Interval], axis: int) -> None:
        self._slabs, self._axis, self._like = slabs, axis, x
        device = _on_wire(slabs, x)
        own = slabs.rows(slabs.rank)
        sends, receives, self._pieces = [], [], []
        for rank in range(slabs.ranks):
            away = overlap(own, wanted[rank])
            if rank != slabs.rank and away is not None:
                sends.append((rank, self._piece(x, away, own[0]).to(device).contiguous()))
            here = overlap(slabs.rows(rank), wanted[slabs.rank])
            if here is None:
                continue
            if rank == slabs.rank:
                self._pieces.append(self._piece(x, here, own[0]))
                continue
            shape = list(x.shape)
            shape[axis] = here[1] - here[0]
            piece = torch.empty(shape, dtype=x.dtype, device=device)
            receives.append((rank, piece))
            self._pieces.append(piece)
        self._sends = sends  # their memory must live until they are sent
        self._works = _start(slabs, sends, receives)

    def _piece(self, x: Tensor, rows: Interval, start: int) -> Tensor:
        return x.detach().narrow(self._axis, rows[0] - start, rows[1] - rows[0])

    def rows(self) -> Tensor:
        """The rows that this rank wants, once they are there. Own rows alone are a view of x."""
        with reported(self._slabs):
            for work in self._works:
                work.wait()
        self._works, self._sends = [], []
        pieces = [each.to(self._like.device) for each in self._pieces]
        if not pieces:
            shape = list(self._like.shape)
            shape[self._axis] = 0
            return self._like.new_empty(shape)
        return pieces[0] if len(pieces) == 1 else torch.cat(pieces, self._axis)


class Homeward:
    """Exchange's adjoint on its way: gradients to this rank's wanted rows go to their owners.

    Sending begins at once; add_to() waits, and adds what all ranks have for own rows in their
    order.
    """

    def __init__(
        self, slabs: Slabs, gradient: Tensor, wanted: Sequence[Interval], axis: int
    ) -> None:
        self._slabs, self._axis = slabs, axis
        device = _on_wire(slabs, gradient)
        own, mine = slabs.rows(slabs.rank), wanted[slabs.rank]
        sends, receives = [], []
        self._parts: list[tuple[Interval, Tensor]] = []
        for rank in range(slabs.ranks):
            away = overlap(slabs.rows(rank), mine)
            if rank != slabs.rank and away is not None:
                piece = gradient.narrow(axis, away[0] - mine[0], away[1] - away[0])
                sends.append((rank, piece.to(device).contiguous()))
            here = overlap(own, wanted[rank])
            if here is None:
                continue
            if rank == slabs.rank:
                piece = gradient.narrow(axis, here[0] - mine[0], here[1] - here[0])
                self._parts.append((here, piece))
                continue
            shape = list(gradient.shape)
            shape[axis] = here[1] - here[0]
            piece = torch.empty(shape, dtype=gradient.dtype, device=device)
            receives.append((rank, piece))
            self._parts.append((here, piece))
        self._sends = sends  # their memory must live until they are sent
        self._works = _start(slabs, sends, receives)

    def add_to(self, into: Tensor) -> None:
        with reported(self._slabs):
            for work in self._works:
                work.wait()
        self._works, self._sends = [], []
        start = self._slabs.start
        for (first, last), piece in self._parts:
            into.narrow(self._axis, first - start, last - first).add_(piece.to(into.device))


def send_home(
    slabs: Slabs, gradient: Tensor, wanted: Sequence[Interval], axis: int, into: Optional[Tensor]
) -> Tensor:
    """Exchange's adjoint: adds up the gradients to own rows that all ranks have, in their order.

    gradient: to this rank's wanted rows. into: what they are added to, f32 for halves; it is
    returned.
    """
    if into is None:
        shape = list(gradient.shape)
        shape[axis] = slabs.stop - slabs.start
        wide = torch.float64 if gradient.dtype == torch.float64 else torch.float32
        into = gradient.new_zeros(shape, dtype=wide)
    Homeward(slabs, gradient, wanted, axis).add_to(into)
    return into

# SPDX-License-Identifier: Apache-2.0
"""Ranks gather a tensor or an object from each other, and sums.

Sums are added in the order of ranks, so that every rank has the same bits.
"""

from __future__ import annotations

import pickle
import time
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from .failure import monitor_of, reported, sends_from_cpu, uses_nccl
from .monitor import watch

_LONGEST_LETTING_GO = 1.0  # seconds; it takes some microseconds


def on_wire(slabs: Any, tensor: Tensor) -> torch.device:
    """The device that the group sends from: NCCL's is the GPU, gloo's the CPU."""
    if tensor.is_cuda and uses_nccl(slabs.group):
        return tensor.device
    return torch.device("cpu" if sends_from_cpu(slabs.group) else "cuda")


def gathered(slabs: Any, tensor: Tensor) -> list[Tensor]:
    """The tensor of each rank, alike in shape and dtype; a collective call. A GPU's stream waits for
    them, not the host."""
    mine = tensor.detach().to(on_wire(slabs, tensor)).contiguous()
    results = [torch.empty_like(mine) for _ in range(slabs.ranks)]
    monitor = monitor_of(slabs) if mine.is_cuda else None
    work: Any = None
    try:
        with reported(slabs):
            work = dist.all_gather(results, mine, group=slabs.group, async_op=True)
            if monitor is not None:
                watch(monitor, work)
            work.wait()
    finally:
        work = None
        if not mine.is_cuda:
            _wait_until_let_go([mine, *results])
    return [each.to(tensor.device) for each in results]


def _wait_until_let_go(tensors: list[Tensor]) -> None:
    """Waits until gloo's thread has let go of the tensors of a gather that has ended. Were its
    references the last, it would ask for the interpreter's lock, and if Python ends meanwhile, that
    ends the thread amid C++, and so the process ("terminate called without an active exception").
    """
    until = time.monotonic() + _LONGEST_LETTING_GO
    for each in tensors:
        while each._use_count() > 1 and time.monotonic() < until:  # type: ignore[attr-defined]
            time.sleep(0)


def gathered_objects(slabs: Any, value: Any) -> list[Any]:
    """The value of each rank, of any type that pickle knows; a collective call."""
    mine = pickle.dumps(value)
    lengths = [int(each) for each in gathered(slabs, torch.tensor(len(mine)))]
    padded = torch.frombuffer(bytearray(mine.ljust(max(lengths), b"\0")), dtype=torch.uint8)
    return [
        pickle.loads(bytes(each[:length].tolist()))
        for each, length in zip(gathered(slabs, padded), lengths)
    ]


def sum_of_ranks(slabs: Any, tensor: Tensor) -> Tensor:
    """The sum over ranks, in their order."""
    first, *others = gathered(slabs, tensor)
    for each in others:
        first = first + each
    return first

# SPDX-License-Identifier: Apache-2.0
"""The process group, and what happens when a rank is lost.

A rank that dies closes its connections, and gloo tells those that wait for it at once; one that
stalls is given up after the group's timeout. Either way every other rank raises LostRank: those
that wait for a rank that has raised wait for the timeout at most.
"""

from __future__ import annotations

import contextlib
import datetime
import os
from collections.abc import Iterator
from typing import Any, Optional

import torch
import torch.distributed as dist

from .._library.refusals import type_name


class LostRank(RuntimeError):
    """Another rank was killed, has ended, or did not answer in time. The group is of no more
    use."""


def init(timeout: float = 60, backend: Optional[str] = None) -> None:
    """Makes torch's default process group of the processes that torchrun or srun has started.

    Args:
        timeout: seconds after which a rank that does not answer is given up by those that wait for
            it.
        backend: by default "gloo", and NCCL for tensors on GPUs where there are any; each process
            then takes the GPU of its LOCAL_RANK. Under srun RANK, WORLD_SIZE and LOCAL_RANK are set
            from Slurm's variables where they are missing.
    """
    if not isinstance(timeout, (int, float)) or isinstance(timeout, bool) or not timeout > 0:
        shown = timeout if isinstance(timeout, (int, float)) else type_name(timeout)
        raise ValueError(f"init: timeout is {shown}; it must be a number above 0")
    for name, slurm in (
        ("RANK", "SLURM_PROCID"),
        ("WORLD_SIZE", "SLURM_NTASKS"),
        ("LOCAL_RANK", "SLURM_LOCALID"),
    ):
        if name not in os.environ and slurm in os.environ:
            os.environ[name] = os.environ[slurm]
    if backend is None:
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    if "nccl" in backend:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    dist.init_process_group(backend, timeout=datetime.timedelta(seconds=float(timeout)))


@contextlib.contextmanager
def reported(slabs: Any) -> Iterator[None]:
    """Turns what a communication raises into LostRank."""
    try:
        yield
    except RuntimeError as error:
        words = str(error).strip().splitlines()
        reason = words[0] if words else type(error).__name__
        raise LostRank(
            f"similis.distributed: rank {slabs.rank} lost another of {slabs.ranks} ranks, or "
            f"waited for it too long: {reason}"
        ) from error

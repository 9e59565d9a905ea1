# SPDX-License-Identifier: Apache-2.0
"""The process group, and what happens when a rank is lost.

A rank that dies closes its connections, and gloo tells those that wait for it at once; one that
stalls is given up after the group's timeout. With NCCL a monitor gives up both after the timeout.
Either way every other rank raises LostRank: those that wait for a rank that has raised wait for the
timeout at most.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import weakref
from collections.abc import Iterator
from typing import Any, Optional

import torch
import torch.distributed as dist

from .._library.refusals import type_name
from .monitor import Monitor, abort_of

_timeout = 60.0  # of init()
_monitors: dict[Any, Monitor] = {}  # of groups with NCCL
_NCCL_SETTINGS = {
    # A copy of few rows must not wait until a kernel that fills the GPU has begun its last block.
    "TORCH_NCCL_HIGH_PRIORITY": "1",
    # torch's watchdog would end the process before the monitor's exception.
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0",
    "TORCH_NCCL_ENABLE_MONITORING": "0",
    # Its end would wait for a minute's sleep, in which other processes may write reports.
    "TORCH_NCCL_DUMP_ON_TIMEOUT": "0",
    "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC": "1",
}


class LostRank(RuntimeError):
    """Another rank was killed, has ended, or did not answer in time. The group is of no more
    use."""


def _required_backend(backend: Any) -> str:
    """The backend in lower case, as torch compares it; raises unless this torch has it."""
    has = [each for each in dist.Backend.backend_list if each != dist.Backend.UNDEFINED]
    has = [each for each in has if dist.is_backend_available(each)]
    known = backend.lower() if isinstance(backend, str) else ""
    pairs = [each.split(":") for each in known.split(",")]
    lengths = (1, 2) if len(pairs) == 1 else (2,)
    if not all(len(pair) in lengths and pair[-1] in has for pair in pairs):
        raise ValueError(
            f"init: backend is {backend!r}; it must be one that this torch has ({', '.join(has)}), or "
            'one for each device, as "cpu:gloo,cuda:nccl"'
        )
    return known


def init(timeout: float = 60, backend: Optional[str] = None) -> None:
    """Makes torch's default process group of the processes that torchrun or srun has started.

    Args:
        timeout: seconds after which a rank that does not answer is given up by those that wait for
            it.
        backend: by default "gloo", and NCCL for tensors on GPUs where there are any; each process
            then takes the GPU of its LOCAL_RANK, and torch's watchdog, which ends a process that
            waits too long, is off unless the environment says otherwise. Under srun RANK,
            WORLD_SIZE and LOCAL_RANK are set from Slurm's variables where they are missing.

    Raises:
        ValueError: timeout is not above 0, or this torch does not have the backend.
    """
    if not isinstance(timeout, (int, float)) or isinstance(timeout, bool) or not timeout > 0:
        shown = timeout if isinstance(timeout, (int, float)) else type_name(timeout)
        raise ValueError(f"init: timeout is {shown}; it must be a number above 0")
    if backend is None:
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    backend = _required_backend(backend)
    for name, slurm in (
        ("RANK", "SLURM_PROCID"),
        ("WORLD_SIZE", "SLURM_NTASKS"),
        ("LOCAL_RANK", "SLURM_LOCALID"),
    ):
        if name not in os.environ and slurm in os.environ:
            os.environ[name] = os.environ[slurm]
    global _timeout
    _timeout = float(timeout)
    if "nccl" in backend:
        for name, value in _NCCL_SETTINGS.items():
            os.environ.setdefault(name, value)
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    dist.init_process_group(backend, timeout=datetime.timedelta(seconds=float(timeout)))


_known_backends: weakref.WeakKeyDictionary[Any, dict[str, str]] = weakref.WeakKeyDictionary()


def _backends(group: Any) -> dict[str, str]:
    """The backend of each device that the group sends from; each message asks for them often."""
    known = _known_backends.get(group)
    if known is None:
        pairs = (each.split(":") for each in dist.get_backend_config(group).split(","))
        known = _known_backends[group] = {device: backend for device, backend in pairs}
    return known


def uses_nccl(group: Any) -> bool:
    return _backends(group).get("cuda") == "nccl"


def sends_from_cpu(group: Any) -> bool:
    return "cpu" in _backends(group)


def monitor_of(slabs: Any) -> Optional[Monitor]:
    """That of the slabs' group; None if it does not communicate through NCCL."""
    if not uses_nccl(slabs.group):
        return None
    if slabs.group not in _monitors:
        _monitors[slabs.group] = Monitor(_timeout, abort_of(slabs.group))
    return _monitors[slabs.group]


@contextlib.contextmanager
def reported(slabs: Any) -> Iterator[None]:
    """Turns what a communication raises, and what its monitor has noticed, into LostRank."""
    monitor = monitor_of(slabs)
    reason = None if monitor is None else monitor.lost
    cause: Optional[RuntimeError] = None
    if reason is None:
        try:
            yield
        except RuntimeError as error:
            words = str(error).strip().splitlines()
            cause, reason = error, words[0] if words else type(error).__name__
            if monitor is not None:  # a GPU waits in vain, too
                monitor.give_up(reason)
        if monitor is not None and monitor.lost is not None:
            reason = monitor.lost
    if reason is not None:
        raise LostRank(
            f"similis.distributed: rank {slabs.rank} lost another of {slabs.ranks} ranks, or "
            f"waited for it too long: {reason}"
        ) from cause


def require_group(slabs: Any) -> None:
    """Raises LostRank if a monitor has given up what this process has waited for: what a GPU then
    holds is not what was sent."""
    with reported(slabs):
        pass

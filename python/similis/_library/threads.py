# SPDX-License-Identifier: Apache-2.0
"""The number of threads that a call on the CPU uses."""

from __future__ import annotations

import ctypes
import os
import sys

from . import c_abi, values

_settled_in = 0  # the process whose number of threads has been set here


def get_num_threads() -> int:
    """The number of threads that a call on the CPU uses at most, the caller's included.

    Returns: the number of set_num_threads(), else of the variable SIMILIS_NUM_THREADS, else of
        OMP_NUM_THREADS, else one per core; in a worker of torch's DataLoader 1. Calls on torch's
        tensors use torch.get_num_threads() of them if that is fewer.
    """
    follow_worker()
    number = ctypes.c_int32()
    status = c_abi.LIBRARY.similis_get_num_threads(ctypes.byref(number))
    if status != 0:
        c_abi.raise_last_error(status)
    return number.value


def set_num_threads(threads: int) -> None:
    """Sets the number of threads that a call on the CPU uses at most, the caller's included.

    Results have the same bits with any number.

    Args:
        threads: from 1 to 1024; 0 for what the environment says.

    Raises:
        ValueError, TypeError: threads is another.
    """
    global _settled_in
    number = values.integer("set_num_threads", "threads", threads, 31)
    status = c_abi.LIBRARY.similis_set_num_threads(number)
    if status != 0:
        c_abi.raise_last_error(status)
    _settled_in = os.getpid()


def follow_worker() -> None:
    """In a worker of torch's DataLoader, one thread, as torch itself uses there.

    A worker that calls set_num_threads() keeps its own number.
    """
    data = sys.modules.get("torch.utils.data")
    if data is not None and data.get_worker_info() is not None and _settled_in != os.getpid():
        set_num_threads(1)

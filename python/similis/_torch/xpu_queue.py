# SPDX-License-Identifier: Apache-2.0
"""Launches on Intel's GPUs, by native/libsimilis_xpu_N.so: on torch's own SYCL queue and memory.

N is the major version of SYCL's library that torch has loaded. Its runtime compiles the kernels when
they are first called. scripts/xpu_launcher.sh builds the file.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
from collections.abc import Sequence
from typing import Any, Optional

import torch
from torch import Tensor

from .._library.c_abi import NATIVE, DeviceError
from . import sycl_text

def _sycl_version() -> Optional[str]:
    """The major version of SYCL's library in this process."""
    try:
        with open("/proc/self/maps", encoding="utf-8") as maps:
            found = re.search(r"/libsycl\.so\.(\d+)", maps.read())
    except OSError:
        return None
    return found[1] if found else None


@functools.lru_cache(maxsize=1)
def _library() -> Optional[ctypes.CDLL]:
    """The launcher; None where the package has none for this torch's SYCL."""
    try:
        library = ctypes.CDLL(os.path.join(NATIVE, f"libsimilis_xpu_{_sycl_version()}.so"))
    except OSError:
        return None
    library.similis_xpu_last_error.restype = ctypes.c_char_p
    return library


def is_there() -> bool:
    return _library() is not None


def _checked(status: int) -> None:
    if status != 0:
        library = _library()
        assert library is not None
        raise DeviceError(library.similis_xpu_last_error().decode())


@functools.lru_cache(maxsize=256)
def _kernel(text: str, device: torch.device) -> ctypes.c_void_p:
    """All queues of a device share torch's context, and so a kernel."""
    library, kernel = _library(), ctypes.c_void_p()
    assert library is not None
    queue = torch.xpu.current_stream(device).sycl_queue
    source = sycl_text.of_metal(text).encode()
    _checked(library.similis_xpu_compile(ctypes.c_void_p(queue), source, ctypes.byref(kernel)))
    return kernel


def launch(
    text: str,
    buffers: Sequence[Tensor],
    push: bytes,
    groups: Sequence[int],
    group_size: Sequence[int],
) -> None:
    """text: of Metal. buffers: in the order of the kernel's arguments, behind the push constants."""
    queue = torch.xpu.current_stream(buffers[0].device).sycl_queue
    library, sizes = _library(), ctypes.c_size_t * 3
    assert library is not None
    pointers: Any = (ctypes.c_void_p * len(buffers))(*[each.data_ptr() for each in buffers])
    _checked(
        library.similis_xpu_launch(
            ctypes.c_void_p(queue),
            _kernel(text, buffers[0].device),
            push,
            ctypes.c_size_t(len(push)),
            pointers,
            len(buffers),
            sizes(*groups),
            sizes(*group_size),
        )
    )

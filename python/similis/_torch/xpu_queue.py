# SPDX-License-Identifier: Apache-2.0
"""Launches on Intel's GPUs, by native/libsimilis_xpu.so: kernels as SPIR-V on torch's own SYCL queue."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Optional

import torch
from torch import Tensor

from .._library.c_abi import NATIVE, DeviceError

if TYPE_CHECKING:
    from .gpu_modules import Constants, Module

_LIBRARY = os.path.join(NATIVE, "libsimilis_xpu.so")


@functools.lru_cache(maxsize=1)
def _library() -> Optional[ctypes.CDLL]:
    """The launcher; None where the package has none or this torch has another SYCL."""
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        return None
    library.similis_xpu_last_error.restype = ctypes.c_char_p
    return library


def is_there() -> bool:
    return _library() is not None and hasattr(torch, "xpu")


def launch(
    module: Module,
    constants: Constants,
    buffers: Sequence[Optional[Tensor]],
    push: bytes,
    groups: Sequence[int],
) -> None:
    """buffers: in the order of the kernel's arguments; None for the push constants."""
    library = _library()
    assert library is not None
    device = next(each.device for each in buffers if each is not None)
    queue = torch.xpu.current_stream(device).sycl_queue
    pointers: Any = (ctypes.c_void_p * len(buffers))(
        *[None if each is None else each.data_ptr() for each in buffers]
    )
    status = library.similis_xpu_launch(
        ctypes.c_void_p(queue),
        module.specialized(constants).encode(),
        pointers,
        len(buffers),
        push,
        len(push),
        (ctypes.c_size_t * 3)(*groups),
        (ctypes.c_size_t * 3)(*module.group_size(constants)),
    )
    if status != 0:
        raise DeviceError(library.similis_xpu_last_error().decode())

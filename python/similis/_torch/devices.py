# SPDX-License-Identifier: Apache-2.0
"""Devices of torch, and what each can hold."""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from .._library.c_abi import HAS_LIBRARY

LIBRARYS = ("cpu", "cuda")  # the library computes there
ELSEWHERE = ("mps", "xpu")  # elsewhere.py does


def is_elsewhere(tensor: Tensor) -> bool:
    """True for a tensor that the library cannot read, where the package has one."""
    return not HAS_LIBRARY or tensor.device.type in ELSEWHERE


@functools.lru_cache(maxsize=16)
def _has_float64(kind: str, index: int) -> bool:
    if kind == "xpu":
        return bool(torch.xpu.get_device_properties(index).has_fp64)
    return kind != "mps"


def has_float64(device: torch.device) -> bool:
    return device.type not in ELSEWHERE or _has_float64(device.type, device.index or 0)


def widest(device: torch.device) -> torch.dtype:
    """The floating-point type with the most digits there."""
    return torch.float64 if has_float64(device) else torch.float32

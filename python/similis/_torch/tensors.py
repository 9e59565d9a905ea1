# SPDX-License-Identifier: Apache-2.0
"""Checks of torch's tensors, and of who observes a call."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor

from .._library import c_abi
from .._library.refusals import type_name
from .binding import DTYPES, Tensors

_DEVICES = ("cpu", "cuda", "meta")
_PLAIN = (Tensor, torch.nn.Parameter)
TELLS_KEYS = hasattr(torch._C.DispatchKeySet, "raw_repr")  # torch 2.4 does not
_dispatch_keys = torch._C._dispatch_keys


@functools.lru_cache(maxsize=4)
def _keys_of_memory(is_cuda: bool) -> int:
    """The dispatch keys of a tensor that is nothing but memory on this device."""
    return _dispatch_keys(torch.empty(0, device="cuda" if is_cuda else "cpu")).raw_repr()


def is_memory(tensor: Tensor) -> bool:
    """True if the tensor is nothing but memory: no subclass, no lazy negation, no wrapper that a
    transform has left behind."""
    return type(tensor) in _PLAIN and _dispatch_keys(tensor).raw_repr() == _keys_of_memory(
        tensor.is_cuda
    )


def are_memory(tensors: Tensors) -> bool:
    for each in tensors:
        if each is not None and not is_memory(each):
            return False
    return True


def nobody_looks() -> bool:
    """True if no compiler, mode, trace or profiler observes the operators."""
    return (
        not torch.compiler.is_compiling()  # it cannot trace is_memory(), so this is asked first
        and torch._C._len_torch_dispatch_stack() == 0
        and torch._C._get_tracing_state() is None
        and not torch._C._autograd._profiler_enabled()
    )


def is_transformed() -> bool:
    """True inside vmap, grad, jvp and their like, and in forward mode."""
    return (
        torch._C._are_functorch_transforms_active() or torch.autograd.forward_ad._current_level >= 0
    )


def refuse_tensor(operation: str, name: str, tensor: Any) -> None:
    """Raises unless the library takes tensors of this type, layout, dtype and device."""
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"{operation}: {name} is of type {type_name(tensor)}; it must be a torch.Tensor"
        )
    if tensor.layout != torch.strided or tensor.is_nested:
        layout = "nested" if tensor.is_nested else tensor.layout
        raise TypeError(f"{operation}: {name} is {layout}; it must be torch.strided")
    if tensor.dtype not in DTYPES:
        raise TypeError(f"{operation}: {name} is {tensor.dtype}; it must be {c_abi.DTYPE_NAMES}")
    if tensor.device.type not in _DEVICES:
        raise ValueError(f"{operation}: {name} is on {tensor.device}; it must be on cpu or cuda")


def require_same_device(
    operation: str, name: str, tensor: Tensor, name_of_x: str, x: Tensor
) -> None:
    if tensor.device != x.device:
        raise ValueError(
            f"{operation}: {name} is on {tensor.device}; it must be on {x.device} as {name_of_x} is"
        )

# SPDX-License-Identifier: Apache-2.0
"""Checks of torch's tensors, and of who observes a call."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from .._library.c_abi import HAS_LIBRARY
from .._library.refusals import dtype_names, type_name
from .binding import CONVERTED_DTYPES, DTYPES, PLAIN, USUAL_DTYPES, Tensors
from .devices import ELSEWHERE, LIBRARYS

_DEVICES = (*LIBRARYS, *ELSEWHERE, "meta")
# torch 2.4 does not. Without the library there is no fast path that would need to know them.
TELLS_KEYS = HAS_LIBRARY and hasattr(torch._C.DispatchKeySet, "raw_repr")
_dispatch_keys = torch._C._dispatch_keys


def _keys_of_memory(tensor: Tensor) -> int:
    """The dispatch keys of a tensor that is nothing but memory on a GPU, if this one is, or the CPU."""
    device = tensor.device if tensor.is_cuda else "cpu"
    keys: int = _dispatch_keys(torch.empty(0, device=device)).raw_repr()
    return keys


_known_keys: set[int] = set()  # of tensors that were nothing but memory


def is_memory(tensor: Tensor) -> bool:
    """True if the tensor is nothing but memory: no subclass, no lazy negation, no wrapper that a
    transform has left behind."""
    if type(tensor) not in PLAIN:
        return False
    keys = _dispatch_keys(tensor).raw_repr()
    if keys not in _known_keys:
        # A mode or a transform gives new tensors other keys.
        if not nobody_looks() or is_transformed() or keys != _keys_of_memory(tensor):
            return False
        _known_keys.add(keys)
    return True


def are_memory(tensors: Tensors) -> bool:
    """is_memory() of all tensors that are given, without a call of is_memory() for most of them."""
    for each in tensors:
        if (
            each is not None
            and (type(each) not in PLAIN or _dispatch_keys(each).raw_repr() not in _known_keys)
            and not is_memory(each)
        ):
            return False
    return True


def is_traced() -> bool:
    """True inside torch.jit.trace, whose graphs hold operators and no autograd.Function."""
    return torch._C._get_tracing_state() is not None


_is_compiling = torch.compiler.is_compiling
_modes = torch._C._len_torch_dispatch_stack
_trace = torch._C._get_tracing_state
_is_profiled = torch._C._autograd._profiler_enabled


def nobody_looks() -> bool:
    """True if no compiler, mode, trace or profiler observes the operators."""
    # A compiler cannot trace is_memory(), so it is asked for first.
    return not _is_compiling() and _modes() == 0 and _trace() is None and not _is_profiled()


def is_usual(x: Tensor) -> bool:
    """True for images of which layouts.py rearranges and converts nothing, and for what is refused.

    An exported graph does not ask: it would refuse all widths of 3 and 4.
    """
    rank = x.dim()
    if rank < 4:
        return rank < 2
    if x.dtype not in USUAL_DTYPES or rank > 4 or x.is_nested:
        return x.dtype not in CONVERTED_DTYPES
    if is_exporting():
        return True
    return x.shape[3] not in (3, 4)


def is_exporting() -> bool:
    """True inside torch.export, and in torch.compile where this torch cannot tell them apart."""
    if not torch.compiler.is_compiling():
        return False
    tell = getattr(torch.compiler, "is_exporting", None)
    return tell is None or bool(tell())


def is_transformed() -> bool:
    """True inside vmap, grad, jvp and their like, and in forward mode."""
    return (
        torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0
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
        raise TypeError(
            f"{operation}: {name} is {tensor.dtype}; it must be {dtype_names(operation, name)}"
        )
    if tensor.device.type not in _DEVICES:
        raise ValueError(f"{operation}: {name} is on {tensor.device}; it must be on cpu, cuda, mps or xpu")


def require_same_device(
    operation: str, name: str, tensor: Tensor, name_of_x: str, x: Tensor
) -> None:
    if tensor.device != x.device:
        raise ValueError(
            f"{operation}: {name} is on {tensor.device}; it must be on {x.device} as {name_of_x} is"
        )

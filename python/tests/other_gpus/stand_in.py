# SPDX-License-Identifier: Apache-2.0
"""Tensors that say they are on a GPU of Apple or Intel while their memory is the CPU's.

Such a tensor allows what the GPU allows: operators run on its memory and give such tensors again. A
copy to the CPU, a value that Python reads, an operand of another device and, without float64, a
result in it raise what they would raise there, or AssertionError where that would only be slow.
"""

import contextlib
from unittest import mock

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map, tree_map_only

from similis._torch import devices, elsewhere, measure_operators

HAS_FLOAT64 = {"mps": False, "xpu": True}
_pretended = []  # the kinds of the gpu() around
_READS = ("_local_scalar_dense", "is_nonzero", "equal", "nonzero", "masked_select", "unique")
_COPIES = ("to", "_to_copy", "copy_", "lift_fresh", "_copy_from")


class OnGpu(torch.Tensor):
    """A tensor whose `memory` is on the CPU and whose device is `kind`."""

    @staticmethod
    def __new__(cls, memory, kind):
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            memory.shape,
            strides=memory.stride(),
            storage_offset=memory.storage_offset(),
            dtype=memory.dtype,
            device="meta",  # for autograd in C++, which no copy to the CPU can be confused with
        )
        made.memory, made.kind = memory, kind
        return made

    device = property(lambda self: torch.device(self.kind, 0))
    is_cpu = property(lambda self: False)
    is_cuda = property(lambda self: False)
    __torch_function__ = torch._C._disabled_torch_function_impl

    def data_ptr(self):
        return self.memory.data_ptr()

    def __repr__(self):
        return f"OnGpu({self.kind}, {list(self.shape)}, {self.dtype})"

    @classmethod
    def __torch_dispatch__(cls, operator, types, arguments=(), options=None):
        return run(operator, arguments, options or {})


def _kind_of(arguments, options):
    kinds = set()
    tree_map_only(OnGpu, lambda each: kinds.add(each.kind), (arguments, options))
    assert len(kinds) <= 1
    return next(iter(kinds), None)


def run(operator, arguments, options):
    """The operator on the tensors' memory."""
    name = operator.name().split("::")[1].split(".")[0]
    kind = _kind_of(arguments, options)
    wanted = options.get("device")
    if wanted is not None and torch.device(wanted).type in (*HAS_FLOAT64, "meta"):
        kind = kind or _pretended[-1]
        options = {**options, "device": torch.device("cpu")}
    elif kind is not None and wanted is not None:
        raise AssertionError(f"{operator} copies a tensor from {kind} to {wanted}")
    if kind is None:
        return operator(*arguments, **options)
    assert name not in _READS, f"{operator} waits for {kind} and reads from it"
    if name not in _COPIES:
        tree_map_only(torch.Tensor, lambda each: _require_place(each, operator), arguments)
    if operator.namespace == "similis":
        with _Factories():  # as the device's own implementation of the operator
            return getattr(measure_operators, f"compute_{name}")(*arguments, **options)
    unwrapped = tree_map_only(OnGpu, lambda each: each.memory, (arguments, options))
    result = operator(*unwrapped[0], **unwrapped[1])
    if name in ("copy_", "add_", "mul_") or name.endswith("_"):
        return arguments[0]
    return tree_map_only(torch.Tensor, lambda each: _wrapped(each, kind), result)


def _require_place(tensor, operator):
    if not isinstance(tensor, OnGpu) and tensor.dim() > 0:
        raise RuntimeError(f"{operator}: expected all tensors to be on the same device")


def _wrapped(tensor, kind):
    if isinstance(tensor, OnGpu):
        return tensor
    if tensor.dtype == torch.float64 and not HAS_FLOAT64[kind]:
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype as the MPS framework "
                        "doesn't support float64")
    return OnGpu(tensor, kind)


class _Factories(TorchDispatchMode):
    """Sees torch.zeros(…, device="mps") and its like, which have no tensor to dispatch on."""

    def __torch_dispatch__(self, operator, types, arguments=(), options=None):
        return run(operator, arguments, options or {})


@contextlib.contextmanager
def gpu(kind, has_float64=None):
    """A function that puts tensors on a GPU of this kind, "mps" or "xpu"."""
    before = HAS_FLOAT64[kind]
    HAS_FLOAT64[kind] = before if has_float64 is None else has_float64
    torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor() copies where the mode sees it
    elsewhere._warned.clear()
    _pretended.append(kind)
    try:
        with (
            mock.patch.object(torch.xpu, "_lazy_init", lambda: None),
            mock.patch.object(devices, "_has_float64", lambda kind, index: HAS_FLOAT64[kind]),
            _Factories(),
        ):
            yield lambda tensor: OnGpu(tensor.detach().clone(), kind).requires_grad_(
                tensor.requires_grad
            )
    finally:
        _pretended.pop()
        torch._C._set_only_lift_cpu_tensors(False)
        HAS_FLOAT64[kind] = before


def memory_of(result):
    """Results as ordinary tensors."""
    return tree_map(lambda each: each.memory if isinstance(each, OnGpu) else each, result)

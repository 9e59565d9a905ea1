# SPDX-License-Identifier: Apache-2.0
"""The two ways in which torch's tensors reach the library: tvm-ffi and ctypes.

SIMILIS_BINDING chooses one of them. Both give the same bits; ctypes takes 10 µs more for each call.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import warnings
from collections.abc import Sequence
from typing import Any, Callable, Optional

import torch
from torch import Tensor

from .._library import c_abi, measures, warp

Tensors = Sequence[Optional[Tensor]]
DTYPES = {getattr(torch, name): name for name in c_abi.DTYPES if hasattr(torch, name)}
# layouts.py converts these; all measures of images take the others as they are.
CONVERTED_DTYPES = frozenset((torch.bool, torch.int16, torch.int32, getattr(torch, "uint16", None)))
USUAL_DTYPES = frozenset(DTYPES) - CONVERTED_DTYPES


def c_tensor(tensor: Optional[Tensor]) -> Optional[c_abi.Tensor]:
    if tensor is None:
        return None
    kind, index = (c_abi.CUDA, tensor.device.index) if tensor.is_cuda else (c_abi.CPU, 0)
    device = c_abi.Device(kind, index)
    return c_abi.tensor(
        tensor.data_ptr(), tensor.shape, tensor.stride(), DTYPES[tensor.dtype], device
    )


def stream_of(tensor: Tensor) -> int:
    return torch.cuda.current_stream(tensor.device).cuda_stream if tensor.is_cuda else 0


def run_measure_by_ctypes(measure: measures.Measure, x: Tensor, *others: Optional[Tensor]) -> None:
    tensors = [c_tensor(tensor) for tensor in (x, *others)]
    middle = tensors.pop() if len(tensors) == 9 else None
    measures.run(measure, tensors, stream_of(x), torch.get_num_threads(), middle=middle)


def attempt_by_ctypes(
    operation: int, options: int, threads: int, *tensors: Optional[Tensor]
) -> int:
    for each in tensors:
        if each is not None and each.data_ptr() == 0:
            return -1
    first = tensors[0]
    assert first is not None
    described = [c_tensor(each) for each in tensors]
    try:
        c_abi.call(operation, described, options, stream_of(first), threads)
    except ValueError:
        return -1
    return 0


def attempt_images_by_ctypes(
    operation: int, options: int, threads: int, unasked: int, x: Tensor, *others: Optional[Tensor]
) -> int:
    rank = x.dim()
    if rank < 4 or (rank == 4 and x.shape[3] in (3, 4)) or x.dtype not in USUAL_DTYPES:
        return -1
    y, *results = others
    return attempt_by_ctypes(operation, options, threads, x, y, *[None] * unasked, *results)


def scale_by_ctypes(tensor: Tensor, factor: Tensor) -> None:
    described, by = c_tensor(tensor), c_tensor(factor)
    threads = torch.get_num_threads()
    c_abi.scale(described, by, stream_of(tensor), threads)  # type: ignore[arg-type]


_BINDING_FILE = os.path.join(c_abi.NATIVE, "similis_tvm_ffi.so")


def tvm_ffi_call() -> Callable[..., int]:
    import tvm_ffi

    call: Callable[..., int] = tvm_ffi.load_module(_BINDING_FILE).call
    return call


def direct_functions() -> tuple[Callable[..., int], ...]:
    """attempt, attempt_images and scale of python/binding/direct.cc; an empty tuple if this torch does
    not lend its tensors in C."""
    table = getattr(Tensor, "__dlpack_c_exchange_api__", None)
    if table is None:
        return ()
    make = ctypes.PyDLL(_BINDING_FILE).similis_direct_functions
    make.argtypes, make.restype = [ctypes.py_object], ctypes.py_object
    functions: tuple[Callable[..., int], ...] = make(table)
    return functions


def run_measure_by_tvm_ffi(call: Callable[..., int]) -> Callable[..., None]:
    def run(measure: measures.Measure, *tensors: Optional[Tensor]) -> None:
        if measure.with_means:  # they are parts of one tensor
            return run_measure_by_ctypes(measure, *tensors)  # type: ignore[arg-type]
        given = tensors if measure.is_in_order else measure.arrange(tensors + measure.behind)
        status = call(measure.index, measure.options_address, torch.get_num_threads(), *given)
        if status != 0:
            c_abi.raise_last_error(status)

    return run


def scale_directly(function: Callable[..., int]) -> Callable[[Tensor, Tensor], None]:
    def scale(tensor: Tensor, factor: Tensor) -> None:
        status = function(tensor, factor, torch.get_num_threads())
        if status != 0:
            c_abi.raise_last_error(status)

    return scale


def run_transform_by_ctypes(
    call: warp.Call,
    operands: Tensors,
    outputs: Tensors,
    accumulate: bool = False,
    elsewhere: Optional[Tensor] = None,
    noted: Optional[Tensor] = None,
) -> None:
    described = [c_tensor(each) for each in operands]
    results = [c_tensor(each) for each in outputs]
    assert operands[0] is not None
    threads = torch.get_num_threads()
    notes = c_tensor(elsewhere), c_tensor(noted)
    warp.run(call, described, results, stream_of(operands[0]), accumulate, threads, notes)


def run_transform_by_tvm_ffi(function: Callable[..., int]) -> Callable[..., None]:
    def run(
        call: warp.Call,
        operands: Tensors,
        outputs: Tensors,
        accumulate: bool = False,
        elsewhere: Optional[Tensor] = None,
        noted: Optional[Tensor] = None,
    ) -> None:
        status = function(
            call.index,
            call.accumulating_address if accumulate else call.options_address,
            torch.get_num_threads(),
            *call.arrange((*operands, None, elsewhere, noted)),
            *outputs,
        )
        if status != 0:
            c_abi.raise_last_error(status)

    return run


def _choose_binding() -> tuple[str, Optional[Callable[..., int]]]:
    """Returns the name of the binding and tvm-ffi's function.

    A torch that does not lend its tensors in C makes tvm-ffi ask for them in Python or compile an
    extension on import. ctypes is faster then, and is the default. Where tvm-ffi is installed and
    cannot be loaded, as one for another Python, ctypes takes its place and a warning says so.
    """
    wanted = os.environ.get("SIMILIS_BINDING", "auto")
    if wanted not in ("auto", "tvm_ffi", "ctypes"):
        raise ValueError(f"SIMILIS_BINDING is {wanted!r}; it must be auto, tvm_ffi or ctypes")
    if wanted == "ctypes" or not c_abi.HAS_LIBRARY:
        return "ctypes", None
    lends = any(
        hasattr(Tensor, name) for name in ("__dlpack_c_exchange_api__", "__c_dlpack_exchange_api__")
    )
    if wanted == "auto" and not lends:
        return "ctypes", None
    try:
        return "tvm_ffi", tvm_ffi_call()
    except (ImportError, OSError, RuntimeError) as error:
        if wanted == "tvm_ffi":
            raise
        if importlib.util.find_spec("tvm_ffi") is not None:
            warnings.warn(
                f"apache-tvm-ffi is installed and cannot be loaded ({error}), so each call takes some"
                " 10 µs more; SIMILIS_BINDING=ctypes asks for that without this warning",
                RuntimeWarning,
                stacklevel=2,
            )
        return "ctypes", None


BINDING, _call = _choose_binding()
_direct = () if _call is None else direct_functions()
# run_measure(measure, x, y, mask, valid_mask, upstream, value, x_gradient, y_gradient), and for a part
# of a volume SSIM's middle
run_measure = run_measure_by_ctypes if _call is None else run_measure_by_tvm_ffi(_call)
# run_transform(call, operands, outputs, accumulate, elsewhere, noted): outputs in the order of the
# C function
run_transform = run_transform_by_ctypes if _call is None else run_transform_by_tvm_ffi(_call)
# attempt(operation, options_address, threads, tensors…): returns another number than 0, or raises,
# where the library refuses the call or a tensor that is given has no memory
attempt: Callable[..., int] = _direct[0] if _direct else attempt_by_ctypes
# attempt_images(operation, options_address, threads, unasked, x, y, value, x_gradient, y_gradient): the
# same of a measure with so many masks and upstreams that are left out; another number than 0 also for
# images that _functions/layouts.py arranges or converts
attempt_images: Callable[..., int] = _direct[1] if _direct else attempt_images_by_ctypes
# scale(tensor, factor): multiplies the tensor in place
scale = scale_directly(_direct[2]) if _direct else scale_by_ctypes

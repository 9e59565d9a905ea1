# SPDX-License-Identifier: Apache-2.0
"""The two ways in which torch's tensors reach the library: tvm-ffi and ctypes.

SIMILIS_BINDING chooses one of them. Both give the same bits; ctypes takes 10 µs more for each call.
"""

from __future__ import annotations

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


def scale_by_ctypes(tensor: Tensor, factor: Tensor) -> None:
    described, by = c_tensor(tensor), c_tensor(factor)
    threads = torch.get_num_threads()
    c_abi.scale(described, by, stream_of(tensor), threads)  # type: ignore[arg-type]


def tvm_ffi_functions() -> dict[str, Any]:
    import tvm_ffi

    module = tvm_ffi.load_module(os.path.join(c_abi.NATIVE, "similis_tvm_ffi.so"))
    return {name: getattr(module, name) for name in ("call", "attempt", "scale")}


def run_measure_by_tvm_ffi(functions: dict[str, Any]) -> Callable[..., None]:
    call = functions["call"]

    def run(measure: measures.Measure, *tensors: Optional[Tensor]) -> None:
        if measure.with_means:  # they are parts of one tensor
            return run_measure_by_ctypes(measure, *tensors)  # type: ignore[arg-type]
        given = tensors if measure.is_in_order else measure.arrange(tensors + measure.behind)
        status = call(measure.index, measure.options_address, torch.get_num_threads(), *given)
        if status != 0:
            c_abi.raise_last_error(status)

    return run


def scale_by_tvm_ffi(functions: dict[str, Any]) -> Callable[[Tensor, Tensor], None]:
    function = functions["scale"]

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


def run_transform_by_tvm_ffi(functions: dict[str, Any]) -> Callable[..., None]:
    function = functions["call"]

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


def _choose_binding() -> tuple[str, dict[str, Any]]:
    """Returns the name of the binding and tvm-ffi's functions.

    A torch that does not lend its tensors in C makes tvm-ffi ask for them in Python or compile an
    extension on import. ctypes is faster then, and is the default. Where tvm-ffi is installed and
    cannot be loaded, as one for another Python, ctypes takes its place and a warning says so.
    """
    wanted = os.environ.get("SIMILIS_BINDING", "auto")
    if wanted not in ("auto", "tvm_ffi", "ctypes"):
        raise ValueError(f"SIMILIS_BINDING is {wanted!r}; it must be auto, tvm_ffi or ctypes")
    if wanted == "ctypes" or not c_abi.HAS_LIBRARY:
        return "ctypes", {}
    lends = any(
        hasattr(Tensor, name) for name in ("__dlpack_c_exchange_api__", "__c_dlpack_exchange_api__")
    )
    if wanted == "auto" and not lends:
        return "ctypes", {}
    try:
        return "tvm_ffi", tvm_ffi_functions()
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
        return "ctypes", {}


BINDING, _functions = _choose_binding()
# run_measure(measure, x, y, mask, valid_mask, upstream, value, x_gradient, y_gradient), and for a part
# of a volume SSIM's middle
run_measure = run_measure_by_tvm_ffi(_functions) if _functions else run_measure_by_ctypes
# run_transform(call, operands, outputs, accumulate, elsewhere, noted): outputs in the order of the
# C function
run_transform = run_transform_by_tvm_ffi(_functions) if _functions else run_transform_by_ctypes
# attempt(operation, options_address, threads, tensors…): returns another number than 0, or raises,
# where the library refuses the call or a tensor that is given has no memory
attempt: Callable[..., int] = _functions["attempt"] if _functions else attempt_by_ctypes
# scale(tensor, factor): multiplies the tensor in place
scale = scale_by_tvm_ffi(_functions) if _functions else scale_by_ctypes

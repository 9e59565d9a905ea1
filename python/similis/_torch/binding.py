# SPDX-License-Identifier: Apache-2.0
"""The two ways in which torch's tensors reach the library: builtin functions and ctypes.

The builtin functions, "direct", take tensors by torch's own C functions, which torch lends from 2.10 on.
SIMILIS_BINDING chooses one of the two. Both give the same bits; ctypes takes 10 µs more for each call.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import Any, Callable, Optional

import torch
from torch import Tensor
from torch.autograd import forward_ad

from .._library import c_abi, measures, warp

Tensors = Sequence[Optional[Tensor]]
DTYPES = {getattr(torch, name): name for name in c_abi.DTYPES if hasattr(torch, name)}
# layouts.py converts these; all measures of images take the others as they are.
CONVERTED_DTYPES = frozenset((torch.bool, torch.int16, torch.int32, getattr(torch, "uint16", None)))
USUAL_DTYPES = frozenset(DTYPES) - CONVERTED_DTYPES


PLAIN = (Tensor, torch.nn.Parameter)
_modes = torch._C._len_torch_dispatch_stack
_trace = torch._C._get_tracing_state
_is_profiled = torch._C._autograd._profiler_enabled
_is_functorch = torch._C._are_functorch_transforms_active


def are_plain_by_python(*tensors: Any) -> bool:
    if _modes() != 0 or _trace() is not None or _is_profiled() or _is_functorch():
        return False
    if forward_ad._current_level >= 0:
        return False
    return all(each is None or (type(each) in PLAIN and not each.is_neg()) for each in tensors)


def dense_like(tensor: Tensor) -> Tensor:
    if tensor.is_contiguous():  # to name a format costs torch a fifth of an allocation
        return torch.empty_like(tensor)
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


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


def compute_by_ctypes(
    plan: bytes, tensors: Tensors, models: Tensors
) -> Optional[tuple[Optional[Tensor], ...]]:
    operation, options, of_images = measures.PLAN_NUMBERS.unpack_from(plan)
    first = tensors[0]
    assert first is not None
    if any(each is not None and each.data_ptr() == 0 for each in tensors):
        return None
    if of_images and not _is_usual_image(first):
        return None
    allocate = torch.empty_like if of_images else dense_like
    new = tuple(None if each is None else allocate(each) for each in models)
    among = dict(enumerate(tensors)) | dict(enumerate(new, measures.FIRST_NEW))
    described = [c_tensor(among.get(place)) for place in plan[measures.PLAN_NUMBERS.size :]]
    try:
        c_abi.call(operation, described, options, stream_of(first), torch.get_num_threads())
    except ValueError:
        return None
    return new


def _is_usual_image(x: Tensor) -> bool:
    rank = x.dim()
    return rank > 3 and (rank > 4 or x.shape[3] not in (3, 4)) and x.dtype in USUAL_DTYPES


def multiply_by_ctypes(factor: Tensor, *tensors: Optional[Tensor]) -> int:
    if not are_plain(factor):
        return -1
    try:
        if factor.data_ptr() == 0:
            return -1
    except RuntimeError:  # torch.autograd.grad() batches upstream gradients
        return -1
    if not (factor.is_cpu and factor.item() == 1):
        for each in tensors:
            if each is not None:
                scale_by_ctypes(each, factor)
    return 0


def scale_by_ctypes(tensor: Tensor, factor: Tensor) -> None:
    described, by = c_tensor(tensor), c_tensor(factor)
    threads = torch.get_num_threads()
    c_abi.scale(described, by, stream_of(tensor), threads)  # type: ignore[arg-type]


Function = Callable[..., Any]


def direct_functions() -> tuple[Function, ...]:
    """call, scale, are_plain, compute, multiply and are_same of python/binding/direct.cc; an empty tuple if this
    torch does not lend its tensors in C."""
    table = getattr(Tensor, "__dlpack_c_exchange_api__", None)
    if table is None or not c_abi.HAS_LIBRARY:
        return ()
    library = ctypes.PyDLL(os.path.join(c_abi.NATIVE, "similis_direct.so"))
    make = library.similis_direct_functions
    make.argtypes, make.restype = [ctypes.py_object, ctypes.py_object], ctypes.py_object
    of_torch = (
        *(torch.empty_like, dense_like, *PLAIN, Tensor.is_neg, forward_ad),
        *(torch.get_num_threads, _modes, _trace, _is_profiled, _is_functorch),
    )
    functions: tuple[Function, ...] = make(table, of_torch)
    return functions


def run_measure_directly(call: Function) -> Callable[..., None]:
    def run(measure: measures.Measure, *tensors: Optional[Tensor]) -> None:
        if measure.with_means:  # they are parts of one tensor
            return run_measure_by_ctypes(measure, *tensors)  # type: ignore[arg-type]
        given = tensors if measure.is_in_order else measure.arrange(tensors + measure.behind)
        status = call(measure.index, measure.options_address, torch.get_num_threads(), *given)
        if status != 0:
            c_abi.raise_last_error(status)

    return run


def scale_directly(function: Function) -> Callable[[Tensor, Tensor], None]:
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


def run_transform_directly(function: Function) -> Callable[..., None]:
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


def _choose_binding() -> tuple[Function, ...]:
    """The builtin functions; an empty tuple for ctypes."""
    wanted = os.environ.get("SIMILIS_BINDING", "auto")
    if wanted not in ("auto", "direct", "ctypes"):
        raise ValueError(f"SIMILIS_BINDING is {wanted!r}; it must be auto, direct or ctypes")
    functions = () if wanted == "ctypes" else direct_functions()
    if wanted == "direct" and not functions:
        raise ImportError(
            f"SIMILIS_BINDING is direct, and torch {torch.__version__} does not lend its tensors in C; "
            "it must be auto or ctypes"
        )
    return functions


_direct = _choose_binding()
BINDING = "direct" if _direct else "ctypes"
# run_measure(measure, x, y, mask, valid_mask, upstream, value, x_gradient, y_gradient), and for a part
# of a volume SSIM's middle
run_measure = run_measure_directly(_direct[0]) if _direct else run_measure_by_ctypes
# run_transform(call, operands, outputs, accumulate, elsewhere, noted): outputs in the order of the
# C function
run_transform = run_transform_directly(_direct[0]) if _direct else run_transform_by_ctypes
# scale(tensor, factor): multiplies the tensor in place
scale = scale_directly(_direct[1]) if _direct else scale_by_ctypes
# are_plain(tensors…): whether no mode, trace, profiler, transform of torch.func or forward mode looks, and
# all tensors are of torch's own types and not negated lazily. A compiler is to be asked for first.
are_plain: Callable[..., bool] = _direct[2] if _direct else are_plain_by_python
# compute(plan, tensors, models): tensors like each model, which the library has written; None where it
# refuses the call, or a tensor has no memory, or images are such as _functions/layouts.py arranges or
# converts. plan: of _library/measures.py, for the tensors and then the new ones.
compute: Callable[..., Any] = _direct[3] if _direct else compute_by_ctypes
# multiply(factor, tensors…): multiplies tensors by a number in place; a status, or -1 if are_plain(factor)
# is not true, or the number has no memory
multiply: Function = _direct[4] if _direct else multiply_by_ctypes
# are_same(tuple, tuple): whether both hold the same objects; None: there is none that is fast
are_same: Optional[Callable[..., bool]] = _direct[5] if _direct else None

# SPDX-License-Identifier: Apache-2.0
"""Sampling and composing torch's tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import torch
from torch import Tensor
from torch.autograd import forward_ad

from .._library import warp
from .._library.refusals import require_extents, require_output
from . import elsewhere
from .binding import DTYPES, Tensors, run_transform
from .devices import is_elsewhere
from .tensors import (
    TELLS_KEYS,
    are_memory,
    is_memory,
    is_transformed,
    nobody_looks,
    refuse_tensor,
    require_same_device,
)
from .transform_autograd import (
    asks_for_gradient,
    labels_function,
    transform_function,
)
from .transform_operators import (
    NO_GRADIENTS,
    compute_labels,
    compute_transform,
    result_model,
    result_shape,
)


def _are_plain(operands: Tensors) -> bool:
    """True if require_operands() would take the operands and nobody needs to see the operators, as
    torch.func and forward mode do. This is the fast path."""
    first = operands[0]
    if not (TELLS_KEYS and nobody_looks() and first is not None and are_memory(operands)):
        return False
    device = first.get_device()
    for each in operands:
        if each is not None and not (
            each.dtype in DTYPES
            and each.get_device() == device
            and each.dim() > 1
            and each.numel() != 0
        ):
            return False
    return not is_transformed()


def require_operands(operation: str, names: Sequence[str], operands: Sequence[Any]) -> None:
    """Raises unless the library takes the operands; all but the first may be None."""
    for name, tensor in zip(names, operands):
        if tensor is None and name != names[0]:
            continue
        refuse_tensor(operation, name, tensor)
        require_same_device(operation, name, tensor, names[0], operands[0])
        require_extents(operation, name, tensor.shape, least_axes=2)


def _check_output(call: warp.Call, output: Any, operands: Tensors) -> None:
    operand = operands[0]
    assert operand is not None
    refuse_tensor(call.operation, "output", output)
    require_same_device(call.operation, "output", output, "the result", operand)
    shape = result_shape(call, operand, *operands[1:])
    require_output(call.operation, output, shape, result_model(call, operand, operands[2]).dtype)


def _is_memory_apart(output: Tensor, operands: Tensors) -> bool:
    """True if the library may add to the output, which no operand shares."""
    if output.requires_grad or not is_memory(output):
        return False
    memory = output.untyped_storage().data_ptr()
    return all(each is None or each.untyped_storage().data_ptr() != memory for each in operands)


def _refuse_tangents(operation: str, operands: Tensors) -> None:
    for each in operands:
        if isinstance(each, Tensor) and forward_ad.unpack_dual(each).tangent is not None:
            raise NotImplementedError(
                f"{operation}: forward mode is not supported; backward() and torch.autograd.grad are"
            )


def transform(
    call: str, names: Sequence[str], operands: Sequence[Any], output: Optional[Tensor] = None
) -> Tensor:
    """operands: image, u or A; affine; field; grid_affine."""
    compute: Any
    is_compiling = False
    if _are_plain(operands):
        asks = asks_for_gradient(operands)
        compute = transform_function(operands) if asks else compute_transform
    else:
        is_compiling = torch.compiler.is_compiling()
        if not is_compiling and forward_ad._current_level >= 0:
            _refuse_tangents(call.split(" ", 1)[0], operands)
        require_operands(call.split(" ", 1)[0], names, operands)
        if is_elsewhere(operands[0]):
            if output is not None and not is_compiling:
                _check_output(warp.parse(call), output, operands)
            result = elsewhere.transform(call, names, operands)
            return result if output is None else output.add_(result)
        if is_compiling and operands[2] is operands[0]:
            # torch.compile traces no autograd.Function that gets one tensor twice.
            operands = (operands[0], operands[1], operands[2].view_as(operands[2]), operands[3])
        compute = transform_function(operands)
    if output is None:
        return compute(*operands, call)
    if is_compiling:
        return output.add_(compute(*operands, call))
    parsed = warp.parse(call)
    _check_output(parsed, output, operands)
    if compute is not compute_transform or not _is_memory_apart(output, operands):
        return output.add_(compute(*operands, call))
    run_transform(parsed, operands, (output, *NO_GRADIENTS[parsed.operation]), accumulate=True)
    if not output.is_inference():
        torch.autograd.graph.increment_version(output)
    return output


_INTEGERS = (torch.bool, torch.int8, torch.int16, torch.int32, torch.int64)


def _require_exact_labels(image: Tensor) -> None:
    """Raises if f64 would round a label. Reads one flag, which synchronises a GPU once."""
    low, high = torch.aminmax(image)
    if (low < -(2**53)) | (high > 2**53):
        raise ValueError("sample_labels: image has labels beyond 2**53, which f64 rounds")


def _as_float(image: Tensor) -> Tensor:
    """Integer labels in f64, and in f32 if it holds every value of their type."""
    if image.dtype == torch.int64 and image.numel() != 0:
        if image.device.type != "meta" and not torch.compiler.is_compiling():
            _require_exact_labels(image)
    return image.double() if image.dtype in (torch.int32, torch.int64) else image.float()


def labels(call: str, names: Sequence[str], operands: Sequence[Any]) -> tuple[Tensor, Tensor]:
    """Label and weight; labels in the image's dtype, which may be any of torch's integers."""
    image, *others = operands
    held = image
    if isinstance(image, Tensor) and is_elsewhere(image):
        for name, each in zip(names[1:], others):
            if each is not None:
                refuse_tensor("sample_labels", name, each)
                require_same_device("sample_labels", name, each, names[0], image)
        return elsewhere.labels(call, names, operands)
    if not torch.compiler.is_compiling() and forward_ad._current_level >= 0:
        _refuse_tangents("sample_labels", operands)
    if isinstance(image, Tensor) and image.dtype in _INTEGERS:
        held = _as_float(image)
    require_operands("sample_labels", names, (held, *others))
    plain = _are_plain((held, *others)) and not asks_for_gradient(others)
    compute: Any = compute_labels if plain else labels_function(others)
    label, weight = compute(held, *others, call)
    return label.to(image.dtype), weight if held is image else weight.float()


def is_deterministic() -> bool:
    return not torch.compiler.is_compiling() and torch.are_deterministic_algorithms_enabled()

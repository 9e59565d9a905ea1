# SPDX-License-Identifier: Apache-2.0
"""NumPy's and CuPy's arrays, by ctypes, which may take longer here: the images are on the CPU, or
the work is queued.

NumPy's pointers are taken directly, since it lends no read-only array by DLPack.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from .._library import c_abi, measures


class Kind(Protocol):
    """What is asked of a library of arrays."""

    name: str

    def owns(self, array: Any) -> bool: ...

    def describe(self, array: Any) -> c_abi.Tensor: ...

    def empty(self, shape: Sequence[int], dtype: str, like: Any) -> Any: ...

    def prepared(self, array: Any) -> Any:
        """As describe() takes it: the array itself, or a copy where its memory cannot be walked."""

    def is_writeable(self, array: Any) -> bool: ...

    def may_share_memory(self, one: Any, other: Any) -> bool: ...

    def stream(self) -> int: ...

    def finished(self, array: Any) -> Any:
        """A result as the library's own functions return it."""


class NumPy:
    name = "numpy.ndarray"

    def __init__(self) -> None:
        import numpy

        self.numpy = numpy

    def owns(self, array: Any) -> bool:
        return isinstance(array, self.numpy.ndarray)

    def prepared(self, array: Any) -> Any:
        """Fields of records may stand at strides that are no multiples of an element."""
        if all(stride % array.itemsize == 0 for stride in array.strides):
            return array
        return self.numpy.ascontiguousarray(array)

    def describe(self, array: Any) -> c_abi.Tensor:
        strides = [stride // array.itemsize for stride in array.strides]
        return c_abi.tensor(
            array.ctypes.data, array.shape, strides, str(array.dtype), c_abi.Device(c_abi.CPU, 0)
        )

    def empty(self, shape: Sequence[int], dtype: str, like: Any) -> Any:
        return self.numpy.empty(shape, getattr(like, "dtype", None) if dtype == "same" else dtype)

    def is_writeable(self, array: Any) -> bool:
        return bool(array.flags.writeable)

    def may_share_memory(self, one: Any, other: Any) -> bool:
        return self.numpy.may_share_memory(one, other)

    def stream(self) -> int:
        return 0

    def finished(self, array: Any) -> Any:
        return array[()]  # a scalar, if it has no axes


class CuPy:
    name = "cupy.ndarray"

    def __init__(self) -> None:
        import cupy

        self.cupy = cupy

    def owns(self, array: Any) -> bool:
        return isinstance(array, self.cupy.ndarray)

    def prepared(self, array: Any) -> Any:
        if all(stride % array.itemsize == 0 for stride in array.strides):
            return array
        return self.cupy.ascontiguousarray(array)

    def describe(self, array: Any) -> c_abi.Tensor:
        strides = [stride // array.itemsize for stride in array.strides]
        device = c_abi.Device(c_abi.CUDA, array.device.id)
        return c_abi.tensor(array.data.ptr, array.shape, strides, str(array.dtype), device)

    def empty(self, shape: Sequence[int], dtype: str, like: Any) -> Any:
        with like.device:
            return self.cupy.empty(shape, like.dtype if dtype == "same" else dtype)

    def is_writeable(self, array: Any) -> bool:
        return True

    def may_share_memory(self, one: Any, other: Any) -> bool:
        return bool(self.cupy.may_share_memory(one, other))

    def stream(self) -> int:
        return int(self.cupy.cuda.get_current_stream().ptr)

    def finished(self, array: Any) -> Any:
        return array


def _require_dtype(operation: str, name: str, array: Any) -> None:
    if str(array.dtype) not in c_abi.DTYPES:
        raise TypeError(f"{operation}: {name} is {array.dtype}; it must be {c_abi.DTYPE_NAMES}")


def require_kind(operation: str, kind: Kind, name: str, array: Any) -> None:
    if not kind.owns(array):
        got = type(array).__name__
        raise TypeError(f"{operation}: {name} is a {got}; it must be a {kind.name}")
    if hasattr(array, "mask"):  # numpy.ma's, which nothing here would look at
        raise TypeError(f"{operation}: {name} is a masked array; give its data, and its mask apart")


def require_alike(operation: str, x: Any, y: Any, names: tuple[str, str] = ("x", "y")) -> None:
    """What can be refused before the library is called."""
    _require_dtype(operation, names[0], x)
    _require_dtype(operation, names[1], y)
    if y.shape != x.shape:
        raise ValueError(
            f"{operation}: {names[1]} has shape {list(y.shape)}; it must be that of {names[0]}, "
            f"{list(x.shape)}"
        )
    if 0 in x.shape:
        raise ValueError(
            f"{operation}: {names[0]} has shape {list(x.shape)}; every extent must be at least 1"
        )


def _mask(operation: str, kind: Kind, name: str, mask: Any) -> Any:
    if mask is None:
        return None
    if kind.owns(mask) and str(mask.dtype) == "bool":
        mask = mask.view("uint8")
    require_kind(operation, kind, name, mask)
    _require_dtype(operation, name, mask)
    return kind.prepared(mask)


def evaluate(
    operation: str,
    text: str,
    kind: Kind,
    x: Any,
    y: Any,
    mask: Any = None,
    valid_mask: Any = None,
    of_x: bool = False,
    of_y: bool = False,
    upstream: Any = None,
    names: tuple[str, str] = ("x", "y"),
) -> list[Any]:
    """The value, unless there is an upstream gradient, and the gradients that are asked for.

    Without one, gradients are those of the sum over all results."""
    require_kind(operation, kind, names[0], x)
    require_kind(operation, kind, names[1], y)
    require_alike(operation, x, y, names)
    measure = measures.parse(text)
    mask = _mask(operation, kind, "mask", mask)
    valid_mask = _mask(operation, kind, "valid_mask", valid_mask)
    dtype = "float64" if measure.in_float64 or str(x.dtype) == "float64" else "float32"
    value = None
    if upstream is None:
        value = kind.empty(measure.result_shape(x.shape), dtype, like=x)
    gradients = [kind.empty(x.shape, "same", like=x) if of else None for of in (of_x, of_y)]
    arrays = [kind.prepared(x), kind.prepared(y), mask, valid_mask, upstream, value, *gradients]
    described = [None if array is None else kind.describe(array) for array in arrays]
    c_abi.run(measure.operation, measure.options, described, kind.stream())
    return [kind.finished(each) for each in (value, *gradients) if each is not None]

# SPDX-License-Identifier: Apache-2.0
"""The libraries whose arrays are taken, and NumPy's and CuPy's arrays as the C interface sees them.

No library is imported here before its arrays appear. NumPy's pointers are read directly, as NumPy
lends no read-only array by DLPack.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Callable, Protocol

from .._library import c_abi
from .._library.refusals import dtype_names, type_name

_seen: dict[str, Any] = {}


def imported(name: str) -> Any:
    """A library of arrays if somebody has imported it, else None.

    The answer is remembered: torch.compile walks each dict that it sees being read, and sys.modules
    may grow meanwhile.
    """
    library = _seen.get(name)
    if library is None and name in sys.modules:
        library = _seen[name] = sys.modules[name]
    return library


def is_of(module: str, name: str, array: Any) -> bool:
    """True for an array of this library, which then has been imported."""
    library = imported(module)
    return library is not None and isinstance(array, getattr(library, name))


class Kind(Protocol):
    """The functions that a library of arrays must offer."""

    name: str

    def owns(self, array: Any) -> bool: ...

    def describe(self, array: Any) -> c_abi.Tensor: ...

    def empty(self, shape: Sequence[int], dtype: str, like: Any) -> Any: ...

    def prepared(self, array: Any) -> Any:
        """The array itself, or a copy if its strides are not multiples of an element."""

    def is_writeable(self, array: Any) -> bool: ...

    def may_share_memory(self, one: Any, other: Any) -> bool: ...

    def stream(self) -> int: ...

    def finished(self, array: Any) -> Any:
        """A result in the form that the library's own functions return."""


class NumPy:
    name = "numpy.ndarray"

    def __init__(self) -> None:
        import numpy

        self.numpy = numpy

    def owns(self, array: Any) -> bool:
        return isinstance(array, self.numpy.ndarray)

    def prepared(self, array: Any) -> Any:
        """Fields of records may have strides that are not multiples of an element."""
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
        """A number is a numpy.float64, which is a float for json and for isinstance()."""
        return array if array.ndim else self.numpy.float64(array)


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


_cached_kinds: dict[str, Kind] = {}


def _kind(name: str, make: Callable[[], Kind]) -> Kind:
    if name not in _cached_kinds:
        _cached_kinds[name] = make()
    return _cached_kinds[name]


def kind_of(operation: str, x: Any, name: str = "x") -> Kind:
    if is_of("numpy", "ndarray", x):
        return _kind("numpy", NumPy)
    if is_of("cupy", "ndarray", x):
        return _kind("cupy", CuPy)
    hint = ""
    if hasattr(x, "__array_interface__"):
        hint = f"; give numpy.asarray({name}), with channel_axis=-1 where it has channels"
    elif hasattr(getattr(x, "values", None), "dtype"):  # of pandas and xarray
        hint = f"; give {name}.values"
    elif isinstance(x, (list, tuple)):
        hint = f"; give numpy.asarray({name})"
    raise TypeError(
        f"{operation}: {name} is of type {type_name(x)}; it must be a torch.Tensor, numpy.ndarray, "
        f"cupy.ndarray or jax.Array{hint}"
    )


def require_dtype(operation: str, name: str, array: Any) -> None:
    if str(array.dtype) not in c_abi.DTYPES:
        raise TypeError(
            f"{operation}: {name} is {array.dtype}; it must be {dtype_names(operation, name)}"
        )


def require_kind(operation: str, kind: Kind, name: str, array: Any) -> None:
    if not kind.owns(array):
        raise TypeError(
            f"{operation}: {name} is of type {type_name(array)}; it must be a {kind.name}"
        )
    if hasattr(array, "mask"):  # numpy.ma.MaskedArray, whose mask nothing here would read
        raise TypeError(
            f"{operation}: {name} is a masked array; give its data, and its mask as an argument"
        )

# SPDX-License-Identifier: Apache-2.0
"""The C interface, by ctypes: its common structs, the library, and its failures as exceptions.

The structs are those of include/similis/c/core.h. The library stands in the package, in native/. A
package for any system has none: native/ then holds the library's tables of options alone, and
torch's tensors are computed by torch.
"""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Sequence
from typing import Any, Final, NoReturn, Optional, Union

NATIVE: Final = os.path.join(os.path.dirname(os.path.dirname(__file__)), "native")
INVALID_ARGUMENT, DEVICE_ERROR = 1, 2
CPU, CUDA = 1, 2


_TABLES: Final = os.path.join(NATIVE, "schema.json")  # scripts/python_tables.py writes it


class DeviceError(RuntimeError):
    """A device or its driver is missing, too old or failed; the message quotes the driver."""


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("index", ctypes.c_int32)]


class DType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


# name: DLPack's type code, bits of an element
DTYPES: Final = {
    "uint8": (1, 8),
    "uint16": (1, 16),
    "float16": (2, 16),
    "bfloat16": (4, 16),
    "float32": (2, 32),
    "float64": (2, 64),
}


class Tensor(ctypes.Structure):
    """A DLTensor; keeps its shape and strides alive."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", DType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


TENSOR: Final = ctypes.POINTER(Tensor)


def tensor(
    pointer: int, shape: Sequence[int], strides: Sequence[int], dtype: str, device: Device
) -> Tensor:
    """strides: in elements."""
    extents = ctypes.c_int64 * len(shape)
    code, bits = DTYPES[dtype]
    return Tensor(
        pointer,
        device,
        len(shape),
        DType(code, bits, 1),
        extents(*shape),
        extents(*strides),
        0,
    )


class Allocator(ctypes.Structure):
    _fields_ = [
        ("allocate", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
    ]


class Runner(ctypes.Structure):
    _fields_ = [("run", ctypes.c_void_p), ("context", ctypes.c_void_p)]


class Execution(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("stream", ctypes.c_void_p),
        ("allocator", Allocator),
        ("runner", Runner),
        ("vulkan", ctypes.c_void_p),
    ]


class _NoLibrary:
    """Stands where the package has no library. Each of its functions is refused when it is called,
    so that modules can prepare theirs."""

    def __getattr__(self, name: str) -> Any:
        return _refuse_without_library


def _refuse_without_library(*_: Any) -> NoReturn:
    raise DeviceError(
        "similis: this package has no library for this system, so it takes torch's tensors alone, "
        "and neither files nor scores whose bits are fixed; on Linux, install the wheel for Linux"
    )


def _load() -> Union[ctypes.CDLL, _NoLibrary]:
    files = os.listdir(NATIVE) if os.path.isdir(NATIVE) else []
    found = sorted(each for each in files if each.startswith("libsimilis.so"))
    if not found and os.path.exists(_TABLES):
        return _NoLibrary()
    if not found:
        raise ImportError(
            f"similis: there is no libsimilis.so in {NATIVE}; install the package with pip, or "
            "build its CMake target similis_python and import it from there"
        )
    library = ctypes.CDLL(os.path.join(NATIVE, found[0]))
    library.similis_last_error.restype = ctypes.c_char_p
    library.similis_version.restype = ctypes.c_char_p
    library.similis_scale.argtypes = [TENSOR, TENSOR, ctypes.c_void_p]
    library.similis_limited_runner.restype = Runner
    pointer, number = ctypes.c_void_p, ctypes.c_int32
    library.similis_call.argtypes = [number, pointer, number, pointer, pointer]
    return library


LIBRARY: Final = _load()
HAS_LIBRARY: Final = isinstance(LIBRARY, ctypes.CDLL)


def _version() -> str:
    if isinstance(LIBRARY, ctypes.CDLL):
        return str(LIBRARY.similis_version().decode())
    return str(schema()["version"])


def schema() -> dict[str, Any]:
    """The tables of the operations' options, which include/similis/c/core.h describes."""
    if isinstance(LIBRARY, ctypes.CDLL):
        LIBRARY.similis_schema.restype = ctypes.c_char_p
        return dict(json.loads(LIBRARY.similis_schema()))
    with open(_TABLES, encoding="utf-8") as file:
        return dict(json.load(file))


def prepared(name: str, result: Any, *arguments: Any) -> Any:
    """A function of the library with the types of its result and arguments."""
    function = getattr(LIBRARY, name)
    if HAS_LIBRARY:
        function.restype, function.argtypes = result, arguments
    return function


__version__: Final[str] = _version()


def raise_last_error(status: int) -> NoReturn:
    """Raises the library's message on its last failure on this thread."""
    message = LIBRARY.similis_last_error().decode()
    if status == INVALID_ARGUMENT:
        raise ValueError(message)
    if status == DEVICE_ERROR:
        raise DeviceError(message)
    if message == "out of memory":
        raise MemoryError(message)
    raise RuntimeError(message)


def execution(stream: int, threads: int) -> Execution:
    """threads: the most that the call uses on the CPU; 0: all of the library's."""
    if threads == 0:
        return Execution(ctypes.sizeof(Execution), stream)
    runner = LIBRARY.similis_limited_runner(threads)
    return Execution(ctypes.sizeof(Execution), stream, Allocator(), runner)


def call(
    operation: int,
    tensors: Sequence[Optional[Tensor]],
    options: int,
    stream: int = 0,
    threads: int = 0,
) -> None:
    """similis_call(): an operation of the library's list. options: its struct's address.

    Raises what the library refuses. The interpreter's lock is released during the call.
    """
    addresses = [None if each is None else ctypes.addressof(each) for each in tensors]
    row = (ctypes.c_void_p * len(addresses))(*addresses)
    how = execution(stream, threads)
    status = LIBRARY.similis_call(operation, row, len(addresses), options, ctypes.byref(how))
    if status != 0:
        raise_last_error(status)


def scale(tensor: Tensor, factor: Tensor, stream: int = 0, threads: int = 0) -> None:
    """Multiplies a tensor in place by a factor of one element, unless the factor is 1."""
    how = execution(stream, threads)
    status = LIBRARY.similis_scale(tensor, factor, ctypes.addressof(how))
    if status != 0:
        raise_last_error(status)

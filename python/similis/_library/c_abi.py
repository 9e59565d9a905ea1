# SPDX-License-Identifier: Apache-2.0
"""The C interface, by ctypes: its structs, its functions, and its failures as exceptions.

The structs are those of include/similis/c/*.h. The library stands in the package, in native/.
"""

from __future__ import annotations

import ctypes
import pathlib
from collections.abc import Sequence
from typing import Any, Final, NoReturn, Optional

NATIVE: Final = pathlib.Path(__file__).parent.parent / "native"
INVALID_ARGUMENT, DEVICE_ERROR = 1, 2
CPU, CUDA = 1, 2


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
DTYPE_NAMES: Final = "uint8, uint16, float16, bfloat16, float32 or float64"


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


class SsimOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("data_range", ctypes.c_double),
        ("sigma", ctypes.c_double * 3),
        ("k1", ctypes.c_double),
        ("k2", ctypes.c_double),
        ("ssim_weight", ctypes.c_double),
        ("l1_weight", ctypes.c_double),
        ("mask", ctypes.POINTER(Tensor)),
        ("valid_mask", ctypes.POINTER(Tensor)),
        ("window_size", ctypes.c_int32 * 3),
        ("padding", ctypes.c_int32),
        ("reduction", ctypes.c_int32),
        ("form", ctypes.c_int32),
    ]


class MsSsimOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("data_range", ctypes.c_double),
        ("sigma", ctypes.c_double * 3),
        ("k1", ctypes.c_double),
        ("k2", ctypes.c_double),
        ("weights", ctypes.POINTER(ctypes.c_double)),
        ("weight_count", ctypes.c_size_t),
        ("window_size", ctypes.c_int32 * 3),
        ("padding", ctypes.c_int32),
        ("reduction", ctypes.c_int32),
        ("downsample", ctypes.c_int32),
        ("form", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


class LnccOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("sigma", ctypes.c_double * 3),
        ("smooth_nr", ctypes.c_double),
        ("smooth_dr", ctypes.c_double),
        ("weight", ctypes.c_double),
        ("mask", ctypes.POINTER(Tensor)),
        ("valid_mask", ctypes.POINTER(Tensor)),
        ("window_size", ctypes.c_int32 * 3),
        ("window", ctypes.c_int32),
        ("padding", ctypes.c_int32),
        ("reduction", ctypes.c_int32),
        ("is_signed", ctypes.c_int32),
        ("gradient", ctypes.c_int32),
    ]


class PixelErrorOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("data_range", ctypes.c_double),
        ("reduction", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


class NccOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("weight", ctypes.c_double),
        ("reduction", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


class IntegerSsimOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("bit_depth", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


class Ssimulacra2Options(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("mode", ctypes.c_int32),
        ("transfer", ctypes.c_int32),
    ]


class MutualInformationOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("sigma_ratio", ctypes.c_double),
        ("low", ctypes.c_double),
        ("high", ctypes.c_double),
        ("smooth_nr", ctypes.c_double),
        ("smooth_dr", ctypes.c_double),
        ("sampling", ctypes.c_double),
        ("seed", ctypes.c_uint64),
        ("mask", ctypes.POINTER(Tensor)),
        ("histogram", ctypes.POINTER(Tensor)),
        ("num_bins", ctypes.c_int32),
        ("kernel", ctypes.c_int32),
        ("range", ctypes.c_int32),
        ("normalized", ctypes.c_int32),
        ("method", ctypes.c_int32),
        ("reduction", ctypes.c_int32),
        ("form", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


class FloatSsimOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("bit_depth", ctypes.c_int32),
        ("scale", ctypes.c_int32),
        ("enable_db", ctypes.c_int32),
        ("clip_db", ctypes.c_int32),
    ]


class FloatMsSsimOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("bit_depth", ctypes.c_int32),
        ("enable_db", ctypes.c_int32),
        ("clip_db", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


class LibvmafPsnrOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("bit_depth", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


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
    ]


WITH_GRADIENTS: Final = ("ssim", "ms_ssim", "lncc", "ncc", "mutual_information", "mse", "mae")
VALUE_ONLY: Final = ("psnr", "integer_ssim", "libvmaf_psnr", "histogram", "ssimulacra2")
WITH_MEANS: Final = ("float_ssim", "float_ms_ssim")  # of the value's factors, left out
TRANSFORMS: Final = ("sample", "sample_labels", "compose", "affine_grid")
OF_HISTOGRAM: Final = "mutual_information_from_histogram"  # takes one array, given as x and y


def _load() -> ctypes.CDLL:
    found = sorted(NATIVE.glob("libsimilis.so*"))
    if not found:
        raise ImportError(
            f"similis: there is no libsimilis.so in {NATIVE}; install the package with pip, or "
            "build its CMake target similis_python and import it from there"
        )
    library = ctypes.CDLL(str(found[0]))
    library.similis_last_error.restype = ctypes.c_char_p
    library.similis_version.restype = ctypes.c_char_p
    tensor_pointer = ctypes.POINTER(Tensor)
    for operation in WITH_GRADIENTS + VALUE_ONLY + WITH_MEANS:
        outputs = [tensor_pointer] * (1 if operation in VALUE_ONLY else 4)
        function = getattr(library, f"similis_{operation}")
        function.argtypes = [
            tensor_pointer,
            tensor_pointer,
            ctypes.c_void_p,
            *outputs,
            ctypes.c_void_p,
        ]
    getattr(library, f"similis_{OF_HISTOGRAM}").argtypes = [
        tensor_pointer,
        ctypes.c_void_p,
        tensor_pointer,
        ctypes.c_void_p,
    ]
    library.similis_scale.argtypes = [tensor_pointer, tensor_pointer, ctypes.c_void_p]
    return library


LIBRARY: Final = _load()
__version__: Final[str] = LIBRARY.similis_version().decode()


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


def _with_masks(
    options: Any, mask: Optional[Tensor], valid_mask: Optional[Tensor]
) -> ctypes.Structure:
    """A copy of the options, which all calls with the same text share."""
    copy = type(options).from_buffer_copy(options)
    copy.mask = None if mask is None else ctypes.pointer(mask)
    copy.valid_mask = None if valid_mask is None else ctypes.pointer(valid_mask)
    return copy


def run(
    operation: str, options: ctypes.Structure, tensors: Sequence[Optional[Tensor]], stream: int = 0
) -> None:
    """One pass over (x, y, mask, valid_mask, upstream, value, x_gradient, y_gradient).

    The caller allocates value and gradients; None leaves one out. Raises what the library refuses.
    The interpreter's lock is released during the call.
    """
    x, y, mask, valid_mask, upstream, value, x_gradient, y_gradient = tensors
    if mask is not None or valid_mask is not None:
        options = _with_masks(options, mask, valid_mask)
    execution = Execution(ctypes.sizeof(Execution), stream)
    function = getattr(LIBRARY, f"similis_{operation}")
    if operation == OF_HISTOGRAM:
        status = function(x, ctypes.addressof(options), value, ctypes.addressof(execution))
        if status != 0:
            raise_last_error(status)
        return
    outputs: tuple[Optional[Tensor], ...] = (upstream, value, x_gradient, y_gradient)
    if operation in VALUE_ONLY:
        outputs = (value,)
    elif operation in WITH_MEANS:
        outputs = (value, None, None, None)
    status = function(x, y, ctypes.addressof(options), *outputs, ctypes.addressof(execution))
    if status != 0:
        raise_last_error(status)


def scale(tensor: Tensor, factor: Tensor, stream: int = 0) -> None:
    """Multiplies a tensor in place by a factor of one element, unless the factor is 1."""
    execution = Execution(ctypes.sizeof(Execution), stream)
    status = LIBRARY.similis_scale(tensor, factor, ctypes.addressof(execution))
    if status != 0:
        raise_last_error(status)

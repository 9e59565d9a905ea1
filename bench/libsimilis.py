# SPDX-License-Identifier: Apache-2.0
"""libsimilis through its C interface: what a comparison in one process needs of it."""

import ctypes
import json
import pathlib
import struct

import numpy

LIBRARY = pathlib.Path(__file__).resolve().parent.parent / "build/lib/libsimilis.so"
CODES = {"u": 1, "f": 2}  # of similis_dtype
FORMATS = {"double": "d", "int32": "i", "int64": "q", "uint64": "Q", "pointer": "P"}  # of struct


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("index", ctypes.c_int32)]


class DType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    """A similis_tensor over a dense NumPy array, which must outlive it."""

    _fields_ = [("data", ctypes.c_void_p), ("device", Device), ("ndim", ctypes.c_int32),
                ("dtype", DType), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]

    def __init__(self, array):
        super().__init__(data=array.ctypes.data, device=Device(1, 0), ndim=array.ndim,
                         dtype=DType(CODES[array.dtype.kind], 8 * array.itemsize, 1),
                         shape=(ctypes.c_int64 * max(1, array.ndim))(*array.shape))


class Allocator(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("allocate", "release", "context")]


class Runner(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("run", "context")]


class WarpOptions(ctypes.Structure):
    """similis_warp_options, with the defaults of SIMILIS_WARP_DEFAULTS."""

    _fields_ = [("struct_size", ctypes.c_size_t), ("affine", ctypes.c_void_p),
                ("displacement", ctypes.POINTER(Tensor)), ("grid", ctypes.c_void_p),
                ("grid_affine", ctypes.c_void_p), ("out_shape", ctypes.c_int64 * 3),
                ("min_coords", ctypes.c_double * 3), ("max_coords", ctypes.c_double * 3),
                ("background", ctypes.c_double), ("smallest_label", ctypes.c_double),
                ("has_min_coords", ctypes.c_int32), ("has_max_coords", ctypes.c_int32),
                ("out_rank", ctypes.c_int32), ("mode", ctypes.c_int32),
                ("padding_mode", ctypes.c_int32), ("align_corners", ctypes.c_int32),
                ("prefilter", ctypes.c_int32), ("accumulate", ctypes.c_int32),
                ("deterministic", ctypes.c_int32), ("has_smallest_label", ctypes.c_int32)]

    def __init__(self, displacement=None):
        pointer = displacement and ctypes.pointer(displacement)
        super().__init__(struct_size=ctypes.sizeof(WarpOptions), displacement=pointer,
                         align_corners=1, prefilter=1)


class Execution(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("stream", ctypes.c_void_p),
                ("allocator", Allocator), ("runner", Runner)]


class Tables:
    """The measures' C structs, from the library's own tables."""

    def __init__(self, library):
        library.similis_schema.restype = ctypes.c_char_p
        operations = json.loads(library.similis_schema())["operations"]
        self._operations = {each["name"]: each for each in operations}

    def options(self, operation, **changes):
        """The struct with its defaults but for these numbers and words."""
        table = self._operations[operation]
        packed = bytearray.fromhex(table["c_defaults"])
        rows = {row["name"]: row for row in table["options"] + table["request"]}
        for name, value in changes.items():
            row = rows[name]
            if isinstance(value, str):
                value = [choice["word"] for choice in row["choices"]].index(value)
            form = row["c_count"] * FORMATS[row["c_type"]]
            struct.pack_into(form, packed, row["offset"], *row["c_count"] * [value])
        return (ctypes.c_char * len(packed)).from_buffer(packed)


# Options of what compares pairs of images, where they are not the defaults.
PAIR_OPTIONS = {"lncc": {"window_size": 7}}

# Measures of planes [H,W]: the C function, its options other than the defaults, and how many
# results besides the value it can write.
PLANE_OPERATIONS = {
    "integer_ssim": ("integer_ssim", {}, 0),
    "float_ssim": ("float_ssim", {}, 3),
    "float_ssim_scale1": ("float_ssim", {"scale": 1}, 3),
    "float_ms_ssim": ("float_ms_ssim", {}, 3),
}


class Similis:
    """The library on a fixed number of threads. Options are the defaults unless a name says so."""

    def __init__(self, threads):
        self._library = ctypes.CDLL(str(LIBRARY))
        self._library.similis_last_error.restype = ctypes.c_char_p
        self._library.similis_version.restype = ctypes.c_char_p
        self._tables = Tables(self._library)
        pool = ctypes.c_void_p()
        self._check(self._library.similis_thread_pool_create(threads, ctypes.byref(pool)))
        self._library.similis_thread_pool_runner.restype = Runner
        self._execution = Execution(struct_size=ctypes.sizeof(Execution),
                                    runner=self._library.similis_thread_pool_runner(pool))

    def _check(self, status):
        if status != 0:
            raise RuntimeError(self._library.similis_last_error().decode())

    def version(self):
        return self._library.similis_version().decode()

    def value(self, operation, x, y):
        """The result of "ssim", "ms_ssim", … as a float."""
        if operation in PLANE_OPERATIONS:
            return self._plane_value(operation, x, y)
        return self._run(operation, x, y, None)

    def value_and_gradient(self, operation, x, y):
        """The result and its gradient by x, in an array of its own as a framework would have it."""
        gradient = numpy.empty_like(x)
        return self._run(operation, x, y, Tensor(gradient)), gradient

    def _plane_value(self, operation, x, y):
        function, options, unwanted = PLANE_OPERATIONS[operation]
        value = numpy.empty((), numpy.float64)
        pointer = ctypes.byref
        self._check(self._library[f"similis_{function}"](
            pointer(Tensor(x)), pointer(Tensor(y)), self._tables.options(function, **options),
            pointer(Tensor(value)), *unwanted * [None], pointer(self._execution)))
        return float(value)

    def _run(self, operation, x, y, x_gradient):
        value = numpy.empty((), numpy.float64 if x.dtype == numpy.float64 else numpy.float32)
        pointer = ctypes.byref
        options = self._tables.options(operation, **PAIR_OPTIONS.get(operation, {}))
        self._check(self._library[f"similis_{operation}"](
            pointer(Tensor(x)), pointer(Tensor(y)), options, None,
            pointer(Tensor(value)), None if x_gradient is None else pointer(x_gradient), None,
            pointer(self._execution)))
        return float(value)

    def sample(self, image, displacement, upstream=None, output=None, image_gradient=None,
               displacement_gradient=None):
        """similis_sample: what is not None of the last three is written."""
        self._check(self._library.similis_sample(
            *self._references(image), ctypes.byref(WarpOptions(Tensor(displacement))),
            *self._references(output, upstream, image_gradient, None, displacement_gradient, None),
            ctypes.byref(self._execution)))

    def compose(self, u, v, upstream=None, output=None, u_gradient=None, v_gradient=None):
        """similis_compose, likewise."""
        self._check(self._library.similis_compose(
            *self._references(u, v), ctypes.byref(WarpOptions()),
            *self._references(output, upstream, u_gradient, v_gradient, None),
            ctypes.byref(self._execution)))

    @staticmethod
    def _references(*arrays):
        return [None if array is None else ctypes.byref(Tensor(array)) for array in arrays]

# SPDX-License-Identifier: Apache-2.0
"""libvmaf 3 through its C interface, on one frame of luma, where SIMILIS_BENCH_LIBVMAF names its
shared library. It must be built with -Denable_float=true.
"""

import ctypes
import os

import numpy

NO_LOG, YUV400 = 0, 4  # enum values


class Configuration(ctypes.Structure):
    _fields_ = [("log_level", ctypes.c_int), ("n_threads", ctypes.c_uint),
                ("n_subsample", ctypes.c_uint), ("cpumask", ctypes.c_uint64),
                ("gpumask", ctypes.c_uint64)]


class Picture(ctypes.Structure):
    _fields_ = [("pix_fmt", ctypes.c_int), ("bpc", ctypes.c_uint), ("w", ctypes.c_uint * 3),
                ("h", ctypes.c_uint * 3), ("stride", ctypes.c_ssize_t * 3),
                ("data", ctypes.c_void_p * 3), ("ref", ctypes.c_void_p), ("priv", ctypes.c_void_p)]


def is_there():
    return "SIMILIS_BENCH_LIBVMAF" in os.environ


def _library():
    library = ctypes.CDLL(os.environ["SIMILIS_BENCH_LIBVMAF"])
    library.vmaf_version.restype = ctypes.c_char_p
    library.vmaf_init.argtypes = [ctypes.c_void_p, Configuration]
    library.vmaf_picture_alloc.argtypes = [ctypes.c_void_p, ctypes.c_int] + 3 * [ctypes.c_uint]
    return library


def version():
    return _library().vmaf_version().decode()


def _check(status):
    if status != 0:
        raise RuntimeError(f"libvmaf: error {status}")


def _picture(library, plane):
    """The plane in memory of libvmaf's, which vmaf_read_pictures() takes over."""
    picture = Picture()
    height, width = plane.shape
    _check(library.vmaf_picture_alloc(ctypes.byref(picture), YUV400, 8, width, height))
    memory = ctypes.cast(picture.data[0], ctypes.POINTER(ctypes.c_uint8))
    rows = numpy.ctypeslib.as_array(memory, (height, picture.stride[0]))
    rows[:, :width] = plane
    return picture


def score(x, y, feature, **options):
    """A feature's score of two planes of bytes: as a program would, from pictures to score."""
    library, context, dictionary = _library(), ctypes.c_void_p(), ctypes.c_void_p()
    _check(library.vmaf_init(ctypes.byref(context), Configuration(log_level=NO_LOG)))
    for name, value in options.items():
        _check(library.vmaf_feature_dictionary_set(
            ctypes.byref(dictionary), name.encode(), str(value).encode()))
    _check(library.vmaf_use_feature(context, feature.encode(), dictionary))
    pictures = [_picture(library, plane) for plane in (x, y)]
    _check(library.vmaf_read_pictures(context, *map(ctypes.byref, pictures), 0))
    _check(library.vmaf_read_pictures(context, None, None, 0))
    result = ctypes.c_double()
    _check(library.vmaf_feature_score_at_index(
        context, feature.encode(), ctypes.byref(result), 0))
    _check(library.vmaf_close(context))
    return result.value

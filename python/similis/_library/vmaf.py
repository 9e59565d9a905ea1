# SPDX-License-Identifier: Apache-2.0
"""similis_vmaf() and its scorer, by ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Optional

from . import c_abi, threads


class VmafOptions(ctypes.Structure):
    """similis_vmaf_options."""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("models", ctypes.POINTER(ctypes.c_char_p)),
        ("model_count", ctypes.c_int64),
        ("features", ctypes.POINTER(ctypes.c_char_p)),
        ("feature_count", ctypes.c_int64),
        ("bit_depth", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


_create = c_abi.prepared(
    "similis_vmaf_scorer_create",
    ctypes.c_int32,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.POINTER(VmafOptions),
    ctypes.POINTER(ctypes.c_void_p),
)
_destroy = c_abi.prepared("similis_vmaf_scorer_destroy", None, ctypes.c_void_p)
_column_count = c_abi.prepared(
    "similis_vmaf_scorer_column_count", ctypes.c_int64, ctypes.c_void_p
)
_column = c_abi.prepared(
    "similis_vmaf_scorer_column", ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64
)
_push = c_abi.prepared(
    "similis_vmaf_scorer_push",
    ctypes.c_int32,
    ctypes.c_void_p,
    c_abi.TENSOR,
    c_abi.TENSOR,
    ctypes.c_void_p,
)
_finish = c_abi.prepared("similis_vmaf_scorer_finish", ctypes.c_int32, ctypes.c_void_p)
_pop = c_abi.prepared(
    "similis_vmaf_scorer_pop",
    ctypes.c_int32,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_int64),
    ctypes.POINTER(ctypes.c_double),
)


def _texts(values: Sequence[str]) -> Any:
    return (ctypes.c_char_p * max(1, len(values)))(*[value.encode() for value in values])


def _checked(status: int) -> None:
    if status != 0:
        c_abi.raise_last_error(status)


class Scorer:
    """A similis_vmaf_scorer, destroyed with this object."""

    def __init__(
        self,
        height: int,
        width: int,
        models: Sequence[str],
        features: Sequence[str],
        bit_depth: Optional[int],
    ) -> None:
        self._handle = ctypes.c_void_p()
        options = VmafOptions(
            ctypes.sizeof(VmafOptions),
            _texts(models),
            len(models),
            _texts(features),
            len(features),
            bit_depth or 0,
            0,
        )
        threads.follow_worker()
        _checked(_create(height, width, ctypes.byref(options), ctypes.byref(self._handle)))
        count = _column_count(self._handle)
        self.columns: list[str] = [_column(self._handle, i).decode() for i in range(count)]

    def __del__(self) -> None:
        if self._handle:
            _destroy(self._handle)

    def push(
        self, reference: c_abi.Tensor, distorted: c_abi.Tensor, stream: int, most_threads: int
    ) -> None:
        """stream: of a GPU; 0: the default one, and for the CPU. most_threads: 0 for all."""
        execution = ctypes.byref(c_abi.execution(stream, most_threads))
        _checked(_push(self._handle, reference, distorted, execution))

    def finish(self) -> None:
        _checked(_finish(self._handle))

    def pop(self) -> Optional[list[float]]:
        """The numbers of the next frame that is ready."""
        frame = ctypes.c_int64()
        values = (ctypes.c_double * len(self.columns))()
        _checked(_pop(self._handle, ctypes.byref(frame), values))
        return None if frame.value < 0 else list(values)

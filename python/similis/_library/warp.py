# SPDX-License-Identifier: Apache-2.0
"""Sampling and composing transforms, as text and through the C interface.

A call with all its options is one line of text, which torch's operators take, as in measures.py.
parse() turns it into the struct of the C interface and knows the results' shapes.

    sample mode=linear padding_mode=zeros align_corners=1 … out_shape=8,9,10 min_coords=-1.0,-1.0,-1.0
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Sequence
from typing import Any, Final, Optional

from . import c_abi, threads, values

MODES: Final = ("linear", "nearest", "cubic")
PADDING_MODES: Final = ("zeros", "border", "reflection")
Pair = Optional[Sequence[int]]
FLOATS: Final = ("float16", "bfloat16", "float32", "float64")


class WarpOptions(ctypes.Structure):
    """similis_warp_options."""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("affine", ctypes.POINTER(c_abi.Tensor)),
        ("displacement", ctypes.POINTER(c_abi.Tensor)),
        ("grid", ctypes.POINTER(c_abi.Tensor)),
        ("grid_affine", ctypes.POINTER(c_abi.Tensor)),
        ("out_shape", ctypes.c_int64 * 3),
        ("min_coords", ctypes.c_double * 3),
        ("max_coords", ctypes.c_double * 3),
        ("background", ctypes.c_double),
        ("smallest_label", ctypes.c_double),
        ("has_min_coords", ctypes.c_int32),
        ("has_max_coords", ctypes.c_int32),
        ("out_rank", ctypes.c_int32),
        ("mode", ctypes.c_int32),
        ("padding_mode", ctypes.c_int32),
        ("align_corners", ctypes.c_int32),
        ("prefilter", ctypes.c_int32),
        ("accumulate", ctypes.c_int32),
        ("deterministic", ctypes.c_int32),
        ("has_smallest_label", ctypes.c_int32),
        ("tolerance", ctypes.c_double),
        ("rows_start", ctypes.c_int64),
        ("rows_extent", ctypes.c_int64),
        ("image_rows_start", ctypes.c_int64),
        ("image_rows_extent", ctypes.c_int64),
        ("first_cell", ctypes.c_int64),
        ("end_cell", ctypes.c_int64),
    ]


def _numbers(operation: str, name: str, value: Any, convert: Any) -> str:
    """The numbers as text, which is empty for None."""
    if value is None:
        return ""
    if not isinstance(value, (tuple, list)):
        raise TypeError(
            f"{operation}: {name} is {values.shown(value)}; it must be a tuple or a list"
        )
    if len(value) not in (2, 3):
        raise ValueError(f"{operation}: {name} has {len(value)} numbers; it takes 2 or 3")
    return ",".join([repr(convert(operation, name, each)) for each in value])


_PARTS: Final = {
    "rows": ("rows_start", "rows_extent"),
    "image_rows": ("image_rows_start", "image_rows_extent"),
    "cells": ("first_cell", "end_cell"),
}


def _pair(operation: str, name: str, value: Any) -> str:
    """Two integers as text, which is empty for None."""
    if value is None:
        return ""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        kinds = "(first, end)" if name == "cells" else "(start, extent)"
        raise TypeError(f"{operation}: {name} is {values.shown(value)}; it must be {kinds}")
    first, second = [values.integer(operation, name, each) for each in value]
    if name != "cells" and second < 1:
        raise ValueError(f"{operation}: the extent of {name} is {second}; it must be at least 1")
    return f"{first},{second}"


def _extent(operation: str, name: str, value: Any) -> int:
    result = values.integer(operation, name, value)
    if result < 1:
        raise ValueError(f"{operation}: {name} holds {value!r}; every extent must be at least 1")
    return result


_ELSEWHERE: Final = {  # torch's words for a mode, and ours
    "bilinear": 'here it is "linear"',
    "trilinear": 'here it is "linear"',
    "bicubic": 'here "cubic" is an interpolating B-spline',
    "bspline": 'here "cubic" is an interpolating B-spline',
}


def _mode(operation: str, mode: Any) -> str:
    hint = _ELSEWHERE.get(mode) if isinstance(mode, str) else None
    if hint is not None:
        raise ValueError(
            f"{operation}: mode is {mode!r}; it must be {values.listed(MODES)}; {hint}"
        )
    return values.one_of(operation, "mode", mode, MODES)


def text(
    operation: str,
    *,
    is_grid: bool = False,
    out_shape: Optional[Sequence[int]] = None,
    mode: str = "linear",
    padding_mode: str = "zeros",
    align_corners: bool = True,
    prefilter: bool = True,
    min_coords: Optional[Sequence[float]] = None,
    max_coords: Optional[Sequence[float]] = None,
    deterministic: bool = False,
    background: float = 0,
    smallest_label: Optional[float] = None,
    tolerance: float = 0.01,
    rows: Pair = None,
    image_rows: Pair = None,
    cells: Pair = None,
) -> str:
    """The text of a call. It checks all that can be checked without the arrays."""
    one_of = values.one_of
    smallest = (
        ""
        if smallest_label is None
        else repr(values.number(operation, "smallest_label", smallest_label))
    )
    return (
        f"{operation} is_grid={int(is_grid)} "
        f"mode={_mode(operation, mode)} "
        f"padding_mode={one_of(operation, 'padding_mode', padding_mode, PADDING_MODES)} "
        f"align_corners={values.flag(operation, 'align_corners', align_corners)} "
        f"prefilter={values.flag(operation, 'prefilter', prefilter)} "
        f"deterministic={values.flag(operation, 'deterministic', deterministic)} "
        f"background={values.number(operation, 'background', background)!r} "
        f"smallest_label={smallest} "
        f"tolerance={values.number(operation, 'tolerance', tolerance)!r} "
        f"out_shape={_numbers(operation, 'out_shape', out_shape, _extent)} "
        f"min_coords={_numbers(operation, 'min_coords', min_coords, values.number)} "
        f"max_coords={_numbers(operation, 'max_coords', max_coords, values.number)} "
        f"rows={_pair(operation, 'rows', rows)} "
        f"image_rows={_pair(operation, 'image_rows', image_rows)} "
        f"cells={_pair(operation, 'cells', cells)}"
    )


def _listed(kind: Any, given: str) -> list[Any]:
    return [kind(each) for each in given.split(",") if each]


class Call:
    """An operation and its options, without its tensors."""

    def __init__(self, described: str) -> None:
        self.operation, *pairs = described.split(" ")
        given = dict(pair.split("=", 1) for pair in pairs)
        self.is_grid = given["is_grid"] == "1"
        self.out_shape: list[int] = _listed(int, given["out_shape"])
        options = WarpOptions(struct_size=ctypes.sizeof(WarpOptions))
        options.mode = MODES.index(given["mode"])
        options.padding_mode = PADDING_MODES.index(given["padding_mode"])
        for name in ("align_corners", "prefilter", "deterministic"):
            setattr(options, name, int(given[name]))
        options.background = float(given["background"])
        options.tolerance = float(given["tolerance"])
        if given["smallest_label"]:
            options.smallest_label, options.has_smallest_label = float(given["smallest_label"]), 1
        options.out_rank = len(self.out_shape)
        options.out_shape[: len(self.out_shape)] = self.out_shape
        for name in ("min_coords", "max_coords"):
            coordinates = _listed(float, given[name])
            getattr(options, name)[: len(coordinates)] = coordinates
            setattr(options, f"has_{name}", int(bool(coordinates)))
        for name, members in _PARTS.items():
            for member, value in zip(members, _listed(int, given[name])):
                setattr(options, member, value)
        self.options = options
        self.options_address = ctypes.addressof(options)

    def result_shape(
        self, operand: Sequence[int], batches: Sequence[int], field: Optional[Sequence[int]]
    ) -> list[Any]:
        """The shape of the result, if the shapes fit; batches: N of each operand."""
        batch: Any = 1
        for each in batches:
            batch = each if each != 1 else batch
        if self.operation in ("sample", "sample_labels"):
            space = self.out_shape or list(operand[2:])
            if field is not None:
                space = list(field[1:-1])
            return self._allocatable([batch, operand[1], *space])
        if self.operation == "compose":
            return [batch, *(field or operand)[1:]]
        space = list(field[1:-1]) if field is not None else self.out_shape
        return self._allocatable([batch, *space, operand[1]])

    def _allocatable(self, shape: list[Any]) -> list[Any]:
        if self.out_shape and math.prod(shape) >= 2**60:
            raise ValueError(
                f"{self.operation}: out_shape is {self.out_shape}; the result would have 2^60 "
                "elements or more"
            )
        return shape


@functools.lru_cache(maxsize=1024)
def parse(described: str) -> Call:
    return Call(described)


Described = Optional[c_abi.Tensor]


def _pointer(tensor: Described) -> Any:
    return None if tensor is None else ctypes.pointer(tensor)


def _reference(tensor: Described) -> Any:
    return None if tensor is None else ctypes.byref(tensor)


def run(
    call: Call,
    operands: Sequence[Described],
    outputs: Sequence[Described],
    stream: int = 0,
    accumulate: bool = False,
    most_threads: int = 0,
) -> None:
    """One call of the library.

    operands: image, u or A; affine; field; grid_affine. outputs: the arguments of the C function
    after the options, in its order.
    """
    operand, affine, field, grid_affine = operands
    options = WarpOptions.from_buffer_copy(call.options)
    passed = [_reference(operand)]
    if call.operation == "compose":
        passed.append(_reference(field))
    elif field is not None:
        setattr(options, "grid" if call.is_grid else "displacement", ctypes.pointer(field))
    options.affine, options.grid_affine = _pointer(affine), _pointer(grid_affine)
    options.accumulate = int(accumulate)
    _finish(f"similis_{call.operation}", passed, options, outputs, stream, most_threads)


def voxel_spacing(
    shape: Sequence[int],
    align_corners: bool,
    low: Optional[Sequence[float]],
    high: Optional[Sequence[float]],
    rows_extent: int = 0,
) -> list[float]:
    """The distance between voxels of a field of this shape along (x, y, z). A field that is rows of
    a longer one gives their number in the whole."""
    rank = len(shape) - 2
    result = []
    for axis in range(rank):
        n = int(shape[rank - axis])
        if axis == rank - 1:
            n = rows_extent or n
        edge = 1.0 if align_corners else 1 - 1 / n
        first = -edge if low is None else low[axis]
        last = edge if high is None else high[axis]
        result.append((last - first) / max(n - 1, 1))
    return result


def gradient_outputs(
    operation: str, upstream: Any, by_operand: Any, by_affine: Any, by_field: Any, by_s: Any
) -> list[Any]:
    """The arguments of the C function after the options when gradients are asked for."""
    listed: dict[str, list[Any]] = {
        "sample": [None, upstream, by_operand, by_affine, by_field, by_s],
        "sample_labels": [None, None, upstream, by_affine, by_field, by_s],
        "compose": [None, upstream, by_operand, by_field, by_affine],
        "affine_grid": [None, upstream, by_operand],
    }
    return listed[operation]


def run_on_field(
    call: Call,
    field: Described,
    number: Optional[int],
    outputs: Sequence[Described],
    stream: int = 0,
    most_threads: int = 0,
) -> None:
    """exponentiate, invert or jacobian_determinant; number: of steps, for the first two."""
    operands: list[Any] = [_reference(field)]
    if number is not None:
        operands.append(ctypes.c_int32(number))
    _finish(f"similis_{call.operation}", operands, call.options, outputs, stream, most_threads)


def _finish(
    function: str,
    operands: Sequence[Any],
    options: WarpOptions,
    outputs: Sequence[Described],
    stream: int,
    most_threads: int,
) -> None:
    if most_threads == 0:
        threads.follow_worker()
    execution = c_abi.execution(stream, most_threads)
    results = [_reference(each) for each in outputs]
    status = getattr(c_abi.LIBRARY, function)(
        *operands, ctypes.byref(options), *results, ctypes.byref(execution)
    )
    if status != 0:
        c_abi.raise_last_error(status)

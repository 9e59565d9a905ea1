# SPDX-License-Identifier: Apache-2.0
"""Sampling and composing transforms, as text and through the C interface.

A call with all its options is one line of text, which torch's operators take, as in measures.py.
parse() turns it into the struct of the C interface and knows the results' shapes.

    sample out_shape=8,9,10 mode=linear padding_mode=zeros align_corners=1 … is_grid=1
"""

from __future__ import annotations

import ctypes
import functools
import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Callable, Final, Optional

from . import c_abi, measures, threads, values

if TYPE_CHECKING:
    from .schema import Table

Pair = Optional[Sequence[int]]


_ELSEWHERE: Final = {  # torch's words for a mode, and ours
    "bilinear": 'here it is "linear"',
    "trilinear": 'here it is "linear"',
    "bicubic": 'here "cubic" is an interpolating B-spline',
    "bspline": 'here "cubic" is an interpolating B-spline',
}


def _refuse_torchs_mode(operation: str, mode: Any) -> None:
    hint = _ELSEWHERE.get(mode) if isinstance(mode, str) else None
    if hint is not None:
        words = measures.table(operation).options["mode"].taken
        raise ValueError(
            f"{operation}: mode is {mode!r}; it must be {values.listed(words)}; {hint}"
        )


def text(
    operation: str,
    *,
    is_grid: bool = False,
    part_shape: Optional[Sequence[int]] = None,
    **options: Any,
) -> str:
    """The text of a call with these options, and the library's defaults for all others. It checks
    all that can be checked without the arrays.

    is_grid: the field is a grid of absolute coordinates. part_shape: of the voxels of a field's
    part, which the library reads from the result.
    """
    if "mode" in options:
        _refuse_torchs_mode(operation, options["mode"])
    described = measures.text(operation, 3, **options)
    if is_grid:
        described += " is_grid=1"
    if part_shape is not None:
        described += " part_shape=" + ",".join([f"{int(each)!r}" for each in part_shape])
    return described


class Call:
    """An operation and its options, without its tensors.

    values: each option as a word, a flag, a number, a list of numbers, or None.
    """

    def __init__(self, described: str) -> None:
        self.operation, *pairs = described.split(" ")
        given = dict(pair.split("=", 1) for pair in pairs)
        self.table = measures.table(self.operation)
        self.index, self.shape_rule = self.table.index, self.table.shape
        self.is_grid = given.pop("is_grid", "") == "1"
        part = [int(each) for each in given.pop("part_shape", "").split(",") if each]
        rows = self.table.options
        read = {name: rows[name].read(each) for name, each in given.items()}
        self.values = {**self.table.defaults, **read}
        self.out_shape: list[int] = part or self.values.get("out_shape") or []
        self.options = (ctypes.c_char * len(self.table.c_defaults))()
        self.options.raw = self.table.c_defaults
        for name, each in read.items():
            rows[name].pack(each, self.options)
        self.accumulating = type(self.options).from_buffer_copy(self.options)
        if "accumulate" in rows:
            rows["accumulate"].pack(True, self.accumulating)
        self.options_address = ctypes.addressof(self.options)
        self.accumulating_address = ctypes.addressof(self.accumulating)
        self.arrange = _arrangement(self.table, self.is_grid)
        self.plan, self.plan_into, self.plan_of_gradients = self._plans()
        self.is_as_model = True  # each result so far was shaped as an operand

    def _plans(self) -> tuple[bytes, ...]:
        """For _torch/plain.py: of the operands and a new result, of the operands and the result, and of
        the operands, the upstream gradient and new gradients to each operand."""
        if self.operation not in ("sample", "compose", "affine_grid"):
            return b"", b"", b""
        operands = self.arrange((0, 1, 2, 3, None, None, None))
        none = [None] * (len(gradient_outputs(self.operation, *range(5))) - 1)
        new = [measures.FIRST_NEW + each for each in range(4)]
        outputs = (new[0], *none), (4, *none), gradient_outputs(self.operation, 4, *new)
        return tuple(measures.plan(self, False, [*operands, *each]) for each in outputs)

    def result_shape(
        self, operand: Sequence[int], batches: Sequence[int], field: Optional[Sequence[int]]
    ) -> list[Any]:
        """The shape of the result, if the shapes fit; batches: N of each operand."""
        batch: Any = 1
        for each in batches:
            batch = each if each != 1 else batch
        if self.shape_rule == "sampled":
            space = self.out_shape or list(operand[2:])
            if field is not None:
                space = list(field[1:-1])
            return self._allocatable([batch, operand[1], *space])
        if self.shape_rule == "as_v":
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


def _arrangement(table: Table, is_grid: bool) -> Callable[[Sequence[Any]], Any]:
    """The tensors before the C function's outputs, in its order, of (operand, affine, field,
    grid_affine, None, elsewhere, noted)."""
    field, none = 2, 4
    places = {"affine": 1, "grid_affine": 3, "v": field, "elsewhere": 5, "noted": 6}
    places["displacement"] = none if is_grid else field
    places["grid"] = field if is_grid else none
    others = [places[name] for name in (*table.operands[1:], *table.masks)]
    if not others:
        return operator.itemgetter(slice(0, 1))  # a tuple, as with several places
    return operator.itemgetter(0, *others)


@functools.lru_cache(maxsize=1024)
def parse(described: str) -> Call:
    return Call(described)


Described = Optional[c_abi.Tensor]


def run(
    call: Call,
    operands: Sequence[Described],
    outputs: Sequence[Described],
    stream: int = 0,
    accumulate: bool = False,
    most_threads: int = 0,
    notes: tuple[Described, Described] = (None, None),
) -> None:
    """One call of the library.

    operands: image, u or A; affine; field; grid_affine. outputs: the arguments of the C function
    after the options, in its order.
    """
    if most_threads == 0:
        threads.follow_worker()
    tensors = [*call.arrange((*operands, None, *notes)), *outputs]
    options = call.accumulating_address if accumulate else call.options_address
    c_abi.call(call.index, tensors, options, stream, most_threads)


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


_OUTPUTS: Final = {  # places in (None, upstream, by_operand, by_affine, by_field, by_s)
    "sample": operator.itemgetter(0, 1, 2, 3, 4, 5),
    "sample_labels": operator.itemgetter(0, 0, 1, 3, 4, 5),
    "compose": operator.itemgetter(0, 1, 2, 4, 3),
    "affine_grid": operator.itemgetter(0, 1, 2),
}


def gradient_outputs(
    operation: str, upstream: Any, by_operand: Any, by_affine: Any, by_field: Any, by_s: Any
) -> Sequence[Any]:
    """The arguments of the C function after the options when gradients are asked for."""
    result: Sequence[Any] = _OUTPUTS[operation](
        (None, upstream, by_operand, by_affine, by_field, by_s)
    )
    return result


def _reference(tensor: Described) -> Any:
    return None if tensor is None else ctypes.byref(tensor)


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
    if most_threads == 0:
        threads.follow_worker()
    execution = c_abi.execution(stream, most_threads)
    status = getattr(c_abi.LIBRARY, f"similis_{call.operation}")(
        *operands,
        ctypes.byref(call.options),
        *[_reference(each) for each in outputs],
        ctypes.byref(execution),
    )
    if status != 0:
        c_abi.raise_last_error(status)

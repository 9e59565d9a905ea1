# SPDX-License-Identifier: Apache-2.0
"""A measure as text: an operation and its options in one line.

torch's operators take this text, and compiled graphs hold it, so that a graph means the same in
every process. Options are checked against the library's tables when the text is written; parse()
turns it into the struct of the C interface and knows the shape of the result.

    ssim data_range=0.0 window_size=11,11,11 sigma=1.5,1.5,1.5 … padding=valid form=similarity
"""

from __future__ import annotations

import ctypes
import functools
import math
import operator
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Callable, Final, Optional, Union

from . import c_abi, threads, values

if TYPE_CHECKING:
    from .schema import Table

WITH_MEANS: Final = " with_means=1"  # ends the text of a score whose factors' means are wanted
DATA_RANGES: Final = {"uint8": 255.0, "uint16": 65535.0}  # 1 for all others
OF_HISTOGRAM: Final = "mutual_information_from_histogram"  # takes one array, given as x and y

PerAxisInt = Union[int, Sequence[int]]
PerAxisFloat = Union[float, Sequence[float]]
Range = Union[str, Sequence[float]]


def table(operation: str) -> Table:
    from . import schema  # reads the library's tables, once

    return schema.TABLES[operation]


def text(operation: str, axes: int, called: str = "", **options: Any) -> str:
    """The text of a measure with these options, and the library's defaults for all others.

    axes: those of a window. called: the function's name in error messages, if it is another.
    """
    rows, called = table(operation).options, called or operation
    pairs = [f"{name}={rows[name].text(called, each, axes)}" for name, each in options.items()]
    return " ".join([operation, *pairs])


def writer(operation: str, *names: str, called: str = "") -> Callable[..., str]:
    """text() as a function of axes and of the values of the options with these names."""

    def write(axes: int, *options: Any) -> str:
        return text(operation, axes, called, **dict(zip(names, options)))

    return write


def l1_ssim_writer(*names: str) -> Callable[..., str]:
    """That of l1_ssim(), which is a form of SSIM. It takes the weight before the options."""
    write_ssim = writer("ssim", *names, "ssim_weight", "l1_weight", "form", called="l1_ssim")

    def write(axes: int, weight: float, *options: Any) -> str:
        of_ssim = values.number("l1_ssim", "weight", weight)
        if not 0 <= of_ssim <= 1:
            raise ValueError(f"l1_ssim: weight is {weight!r}; it must be a number from 0 to 1")
        return write_ssim(axes, *options, of_ssim, 1 - of_ssim, "loss")

    return write


def check_options(called: str, operation: str, options: dict[str, Any]) -> None:
    """Raises for a value that the operation would refuse whatever the images are.

    operation: that of a table, or l1_ssim.
    """
    rows = table("ssim" if operation == "l1_ssim" else operation).options
    for name, value in options.items():
        if name == "channel_axis":
            if value is not None:
                values.integer(called, name, value)
        elif name == "enable_lcs":
            values.flag(called, name, value)
        elif name == "scale" and value is None:  # chosen by the size of the planes
            pass
        elif operation == "l1_ssim" and name == "weight":
            if not 0 <= values.number(called, name, value) <= 1:
                raise ValueError(f"{called}: weight is {value!r}; it must be a number from 0 to 1")
        else:
            given = values.plain_range(called, value) if name == "data_range" else value
            axes = len(value) if isinstance(value, (tuple, list)) and len(value) in (2, 3) else 2
            rows[name].text(called, given, axes)


def psnr_error_text(data_range: Optional[float], reduction: str) -> str:
    """The mean squared error, of which PSNR takes the logarithm."""
    text("psnr", 0, data_range=data_range, reduction=reduction)
    return f"mse reduction={reduction}"


class Measure:
    """An operation and its options, as the C interface takes them.

    Each option is an attribute: a word, a flag, a number, or a list of numbers.
    """

    def __init__(self, described: str) -> None:
        self.described = described
        self.operation, *pairs = described.split(" ")
        self.table = table(self.operation)
        given = dict(pair.split("=", 1) for pair in pairs)
        # True if the result is in f64, whatever the images are.
        self.in_float64 = (
            given.pop("in_float64", "") == "1"
            or self.table.shape != "by_reduction"
            or self.operation == OF_HISTOGRAM
            or given.get("sums") == "1"
        )
        self.with_means = given.pop("with_means", "") == "1"
        rows = self.table.options
        read = {name: rows[name].read(each) for name, each in given.items()}
        self.values = {**self.table.defaults, **read}
        self.__dict__.update(self.values)
        self.is_scalar = is_scalar(described)
        self.options = (ctypes.c_char * len(self.table.c_defaults))()
        self.options.raw = self.table.c_defaults
        self._lists = [rows[name].pack(each, self.options) for name, each in read.items()]
        self.options_address = ctypes.addressof(self.options)
        self.index, self.arrange = self.table.index, _arrangement(self.table)
        places = self.arrange(range(12))
        self.is_in_order = places == tuple(range(8))
        # True if it takes x, y, masks, upstream, value and both gradients.
        self.is_plain = places[-3:] == (5, 6, 7) and not self.with_means
        # For _torch/plain.py: its call of the first five tensors of run() and of new ones for the next
        # three, and one of six and two; and dtype and device of the last images, with a number to
        # allocate its value as.
        of_images = "y" in self.table.operands
        self.plan, self.plan_into = [
            plan(self, of_images, [_among(each, given) for each in places]) for given in (5, 6)
        ]
        self.number: tuple[Any, Any, Any] = (None, None, None)
        # The measure takes these behind the eight tensors of run(): most take nothing.
        self.behind = (None, None, None, None) if max(places) > 7 else ()

    if TYPE_CHECKING:  # at run time it would make every attribute slower

        def __getattr__(self, name: str) -> Any: ...

    def result_shape(self, shape: Sequence[int]) -> list[int]:
        """The shape of the result for images of this shape, if the library takes them."""
        if self.with_means:
            return [1 + 3 * means_of_a_factor(self.operation), *shape[:-2]]
        if self.table.shape == "by_plane":
            return list(shape[:-2])
        if self.table.shape == "by_picture":
            return list(shape[:-3])
        if self.table.shape == "histogram":
            return list(shape[:2]) + [self.num_bins, self.num_bins]
        if self.values.get("sums"):
            has_l1 = self.values.get("l1_weight", 0.0) != 0
            return [4 if has_l1 else 2, *shape[:2]]
        if self.reduction in ("mean", "sum"):
            return []
        if self.reduction == "per_image":
            return list(shape[:1])
        if self.reduction == "per_channel" or "window_size" not in self.values:
            return list(shape[:2])
        if len(shape) not in (4, 5):
            return list(shape)  # the library refuses it
        first, end = self.centres(shape)
        if self.padding != "valid":
            return [*shape[:2], end - first, *shape[3:]]
        sizes = self.window_size[-(len(shape) - 2) :]
        others = [max(n - size + 1, 1) for n, size in zip(shape[3:], sizes[1:])]
        return [*shape[:2], end - first, *others]

    def centres(self, shape: Sequence[int]) -> tuple[int, int]:
        """The rows of images of this shape that windows which count are centred on."""
        cut = self.window_size[-(len(shape) - 2)] // 2 if self.padding == "valid" else 0
        rows = self.values.get("rows") or (0, shape[2])
        first = max(rows[0], cut)
        return first, max(min(rows[1], shape[2] - cut), first + 1)


_PLACES: Final = {
    "mask": 2,
    "valid_mask": 3,
    "upstream": 4,
    "value": 5,
    "x_gradient": 6,
    "y_gradient": 7,
    "middle": 8,
    "histogram": 9,
    "limits": 11,
}


# A call of the library for the fast path of torch's tensors: PLAN_NUMBERS, which are its number, the
# address of its options and whether its first two tensors are images, and the place of each of its
# tensors: among those given, or FIRST_NEW and more among those that are allocated for it.
PLAN_NUMBERS: Final = struct.Struct("=3q")
FIRST_NEW: Final = 8


def _among(place: int, given: int) -> Optional[int]:
    """The place in a plan of the tensor that has this place in run(), whose first ones are given."""
    if place > _PLACES["y_gradient"]:
        return None
    return place if place < given else FIRST_NEW + place - given


def plan(call: Any, of_images: bool, places: Sequence[Optional[int]]) -> bytes:
    """call: a Measure, or a Call of warp.py. None is a tensor that is left out."""
    numbers = PLAN_NUMBERS.pack(call.index, call.options_address, of_images)
    return numbers + bytes([255 if each is None else each for each in places])


def _arrangement(table: Table) -> Callable[[Sequence[Any]], Any]:
    """The tensors in the order of similis_call(), of (x, y, mask, valid_mask, upstream, value,
    x_gradient, y_gradient, middle, histogram, None, limits)."""
    none = 10
    masks = [_PLACES[name] for name in table.masks]
    outputs = [_PLACES.get(name, none) for name in table.outputs]
    if "value" not in table.outputs:  # the value is a histogram, or a smoothed image
        outputs[0] = _PLACES["value"]
    return operator.itemgetter(*range(len(table.operands)), *masks, *outputs)


def is_scalar(described: str) -> bool:
    """True if the result is one number. It reads the text, as torch.compile traces no struct."""
    if " sums=1" in described:
        return False
    return " reduction=mean" in described or " reduction=sum" in described


@functools.lru_cache(maxsize=1024)
def parse(described: str) -> Measure:
    return Measure(described)


Described = Optional[c_abi.Tensor]


def run(
    measure: Measure,
    tensors: Sequence[Described],
    stream: int = 0,
    most_threads: int = 0,
    histogram: Described = None,
    limits: Described = None,
    middle: Described = None,
) -> None:
    """One pass over (x, y, mask, valid_mask, upstream, value, x_gradient, y_gradient).

    histogram, limits: for mutual_information, those of the whole image of which x and y are a part.
    middle: for ssim, that of the whole volume.

    The caller allocates value and gradients; None leaves one out. Raises what the library refuses.
    The interpreter's lock is released during the call.
    """
    arranged = list(measure.arrange((*tensors, middle, histogram, None, limits)))
    if measure.with_means:
        value = tensors[_PLACES["value"]]
        assert value is not None
        arranged[-4:] = _blocks(value, means_of_a_factor(measure.operation))
    if most_threads == 0:
        threads.follow_worker()
    c_abi.call(measure.index, arranged, measure.options_address, stream, most_threads)


def means_of_a_factor(operation: str) -> int:
    """The number of means that libvmaf's enable_lcs prints for luminance: one for each scale."""
    return 5 if operation == "float_ms_ssim" else 1


def _blocks(result: c_abi.Tensor, means: int) -> tuple[c_abi.Tensor, ...]:
    """The value and the means of its three factors, one behind the other in a dense f64 result."""
    leading = [result.shape[axis] for axis in range(1, result.ndim)]
    pairs, data = math.prod(leading), result.data + result.byte_offset
    blocks = []
    for first, shape in (
        (0, leading),
        *((1 + factor * means, leading + [means] * (means > 1)) for factor in range(3)),
    ):
        strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        pointer = data + 8 * first * pairs
        blocks.append(c_abi.tensor(pointer, shape, strides, "float64", result.device))
    return tuple(blocks)

# SPDX-License-Identifier: Apache-2.0
"""SSIM by kernels on Apple's and Intel's GPUs: value, map and gradients of images.

The kernels, and this plan of their calls, are those of src/ssim/vulkan/queue.cc: sliding_window for
value, map and gradients, totals for the values of a reduction, fold for gradients under padding
reflect and replicate.
"""

from __future__ import annotations

import functools
import math
import struct
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor

from .._library.measures import Measure, parse, text
from .decomposition import data_range_of, level_mean
from .gpu_modules import can_launch, launch, module, whole_storage
from .windows import taps_of

_LARGEST_RADIUS = 5
_COLUMNS, _FOLD_COLUMNS, _BATCH, _VECTOR = 128, 64, 4, 4
_DTYPES = {torch.uint8: 0, torch.float16: 2, torch.bfloat16: 3, torch.float32: 4}  # DType's numbers
_PADDINGS = ("valid", "same", "reflect", "replicate", "renormalize")
_FOLDED = ("reflect", "replicate")
_HAS_MAP, _HAS_L1, _UPSTREAM_OF_PLANES, _UPSTREAM_OF_MAP, _CONTRAST = 1, 2, 4, 8, 16
# Specialization constants of sliding_window.comp.
_THREADS, _DTYPE, _GRADIENTS, _RADIUS_X, _RADIUS_Y, _FORM = range(6)
_IN_VECTORS, _OF_SUMS, _GRADIENT_DTYPE, _UPSTREAM_DTYPE = range(6, 10)


def takes(measure: Measure, x: Tensor) -> bool:
    """True if the kernels compute this measure, SSIM or MS-SSIM, of images without masks."""
    if measure.operation not in ("ssim", "ms_ssim") or x.dim() != 4 or x.dtype not in _DTYPES:
        return False
    elements = x.untyped_storage().nbytes() // x.element_size()
    return (
        max(measure.window_size[1:]) <= 2 * _LARGEST_RADIUS + 1
        and elements < 2**31  # the kernels count in 32 bits
        and not measure.in_float64
        and measure.values.get("rows") is None
        and can_launch(x.device)
        and module("ssim/sliding_window") is not None
    )


class _Layout(NamedTuple):
    """A tensor as the kernels see it: the first element, and strides of images, channels, rows and
    columns, in elements of its storage."""

    offset: int = 0
    image: int = 0
    channel: int = 0
    row: int = 0
    column: int = 0

    def is_in_fours(self) -> bool:
        return self.column == 1 and all(each % 4 == 0 for each in self[:4])


@functools.lru_cache(maxsize=256)
def _on_device(layouts: tuple[_Layout, ...], device: torch.device) -> Tensor:
    """The layouts as the kernel reads them. A training step finds them there from the one before."""
    numbers = [number for layout in layouts for number in layout]
    return torch.tensor(numbers, dtype=torch.int32, device=device)


def _layout(tensor: Tensor) -> _Layout:
    return _Layout(int(tensor.storage_offset()), *tensor.stride())


def _in_float32(taps: list[float]) -> list[float]:
    """Taps that add up to 1 in f32, in any order; by their distance from the centre."""
    rounded = [math.floor(tap * 2**24 + 0.5) * 2.0**-24 for tap in taps]
    middle = len(taps) // 2
    rounded[middle] += 1 - math.fsum(rounded)
    half = rounded[middle:]
    return half + [0.0] * (_LARGEST_RADIUS + 1 - len(half))


class _Gradient(NamedTuple):
    """A gradient, and where the kernel writes it: there, or to padded planes that are folded."""

    result: Tensor
    written: Tensor
    layout: _Layout
    is_in_vectors: bool


class _Pass:
    """One pass over images x and y, which have no masks."""

    def __init__(self, measure: Measure, x: Tensor, y: Tensor, is_contrast: bool) -> None:
        self.measure, self.x, self.y = measure, x, y
        self.images, self.channels, self.height, self.width = x.shape
        self.planes = self.images * self.channels
        size_y, size_x = measure.window_size[1:]
        self.radius_y, self.radius_x = size_y // 2, size_x // 2
        self.padding = measure.padding
        self.is_contrast = is_contrast
        self.reduces = measure.reduction != "none"
        is_valid = self.padding == "valid"
        self.map_height = self.height - (2 * self.radius_y if is_valid else 0)
        self.map_width = self.width - (2 * self.radius_x if is_valid else 0)

    def planes_each(self) -> int:
        """The number of planes that a result is reduced from."""
        return {"per_channel": 1, "per_image": self.channels}.get(
            self.measure.reduction, self.planes
        )

    def gradient(self, image: Tensor) -> _Gradient:
        # The last word of 16-bit elements is written as a whole.
        result = torch.empty_like(image)
        if self.padding not in _FOLDED:
            layout = _layout(result)
            is_dense = result.dtype == torch.float32 and self.width % _VECTOR == 0
            return _Gradient(result, result, layout, is_dense and layout.is_in_fours())
        rows = self.height + 2 * self.radius_y
        pitch = _parts(self.width + 2 * self.radius_x, _VECTOR) * _VECTOR
        padded = self.x.new_empty(self.planes * rows * pitch, dtype=torch.float32)
        first = self.radius_y * pitch + self.radius_x
        layout = _Layout(first, self.channels * pitch * rows, pitch * rows, pitch, 1)
        return _Gradient(result, padded, layout, True)

    def plan(self, has_gradient: bool) -> tuple[int, int, int]:
        """Rows of a segment, strips and segments, as in queue.cc."""
        rim = (2 if has_gradient else 1) * self.radius_x
        is_padded = has_gradient and self.padding in _FOLDED
        columns = self.width + (2 * self.radius_x if is_padded else 0)
        all_rows = self.height + (2 * self.radius_y if is_padded else 0)
        strips = _parts(columns, _COLUMNS - 2 * rim)
        wanted = min(max(_parts(strips * self.planes * all_rows, 3072), 48), 256)
        segments = _parts(all_rows, _parts(wanted, _BATCH) * _BATCH)
        rows = _parts(_parts(all_rows, segments), _BATCH) * _BATCH
        return rows, strips, _parts(all_rows, rows)

    def push(self, rows: int, options: int) -> bytes:
        measure, is_mean = self.measure, self.measure.reduction not in ("none", "sum")
        windows = self.planes_each() * self.map_height * self.map_width if is_mean else 1
        pixels = self.planes_each() * self.height * self.width if is_mean else 1
        c1, c2 = _doubled_constants(measure, self.x)
        weight = measure.ssim_weight if measure.form == "loss" else -measure.ssim_weight
        taps_y, taps_x = (_in_float32(taps_of(measure, axis)) for axis in (1, 2))
        return struct.pack(
            "f6i2f6f6f6f",
            *(1.0, self.width, self.height, self.channels, rows),
            *(_PADDINGS.index(self.padding), options, c1, c2, *taps_x, *taps_y),
            *(self.bias(), weight, measure.l1_weight * windows / pixels),
            *(4 * weight / windows, measure.l1_weight / pixels, 1.0),
        )

    def bias(self) -> float:
        return 0.0 if self.measure.form == "loss" else self.measure.ssim_weight

    def run(
        self, upstream: Optional[Tensor], with_value: bool, of_x: bool, of_y: bool
    ) -> tuple[Optional[Tensor], Optional[Tensor], Optional[Tensor]]:
        """The value, and the gradients by x and by y."""
        # SSIM and |x - y| are symmetric: a gradient by y alone is one by x of swapped images.
        is_swapped = of_y and not of_x
        x, y = (self.y, self.x) if is_swapped else (self.x, self.y)
        has_gradient = of_x or of_y
        by_x = self.gradient(x) if has_gradient else None
        by_y = self.gradient(y) if of_x and of_y else None
        new = self.x.new_empty
        shape = self.measure.result_shape(self.x.shape)
        value = new(shape, dtype=torch.float32) if with_value else None
        options = _HAS_L1 if self.measure.l1_weight != 0 else 0
        options |= _CONTRAST if self.is_contrast else 0
        layouts = [_layout(x), _layout(y)]
        layouts += [_Layout() if each is None else each.layout for each in (by_x, by_y)]
        map_layout, upstream_layout = _Layout(), _Layout()
        if value is not None and not self.reduces:
            options, map_layout = options | _HAS_MAP, _layout(value)
        if upstream is not None and has_gradient:
            if upstream.dtype not in _DTYPES:
                upstream = upstream.float()
            options |= _UPSTREAM_OF_PLANES if self.reduces else _UPSTREAM_OF_MAP
            upstream_layout = self.upstream_layout(upstream)
        layouts += [map_layout, upstream_layout]
        rows, strips, segments = self.plan(has_gradient)
        sums = new(self.planes * strips * segments, dtype=torch.float32)
        of_layouts = _on_device(tuple(layouts), self.x.device)
        form = 0
        if self.padding in ("valid", "same"):
            form = {0: 1, _HAS_L1: 2}.get(options, 0)
        # Vectors of images stand where the pixels do: not with positions beyond the image.
        images_in_vectors = (
            has_gradient
            and self.padding not in _FOLDED
            and x.dtype == torch.float32
            and self.width % _VECTOR == 0
            and all(layout.is_in_fours() for layout in layouts[:2])
        )
        in_vectors = 1 if images_in_vectors else 2
        if not all(each is None or each.is_in_vectors for each in (by_x, by_y)):
            in_vectors = 0
        of_map = sums if value is None or self.reduces else value
        to_x = sums if by_x is None else by_x.written
        to_y = sums if by_y is None else by_y.written
        buffers = [x, y, of_layouts, sums, of_map, sums if upstream is None else upstream]
        buffers += [to_x, to_y, x, y, to_x, to_y]
        constants = {
            _THREADS: _COLUMNS,
            _DTYPE: _DTYPES[x.dtype],
            _GRADIENTS: int(has_gradient) + int(by_y is not None),
            _RADIUS_X: self.radius_x,
            _RADIUS_Y: self.radius_y,
            _FORM: form,
            _IN_VECTORS: in_vectors,
            _OF_SUMS: 0,
            _GRADIENT_DTYPE: 4 if by_x is None else _DTYPES[by_x.written.dtype],
            _UPSTREAM_DTYPE: 4 if upstream is None else _DTYPES[upstream.dtype],
        }
        launch(
            "ssim/sliding_window",
            constants,
            [whole_storage(each) for each in buffers],
            self.push(rows, options),
            (strips, segments, self.planes),
        )
        for each in (by_x, by_y):
            if each is not None and each.written is not each.result:
                self.fold(each)
        if value is not None and self.reduces:
            self.add_up(sums, strips * segments, value)
        first, second = (None if each is None else each.result for each in (by_x, by_y))
        return (value, None, first) if is_swapped else (value, first, second)

    def upstream_layout(self, upstream: Tensor) -> _Layout:
        """One number a plane, or one a window."""
        if not self.reduces:
            return _layout(upstream)
        strides = [*upstream.stride(), 0, 0]
        return _Layout(int(upstream.storage_offset()), strides[0], strides[1])

    def add_up(self, sums: Tensor, tiles: int, value: Tensor) -> None:
        windows = self.planes_each() * self.map_height * self.map_width
        is_sum = self.measure.reduction == "sum"
        bias = self.bias() * windows if is_sum else self.bias()
        factor = 1.0 if is_sum else 1 / windows
        push = struct.pack("fiddii", 1.0, self.planes_each() * tiles, bias, factor, 0, 0)
        results = self.planes // self.planes_each()
        launch(
            "gpu/launch/totals", {}, [whole_storage(each) for each in (sums, value)], push, (results, 1, 1)
        )

    def fold(self, gradient: _Gradient) -> None:
        push = struct.pack(
            "f11i",
            *(1.0, self.width, self.height, self.channels, self.radius_x, self.radius_y),
            *(_PADDINGS.index(self.padding), *_layout(gradient.result)),
        )
        launch(
            "ssim/fold",
            {0: _DTYPES[gradient.result.dtype], 1: _VECTOR},
            [whole_storage(gradient.written), whole_storage(gradient.result)],
            push,
            (_parts(self.width, _FOLD_COLUMNS), self.height, self.planes),
        )


def _parts(count: int, of: int) -> int:
    return -(-count // of)


def _doubled_constants(measure: Measure, x: Tensor) -> tuple[float, float]:
    """2·C1 and 2·C2; neither is 0, so that no quotient is 0/0."""
    data_range = data_range_of(measure, x)
    c1, c2 = (measure.k1 * data_range) ** 2, (measure.k2 * data_range) ** 2
    if measure.values.get("sample_covariance"):
        pixels = math.prod(measure.window_size[1:])
        c2 *= (pixels - 1) / pixels
    return max(1e-37, 2 * c1), max(1e-37, 2 * c2)


def evaluate(
    measure: Measure,
    x: Tensor,
    y: Tensor,
    upstream: Optional[Tensor] = None,
    with_value: bool = True,
    of_x: bool = False,
    of_y: bool = False,
    is_contrast: bool = False,
) -> tuple[Optional[Tensor], Optional[Tensor], Optional[Tensor]]:
    """The value and the gradients by x and y, of those that are asked for.

    is_contrast: of contrast and structure alone, as the finer levels of MS-SSIM.
    """
    return _Pass(measure, x, y, is_contrast).run(upstream, with_value, of_x, of_y)


@functools.lru_cache(maxsize=64)
def _of_level(window: tuple[int, ...], sigma: tuple[float, ...], *others: Any) -> Measure:
    data_range, k1, k2, padding = others
    return parse(
        text(
            "ssim",
            2,
            data_range=data_range,
            window_size=window[1:],
            sigma=sigma[1:],
            k1=k1,
            k2=k2,
            padding=padding,
            reduction="per_channel",
        )
    )


class _LevelMean(torch.autograd.Function):
    """The mean of each plane's contrast and structure, or of its SSIM."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, measure: Measure, is_last: bool) -> Tensor:
        ctx.save_for_backward(x, y)
        ctx.measure, ctx.is_last = measure, is_last
        value = evaluate(measure, x, y, is_contrast=not is_last)[0]
        assert value is not None
        return value.flatten()

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
        x, y = ctx.saved_tensors
        of_x, of_y = ctx.needs_input_grad[:2]
        if torch.is_grad_enabled():  # a derivative of the gradient may be asked for
            value = level_mean(x, y, ctx.measure, ctx.measure.data_range, ctx.is_last)
            wanted = [image for image, of in ((x, of_x), (y, of_y)) if of]
            found = iter(torch.autograd.grad(value, wanted, upstream, create_graph=True))
            gradients = [next(found) if of else None for of in (of_x, of_y)]
        else:
            gradients = list(
                evaluate(
                    ctx.measure, x, y, upstream[:, None], False, of_x, of_y, not ctx.is_last
                )[1:]
            )
        return *gradients, None, None


def mean_of_level(
    x: Tensor, y: Tensor, measure: Measure, data_range: float, is_last: bool
) -> Tensor:
    """decomposition.level_mean() of planes in f32, by the kernels."""
    options = (data_range, measure.k1, measure.k2, measure.padding)
    level = _of_level(tuple(measure.window_size), tuple(measure.sigma), *options)
    result: Tensor = _LevelMean.apply(x, y, level, is_last)  # type: ignore[no-untyped-call]
    return result

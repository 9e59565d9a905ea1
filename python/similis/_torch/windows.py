# SPDX-License-Identifier: Apache-2.0
"""Averages of images under a window in torch's own operators, for the decomposition.

Images are planes here: [B,1,…], B their images times their channels.

Variances are averages of squares less squares of averages in f64. In f32 that difference would lose
all digits on bright ground, so there moments() takes them axis by axis, by the law of total
variance: the average of the variances along one axis, and the variance of the averages along it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Optional

import torch
import torch.nn.functional as F
from torch import Tensor

from .._library.measures import Measure
from .tensors import is_memory, nobody_looks

_TORCH_PADDINGS = {"reflect": "reflect", "replicate": "replicate"}


def gaussian_taps(size: int, sigma: float) -> list[float]:
    taps = [math.exp(-((at - size // 2) ** 2) / (2 * sigma**2)) for at in range(size)]
    total = math.fsum(taps)
    return [tap / total for tap in taps]


def taps_of(measure: Measure, axis: int) -> list[float]:
    """The window along one axis of (z, y, x), in f64."""
    size, sigma = measure.window_size[axis], measure.sigma[axis]
    if measure.values.get("window") == "box":
        return [1 / size] * size
    return gaussian_taps(size, sigma)


def _convolved(planes: Tensor, weights: Tensor) -> Tensor:
    """One axis filtered by weights, which have as many axes as planes.

    A convolution with one channel a group is fast everywhere but in f64 on a CPU, where torch runs
    the groups one after the other.
    """
    convolve = F.conv2d if planes.dim() == 4 else F.conv3d
    if planes.device.type == "cpu" and planes.dtype == torch.float64:
        return convolve(planes, weights)
    count = planes.shape[0]
    weights = weights.expand(count, *[-1] * (weights.dim() - 1))
    return convolve(planes.transpose(0, 1), weights, groups=count).transpose(0, 1)


def _filtered_at_once(planes: Tensor, taps: Sequence[Tensor]) -> Tensor:
    """Planes in f32 on a CPU, whose pixels at one place become neighbours in memory: torch takes
    two thirds of the time for them."""
    count = planes.shape[0]
    result = planes.transpose(0, 1).contiguous(memory_format=torch.channels_last)
    for axis, weights in enumerate(taps):
        shape = [1] * 4
        shape[2 + axis] = weights.numel()
        windows = weights.reshape(shape).expand(count, -1, -1, -1)
        result = F.conv2d(result, windows, groups=count)
    return result.transpose(0, 1).contiguous()


class _Filter(torch.autograd.Function):
    """Averages under symmetric windows, or their adjoint. The gradient of each is the other.

    torch's own gradient of a convolution runs through slower kernels.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(planes: Tensor, is_adjoint: bool, *taps: Tensor) -> Tensor:
        if is_adjoint:
            planes = F.pad(
                planes, [each for t in reversed(taps) for each in [t.numel() - 1] * 2]
            )
        if (
            planes.dim() == 4
            and planes.dtype == torch.float32
            and planes.device.type == "cpu"
            and nobody_looks()
            and is_memory(planes)
        ):
            return _filtered_at_once(planes, taps)
        for axis, weights in enumerate(taps):
            shape = [1] * planes.dim()
            shape[2 + axis] = weights.numel()
            planes = _convolved(planes, weights.reshape(shape))
        return planes

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, ctx.is_adjoint, *taps = inputs
        ctx.save_for_backward(*taps)
        ctx.save_for_forward(*taps)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
        taps = ctx.saved_tensors
        return _filtered(upstream, not ctx.is_adjoint, taps), None, *[None] * len(taps)

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: Any) -> Tensor:
        return _filtered(tangent, ctx.is_adjoint, ctx.saved_tensors)


def _filtered(planes: Tensor, is_adjoint: bool, taps: Sequence[Tensor]) -> Tensor:
    result: Tensor = _Filter.apply(planes, is_adjoint, *taps)  # type: ignore[no-untyped-call]
    return result


def filtered(planes: Tensor, taps: Sequence[Tensor]) -> Tensor:
    """[B,1,…] averaged under the windows that lie inside, one axis after the other."""
    return _filtered(planes, False, taps)


def _merged(
    axis: int,
    taps: Sequence[float],
    means: Sequence[Tensor],
    covariances: Sequence[Optional[Tensor]],
    pairs: Sequence[tuple[int, int]],
    weight: Optional[Tensor],
) -> tuple[list[Tensor], list[Any], Optional[Tensor]]:
    """Means and covariances of the pixels that a window along this axis sees, from those of each.

    weight: of each pixel; None: all are 1. If the window sees no weight, both are 0.
    """
    count = means[0].shape[axis] - len(taps) + 1

    def at(planes: Tensor, tap: int) -> Tensor:
        return planes.narrow(axis, tap, count)

    shares: list[Any] = list(taps)
    total: Optional[Tensor] = None
    if weight is not None:
        parts = [tap * at(weight, i) for i, tap in enumerate(taps)]
        total = _sum(parts)
        divisor = torch.where(total > 0, total, 1.0)
        shares = [part / divisor for part in parts]
    merged = [_sum([share * at(m, i) for i, share in enumerate(shares)]) for m in means]
    results = []
    for (first, second), inner in zip(pairs, covariances):
        terms = []
        for i, share in enumerate(shares):
            deviation = at(means[first], i) - merged[first]
            other = deviation
            if first != second:
                other = at(means[second], i) - merged[second]
            term = deviation * other
            terms.append(share * (term if inner is None else at(inner, i) + term))
        results.append(_sum(terms))
    if total is not None:  # deviations from the mean of no pixel are none
        exists = total > 0
        results = [torch.where(exists, each, 0.0) for each in results]
    return merged, results, total


def _sum(terms: Sequence[Tensor]) -> Tensor:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


class Window:
    """Averages of images under a window, with padding and a mask of valid pixels."""

    def __init__(self, measure: Measure, like: Tensor, valid: Optional[Tensor]) -> None:
        spatial = like.dim() - 2
        self.numbers = [taps_of(measure, axis) for axis in range(3 - spatial, 3)]
        self.taps = [
            torch.tensor(each, dtype=like.dtype, device=like.device) for each in self.numbers
        ]
        self.padding = measure.padding
        self.rows: Optional[Sequence[int]] = measure.values.get("rows")
        self.centres = measure.centres(like.shape) if self.rows else None
        self.valid = valid
        self.weight: Optional[Tensor] = None
        if valid is not None:
            self.weight = filtered(
                self._padded(valid, outside=float(self.padding == "same")), self.taps
            )
        elif self.padding == "renormalize":
            self.weight = filtered(self._padded(torch.ones_like(like)), self.taps)

    def _padded(self, planes: Tensor, outside: float = 0.0) -> Tensor:
        if self.padding == "valid":
            return planes
        radii = [weights.numel() // 2 for weights in reversed(self.taps)]
        around = [radius for radius in radii for _ in range(2)]
        if self.padding in _TORCH_PADDINGS:
            return F.pad(planes, around, mode=_TORCH_PADDINGS[self.padding])
        return F.pad(planes, around, value=outside)

    def averages(self, *images: Tensor) -> tuple[Tensor, ...]:
        """The averages of several images of one shape, in one pass."""
        count = images[0].shape[0]
        if self.valid is not None:
            images = tuple(planes * self.valid for planes in images)
        sums = filtered(self._padded(torch.cat(images)), self.taps).split(count)
        if self.weight is None:
            return tuple(sums)
        weight = torch.where(self.weight > 0, self.weight, 1.0)
        return tuple(each / weight for each in sums)

    def moments(
        self, images: Sequence[Tensor], pairs: Sequence[tuple[int, int]]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """The averages of the images, and the covariances of these pairs of them, in f32."""
        weight: Optional[Tensor] = None
        if self.valid is not None:
            weight = self._padded(self.valid, outside=float(self.padding == "same"))
            images = [planes * self.valid for planes in images]
        elif self.padding == "renormalize":
            weight = self._padded(torch.ones_like(images[0]))
        means, covariances = [self._padded(each) for each in images], [None] * len(pairs)
        for axis, taps in enumerate(self.numbers, start=2):
            means, covariances, weight = _merged(axis, taps, means, covariances, pairs, weight)
        return means, covariances  # type: ignore[return-value]

    def cropped(self, planes: Tensor) -> Tensor:
        """The part of a mask that belongs to the map."""
        if self.padding != "valid":
            return self.counted(planes)
        for axis, weights in enumerate(self.taps, start=2):
            radius = weights.numel() // 2
            planes = planes.narrow(axis, radius, planes.shape[axis] - 2 * radius)
        return self.counted(planes)

    def counted(self, on_map: Tensor) -> Tensor:
        """The rows of a map whose windows count."""
        if self.centres is None:
            return on_map
        first, end = self.centres
        cut = self.taps[0].numel() // 2 if self.padding == "valid" else 0
        return on_map.narrow(2, first - cut, end - first)

    def counted_pixels(self, planes: Tensor) -> Tensor:
        """The pixels of the rows that count."""
        if self.rows is None:
            return planes
        return planes.narrow(2, self.rows[0], self.rows[1] - self.rows[0])

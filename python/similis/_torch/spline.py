# SPDX-License-Identifier: Apache-2.0
"""The cubic B-spline in torch's own operators: weights of four voxels, and the coefficients of the
spline that goes through an image's voxels."""

from __future__ import annotations

import functools

import torch
from torch import Tensor


def cubic_weights(f: Tensor) -> list[Tensor]:
    """Of the voxels -1, 0, 1 and 2 from the one before a position f above it."""
    g = 1 - f
    return [
        g * g * g / 6,
        (4 - 3 * f * f * (2 - f)) / 6,
        (4 - 3 * g * g * (2 - g)) / 6,
        f * f * f / 6,
    ]


@functools.lru_cache(maxsize=16)
def _inverse(count: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """From voxels along an axis to coefficients: the inverse of (c[i-1] + 4c[i] + c[i+1]) / 6,
    mirrored at both ends. It depends on the count alone, and is computed on the CPU in f64."""
    matrix = torch.zeros(count, count, dtype=torch.float64, device="cpu")
    for i in range(count):
        for neighbour, weight in ((i - 1, 1 / 6), (i, 4 / 6), (i + 1, 1 / 6)):
            at = abs(neighbour)
            matrix[i, at if at < count else 2 * (count - 1) - at] += weight
    return torch.linalg.inv(matrix).to(dtype).to(device)


def prefiltered(image: Tensor) -> Tensor:
    """The coefficients along every spatial axis of [N,C,…]."""
    for axis in range(2, image.dim()):
        count = image.shape[axis]
        if count > 1:
            matrix = _inverse(count, image.dtype, image.device)
            image = (image.movedim(axis, -1) @ matrix.T).movedim(-1, axis)
    return image

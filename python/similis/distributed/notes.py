# SPDX-License-Identifier: Apache-2.0
"""A GPU's kernel notes voxels whose cells lie in rows that it does not have."""

from __future__ import annotations

import torch
from torch import Tensor

_LONGEST = 1 << 19  # rows, columns and planes that a GPU's fast path takes
_MOST_BLOCKS = 65535


class Notes:
    """Notes of voxels that look elsewhere, for each 8 rows of the output, and of one that looks
    beyond what is reached and so becomes NaN. Nobody waits for them."""

    def __init__(self, rows: int, device: torch.device) -> None:
        self.tensor = torch.zeros([rows + 1, 2], device=device)

    def beyond(self) -> Tensor:
        """True if a voxel was beyond what is reached."""
        return self.tensor[-1, 1] > 1


def are_taken(image: Tensor, field: Tensor) -> bool:
    """True if a GPU's fast path surely takes the linear values of an image's own rows at A·x +
    u(x), and so notes them."""
    space, of_field = list(image.shape[2:]), list(field.shape[1:-1])
    blocks = (of_field[0] // 4 + 1) * max(image.shape[0], field.shape[0]) * image.shape[1]
    return (
        image.is_cuda
        and image.dtype in (torch.float32, torch.float16, torch.bfloat16)
        and field.dtype == torch.float32
        and image.is_contiguous()
        and field.is_contiguous()
        and min(space) >= 2
        and max(space) < _LONGEST
        and image[0, 0].numel() < 1 << 31
        and field[0].numel() < 1 << 31
        and max(of_field) <= _MOST_BLOCKS
        and blocks <= _MOST_BLOCKS
    )

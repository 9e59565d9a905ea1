# SPDX-License-Identifier: Apache-2.0
"""Refusals of images and masks in slabs, which all ranks agree on before pixels move.

A mask's weights are looked at here too: the library would refuse them on one rank while the others
wait for its rows.
"""

from __future__ import annotations

import math
from typing import Any, Optional

import torch
from torch import Tensor

from .._functions.layouts import with_taken_dtypes
from .agreement import Agreement
from .slabs import Slabs


def require_images(agreement: Agreement, x: Any, y: Any, slabs: Slabs) -> None:
    for name, image in (("x", x), ("y", y)):
        if isinstance(image, Tensor) and image.dim() not in (4, 5):
            raise ValueError(
                f"{name} has shape {list(image.shape)}; it must be [N,C,H,W] or [N,C,D,H,W]"
            )
        agreement.array(name, image, slabs, 2)
    if x.shape != y.shape or x.dtype != y.dtype or x.device != y.device:
        raise ValueError(
            f"y is {y.dtype} {list(y.shape)}; it must be as x, {x.dtype} {list(x.shape)}"
        )


def taken_images(
    operation: str, x: Tensor, y: Tensor, options: dict[str, Any], has_range: bool
) -> tuple[Tensor, Tensor]:
    """The images in a dtype that the library takes; options get the data_range of the one they had,
    if the operation has one and none is given."""
    wants_range = has_range and options.get("data_range") is None
    of = operation.removesuffix("_loss")
    value_range, x, y = with_taken_dtypes(of, wants_range, x, y)
    if value_range is not None:
        options["data_range"] = value_range
    return x, y


def require_mask(agreement: Agreement, name: str, mask: Any, x: Tensor, slabs: Slabs) -> None:
    """A mask in slabs as x, with N and C left out or 1; or None."""
    missing = x.dim() - mask.dim() if isinstance(mask, Tensor) else 0
    fits = 0 <= missing <= 2
    if fits:
        agreement.array(name, mask, slabs, 2 - x.dim(), may_be_none=True)
        if mask is None:
            return
        fits = all(
            extent == x.shape[axis] or (axis < 2 and extent == 1)
            for axis, extent in enumerate(mask.shape, missing)
        )
    if not fits:
        raise ValueError(
            f"{name} has shape {list(mask.shape)}; it must be the images' {list(x.shape)}, with N "
            "and C left out or 1 where it is the same for all"
        )
    if mask.device != x.device:
        raise ValueError(f"{name} is on {mask.device}; it must be on {x.device} as x is")
    if mask.requires_grad:
        raise ValueError(f"{name} asks for a gradient; only x and y can have one")
    if not mask.is_cuda and mask.is_floating_point() and mask.numel():
        least, largest = (float(each) for each in torch.aminmax(mask))
        if not (least >= 0 and largest < math.inf):
            bad = mask[~((mask >= 0) & (mask < math.inf))][0]
            raise ValueError(
                f"{name} holds {float(bad):g}; each weight must be a finite number of 0 or more"
            )


def as_five(mask: Tensor, x: Tensor) -> Tensor:
    """A mask with all axes of x."""
    return mask.reshape([1] * (x.dim() - mask.dim()) + list(mask.shape))


def as_bytes(mask: Optional[Tensor]) -> Optional[Tensor]:
    """A boolean mask as the library takes it."""
    return mask.view(torch.uint8) if mask is not None and mask.dtype == torch.bool else mask

# SPDX-License-Identifier: Apache-2.0
"""Masks as FireANTs gives them to its losses: the last channel of both images."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def require_mode(name: str, mode: Any) -> None:
    if mode not in ("mult", "max"):
        raise ValueError(f"{name}: mask_mode is {mode!r}; it must be 'mult' or 'max'")


def separated(loss: str, pred: Tensor, target: Tensor, mode: str) -> tuple[Tensor, Tensor, Tensor]:
    """The images, and their masks combined by product ("mult") or the larger ("max")."""
    for name, image in (("pred", pred), ("target", target)):
        if image.dim() < 3 or image.shape[1] < 2:
            raise ValueError(
                f"{loss}: {name} has shape {list(image.shape)}; with masked its last channel is "
                "the mask, so it must have at least 2"
            )
    masks = pred[:, -1:].detach(), target[:, -1:].detach()
    mask = masks[0] * masks[1] if mode == "mult" else torch.maximum(*masks)
    return pred[:, :-1], target[:, :-1], mask

# SPDX-License-Identifier: Apache-2.0
"""Labels of images in slabs: channels that the metric dice compares, and overlaps over all ranks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Optional

import torch
from torch import Tensor

from ..agreement import Agreement
from ..gathering import gathered_objects, sum_of_ranks
from ..slabs import Slabs
from .images import Image
from .linear import own_rows_of

_LARGEST = 1 << 24  # f32 holds the integers up to here


def labels_of(
    agreement: Agreement, name: str, given: Any, image: Tensor, slabs: Slabs
) -> Optional[Tensor]:
    """Own rows of a map of labels as [1,1,z,Y,X]; it lies as its image."""
    labels = own_rows_of(agreement, name, given, image, slabs)
    if labels is not None and labels.is_floating_point():
        wrong = labels != labels.floor()
        if bool(wrong.any()):
            raise ValueError(f"{name} holds {float(labels[wrong][0]):g}; labels are integers")
    return labels


def _distinct(labels: list[Tensor], slabs: Slabs) -> list[set[float]]:
    """The labels but 0 of each map, of all ranks."""
    mine = [set(torch.unique(each).tolist()) - {0} for each in labels]
    every = gathered_objects(slabs, mine)
    return [set().union(*(of_rank[k] for of_rank in every)) for k in range(len(labels))]


def channels_of(
    fixed: tuple[Tensor, Image], moving: tuple[Tensor, Image]
) -> tuple[Image, Image]:
    """Both images' labels as images: a channel for each label that both have, 1 inside it."""
    found = [_distinct([each], image.slabs)[0] for each, image in (fixed, moving)]
    for name, labels in zip(("fixed", "moving"), found):
        largest = max(labels, key=abs, default=0)
        if abs(largest) > _LARGEST:
            raise ValueError(
                f"register: {name}_labels holds {largest:.0f}; labels are integers up to 16777216"
            )
    both = sorted(found[0] & found[1])
    if not both:
        raise ValueError("register: fixed_labels and moving_labels have no label in common")

    def channels(labels: Tensor, image: Image) -> Image:
        values = image.values.new_empty([1, len(both), *image.values.shape[2:]])
        for k, each in enumerate(both):
            values[:, k] = labels[:, 0] == each
        return replace(image, values=values if image.mask is None else values * image.mask)

    return channels(*fixed), channels(*moving)


def overlaps(fixed: Tensor, others: dict[str, Tensor], slabs: Slabs) -> dict[str, dict[str, float]]:
    """2·|a ∩ b| / (|a| + |b|) of each label but 0 of fixed and each other map of own rows."""
    labels = sorted(set().union(*_distinct([fixed, *others.values()], slabs)))
    known = torch.tensor([*labels, 0], dtype=torch.float64, device=fixed.device).unique()

    def counts(values: Tensor) -> Tensor:
        places = torch.searchsorted(known, values.flatten().double())
        return torch.bincount(places, minlength=len(known))

    rows = [counts(fixed)]
    for other in others.values():
        rows += [counts(other), counts(fixed[fixed == other])]
    whole = sum_of_ranks(slabs, torch.stack(rows).cpu()).tolist()
    result: dict[str, dict[str, float]] = {}
    for k, label in enumerate(known.tolist()):
        if label == 0:
            continue
        found = {}
        for i, when in enumerate(others):
            total, both = whole[0][k] + whole[1 + 2 * i][k], whole[2 + 2 * i][k]
            found[when] = 2 * both / total if total else 0.0
        result[f"{label:g}" if abs(label) < 1e6 else f"{label:.0f}"] = found
    return result

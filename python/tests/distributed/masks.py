# SPDX-License-Identifier: Apache-2.0
"""Masks in slabs: of every shape and dtype, with holes, without any weight on a rank or at all."""

import pytest
import torch
import torch.distributed as dist
from cases import DEVICE, check, check_measure, noise, own, splits, weights_of

import similis
import similis.distributed as sd
from similis.distributed import Slabs

LEVELS = {"window_size": 3, "weights": (0.4, 0.6)}
# Every function that takes a mask, with options, and whether the images may hold NaN where it is 0.
MASKS = [
    ("mse", "mask", {}, True),
    ("mae", "mask", {}, True),
    ("psnr", "mask", {"data_range": 3.0}, True),
    ("ssim", "mask", {"window_size": 3}, False),
    ("ssim", "valid_mask", {"window_size": 5, "padding": "same"}, True),
    ("ssim_loss", "valid_mask", {"window_size": 3}, True),
    ("l1_ssim", "mask", {"window_size": 3}, False),
    ("l1_ssim", "valid_mask", {"window_size": 3, "padding": "renormalize"}, True),
    ("lncc", "mask", {"window_size": 5}, False),
    ("lncc_loss", "valid_mask", {"window_size": 3, "padding": "valid"}, True),
    ("ms_ssim", "mask", LEVELS, False),
    ("ms_ssim_loss", "mask", LEVELS, False),
    ("mutual_information", "mask", {"range": (-2.0, 2.0)}, True),
    ("mutual_information_loss", "mask", {}, True),
]
SHAPE = (2, 2, 11, 6, 7)


def main():
    # All functions on 3 ranks, a third of them on other numbers.
    ranks = dist.get_world_size()
    for k, (name, mask, options, may_have_holes) in enumerate(MASKS):
        if ranks != 3 and k % 3 != ranks % 3:
            continue
        shapes_and_dtypes(k, name, mask, options)
        if may_have_holes:
            check_measure(name, options, shape=SHAPE, masks=(mask,), holes=True)
        without_weights(name, mask, options)
        integers(k, name, mask, options)
    if ranks == 3:
        reductions_and_maps()
    refusals()


def reductions_and_maps():
    for name, reduction in (("mse", "sum"), ("mae", "per_image"), ("psnr", "per_channel")):
        check_measure(name, {"reduction": reduction}, shape=SHAPE, masks=("mask",))
        for dtype in (torch.float64, torch.float16):
            check_measure(name, {}, dtype, (2, 1, 11, 9), masks=("mask",))
    both = {"window_size": 3, "reduction": "none"}
    for name in ("ssim", "lncc"):
        check_measure(name, both, shape=SHAPE, masks=("mask",))
        check_measure(name, both, shape=SHAPE, masks=("valid_mask",))


def shapes_and_dtypes(k, name, mask, options):
    """Two of each: the others are those of the functions before and behind."""
    n, c, *space = SHAPE
    shapes = (space, [1, *space], [c, *space], [1, 1, *space], [n, 1, *space], [n, c, *space])
    kinds = (torch.bool, torch.uint8, torch.float16, torch.float64)
    for at in (2 * k, 2 * k + 1):
        given, kind = weights_of(*shapes[at % 6]), kinds[at % 4]
        given = given > 0 if kind == torch.bool else (3 * given).to(kind)
        check_measure(name, options, shape=SHAPE, masks={mask: given})


def without_weights(name, mask, options):
    """No weight in the rows of some ranks, and none at all."""
    for rows in ((4, 8), (0, 11)):
        given = weights_of(*SHAPE[2:])
        given[rows[0] : rows[1]] = 0
        check_measure(name, options, shape=SHAPE, masks={mask: given})


def integers(k, name, mask, options):
    """Images of integers, which the library takes in another dtype, under masks."""
    generator = torch.Generator().manual_seed(1)
    x, y = (torch.randint(0, 99, SHAPE, generator=generator).to(DEVICE) for _ in range(2))
    kinds = (torch.uint8, torch.uint16, torch.int16, torch.int32, torch.bool)
    dtype = kinds[k % 5 if DEVICE.type == "cpu" else 0]
    if "ssim" in name:
        options = {**options, "data_range": 255}
    x, y, weights = x.to(dtype), y.to(dtype), weights_of(*SHAPE[2:])
    whole = getattr(similis, name)(x, y, **options, **{mask: weights})
    for slabs in splits(SHAPE[2]):
        given = {**options, mask: own(weights, slabs, 0)}
        value = getattr(sd, name)(own(x, slabs), own(y, slabs), slabs, **given)
        check(value, whole, 1e-6, name, mask, str(dtype), slabs.sizes)


def refusals():
    """All ranks refuse a bad weight in one rank's mask, and the group works on."""
    slabs = Slabs.even(8)
    if slabs.ranks == 1 or DEVICE.type == "cuda":
        return
    x, y = (own(noise(1, 2, 8, 8, 7, seed=k), slabs) for k in (1, 2))
    last = slabs.rank == slabs.ranks - 1
    for name, mask, options, _ in MASKS if slabs.ranks == 3 else MASKS[::4]:
        good = torch.ones(slabs.stop - slabs.start, 8, 7)
        bad = {"holds -1": good.clone(), "holds nan": good.clone(), "holds inf": good.clone()}
        for words, each in bad.items():
            each[-1, 3, 2] = float(words.split()[1])
        bad["has shape"] = good[:, :-1]
        bad["asks for a gradient"] = good.clone().requires_grad_()
        bad["is of type list"] = [1.0]
        for words, each in bad.items():
            kind = TypeError if words.endswith("list") and last else ValueError
            with pytest.raises((kind, ValueError), match=f"{name}: {mask} {words}|{mask} is torch"):
                getattr(sd, name)(x, y, slabs, **options, **{mask: each if last else good})
        value = getattr(sd, name)(x, y, slabs, **options, **{mask: good})
        every = [torch.zeros_like(value) for _ in range(slabs.ranks)]
        dist.all_gather(every, value)
        assert all(torch.equal(each, value) for each in every)
    with pytest.raises(ValueError, match="ssim: x is torch.int16|ssim: x is int16"):
        sd.ssim(x.to(torch.int16), y.to(torch.int16), slabs, window_size=3)

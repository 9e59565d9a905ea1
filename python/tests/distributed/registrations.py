# SPDX-License-Identifier: Apache-2.0
"""The greedy stage of registration on slabs against that of one process."""

import pytest
import torch
from cases import DEVICE, alike_on_all_ranks, noise, own, splits

import similis
import similis.distributed as sd
from similis.distributed import Slabs


def blobs(size, shift):
    ranges = [torch.arange(float(n), device=DEVICE) for n in size]
    z, y, x = torch.meshgrid(*ranges, indexing="ij")
    result = 0.01 * noise(*size, seed=9)
    for k in range(20):
        at = [n * (0.2 + 0.6 * ((k * s) % 1)) for n, s in zip(size, (0.618, 0.755, 0.57))]
        moved = (z - at[0] - shift, y - at[1], x - at[2] - 0.7 * shift)
        distance = torch.stack(moved).square().sum(0)
        result += (0.5 + (k * 0.37) % 1) * torch.exp(-distance / (0.1 * size[0]) ** 2)
    return result


def main():
    """The greedy stage of slabs moves voxels where that of one process does."""
    size, settings = (22, 18, 20), {"levels": (2, 1), "iterations": (5, 3)}
    fixed, moving = blobs(size, 0.0), blobs(size, 1.5)
    whole = similis.register(fixed, moving, stages=("deformable",), init="identity", **settings)
    wanted = torch.as_tensor(whole.warp)[None].to(DEVICE)
    assert float(wanted.abs().max()) > 1
    for slabs in (Slabs.even(size[0]), splits(size[0])[0]):
        f, m = (own(each[None, None], slabs) for each in (fixed, moving))
        found = sd.register(f, m, slabs, **settings)
        u = found.displacement
        assert u.shape == own(wanted, slabs, 1).shape
        if u.numel():
            difference = (u - own(wanted, slabs, 1)).abs()
            assert float(difference.max()) < 0.005, (slabs.sizes, float(difference.max()))
        losses = [each["loss"] for each in whole.history]
        assert len(found.history) == len(losses) == 8
        for (_, _, loss), expected in zip(found.history, losses):
            assert abs(loss - expected) < 1e-3, (slabs.sizes, loss, expected)
        assert found.history[-1][2] < found.history[0][2] - 0.2 and found.min_jacobian >= 0.1
        alike_on_all_ranks(torch.tensor([each[2] for each in found.history]))
    by_name(fixed, moving, settings)
    # A step far too long folds, and the guard mends or halves it, alike on all ranks.
    slabs = Slabs.even(size[0])
    f, m = (own(each[None, None], slabs) for each in (fixed, moving))
    found = sd.register(
        f, m, slabs, metrics=["mse"], levels=(1,), iterations=(4,), fluid=0.3, elastic=0.0,
        step=2.0, min_jacobian=0.4,
    )  # fmt: skip
    assert found.min_jacobian >= 0.4
    alike_on_all_ranks(torch.tensor([found.min_jacobian, *(each[2] for each in found.history)]))


def by_name(fixed, moving, settings):
    """similis.register() with slabs is that of similis.distributed, in millimetres."""
    slabs = Slabs.even(fixed.shape[0])
    f, m = (own(each[None, None], slabs) for each in (fixed, moving))
    settings = {**settings, "iterations": (2, 1)}
    stage = {"stages": ("deformable",), **settings}
    shift = torch.eye(4)
    shift[2, 3] = 1.5  # mm along z, half a voxel
    in_voxels = torch.eye(3, 4)
    in_voxels[2, 3] = 0.5
    spacing = (1.0, 2.0, 3.0)
    wanted = sd.register(f, m, slabs, affine=in_voxels, spacing=spacing, **settings)
    found = similis.register(f, m, slabs=slabs, init=shift.numpy(), spacing=spacing, **stage)
    assert torch.equal(found.displacement, wanted.displacement) and len(found.history) == 3
    for given, sentence in (
        ({"init": "identity"}, "register: stages is .*; with slabs it must be .'deformable',."),
        ({**stage}, "register: init is 'auto'; with slabs it must be 'identity' or an affine"),
        ({**stage, "fixed_mask": f}, "register: fixed_mask is given with slabs, which do not take"),
    ):
        with pytest.raises(ValueError, match=sentence):
            similis.register(f, m, slabs=slabs, **given)
    with pytest.raises(ValueError, match="register: moving_slabs are given without slabs"):
        similis.register(f, m, moving_slabs=slabs)
    with pytest.raises(ValueError, match="register: there is no option fluids on slabs"):
        sd.register(f, m, slabs, fluids=2)

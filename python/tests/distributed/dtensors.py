# SPDX-License-Identifier: Apache-2.0
"""Sharded rows go in and come out, with gradients; DTensor's split is that of Slabs.even."""

import pytest
import torch
import torch.distributed as dist
from cases import DEVICE, check, noise, own
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

import similis
import similis.distributed as sd
from similis.distributed import Slabs


def parallel_groups():
    """mesh["z"] of two dimensions cuts volumes; the groups along the other one hold volumes of their
    own and know nothing of each other."""
    ranks = dist.get_world_size()
    groups, volume, field = 2 if ranks % 2 == 0 else 1, (1, 1, 11, 6, 7), (1, 11, 6, 7, 3)
    for shape, names in (
        ((groups, ranks // groups), ("data", "z")),
        ((ranks // groups, groups), ("z", "data")),
    ):
        mesh = init_device_mesh(DEVICE.type, shape, mesh_dim_names=names)
        along = mesh["z"]
        slabs, group = Slabs.even(11, along), mesh["data"].get_local_rank()
        assert slabs.ranks == ranks // groups and slabs.rank == along.get_local_rank()
        fixed, moving, u = (
            noise(*sides, seed=10 * group + each, scale=scale)
            for each, (sides, scale) in enumerate(((volume, 1.0), (volume, 1.0), (field, 0.1)))
        )
        u.requires_grad_()
        loss = similis.ssim_loss(fixed, similis.sample(moving, displacement=u), window_size=3)
        (wanted,) = torch.autograd.grad(loss, u)
        mine = own(u, slabs, 1)
        for repeat in range(1 + group):  # another number of calls in each group
            moved = sd.sample(own(moving, slabs), slabs, displacement=mine)
            value = sd.ssim_loss(own(fixed, slabs), moved, slabs, window_size=3)
            check(value, loss, 1e-6, names, "mesh['z']", repeat)
            (gradient,) = torch.autograd.grad(value, mine)
            check(gradient, own(wanted, slabs, 1), 1e-6, names, "mesh['z']", repeat)
        sharded = distribute_tensor(moving, along, [Shard(2)])
        result = sd.sample(sharded, slabs, displacement=mine.detach())
        check(result.to_local(), moved.detach(), 0, names, "DTensor along mesh['z']")
        if ranks > 1:  # one rank of a group gives another shape: the other group does not hear of it
            is_wrong = group == 0 and slabs.rank == slabs.ranks - 1
            x = own(fixed, slabs)
            if group == 0:
                with pytest.raises(ValueError, match="mse: x has shape"):
                    sd.mse(x[:, :, :-1] if is_wrong else x, x, slabs)
            check(sd.mse(x, x + 1, slabs), torch.tensor(1.0, device=DEVICE), 1e-6, names)
        with pytest.raises(ValueError, match="Slabs: mesh is not a DeviceMesh of one dimension"):
            Slabs.even(11, mesh)
        dist.barrier()


def main():
    parallel_groups()
    mesh = init_device_mesh(DEVICE.type, (dist.get_world_size(),))
    slabs = Slabs.even(11, mesh)
    fixed, moving = noise(1, 1, 11, 6, 7, seed=1), noise(1, 1, 11, 6, 7, seed=2).requires_grad_()
    u = noise(1, 11, 6, 7, 3, seed=3, scale=0.1).requires_grad_()
    moved = similis.sample(moving, displacement=u)
    loss = similis.lncc_loss(fixed, moved, window_size=5)
    loss.backward()
    a, c = (distribute_tensor(each.detach(), mesh, [Shard(2)]) for each in (moving, fixed))
    b = distribute_tensor(u.detach(), mesh, [Shard(1)])
    a.requires_grad_(), b.requires_grad_()
    result = sd.sample(a, slabs, displacement=b)
    assert isinstance(result, DTensor) and result.placements == (Shard(2),)
    assert result.shape == moved.shape
    check(result.to_local(), own(moved, slabs), 0, "dtensor")
    value = sd.lncc_loss(c, result, slabs, window_size=5)
    assert not isinstance(value, DTensor)
    check(value, loss, 1e-6, "dtensor")
    value.backward()
    check(b.grad.to_local(), own(u.grad, slabs, 1), 1e-6, "dtensor", "field")
    check(a.grad.to_local(), own(moving.grad, slabs), 1e-6, "dtensor", "image")
    det, folds = sd.jacobian_determinant(b, slabs)
    whole, count = similis.jacobian_determinant(u)
    assert isinstance(det, DTensor) and det.shape == whole.shape
    for given, field in ((a, False), (b, True)):
        smoothed = sd.smooth(given, 1.2, slabs, field=field)
        assert isinstance(smoothed, DTensor) and smoothed.shape == given.shape
        whole_image = similis.smooth(u if field else moving, 1.2, field=field)
        check(smoothed.to_local(), own(whole_image, slabs, 1 if field else 2), 0, "dtensor")
    check(det.to_local(), own(whole, slabs, 1), 0, "dtensor")
    check(folds, count, 0, "dtensor")
    last = noise(1, 11, 6, 7, 2, seed=4), noise(1, 11, 6, 7, 2, seed=5)
    for measure in ("mse", "lncc"):  # channels last: rows are the second axis
        x, y = (distribute_tensor(each, mesh, [Shard(1)]) for each in last)
        value = getattr(sd, measure)(x, y, slabs, channel_axis=-1)
        check(value, getattr(similis, measure)(*last, channel_axis=-1), 1e-6, "dtensor", measure)
    try:
        sd.mse(distribute_tensor(fixed, mesh, [Replicate()]), c, slabs)
    except ValueError as error:
        assert "mse: x is a DTensor with placements [Replicate()]" in str(error), error
    else:
        raise AssertionError("a replicated DTensor is taken")

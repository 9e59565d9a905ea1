# SPDX-License-Identifier: Apache-2.0
"""Aligns two volumes that no process holds whole: each has its own planes of them.

A displacement field is fitted by Adam to the local cross-correlation of the fixed and the moved
volume, coarse windows first. The loop is that of one process: similis.distributed fetches the
planes that a rank's windows and coordinates reach, and brings their gradients home. Needs torch.
Run it with

    torchrun --nproc-per-node 2 examples/align_slabs.py
"""

import argparse

import similis.distributed as sd
import torch
from similis.distributed import Slabs


def volume(slabs: Slabs, size: int, shift: float) -> torch.Tensor:
    """Own planes of some blobs, moved along z and x."""
    z, y, x = torch.meshgrid(
        torch.arange(slabs.start, slabs.stop), torch.arange(size), torch.arange(size), indexing="ij"
    )
    result = torch.zeros(z.shape)
    for k in range(40):
        at = [(size * 0.2 + size * 0.6 * ((k * step) % 1)) for step in (0.618, 0.755, 0.57)]
        moved = (z - at[0] - shift, y - at[1], x - at[2] - shift)
        distance = torch.stack(moved).square().sum(0)
        result += (0.5 + (k * 0.37) % 1) * torch.exp(-distance / (0.06 * size) ** 2)
    return result[None, None]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--steps", type=int, default=30)
    size, steps = vars(parser.parse_args()).values()
    sd.init(timeout=60, backend="gloo")
    slabs = Slabs.even(size)
    planes = slabs.stop - slabs.start
    fixed, moving = volume(slabs, size, 0), volume(slabs, size, 1.5)
    u = torch.zeros(1, planes, size, size, 3, requires_grad=True)
    optimizer = torch.optim.Adam([u], lr=0.1 / size)
    before = float(sd.lncc(fixed, moving, slabs, window_size=5))
    for window_size in (9, 5):
        for _ in range(steps):
            optimizer.zero_grad()
            moved = sd.sample(moving, slabs, displacement=u, padding_mode="border")
            sd.lncc_loss(fixed, moved, slabs, window_size=window_size).backward()
            optimizer.step()
    with torch.no_grad():
        moved = sd.sample(moving, slabs, displacement=u, padding_mode="border")
        after = float(sd.lncc(fixed, moved, slabs, window_size=5))
        _, folds = sd.jacobian_determinant(u, slabs)
    if slabs.rank == 0:
        print(f"{slabs.ranks} ranks: LNCC {before:.3f} to {after:.3f}, {int(folds)} voxels fold")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()

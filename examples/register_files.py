# SPDX-License-Identifier: Apache-2.0
"""Registers one NIfTI volume to another and writes what antsApplyTransforms and ITK read.

    python register_files.py fixed.nii.gz moving.nii.gz out

Volumes meet where their headers place them, whatever their sizes and spacings. An affine map is
found by mutual information and a displacement by local cross-correlation. The folder `out` gets
affine.mat, field.nii.gz and warped.nii.gz, and the report says how alike the volumes are before and
after. The same resampling is
    similis warp moving.nii.gz --reference fixed.nii.gz -t affine.mat -t field.nii.gz -o warped.nii.gz
Needs torch and NumPy.
"""

import argparse
import pathlib

import numpy
import similis
import torch
from similis import volumes
from torch import nn


def scaled(volume: volumes.Volume) -> torch.Tensor:
    """[1,1,Z,Y,X] between 0 and 1."""
    image = torch.from_numpy(volume.image[:, :1].astype("float32"))
    return (image - image.min()) / (image.max() - image.min())


def find_affine(
    fixed: torch.Tensor, moving: torch.Tensor, start: torch.Tensor, steps: int
) -> torch.Tensor:
    """The affine map with the largest mutual information; start is that of the headers."""
    change = torch.zeros_like(start, requires_grad=True)
    optimizer = torch.optim.Adam([change], lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        warped = similis.sample(
            moving, affine=start + change, out_shape=fixed.shape[2:], padding_mode="border"
        )
        similis.mutual_information_loss(fixed, warped).backward()
        optimizer.step()
    return (start + change).detach()


def find_displacement(
    fixed: torch.Tensor, moving: torch.Tensor, affine: torch.Tensor, steps: int
) -> torch.Tensor:
    """The field to add to the affine map's coordinates, made of vectors on a coarse lattice."""
    lattice = torch.zeros(1, 3, 6, 6, 6, requires_grad=True)
    optimizer = torch.optim.Adam([lattice], lr=0.005)

    def field() -> torch.Tensor:
        fine = nn.functional.interpolate(
            lattice, fixed.shape[2:], mode="trilinear", align_corners=True
        )
        return fine.permute(0, 2, 3, 4, 1)

    for _ in range(steps):
        optimizer.zero_grad()
        warped = similis.sample(moving, affine=affine, displacement=field(), padding_mode="border")
        similis.lncc_loss(fixed, warped, window_size=5).backward()
        optimizer.step()
    return field().detach()


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("fixed")
    parser.add_argument("moving")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=60, help="of each of the two loops")
    arguments = parser.parse_args()
    fixed_volume = similis.read_volume(arguments.fixed)
    moving_volume = similis.read_volume(arguments.moving)
    fixed, moving = scaled(fixed_volume), scaled(moving_volume)

    start = torch.from_numpy(volumes.affine_between(fixed_volume, moving_volume)).float()
    affine = find_affine(fixed, moving, start, arguments.steps)
    u = find_displacement(fixed, moving, affine, arguments.steps)

    # A·x + u(x) is A·(x + d(x)), as files have it: the field first, then the affine map.
    d = u.double() @ torch.linalg.inv(affine[0, :, :3].double()).T
    field = volumes.displacement_of(d, fixed_volume)
    arguments.out.mkdir(exist_ok=True)
    names = [arguments.out / "affine.mat", arguments.out / "field.nii.gz"]
    similis.write_transform(names[0], volumes.transform_of(affine, fixed_volume, moving_volume))
    similis.write_transform(names[1], field)
    warped = volumes.warp(moving_volume, fixed_volume, names)
    similis.write_volume(arguments.out / "warped.nii.gz", warped)

    for words, image in (
        ("before", scaled(volumes.warp(moving_volume, fixed_volume))),
        ("after", scaled(warped)),
    ):
        print(
            f"{words:7} MI {similis.mutual_information(fixed, image):.3f}, "
            f"LNCC {similis.lncc(fixed, image, window_size=5):.3f}"
        )
    length = numpy.linalg.norm(field.vectors, axis=-1).max()
    _, folds = similis.jacobian_determinant(d)
    print(f"the displacement is {length:.2f} mm at most, and {int(folds)} voxels fold")


if __name__ == "__main__":
    main()

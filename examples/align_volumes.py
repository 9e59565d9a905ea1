# SPDX-License-Identifier: Apache-2.0
"""Aligns two scans of one head, one of them unevenly bright: an affine map, then a displacement.

    python align_volumes.py              # drawn volumes of 48 voxels a side; about 10 s on a CPU
    python align_volumes.py --size 64

The moving volume is drawn in another contrast than the fixed one, brighter on one side, and turned,
scaled, shifted and bent by a transform that the program then has to find. Mutual information finds
the affine map, whatever the contrasts; local cross-correlation finds the displacement, whatever the
brightness. Neither sees the labels: Dice is the share of them that coincides. Needs torch; runs on
a GPU where there is one.
"""

import argparse
import math
from typing import Callable, Optional

import similis
import torch
from torch import nn

TISSUES = ("skin", "bone", "brain", "ventricles")
FIXED_CONTRAST = (0.0, 0.8, 0.2, 0.6, 0.3)  # of background and each tissue, in the fixed volume
MOVING_CONTRAST = (0.1, 1.0, 0.4, 0.7, 0.2)


def identity(device: torch.device) -> torch.Tensor:
    return torch.eye(3, 4, device=device)[None]


def drawn_labels(place: torch.Tensor) -> torch.Tensor:
    """The tissue at each coordinate of place, [1,Z,Y,X,3]: 0 outside, then as in TISSUES."""

    def inside(center: tuple[float, ...], radius: tuple[float, ...]) -> torch.Tensor:
        offset = (place - place.new_tensor(center)) / place.new_tensor(radius)
        return offset.square().sum(-1) < 1

    labels = torch.zeros(place.shape[:-1], device=place.device)
    labels[inside((0, 0, 0), (0.62, 0.76, 0.68))] = 1
    labels[inside((0, 0, 0), (0.54, 0.68, 0.60))] = 2
    labels[inside((0, 0, 0), (0.47, 0.61, 0.53))] = 3
    for side in -1, 1:
        labels[inside((0.17 * side, 0.05, 0.06), (0.09, 0.30, 0.14))] = 4
    return labels[:, None]


def hidden_transform(place: torch.Tensor) -> torch.Tensor:
    """The transform to be found: a turn by 10°, a scale of 0.95, a shift, and a bend."""
    x, y, z = place.unbind(-1)
    cos, sin = math.cos(math.radians(10)), math.sin(math.radians(10))
    x, y, z = 0.95 * (cos * x - sin * y) + 0.06, 0.95 * (sin * x + cos * y) - 0.04, 0.95 * z + 0.05
    bend = 0.05 * torch.sin(3 * y) * torch.cos(2 * z)
    return torch.stack([x + bend, y + 0.8 * bend, z - bend], -1)


def painted(
    labels: torch.Tensor, contrast: tuple[float, ...], seed: int, slope: float = 0
) -> torch.Tensor:
    """The labels in a contrast, brighter along x by a slope, blurred and with noise."""
    image = labels.new_tensor(contrast)[labels.long()]
    image = image * (1 + slope * torch.linspace(-1, 1, image.shape[-1], device=image.device))
    image = nn.functional.avg_pool3d(image, 3, stride=1, padding=1, count_include_pad=False)
    noise = torch.randn(image.shape, generator=torch.Generator().manual_seed(seed))
    return image + 0.02 * noise.to(image.device)


def dice(x: torch.Tensor, y: torch.Tensor) -> float:
    """The overlap of two volumes of labels: 2|A ∩ B| / (|A| + |B|), on average over the tissues."""
    scores = [
        2 * ((x == label) & (y == label)).sum() / ((x == label).sum() + (y == label).sum())
        for label in range(1, len(TISSUES) + 1)
    ]
    return torch.stack(scores).mean().item()


def minimise(
    loss: Callable[[], torch.Tensor], parameter: torch.Tensor, rate: float, steps: int
) -> None:
    optimizer = torch.optim.Adam([parameter], lr=rate)
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()


def find_affine(fixed: torch.Tensor, moving: torch.Tensor, steps: int) -> torch.Tensor:
    """The affine map with the largest mutual information, at half the resolution."""
    coarse_fixed, coarse_moving = (nn.functional.avg_pool3d(image, 2) for image in (fixed, moving))
    affine = identity(fixed.device).requires_grad_()

    def loss() -> torch.Tensor:
        warped = similis.sample(coarse_moving, affine=affine, padding_mode="border")
        return similis.mutual_information_loss(coarse_fixed, warped)

    minimise(loss, affine, 0.01, steps)
    return affine.detach()


def find_displacement(
    fixed: torch.Tensor, moving: torch.Tensor, affine: torch.Tensor, steps: int
) -> torch.Tensor:
    """The displacement behind the affine map with the largest local cross-correlation.

    Its parameters are vectors on a coarse lattice, which keeps it smooth.
    """
    lattice = torch.zeros(1, 3, 7, 7, 7, device=fixed.device, requires_grad=True)

    def displacement() -> torch.Tensor:
        field = nn.functional.interpolate(
            lattice, fixed.shape[2:], mode="trilinear", align_corners=True
        )
        return field.permute(0, 2, 3, 4, 1)

    def loss() -> torch.Tensor:
        warped = similis.sample(
            moving, affine=affine, displacement=displacement(), padding_mode="border"
        )
        return similis.lncc_loss(fixed, warped, window_size=7)

    minimise(loss, lattice, 0.005, steps)
    return displacement().detach()


def align(size: int, affine_steps: int, displacement_steps: int) -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    place = similis.affine_grid(identity(device), out_shape=(size, size, size))
    fixed_labels, moving_labels = drawn_labels(place), drawn_labels(hidden_transform(place))
    fixed = painted(fixed_labels, FIXED_CONTRAST, seed=0)
    moving = painted(moving_labels, MOVING_CONTRAST, seed=1, slope=0.4)

    def report(step: str, affine: torch.Tensor, field: Optional[torch.Tensor] = None) -> None:
        warped = similis.sample(moving, affine=affine, displacement=field, padding_mode="border")
        labels = similis.sample_labels(moving_labels, affine=affine, displacement=field)
        print(
            f"{step:13} MI {similis.mutual_information(fixed, warped):.3f}, "
            f"LNCC {similis.lncc(fixed, warped, window_size=7):.3f}, "
            f"Dice {dice(fixed_labels, labels):.3f}"
        )

    report("before", identity(device))
    affine = find_affine(fixed, moving, affine_steps)
    report("affine", affine)
    field = find_displacement(fixed, moving, affine, displacement_steps)
    report("displacement", affine, field)
    _, folds = similis.jacobian_determinant(field)
    print(f"{int(folds)} of {size**3} voxels of the displacement fold")


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--size", type=int, default=48, help="voxels along each axis")
    parser.add_argument("--affine-steps", type=int, default=100)
    parser.add_argument("--displacement-steps", type=int, default=60)
    arguments = parser.parse_args()
    align(arguments.size, arguments.affine_steps, arguments.displacement_steps)


if __name__ == "__main__":
    main()

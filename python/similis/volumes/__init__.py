# SPDX-License-Identifier: Apache-2.0
"""Volumes and maps of space in files, and the way from millimetres and voxels to similis's units.

    fixed, moving = similis.read_volume("fixed.nii.gz"), similis.read_volume("moving.nii.gz")
    warped = similis.volumes.warp(moving, fixed, ["warp.nii.gz", "affine.mat"])
    similis.write_volume("warped.nii.gz", warped)

Files are those of `similis warp` (docs/volumes.md), and HDF5 composites if h5py is there. A grid
may be that of an image of nibabel or SimpleITK. World coordinates are mm: of a Grid with NIfTI's
axes (right, anterior, superior), of transforms with ITK's (left, posterior, superior). It needs
NumPy.
"""

from __future__ import annotations

from .grids import Grid, Volume, as_volume
from .nifti import read_volume, write_volume
from .registration import Map, Registration
from .resampling import (
    affine_between,
    coordinates,
    displacement_of,
    from_voxels,
    from_world,
    to_voxels,
    to_world,
    transform_of,
    warp,
)
from .transforms import Affine, Displacement, read_transform, write_transform

__all__ = [
    "Affine",
    "Displacement",
    "Grid",
    "Map",
    "Registration",
    "Volume",
    "affine_between",
    "as_volume",
    "coordinates",
    "displacement_of",
    "from_voxels",
    "from_world",
    "read_transform",
    "read_volume",
    "to_voxels",
    "to_world",
    "transform_of",
    "warp",
    "write_transform",
    "write_volume",
]

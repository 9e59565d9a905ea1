# SPDX-License-Identifier: Apache-2.0
"""Maps of space, in mm with ITK's axes (left, posterior, superior), from a fixed image's points to
the moving one's, and their files."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any, Union

import numpy
from numpy.typing import NDArray

from . import itk_files, nifti
from .grids import TURN, Grid, Matrix, Volume, as_volume, matrix_of
from .whole_file import whole_file

DISPLACEMENT_INTENT, VECTOR_INTENT = 1006, 1007  # NIfTI's
_MOST_BYTES = 1 << 20  # of an affine map's file


@dataclasses.dataclass(frozen=True, eq=False)
class Affine:
    """p ↦ M p. matrix: [4,4] (or [3,4]), of points in mm with ITK's axes."""

    matrix: Matrix

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", matrix_of("Affine: matrix", self.matrix))

    def inverse(self) -> Affine:
        determinant = numpy.linalg.det(self.matrix[:3, :3])
        if not abs(determinant) > 1e-12:
            raise ValueError(f"Affine: it has no inverse: its determinant is {determinant:g}")
        return Affine(numpy.linalg.inv(self.matrix))


@dataclasses.dataclass(frozen=True, eq=False)
class Displacement:
    """p ↦ p + u(p), u interpolated linearly inside the grid and 0 outside, as in ITK.

    vectors: [Z,Y,X,3] (or 2, which leave z as it is), in mm with ITK's axes.
    """

    vectors: NDArray[Any]
    grid: Grid

    def __post_init__(self) -> None:
        shape = numpy.shape(self.vectors)
        if len(shape) != 4 or shape[:3] != self.grid.shape or shape[3] not in (2, 3):
            raise ValueError(
                f"Displacement: vectors have shape {list(shape)}; it must be "
                f"{[*self.grid.shape, 3]}, the grid's and three components"
            )


Transform = Union[Affine, Displacement]


def _field_of(volume: Volume, name: str) -> Displacement:
    components, frames = volume.values.shape[:2]
    if frames != 1 or components not in (2, 3):
        raise ValueError(
            f"cannot read {name}: it has {frames} frames with {components} components per voxel; a "
            "displacement field has 1 frame with 3 (or 2) components, as its fifth dimension"
        )
    vectors = numpy.moveaxis(volume.values[:, 0], 0, -1).copy()
    if volume.intent == DISPLACEMENT_INTENT:  # NIfTI's point to the right and to the front
        vectors[..., :2] *= -1
    return Displacement(vectors, volume.grid)


_FIELDS = (
    "DisplacementFieldTransform",
    "GaussianSmoothingOnUpdateDisplacementFieldTransform",
    "BSplineSmoothingOnUpdateDisplacementFieldTransform",
)


def _stored_field(stored: itk_files.Stored, path: str) -> Displacement:
    """ITK's displacement fields: their fixed parameters are size, origin, spacing, direction."""
    fixed, n = numpy.asarray(stored.fixed), stored.dimension or 3
    if len(fixed) != n * (n + 3):
        itk_files.refuse(
            path, f"its {stored.type} has {len(fixed)} fixed parameters; it must have {n * (n + 3)}"
        )
    size = [int(each) for each in fixed[:n]] + [1] * (3 - n)
    vectors = numpy.asarray(stored.parameters)
    if min(size) < 1 or vectors.size != n * size[0] * size[1] * size[2]:
        itk_files.refuse(
            path,
            f"its {stored.type} has {vectors.size} parameters; it must have {n} for each voxel of "
            f"{size[:n]}",
        )
    matrix = numpy.eye(4)
    matrix[:n, :n] = fixed[3 * n :].reshape(n, n) * fixed[2 * n : 3 * n]
    matrix[:n, 3] = fixed[n : 2 * n]
    if not abs(numpy.linalg.det(matrix)) > 0:
        itk_files.refuse(path, f"its {stored.type} does not place the voxels in space")
    grid = Grid((size[0], size[1], size[2]), TURN @ matrix, is_flat=n == 2)
    return Displacement(vectors.reshape(*grid.shape, n), grid)


def _of_stored(stored: itk_files.Stored, path: str) -> Transform:
    if stored.name in _FIELDS:
        return _stored_field(stored, path)
    return Affine(itk_files.matrix_of(stored, path))


def _composed(stored: list[itk_files.Stored], path: str) -> Union[Transform, list[Transform]]:
    """One map of maps, or the list of a composite's with a field, in the order in which a point
    takes them; the file has the last first."""
    is_composite = stored[0].name == "CompositeTransform"
    if is_composite and len(stored) < 2:
        itk_files.refuse(
            path,
            "it is a composite transform without its parts, as ITK writes it to .mat; write it as "
            ".txt or give its parts",
        )
    if not is_composite and len(stored) > 1:
        itk_files.refuse(path, f"it has {len(stored)} transforms; it must have one, or a composite")
    maps = [_of_stored(each, path) for each in stored[is_composite:]]
    merged: list[Transform] = []
    for each in maps:
        last = merged[-1] if merged else None
        if isinstance(last, Affine) and isinstance(each, Affine):
            merged[-1] = Affine(last.matrix @ each.matrix)
        else:
            merged.append(each)
    return merged[0] if len(merged) == 1 else merged[::-1]


def read_transform(path: Any, *, inverse: bool = False) -> Any:
    """The map of space in a file of ITK or ANTs, as `similis warp --transform` takes it.

    Args:
        path: .mat, .txt or .tfm of an affine map or a composite of these; .nii or .nii.gz of a
            displacement field; .h5, if h5py is there. A field's image of nibabel or SimpleITK is
            taken too.
        inverse: of an affine map.

    Returns: volumes.Affine or volumes.Displacement; a list of them for a composite that holds a
        field, of which the first is applied first to a point.

    Raises:
        ValueError: the file is none of these, is damaged or holds another kind of transform, or
            what it holds cannot be inverted.
    """
    if isinstance(path, (str, os.PathLike)):
        name = os.fspath(path)
        result = _read(name)
    else:
        name = "the image"
        result = _field_of(as_volume(path), name)
    if not inverse:
        return result
    if not isinstance(result, Affine):
        raise ValueError(
            f"{name} is a displacement field, which cannot be inverted here; give the inverse field "
            "that ANTs writes, or use similis.invert"
        )
    return result.inverse()


def _read(name: str) -> Any:
    start = whole_file(name, 540)
    if not start:
        itk_files.refuse(name, "it is empty")
    if start.startswith(itk_files.HDF5_MAGIC):
        stored = itk_files.of_hdf5(name)
    elif nifti.version_of(start)[0]:
        return _field_of(nifti.read_volume(name), name)
    else:
        data = whole_file(name, _MOST_BYTES)
        if data.startswith(itk_files.TEXT_MAGIC):
            stored = itk_files.of_text(data.decode("latin-1"), name)
        else:
            stored = itk_files.of_matlab(data)
    if not stored:
        itk_files.refuse(
            name,
            "it is neither an ITK transform (MATLAB 4 or text) nor a displacement field (NIfTI), or "
            "it is cut off",
        )
    return _composed(stored, name)


def write_transform(path: Any, transform: Any) -> None:
    """Writes an Affine as .mat, .txt or .tfm, and a Displacement as .nii or .nii.gz, as ITK and
    ANTs read them.

    Raises:
        ValueError: the name ends otherwise. TypeError: transform is neither.
    """
    name = os.fspath(path)
    if isinstance(transform, Displacement):
        vectors = numpy.moveaxis(numpy.asarray(transform.vectors), -1, 0)[:, None]
        volume = Volume(vectors, transform.grid, str(vectors.dtype), intent=VECTOR_INTENT)
        nifti.write_volume(name, volume)
        return
    if not isinstance(transform, Affine):
        raise TypeError(
            "write_transform: transform must be a volumes.Affine or volumes.Displacement"
        )
    parameters = [*transform.matrix[:3, :3].ravel(), *transform.matrix[:3, 3]]
    stored = itk_files.Stored("AffineTransform_double_3_3", parameters, [0.0, 0.0, 0.0])
    if name.endswith(".mat"):
        data = itk_files.matlab_of(stored)
    elif name.endswith((".txt", ".tfm")):
        data = itk_files.text_of(stored).encode()
    else:
        raise ValueError(
            f"cannot write {name}: the name of an affine map must end in .mat, .txt or .tfm"
        )
    with open(name, "wb") as file:
        file.write(data)


def listed(transforms: Any) -> list[Transform]:
    """Transforms as a list; files by their paths, and the lists of composites, too."""
    if isinstance(transforms, (Affine, Displacement, str, os.PathLike)):
        transforms = [transforms]
    found: list[Transform] = []
    for each in transforms:
        if isinstance(each, (str, os.PathLike)):
            each = read_transform(each)
        if isinstance(each, Sequence):
            found += listed(each)
        elif isinstance(each, (Affine, Displacement)):
            found.append(each)
        else:
            raise TypeError(
                "transforms must be paths, volumes.Affine or volumes.Displacement; one is of type "
                f"{type(each).__name__}"
            )
    return found

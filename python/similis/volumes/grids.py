# SPDX-License-Identifier: Apache-2.0
"""Volumes and the place of their voxels in space, as NIfTI files, nibabel and SimpleITK have them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy
from numpy.typing import NDArray

from .._library.refusals import type_name

Matrix = NDArray[Any]  # [4,4], f64

# Points in mm with ITK's axes (left, posterior, superior) from those that NIfTI has, and back.
TURN: Matrix = numpy.diag([-1.0, -1.0, 1.0, 1.0])


def matrix_of(name: str, given: Any) -> Matrix:
    """[4,4] of [3,4] or [4,4]."""
    matrix = numpy.asarray(given, dtype=numpy.float64)
    if matrix.shape == (3, 4):
        matrix = numpy.vstack([matrix, [0, 0, 0, 1]])
    if matrix.shape != (4, 4) or not numpy.isfinite(matrix).all():
        raise ValueError(f"{name} has shape {list(matrix.shape)}; it must be [4,4] and finite")
    return matrix


@dataclasses.dataclass(frozen=True, eq=False)
class Grid:
    """The place of voxels in space.

    size: voxels along x, y, z. voxel_to_world: [4,4], from the (x, y, z) of a voxel's centre to mm
    towards right, anterior and superior, as NIfTI and nibabel have it. world_code: NIfTI's word for
    what the world is. is_flat: the file has no z.
    """

    size: tuple[int, int, int]
    voxel_to_world: Matrix
    world_code: int = 1
    is_flat: bool = False

    @property
    def shape(self) -> tuple[int, int, int]:
        """Voxels along z, y, x."""
        return self.size[::-1]

    @property
    def spacing(self) -> tuple[float, float, float]:
        """mm between neighbours along x, y, z."""
        x, y, z = numpy.linalg.norm(self.voxel_to_world[:3, :3], axis=0)
        return float(x), float(y), float(z)

    @property
    def voxel_to_lps(self) -> Matrix:
        """The same in ITK's axes: mm towards left, posterior and superior."""
        return TURN @ self.voxel_to_world

    @property
    def normalized_to_voxel(self) -> Matrix:
        """From similis's coordinates, -1 to 1 between the outermost centres, to (x, y, z)."""
        half = (numpy.array(self.size) - 1) / 2
        matrix = numpy.diag([*half, 1.0])
        matrix[:3, 3] = half
        return matrix

    @property
    def voxel_to_normalized(self) -> Matrix:
        """The inverse; all of an axis of one voxel is 0."""
        half = (numpy.array(self.size) - 1) / 2
        matrix = numpy.diag([*(0.0 if each == 0 else 1 / each for each in half), 1.0])
        matrix[:3, 3] = numpy.where(half == 0, 0.0, -1.0)
        return matrix


@dataclasses.dataclass(frozen=True, eq=False)
class Volume:
    """Samples on a grid.

    values: [components, frames, Z, Y, X]; float32 where that holds every value of the file, else
    float64. dtype: of a sample in the file. intent: NIfTI's code for what a voxel means; 1006 is a
    displacement, 1007 a vector. is_scaled: the file's samples were scaled.
    """

    values: NDArray[Any]
    grid: Grid
    dtype: str = "float32"
    frame_seconds: float = 0.0
    intent: int = 0
    is_scaled: bool = False

    @property
    def image(self) -> NDArray[Any]:
        """[1, components · frames, Z, Y, X], as similis's functions take it; it shares memory."""
        return self.values.reshape(1, -1, *self.grid.shape)

    def with_values(self, values: Any) -> Volume:
        """These values on the same grid; their last axes are Z, Y, X. torch's tensors are taken."""
        array = numpy.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
        if array.shape[-3:] != self.grid.shape:
            raise ValueError(
                f"with_values: values has shape {list(array.shape)}; its last axes must be those of "
                f"the grid, {list(self.grid.shape)}"
            )
        array = array.reshape(-1, 1, *self.grid.shape)
        return Volume(array, self.grid, str(array.dtype))

    def to_nibabel(self) -> Any:
        """A nibabel.Nifti1Image, [X,Y,Z], with time and components behind."""
        import nibabel

        axes = self.values.transpose(4, 3, 2, 1, 0)
        if axes.shape[4] == 1:
            axes = axes[..., 0, 0] if axes.shape[3] == 1 else axes[..., 0]
        image = nibabel.Nifti1Image(axes, self.grid.voxel_to_world)
        image.header.set_intent(self.intent, allow_unknown=True)
        return image

    def to_sitk(self) -> Any:
        """A SimpleITK.Image of one frame; components are those of its vectors."""
        import SimpleITK

        if self.values.shape[1] != 1:
            raise ValueError(
                f"to_sitk: the volume has {self.values.shape[1]} frames; it must have one"
            )
        components = numpy.moveaxis(self.values[:, 0], 0, -1)
        is_vector = components.shape[-1] > 1
        image = SimpleITK.GetImageFromArray(
            components if is_vector else components[..., 0], isVector=is_vector
        )
        matrix, spacing = self.grid.voxel_to_lps, self.grid.spacing
        image.SetSpacing(spacing)
        image.SetOrigin(matrix[:3, 3].tolist())
        image.SetDirection((matrix[:3, :3] / spacing).ravel().tolist())
        return image


def values_in_float(samples: NDArray[Any]) -> NDArray[Any]:
    """float32 where that holds all values of the type, else float64."""
    kind, size = samples.dtype.kind, samples.dtype.itemsize
    if kind not in "biuf" or size > 8:
        raise TypeError(
            f"read_volume: samples are {samples.dtype}; they must be integers of up to 64 bits, "
            "float32 or float64"
        )
    if kind in "iu" and size == 8 and (numpy.abs(samples.astype(numpy.float64)) >= 2.0**53).any():
        raise ValueError(
            "read_volume: there is an integer of magnitude 2^53 or more, which float64 cannot "
            "represent"
        )
    is_narrow = size <= 2 or (kind == "f" and size == 4)
    return samples.astype(numpy.float32 if is_narrow else numpy.float64)


def _of_nibabel(image: Any) -> Volume:
    if image.affine is None:
        raise ValueError("as_volume: the image has no affine, so that its voxels have no place")
    samples = numpy.asanyarray(image.dataobj)
    if not 2 <= samples.ndim <= 5:
        raise ValueError(f"as_volume: the image has {samples.ndim} axes; it must have 2 to 5")
    is_flat = samples.ndim == 2
    samples = samples.reshape(samples.shape + (1,) * (5 - samples.ndim))
    values = values_in_float(samples).transpose(4, 3, 2, 1, 0)
    grid = Grid(samples.shape[:3], matrix_of("as_volume: affine", image.affine), 1, is_flat)
    intent = image.header.get("intent_code", 0) if hasattr(image.header, "get") else 0
    return Volume(
        numpy.ascontiguousarray(values), grid, str(image.get_data_dtype()), intent=int(intent)
    )


def _of_sitk(image: Any) -> Volume:
    import SimpleITK

    rank = image.GetDimension()
    if rank not in (2, 3):
        raise ValueError(f"as_volume: the image has {rank} dimensions; it must have 2 or 3")
    samples = SimpleITK.GetArrayFromImage(image)
    if image.GetNumberOfComponentsPerPixel() == 1:
        samples = samples[..., None]
    if rank == 2:
        samples = samples[None]
    matrix = numpy.eye(4)
    direction = numpy.array(image.GetDirection()).reshape(rank, rank)
    matrix[:rank, :rank] = direction * image.GetSpacing()
    matrix[:rank, 3] = image.GetOrigin()
    values = values_in_float(numpy.moveaxis(samples, -1, 0)[:, None])
    size = samples.shape[2], samples.shape[1], samples.shape[0]
    grid = Grid(size, TURN @ matrix, 1, rank == 2)
    return Volume(numpy.ascontiguousarray(values), grid, str(samples.dtype))


def as_volume(image: Any) -> Volume:
    """A Volume of a nibabel or SimpleITK image; a Volume is returned as it is."""
    if isinstance(image, Volume):
        return image
    if type(image).__module__.startswith("nibabel."):
        return _of_nibabel(image)
    if type(image).__module__.startswith("SimpleITK"):
        return _of_sitk(image)
    raise TypeError(
        f"as_volume: image is of type {type_name(image)}; it must be a similis.Volume, or an image "
        "of nibabel or SimpleITK"
    )


def as_grid(given: Any) -> Grid:
    """The grid of a volume, of an image of nibabel or SimpleITK, or a Grid itself."""
    return given if isinstance(given, Grid) else as_volume(given).grid

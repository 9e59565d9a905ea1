# SPDX-License-Identifier: Apache-2.0
"""The images that similis.register() takes."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Sequence
from typing import Any, Optional

import numpy
from numpy.typing import NDArray

from .._arrays.kinds import imported, is_of, kind_of
from .._functions.layouts import dtype_name
from .._library import c_abi, register as library, values
from .._library.refusals import type_name
from .grids import TURN, Grid, Matrix, Volume, as_volume, matrix_of, values_in_float
from .nifti import read_volume
from .transforms import Affine, read_transform

_TILT = 1e-4  # of a slice, per voxel

def axes_turn(world: str) -> Matrix:
    """From the caller's world to ITK's axes, and back."""
    return TURN if world == "ras" else numpy.eye(4)


def _is_cuda_tensor(array: Any) -> bool:
    return is_of("torch", "Tensor", array) and bool(array.is_cuda)


def is_on_gpu(array: Any) -> bool:
    return _is_cuda_tensor(array) or is_of("cupy", "ndarray", array)


def plain_array(name: str, array: Any) -> Any:
    """An array that the library can read: torch's or CuPy's on a GPU, else NumPy's."""
    if _is_cuda_tensor(array):
        return _plain_on_gpu(name, array.detach())
    if is_of("torch", "Tensor", array):
        if array.device.type != "cpu":
            raise ValueError(
                f"register: {name} is on {array.device}; it must be on the CPU or a CUDA device"
            )
        array = array.detach()
        array = (array.float() if str(array.dtype) == "torch.bfloat16" else array).numpy()
    elif not isinstance(array, numpy.ndarray) and not is_of("cupy", "ndarray", array):
        raise TypeError(
            f"register: {name} is of type {type_name(array)}; it must be a numpy.ndarray, a "
            "torch.Tensor, a cupy.ndarray, a path, a similis.Volume or an image of nibabel or "
            "SimpleITK"
        )
    if hasattr(array, "mask"):
        raise TypeError(f"register: {name} is a masked array; give its data, and {name}_mask")
    if str(array.dtype) not in c_abi.DTYPES:
        if array.dtype.kind not in "biuf":
            raise TypeError(f"register: {name} is {array.dtype}; it must be numbers")
        array = values_in_float(array)
    return kind_of("register", array, name).prepared(array)


def _plain_on_gpu(name: str, tensor: Any) -> Any:
    import torch

    if tensor.is_complex():
        raise TypeError(f"register: {name} is {tensor.dtype}; it must be numbers")
    if str(tensor.dtype).removeprefix("torch.") in c_abi.DTYPES:
        return tensor
    if tensor.dtype == torch.bool:
        return tensor.to(torch.uint8)
    return tensor.to(torch.float32 if tensor.element_size() <= 2 else torch.float64)


def on_host(array: Any) -> NDArray[Any]:
    """An array of plain_array() in NumPy."""
    if _is_cuda_tensor(array):
        array = array.cpu()
        array = (array.float() if str(array.dtype) == "torch.bfloat16" else array).numpy()
    elif is_of("cupy", "ndarray", array):
        array = array.get()
    host: NDArray[Any] = array
    return host


def empty_array(shape: Sequence[int], like: Any) -> Any:
    """A float32 array where `like` is."""
    if _is_cuda_tensor(like):
        return like.new_empty(shape, dtype=imported("torch").float32)
    if is_of("cupy", "ndarray", like):
        return kind_of("register", like).empty(shape, "float32", like)
    return numpy.empty(shape, numpy.float32)


def stream_of(array: Any) -> int:
    """The stream on which an array of plain_array() was made; 0 on the CPU."""
    if _is_cuda_tensor(array):
        return int(imported("torch").cuda.current_stream(array.device).cuda_stream)
    return kind_of("register", array).stream()


def device_of(array: Any) -> str:
    if _is_cuda_tensor(array):
        return str(array.device)
    return f"cuda:{array.device.id}" if is_of("cupy", "ndarray", array) else "cpu"


def described(array: Any) -> c_abi.Tensor:
    """Its description for the library, which does not keep the memory alive."""
    if _is_cuda_tensor(array):
        from .._torch.binding import c_tensor

        tensor = c_tensor(array)
        assert tensor is not None
        return tensor
    return kind_of("register", array).describe(array)


@dataclasses.dataclass(frozen=True, eq=False)
class Image:
    """One of both images. data: [1,C,Y,X] or [1,C,Z,Y,X]. like: the array whose library results
    are of; None for a file or an image of a library of volumes, whose results are Volumes."""

    name: str
    data: Any
    grid: Grid
    has_channels: bool
    like: Any = None
    stored: str = ""

    @property
    def rank(self) -> int:
        return int(self.data.ndim) - 2

    def volume(self) -> library.Volume:
        return library.volume_of(described(self.data), self.grid.voxel_to_lps[:3].ravel().tolist())

    def as_volume(self) -> Volume:
        data = values_in_float(on_host(self.data)[0])
        return Volume(data.reshape(data.shape[0], 1, *self.grid.shape), self.grid)


def is_placed(image: Any) -> bool:
    return isinstance(image, (str, os.PathLike, Volume)) or type(image).__module__.startswith(
        ("nibabel.", "SimpleITK")
    )


def _of_volume(argument: str, given: Any) -> Image:
    is_path = isinstance(given, (str, os.PathLike))
    volume = read_volume(given) if is_path else as_volume(given)
    name = os.fspath(given) if is_path else argument
    components, frames = volume.values.shape[:2]
    if (components, frames) != (1, 1):
        raise ValueError(
            f"register: {name} has {frames} frame{'s' * (frames != 1)} with "
            f"{components} component{'s' * (components != 1)} per voxel; it must "
            "have 1 frame with 1 component"
        )
    data, grid = volume.image, volume.grid
    if is_path and grid.world_code == 0:
        warnings.warn(
            f"{name}: it does not say where its voxels lie; the first is taken as the world's "
            "origin, and its axes as those to the left, back and top",
            stacklevel=4,
        )
    if grid.size[2] == 1:
        tilt = numpy.abs(grid.voxel_to_world[2, :2]) > _TILT * numpy.array(grid.spacing[:2])
        if tilt.any():
            raise ValueError(
                f"register: {name} is a slice that is not parallel to the x-y plane of the world"
            )
        data = data[:, :, 0]
    stored = str(data.dtype) if volume.is_scaled else volume.dtype
    return Image(name, data, grid, False, stored=stored)


def _square(name: str, given: Any, rank: int) -> Matrix:
    """An affine as [4,4]; [3,3] is one of the plane."""
    if rank == 2 and numpy.shape(given) == (3, 3):
        flat = numpy.asarray(given, dtype=numpy.float64)
        matrix = numpy.eye(4)
        matrix[:2, :2], matrix[:2, 3] = flat[:2, :2], flat[:2, 2]
        given = matrix
    return matrix_of(f"register: {name}", given)


def _rank_of(array: Any, affine: Any, spacing: Any) -> int:
    if spacing is not None:
        return len(spacing)
    if affine is not None and numpy.shape(affine) == (3, 3):
        return 2
    return 2 if array.ndim == 2 else 3


def image_of(argument: str, given: Any, affine: Any, spacing: Any, world: str) -> Image:
    if is_placed(given):
        for name, other in ((f"{argument}_affine", affine), ("spacing", spacing)):
            if other is not None:
                raise ValueError(
                    f"register: {name} is given, but {argument} has a place of its own; leave one out"
                )
        return _of_volume(argument, given)
    array = plain_array(argument, given)
    if affine is not None and spacing is not None:
        raise ValueError(f"register: spacing and {argument}_affine are given; leave one of them out")
    if spacing is not None and (
        not isinstance(spacing, (tuple, list)) or len(spacing) not in (2, 3)
    ):
        raise ValueError(
            f"register: spacing is {values.shown(spacing)}; it must be 2 or 3 numbers in mm, along "
            "x, y (and z)"
        )
    rank = _rank_of(array, affine, spacing)
    if array.ndim not in (rank, rank + 1):
        shapes = "[Y, X] or [C, Y, X]" if rank == 2 else "[Z, Y, X] or [C, Z, Y, X]"
        raise ValueError(f"register: {argument} has shape {list(array.shape)}; it must be {shapes}")
    if min(array.shape[-rank:]) < 2:
        raise ValueError(
            f"register: {argument} has shape {list(array.shape)}; every axis of space must have 2 "
            "voxels or more" + "; a picture is given as [Y, X]" * (array.shape[-rank] == 1)
        )
    matrix = numpy.eye(4)
    if spacing is not None:
        steps = [values.number("register", "spacing", each) for each in spacing]
        if min(steps) <= 0:
            raise ValueError(f"register: spacing is {spacing!r}; its numbers must be above 0")
        matrix[:rank, :rank] = numpy.diag(steps)
    if affine is not None:
        matrix = _square(f"{argument}_affine", affine, rank)
    has_channels = array.ndim == rank + 1
    data = array[None] if has_channels else array[None, None]
    shape = data.shape[2:] if rank == 3 else (1, *data.shape[2:])
    # The library's world has ITK's axes, and a Grid's those of NIfTI.
    grid = Grid((shape[2], shape[1], shape[0]), TURN @ axes_turn(world) @ matrix, 1, rank == 2)
    return Image(argument, data, grid, has_channels, given)


def mask_of(argument: str, given: Any, image: Image) -> Any:
    """The mask's numbers; the grid of a mask from a file must be the image's."""
    if given is None:
        return None
    if not is_placed(given):
        array = plain_array(argument, given)
        return array.astype(numpy.uint8) if array.dtype == numpy.bool_ else array
    mask = _of_volume(argument, given)
    _on_grid_of(image, mask, "a mask")
    inside: NDArray[Any] = mask.data[0, 0]
    return inside


def _on_grid_of(image: Image, other: Image, what: str) -> None:
    """Throws unless a volume that is given beside the image lies on its grid."""
    is_there = other.grid.size == image.grid.size and numpy.allclose(
        other.grid.voxel_to_world, image.grid.voxel_to_world, atol=0.01 * min(image.grid.spacing)
    )
    if not is_there:
        raise ValueError(
            f"register: {other.name} lies on another grid than {image.name}; {what} lies on its "
            "image's grid"
        )


def labels_of(argument: str, given: Any, image: Image) -> Optional[Volume]:
    """A map of labels on the image's grid, as a Volume."""
    if given is None:
        return None
    if is_placed(given):
        labels = _of_volume(argument, given)
        _on_grid_of(image, labels, "a map of labels")
        name, array, stored = labels.name, labels.data[0, 0], labels.stored
    else:
        name, array = argument, on_host(plain_array(argument, given))
        stored = dtype_name(given)
        if array.shape != tuple(image.data.shape[2:]):
            raise ValueError(
                f"register: {argument} has shape {list(array.shape)}; it must be "
                f"{list(image.data.shape[2:])}, that of {image.name}"
            )
    held = values_in_float(array)
    wrong = held != numpy.floor(held)
    if wrong.any():
        raise ValueError(f"register: {name} holds {held[wrong][0]:g}; labels are integers")
    kinds = [each for each in (stored, str(array.dtype)) if each.startswith(("int", "uint"))]
    kind = kinds[0] if kinds else str(held.dtype)
    return Volume(held.reshape(1, 1, *image.grid.shape), image.grid, kind)


def labels_beside(labels: Volume, image: Image) -> Any:
    """Labels of labels_of() where the image's data are, [Y,X] or [Z,Y,X]."""
    array = numpy.ascontiguousarray(labels.values.reshape(image.data.shape[2:]))
    if _is_cuda_tensor(image.data):
        return imported("torch").from_numpy(array).to(image.data.device)
    if is_of("cupy", "ndarray", image.data):
        return imported("cupy").asarray(array)
    return array


def start_of(init: Any, rank: int, world: str) -> tuple[int, Optional[Sequence[float]]]:
    """C's start and, for a map of the caller, its numbers."""
    if isinstance(init, str) and init in library.STARTS:
        return library.STARTS.index(init), None
    if isinstance(init, (str, os.PathLike)):
        init = read_transform(init)
        if not isinstance(init, Affine):
            raise ValueError("register: init is a displacement field; it must be an affine map")
    if isinstance(init, Affine):
        matrix = init.matrix
    else:
        turn = axes_turn(world)
        matrix = turn @ _square("init", init, rank) @ turn
    return library.GIVEN, matrix[:3].ravel().tolist()

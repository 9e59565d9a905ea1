# SPDX-License-Identifier: Apache-2.0
"""The map that similis.register() returns."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Optional

import numpy
from numpy.typing import NDArray

from .._arrays.kinds import is_of
from .._functions.transforms import sample
from .._library import c_abi, register as library
from . import itk_files
from .grids import Matrix, Volume, values_in_float
from .nifti import read_volume, write_volume
from .register_inputs import (
    Image,
    axes_turn,
    described,
    device_of,
    empty_array,
    is_on_gpu,
    is_placed,
    on_host,
    plain_array,
)
from .resampling import coordinates, warp
from .transforms import Affine, Displacement, Transform, write_transform

_FIELDS = ("displacement", "inverse_displacement")

class Map:
    """A map from the points of one image to those of another."""

    def __init__(
        self, transforms: Callable[[], Sequence[Transform]], source: Image, target: Image, world: str
    ) -> None:
        """source: the image whose points are mapped; the other image is laid on its grid."""
        self._find_transforms = transforms
        self._source, self._target, self._world = source, target, world

    @functools.cached_property
    def _transforms(self) -> list[Transform]:
        """In NumPy, which those who only take a GPU's arrays need not wait for."""
        return list(self._find_transforms())

    def apply(self, image: Any, mode: str = "linear") -> Any:
        """An image on the target's grid, such as a map of labels, laid on the source's grid, as
        `similis warp` does it.

        Args:
            image: an array [Z,Y,X] or [C,Z,Y,X] ([Y,X] or [C,Y,X]) with the target's extents, a
                path, a Volume, or an image of nibabel or SimpleITK.
            mode: "linear", "nearest", "cubic" or "label".

        Returns: an array like image, or a Volume for the others.
        """
        if is_placed(image):
            given = read_volume(image) if isinstance(image, (str, os.PathLike)) else image
            return warp(given, self._source.grid, self._transforms, mode=mode)
        array = on_host(plain_array("image", image))
        extents = self._target.data.shape[2:]
        if array.shape[-len(extents) :] != tuple(extents) or array.ndim > len(extents) + 1:
            raise ValueError(
                f"apply: image has shape {list(array.shape)}; its last axes must be those of "
                f"{self._target.name}, {list(extents)}"
            )
        is_stack = array.ndim == len(extents) + 1
        channels = array if is_stack else array[None]
        held = values_in_float(channels).reshape(-1, 1, *self._target.grid.shape)
        moved = warp(
            Volume(held, self._target.grid, str(array.dtype)),
            self._source.grid,
            self._transforms,
            mode=mode,
        )
        result = moved.values.reshape(*array.shape[: array.ndim - len(extents)], *self._space())
        keeps_type = mode in ("nearest", "label")
        return _like(image, result.astype(array.dtype) if keeps_type else result)

    def apply_points(self, points: Any) -> NDArray[Any]:
        """The places in the target's world of points (x, y, z) of the source's, [...,3], in mm; of
        pictures (x, y), [...,2]."""
        given = numpy.asarray(points, dtype=numpy.float64)
        rank = self._source.rank
        if given.ndim < 1 or given.shape[-1] != rank:
            raise ValueError(
                f"apply_points: points have shape {list(given.shape)}; it must be [..., {rank}]"
            )
        p: NDArray[Any] = numpy.zeros((given.size // rank, 3))
        p[:, :rank] = given.reshape(-1, rank)
        turn = axes_turn(self._world)[:3, :3]
        p = p @ turn
        for transform in self._transforms:
            if isinstance(transform, Affine):
                p = p @ transform.matrix[:3, :3].T + transform.matrix[:3, 3]
            else:
                p = p + _interpolated(transform, p)
        result: NDArray[Any] = (p @ turn)[:, :rank].reshape(given.shape)
        return result

    def _space(self) -> tuple[int, ...]:
        return tuple(self._source.data.shape[2:])


def _interpolated(field: Displacement, points: NDArray[Any]) -> NDArray[Any]:
    """u at points in mm, 0 outside, as ITK has it."""
    to_voxel = numpy.linalg.inv(field.grid.voxel_to_lps)
    voxels = points @ to_voxel[:3, :3].T + to_voxel[:3, 3]
    scale = field.grid.voxel_to_normalized
    at = voxels @ scale[:3, :3].T + scale[:3, 3]
    image = numpy.moveaxis(numpy.asarray(field.vectors, dtype=numpy.float64), -1, 0)[None]
    moved = sample(
        numpy.ascontiguousarray(image), grid=at[None, None, None], padding_mode="border"
    )
    u = numpy.zeros_like(points)
    u[:, : image.shape[1]] = moved[0, :, 0, 0].T
    size = numpy.array(field.grid.size)
    u[numpy.any((voxels < -0.5) | (voxels >= size - 0.5), axis=-1)] = 0
    return u


def _like(array: Any, result: Any) -> Any:
    """result, of NumPy or already where `array` is, as an array of its library there."""
    if is_on_gpu(result):
        return result
    if is_of("torch", "Tensor", array):
        import torch

        return torch.from_numpy(numpy.ascontiguousarray(result)).to(array.device)
    if is_of("cupy", "ndarray", array):
        import cupy

        with array.device:
            return cupy.asarray(result)
    return result


class Registration(Map):
    """The result of similis.register(): T(p) = A(p + u(p)) takes fixed's points to moving's.

    affine: A, [4,4], of points in the call's world. warp, inverse_warp: u and the inverse's w,
    [Z,Y,X,3] or [Y,X,2], in mm of that world on fixed's grid; None without a deformable stage.
    warped: moving on fixed's grid, shaped as the images were given, or a Volume. labels: likewise
    moving_labels, by the label with the largest linear weight; None without. history: of each
    iteration its stage, level (shrink factor; 0 in linear stages), iteration, loss and, of
    deformable ones, min_jacobian.
    """

    def __init__(
        self,
        found: library.Found,
        fixed: Image,
        moving: Image,
        world: str,
        seconds: float,
        labels: tuple[Optional[Volume], Optional[Volume]] = (None, None),
        masks: Sequence[Any] = (None, None),
    ) -> None:
        self._found, self._seconds, self._labels, self._masks = found, seconds, labels, masks
        self._report: Optional[dict[str, Any]] = None
        rank, space = fixed.rank, fixed.data.shape[2:]
        lps = numpy.vstack([numpy.reshape(found.affine(), (3, 4)), [0, 0, 0, 1]])
        if rank == 2:  # the slices may lie at different heights
            heights = [each.grid.voxel_to_lps[2, 3] for each in (fixed, moving)]
            lps[2] = [0, 0, 1, heights[1] - heights[0]]
        self._lps_affine = Affine(lps)
        turn = axes_turn(world)
        self.affine: Matrix = turn @ lps @ turn
        self.warp: Any = None
        self.inverse_warp: Any = None
        super().__init__(lambda: [*self._fields[:1], self._lps_affine], fixed, moving, world)
        if found.has_displacement():
            signs = _like(fixed.like, numpy.diag(turn)[:rank].astype("f4"))
            self.warp, self.inverse_warp = [
                _like(fixed.like, self._copied(part, (1, *space, rank))[0]) * signs
                for part in _FIELDS
            ]
        warped = self._copied("warped", (1, moving.data.shape[1], *space))
        self.warped: Any = (
            Volume(warped.reshape(-1, 1, *fixed.grid.shape), fixed.grid)
            if fixed.like is None
            else _like(fixed.like, warped[0] if fixed.has_channels else warped[0, 0])
        )
        short = found.report()
        self.history: list[dict[str, Any]] = list(_history(short))

    def _copied(self, part: str, shape: Sequence[int]) -> Any:
        """The part, in memory where the images are."""
        output = empty_array(shape, self._source.data)
        self._found.copy_to(part, described(output))
        return output

    @functools.cached_property
    def _fields(self) -> list[Displacement]:
        """In NumPy, with ITK's axes."""
        if not self._found.has_displacement():
            return []
        fixed = self._source
        shape = (*fixed.grid.shape, fixed.rank)
        parts = [self._copied(part, (1, *self._space(), fixed.rank)) for part in _FIELDS]
        return [Displacement(on_host(part[0]).reshape(shape), fixed.grid) for part in parts]

    @property
    def report(self) -> dict[str, Any]:
        """The numbers of `similis register`'s report.json: settings, stages, similarity before and
        after, determinants, warnings. They are computed when they are first asked for."""
        if self._report is None:
            fixed, moving = self._source, self._target
            masks = [None if each is None else described(each) for each in self._masks]
            found = self._found.report((fixed.volume(), moving.volume()), masks)
            head = {
                "similis": c_abi.__version__,
                "fixed": fixed.name,
                "moving": moving.name,
                "device": device_of(fixed.data),
                "seconds": self._seconds,
            }
            self._report = {**head, **found}
            if self._labels[0] is not None:
                self._report["dice"] = self._dice()
        return self._report

    @functools.cached_property
    def _warped_labels(self) -> Optional[Volume]:
        labels = self._labels[1]
        if labels is None:
            return None
        return warp(labels, self._source.grid, self._transforms, mode="label")

    @property
    def labels(self) -> Any:
        """moving_labels on fixed's grid, an array like fixed or a Volume; None without them."""
        warped = self._warped_labels
        if warped is None or self._source.like is None:
            return warped
        array = warped.values.reshape(self._space())
        return _like(self._source.like, array.astype(warped.dtype))

    def _dice(self) -> dict[str, Any]:
        """2·|a ∩ b| / (|a| + |b|) of each label but 0, before and after."""
        fixed, moving = self._labels
        assert fixed is not None and moving is not None and self._warped_labels is not None
        own = fixed.values.ravel()
        sides = {
            "before": warp(moving, fixed.grid, mode="label").values.ravel(),
            "after": self._warped_labels.values.ravel(),
        }
        found = numpy.unique(numpy.concatenate([own, *sides.values()]))
        return {
            f"{label:g}" if abs(label) < 1e6 else f"{label:.0f}": {
                when: _overlap(own == label, other == label) for when, other in sides.items()
            }
            for label in found[found != 0]
        }

    def inverse(self) -> Map:
        """The map from points of moving to points of fixed."""
        return Map(
            lambda: [self._lps_affine.inverse(), *self._fields[1:]],
            self._target,
            self._source,
            self._world,
        )

    def displacement(self) -> Any:
        """T as similis.sample() takes it on an image [1,C,...] of moving's grid: a displacement
        from fixed's coordinates, [1,Z,Y,X,3] or [1,Y,X,2], f32, in similis's units."""
        fixed, moving = self._source.grid, self._target.grid
        to = coordinates(fixed, moving, self._transforms)
        own = coordinates(fixed, fixed)
        rank = self._source.rank
        result = (to - own)[..., :rank].astype(numpy.float32)
        return _like(self._source.like, result.reshape(1, *self._space(), rank))

    def save(self, prefix: Any) -> None:
        """Writes the files of `similis register` but the page: PREFIX0GenericAffine.mat,
        1Warp.nii.gz, 1InverseWarp.nii.gz, Warped.nii.gz, InverseWarped.nii.gz, Labels.nii.gz and
        report.json, all or none. A prefix that ends in / is a folder, which is made if absent."""
        name = os.fspath(prefix)
        folder = name if name.endswith("/") else os.path.dirname(name) or "."
        with _made(name), _all_or_none(folder, name) as file:
            _write_affine(file("0GenericAffine.mat"), self._lps_affine, self._source.rank)
            for field, ending in zip(self._fields, ("1Warp", "1InverseWarp")):
                write_transform(file(f"{ending}.nii.gz"), field)
            fixed, moving = self._source.as_volume(), self._target.as_volume()
            forward = warp(moving, fixed, self._transforms)
            write_volume(file("Warped.nii.gz"), forward)
            backward = warp(fixed, moving, self.inverse()._transforms)
            write_volume(file("InverseWarped.nii.gz"), backward)
            if self._warped_labels is not None:
                write_volume(file("Labels.nii.gz"), self._warped_labels)
            with open(file("report.json"), "w", encoding="utf-8") as report:
                json.dump(self.report, report, indent=1)
                report.write("\n")


def _overlap(a: NDArray[Any], b: NDArray[Any]) -> float:
    total = int(a.sum()) + int(b.sum())
    return 2 * int((a & b).sum()) / total if total > 0 else 0.0


def _write_affine(path: str, affine: Affine, rank: int) -> None:
    """Slices at different heights have a map that moves z, which no map of the plane does."""
    m = affine.matrix
    if rank == 3 or m[2, 3] != 0:
        write_transform(path, affine)
        return
    parameters = [*m[:2, :2].ravel(), *m[:2, 3]]
    stored = itk_files.Stored("AffineTransform_double_2_2", parameters, [0.0, 0.0])
    with open(path, "wb") as file:
        file.write(itk_files.matlab_of(stored))


@contextlib.contextmanager
def _made(prefix: str) -> Iterator[None]:
    """The folder of a prefix that is one, which goes again if nothing comes into it."""
    is_made = prefix.endswith("/") and not os.path.isdir(prefix)
    if is_made:
        os.makedirs(prefix)
    try:
        yield
    finally:
        if is_made:
            with contextlib.suppress(OSError):
                os.rmdir(prefix)


@contextlib.contextmanager
def _all_or_none(folder: str, prefix: str) -> Iterator[Any]:
    """Files are written in a folder beside their places and moved there in the end."""
    with tempfile.TemporaryDirectory(prefix=".similis-", dir=folder) as hidden:
        names: list[str] = []

        def place(name: str) -> str:
            names.append(name)
            return os.path.join(hidden, name)

        yield place
        for name in names:
            os.replace(os.path.join(hidden, name), prefix + name)


def _history(report: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for stage in report["stages"]:
        for level in stage["levels"]:
            least = level.get("min_jacobian", [])
            for iteration, loss in enumerate(level["loss"]):
                row = {
                    "stage": stage["name"],
                    "level": level["shrink"],
                    "iteration": iteration,
                    "loss": loss,
                }
                if iteration < len(least):
                    row["min_jacobian"] = least[iteration]
                yield row

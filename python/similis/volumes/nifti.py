# SPDX-License-Identifier: Apache-2.0
"""NIfTI-1 and NIfTI-2 files, read and written by the rules of `similis warp` (docs/volumes.md).

Source of the header: nifti1.h and nifti2.h of the NIfTI Data Format Working Group.
"""

from __future__ import annotations

import math
import os
import struct
import warnings
from typing import Any

import numpy
from numpy.typing import NDArray

from .compression import gzip_member
from .grids import Grid, Matrix, Volume, as_volume, values_in_float
from .text_files import is_text_volume, read_text_volume
from .whole_file import refuse, whole_file

_TYPES = {
    2: "uint8",
    4: "int16",
    8: "int32",
    16: "float32",
    64: "float64",
    256: "int8",
    512: "uint16",
    768: "uint32",
    1024: "int64",
    1280: "uint64",
}
_CODES = {name: code for code, name in _TYPES.items()}
_REFUSED = {
    1: "single bits",
    32: "complex numbers",
    128: "colours",
    1536: "128-bit floats",
    1792: "complex numbers",
    2048: "complex numbers",
    2304: "colours",
}
# The fields of each version that are read: (offset, format).
_FIELDS: dict[int, dict[str, tuple[int, str]]] = {
    1: {
        "dim": (40, "8h"),
        "intent": (68, "h"),
        "datatype": (70, "h"),
        "bits": (72, "h"),
        "pixdim": (76, "8f"),
        "begin": (108, "f"),
        "scaling": (112, "2f"),
        "units": (123, "B"),
        "codes": (252, "2h"),
        "quaternion": (256, "3f"),
        "offset": (268, "3f"),
        "sform": (280, "12f"),
    },
    2: {
        "datatype": (12, "h"),
        "bits": (14, "h"),
        "dim": (16, "8q"),
        "pixdim": (104, "8d"),
        "begin": (168, "q"),
        "scaling": (176, "2d"),
        "codes": (344, "2i"),
        "quaternion": (352, "3d"),
        "offset": (376, "3d"),
        "sform": (400, "12d"),
        "units": (500, "i"),
        "intent": (504, "i"),
    },
}
_LENGTHS = {1: 348, 2: 540}
_MM = {1: 1000.0, 3: 0.001}  # of a metre and a micrometre
_SECONDS = {0: 1.0, 8: 1.0, 16: 1e-3, 24: 1e-6}
_MOST_SKEWED = 1e-4  # cosine between axes that a qform still stands for
_FORMS_DIFFER = 0.01  # voxels
_ROUNDING = 1e-7  # of a quaternion of 1: what of half a turn floats leave for its first number


def version_of(start: bytes) -> tuple[int, str]:
    """The version of a NIfTI file that begins so, 0 if it is none, and struct's byte order."""
    for order in "<>":
        for version, length in _LENGTHS.items():
            if len(start) >= length and struct.unpack_from(f"{order}i", start)[0] == length:
                magic = start[344:348] if version == 1 else start[4:8]
                if magic in ((b"n+1\0", b"ni1\0") if version == 1 else (b"n+2\0", b"ni2\0")):
                    return version, order
    return 0, "<"


class _Header:
    dim: tuple[int, ...]
    pixdim: tuple[float, ...]
    quaternion: tuple[float, ...]
    offset: tuple[float, ...]
    sform: tuple[float, ...]
    scaling: tuple[float, ...]
    codes: tuple[int, ...]

    def __init__(self, version: int, order: str, data: bytes) -> None:
        values: dict[str, Any] = {
            name: struct.unpack_from(order + form, data, at)
            for name, (at, form) in _FIELDS[version].items()
        }
        self.__dict__.update(values)
        for name in ("intent", "datatype", "begin", "units"):
            setattr(self, name, values[name][0])

    def qform(self) -> Matrix:
        b, c, d = self.quaternion
        rest = b * b + c * c + d * d
        a = math.sqrt(max(1 - rest, 0.0))
        if 1 - rest < _ROUNDING:
            a = 0.0
            b, c, d = (each / math.sqrt(rest) for each in (b, c, d))
        matrix = numpy.eye(4)
        matrix[:3, :3] = [
            [a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)],
            [2 * (b * c + a * d), a * a + c * c - b * b - d * d, 2 * (c * d - a * b)],
            [2 * (b * d - a * c), 2 * (c * d + a * b), a * a + d * d - b * b - c * c],
        ]
        x, y, z = self.steps()
        matrix[:3, :3] *= [x, y, -z if self.pixdim[0] < 0 else z]
        matrix[:3, 3] = self.offset
        return matrix

    def steps(self) -> list[float]:
        """A step of 0 is written by programs that have none."""
        return [abs(each) or 1.0 for each in self.pixdim[1:4]]

    def placement(self, path: str) -> tuple[Matrix, int]:
        """The sform if its code is above 0, else the qform, else as ITK takes a file without."""
        unit = numpy.diag([_MM.get(int(getattr(self, "units")) & 7, 1.0)] * 3 + [1.0])
        sform = numpy.vstack([numpy.reshape(self.sform, (3, 4)), [0, 0, 0, 1]])
        qform_code, sform_code = self.codes
        x, y, z = self.steps()
        matrix = numpy.diag([-x, -y, z, 1.0])
        if sform_code > 0 or qform_code > 0:
            matrix = sform if sform_code > 0 else self.qform()
        matrix = unit @ matrix
        sides = numpy.linalg.norm(matrix[:3, :3], axis=0)
        if not abs(numpy.linalg.det(matrix[:3, :3])) > 1e-6 * sides.prod():
            refuse(path, "its header does not place the voxels in space")
        if sform_code > 0 and qform_code > 0 and not self._agree(matrix, unit @ self.qform()):
            warnings.warn(f"{path}: qform and sform differ; the sform is used", stacklevel=4)
        return matrix, sform_code if sform_code > 0 else max(qform_code, 0)

    def _agree(self, one: Matrix, other: Matrix) -> bool:
        sides = [max(1, each) - 1 for each in self.dim[1:4]]
        corners = numpy.array([[x, y, z, 1] for x in (0, 1) for y in (0, 1) for z in (0, 1)])
        corners = corners * [*sides, 1]
        apart = numpy.linalg.inv(one) @ (other - one) @ corners.T
        return bool(numpy.linalg.norm(apart[:3], axis=0).max() < _FORMS_DIFFER)


def _samples_of_pair(path: str) -> bytes:
    stem = path.removesuffix(".gz").removesuffix(".hdr")
    for name in (f"{stem}.img", f"{stem}.img.gz"):
        if os.path.exists(name):
            return whole_file(name)
    refuse(path, f"its samples are in {stem}.img, which is not there")


def read_volume(path: Any) -> Volume:
    """The volume in a file of NIfTI-1 or NIfTI-2 (.nii, .nii.gz, or .hdr with its .img), of
    MetaImage (.mha, .mhd) or of NRRD (.nrrd, .nhdr).

    Args:
        path: of the file. An image of nibabel or SimpleITK is taken too, as of volumes.as_volume().

    Raises:
        ValueError: the file is none, is damaged or cut off, or holds complex numbers, colours,
            128-bit floats or single bits. TypeError: path is of another type.
        OSError: it cannot be opened.
    """
    if not isinstance(path, (str, os.PathLike)):
        return as_volume(path)
    name = os.fspath(path)
    data = whole_file(name)
    if is_text_volume(data):
        return read_text_volume(name, data)
    version, order = version_of(data)
    if version == 0:
        refuse(name, "it is not NIfTI, MetaImage or NRRD")
    header = _Header(version, order, data)
    fields: Any = header
    rank = header.dim[0]
    if not 1 <= rank <= 7:
        refuse(name, f"its header is damaged: it has {rank} dimensions")
    shape = [header.dim[axis] if axis <= rank else 1 for axis in range(1, 8)]
    if min(shape) < 1:
        refuse(name, f"its header is damaged: its dimensions are {shape[:rank]}")
    if max(shape[5:]) > 1:
        refuse(name, f"it has {rank} dimensions; it must have at most 5: x, y, z, time, vector")
    if fields.datatype not in _TYPES:
        words = _REFUSED.get(fields.datatype, f"samples of datatype {fields.datatype}")
        refuse(
            name,
            f"{words} are not supported; its samples must be integers of up to 64 bits, float32 or "
            "float64",
        )
    is_pair = (data[344:346] if version == 1 else data[4:6]) == b"ni"
    begin = int(fields.begin)
    if is_pair:
        data = _samples_of_pair(name)
    else:
        begin = max(begin, _LENGTHS[version] + 4)
    dtype = numpy.dtype(_TYPES[fields.datatype]).newbyteorder("<" if order == "<" else ">")
    count = math.prod(shape)
    if begin < 0 or len(data) < begin + count * dtype.itemsize:
        refuse(
            name,
            f"it is cut off: its header promises {count * dtype.itemsize} bytes of samples but it "
            f"has {max(0, len(data) - begin)}",
        )
    samples = numpy.frombuffer(data, dtype, count, begin).reshape(shape[4::-1])
    slope, intercept = header.scaling
    is_scaled = slope != 0 and math.isfinite(slope) and (slope, intercept) != (1, 0)
    if is_scaled and not math.isfinite(intercept):
        refuse(name, f"its scl_slope is {slope} but its scl_inter is not a finite number")
    values = samples * slope + intercept if is_scaled else values_in_float(samples)
    matrix, code = header.placement(name)
    size = (shape[0], shape[1], shape[2])
    seconds = header.pixdim[4] * _SECONDS.get(fields.units & 0x38, 0.0)
    return Volume(
        values.astype(numpy.float64) if is_scaled else values,
        Grid(size, matrix, code, rank < 3),
        _TYPES[fields.datatype],
        seconds if math.isfinite(seconds) and seconds > 0 else 0.0,
        int(fields.intent),
        is_scaled,
    )


def _quaternion(matrix: Matrix) -> tuple[Any, float]:
    """(b, c, d) and the handedness; None where the matrix is more than a rotation and scales."""
    rotation = matrix[:3, :3] / numpy.linalg.norm(matrix[:3, :3], axis=0)
    products = rotation.T @ rotation - numpy.eye(3)
    if numpy.abs(products).max() > _MOST_SKEWED:
        return None, 1.0
    handedness = -1.0 if numpy.linalg.det(rotation) < 0 else 1.0
    r = rotation * [1, 1, handedness]
    # The outer product of the quaternion (a, b, c, d) with itself, times 4.
    outer = numpy.array(
        [
            [1 + r[0, 0] + r[1, 1] + r[2, 2], r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]],
            [r[2, 1] - r[1, 2], 1 + r[0, 0] - r[1, 1] - r[2, 2], r[1, 0] + r[0, 1], r[2, 0] + r[0, 2]],
            [r[0, 2] - r[2, 0], r[1, 0] + r[0, 1], 1 - r[0, 0] + r[1, 1] - r[2, 2], r[2, 1] + r[1, 2]],
            [r[1, 0] - r[0, 1], r[2, 0] + r[0, 2], r[2, 1] + r[1, 2], 1 - r[0, 0] - r[1, 1] + r[2, 2]],
        ]
    )
    best = int(outer.diagonal().argmax())
    q = outer[best] / (2 * math.sqrt(outer[best, best]))
    return (q if q[0] >= 0 else -q)[1:], handedness


def _encoded(values: NDArray[Any], dtype: str) -> bytes:
    if dtype not in _CODES:
        raise ValueError(f"write_volume: dtype is {dtype!r}; it must be {', '.join(_CODES)}")
    wanted = numpy.dtype(dtype)
    if wanted.kind in "iu" and values.dtype != wanted:
        limits = numpy.iinfo(wanted)
        wrong = ~((values >= float(limits.min)) & (values <= float(limits.max)))
        wrong |= values != numpy.floor(values)
        if wrong.any():
            raise ValueError(
                f"write_volume: a value is {values[wrong].ravel()[0]}, which {dtype} cannot "
                "represent; give dtype, such as float32"
            )
    return numpy.ascontiguousarray(values, dtype=wanted.newbyteorder("<")).tobytes()


def _fits_first_version(volume: Volume) -> bool:
    matrix = volume.grid.voxel_to_world
    rounded = matrix.astype(numpy.float32).astype(numpy.float64)
    are_near = (numpy.abs(rounded - matrix) <= 1e-7 * numpy.abs(matrix)).all()
    return bool(are_near) and max(volume.values.shape) <= 32767 and abs(volume.intent) <= 32767


def write_volume(path: Any, volume: Any, *, dtype: Any = None) -> None:
    """Writes a volume, or an image of nibabel or SimpleITK, as .nii or .nii.gz.

    The file is NIfTI-1, or NIfTI-2 where that cannot hold a side or the matrix; it has both forms,
    but no qform where the matrix is more than a rotation and scales.

    Args:
        dtype: of the samples, such as "int16"; by default volume.dtype, and float32 or float64 for
            values that were scaled.

    Raises:
        ValueError: the name ends otherwise, or dtype cannot represent a value.
        OSError: it cannot be written.
    """
    name, volume = os.fspath(path), as_volume(volume)
    if not name.endswith((".nii", ".nii.gz")):
        raise ValueError(f"cannot write {name}: its name must end in .nii or .nii.gz")
    kind = str(numpy.dtype(dtype)) if dtype is not None else volume.dtype
    if dtype is None and volume.is_scaled:
        kind = str(volume.values.dtype)
    samples = _encoded(volume.values, kind)
    version = 1 if _fits_first_version(volume) else 2
    length = _LENGTHS[version]
    header = bytearray(length + 4)
    components, frames = volume.values.shape[:2]
    rank = 5 if components > 1 else 4 if frames > 1 else 2 if volume.grid.is_flat else 3
    matrix = volume.grid.voxel_to_world
    quaternion, handedness = _quaternion(matrix)
    code = volume.grid.world_code
    given: dict[str, tuple[Any, ...]] = {
        "dim": (rank, *volume.grid.size, frames, components, 1, 1),
        "intent": (volume.intent,),
        "datatype": (_CODES[kind],),
        "bits": (8 * numpy.dtype(kind).itemsize,),
        "pixdim": (handedness, *volume.grid.spacing, volume.frame_seconds, 0, 0, 0),
        "begin": (length + 4,),
        "scaling": (1, 0),
        "units": (2 + 8 * (volume.frame_seconds > 0),),
        "codes": (0 if quaternion is None else code, code),
        "quaternion": (0, 0, 0) if quaternion is None else tuple(quaternion),
        "offset": tuple(matrix[:3, 3]),
        "sform": tuple(matrix[:3].ravel()),
    }
    struct.pack_into("<i", header, 0, length)
    for field, numbers in given.items():
        at, form = _FIELDS[version][field]
        struct.pack_into(f"<{form}", header, at, *numbers)
    magic = b"n+1\0" if version == 1 else b"n+2\0\r\n\x1a\n"
    at = 344 if version == 1 else 4
    header[at : at + len(magic)] = magic
    data = bytes(header) + samples
    partial = f"{name}.part"  # whole or not at all
    try:
        with open(partial, "wb") as file:
            file.write(gzip_member(data) if name.endswith(".gz") else data)
        os.replace(partial, name)
    finally:
        if os.path.exists(partial):
            os.remove(partial)

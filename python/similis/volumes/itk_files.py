# SPDX-License-Identifier: Apache-2.0
"""ITK's transforms as files have them: MATLAB level 4 (.mat), text (.txt, .tfm) and HDF5 (.h5).

With the matrix M, the translation t and the centre c that a type's parameters stand for,
    y = M (x - c) + c + t
Source: the class documentation of ITK 5 (itk::MatrixOffsetTransformBase and those derived).
"""

from __future__ import annotations

import dataclasses
import math
import struct
from typing import Any, Callable, NoReturn

import numpy

from .grids import Matrix

TEXT_MAGIC = b"#Insight Transform File"
HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"


@dataclasses.dataclass
class Stored:
    """One transform as a file holds it; fixed is the centre, or the grid of a field."""

    type: str
    parameters: Any
    fixed: Any

    @property
    def name(self) -> str:
        """ "AffineTransform", without its precision and dimensions."""
        return self.type.partition("_")[0]

    @property
    def dimension(self) -> int:
        return 3 if self.type.endswith("_3_3") else 2 if self.type.endswith("_2_2") else 0


def refuse(path: str, words: str) -> NoReturn:
    raise ValueError(f"cannot read {path}: {words}")


# ---- maps ----


def _moved(offset: Any) -> Matrix:
    matrix = numpy.eye(4)
    matrix[: len(offset), 3] = offset
    return matrix


def _turned(axis: int, angle: float) -> Matrix:
    matrix, (u, v) = numpy.eye(4), ((axis + 1) % 3, (axis + 2) % 3)
    matrix[u, u] = matrix[v, v] = math.cos(angle)
    matrix[v, u], matrix[u, v] = math.sin(angle), -math.sin(angle)
    return matrix


def _scaled(*factors: float) -> Matrix:
    return numpy.diag([*factors, *[1.0] * (4 - len(factors))])


def _linear(p: Any, dimension: int) -> Matrix:
    matrix, count = _moved(p[dimension * dimension :]), dimension * dimension
    matrix[:dimension, :dimension] = numpy.reshape(p[:count], (dimension, dimension))
    return matrix


def _versor(p: Any) -> Matrix:
    """The rotation of a unit quaternion given by its vector part."""
    x, y, z = p[:3]
    w = math.sqrt(max(0.0, 1 - (x * x + y * y + z * z)))
    matrix = numpy.eye(4)
    matrix[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return matrix


def _euler_3d(p: Any, fixed: Any) -> Matrix:
    """The fourth fixed parameter says in which order the angles are taken."""
    x, y, z = (_turned(axis, p[axis]) for axis in range(3))
    is_zyx = len(fixed) > 3 and fixed[3] != 0
    return _moved(p[3:6]) @ (z @ y @ x if is_zyx else z @ x @ y)


_Map = Callable[[Any, Any], Matrix]
_TYPES: dict[tuple[str, int], tuple[int, _Map]] = {
    ("AffineTransform", 3): (12, lambda p, _: _linear(p, 3)),
    ("AffineTransform", 2): (6, lambda p, _: _linear(p, 2)),
    ("MatrixOffsetTransformBase", 3): (12, lambda p, _: _linear(p, 3)),
    ("MatrixOffsetTransformBase", 2): (6, lambda p, _: _linear(p, 2)),
    ("Euler3DTransform", 3): (6, _euler_3d),
    ("Euler2DTransform", 2): (3, lambda p, _: _moved(p[1:3]) @ _turned(2, p[0])),
    ("Rigid2DTransform", 2): (3, lambda p, _: _moved(p[1:3]) @ _turned(2, p[0])),
    ("VersorTransform", 3): (3, lambda p, _: _versor(p)),
    ("VersorRigid3DTransform", 3): (6, lambda p, _: _moved(p[3:6]) @ _versor(p)),
    ("Similarity3DTransform", 3): (
        7,
        lambda p, _: _moved(p[3:6]) @ _versor(p) @ _scaled(p[6], p[6], p[6]),
    ),
    ("Similarity2DTransform", 2): (
        4,
        lambda p, _: _moved(p[2:4]) @ _turned(2, p[1]) @ _scaled(p[0], p[0]),
    ),
    ("ScaleTransform", 3): (3, lambda p, _: _scaled(*p)),
    ("ScaleTransform", 2): (2, lambda p, _: _scaled(*p)),
    ("TranslationTransform", 3): (3, lambda p, _: _moved(p)),
    ("TranslationTransform", 2): (2, lambda p, _: _moved(p)),
    ("IdentityTransform", 3): (0, lambda p, _: numpy.eye(4)),
    ("IdentityTransform", 2): (0, lambda p, _: numpy.eye(4)),
}


def matrix_of(stored: Stored, path: str) -> Matrix:
    """The map of points in mm, [4,4]; those of the plane leave z as it is."""
    known = _TYPES.get((stored.name, stored.dimension))
    if known is None:
        names = ", ".join(dict.fromkeys(name for name, _ in _TYPES))
        refuse(
            path,
            f"its transform has the type {stored.type[:60]}; supported types are {names} in 2 or 3 "
            "dimensions",
        )
    count, build = known
    if len(stored.parameters) != count:
        refuse(
            path, f"its {stored.type} has {len(stored.parameters)} parameters; it must have {count}"
        )
    if len(stored.fixed) and len(stored.fixed) < stored.dimension:
        refuse(
            path,
            f"its {stored.type} has {len(stored.fixed)} fixed parameters; it must have "
            f"{stored.dimension}",
        )
    centre = numpy.asarray(stored.fixed[: stored.dimension])
    matrix = _moved(centre) @ build(stored.parameters, stored.fixed) @ _moved(-centre)
    if not numpy.isfinite(matrix).all():
        refuse(path, "its numbers are not all finite")
    return matrix


# ---- files ----


def of_text(text: str, path: str) -> list[Stored]:
    transforms: list[Stored] = []
    for line in text.splitlines():
        key, _, value = line.strip().partition(":")
        if not key or key.startswith("#"):
            continue
        if key == "Transform":
            transforms.append(Stored(value.strip(), [], []))
        elif key in ("Parameters", "FixedParameters") and transforms:
            try:
                numbers = numpy.array([float(each) for each in value.split()])
            except ValueError as error:
                refuse(path, f"it is damaged: {error}")
            setattr(transforms[-1], "parameters" if key == "Parameters" else "fixed", numbers)
        else:
            refuse(path, f'it is damaged: a line begins with "{key[:40]}"')
    return transforms


def of_matlab(data: bytes) -> list[Stored]:
    """Two matrices a transform: its parameters, named as its type, and "fixed". Nothing if it is no
    such file."""
    found: list[tuple[str, Any]] = []
    while data:
        if len(data) < 20:
            return []
        order = ">" if data[:2] == b"\0\0" and data[:4] != b"\0\0\0\0" else "<"
        kind, rows, columns, is_complex, name_bytes = struct.unpack_from(f"{order}5I", data)
        if kind // 1000 != (order == ">") or kind % 100 not in (0, 10) or is_complex:
            return []
        dtype = numpy.dtype(f"{order}f{4 if kind % 100 == 10 else 8}")
        end = 20 + name_bytes + rows * columns * dtype.itemsize
        if not 1 <= name_bytes <= 200 or len(data) < end:
            return []
        name = data[20 : 20 + name_bytes].split(b"\0")[0].decode("latin-1")
        numbers = numpy.frombuffer(data, dtype, rows * columns, 20 + name_bytes)
        found.append((name, numbers.astype(numpy.float64)))
        data = data[end:]
    if len(found) % 2 or any(name != "fixed" for name, _ in found[1::2]):
        return []
    return [Stored(*one, other[1]) for one, other in zip(found[::2], found[1::2])]


def of_hdf5(path: str) -> list[Stored]:
    """ITK's /TransformGroup/N/{TransformType, TransformParameters, TransformFixedParameters}."""
    try:
        import h5py
    except ImportError:
        refuse(path, "it is HDF5, which needs h5py: pip install h5py")
    transforms = []
    with h5py.File(path, "r") as file:
        if "TransformGroup" not in file:
            refuse(path, "it is HDF5 without a TransformGroup, so no transform of ITK's")
        group = file["TransformGroup"]
        for number in sorted(group, key=int):
            part = group[number]
            kind = part["TransformType"][0]
            names = ("TransformParameters", "TranformParameters")  # ITK misspells older files' name
            arrays: list[Any] = [[], []]
            for index, middle in enumerate(("", "Fixed")):
                for name in names:
                    full = name.replace("Parameters", f"{middle}Parameters")
                    if full in part:
                        arrays[index] = part[full][()].astype(numpy.float64)
            word = kind.decode() if isinstance(kind, bytes) else str(kind)
            transforms.append(Stored(word, *arrays))
    return transforms


def text_of(stored: Stored) -> str:
    def numbers(given: Any) -> str:
        return " ".join(repr(float(each)) for each in given)

    return (
        f"#Insight Transform File V1.0\n#Transform 0\nTransform: {stored.type}\n"
        f"Parameters: {numbers(stored.parameters)}\nFixedParameters: {numbers(stored.fixed)}\n"
    )


def matlab_of(stored: Stored) -> bytes:
    data = b""
    for name, numbers in ((stored.type, stored.parameters), ("fixed", stored.fixed)):
        words = name.encode() + b"\0"
        array = numpy.asarray(numbers, dtype="<f8")
        data += struct.pack("<5I", 0, len(array), 1, 0, len(words)) + words + array.tobytes()
    return data

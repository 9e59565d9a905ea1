# SPDX-License-Identifier: Apache-2.0
"""Volumes whose header is text, read by the rules of the program: MetaImage (.mha, .mhd with its
samples in another file) and NRRD (.nrrd, .nhdr). Sources: itk.org/Wiki/ITK/MetaIO/Documentation and
teem.sourceforge.net/nrrd/format.html.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
import zlib

import numpy

from .grids import TURN, Grid, Matrix, Volume, values_in_float
from .whole_file import refuse

_META_TYPES = {
    "MET_UCHAR": "uint8",
    "MET_CHAR": "int8",
    "MET_USHORT": "uint16",
    "MET_SHORT": "int16",
    "MET_UINT": "uint32",
    "MET_INT": "int32",
    "MET_ULONG_LONG": "uint64",
    "MET_LONG_LONG": "int64",
    # "long" has 4 bytes in the format, whatever it has on the machine that wrote it.
    "MET_ULONG": "uint32",
    "MET_LONG": "int32",
    "MET_FLOAT": "float32",
    "MET_DOUBLE": "float64",
}
_NRRD_TYPES = {
    "int8": ("signed char", "int8", "int8_t"),
    "uint8": ("uchar", "unsigned char", "uint8", "uint8_t"),
    "int16": ("short", "short int", "signed short", "signed short int", "int16", "int16_t"),
    "uint16": ("ushort", "unsigned short", "unsigned short int", "uint16", "uint16_t"),
    "int32": ("int", "signed int", "int32", "int32_t"),
    "uint32": ("uint", "unsigned int", "uint32", "uint32_t"),
    "int64": (
        "longlong",
        "long long",
        "long long int",
        "signed long long",
        "signed long long int",
        "int64",
        "int64_t",
    ),
    "uint64": ("ulonglong", "unsigned long long", "unsigned long long int", "uint64", "uint64_t"),
    "float32": ("float",),
    "float64": ("double",),
}
_SPACES = {
    "": (-1, -1, 1),  # as ITK reads it
    "right-anterior-superior": (1, 1, 1),
    "RAS": (1, 1, 1),
    "left-anterior-superior": (-1, 1, 1),
    "LAS": (-1, 1, 1),
    "left-posterior-superior": (-1, -1, 1),
    "LPS": (-1, -1, 1),
}
_META_STARTS = re.compile(rb"(ObjectType|ObjectSubType|NDims|Comment)\s{0,7}=")
_LARGEST_SIDE = 2**36


@dataclasses.dataclass
class _Header:
    dtype: str
    is_big_endian: bool
    sides: list[float]
    voxel_to_world: Matrix
    world_code: int = 1
    frames: int = 1
    components: int = 1  # of each voxel, beside each other in the file
    is_compressed: bool = False
    data_file: str = ""  # beside the header's; empty: the samples follow it
    begin: int = 0  # of the samples in their file
    is_at_end: bool = False  # the samples are the file's last bytes


def is_text_volume(start: bytes) -> bool:
    """True if a file begins as NRRD or MetaImage does."""
    return start.startswith(b"NRRD000") or _META_STARTS.match(start) is not None


def _numbers(path: str, name: str, text: str) -> list[float]:
    try:
        return [float(word) for word in re.split(r"[ \t\r,()]+", text) if word]
    except ValueError:
        refuse(path, f'its header is damaged: {name} is "{text}"')


def _meta_fields(path: str, data: bytes) -> tuple[dict[str, str], int]:
    """The fields, and where the samples would begin."""
    fields: dict[str, str] = {}
    at = 0
    while at < len(data):
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        line = data[at:end].decode("latin-1")
        at = end + 1
        key, equals, value = line.partition("=")
        if not equals:
            if not line.strip():
                continue
            break
        fields[key.strip()] = value.strip()
        if key.strip() == "ElementDataFile":
            return fields, min(at, len(data))
    refuse(path, "its header is damaged: it has no ElementDataFile")


def _meta_header(path: str, data: bytes) -> _Header:
    fields, begin = _meta_fields(path, data)

    def first(*names: str) -> str:
        return next((fields[name] for name in names if name in fields), "")

    def numbers(*names: str) -> list[float]:
        return _numbers(path, names[0], first(*names))

    def is_true(*names: str) -> bool:
        return first(*names)[:1] in ("T", "t")

    kind = first("ObjectType")
    if kind not in ("", "Image"):
        refuse(path, f'its ObjectType is "{kind}"; it must be Image')
    if first("BinaryData") and not is_true("BinaryData"):
        refuse(path, "its samples are text; write it with BinaryData = True")
    sides = numbers("DimSize")
    axes = len(sides)
    if axes not in (2, 3):
        refuse(path, f"it has {axes} axes of space; it must have 2 or 3")
    if numbers("NDims") != [axes]:
        refuse(
            path,
            f'its header is damaged: NDims is "{first("NDims")}" but DimSize has {axes} numbers',
        )
    channels = numbers("ElementNumberOfChannels") or [1.0]
    if not 1 <= channels[0] <= 1e6:
        refuse(path, f"its header is damaged: ElementNumberOfChannels is {channels[0]:g}")
    word = first("ElementType")
    if word not in _META_TYPES:
        refuse(
            path,
            f'its ElementType is "{word}"; it must be MET_UCHAR, MET_SHORT, MET_FLOAT or the like',
        )
    # A row of TransformMatrix is the direction of an axis, towards left, posterior and superior.
    directions = numbers("TransformMatrix", "Rotation", "Orientation")
    offset = numbers("Offset", "Position", "Origin")
    spacing = numbers("ElementSpacing", "ElementSize")
    lps = numpy.eye(4)
    if len(directions) == axes * axes:
        lps[:axes, :axes] = numpy.reshape(directions, (axes, axes)).T
    given = min(axes, len(spacing))
    lps[:axes, :given] *= spacing[:given]
    given = min(axes, len(offset))
    lps[:given, 3] = offset[:given]
    header = _Header(
        _META_TYPES[word],
        is_true("BinaryDataByteOrderMSB", "ElementByteOrderMSB"),
        sides,
        TURN @ lps,
        components=int(channels[0]),
        is_compressed=is_true("CompressedData"),
        begin=begin,
    )
    samples = first("ElementDataFile")
    if samples == "LOCAL":
        return header
    if samples in ("LIST", "") or "%" in samples:
        refuse(path, "its samples are in several files; write it as one .mha file")
    header.data_file = samples
    skipped = (numbers("HeaderSize") or [0.0])[0]
    header.is_at_end = skipped == -1
    if not header.is_at_end and not 0 <= skipped <= 1e12:
        refuse(path, f"its header is damaged: HeaderSize is {skipped:g}")
    header.begin = 0 if header.is_at_end else int(skipped)
    return header


def _nrrd_fields(path: str, data: bytes) -> tuple[dict[str, str], int]:
    fields: dict[str, str] = {}
    at = 0
    while at < len(data):
        is_first = at == 0
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        line = data[at:end].decode("latin-1").strip()
        at = min(end + 1, len(data))
        if not line:
            break
        if is_first or line.startswith("#") or ":=" in line:
            continue
        name, colon, value = line.partition(": ")
        if not colon:
            refuse(path, f'its header is damaged: it has the line "{line[:60]}"')
        fields[name] = value.strip()
    return fields, at  # a detached header may end without an empty line


def _words(text: str) -> list[str]:
    """The words of a field: "(1,0,0)" is one, and so is "none"."""
    return re.findall(r"\([^)]*\)?|[^\s(]+", text)


def _axes_of_space(path: str, fields: dict[str, str], rank: int) -> list[bool]:
    directions = _words(fields.get("space directions", ""))
    kinds = _words(fields.get("kinds", ""))
    if directions:
        if len(directions) != rank:
            refuse(
                path,
                f"its header is damaged: it has {len(directions)} space directions and {rank} axes",
            )
        return [direction != "none" for direction in directions]
    if len(kinds) == rank:
        return [kind in ("domain", "space", "???") for kind in kinds]
    return [True] * rank


def _nrrd_placement(path: str, fields: dict[str, str], in_space: list[bool]) -> Matrix:
    axes = sum(in_space)
    space = fields.get("space", "")
    if space not in _SPACES:
        refuse(
            path,
            f'its space is "{space}"; it must be right-anterior-superior, left-anterior-superior '
            "or left-posterior-superior",
        )
    signs = numpy.array(_SPACES[space], float)
    directions = _words(fields.get("space directions", ""))
    spacings = _words(fields.get("spacings", ""))
    origin = _numbers(path, "space origin", fields.get("space origin", ""))
    matrix = numpy.eye(4)
    for column, axis in enumerate(axis for axis, inside in enumerate(in_space) if inside):
        step = [float(row == column) for row in range(axes)]
        if directions:
            step = _numbers(path, "space directions", directions[axis])
        elif axis < len(spacings):
            number = _numbers(path, "spacings", spacings[axis])
            # NaN says that the axis has none.
            if len(number) == 1 and not math.isnan(number[0]):
                step[column] = number[0]
        if len(step) != axes:
            refuse(
                path,
                f"its header is damaged: a space direction has {len(step)} numbers, and {axes} axes "
                "lie in space",
            )
        matrix[:axes, column] = signs[:axes] * step
    given = min(axes, len(origin))
    matrix[:given, 3] = signs[:given] * origin[:given]
    return matrix


def _nrrd_header(path: str, data: bytes) -> _Header:
    fields, begin = _nrrd_fields(path, data)
    word = fields.get("type", "")
    dtype = next((name for name, words in _NRRD_TYPES.items() if word in words), "")
    if not dtype:
        refuse(
            path,
            f'its type is "{word}"; it must be an integer of up to 64 bits, float or double',
        )
    sizes = _numbers(path, "sizes", fields.get("sizes", ""))
    in_space = _axes_of_space(path, fields, len(sizes))
    components = frames = 1
    for axis, (size, inside) in enumerate(zip(sizes, in_space)):
        if inside:
            continue
        # Components of a voxel come first; a series has its frames behind each other.
        if axis not in (0, len(sizes) - 1) or not 1 <= size <= 1e9:
            refuse(
                path,
                f"its axis {axis} has no direction in space; only the first (of components) and the "
                "last (of time) may have none",
            )
        if axis == 0:
            components = int(size)
        else:
            frames = int(size)
    sides = [size for size, inside in zip(sizes, in_space) if inside]
    if len(sides) not in (2, 3):
        refuse(path, f"it has {len(sides)} axes of space; it must have 2 or 3")
    encoding = fields.get("encoding", "")
    if encoding not in ("raw", "gzip", "gz"):
        refuse(path, f'its encoding is "{encoding}"; it must be raw or gzip')
    is_at_end = False
    for name in ("line skip", "lineskip", "byte skip", "byteskip"):
        skipped = (_numbers(path, name, fields.get(name, "")) or [0.0])[0]
        if skipped == 0:
            continue
        is_at_end = name.startswith("byte") and skipped == -1
        if not is_at_end:
            refuse(path, f"its {name} is {skipped:g}; it must be 0")
    samples = fields.get("data file", "") or fields.get("datafile", "")
    if samples == "LIST" or " " in samples:
        refuse(path, "its samples are in several files; write it as one .nrrd file")
    return _Header(
        dtype,
        fields.get("endian", "") == "big",
        sides,
        _nrrd_placement(path, fields, in_space),
        world_code=1 if fields.get("space") else 0,
        frames=frames,
        components=components,
        is_compressed=encoding != "raw",
        data_file=samples,
        begin=0 if samples else begin,
        is_at_end=is_at_end,
    )


def _samples_beside(path: str, name: str) -> tuple[str, bytes]:
    if os.path.dirname(name):
        refuse(path, f"its samples are in {name}; they must be in a file beside it")
    other = os.path.join(os.path.dirname(path), name)
    with open(other, "rb") as file:
        return other, file.read()


def _inflated(path: str, data: bytes, needed: int) -> bytes:
    zlib_or_gzip = 15 + 32
    try:
        return zlib.decompressobj(zlib_or_gzip).decompress(data, needed)
    except zlib.error:
        refuse(path, "its compressed samples are damaged")


def read_text_volume(path: str, data: bytes) -> Volume:
    """The volume in such a file, whose bytes are `data`. Raises ValueError as read_volume() does."""
    header = _nrrd_header(path, data) if data.startswith(b"NRRD") else _meta_header(path, data)
    for side in header.sides:
        if not (1 <= side <= _LARGEST_SIDE and side == math.floor(side)):
            refuse(path, f"its header is damaged: it has {side:g} voxels along an axis")
    linear = header.voxel_to_world[:3, :3]
    if not abs(numpy.linalg.det(linear)) > 1e-6 * numpy.linalg.norm(linear, axis=0).prod():
        refuse(path, "its directions and spacings do not place the voxels in space")
    where = path
    if header.data_file:
        where, data = _samples_beside(path, header.data_file)
    x, y, z = (*map(int, header.sides), 1)[:3]
    shape = header.frames, z, y, x, header.components
    dtype = numpy.dtype(header.dtype).newbyteorder(">" if header.is_big_endian else "<")
    needed = math.prod(shape) * dtype.itemsize
    begin = max(0, len(data) - needed) if header.is_at_end else header.begin
    data = data[begin:]
    if header.is_compressed:
        data = _inflated(where, data, needed)
    if len(data) < needed:
        refuse(
            where,
            f"it is cut off: its header promises {needed} bytes of samples but it has {len(data)}",
        )
    samples = numpy.frombuffer(data, dtype, math.prod(shape)).reshape(shape)
    return Volume(
        values_in_float(numpy.ascontiguousarray(numpy.moveaxis(samples, -1, 0))),
        Grid((x, y, z), header.voxel_to_world, header.world_code, len(header.sides) == 2),
        header.dtype,
        intent=1007 if header.components > 1 else 0,
    )

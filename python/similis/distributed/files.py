# SPDX-License-Identifier: Apache-2.0
"""NIfTI files in slabs: each rank reads and writes its own rows.

Rows lie one behind the other in a .nii, so that a rank seeks to its own. A .nii.gz has to be
inflated from its beginning; rows before a rank's own are dropped as they come. A file is written as
FILE.part, and renamed once all ranks have written their rows.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import struct
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional, Union

import torch
from torch import Tensor

from .agreement import Agreement, heard
from .slabs import Slabs

Path = Union[str, "os.PathLike[str]"]

# NIfTI's code: torch's dtype, or struct's letter and bytes where torch has none.
_DTYPES = {
    2: ("uint8", 1),
    4: ("int16", 2),
    8: ("int32", 4),
    16: ("float32", 4),
    64: ("float64", 8),
    256: ("int8", 1),
    512: ("uint16", 2),
    768: ("uint32", 4),
}
_CHUNK = 1 << 22  # bytes that are inflated, or converted, at a time
_MOST_BEFORE_VOXELS = 1 << 16  # bytes; a header with longer extensions is kept without them
_noted = False


class Header(NamedTuple):
    """The header of a NIfTI file, as far as it is read here."""

    raw: bytes  #: all bytes before the voxels, but for extensions that make them over 64 KiB
    shape: tuple[int, int, int]  #: z, y, x
    code: int  #: of the voxels' type
    slope: float
    intercept: float
    is_little: bool
    is_second: bool  #: NIfTI-2


def _parse(raw: bytes, path: Path) -> tuple[Header, int]:
    """The header in the first 544 bytes of a file, and the offset of the voxels."""
    for order in "<>":
        (size,) = struct.unpack_from(order + "i", raw)
        if size in (348, 540):
            break
    else:
        raise ValueError(f"read: {path} is no NIfTI file")
    if size == 348:
        dims = struct.unpack_from(order + "8h", raw, 40)
        (code,) = struct.unpack_from(order + "h", raw, 70)
        offset, slope, intercept = struct.unpack_from(order + "3f", raw, 108)
    else:
        (code,) = struct.unpack_from(order + "h", raw, 12)
        dims = struct.unpack_from(order + "8q", raw, 16)
        offset, slope, intercept = (
            *struct.unpack_from(order + "q", raw, 168),
            *struct.unpack_from(order + "2d", raw, 176),
        )
    extents = [*dims[1 : dims[0] + 1], 1, 1, 1]
    if not 1 <= dims[0] <= 7 or min(extents) < 1 or max(extents[3:]) > 1:
        raise ValueError(f"read: {path} has extents {list(dims[1 : dims[0] + 1])}; give one volume")
    if code not in _DTYPES:
        raise ValueError(f"read: {path} has voxels of NIfTI's type {code}, which is not read")
    if slope == 0 or slope != slope:
        slope, intercept = 1.0, 0.0
    shape = (int(extents[2]), int(extents[1]), int(extents[0]))
    header = Header(raw, shape, code, slope, intercept, order == "<", size == 540)
    return header, int(offset)


def _open(path: Path) -> Any:
    return gzip.open(path, "rb") if str(path).endswith(".gz") else open(path, "rb", buffering=0)


def _read_exactly(file: Any, count: int, path: Path) -> bytes:
    parts, left = [], count
    while left > 0:
        part = file.read(min(left, _CHUNK) if isinstance(file, gzip.GzipFile) else left)
        if not part:
            raise ValueError(f"read: {path} ends too early")
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _require_path(path: Any) -> None:
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"path is of type {type(path).__name__}; it must be a str or a PathLike")


def _header(path: Path) -> tuple[Header, int]:
    with _open(path) as file:
        raw = _read_exactly(file, 348, path)
        if struct.unpack_from("<i", raw)[0] not in (
            348,
            struct.unpack("<i", struct.pack(">i", 348))[0],
        ):
            raw += _read_exactly(file, 544 - 348, path)
        header, offset = _parse(raw, path)
        if offset > _MOST_BEFORE_VOXELS:
            return header._replace(raw=_without_extensions(raw, header)), offset
        raw += _read_exactly(file, max(offset, 0) - len(raw), path) if offset > len(raw) else b""
    return header._replace(raw=raw[:offset]), offset


def _without_extensions(raw: bytes, header: Header) -> bytes:
    order = "<" if header.is_little else ">"
    size = 540 if header.is_second else 348
    kept = bytearray(raw[:size] + bytes(4))
    if header.is_second:
        struct.pack_into(order + "q", kept, 168, size + 4)
    else:
        struct.pack_into(order + "f", kept, 108, size + 4)
    return bytes(kept)


def read(
    path: Path,
    sizes: Optional[Sequence[int]] = None,
    mesh: Any = None,
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Slabs, Header]:
    """Own rows [1,1,z,Y,X] of a NIfTI file, with its slope applied; their slabs; and the header.

    sizes: rows of each rank; by default even. A .nii is read by seeking: own bytes and the header.
    """
    error: Optional[Exception] = None
    x, header = torch.empty(0), None
    try:
        _require_path(path)
        if not isinstance(dtype, torch.dtype):
            raise ValueError(f"read: dtype is {dtype!r}; it must be a torch.dtype, as torch.float32")
        header, offset = _header(path)
        slabs = Slabs.even(header.shape[0], mesh) if sizes is None else Slabs(sizes, mesh)
        if slabs.extent != header.shape[0]:
            raise ValueError(
                f"read: sizes is {list(slabs.sizes)}, {slabs.extent} rows; {path} has "
                f"{header.shape[0]}"
            )
        x = _own_rows(path, header, offset, slabs, dtype)
    except (OSError, EOFError, ValueError, struct.error) as caught:
        error = caught
        slabs = (
            Slabs([1] + [0] * (torch.distributed.get_world_size() - 1), mesh)
            if mesh is None
            else (Slabs.even(1, mesh))
        )
    shape = None if header is None else header.shape
    with Agreement("read", slabs, path=str(path), shape=shape, dtype=str(dtype)):
        if error is not None:
            raise ValueError(str(error)) from error
    assert header is not None
    return x, slabs, header


def _own_rows(path: Path, header: Header, offset: int, slabs: Slabs, dtype: torch.dtype) -> Tensor:
    global _noted
    z, y, x = header.shape
    name, size = _DTYPES[header.code]
    of_row = y * x * size
    with _open(path) as file:
        if str(path).endswith(".gz"):
            if not _noted:
                warnings.warn(
                    f"{path}: each rank inflates a .nii.gz from its beginning; a .nii is faster",
                    stacklevel=3,
                )
                _noted = True
            left = offset + slabs.start * of_row
            while left > 0:
                left -= len(_read_exactly(file, min(left, _CHUNK), path))
        else:
            file.seek(offset + slabs.start * of_row)
        rows = torch.empty((1, 1, slabs.stop - slabs.start, y, x), dtype=dtype)
        for row in range(rows.shape[2]):
            raw = bytearray(_read_exactly(file, of_row, path))
            values = _values(raw, name, size, header.is_little).reshape(y, x)
            rows[0, 0, row] = (values.double() * header.slope + header.intercept).to(dtype)
    return rows


def _values(raw: bytearray, name: str, size: int, is_little: bool) -> Tensor:
    if not is_little and size > 1:
        swapped = torch.frombuffer(raw, dtype=torch.uint8).reshape(-1, size).flip(1)
        raw = bytearray(swapped.contiguous().numpy().tobytes())
    unsigned = {"uint16": (torch.int16, 1 << 16), "uint32": (torch.int32, 1 << 32)}
    if name in unsigned:
        held, modulus = unsigned[name]
        values = torch.frombuffer(raw, dtype=held).to(torch.int64)
        return torch.where(values < 0, values + modulus, values)
    return torch.frombuffer(raw, dtype=getattr(torch, name))


def _new_header(shape: Sequence[int], like: Optional[Header]) -> bytes:
    """The bytes before the voxels of an f32 volume; orientation and units are those of `like`."""
    z, y, x = shape
    raw = bytearray(like.raw) if like is not None else bytearray(352)
    order = "<" if like is None or like.is_little else ">"
    if like is not None and like.is_second:
        struct.pack_into(order + "2h", raw, 12, 16, 32)
        struct.pack_into(order + "8q", raw, 16, 3, x, y, z, 1, 1, 1, 1)
        struct.pack_into(order + "2d", raw, 176, 1.0, 0.0)
        return bytes(raw)
    if like is None:
        struct.pack_into("<i", raw, 0, 348)
        struct.pack_into("<8f", raw, 76, 1, 1, 1, 1, 1, 1, 1, 1)
        struct.pack_into("<f", raw, 108, 352.0)
        raw[344:348] = b"n+1\0"
    struct.pack_into(order + "8h", raw, 40, 3, x, y, z, 1, 1, 1, 1)
    struct.pack_into(order + "2h", raw, 70, 16, 32)
    struct.pack_into(order + "2f", raw, 112, 1.0, 0.0)
    return bytes(raw)


@heard
def write(path: Path, x: Tensor, slabs: Slabs, like: Optional[Header] = None) -> None:
    """Writes own rows [1,1,z,Y,X], as f32, into one .nii that all ranks see: whole or not at all.

    like: a header of read(), whose orientation and units the file gets.
    """
    part = f"{path}.part"
    with Agreement("write", slabs, path=str(path)) as agreement:
        _require_path(path)
        if like is not None and not isinstance(like, Header):
            raise ValueError(f"like is of type {type(like).__name__}; it must be a header of read()")
        agreement.array("x", x, slabs, 2)
        if x.dim() != 5 or x.shape[0] != 1 or x.shape[1] != 1:
            raise ValueError(f"x has shape {list(x.shape)}; it must be [1,1,z,Y,X]")
        if str(path).endswith(".gz"):
            raise ValueError(f"{path} ends in .gz, which ranks cannot write together; write a .nii")
        if not str(path).endswith(".nii"):
            raise ValueError(f"{path} does not end in .nii; NIfTI is what ranks write together")
    raw = _new_header([slabs.extent, *x.shape[3:]], like)
    try:
        with Agreement("write", slabs, path=str(path)), _as_value_error():
            if slabs.rank == 0:
                with open(part, "wb") as file:
                    file.write(raw)
                    file.truncate(len(raw) + 4 * slabs.extent * x.shape[3] * x.shape[4])
        with Agreement("write", slabs, path=str(path)), _as_value_error():
            _write_rows(part, x, slabs, len(raw), like)
        with Agreement("write", slabs, path=str(path)), _as_value_error():
            if slabs.rank == 0:
                os.replace(part, path)
    except BaseException:
        if slabs.rank == 0:
            with contextlib.suppress(OSError):
                os.remove(part)
        raise


def _write_rows(part: str, x: Tensor, slabs: Slabs, offset: int, like: Optional[Header]) -> None:
    swaps = like is not None and not like.is_little
    with open(part, "r+b") as file:
        file.seek(offset + 4 * slabs.start * x.shape[3] * x.shape[4])
        for row in range(x.shape[2]):
            values = x[0, 0, row].detach().float().cpu().contiguous()
            raw = values.reshape(-1).view(torch.uint8)
            if swaps:
                raw = raw.reshape(-1, 4).flip(1).reshape(-1).contiguous()
            file.write(raw.numpy().tobytes())
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def _as_value_error() -> Any:
    try:
        yield
    except OSError as error:
        raise ValueError(str(error)) from error


__all__ = ["Header", "read", "write"]

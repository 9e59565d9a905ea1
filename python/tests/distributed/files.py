# SPDX-License-Identifier: Apache-2.0
"""Each rank reads and writes its own rows of a NIfTI file."""

import gzip
import struct
import warnings

import pytest
import torch
import torch.distributed as dist
from cases import check, noise, own, splits

import similis.distributed as sd
from similis.distributed import Slabs


def nifti(values, code, order="<", slope=(2.0, 1.0)):
    """The bytes of a NIfTI-1 file of a volume [z,y,x], made by hand."""
    z, y, x = values.shape
    raw = bytearray(352)
    struct.pack_into(order + "i", raw, 0, 348)
    struct.pack_into(order + "8h", raw, 40, 3, x, y, z, 1, 1, 1, 1)
    struct.pack_into(order + "2h", raw, 70, code, 16)
    struct.pack_into(order + "8f", raw, 76, 1, 0.5, 0.6, 0.7, 1, 1, 1, 1)
    struct.pack_into(order + "3f", raw, 108, 352, *slope)
    raw[344:348] = b"n+1\0"
    array = values.numpy()
    return bytes(raw) + array.astype(array.dtype.newbyteorder(order)).tobytes()


def main(folder):
    generator = torch.Generator().manual_seed(1)
    values = torch.randint(-900, 900, (11, 5, 6), generator=generator, dtype=torch.int16)
    path, packed, big = folder / "a.nii", folder / "a.nii.gz", folder / "big.nii"
    if dist.get_rank() == 0:
        path.write_bytes(nifti(values, 4))
        packed.write_bytes(gzip.compress(nifti(values, 4)))
        big.write_bytes(nifti(values.float(), 16, ">", (0.0, 0.0)))
    dist.barrier()
    expected = values.double()[None, None] * 2 + 1
    for slabs in splits(11):
        x, found, header = sd.read(path, slabs.sizes, dtype=torch.float64)
        assert found.sizes == slabs.sizes and header.shape == (11, 5, 6)
        check(x, own(expected, slabs), 0, slabs.sizes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x, _, _ = sd.read(packed, slabs.sizes)
        check(x, own(expected, slabs).float(), 0, slabs.sizes)
        x, _, big_header = sd.read(big, slabs.sizes)
        check(x, own(values[None, None].float(), slabs), 0, slabs.sizes)
        whole = noise(1, 1, 11, 5, 6, seed=3)
        for like in (header, big_header, None):
            sd.write(folder / "b.nii", own(whole, slabs), slabs, like)
            back, _, kept = sd.read(folder / "b.nii", slabs.sizes)
            check(back, own(whole, slabs), 0, slabs.sizes)
            if like is not None:
                assert kept.raw[76:108] == like.raw[76:108]
        assert not (folder / "b.nii.part").exists()
    even = Slabs.even(11)
    assert sd.read(path)[1].sizes == even.sizes
    refusals(folder, even)
    count_read_bytes(folder)


def refusals(folder, slabs):
    x = torch.zeros(1, 1, slabs.stop - slabs.start, 5, 6)
    for path, sentence in (("none.nii", "No such file"), ("text.nii", "is no NIfTI file")):
        if slabs.rank == 0:
            (folder / "text.nii").write_bytes(b"no" * 400)
        dist.barrier()
        with pytest.raises(ValueError, match=sentence):
            sd.read(folder / path)
    with pytest.raises(ValueError, match="write: .*ends in .gz"):
        sd.write(folder / "c.nii.gz", x, slabs)
    with pytest.raises(ValueError, match="No such file"):
        sd.write(folder / "missing" / "c.nii", x, slabs)
    last = slabs.rank == slabs.ranks - 1
    if slabs.ranks > 1:
        with pytest.raises(ValueError, match="write: x has"):
            sd.write(folder / "c.nii", x[:, :, :-1] if last else x, slabs)
    dist.barrier()
    assert not (folder / "c.nii").exists() and not (folder / "c.nii.part").exists()


class _Counting:
    """A file that counts the bytes that are read of it."""

    total = 0

    def __init__(self, file):
        self._file, self.seek = file, file.seek

    def read(self, count):
        part = self._file.read(count)
        _Counting.total += len(part)
        return part

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()


def nifti_2(values):
    """A NIfTI-2 of f32, whose voxels lie behind an extension of 100 KiB."""
    z, y, x = values.shape
    raw = bytearray(544 + 102400)
    struct.pack_into("<i", raw, 0, 540)
    raw[4:12] = b"n+2\0\r\n\032\n"
    struct.pack_into("<2h8q", raw, 12, 16, 32, 3, x, y, z, 1, 1, 1, 1)
    struct.pack_into("<q2d", raw, 168, len(raw), 0.5, 3.0)
    raw[540] = 1
    struct.pack_into("<2i", raw, 544, 102400, 6)
    return bytes(raw) + values.numpy().astype("<f4").tobytes()


def turned(raw, column):
    """The file with a form that maps the voxels' axes to others, or flips them."""
    turned = bytearray(raw)
    struct.pack_into("<2h", turned, 252, 0, 1)
    for row in range(3):
        line = [0.0] * 4
        line[abs(column[row]) - 1] = 1.0 if column[row] > 0 else -1.0
        struct.pack_into("<4f", turned, 280 + 16 * row, *line)
    return bytes(turned)


def count_read_bytes(folder):
    """A .nii costs own bytes and 64 KiB, whatever its header says of types and orientation."""
    from similis.distributed import files

    plain = files._open
    shape = (40, 64, 64)
    values = (100 * noise(*shape, seed=5)).floor()
    written = {
        "bytes": (nifti(values.abs().clamp(max=127).to(torch.uint8), 2), 1),
        "i16": (nifti(values.to(torch.int16), 4), 2),
        "i16 big": (nifti(values.to(torch.int16), 4, ">"), 2),
        "f64": (nifti(values.double(), 64), 8),
        "second": (nifti_2(values), 4),
    }
    for column in ((1, 2, 3), (-1, -2, 3), (3, 1, 2), (2, -3, 1), (-3, 2, -1)):
        written[f"turned {column}"] = (turned(nifti(values.float(), 16), column), 4)
    for name, (raw, size) in written.items():
        path = folder / f"{name}.nii"
        if dist.get_rank() == 0:
            path.write_bytes(raw)
        dist.barrier()
        files._open, _Counting.total = (lambda path: _Counting(plain(path))), 0
        try:
            x, slabs, header = sd.read(path)
        finally:
            files._open = plain
        own_bytes = x.numel() * size
        assert own_bytes <= _Counting.total <= own_bytes + (1 << 16), (name, _Counting.total)
        assert len(header.raw) <= 1 << 16
        if name == "second":
            check(x, own(values[None, None] * 0.5 + 3, slabs), 0, name)
            sd.write(folder / "third.nii", x, slabs, header)
            check(sd.read(folder / "third.nii")[0], x, 0, name)

# SPDX-License-Identifier: Apache-2.0
"""Each rank reads and writes its own rows of a NIfTI file."""

import gzip
import pathlib
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
    if dist.get_rank() == 0:
        count_read_bytes(path)


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


def count_read_bytes(path):
    """A .nii costs own bytes and the header, as the system counts them."""
    from similis.distributed import files

    header, offset = files._header(path)

    class Rows:
        start, stop = 3, 5

    def read_so_far():
        return int(pathlib.Path("/proc/self/io").read_text().split("rchar: ")[1].split()[0])

    before = read_so_far()
    files._own_rows(path, header, offset, Rows, torch.float32)
    assert read_so_far() - before <= 2 * 5 * 6 * 2 + (1 << 16)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs what README.md shows: its C++ program, and every command of its `sh` blocks.

    readme_test.py BUILD_FOLDER SCRATCH_FOLDER
"""

import gzip
import math
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

import png

ROOT = pathlib.Path(__file__).resolve().parent.parent


def blocks(language):
    found = re.findall(rf"^```{language}\n(.*?)^```", (ROOT / "README.md").read_text(),
                       re.MULTILINE | re.DOTALL)
    assert found, f"README.md shows no {language}"
    return found


def write_pictures(folder):
    """The files that the commands name."""
    width, height = 192, 176
    reference = bytes((x * y // 97 + 40 * channel) % 256
                      for y in range(height) for x in range(width) for channel in range(3))
    distorted = bytes(sample & 0xf0 for sample in reference)
    for name, samples in ("reference", reference), ("distorted", distorted):
        (folder / f"{name}.png").write_bytes(png.encode(samples, width, channels=3))
        planes = bytes(samples[::3]) + bytes(samples[:width * height // 2])
        (folder / f"{name}.y4m").write_bytes(
            b"YUV4MPEG2 W%d H%d C420\n" % (width, height) + (b"FRAME\n" + planes) * 3)
    for name, values in ("fixed", range(0, 256)), ("moving", range(255, -1, -1)):
        (folder / f"{name}.nii.gz").write_bytes(gzip.compress(nifti((16, 16, 16), values)))
    (folder / "affine.mat").write_bytes(matlab_affine())
    for side, name in ("references", "reference"), ("distorted", "distorted"):
        (folder / side).mkdir()
        for copy in "a.png", "b.png":
            shutil.copy(folder / f"{name}.png", folder / side / copy)


def nifti(size, values):
    """NIfTI-1 of bytes, in voxels of 1 mm."""
    header = bytearray(352)
    struct.pack_into("<i", header, 0, 348)
    struct.pack_into("<4h", header, 40, 3, *size)
    struct.pack_into("<2h", header, 70, 2, 8)
    struct.pack_into("<4f", header, 76, 1, 1, 1, 1)
    struct.pack_into("<f", header, 108, 352)
    struct.pack_into("<4s", header, 344, b"n+1")
    voxels = math.prod(size)
    return bytes(header) + (bytes(values) * (voxels // len(values) + 1))[:voxels]


def matlab_affine():
    """A shift by a voxel, as ANTs writes it."""
    matrices = ((b"AffineTransform_double_3_3\0", (1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0)),
                (b"fixed\0", (0, 0, 0)))
    return b"".join(struct.pack("<5i", 0, len(numbers), 1, 0, len(name)) + name +
                    struct.pack(f"<{len(numbers)}d", *numbers) for name, numbers in matrices)


def run_commands(build, folder):
    environment = {**os.environ, "PATH": f"{build / 'bin'}:{os.environ['PATH']}"}
    for block in blocks("sh"):
        subprocess.run(["bash", "-euxc", block], cwd=folder, env=environment, check=True)
    for written in "losses.png", "scores.csv", "scores.xml", "vmaf.json", "warped.nii.gz":
        assert (folder / written).stat().st_size > 0, written


def run_programs(build, folder):
    for block in blocks("cpp"):
        (folder / "example.cc").write_text(block)
        subprocess.run(["c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "example.cc",
                        f"-I{ROOT / 'include'}", f"-I{build / 'include'}", f"-L{build / 'lib'}",
                        "-lsimilis", "-o", "example"], cwd=folder, check=True)
        subprocess.run(["./example"], cwd=folder, check=True,
                       env={**os.environ, "LD_LIBRARY_PATH": str(build / "lib")})


def main():
    build, folder = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_pictures(folder)
    run_commands(build, folder)
    run_programs(build, folder)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs what README.md shows: its C++ program, and every command of its `sh` blocks.

    readme_test.py BUILD_FOLDER SCRATCH_FOLDER
"""

import os
import pathlib
import re
import shutil
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
    for side, name in ("references", "reference"), ("distorted", "distorted"):
        (folder / side).mkdir()
        for copy in "a.png", "b.png":
            shutil.copy(folder / f"{name}.png", folder / side / copy)


def run_commands(build, folder):
    environment = {**os.environ, "PATH": f"{build / 'bin'}:{os.environ['PATH']}"}
    for block in blocks("sh"):
        subprocess.run(["bash", "-euxc", block], cwd=folder, env=environment, check=True)
    for written in "losses.png", "scores.csv", "scores.xml", "vmaf.json":
        assert (folder / written).stat().st_size > 0, written


def run_programs(build, folder):
    for block in blocks("cpp"):
        (folder / "example.cc").write_text(block)
        subprocess.run(["c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "example.cc",
                        f"-I{ROOT / 'include'}", f"-L{build / 'lib'}", "-lsimilis", "-o",
                        "example"], cwd=folder, check=True)
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

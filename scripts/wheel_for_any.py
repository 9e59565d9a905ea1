#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds similis-…-py3-none-any.whl: the Python package without its library, for systems that have no
wheel of their own, such as macOS. It computes torch's tensors, on Apple's GPUs by kernels, and else
by torch's own operators. The tables and the text of kernels in it are those of build/python.

    wheel_for_any.py OUTPUT_FOLDER
"""

import pathlib
import subprocess
import sys
import tempfile

from wheel_files import dist_info, rewritten

ROOT = pathlib.Path(__file__).resolve().parent.parent
NATIVE = ROOT / "build/python/similis/native"
# What only the library needs, and what would be wrong of this wheel.
LEFT_OUT = ("Requires-Dist: apache-tvm-ffi", "Classifier: Operating System :: POSIX :: Linux")


def changes(source):
    files = {"similis/native/schema.json": (NATIVE / "schema.json").read_bytes()}
    texts = sorted((NATIVE / "kernels").glob("*.metal"))
    if not texts:
        sys.exit("wheel_for_any.py: build/python has no text of kernels; install spirv-cross")
    files.update({f"similis/native/kernels/{text.name}": text.read_bytes() for text in texts})
    metadata = f"{dist_info(source)}/METADATA"
    lines = source.read(metadata).decode().splitlines(keepends=True)
    files[metadata] = "".join(x for x in lines if not x.startswith(LEFT_OUT)).encode()
    return files


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(
            [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check",
             "--no-deps", "--wheel-dir", scratch, "--config-settings=wheel.cmake=false", str(ROOT)],
            check=True,
        )
        (wheel,) = pathlib.Path(scratch).glob("similis-*-py3-none-any.whl")
        print(rewritten(wheel, pathlib.Path(sys.argv[1]), changes))


if __name__ == "__main__":
    main()

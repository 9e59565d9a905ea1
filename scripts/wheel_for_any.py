#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds similis-…-py3-none-any.whl: the Python package without its library, for systems that have no
wheel of their own, such as macOS. It computes torch's tensors, on Apple's GPUs by kernels, and else
by torch's own operators. The tables and the text of kernels in it are those of NATIVE, the folder
build/python/similis/native unless another is given. Needs scikit-build-core, and fetches nothing.

    wheel_for_any.py OUTPUT_FOLDER [NATIVE]
"""

import functools
import pathlib
import subprocess
import sys
import tempfile

from wheel_files import dist_info, rewritten

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Would be wrong of this wheel.
LEFT_OUT = "Classifier: Operating System :: POSIX :: Linux"


def changes(source, native):
    files = {"similis/native/schema.json": (native / "schema.json").read_bytes()}
    texts = sorted((native / "kernels").glob("*.metal"))
    if not texts:
        sys.exit(f"wheel_for_any.py: {native} has no text of kernels; install spirv-cross")
    files.update({f"similis/native/kernels/{text.name}": text.read_bytes() for text in texts})
    metadata = f"{dist_info(source)}/METADATA"
    lines = source.read(metadata).decode().splitlines(keepends=True)
    files[metadata] = "".join(x for x in lines if not x.startswith(LEFT_OUT)).encode()
    return files


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    native = ROOT / "build/python/similis/native" if len(sys.argv) == 2 else sys.argv[2]
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(
            [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check",
             "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", scratch,
             "--config-settings=wheel.cmake=false", str(ROOT)],
            check=True,
        )
        (wheel,) = pathlib.Path(scratch).glob("similis-*-py3-none-any.whl")
        of_native = functools.partial(changes, native=pathlib.Path(native))
        print(rewritten(wheel, pathlib.Path(sys.argv[1]), of_native))


if __name__ == "__main__":
    main()

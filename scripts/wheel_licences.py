#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds to a wheel the licences of what it carries: the libraries that auditwheel put into it, the
headers that are compiled in, and the CUDA runtime if there is GPU code. Debian and Ubuntu keep a
package's licence in /usr/share/doc. A licence that is not found is an error.

    wheel_licences.py WHEEL OUTPUT_FOLDER [FILE…]

The files are added too, beside the library.
"""

import pathlib
import re
import subprocess
import sys

from wheel_files import dist_info, rewritten

HEADERS = ("libfmt-dev", "libcli11-dev", "nlohmann-json3-dev")
CUDA = pathlib.Path("/usr/local/cuda")
CUDA_TERMS = ("EULA.txt", "doc/EULA.txt", "dist-info/nvidia_cuda_runtime-*/licenses/License.txt")
DOCUMENTS = pathlib.Path("/usr/share/doc")


def package_of(library):
    """The package that installed lib….so.N of this wheel's name for it, lib…-<hash>.so.N.N.N."""
    name = re.sub(r"-[0-9a-f]{8}(?=\.so)", "", library)
    stem = name[: name.index(".so") + 3]
    paths = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    for path in re.findall(rf"=> (\S*/{re.escape(stem)}\.\S+)", paths):
        real = pathlib.Path(path).resolve()
        for candidate in real, pathlib.Path(str(real).removeprefix("/usr")):
            found = subprocess.run(["dpkg", "-S", candidate], capture_output=True, text=True)
            if found.returncode == 0:
                return found.stdout.split(":")[0]
    sys.exit(f"wheel_licences.py: no package owns {library}")


def cuda_terms():
    for pattern in CUDA_TERMS:
        for terms in sorted(CUDA.glob(pattern)):
            return terms.read_bytes()
    sys.exit(f"wheel_licences.py: the wheel has GPU code, and {CUDA} has no terms for its runtime")


def licences(wheel):
    """{name in the wheel: text}"""
    libraries = [
        pathlib.PurePath(name).name
        for name in wheel.namelist()
        if name.startswith("similis.libs/") and ".so" in name
    ]
    packages = {package_of(library) for library in libraries} | set(HEADERS)
    texts = {
        f"{package}.txt": (DOCUMENTS / package / "copyright").read_bytes() for package in packages
    }
    own = next(name for name in wheel.namelist() if name.startswith("similis/native/libsimilis"))
    if b".nv_fatbin" in wheel.read(own):
        texts["cuda-runtime.txt"] = cuda_terms()
    return texts


def changes(source):
    folder = f"{dist_info(source)}/licenses"
    files = [pathlib.Path(each) for each in sys.argv[3:] if pathlib.Path(each).exists()]
    added = {f"similis/native/{file.name}": file.read_bytes() for file in files}
    return {**added, **{f"{folder}/{name}": text for name, text in licences(source).items()}}


def main():
    print(rewritten(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), changes))


if __name__ == "__main__":
    main()

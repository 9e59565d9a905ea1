#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the number of GPU kernels to a budget: each costs compile time and room in the library.

tests/gpu_kernels.json lists the kernels of every .cu file, and the gpu-builds preset fails on a
kernel that is not in it. Before a number below grows, docs/architecture.md says what for.
"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUDGETS = {  # rooms: most kernels
    "src/ssim/ and src/ms_ssim/": (("src/ssim/", "src/ms_ssim/"), 63),
    "src": (("src/",), 265),
}


def count(kernels, rooms):
    return sum(len(listed) for source, listed in kernels.items() if source.startswith(rooms))


def faults(kernels, sources):
    """Sentences about what is wrong; `kernels` is {source: its kernels}."""
    for source in sorted(sources - kernels.keys()):
        yield f"{source} is not in tests/gpu_kernels.json; tests/gpu_build_test.py --update adds it"
    for source in sorted(kernels.keys() - sources):
        yield f"tests/gpu_kernels.json lists {source}, which does not exist"
    for name, (rooms, most) in BUDGETS.items():
        found = count(kernels, rooms)
        if found > most:
            yield (f"{name} has {found} kernels; the budget is {most}, and docs/architecture.md "
                   "must say what more are for")


def check_the_test_itself():
    names = [f"kernel_{i}" for i in range(BUDGETS["src"][1] + 1)]
    assert list(faults({"src/ssim/a.cu": names[:63]}, {"src/ssim/a.cu"})) == []
    assert len(list(faults({"src/ssim/a.cu": names[:64]}, {"src/ssim/a.cu"}))) == 1
    assert len(list(faults({"src/ncc/a.cu": names}, {"src/ncc/a.cu"}))) == 1
    assert len(list(faults({}, {"src/ncc/a.cu"}))) == 1
    assert len(list(faults({"src/ncc/a.cu": []}, set()))) == 1


def main():
    check_the_test_itself()
    kernels = json.loads((ROOT / "tests/gpu_kernels.json").read_text())
    del kernels["nvcc"]
    sources = {str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("*.cu")}
    for name, (rooms, most) in BUDGETS.items():
        print(f"{name}: {count(kernels, rooms)} kernels of {most}")
    wrong = list(faults(kernels, sources))
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

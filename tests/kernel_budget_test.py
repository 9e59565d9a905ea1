#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the number of GPU kernels to the table of docs/architecture.md, which gives each folder's
purposes. tests/gpu_kernels.json lists the kernels that nvcc finds, for every .cu file there is.

    tests/kernel_budget_test.py
"""

import collections
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/architecture.md"
ROW = re.compile(r"^\| (`src/[^|]*) \| (\d+) \| \S", re.MULTILINE)


def budgets():
    """[(folders, kernels)] of the table."""
    return [(re.findall(r"`(src/\w+)`", folders), int(count))
            for folders, count in ROW.findall(PAGE.read_text())]


def listed():
    """{source: kernels}"""
    budgets_by_source = json.loads((ROOT / "tests/gpu_kernels.json").read_text())
    return {source: len(budget) for source, budget in budgets_by_source.items() if source != "nvcc"}


def main():
    sources = {str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("*.cu")}
    found, wrong = collections.Counter(), []
    for source, count in listed().items():
        found["/".join(source.split("/")[:2])] += count
    total = sum(found.values())
    found = collections.Counter({folder: count for folder, count in found.items() if count})
    wrong += [f"{source} is not in tests/gpu_kernels.json; tests/gpu_build_test.py --update adds it"
              for source in sorted(sources - listed().keys())]
    wrong += [f"tests/gpu_kernels.json lists {source}, which does not exist"
              for source in sorted(listed().keys() - sources)]
    for folders, allowed in budgets():
        taken = sum(found.pop(folder, 0) for folder in folders)
        if taken != allowed:
            wrong.append(f"{' and '.join(folders)}: number of kernels is {taken}, "
                         f"and the table says {allowed}")
    wrong += [f"{folder}: number of kernels is {taken}, and it has no row"
              for folder, taken in found.items()]
    print("\n".join(wrong) or f"{total} kernels, as docs/architecture.md says")
    if wrong:
        print("docs/architecture.md says what each kernel is for: give a new one its reason there")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

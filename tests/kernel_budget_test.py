#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the number of GPU kernels to the table of docs/architecture.md, which gives each folder's
purposes. tests/gpu_kernels.json lists the kernels that nvcc finds.

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


def kernels():
    """{folder: kernels}"""
    found = collections.Counter()
    for source, budget in json.loads((ROOT / "tests/gpu_kernels.json").read_text()).items():
        if source != "nvcc" and budget:
            found["/".join(source.split("/")[:2])] += len(budget)
    return found


def main():
    found, wrong = kernels(), []
    for folders, allowed in budgets():
        taken = sum(found.pop(folder, 0) for folder in folders)
        if taken != allowed:
            wrong.append(f"{' and '.join(folders)}: number of kernels is {taken}, "
                         f"and the table says {allowed}")
    wrong += [f"{folder}: number of kernels is {taken}, and it has no row"
              for folder, taken in found.items()]
    print("\n".join(wrong) or f"{sum(kernels().values())} kernels, as docs/architecture.md says")
    if wrong:
        print("docs/architecture.md says what each kernel is for: give a new one its reason there")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests how gpu_build_test.py reads ptxas' words and holds the figures to budgets.

    tests/gpu_budgets_test.py
"""

import sys

from gpu_build_test import figures, over_budget

NO_BUDGET = ["k: has no budget"]


def takes(registers, spilled, most_registers, most_spilled):
    return (f"k: takes {registers} registers and spills {spilled} bytes; its budget is "
            f"{most_registers} and {most_spilled}")


# [(what it shows, figures of k, a budget of each source, what is wrong)]
CASES = [
    ("a kernel at its budget", [[40, 8]], [{"k": [40, 8]}], []),
    ("less than its budget", [[32, 0]], [{"k": [40, 8]}], []),
    ("a register more", [[41, 8]], [{"k": [40, 8]}], [takes(41, 8, 40, 8)]),
    ("more bytes spilled, with fewer registers", [[32, 12]], [{"k": [40, 8]}], [takes(32, 12, 40, 8)]),
    ("no budget", [[32, 0]], [{"other": [40, 8]}], NO_BUDGET),
    ("no source's budgets", [[32, 0]], [{}], NO_BUDGET),
    ("budgets of kernels that are gone", [], [{"k": [40, 8]}], []),
    ("two sources, in whichever order", [[32, 0], [64, 0]], [{"k": [64, 0]}, {"k": [32, 0]}], []),
    ("the smaller of two kernels grew", [[64, 0], [33, 0]], [{"k": [32, 0]}, {"k": [64, 0]}],
     [takes(33, 0, 32, 0)]),
    ("a second kernel without a budget", [[64, 0], [32, 0]], [{"k": [64, 0]}, {}], NO_BUDGET),
    ("both at once", [[65, 0], [32, 0]], [{"k": [64, 0]}], NO_BUDGET + [takes(65, 0, 64, 0)]),
]

WORDS = """
ptxas info    : Compiling entry function '_ZN7similis12_GLOBAL__N_14passILi3EEEvPf' for 'sm_80'
    0 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 99 registers, used 1 barriers
ptxas info    : Compiling entry function '_ZN7similis12_GLOBAL__N_14passILi3EEEvPf' for 'sm_90'
    8 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers
ptxas info    : Compiling entry function '_ZN7similis12_GLOBAL__N_14passILi3EEEvPf' for 'sm_90'
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers
"""


def main():
    failed = 0
    for name, taken, budgets, expected in CASES:
        found = list(over_budget({"k": taken} if taken else {}, budgets))
        if found != expected:
            failed += 1
            print(f"{name}: {found} instead of {expected}")
    read = dict(figures(WORDS))
    if read != {"pass<3>": [[40, 20], [32, 0]]}:
        failed += 1
        print(f"ptxas' words: {read}")
    print(f"{len(CASES) + 1 - failed} of {len(CASES) + 1} cases")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())

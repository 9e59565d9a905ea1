#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command of nvcc with -Xptxas=-v and keeps what ptxas says of each kernel in OBJECT.ptxas,
where tests/gpu_build_test.py finds it. Everything else that nvcc says is passed on.

    scripts/keep_registers.py [ccache] nvcc … -o OBJECT
"""

import re
import subprocess
import sys

OF_KERNELS = re.compile(r"ptxas info|\s+\d+ bytes stack frame")


def main():
    command = sys.argv[1:]
    result = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace")
    kept, passed_on = [], []
    for line in result.stderr.splitlines(keepends=True):
        (kept if OF_KERNELS.match(line) else passed_on).append(line)
    sys.stderr.write("".join(passed_on))
    if result.returncode == 0 and "-o" in command:
        with open(command[command.index("-o") + 1] + ".ptxas", "w") as file:
            file.write("".join(kept))
    return result.returncode


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the compiler made vector code of SSIM's plain loops: the functions of the AVX2 target
that run formula.h hold packed divides."""

import re
import subprocess
import sys

ROOM = "ssim_internal::N_AVX2"


def divides(library):
    """{function: {instruction: count}} of the divisions in the room's AVX2 functions."""
    listing = subprocess.run(["objdump", "--disassemble", "--no-show-raw-insn", "--demangle",
                              library], check=True, text=True, stdout=subprocess.PIPE).stdout
    counts, function = {}, ""
    for line in listing.splitlines():
        if header := re.match(r"[0-9a-f]+ <(.*)>:$", line):
            function = header[1]
        elif ROOM in function and (divide := re.search(r"\t(v?div[sp][sd]) .*%([xyz])mm", line)):
            of_function = counts.setdefault(function, {})
            kind = f"{divide[1]} {divide[2]}mm"
            of_function[kind] = of_function.get(kind, 0) + 1
    return counts


def main():
    counts = divides(sys.argv[1])
    packed = sum(count for kinds in counts.values() for kind, count in kinds.items()
                 if kind in ("vdivpd ymm", "vdivps ymm"))
    for function, kinds in counts.items():
        print(function, kinds)
    # Value: p, q. Value and gradient: p, q and four derivatives, less what the compiler shares.
    # Each for SSIM and for the contrast term.
    if packed < 8:
        sys.exit(f"{packed} packed divides in {ROOM}; expected at least 8")


if __name__ == "__main__":
    main()

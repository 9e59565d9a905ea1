#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what a shared library of similis exports: every function that the C headers declare, and
nothing but names of similis, each with similis's version."""

import pathlib
import re
import subprocess
import sys

HEADERS = pathlib.Path(__file__).resolve().parent.parent / "include" / "similis" / "c"


def exported(library):
    """(name, version) of each defined dynamic symbol, demangled; the version's own one left out."""
    listing = subprocess.run(["nm", "--dynamic", "--defined-only", "--demangle", library],
                             check=True, text=True, stdout=subprocess.PIPE).stdout
    for line in listing.splitlines():
        kind, symbol = re.match(r"[0-9a-f]* (\w) (.*)", line).groups()
        if kind != "A":
            yield symbol.rpartition("@@")[::2]


def declared():
    for header in sorted(HEADERS.glob("*.h")):
        yield from re.findall(r"^SIMILIS_API [^;(]*?\b(similis_\w+)\(", header.read_text(),
                              re.MULTILINE)


def is_ours(name):
    name = re.sub(r"^(typeinfo|typeinfo name|vtable|guard variable) for ", "", name)
    return name.startswith("similis_") or (name.startswith("similis::") and
                                           "internal" not in name)


def main():
    symbols = list(exported(sys.argv[1]))
    names = {name for name, _ in symbols}
    problems = [f"exported and not ours: {name}" for name in names if not is_ours(name)]
    problems += [f"without a version of similis: {name}" for name, version in symbols
                 if not version.startswith("SIMILIS_")]
    functions = set(declared())
    problems += [f"declared and not exported: {name}" for name in functions - names]
    if not functions:
        problems.append("no function is declared: this test no longer reads the headers")
    print(f"{len(names)} symbols, {len(functions)} C functions")
    if problems:
        sys.exit("\n".join(sorted(problems)))


if __name__ == "__main__":
    main()

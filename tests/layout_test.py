#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the tree to sizes that a reader can take in: a folder of src and python holds at most 30 source files itself,
a source file at most 500 lines. Only src/gpu, src/core, the operations' tables and tests ask which kinds of GPU a build
has.

    tests/layout_test.py
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ["include", "src", "python", "bench", "demo", "examples", "scripts", "tests"]
SOURCES = {".h", ".hpp", ".c", ".cc", ".cu", ".cuh", ".comp", ".glsl", ".py", ".sh"}
MOST_FILES, MOST_LINES = 30, 500
ASKS = re.compile(r"^\s*#\s*if.*\bSIMILIS_HAS_(CUDA|VULKAN)\b", re.MULTILINE)
MAY_ASK = re.compile(r"src/(gpu|core)/|/operation\.cc$|_test\.cc$|^tests/")


def sources():
    """[(path from the root, text)]"""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SOURCES and path.is_file():
                yield path.relative_to(ROOT), path.read_text()


def main():
    held, wrong = collections.Counter(), []
    for name, text in sources():
        held[name.parent] += 1
        lines = text.count("\n")
        if lines > MOST_LINES:
            wrong.append(f"{name}: it has {lines} lines; {MOST_LINES} are the most")
        if ASKS.search(text) and not MAY_ASK.search(str(name)):
            wrong.append(f"{name}: it asks for a kind of GPU; an operation's run[backend] chooses")
    wrong += [f"{folder}: it holds {files} source files; {MOST_FILES} are the most"
              for folder, files in held.items()
              if folder.parts[0] in ("src", "python") and files > MOST_FILES]
    print("\n".join(wrong) or f"{sum(held.values())} source files in {len(held)} folders")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

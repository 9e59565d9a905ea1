#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles a GPU source with nvcc and holds its kernels to their budgets: registers, and bytes that
are spilled to memory. What each takes is printed.

    tests/gpu_build_test.py [--update] [--built FOLDER] SOURCE nvcc -c SOURCE …

The source is not compiled again if its object in the build folder FOLDER is up to date and
scripts/keep_registers.py has kept beside it what ptxas said of compute capability 9.0.

The budgets stand in tests/gpu_kernels.json, beside the release of nvcc that they were found with;
another release's figures are printed and not compared. --update writes what this run found.
"""

import json
import pathlib
import re
import subprocess
import sys

BUDGETS = pathlib.Path(__file__).resolve().parent / "gpu_kernels.json"
KERNEL = re.compile(r"Compiling entry function '(\w+)' for 'sm_90'")
SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")


def compiled(command):
    """nvcc's words; ends the test if it fails."""
    result = subprocess.run([*command, "-Xptxas", "-v"], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(result.stdout + result.stderr)
    return result.stdout + result.stderr


def kept(folder, source):
    """What ptxas said when the build in the folder compiled the source; None if that is not known."""
    folder = pathlib.Path(folder)
    name = f"CMakeFiles/similis_gpu_objects.dir/{source}.o"
    words = folder / f"{name}.ptxas"
    if not words.exists():
        return None
    listed = subprocess.run(["ninja", "-C", folder, "-t", "deps", name], capture_output=True, text=True)
    read = [folder / line.strip() for line in listed.stdout.splitlines() if line.startswith("    ")]
    made = words.stat().st_mtime
    is_current = read and all(file.exists() and file.stat().st_mtime <= made for file in read)
    text = words.read_text()
    return text if is_current and KERNEL.search(text) else None


def release(nvcc):
    text = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    return re.search(r"release ([\d.]+)", text).group(1)


def short(mangled):
    """A kernel's name with its template arguments, without namespaces and parameters."""
    name = subprocess.run(["c++filt", mangled], capture_output=True, text=True, check=True).stdout
    name = re.sub(r"\(anonymous namespace\)::|\w+_internal::|similis::|unsigned char", lambda m: "u8"
                  if m.group() == "unsigned char" else "", name.strip())
    name = re.sub(r"\(\w+\)(?=-?\d)", "", name.removeprefix("void "))  # an enumerator's type
    return name[:name.index("(")] if "(" in name else name


def figures(words):
    """{kernel: [registers, spilled bytes]}"""
    found, kernel, spilled = {}, None, 0
    for line in words.splitlines():
        if match := KERNEL.search(line):
            kernel, spilled = short(match.group(1)), 0
        elif match := SPILLS.search(line):
            spilled = int(match.group(1)) + int(match.group(2))
        elif kernel and (match := REGISTERS.search(line)):
            found[kernel] = [int(match.group(1)), spilled]
            kernel = None
    return found


def over_budget(found, budget):
    for kernel, taken in found.items():
        if kernel not in budget:
            yield f"{kernel}: has no budget"
        elif any(mine > allowed for mine, allowed in zip(taken, budget[kernel])):
            yield (f"{kernel}: takes {taken[0]} registers and spills {taken[1]} bytes; its budget is "
                   f"{budget[kernel][0]} and {budget[kernel][1]}")


def main():
    arguments = sys.argv[1:]
    updates = arguments[0] == "--update"
    arguments = arguments[1:] if updates else arguments
    words = None
    if arguments[0] == "--built":
        words = kept(arguments[1], arguments[2])
        arguments = arguments[2:]
    source, *command = arguments
    found = figures(words or compiled(command))
    for kernel, (registers, spilled) in sorted(found.items()):
        print(f"{kernel}: {registers} registers, {spilled} bytes spilled")
    budgets = json.loads(BUDGETS.read_text()) if BUDGETS.exists() else {}
    version = release(command[0])
    if updates:
        budgets["nvcc"] = version
        budgets[source] = dict(sorted(found.items()))
        BUDGETS.write_text(json.dumps(budgets, indent=1, sort_keys=True) + "\n")
        return 0
    if budgets.get("nvcc") != version:
        print(f"{BUDGETS.name} is of nvcc {budgets.get('nvcc')}; this is {version}: not compared")
        return 0
    wrong = list(over_budget(found, budgets.get(source, {})))
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles a GPU source with nvcc and holds its kernels to their budgets: registers, and bytes that
are spilled to memory. Each kernel's figures are printed.

    tests/gpu_build_test.py [--update] [--built FOLDER] SOURCE nvcc -c SOURCE …

The source is not compiled again if its object in the build folder FOLDER is up to date and
scripts/keep_registers.py has kept beside it what ptxas said of compute capability 9.0. An object of
several sources is held to the budgets of all of them.

The budgets stand in tests/gpu_kernels.json, beside the release of nvcc that they were found with;
another release's figures are printed and not compared. --update writes what this run found.
"""

import collections
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
    """ptxas' words from when the build in the folder compiled the source, alone or with others,
    and these sources; None if they are not known."""
    folder = pathlib.Path(folder)
    compiled_as = {source: [source]}
    for file in folder.glob("batches/gpu-*.cu"):  # by scripts/batches.py
        together = re.findall('#include "(.*)"', file.read_text())
        if source in together:
            compiled_as[file.relative_to(folder)] = together
    for file, sources in compiled_as.items():
        name = f"CMakeFiles/similis_gpu_objects.dir/{file}.o"
        words = folder / f"{name}.ptxas"
        if not words.exists():
            continue
        listed = subprocess.run(
            ["ninja", "-C", folder, "-t", "deps", name], capture_output=True, text=True)
        read = [folder / line.strip() for line in listed.stdout.splitlines() if line.startswith("    ")]
        made = words.stat().st_mtime
        text = words.read_text()
        if read and all(each.exists() and each.stat().st_mtime <= made for each in read):
            if KERNEL.search(text):
                return text, sources
    return None


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
    """{kernel: [[registers, spilled bytes] of each source that has a kernel of this name]}"""
    found, kernel, spilled = collections.defaultdict(list), None, 0
    for line in words.splitlines():
        if match := KERNEL.search(line):
            kernel, spilled = short(match.group(1)), 0
        elif match := SPILLS.search(line):
            spilled = int(match.group(1)) + int(match.group(2))
        elif kernel and (match := REGISTERS.search(line)):
            found[kernel].append([int(match.group(1)), spilled])
            kernel = None
    return found


def over_budget(found, budgets):
    """Sentences on figures over budget; each source has its own, {kernel: [registers, bytes]}.
    Kernels of one name are compared in the order of their registers and bytes."""
    for kernel, figures_of_all in found.items():
        allowed = sorted((each[kernel] for each in budgets if kernel in each), reverse=True)
        if len(allowed) < len(figures_of_all):
            yield f"{kernel}: has no budget"
        for taken, most in zip(sorted(figures_of_all, reverse=True), allowed):
            if any(mine > theirs for mine, theirs in zip(taken, most)):
                yield (f"{kernel}: takes {taken[0]} registers and spills {taken[1]} bytes; its budget "
                       f"is {most[0]} and {most[1]}")


def main():
    arguments = sys.argv[1:]
    updates = arguments[0] == "--update"
    arguments = arguments[1:] if updates else arguments
    known = None
    if arguments[0] == "--built":
        known = kept(arguments[1], arguments[2])
        arguments = arguments[2:]
    source, *command = arguments
    if updates and known and len(known[1]) > 1:  # which kernel is whose is not said
        known = None
    words, sources = known or (compiled(command), [source])
    found = figures(words)
    for kernel, taken in sorted(found.items()):
        for registers, spilled in taken:
            print(f"{kernel}: {registers} registers, {spilled} bytes spilled")
    budgets = json.loads(BUDGETS.read_text()) if BUDGETS.exists() else {}
    version = release(command[0])
    if updates:
        budgets["nvcc"] = version
        budgets[source] = {kernel: max(taken) for kernel, taken in sorted(found.items())}
        BUDGETS.write_text(json.dumps(budgets, indent=1, sort_keys=True) + "\n")
        return 0
    if budgets.get("nvcc") != version:
        print(f"{BUDGETS.name} is of nvcc {budgets.get('nvcc')}; this is {version}: not compared")
        return 0
    wrong = list(over_budget(found, [budgets.get(each, {}) for each in sources]))
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

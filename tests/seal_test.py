#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds scripts/seal.py to its word: a module that is not sealed, not any longer, or that keeps an
array in memory is refused, and what it makes is valid and adds by fma alone.

  tests/seal_test.py GLSLANG SPIRV_OPT SPIRV_VAL SCRATCH
"""

import pathlib
import struct
import subprocess
import sys

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "scripts" / "seal.py"
PASSES = ["--merge-return", "--inline-entry-points-exhaustive", "--eliminate-dead-functions",
          "--ssa-rewrite", "--loop-unroll", "--scalar-replacement=0", "-O"]
HEAD = """#version 460
layout(local_size_x = 1) in;
layout(std430, binding = 0) buffer Numbers {{ {type} v[]; }};
layout(push_constant) uniform Push {{ float {first}; int at; }};
"""
SUMS = "void main() { v[0] = v[1] * v[2] + v[3]; v[4] = v[5] - v[6] * v[7]; }"
ARRAY = "void main() { float a[4]; for (int i = 0; i < 4; ++i) a[i] = v[i]; v[0] = a[at & 3]; }"


class Tools:
    def __init__(self, glslang, optimiser, validator, scratch):
        self.glslang, self.optimiser, self.validator = glslang, optimiser, validator
        self.scratch = pathlib.Path(scratch)
        self.scratch.mkdir(parents=True, exist_ok=True)

    def path(self, name):
        return str(self.scratch / name)

    def compile(self, body, element="float", first="one"):
        source = self.path("kernel.comp")
        pathlib.Path(source).write_text(HEAD.format(type=element, first=first) + body,
                                        encoding="utf-8")
        subprocess.run([self.glslang, "-V", "--quiet", "--target-env", "vulkan1.2", "-o",
                        self.path("raw.spv"), source], check=True)
        return self.path("raw.spv")

    def optimise(self, module):
        subprocess.run([self.optimiser, *PASSES, module, "-o", self.path("optimised.spv")],
                       check=True)
        return self.path("optimised.spv")

    def seal(self, *arguments):
        """The text that seal.py writes to stderr; empty if it succeeds."""
        done = subprocess.run([sys.executable, str(SCRIPT), *arguments], check=False, text=True,
                              stderr=subprocess.PIPE)
        return done.stderr.strip() if done.returncode else ""


def expect(found, words):
    if words not in found:
        sys.exit(f"\"{words}\" was expected, and this came: \"{found}\"")


def expect_success(found):
    if found:
        sys.exit(f"nothing was to be refused, and this came: \"{found}\"")


def without_decorations(module):
    """The module without its NoContraction."""
    data = pathlib.Path(module).read_bytes()
    words, at = list(struct.unpack(f"<{len(data) // 4}I", data)), 5
    kept = words[:5]
    while at < len(words):
        length = words[at] >> 16
        if not (words[at] & 0xffff == 71 and words[at + 2] == 42):
            kept += words[at:at + length]
        at += length
    pathlib.Path(module).write_bytes(struct.pack(f"<{len(kept)}I", *kept))


def main():
    tools = Tools(*sys.argv[1:])
    sealed = tools.path("sealed.spv")
    for element in ("float", "double"):
        raw = tools.compile(SUMS, element)
        expect(tools.seal("check", raw), "floating-point results are not sealed")
        expect(tools.seal("check", tools.optimise(raw)), "are not sealed")
        expect_success(tools.seal("seal", raw, sealed))
        optimised = tools.optimise(sealed)
        expect_success(tools.seal("check", optimised))
        subprocess.run([tools.validator, "--target-env", "vulkan1.2", optimised], check=True)
        without_decorations(optimised)
        expect(tools.seal("check", optimised), "floating-point results are not sealed")
    # Decorations alone do not do: a driver may still contract a sum.
    raw = tools.compile("void main() { precise float r = v[1] * v[2] + v[3]; v[0] = r; }")
    expect(tools.seal("check", raw), "could be contracted")
    # The push constants must begin with one, and an array must not be in memory.
    expect(tools.seal("seal", tools.compile(SUMS, first="two"), sealed),
           'the push constants begin with "two"')
    expect_success(tools.seal("seal", tools.compile(ARRAY), sealed))
    expect(tools.seal("check", tools.optimise(sealed)), "variables of functions are in memory")
    print("sealed modules pass, and no others")


if __name__ == "__main__":
    main()

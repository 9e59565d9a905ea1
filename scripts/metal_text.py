#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a Vulkan module as text of Metal, by spirv-cross. Nobody edits that text.

    metal_text.py SPIRV_CROSS MODULE.spv OUTPUT.metal

The first line is a comment with a JSON object that says how to call the kernel:

    buffers     what each argument is, in order: the number of a binding, or "push"
    threads     of a workgroup; a name such as SPIRV_CROSS_CONSTANT_ID_0 is a constant's
    constants   the default of each specialization constant, by its number

Constants are macros, SPIRV_CROSS_CONSTANT_ID_N, for the caller to define in front of the text. The
module is sealed, so that a product may be written as `*`: no sum is left for it to be fused with.
"""

import json
import pathlib
import re
import subprocess
import sys

_MULTIPLY = "template<typename T>\ninline T spvFMul(T l, T r)\n{\n    return l * r;\n}\n"


def _run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _reflected(spirv_cross, module):
    """{name of a block's type: its binding, or "push"}"""
    found = json.loads(_run(spirv_cross, str(module), "--reflect"))
    name = lambda block: found["types"][block["type"]]["name"]
    blocks = {name(each): each["binding"] for each in found.get("ssbos", [])}
    blocks.update({name(each): "push" for each in found.get("push_constants", [])})
    return blocks


def _as_macros(text):
    """Function constants as macros, and {number: default}."""
    constants = {}

    def replaced(match):
        kind, name, number, default = match[1], match[2], match[3], match[4]
        constants[number] = int(re.sub(r"u$", "", default))
        macro = f"SPIRV_CROSS_CONSTANT_ID_{number}"
        return f"#ifndef {macro}\n#define {macro} {default}\n#endif\nconstant {kind} {name} = {macro};"

    text = re.sub(
        r"constant (\w+) (\w+)_tmp \[\[function_constant\((\d+)\)\]\];\n"
        r"constant \w+ \2 = is_function_constant_defined\(\2_tmp\) \? \2_tmp : (\w+);",
        replaced, text)
    for number, default in re.findall(r"#define SPIRV_CROSS_CONSTANT_ID_(\d+) (\d+)u?\n", text):
        constants[number] = int(default)
    return text, constants


def _threads(text):
    """The text without gl_WorkGroupSize, which is no constant of Metal's, and the three sizes."""
    declared = re.search(r"constant uint3 gl_WorkGroupSize.* = uint3\((\w+), (\w+), (\w+)\);\n", text)
    sizes = list(declared.groups())
    text = text.replace(declared[0], "")
    for axis, size in zip("xyz", sizes):
        text = text.replace(f"gl_WorkGroupSize.{axis}", size)
    if "gl_WorkGroupSize" in text:
        sys.exit("metal_text.py: gl_WorkGroupSize is used as a whole; use its members")

    def value(size):
        constant = re.search(rf"constant uint {size} = (SPIRV_CROSS_CONSTANT_ID_\d+);", text)
        return constant[1] if constant else int(size.removesuffix("u"))

    return text, [value(size) for size in sizes]


def _without_templates(text):
    """Multiplication as an inline function, without its relatives for matrices."""
    begin = text.index("using namespace metal;\n") + len("using namespace metal;\n")
    body = re.sub(
        r"\ntemplate<[^{}]* spvFMul\w*\([^{}]*\{.*?\n\}\n", "", text[begin:], flags=re.S)
    if "spvFMul" in body:
        body = "\n" + _MULTIPLY + body
    return text[:begin] + body


def converted(spirv_cross, module):
    text = _run(spirv_cross, "--msl", "--msl-version", "20300", str(module))
    text, constants = _as_macros(_without_templates(text))
    text, threads = _threads(text)
    blocks = _reflected(spirv_cross, module)
    signature = re.search(r"^kernel void main0\((.*)\)$", text, flags=re.M)[1]
    arguments = re.findall(r"(?:constant|device) (\w+)& \w+ \[\[buffer\((\d+)\)\]\]", signature)
    buffers = [blocks[name] for name, number in sorted(arguments, key=lambda each: int(each[1]))]
    call = {"buffers": buffers, "threads": threads, "constants": constants}
    return f"// {json.dumps(call)}\n// Made of {module.stem}.spv by scripts/metal_text.py.\n{text}"


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    text = converted(sys.argv[1], pathlib.Path(sys.argv[2]))
    pathlib.Path(sys.argv[3]).write_text(text)


if __name__ == "__main__":
    main()

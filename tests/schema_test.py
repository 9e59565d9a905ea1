#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds similis_schema() to the C headers: a C program with every operation's options struct is
compiled with the schema's sizes and offsets as static assertions, and prints the bytes of each
SIMILIS_…_DEFAULTS, which must be those of the schema.

    tests/schema_test.py LIBRARY C_COMPILER SCRATCH_FOLDER
"""

import ctypes
import json
import pathlib
import subprocess
import sys

INCLUDE = pathlib.Path(__file__).resolve().parent.parent / "include"
# Options that C names otherwise, the second member of those that have two, and the count of a list.
MEMBERS = {"signed": "is_signed", "rows": "rows_start", "image_rows": "image_rows_start",
           "cells": "first_cell", "reached": "first_reached"}
# Windows' rows are a first and an end, those of a warp a start and an extent.
WINDOW_MEMBERS = {"rows": ("first_row", "end_row")}
SECOND_MEMBERS = {"rows": "rows_extent", "image_rows": "image_rows_extent", "cells": "end_cell",
                  "reached": "end_reached"}
COUNTS = {"out_shape": "out_rank"}


def schema(library):
    loaded = ctypes.CDLL(library)
    loaded.similis_schema.restype = ctypes.c_char_p
    return json.loads(loaded.similis_schema().decode())["operations"]


def assertions(operation):
    struct = operation["c_struct"]
    yield f'_Static_assert(sizeof({struct}) == {operation["c_size"]}, "{struct}");'
    for option in operation["options"] + operation["request"]:
        name = option["name"]
        member, second_member = MEMBERS.get(name, name), SECOND_MEMBERS.get(name)
        if operation["name"] in ("ssim", "lncc"):
            member, second_member = WINDOW_MEMBERS.get(name, (member, second_member))
        place = f"offsetof({struct}, {member})"
        yield f'_Static_assert({place} == {option["offset"]}, "{struct}.{member}");'
        if option["count_offset"] is not None:
            count = COUNTS.get(option["name"], f"has_{member}")
            yield f'_Static_assert(offsetof({struct}, {count}) == {option["count_offset"]}, "{count}");'
        bytes_each = 4 if option["c_type"] == "int32" else 8
        if option["type"] == "interval":
            second = f"offsetof({struct}, {second_member})"
            yield f'_Static_assert({second} == {option["offset"] + bytes_each}, "{struct}.{member}");'
        elif option["c_type"] != "pointer":
            size = option["c_count"] * bytes_each
            yield f'_Static_assert(sizeof((({struct}*)0)->{member}) == {size}, "{member}");'


def program(operations):
    lines = [f"#include <similis/c/{header.name}>"
             for header in sorted((INCLUDE / "similis" / "c").glob("*.h"))]
    lines += ["#include <stddef.h>", "#include <stdio.h>",
             "static void print(const void* data, size_t count) {",
             "  for (size_t i = 0; i < count; ++i) printf(\"%02x\", ((const unsigned char*)data)[i]);",
             "  printf(\"\\n\");", "}"]
    for operation in operations:
        lines += assertions(operation)
    lines.append("int main(void) {")
    for operation in operations:
        struct = operation["c_struct"]
        macro = struct.upper().removesuffix("_OPTIONS") + "_DEFAULTS"
        lines.append(f"  {{ static const {struct} d = {macro}; print(&d, sizeof d); }}")
    return "\n".join([*lines, "  return 0;", "}", ""])


def main(library, compiler, scratch):
    operations = schema(library)
    assert operations, "the schema holds no operation"
    folder = pathlib.Path(scratch)
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "schema.c"
    source.write_text(program(operations))
    subprocess.run([compiler, "-std=c11", "-Wall", "-Werror", "-I", INCLUDE, source,
                    "-o", folder / "schema"], check=True)
    printed = subprocess.run([folder / "schema"], check=True, capture_output=True, text=True)
    for operation, found in zip(operations, printed.stdout.split(), strict=True):
        wanted = operation["c_defaults"]
        assert found == wanted, f'{operation["name"]}: the header has {found}, the table {wanted}'
    print(f"{len(operations)} operations agree with the C headers")


if __name__ == "__main__":
    main(*sys.argv[1:])

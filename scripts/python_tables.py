#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the library's tables of options and its version for the Python package without a library.

    python_tables.py LIBRARY OUTPUT.json
"""

import ctypes
import json
import pathlib
import sys


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    library = ctypes.CDLL(sys.argv[1])
    library.similis_schema.restype = library.similis_version.restype = ctypes.c_char_p
    tables = json.loads(library.similis_schema())
    tables["version"] = library.similis_version().decode()
    pathlib.Path(sys.argv[2]).write_text(json.dumps(tables, ensure_ascii=False))


if __name__ == "__main__":
    main()

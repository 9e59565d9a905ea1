# SPDX-License-Identifier: Apache-2.0
"""`python -m similis` and the script `similis`: the command line program."""

from __future__ import annotations

import os
import pathlib
import sys
from typing import NoReturn


def main() -> NoReturn:
    program = pathlib.Path(__file__).parent / "native" / "similis"
    if not program.exists():
        sys.exit(f"similis: the program is not at {program}; this package was built without it")
    os.execv(program, ["similis", *sys.argv[1:]])


if __name__ == "__main__":
    main()

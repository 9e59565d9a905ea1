# SPDX-License-Identifier: Apache-2.0
"""The bytes of a file, and the refusal of one that cannot be read."""

from __future__ import annotations

import gzip
import zlib
from typing import NoReturn


def refuse(path: str, words: str) -> NoReturn:
    raise ValueError(f"cannot read {path}: {words}")


def whole_file(path: str, most: int = 0) -> bytes:
    """The bytes of a file, decompressed; most: at most so many, 0 for all."""
    with open(path, "rb") as file:
        is_compressed = file.read(2) == b"\x1f\x8b"
    try:
        with (gzip.open if is_compressed else open)(path, "rb") as file:
            return file.read(most or -1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        refuse(path, f"its compressed data are damaged or cut off: {error}")

# SPDX-License-Identifier: Apache-2.0
"""Gzip on several threads, as the program writes it."""

from __future__ import annotations

import concurrent.futures
import os
import struct
import zlib

from .._library import c_abi, threads

_BLOCK_BYTES = 1 << 20
_WINDOW_BYTES = 1 << zlib.MAX_WBITS
_HEADER = bytes([0x1F, 0x8B, zlib.DEFLATED, 0, 0, 0, 0, 0, 4, 3])  # no time, the fastest level, Unix


def gzip_member(data: bytes) -> bytes:
    """One member of gzip, at the fastest level. Blocks are compressed side by side: each ends at a
    byte's border and takes its matches from the window before it. The bytes do not depend on the
    number of threads."""
    firsts = range(0, max(1, len(data)), _BLOCK_BYTES)

    def compressed(first: int) -> bytes:
        window = data[max(0, first - _WINDOW_BYTES) : first]
        level, bits, memory = zlib.Z_BEST_SPEED, -zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL
        deflate = zlib.compressobj(
            level, zlib.DEFLATED, bits, memory, zlib.Z_DEFAULT_STRATEGY, window
        )
        is_last = first == firsts[-1]
        part = deflate.compress(data[first : first + _BLOCK_BYTES])
        return part + deflate.flush(zlib.Z_FINISH if is_last else zlib.Z_SYNC_FLUSH)

    if len(firsts) == 1:
        parts = [compressed(0)]
    else:
        count = threads.get_num_threads() if c_abi.HAS_LIBRARY else os.cpu_count()
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            parts = list(pool.map(compressed, firsts))
    size = len(data) & 0xFFFFFFFF
    return b"".join([_HEADER, *parts, struct.pack("<II", zlib.crc32(data), size)])

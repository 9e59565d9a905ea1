# SPDX-License-Identifier: Apache-2.0
"""Writes PNG files of 8 and 16 bits, grey and RGB, with nothing but Python's own library."""

import struct
import zlib


def encode(samples, width, channels, bits=8):
    """The PNG of rows of interleaved big-endian samples, as bytes."""
    row_bytes = width * channels * bits // 8
    rows = [samples[start:start + row_bytes] for start in range(0, len(samples), row_bytes)]
    color_type = {1: 0, 3: 2}[channels]
    header = struct.pack(">IIBBBBB", width, len(rows), bits, color_type, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row for row in rows))
    return (b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) +
            _chunk(b"IEND", b""))


def _chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

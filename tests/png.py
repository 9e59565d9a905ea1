# SPDX-License-Identifier: Apache-2.0
"""Writes PNG files of 8 and 16 bits, grey and RGB, and reads those of 8 bits, with nothing but
Python's own library."""

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


def decode(content):
    """Width, height, channels and samples of a PNG of 8 bits, grey or RGB."""
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    at, data = 8, b""
    while at < len(content):
        length, kind = struct.unpack(">I4s", content[at:at + 8])
        if kind == b"IHDR":
            width, height, bits, color_type = struct.unpack(">IIBB", content[at + 8:at + 18])
        if kind == b"IDAT":
            data += content[at + 8:at + 8 + length]
        at += 12 + length
    channels = {0: 1, 2: 3}[color_type]
    assert bits == 8
    return width, height, channels, _unfiltered(zlib.decompress(data), width * channels, channels)


def _unfiltered(data, row_bytes, step):
    samples, above = bytearray(), bytearray(row_bytes)
    for at in range(0, len(data), row_bytes + 1):
        kind, row = data[at], bytearray(data[at + 1:at + 1 + row_bytes])
        for i in range(row_bytes):
            left, corner = (row[i - step], above[i - step]) if i >= step else (0, 0)
            near = left + above[i] - corner
            paeth = min((abs(near - left), 0, left), (abs(near - above[i]), 1, above[i]),
                        (abs(near - corner), 2, corner))[2]
            row[i] = (row[i] + (0, left, above[i], (left + above[i]) // 2, paeth)[kind]) % 256
        samples += row
        above = row
    return bytes(samples)


def _chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

# SPDX-License-Identifier: Apache-2.0
"""Pictures, clips and volumes whose reports are tested."""

import base64
import json
import math
import random
import struct

import png

LONG_FRAMES = 172_800  # two hours of 24 frames a second


def picture(path, error=0, width=240, height=160, channels=3):
    noise = random.Random(error)
    samples = bytes(
        max(0, min(255, (x * 2 + y + 40 * c) % 230 + 10 + (noise.randint(-error, error) if 2 * x > width else 0)))
        for y in range(height) for x in range(width) for c in range(channels))
    path.write_bytes(png.encode(samples, width, channels))


def clip(path, frames, error=0, worst=None):
    width, height = 96, 64
    content = f"YUV4MPEG2 W{width} H{height} F24:1 C420\n".encode()
    for i in range(frames):
        noise = random.Random(100 * error + i)
        size = 3 * error if i == worst else error
        luma = bytes(max(16, min(235, (x * 3 + y * 2 + 3 * i) % 200 + 20 + noise.randint(-size, size)))
                     for y in range(height) for x in range(width))
        content += b"FRAME\n" + luma + b"\x90" * (width * height // 4) + b"\x70" * (width * height // 4)
    path.write_bytes(content)


def volume(path, error):
    x, y, z = 20, 24, 12
    noise = random.Random(error)
    voxels = [100 * math.exp(-((i - 10) ** 2 + (j - 12) ** 2 + (2 * k - 12) ** 2) / 80) + noise.uniform(-error, error)
              for k in range(z) for j in range(y) for i in range(x)]
    header = bytearray(352)
    struct.pack_into("<i", header, 0, 348)
    struct.pack_into("<8h", header, 40, 3, x, y, z, 1, 1, 1, 1)
    struct.pack_into("<2h", header, 70, 16, 32)
    struct.pack_into("<8f", header, 76, 1, 1, 1, 2, 0, 0, 0, 0)
    struct.pack_into("<f", header, 108, 352)
    header[344:348] = b"n+1\0"
    path.write_bytes(bytes(header) + struct.pack(f"<{len(voxels)}f", *voxels))


def head(path, shift):
    """A ball with waves, `shift` voxels along x, in voxels of 4 mm."""
    x, y, z = 30, 28, 26
    voxels = []
    for k in range(z):
        for j in range(y):
            for i in range(x):
                u, v, w = i - 14.5 - shift + 0.6 * math.sin(j / 5) * (shift > 0), j - 13.5, k - 12.5
                body = 1 / (1 + math.exp((math.sqrt((u / 10) ** 2 + (v / 9) ** 2 + (w / 9) ** 2) - 1) * 8))
                voxels.append(1000 * body * (0.6 + 0.4 * math.sin(u / 2.5 + 1) * math.cos(v / 3) * math.cos(w / 3.5)))
    header = bytearray(352)
    struct.pack_into("<i", header, 0, 348)
    struct.pack_into("<8h", header, 40, 3, x, y, z, 1, 1, 1, 1)
    struct.pack_into("<2h", header, 70, 16, 32)
    struct.pack_into("<8f", header, 76, 1, 4, 4, 4, 0, 0, 0, 0)
    struct.pack_into("<f", header, 108, 352)
    struct.pack_into("<2h", header, 252, 0, 1)
    struct.pack_into("<12f", header, 280, 4, 0, 0, -58, 0, 4, 0, -54, 0, 0, 4, -50)
    header[344:348] = b"n+1\0"
    path.write_bytes(bytes(header) + struct.pack(f"<{len(voxels)}f", *voxels))


def make(folder):
    """Makes them all."""
    head(folder / "fixed.nii", 0)
    head(folder / "moving.nii", 2)
    picture(folder / "r.png")
    picture(folder / "d.png", 25)
    clip(folder / "r.y4m", 30)
    for error in 2, 3, 5, 8:
        clip(folder / f"e{error}.y4m", 30, error, worst=17)
    volume(folder / "r.nii", 0)
    volume(folder / "d.nii", 8)
    for side, error in ("left", 0), ("right", 9):
        (folder / side).mkdir()
        for i in range(6):
            picture(folder / f"{side}/p{i}.png", error * (i + 1) // 2, 48, 32)


def write_long(path):
    """Results of a clip of two hours."""
    names = ["psnr-y", "psnr-cb", "psnr-cr", "ssim-y", "ssim-cb", "ssim-cr", "ms-ssim"]
    noise = random.Random(5)
    rows = []
    for i in range(LONG_FRAMES):
        wave = math.sin(i / 9000) + 0.3 * noise.random() - (3 if i == 100_000 else 0)
        row = {"frame": i, "time": i / 24}
        row.update({name: (38 + 3 * wave + k if name[0] == "p" else 0.95 + 0.01 * wave - 0.001 * k)
                    for k, name in enumerate(names)})
        rows.append(row)
    metrics = {}
    for name in names:
        scores = sorted(row[name] for row in rows)
        mean = sum(scores) / len(scores)
        metrics[name] = {"mean": mean, "min": scores[0], "max": scores[-1], "stdev": 0, "median": scores[len(scores) // 2],
                         "harmonic_mean": mean, "p1": scores[1728], "p5": scores[8640], "p10": 0, "p25": 0, "p75": 0, "p95": scores[-8640]}
    document = {"similis": "0", "reference": "film.mkv", "distorted": "film-encoded.mkv", "device": "cpu",
                "settings": {"metrics": {"psnr": {}, "ssim": {}, "ms-ssim": {}}}, "metrics": metrics, "frames": rows,
                "worst": [{"frame": 100_000, "time": 100_000 / 24, "psnr-y": rows[100_000]["psnr-y"]}]}
    path.write_text(json.dumps(document))


def write_many(path):
    """A row for each of 60,000 pairs, with another score each."""
    with open(path, "w") as file:
        file.write('{"similis": "0", "settings": {}}\n')
        for i in range(60_000):
            file.write(json.dumps({"id": str(i), "reference": f"originals/{i:06}.png", "distorted": f"compressed/{i:06}.png",
                                   "metrics": {"ssim": {"mean": (i * 7919 % 60_000) / 60_000, "harmonic_mean": 0}}}) + "\n")


def values_of(series, name):
    """The scores of a curve in a page."""
    packed = series["data"][name]
    content = base64.b64decode(packed["values"])
    if series["bits"] == 32:
        return struct.unpack(f"<{len(content) // 4}f", content)
    scale = (packed["max"] - packed["min"]) / 65534
    return [packed["min"] + step * scale for step in struct.unpack(f"<{len(content) // 2}H", content)]

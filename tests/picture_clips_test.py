#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`similis compare` on image sequences, by number and by wildcard, and on pictures of floats.

    picture_clips_test.py PROGRAM SCRATCH_FOLDER
"""

import json
import os
import random
import struct
import threading

from clips import FOLDER, compare, run, run_all, test

import png

SIDE = 16


def picture(name, seed, error=0):
    noise = random.Random(f"{seed} {error}")
    samples = bytes(
        100 + (x * 5 + y * 3 + seed * 7) % 90 + noise.randint(-error, error)
        for y in range(SIDE) for x in range(SIDE)
    )
    (FOLDER / name).write_bytes(png.encode(samples, SIDE, 1))


def sequence(prefix, count, error, first=0, digits=3):
    for i in range(count):
        picture(f"{prefix}{i + first:0{digits}}.png", i, error + i % 3 if error else 0)


def scores(*arguments):
    return json.loads(compare(*arguments, "--format", "json").stdout)


def error_of(*arguments):
    done = run("compare", *arguments)
    assert done.returncode == 1 and done.stdout == "", done
    return done.stderr


def float_tiff(name, samples, channels):
    """Little-endian, one strip, 32-bit floats."""
    data = struct.pack(f"<{len(samples)}f", *samples)
    tags = [(256, 3, SIDE), (257, 3, SIDE), (258, 3, 32), (259, 3, 1), (262, 3, 1 if channels == 1 else 2),
            (273, 4, 8), (277, 3, channels), (278, 3, SIDE), (279, 4, len(data)), (339, 3, 3)]
    if channels == 3:  # one value for each channel stands apart; equal values fit any reader
        extra = struct.pack("<6H", 32, 32, 32, 3, 3, 3)
    else:
        extra = b""
    directory = struct.pack("<H", len(tags))
    for tag, kind, value in tags:
        count = channels if tag in (258, 339) else 1
        if count == 3:
            value = 8 + len(data) + (0 if tag == 258 else 6)
            directory += struct.pack("<HHII", tag, kind, count, value)
        elif kind == 3:
            directory += struct.pack("<HHIHH", tag, kind, 1, value, 0)
        else:
            directory += struct.pack("<HHII", tag, kind, 1, value)
    content = data + extra
    header = b"II*\0" + struct.pack("<I", 8 + len(content))
    (FOLDER / name).write_bytes(header + content + directory + struct.pack("<I", 0))


def pfm(name, samples, channels):
    row = SIDE * channels
    rows = [samples[i:i + row] for i in range(0, len(samples), row)]
    flat = [sample for line in reversed(rows) for sample in line]
    header = f"{'PF' if channels == 3 else 'Pf'}\n{SIDE} {SIDE}\n-1.0\n".encode()
    (FOLDER / name).write_bytes(header + struct.pack(f"<{len(flat)}f", *flat))


def exr(name, samples):
    """RGB of floats, scan lines, uncompressed."""
    def attribute(key, kind, value):
        return key.encode() + b"\0" + kind.encode() + b"\0" + struct.pack("<I", len(value)) + value
    channels = b"".join(c + b"\0" + struct.pack("<IIII", 2, 0, 1, 1) for c in (b"B", b"G", b"R")) + b"\0"
    box = struct.pack("<4i", 0, 0, SIDE - 1, SIDE - 1)
    head = (b"\x76\x2f\x31\x01" + struct.pack("<I", 2) + attribute("channels", "chlist", channels)
            + attribute("compression", "compression", b"\0") + attribute("dataWindow", "box2i", box)
            + attribute("displayWindow", "box2i", box) + attribute("lineOrder", "lineOrder", b"\0")
            + attribute("pixelAspectRatio", "float", struct.pack("<f", 1))
            + attribute("screenWindowCenter", "v2f", struct.pack("<2f", 0, 0))
            + attribute("screenWindowWidth", "float", struct.pack("<f", 1)) + b"\0")
    line_bytes = SIDE * 3 * 4
    first = len(head) + 8 * SIDE
    table = struct.pack(f"<{SIDE}Q", *(first + y * (8 + line_bytes) for y in range(SIDE)))
    lines = b""
    for y in range(SIDE):
        pixels = samples[y * SIDE * 3:(y + 1) * SIDE * 3]
        planes = [pixels[c::3] for c in (2, 1, 0)]
        lines += struct.pack("<iI", y, line_bytes) + b"".join(struct.pack(f"<{SIDE}f", *p) for p in planes)
    (FOLDER / name).write_bytes(head + table + lines)


@test
def frames_of_a_sequence_score_as_their_pictures():
    sequence("r", 7, 0)
    sequence("d", 7, 4)
    document = scores("r%03d.png", "d*.png", "-m", "ssim,mse", "--fps", "10", "--worst", "2")
    assert [frame["frame"] for frame in document["frames"]] == list(range(7)), document
    for i in 0, 3, 6:
        alone = scores(f"r{i:03}.png", f"d{i:03}.png", "-m", "ssim,mse")["frames"][0]
        for name in "ssim", "mse":
            assert document["frames"][i][name] == alone[name], (i, name)
        assert document["frames"][i]["time"] == i / 10, document["frames"][i]
    worst = min(document["frames"], key=lambda frame: frame["ssim"])
    found = [entry for entry in document["worst"] if "ssim" in entry][0]
    assert found["frame"] == worst["frame"] and found["time"] == worst["time"], document["worst"]


@test
def a_part_of_a_sequence_reads_only_its_own_pictures():
    sequence("pr", 7, 0)
    sequence("pd", 7, 4)
    (FOLDER / "pd000.png").write_bytes(b"broken")  # not among those that are scored
    all_scores = scores("pr%03d.png", "pr%03d.png", "-m", "mse", "--frames", "2:6", "--every", "2")
    assert [frame["frame"] for frame in all_scores["frames"]] == [2, 4], all_scores
    for i in range(7):
        (FOLDER / f"qd{i:03}.png").write_bytes((FOLDER / f"pd{max(i, 1):03}.png").read_bytes())
    shifted = scores("pr%03d.png", "qd%03d.png", "-m", "mse", "--frames", "2:4", "--offset", "1")
    alone = scores("pr002.png", "qd003.png", "-m", "mse")
    assert shifted["frames"][0]["mse"] == alone["frames"][0]["mse"], shifted
    (FOLDER / "qd001.png").write_bytes(b"broken")
    scores("pr%03d.png", "qd%03d.png", "-m", "mse", "--frames", "2:")
    assert "qd001.png" in run("compare", "pr%03d.png", "qd%03d.png", "-m", "mse").stderr


@test
def several_sequences_are_encodes_with_bitrates():
    sequence("a", 4, 0)
    sequence("b", 4, 2)
    sequence("c", 4, 6)
    document = scores("a%03d.png", "b%03d.png", "c%03d.png", "-m", "ssim", "--fps", "24000/1001")
    assert [encode["distorted"] for encode in document["encodes"]] == ["b%03d.png", "c%03d.png"]
    size = sum((FOLDER / f"b{i:03}.png").stat().st_size for i in range(4))
    first = document["encodes"][0]
    assert first["bytes"] == size, first
    assert abs(first["bits_per_second"] - 8 * size * 24000 / 1001 / 4) < 1e-6 * size, first
    table = compare("a%03d.png", "b%03d.png", "c%03d.png", "-m", "ssim", "--fps", "24000/1001").stdout
    assert table.split()[:3] == ["distorted", "bytes", "kbit/s"], table
    assert table.splitlines()[1].split()[2] == f"{first['bits_per_second'] / 1000:.1f}", table
    table = compare("a%03d.png", "b%03d.png", "c%03d.png", "-m", "ssim").stdout
    assert table.split()[:3] == ["distorted", "bytes", "bits/pixel"], table


@test
def several_sequences_cost_one_decode_of_their_reference():
    sequence("o", 5, 0)
    for name, error in ("p", 2), ("q", 5), ("s", 8):
        sequence(name, 5, error)
    contents = []
    for i in range(5):  # each picture of the reference can be read only once
        path = FOLDER / f"fifo{i}.png"
        os.mkfifo(path)
        contents.append((path, (FOLDER / f"o{i:03}.png").read_bytes()))
    writers = [threading.Thread(target=path.write_bytes, args=[content], daemon=True)
               for path, content in contents]
    for writer in writers:
        writer.start()
    encodes = ["p%03d.png", "q%03d.png", "s%03d.png"]
    for threads in "2", "1":
        if threads == "1":
            writers = [threading.Thread(target=path.write_bytes, args=[content], daemon=True)
                       for path, content in contents]
            for writer in writers:
                writer.start()
        document = scores("fifo%d.png", *encodes, "-m", "ssim,mse", "--threads", threads)
        for name, encode in zip(encodes, document["encodes"]):
            alone = scores("o%03d.png", name, "-m", "ssim,mse")
            assert encode["frames"] == alone["frames"], name


@test
def a_sequence_is_compared_with_a_video_in_rgb():
    luma = [[16 + (x * 7 + y * 3 + 11 * i) % 200 for y in range(SIDE) for x in range(SIDE)]
            for i in range(4)]
    content = f"YUV4MPEG2 W{SIDE} H{SIDE} F12:1 C420\n".encode()
    for plane in luma:
        content += b"FRAME\n" + bytes(plane) + b"\x80" * (SIDE * SIDE // 2)
    (FOLDER / "grey.y4m").write_bytes(content)
    for i, plane in enumerate(luma):  # grey of limited range, as RGB
        samples = [round((sample - 16) / 219 * 255) for sample in plane for _ in range(3)]
        (FOLDER / f"rgb{i}.png").write_bytes(png.encode(bytes(samples), SIDE, 3))
        samples[0] += 40 if i == 2 else 0
        (FOLDER / f"off{i}.png").write_bytes(png.encode(bytes(samples), SIDE, 3))
    for reference, distorted in ("grey.y4m", "rgb%d.png"), ("rgb%d.png", "grey.y4m"):
        done = compare(reference, distorted, "-m", "mse,ssimulacra2", "--format", "json")
        document = json.loads(done.stdout)
        assert [frame["mse"] for frame in document["frames"]] == [0] * 4, document["frames"]
        side = "reference" if reference == "grey.y4m" else "distorted"
        words = "frames converted from YUV (bt601, limited range) to RGB of 8 bits"
        assert document["settings"]["differences"] == {f"{side}_rgb": words}, document["settings"]
        assert f"grey.y4m: {words}" in done.stderr, done.stderr
        assert document["frames"][3]["time"] == 3 / 12, document["frames"]
    found = scores("grey.y4m", "off%d.png", "-m", "mse", "--frames", "1:3")["frames"]
    assert [frame["mse"] for frame in found] == [0, 1600 / (3 * SIDE * SIDE)], found
    done = compare("grey.y4m", "rgb%d.png", "off%d.png", "-m", "mse", "--format", "json")
    assert [len(encode["frames"]) for encode in json.loads(done.stdout)["encodes"]] == [4, 4]
    (FOLDER / "rgb4.png").write_bytes((FOLDER / "rgb3.png").read_bytes())
    assert "rgb%d.png: has 5 frames but grey.y4m has 4; scored 4 frames" in compare(
        "grey.y4m", "rgb%d.png", "-m", "mse").stderr
    (FOLDER / "rgb4.png").unlink()
    done = compare("grey.y4m", "rgb%d.png", "-m", "psnr-hvs", status=1)
    assert "takes the planes of video" in done.stderr, done.stderr


@test
def what_is_no_sequence_is_named():
    sequence("g", 6, 0, digits=1)
    (FOLDER / "g3.png").unlink()
    assert error_of("g%d.png", "g%d.png").startswith(
        "similis: cannot read g%d.png: number 3 is missing between 0 and 5"), error_of("g%d.png", "g%d.png")
    assert "x*.png: no file has such a name" in error_of("x*.png", "x*.png")
    sequence("h", 3, 0)
    assert "no frame" not in error_of("h%03d.png", "missing.png")
    assert "is a video but h000.png is a picture" in error_of("r.y4m", "h000.png")
    done = run("compare", "h%03d.png", "h%03d.png", "--match-rate", "nearest")
    assert done.returncode == 1 and "--match-rate is for two videos in YUV" in done.stderr, done
    assert "--fps is for image sequences" in error_of("r.y4m", "d.y4m", "--fps", "24")
    done = run("compare", "h%03d.png", "h%03d.png", "--fps", "fast")
    assert done.returncode == 2 and '--fps is "fast"' in done.stderr, done


@test
def floats_score_alike_in_every_format():
    noise = random.Random(3)
    readers = run("info").stdout
    for channels in 1, 3:
        x = [round(noise.random() * 64) / 64 for _ in range(SIDE * SIDE * channels)]
        y = [sample + round(noise.random() * 8) / 64 - 0.0625 for sample in x]
        for name, samples in ("x", x), ("y", y):
            pfm(f"{name}.pfm", samples, channels)
            float_tiff(f"{name}.tif", samples, channels)
            if channels == 3:
                exr(f"{name}.exr", samples)
        expected = scores("x.pfm", "y.pfm", "-m", "ssim,psnr,mse,ncc")
        mse = sum((a - b) ** 2 for a, b in zip(x, y)) / len(x)
        assert abs(expected["frames"][0]["mse"] - mse) < 1e-9, expected["frames"]
        kinds = [("TIFF ", "tif")] + ([("EXR ", "exr")] if channels == 3 else [])
        for reader, ending in kinds:
            line = [line for line in readers.splitlines() if line.startswith(reader)][0]
            if line == reader.strip() or "lib" not in line.lower() and "OpenEXR" not in line:
                print(f"{ending} is not tested: this build has no reader")
                continue
            found = scores(f"x.{ending}", f"y.{ending}", "-m", "ssim,psnr,mse,ncc")
            assert found["frames"] == expected["frames"], (ending, found["frames"])
            assert found["settings"]["metrics"]["psnr"]["data_range"] == 1, found["settings"]


run_all()

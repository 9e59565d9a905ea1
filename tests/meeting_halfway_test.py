#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`similis compare` on clips that are brought together on request: black bars that are found, and
frame rates that differ.

    meeting_halfway_test.py PROGRAM SCRATCH_FOLDER
"""

import json
import random
from xml.etree import ElementTree

from clips import FOLDER, HEIGHT, WIDTH, compare, frame, run, run_all, test, y4m

import png


def planes(seed, step, error):
    """The rows of a frame of clips.frame(): luma, and half as many of chroma."""
    content = frame(seed, step, error)
    luma = [content[y * WIDTH:(y + 1) * WIDTH] for y in range(HEIGHT)]
    chroma = content[WIDTH * HEIGHT:]
    half = [chroma[y * WIDTH // 2:(y + 1) * WIDTH // 2] for y in range(HEIGHT)]
    return luma, half[:HEIGHT // 2], half[HEIGHT // 2:]


def barred(name, frames, error, left, top, right, bottom, noise=6, blank=()):
    """The frames of y4m(), with bars of noisy black around them; those in `blank` all black."""
    dark = random.Random(f"{name}")
    width, height = WIDTH + left + right, HEIGHT + top + bottom
    content = f"YUV4MPEG2 W{width} H{height} F24:1 C420\n".encode()
    for i in range(frames):
        def black(count):
            return bytes(16 + dark.randint(0, noise) for _ in range(count))
        luma, u, v = planes(1000 * error + i, i, error)
        rows = [black(left) + (black(WIDTH) if i in blank else row) + black(right) for row in luma]
        content += b"FRAME\n" + black(width * top) + b"".join(rows) + black(width * bottom)
        content += b"\x80" * (width * height // 2)
    (FOLDER / name).write_bytes(content)
    return name


def document(*arguments):
    done = compare(*arguments, "--format", "json")
    return json.loads(done.stdout), done.stderr


@test
def bars_of_both_sides_are_cropped():
    barred("rb.y4m", 12, 0, 4, 6, 2, 8, blank=(0, 5))
    barred("db.y4m", 12, 3, 4, 6, 2, 8, blank=(0, 5))
    found, notes = document("rb.y4m", "db.y4m", "-m", "ssim,mse", "--crop", "auto")
    by_hand, _ = document("rb.y4m", "db.y4m", "-m", "ssim,mse", "--crop", "4,2,6,8")
    assert found["frames"] == by_hand["frames"], found["settings"]
    done = found["settings"]["done"]
    assert [step["margins"] for step in done] == [[4, 2, 6, 8]] * 2, done
    assert done[0]["size"] == [WIDTH, HEIGHT] and "reference cropped by 4,2,6,8" in notes, notes
    xml = compare("rb.y4m", "db.y4m", "-m", "mse", "--crop", "auto", "--format", "xml").stdout
    steps = ElementTree.fromstring(xml).findall("settings/done")
    assert [step.get("words") for step in steps] == [step["words"] for step in done], xml


@test
def equal_sizes_lose_what_is_black_on_both_sides_alone():
    barred("narrow.y4m", 12, 0, 2, 4, 2, 4)
    barred("wide.y4m", 12, 3, 2, 4, 2, 4)
    found, _ = document("narrow.y4m", "wide.y4m", "-m", "mse", "--crop", "auto")
    assert found["settings"]["done"][0]["margins"] == [2, 2, 4, 4], found["settings"]
    corner = bytearray((FOLDER / "wide.y4m").read_bytes())
    corner[corner.index(b"FRAME\n") + 6] = 200  # the first sample of one frame is not black
    (FOLDER / "corner.y4m").write_bytes(corner)
    found, _ = document("narrow.y4m", "corner.y4m", "-m", "mse", "--crop", "auto")
    assert found["settings"]["done"][0]["margins"] == [0, 2, 0, 4], found["settings"]


@test
def unlike_sizes_are_each_cropped_by_their_own_bars():
    barred("tall.y4m", 12, 0, 0, 10, 0, 10)
    y4m("cut.y4m", 12, 3)
    y4m("whole.y4m", 12)
    found, _ = document("tall.y4m", "cut.y4m", "-m", "mse", "--crop", "auto")
    expected, notes = document("whole.y4m", "cut.y4m", "-m", "mse", "--crop", "auto")
    assert [f["mse-y"] for f in found["frames"]] == [f["mse-y"] for f in expected["frames"]]
    assert "no black bars found, nothing cropped" in notes, notes
    assert [step["side"] for step in found["settings"]["done"]] == ["reference"], found["settings"]


@test
def bars_of_pictures_and_sequences_are_found():
    noise = random.Random(1)
    for i in range(3):
        rows = [bytes(24)] * 3 + [bytes(2) + bytes(noise.randint(60, 200) for _ in range(22))
                                  for _ in range(20)]
        (FOLDER / f"p{i}.png").write_bytes(png.encode(b"".join(rows), 24, 1))
    for reference, distorted in ("p0.png", "p1.png"), ("p%d.png", "p*.png"):
        found, _ = document(reference, distorted, "-m", "mse", "--crop", "auto")
        assert found["settings"]["done"][0]["margins"] == [2, 0, 3, 0], found["settings"]


@test
def what_crop_auto_does_not_take_is_named():
    done = run("compare", "r.y4m", "-", "--crop", "auto", stdin=open(FOLDER / "d.y4m"))
    assert done.returncode == 1 and "reads a video twice, but standard input" in done.stderr, done
    done = run("compare", "r.y4m", "d.y4m", "--crop", "auto", "--crop-distorted", "0,0,0,0")
    assert done.returncode == 2 and "does not take --crop-distorted" in done.stderr, done


def every(name, source, numbers, tags):
    """A clip of these frames of another."""
    content = (FOLDER / source).read_bytes()
    start = content.index(b"FRAME\n")
    size = 6 + WIDTH * HEIGHT * 3 // 2
    frames = [content[start + i * size:start + (i + 1) * size] for i in numbers]
    (FOLDER / name).write_bytes(f"YUV4MPEG2 W{WIDTH} H{HEIGHT} {tags} C420\n".encode() + b"".join(frames))


@test
def rates_are_matched_by_the_nearest_time():
    y4m("fast.y4m", 12)
    every("half.y4m", "fast.y4m", range(0, 12, 2), "F12:1")
    found, notes = document("half.y4m", "fast.y4m", "-m", "mse", "--match-rate", "nearest")
    assert len(found["frames"]) == 6 and found["metrics"]["mse-y"]["max"] == 0, found["metrics"]
    assert "nearest in time" in notes and "compared by their numbers" not in notes, notes
    assert found["settings"]["done"][0]["from"] == 24, found["settings"]

    # A frame of the slower clip stands for two: half-way between two, the later one is taken.
    found, _ = document("fast.y4m", "half.y4m", "-m", "mse", "--match-rate", "nearest")
    nearest = [min(5, (i + 1) // 2) for i in range(11)]
    every("held.y4m", "half.y4m", nearest, "F24:1")
    expected, _ = document("fast.y4m", "held.y4m", "-m", "mse")
    assert found["frames"] == expected["frames"], (len(found["frames"]), len(expected["frames"]))

    every("ntsc.y4m", "fast.y4m", [0, 1, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 9, 10, 11], "F30:1")
    found, _ = document("ntsc.y4m", "fast.y4m", "-m", "mse", "--match-rate", "nearest",
                        "--frames", "0:14", "--every", "2")
    expected = [int(i * 24 / 30 + 0.5) for i in range(0, 14, 2)]
    every("picked.y4m", "fast.y4m", expected, "F30:1")
    every("even.y4m", "ntsc.y4m", range(0, 14, 2), "F30:1")
    by_hand, _ = document("even.y4m", "picked.y4m", "-m", "mse")
    assert [f["mse-y"] for f in found["frames"]] == [f["mse-y"] for f in by_hand["frames"]]


@test
def rates_that_differ_are_noted_and_equal_ones_are_left():
    y4m("fast.y4m", 12)
    every("half.y4m", "fast.y4m", range(0, 12, 2), "F12:1")
    _, notes = document("fast.y4m", "half.y4m", "-m", "mse")
    assert "half.y4m: has 12 frames per second but fast.y4m has 24" in notes, notes
    assert "--match-rate nearest" in notes, notes
    found, notes = document("r.y4m", "d.y4m", "-m", "mse", "--match-rate", "nearest")
    assert notes == "" and "done" not in found["settings"], (notes, found["settings"])
    plain, _ = document("r.y4m", "d.y4m", "-m", "mse")
    assert found["frames"] == plain["frames"]
    found, _ = document("half.y4m", "fast.y4m", "half.y4m", "-m", "mse", "--match-rate", "nearest")
    assert all(encode["metrics"]["mse-y"]["max"] == 0 for encode in found["encodes"]), found


@test
def what_match_rate_does_not_take_is_named():
    y4m("none.y4m", 8, tags="F0:0")
    done = run("compare", "r.y4m", "none.y4m", "--match-rate", "nearest")
    assert done.returncode == 1 and "none.y4m does not say its frame rate" in done.stderr, done
    done = run("compare", "r.y4m", "d.y4m", "--match-rate", "nearest", "--offset", "1")
    assert done.returncode == 2 and "does not take --offset" in done.stderr, done
    done = run("compare", "r.y4m", "d.y4m", "--match-rate", "blend")
    assert done.returncode == 2 and '--match-rate is "blend"; it must be nearest' in done.stderr, done


run_all()

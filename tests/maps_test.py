#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The maps of `similis compare`: of every metric that has one, of clips, encodes and directories,
and how they are drawn.

    maps_test.py PROGRAM SCRATCH_FOLDER
"""

import json
import math
import pathlib
import re
import shutil
import struct

import png
from clips import FOLDER, HEIGHT, WIDTH, compare, frame, run_all, test, y4m

PIXELS = WIDTH * HEIGHT


def floats(name):
    """The values of a map in .npy."""
    content = (FOLDER / name).read_bytes()
    assert content.startswith(b"\x93NUMPY\1\0"), content[:16]
    start = 10 + struct.unpack("<H", content[8:10])[0]
    return struct.unpack(f"<{(len(content) - start) // 4}f", content[start:])


def luma(name, number):
    content = (FOLDER / name).read_bytes()
    header = content.index(b"\n") + 1
    size = len(b"FRAME\n") + PIXELS * 3 // 2
    start = header + number * size + len(b"FRAME\n")
    return content[start:start + PIXELS]


def drawn(name):
    """Width, height and rows of pixels."""
    width, height, channels, samples = png.decode((FOLDER / name).read_bytes())
    assert channels == 3
    pixels = [tuple(samples[i:i + 3]) for i in range(0, len(samples), 3)]
    return width, height, [pixels[y * width:(y + 1) * width] for y in range(height)]


def grey_picture(name, samples, width=WIDTH):
    (FOLDER / name).write_bytes(png.encode(bytes(samples), width, 1))
    return name


def lightness(pixel):
    return 0.2126 * pixel[0] + 0.7152 * pixel[1] + 0.0722 * pixel[2]


# ---- values ----


@test
def errors_are_those_of_each_pixel():
    compare("r.y4m", "e9.y4m", "-m", "mse", "--map", "mse@2=mse.npy", "--map", "mae@2=mae.npy")
    differences = [a - b for a, b in zip(luma("r.y4m", 2), luma("e9.y4m", 2))]
    assert list(floats("mse.npy")) == [d * d for d in differences]
    assert list(floats("mae.npy")) == [abs(d) for d in differences]


@test
def the_worst_frame_is_found_by_errors_too():
    document = json.loads(compare("r.y4m", "e9.y4m", "-m", "mse,mae", "--map", "mse=worst.npy",
                                  "--format", "json").stdout)
    worst = max(document["frames"], key=lambda entry: entry["mse-y"])
    values = floats("worst.npy")
    assert abs(sum(values) / PIXELS - worst["mse-y"]) < 1e-9 * worst["mse-y"], worst


@test
def the_map_of_ms_ssim_is_contrast_and_structure_of_its_finest_level():
    size, sigma, c2 = 7, 1.5, (0.03 * 255) ** 2
    options = f"ms-ssim=window_size={size}:weights=0.4,0.6"
    compare("r.y4m", "e9.y4m", "-m", options, "--map", "ms_ssim@0=fine.npy")
    values = floats("fine.npy")
    x, y = luma("r.y4m", 0), luma("e9.y4m", 0)
    taps = [math.exp(-(k - size // 2) ** 2 / (2 * sigma ** 2)) for k in range(size)]
    taps = [tap / sum(taps) for tap in taps]

    def mean(row, column, product):
        return sum(taps[j] * taps[i] * product((row + j - size // 2) * WIDTH + column + i - size // 2)
                   for j in range(size) for i in range(size))

    for row, column in (10, 10), (16, 30), (25, 41):
        mx, my = (mean(row, column, lambda at, s=s: s[at]) for s in (x, y))
        xx, yy = (mean(row, column, lambda at, s=s: s[at] ** 2) - m * m
                  for s, m in ((x, mx), (y, my)))
        xy = mean(row, column, lambda at: x[at] * y[at]) - mx * my
        expected = (2 * xy + c2) / (xx + yy + c2)
        assert abs(values[row * WIDTH + column] - expected) < 1e-4, (row, column, expected)
    # With one level MS-SSIM is SSIM, whose map it then is.
    compare("r.y4m", "e9.y4m", "-m", "ms-ssim=weights=1,ssim", "--map", "ms-ssim@0=one.npy",
            "--map", "ssim@0=ssim.npy", status=2)  # a comma after = belongs to the option
    compare("r.y4m", "e9.y4m", "-m", "ms-ssim=weights=1", "-m", "ssim", "--map",
            "ms-ssim@0=one.npy", "--map", "ssim@0=ssim.npy")
    assert floats("one.npy") == floats("ssim.npy")


# ---- legends ----


def letters():
    """{rows of dots: letter}, from the program's own table."""
    table = pathlib.Path(__file__).resolve().parent.parent / "src/cli/terminal/glyphs.cc"
    glyphs = re.findall(r"\{'(.)', ((?:\"[ #]{5}\" ?){7})\}", table.read_text())
    return {tuple(re.findall(r'"(.....)"', rows)): letter for letter, rows in glyphs} | {(" " * 5,) * 7: " "}


def legend_lines(rows, top, margin=6, gap=3):
    """The texts above the scale, where a dot of a letter is a pixel."""
    known, lines = letters(), []
    ink = [["# "[lightness(pixel) > 128] for pixel in row] for row in rows[top:]]
    for first in margin, margin + 7 + gap:
        places = range(margin, len(ink[0]) - 5, 6)
        lines.append("".join(known.get(tuple("".join(row[x:x + 5]) for row in ink[first:first + 7]), "?")
                             for x in places).rstrip())
    return lines


@test
def legends_name_the_score_and_the_unit():
    units = {"ssimulacra2": "points lost here", "ssim": "similarity, 1 if equal",
             "lncc": "correlation, 1 if equal", "mse": "squared error", "mae": "error"}
    side = 200
    for name, step in ("left.png", 0), ("right.png", 9):
        grey_picture(name, bytes((x * 2 + y + step * (x % 5 == 0)) % 256 for y in range(160)
                                 for x in range(side)), side)
    for metric, unit in units.items():
        document = json.loads(compare("left.png", "right.png", "-m", metric, "--map",
                                      f"{metric}=legend.png", "--format", "json").stdout)
        width, height, rows = drawn("legend.png")
        assert width == side and height > 160
        score, found = legend_lines(rows, 160)
        assert found == unit, (metric, found)
        assert score.split()[0] == metric, score
        assert abs(float(score.split()[1]) - document["frames"][0][metric]) < 1e-3, (score, document)


# ---- several files ----


@test
def encodes_have_a_map_each():
    shutil.rmtree(FOLDER / "maps", ignore_errors=True)
    compare("r.y4m", "e2.y4m", "e9.y4m", "-m", "ssim", "--map", "ssim=maps/", "--map", "mse@3=maps")
    names = sorted(path.name for path in (FOLDER / "maps").iterdir())
    assert names == ["e2.y4m.mse@3.png", "e2.y4m.ssim.png", "e9.y4m.mse@3.png",
                     "e9.y4m.ssim.png"], names
    for encode in "e2.y4m", "e9.y4m":
        compare("r.y4m", encode, "-m", "ssim", "--map", "ssim=alone.png", "--map", "mse@3=three.png")
        assert (FOLDER / f"maps/{encode}.ssim.png").read_bytes() == (FOLDER / "alone.png").read_bytes()
        assert (FOLDER / f"maps/{encode}.mse@3.png").read_bytes() == (FOLDER / "three.png").read_bytes()
    (FOLDER / "other").mkdir(exist_ok=True)
    shutil.copy(FOLDER / "e5.y4m", FOLDER / "other/e2.y4m")
    done = compare("r.y4m", "e2.y4m", "other/e2.y4m", "-m", "ssim", "--map", "ssim=maps", status=2)
    assert "e2.y4m and other/e2.y4m have the same name, and so would their maps" in done.stderr
    done = compare("r.y4m", "e2.y4m", "e9.y4m", "-m", "ssim", "--map", "ssim=x.png", status=2)
    assert "x.png must be a folder, as there are several maps; write ssim=maps/" in done.stderr


@test
def pairs_of_directories_have_a_map_each():
    shutil.rmtree(FOLDER / "dir_maps", ignore_errors=True)
    for side, error in ("left", 0), ("right", 6):
        (FOLDER / side).mkdir(exist_ok=True)
        for i in range(3):
            grey_picture(f"{side}/{i}.png", frame(i, 0, error)[:PIXELS])
        y4m(f"{side}/clip.y4m", 3, error)
    compare("left", "right", "-m", "ssim,mse", "--map", "ssim=dir_maps", "--map", "mse=dir_maps",
            "--map-max", "auto")
    names = {path.name for path in (FOLDER / "dir_maps").iterdir()}
    assert names == {f"{name}.{metric}.png" for name in ("0.png", "1.png", "2.png", "clip.y4m")
                     for metric in ("ssim", "mse")}, names
    compare("left/1.png", "right/1.png", "-m", "ssim", "--map", "ssim=one.png", "--map-max", "auto")
    assert (FOLDER / "dir_maps/1.png.ssim.png").read_bytes() == (FOLDER / "one.png").read_bytes()
    done = compare("left", "right", "--map", "ssim=left", status=2)
    assert "--map ssim=left is one of the inputs" in done.stderr, done.stderr
    done = compare("left", "right", "-m", "mse", "--map", "mse=r.y4m", status=2)
    assert "r.y4m must be a folder" in done.stderr, done.stderr


@test
def sequences_have_maps_of_their_frames():
    for prefix, errors in ("sr", (0, 0, 0, 0)), ("sd", (2, 9, 4, 3)):
        for i, error in enumerate(errors):
            grey_picture(f"{prefix}{i}.png", frame(i, i, error)[:PIXELS])
    compare("sr%d.png", "sd%d.png", "-m", "ssim", "--map", "ssim=worst.npy", "--map",
            "mse@2=two.npy")
    compare("sr1.png", "sd1.png", "-m", "ssim", "--map", "ssim=one.npy")
    compare("sr2.png", "sd2.png", "-m", "mse", "--map", "mse=alone.npy")
    assert floats("worst.npy") == floats("one.npy") and floats("two.npy") == floats("alone.npy")
    done = compare("sr%d.png", "sd%d.png", "-m", "mse", "--map", "mse@9=x.npy", status=1)
    assert "frame 9 of sd%d.png is not scored" in done.stderr, done.stderr


# ---- drawing ----


@test
def the_brightest_loss_can_be_chosen():
    base = [100] * PIXELS
    other = list(base)
    other[5 * WIDTH + 7] += 12
    other[9 * WIDTH + 9] += 6
    grey_picture("flat.png", base)
    grey_picture("spots.png", other)
    compare("flat.png", "spots.png", "-m", "mae", "--map", "mae=fixed.png")
    compare("flat.png", "spots.png", "-m", "mae", "--map", "mae=auto.png", "--map-max", "auto")
    compare("flat.png", "spots.png", "-m", "mae", "--map", "mae=twelve.png", "--map-max", "12")
    compare("flat.png", "spots.png", "-m", "mae", "--map", "mae=fifty.png", "--map-max", "50")
    fixed, auto = drawn("fixed.png")[2], drawn("auto.png")[2]
    assert auto[5][7] > fixed[5][7] and lightness(auto[5][7]) > 0.9 * 255, auto[5][7]
    assert lightness(auto[9][9]) < lightness(auto[5][7]) and auto[0][0] == fixed[0][0]
    assert drawn("twelve.png") == drawn("auto.png") and drawn("fifty.png") == drawn("fixed.png")
    for wrong in "0", "-3", "big", "inf":
        done = compare("flat.png", "spots.png", "-m", "mae", "--map", "mae=x.png", f"--map-max={wrong}",
                       status=2)
        assert f'--map-max is "{wrong}"; it must be a number above 0, or auto' in done.stderr, done
    done = compare("flat.png", "spots.png", "-m", "mae", "--map", "mae=x.npy", "--overlay", status=2)
    assert done.stderr == ("similis: --overlay is for maps that are drawn; give --map METRIC=FILE.png\n")


@test
def an_overlay_without_loss_is_the_grey_reference():
    picture = [(x * 5 + y * 3) % 256 for y in range(HEIGHT) for x in range(WIDTH)]
    changed = list(picture)
    changed[10 * WIDTH + 10] ^= 64
    grey_picture("base.png", picture)
    grey_picture("changed.png", changed)
    compare("base.png", "changed.png", "-m", "mse", "--map", "mse=over.png", "--overlay",
            "--no-legend")
    width, height, rows = drawn("over.png")
    assert (width, height) == (WIDTH, HEIGHT)
    for y in range(HEIGHT):
        for x in range(WIDTH):
            sample = picture[y * WIDTH + x]
            is_grey = rows[y][x] == (sample, sample, sample)
            assert is_grey != (x == 10 and y == 10), (x, y, rows[y][x], sample)


@test
def a_legend_has_letters_of_readable_size_and_can_be_left_out():
    side = 1000
    samples = bytes((x * y) % 251 for y in range(40) for x in range(side))
    grey_picture("wide.png", samples, side)
    compare("wide.png", "wide.png", "-m", "ssim", "--map", "ssim=with.png")
    compare("wide.png", "wide.png", "-m", "ssim", "--map", "ssim=without.png", "--no-legend")
    width, height, rows = drawn("with.png")
    assert drawn("without.png")[:2] == (side, 40) and width == side and height > 40
    paper = (255, 255, 255)
    inked = [any(pixel != paper for pixel in row) for row in rows[40:]]
    heights, run_length = [], 0
    for has_ink in inked + [False]:
        if has_ink:
            run_length += 1
        elif run_length:
            heights.append(run_length)
            run_length = 0
    assert len(heights) == 4, heights  # score, unit, scale with its ticks, numbers
    assert heights[0] >= 0.015 * side and heights[3] >= 0.015 * side, heights


run_all()

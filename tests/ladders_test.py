#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several encodes of one reference: scored as pairs are, in one decode of the reference, with curves
and BD-rates.

    ladders_test.py PROGRAM SCRATCH_FOLDER
"""

import json
import math
import os
import shutil
import subprocess

import png
from clips import FOLDER, HEIGHT, WIDTH, compare, frame, run, run_all, test, y4m


def pchip_slopes(x, y):
    """Fritsch and Butland's, written from the paper's formula for h and delta."""
    h = [b - a for a, b in zip(x, x[1:])]
    delta = [(b - a) / step for a, b, step in zip(y, y[1:], h)]
    inner = [0.0 if delta[k - 1] * delta[k] <= 0 else
             3 * (h[k - 1] + h[k]) / ((2 * h[k] + h[k - 1]) / delta[k - 1]
                                      + (h[k] + 2 * h[k - 1]) / delta[k])
             for k in range(1, len(delta))]

    def end(h0, h1, d0, d1):
        slope = ((2 * h0 + h1) * d0 - h0 * d1) / (h0 + h1)
        if math.copysign(1, slope) != math.copysign(1, d0):
            return 0.0
        if math.copysign(1, d0) != math.copysign(1, d1) and abs(slope) > abs(3 * d0):
            return 3 * d0
        return slope

    return [end(h[0], h[1], delta[0], delta[1]), *inner, end(h[-1], h[-2], delta[-1], delta[-2])]


def pchip(x, y, at):
    """The cubic Hermite interpolant in its own basis."""
    slopes = pchip_slopes(x, y)
    k = max(i for i in range(len(x) - 1) if at >= x[i])
    h = x[k + 1] - x[k]
    t = (at - x[k]) / h
    return ((1 + 2 * t) * (1 - t) ** 2 * y[k] + t * (1 - t) ** 2 * h * slopes[k]
            + t * t * (3 - 2 * t) * y[k + 1] + t * t * (t - 1) * h * slopes[k + 1])


def mean_difference(base, curve, steps=20000):
    """The mean of curve - base over their common interval, by the midpoint rule."""
    low, high = max(base[0][0], curve[0][0]), min(base[-1][0], curve[-1][0])
    points = [low + (high - low) * (i + 0.5) / steps for i in range(steps)]
    return sum(pchip(*zip(*curve), p) - pchip(*zip(*base), p) for p in points) / steps


def bd(base, curve):
    """BD-rate in percent and BD-quality of lists of (rate, quality), as VCEG-M33 defines them."""
    by_quality = [sorted((q, math.log10(r)) for r, q in points) for points in (base, curve)]
    by_rate = [sorted((math.log10(r), q) for r, q in points) for points in (base, curve)]
    return 100 * (10 ** mean_difference(*by_quality) - 1), mean_difference(*by_rate)


@test
def encodes_are_scored_as_pairs_are():
    names = ["e2.y4m", "e5.y4m", "e9.y4m"]
    document = json.loads(compare("r.y4m", *names, "-m", "psnr,ssim", "--format", "json").stdout)
    assert [encode["distorted"] for encode in document["encodes"]] == names
    for name, encode in zip(names, document["encodes"]):
        alone = json.loads(compare("r.y4m", name, "-m", "psnr,ssim", "--format", "json").stdout)
        assert encode["frames"] == alone["frames"] and encode["metrics"] == alone["metrics"]
        size = (FOLDER / name).stat().st_size
        assert encode["bytes"] == size
        assert abs(encode["bits_per_second"] - 8 * size * 24 / 8) < 1e-6
    for threads in "1", "5":
        again = compare("r.y4m", *names, "-m", "psnr,ssim", "--format", "json", "--threads", threads)
        assert json.loads(again.stdout) == document
    table = compare("r.y4m", *names, "-m", "psnr").stdout.splitlines()
    assert table[0].split()[:4] == ["distorted", "bytes", "kbit/s", "psnr-y"], table
    assert table[1].split()[0] == "e2.y4m"


@test
def encodes_may_differ_in_length_and_one_may_be_broken():
    y4m("short.y4m", 5, 5)
    (FOLDER / "cut.y4m").write_bytes((FOLDER / "e9.y4m").read_bytes()[:-100])
    (FOLDER / "no.y4m").write_bytes(b"nothing")
    done = compare("r.y4m", "short.y4m", "no.y4m", "cut.y4m", "e2.y4m", "-m", "mse", "--format",
                   "json", status=1)
    assert "short.y4m: has 5 frames but r.y4m has 8; scored 5 frames" in done.stderr, done.stderr
    assert "cannot read no.y4m" in done.stderr and "cut.y4m" in done.stderr, done.stderr
    frames = {e["distorted"]: len(e["frames"]) for e in json.loads(done.stdout)["encodes"]}
    assert frames == {"short.y4m": 5, "cut.y4m": 7, "e2.y4m": 8}, frames


def curve_files(name, errors, sizes):
    """Encodes whose bitrates follow from padding: y4m allows parameters in FRAME lines."""
    files = []
    for i, (error, padding) in enumerate(zip(errors, sizes)):
        content = f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F24:1 C420\n".encode()
        for k in range(8):
            line = b"FRAME" + (b" X" + b"x" * (padding - 2) if padding else b"") + b"\n"
            content += line + frame(77 * i + k, k, error)
        files.append(f"{name}{i}.y4m")
        (FOLDER / files[-1]).write_bytes(content)
    return files


@test
def bd_rates_are_those_of_the_definition():
    first = curve_files("a", [14, 9, 5, 3], [0, 60, 120, 200])
    second = curve_files("b", [12, 8, 4, 2], [0, 50, 100, 180])
    document = json.loads(compare(
        "r.y4m", "--curve", "old=" + ",".join(first), "--curve", "new=" + ",".join(second), "-m",
        "psnr,ssim,mse", "--format", "json").stdout)
    encodes = {encode["distorted"]: encode for encode in document["encodes"]}
    new = document["curves"][1]
    assert new["against"] == "old" and new["interpolation"] == "PCHIP"
    for name in "psnr-y", "ssim-y", "mse-y":
        sign = -1 if name == "mse-y" else 1
        points = [[(encodes[f]["bits_per_second"], sign * encodes[f]["metrics"][name]["mean"])
                   for f in files] for files in (first, second)]
        rate, quality = bd(*points)
        found = new["metrics"][name]
        assert abs(found["bd_rate"] - rate) < 1e-5 * max(1, abs(rate)), (name, found, rate)
        assert abs(found["bd_quality"] - sign * quality) < 1e-6 * max(1, abs(quality)), (name, found)
    table = compare("r.y4m", "--curve", "old=" + ",".join(first), "--curve",
                    "new=" + ",".join(second), "-m", "psnr").stdout
    assert "against old, interpolated by PCHIP:" in table, table
    done = compare("r.y4m", "--curve", "x=a0.y4m,a1.y4m,a2.y4m", status=2)
    assert "--curve x has 3 files; a curve needs at least 4" in done.stderr


@test
def a_ladder_decodes_its_reference_once():
    if not shutil.which("ffmpeg"):
        print("  (no ffmpeg: not counted)")
        return
    subprocess.run(["ffmpeg", "-v", "error", "-y", "-i", "r.y4m", "-c:v", "ffv1", "r.mkv"],
                   cwd=FOLDER, check=True)
    encodes = [f"l{i}.mkv" for i in range(6)]
    for i, name in enumerate(encodes):
        subprocess.run(["ffmpeg", "-v", "error", "-y", "-i", "r.y4m", "-c:v", "mpeg4", "-qscale:v",
                        str(2 + 3 * i), name], cwd=FOLDER, check=True)
    counter = FOLDER / "count"
    counter.mkdir(exist_ok=True)
    for program in "ffmpeg", "ffprobe":
        script = counter / program
        script.write_text(f'#!/bin/sh\necho "$(basename $0) $*" >> {counter.resolve()}/calls\n'
                          f'exec {shutil.which(program)} "$@"\n')
        script.chmod(0o755)
    (counter / "calls").unlink(missing_ok=True)
    done = run("compare", "r.mkv", *encodes, "-m", "psnr", "--format", "json",
               env={**os.environ, "PATH": f"{counter.resolve()}:{os.environ['PATH']}"})
    assert done.returncode == 0, done.stderr
    calls = (counter / "calls").read_text().splitlines()
    decodes = [call for call in calls if "rawvideo" in call]
    assert sum("r.mkv" in call for call in decodes) == 1, decodes
    assert len(decodes) == 7, decodes
    assert sum("-f framecrc" in call for call in calls) == 6, calls
    document = json.loads(done.stdout)
    for name, encode in zip(encodes, document["encodes"]):
        packets = subprocess.run(
            ["ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries", "packet=size",
             "-of", "csv=p=0", name], cwd=FOLDER, capture_output=True, text=True, check=True)
        sizes = [int(line.strip(",")) for line in packets.stdout.split()]
        assert encode["bytes"] == sum(sizes) and len(sizes) == 8
        assert abs(encode["bits_per_second"] / (8 * sum(sizes) * 24 / 8) - 1) < 0.01, encode


@test
def doubtful_bd_rates_have_a_note():
    first = curve_files("p", [14, 9, 5, 3], [0, 60, 120, 200])
    for errors, note in (([12, 5, 8, 2], "quality falls as the rate rises"),
                         ([40, 30, 20, 12], "the common interval is less than half of a curve"),
                         ([40, 20, 30, 12], "the common interval is less than half of a curve; "
                                            "quality falls as the rate rises"),
                         ([60, 50, 40, 30], "the curves have no common interval"),
                         ([60, 40, 50, 30], "the curves have no common interval; "
                                            "quality falls as the rate rises")):
        second = curve_files("q", errors, [0, 50, 100, 180])
        arguments = ["r.y4m", "--curve", "old=" + ",".join(first), "--curve",
                     "new=" + ",".join(second), "-m", "psnr"]
        document = json.loads(compare(*arguments, "--format", "json").stdout)
        found = document["curves"][1]["metrics"]["psnr-y"]
        assert found["note"] == note, (found, note)
        assert note in compare(*arguments).stdout, note
        assert (found["bd_rate"] is None) == ("no common" in note), found


@test
def encodes_have_their_worst_frames_and_pictures_bits_per_pixel():
    y4m("odd.y4m", 8, 2, errors={5: 25})
    document = json.loads(compare("r.y4m", "e2.y4m", "odd.y4m", "-m", "psnr", "--format", "json").stdout)
    worst = document["encodes"][1]["worst"]
    assert [entry["frame"] for entry in worst if "psnr-y" in entry] == [5], worst
    row = next(line for line in compare("r.y4m", "e2.y4m", "odd.y4m", "-m", "psnr").stdout.splitlines()
               if line.startswith("odd.y4m"))
    low = document["encodes"][1]["metrics"]["psnr-y"]["p5"]
    assert f"{low:.2f}"[:4] in row, (row, low)
    for name, seed in ("x.png", 0), ("y.png", 5), ("z.png", 9):
        (FOLDER / name).write_bytes(png.encode(frame(seed, 0, seed)[:WIDTH * HEIGHT], WIDTH, 1))
    encodes = json.loads(compare("x.png", "y.png", "z.png", "-m", "mse", "--format", "json").stdout)["encodes"]
    for encode in encodes:
        size = (FOLDER / encode["distorted"]).stat().st_size
        assert encode["bytes"] == size and encode["bits_per_pixel"] == 8 * size / (WIDTH * HEIGHT), encode
        assert "bits_per_second" not in encode, encode


run_all()

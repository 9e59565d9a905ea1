#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`similis compare` on formats that it reads itself and on those that ffmpeg reads, and how it calls ffmpeg.

    formats_test.py PROGRAM SCRATCH_FOLDER
"""

import json
import os
import pathlib
import random
import shutil
import struct
import subprocess

import png
from clips import FOLDER, HEIGHT, PROGRAM, WIDTH, compare, run, run_all, test

FFMPEG = shutil.which("ffmpeg")
CHANCE = random.Random(11)


def needs_ffmpeg(function):
    def run_if_there(*arguments):
        if FFMPEG:
            function(*arguments)
        else:
            print(f"  (no ffmpeg: {function.__name__} is not run)")
    run_if_there.__name__ = function.__name__
    return run_if_there


def ffmpeg(*arguments):
    subprocess.run([FFMPEG, "-v", "error", "-y", *arguments], cwd=FOLDER, check=True)


def scores(*arguments, **options):
    done = run("compare", *arguments, "-m", "mse,ssim", "--format", "json", **options)
    assert done.returncode == 0, done
    return json.loads(done.stdout)["frames"]


def without_programs():
    """An environment in which there is neither ffmpeg nor ffprobe."""
    return {**os.environ, "PATH": "/nowhere", "SIMILIS_FFMPEG": "/nowhere/ffmpeg"}


def bmp(samples, width, is_top_down):
    rows = [samples[i:i + 3 * width] for i in range(0, len(samples), 3 * width)]
    padding = bytes(-3 * width % 4)
    lines = [b"".join(row[i:i + 3][::-1] for i in range(0, len(row), 3)) + padding for row in rows]
    data = b"".join(lines if is_top_down else lines[::-1])
    height = -len(rows) if is_top_down else len(rows)
    return (b"BM" + struct.pack("<IHHI", 54 + len(data), 0, 0, 54)
            + struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, len(data), 2835, 2835, 0, 0) + data)


def qoi(samples, width):
    """Every chunk of the format: QOI_OP_RGB, RUN, INDEX, DIFF and LUMA."""
    content = b"qoif" + struct.pack(">II", width, len(samples) // 3 // width) + b"\3\0"
    seen, last, run_length, kinds = [(0, 0, 0, 0)] * 64, (0, 0, 0), 0, set()
    pixels = [tuple(samples[i:i + 3]) for i in range(0, len(samples), 3)]
    for at, pixel in enumerate(pixels):
        if pixel == last:
            run_length += 1
            if run_length == 62 or at + 1 == len(pixels):
                content += bytes([0xC0 | run_length - 1])
                run_length = 0
                kinds.add("run")
            continue
        if run_length:
            content += bytes([0xC0 | run_length - 1])
            run_length = 0
            kinds.add("run")
        r, g, b = pixel
        place = (3 * r + 5 * g + 7 * b + 11 * 255) % 64
        dr, dg, db = ((new - old + 128) % 256 - 128 for new, old in zip(pixel, last))
        if seen[place] == (*pixel, 255):
            content += bytes([place])
            kinds.add("index")
        elif all(-2 <= d <= 1 for d in (dr, dg, db)):
            content += bytes([0x40 | dr + 2 << 4 | dg + 2 << 2 | db + 2])
            kinds.add("diff")
        elif -32 <= dg <= 31 and all(-8 <= d <= 7 for d in (dr - dg, db - dg)):
            content += bytes([0x80 | dg + 32, dr - dg + 8 << 4 | db - dg + 8])
            kinds.add("luma")
        else:
            content += bytes([0xFE, *pixel])
            kinds.add("rgb")
        seen[place] = (*pixel, 255)
        last = pixel
    assert kinds == {"run", "index", "diff", "luma", "rgb"}, kinds
    return content + bytes(7) + b"\1"


def picture(error):
    """RGB with runs, small and large steps."""
    samples = bytearray()
    for y in range(37):
        for x in range(53):
            if y < 8:
                samples += bytes([40, 90, (y // 4) * 100])
            elif y < 20:
                samples += bytes([(3 * x + y) % 256, (2 * x + 3 * y) % 256, (5 * x) % 256])
            else:
                samples += bytes(CHANCE.choice((30, 31, 200)) for _ in range(3))
    for at in range(0, len(samples), 7):
        samples[at] = min(255, samples[at] + error)
    return bytes(samples)


# ---- read without a program ----


@test
def bmp_and_qoi_score_as_png_does():
    for name, error in ("a", 0), ("b", 9):
        samples = picture(0) if name == "a" else bytes(
            min(255, s + (i % 7 == 0) * error) for i, s in enumerate(picture_a))
        if name == "a":
            picture_a = samples
        (FOLDER / f"{name}.png").write_bytes(png.encode(samples, 53, 3))
        (FOLDER / f"{name}.bmp").write_bytes(bmp(samples, 53, is_top_down=False))
        (FOLDER / f"{name}_down.bmp").write_bytes(bmp(samples, 53, is_top_down=True))
        (FOLDER / f"{name}.qoi").write_bytes(qoi(samples, 53))
    expected = scores("a.png", "b.png", env=without_programs())
    assert 0 < expected[0]["mse"] < 81, expected
    for reference, distorted in (("a.bmp", "b.bmp"), ("a_down.bmp", "b.bmp"), ("a.qoi", "b.qoi"),
                                 ("a.png", "b.qoi"), ("a.bmp", "b_down.bmp")):
        assert scores(reference, distorted, env=without_programs()) == expected, (reference, distorted)
    for name in "a.bmp", "a.qoi":
        (FOLDER / f"cut_{name}").write_bytes((FOLDER / name).read_bytes()[:900])
        done = run("compare", "a.png", f"cut_{name}", env=without_programs())
        assert done.returncode == 1 and done.stderr.startswith(
            f"similis: cannot read cut_{name}: it is cut off or damaged"), done.stderr


# ---- read by ffmpeg ----


def install(folder, programs):
    """A folder of programs that note their name and arguments in FOLDER/calls, then do what the real
    ones do, or fail."""
    path = FOLDER / folder
    path.mkdir(exist_ok=True)
    for program, works in programs.items():
        script = path / program
        script.write_text(f'#!/bin/sh\nprintf "%s\\n" "{folder}/{program} $*" >> {FOLDER.resolve()}/calls\n'
                          + (f'exec {shutil.which(program)} "$@"\n' if works else "exit 3\n"))
        script.chmod(0o755)
    return str(path.resolve())


@test
@needs_ffmpeg
def long_gifs_are_read():
    ffmpeg("-f", "lavfi", "-i", "testsrc2=s=320x240:r=10:d=1.2", "-vf", "noise=alls=60:allf=t", "long.gif")
    assert (FOLDER / "long.gif").stat().st_size > 1 << 17
    found = scores("long.gif", "long.gif")
    assert len(found) == 12 and all(frame["mse"] == 0 for frame in found), found
    piped = run("compare", "-", "long.gif", "-m", "mse", stdin=open(FOLDER / "long.gif", "rb"))
    assert piped.returncode == 0, piped


@test
@needs_ffmpeg
def pictures_that_ffmpeg_must_seek_in_are_read():
    samples = bytes(CHANCE.randrange(256) for _ in range(64 * 48 * 3))
    (FOLDER / "noise.png").write_bytes(png.encode(samples, 64, 3))
    alone = install("seeking", {"ffmpeg": True})
    for ending in "sgi", "pcx", "sun", "xwd", "jp2":
        lossless = ["-pred", "1"] if ending == "jp2" else []
        ffmpeg("-i", "noise.png", *lossless, f"noise.{ending}")
        for environment in os.environ, {**os.environ, "PATH": alone}:
            found = scores("noise.png", f"noise.{ending}", env=dict(environment))
            assert found[0]["mse"] < 1 and len(found) == 1, (ending, found)


@test
@needs_ffmpeg
def wide_dynamic_range_is_refused_with_the_reason():
    for name, transfer, words in ("pq", "smpte2084", "PQ (smpte2084)"), ("hlg", "arib-std-b67",
                                                                         "HLG (arib-std-b67)"):
        ffmpeg("-i", "r.y4m", "-pix_fmt", "yuv420p10le", "-color_trc", transfer, "-c:v", "ffv1",
               f"{name}.mkv")
        done = compare(f"{name}.mkv", f"{name}.mkv", "-m", "ssimulacra2", status=1)
        assert done.stdout == "" and done.stderr == (
            f"similis: the transfer function of {name}.mkv is {words}, which is not supported: "
            "ssimulacra2 is defined for standard dynamic range; tone-map both videos first\n"), done
        compare(f"{name}.mkv", f"{name}.mkv", "-m", "psnr")


def calls_of(*arguments, path, **environment):
    (FOLDER / "calls").unlink(missing_ok=True)
    found = scores(*arguments, env={**os.environ, "PATH": path, **environment})
    return found, (FOLDER / "calls").read_text().splitlines()


@test
@needs_ffmpeg
def ffprobe_is_never_needed():
    ffmpeg("-i", "r.y4m", "-c:v", "ffv1", "r.mkv")
    ffmpeg("-i", "d.y4m", "-c:v", "mpeg4", "-qscale:v", "2", "d.mp4")
    ffmpeg("-f", "lavfi", "-i", "testsrc2=s=64x48:r=10:d=0.5", "a.gif")
    ffmpeg("-i", "a.gif", "-frames:v", "1", "still.sgi")
    alone = install("alone", {"ffmpeg": True})
    for pair in ("r.mkv", "d.mp4"), ("a.gif", "a.gif"), ("still.sgi", "still.sgi"):
        found, calls = calls_of(*pair, path=alone)
        assert found == scores(*pair) and calls, pair
        assert all(call.startswith("alone/ffmpeg ") for call in calls), calls


@test
@needs_ffmpeg
def ffmpeg_and_ffprobe_are_of_one_install():
    ffmpeg("-i", "r.y4m", "-c:v", "ffv1", "r.mkv")
    expected = scores("r.y4m", "d.y4m")
    alone = install("own", {"ffmpeg": True})
    other = install("other", {"ffmpeg": False, "ffprobe": False})
    both = install("both", {"ffmpeg": True, "ffprobe": True})
    # Another install's ffprobe further on is not called, nor any beside a program that was chosen.
    for path, chosen, programs in (
            (f"{alone}:{other}", {}, {"own/ffmpeg"}), (f"{both}:{other}", {}, {"both/ffmpeg", "both/ffprobe"}),
            (other, {"SIMILIS_FFMPEG": f"{alone}/ffmpeg"}, {"own/ffmpeg"})):
        found, calls = calls_of("r.mkv", "d.y4m", path=path, **chosen)
        assert found == expected, path
        assert {call.split()[0] for call in calls} == programs, calls


@test
@needs_ffmpeg
def names_are_given_to_ffmpeg_as_files():
    ffmpeg("-i", "r.y4m", "-c:v", "ffv1", "r.mkv")
    expected = scores("r.y4m", "d.y4m")
    folder = install("named", {"ffmpeg": True, "ffprobe": True})
    names = ["-i.mkv", "concat:r.mkv", "a:b?c%d*.mkv", "http:..r.mkv", "pipe:0", "-", "é\n.mkv"]
    for name in names:
        (FOLDER / "odd").mkdir(exist_ok=True)
        shutil.copy(FOLDER / "r.mkv", FOLDER / "odd" / name)
        relative = os.path.relpath(FOLDER / "d.y4m", FOLDER / "odd")
        done = subprocess.run([PROGRAM, "compare", "-m", "mse,ssim", "--format", "json", "--", f"./{name}"
                               if name == "-" else name, relative], cwd=FOLDER / "odd",
                              capture_output=True, text=True,
                              env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
        assert done.returncode == 0, (name, done.stderr)
        assert json.loads(done.stdout)["frames"] == expected, name
    calls = (FOLDER / "calls").read_text()
    for name in names:
        assert f"-i file:{'./-' if name == '-' else name}" in calls, (name, calls)
    assert "-i -" not in calls and "pipe:0" not in calls.replace("file:pipe:0", ""), calls


@test
@needs_ffmpeg
def a_playlist_reaches_no_other_protocol():
    (FOLDER / "list.m3u8").write_text("#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:5,\n"
                                      "http://127.0.0.1:9/x.ts\n#EXT-X-ENDLIST\n")
    done = compare("r.y4m", "list.m3u8", status=1)
    assert done.stderr.startswith("similis: cannot read list.m3u8: unrecognized format"), done.stderr
    assert "file:" not in done.stderr, done.stderr


run_all()

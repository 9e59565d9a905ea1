#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every `sh` block of docs/encodes.md and docs/corpora.md, in a folder with the files that they
name. Ends with status 77 where there is no ffmpeg to make them.

    pages_test.py PROGRAM SCRATCH_FOLDER
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import png

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM, FOLDER = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])


def blocks(page):
    found = re.findall(r"^```sh\n(.*?)^```", (ROOT / "docs" / page).read_text(),
                       re.MULTILINE | re.DOTALL)
    assert found, f"{page} shows no command"
    return found


def ffmpeg(*arguments):
    subprocess.run(["ffmpeg", "-v", "error", "-y", *arguments], cwd=FOLDER, check=True)


def write_clips():
    ffmpeg("-f", "lavfi", "-i", "testsrc2=s=128x96:r=24:d=1.5,format=yuv420p", "source.y4m")
    for codec, prefix in ("mpeg2video", "a"), ("mpeg4", "b"):
        for scale in 2, 5, 9, 14:
            ffmpeg("-i", "source.y4m", "-c:v", codec, "-qscale:v", str(scale),
                   f"{prefix}{scale}.mkv")
    for name, of in ("crf20", "b2"), ("crf30", "b9"), ("crf40", "b14"):
        shutil.copy(FOLDER / f"{of}.mkv", FOLDER / f"{name}.mkv")


def write_pictures():
    width, height = 64, 48
    samples = bytes((x * y // 9) % 256 for y in range(height) for x in range(width))
    for side, mask in ("originals", 0xFF), ("compressed", 0xF0):
        (FOLDER / side).mkdir()
        for name in "a", "b":
            content = png.encode(bytes(sample & mask for sample in samples), width, channels=1)
            (FOLDER / side / f"{name}.png").write_bytes(content)


def main():
    if not shutil.which("ffmpeg"):
        print("there is no ffmpeg")
        sys.exit(77)
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    write_clips()
    write_pictures()
    (FOLDER / "bin").mkdir()
    (FOLDER / "bin/similis").symlink_to(PROGRAM)
    environment = {**os.environ, "PATH": f"{(FOLDER / 'bin').resolve()}:{os.environ['PATH']}"}
    for page in "encodes.md", "corpora.md":
        for block in blocks(page):
            subprocess.run(["bash", "-euo", "pipefail", "-xc", block], cwd=FOLDER, check=True,
                           env=environment)
    assert len(json.loads((FOLDER / "ladder.json").read_text())["encodes"]) == 3
    for name in "worst.png", "twelve.png", "scores.csv":
        assert (FOLDER / name).stat().st_size > 0, name
    rows = (FOLDER / "scores.jsonl").read_text().splitlines()
    assert [json.loads(row).get("id") for row in rows[1:]] in (["a", "b"], ["b", "a"]), rows
    assert (FOLDER / "all.csv").read_text().startswith("id,reference,distorted,psnr,ssim\na,")


main()

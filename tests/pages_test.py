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
    ffmpeg("-i", "source.y4m", "-vf", "scale=96:72", "-c:v", "mpeg4", "-qscale:v", "3", "small.mkv")
    ffmpeg("-i", "source.y4m", "-r", "12", "-c:v", "mpeg4", "-qscale:v", "3", "half-rate.mkv")
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


def run_job_array(environment):
    """The page's Slurm script, task after task, where srun only runs its command; twice, as when it
    is submitted again."""
    page = (ROOT / "docs/corpora.md").read_text()
    script = re.search(r"^```\n(#!/bin/bash\n#SBATCH.*?)^```", page, re.MULTILINE | re.DOTALL)[1]
    tasks = int(re.search(r"--array=1-(\d+)", script)[1])
    assert f"$SLURM_ARRAY_TASK_ID/{tasks}" in script, "the shards are not the array's"
    (FOLDER / "bin/srun").write_text('#!/bin/sh\nexec "$@"\n')
    (FOLDER / "bin/srun").chmod(0o755)
    (FOLDER / "array.sh").write_text(script)
    folder = FOLDER / "array"
    folder.mkdir()
    rows = "".join(f"../originals/a.png,../compressed/a.png,{i}\n" for i in range(2 * tasks))
    (folder / "pairs.csv").write_text("reference,distorted,id\n" + rows)
    written = {}
    for again in range(2):
        for task in range(1, tasks + 1):
            if again and task % 10:
                continue
            subprocess.run(["bash", "-eu", "../array.sh"], cwd=folder, check=True,
                           env={**environment, "SLURM_ARRAY_TASK_ID": str(task)})
            content = (folder / f"part{task}.jsonl").read_bytes()
            assert written.setdefault(task, content) == content, task
    parts = [f"part{task}.jsonl" for task in range(1, tasks + 1)]
    subprocess.run(["similis", "merge", *parts, "--pairs", "pairs.csv", "-o", "all.jsonl"], cwd=folder,
                   check=True, env=environment)
    ids = [json.loads(row)["id"] for row in (folder / "all.jsonl").read_text().splitlines()[1:]]
    assert ids == [str(i) for i in range(2 * tasks)], ids


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
    run_job_array(environment)
    for name in "crf30.html", "ladder.html", "scores.html":
        assert "</html>" in (FOLDER / name).read_text(), name
    assert len(json.loads((FOLDER / "ladder.json").read_text())["encodes"]) == 3
    for name in "worst.png", "twelve.png", "scores.csv":
        assert (FOLDER / name).stat().st_size > 0, name
    rows = (FOLDER / "scores.jsonl").read_text().splitlines()
    assert [json.loads(row).get("id") for row in rows[1:]] in (["a", "b"], ["b", "a"]), rows
    assert (FOLDER / "all.csv").read_text().startswith("id,reference,distorted,psnr,ssim\na,")


main()

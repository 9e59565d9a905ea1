#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs an example as its first lines say, and checks what it prints.

    examples_test.py frame_check|slabs|score_encode BUILD_FOLDER SCRATCH_FOLDER

python/tests/test_docs.py runs the examples that need torch. Exits with 77 and a sentence where the
example cannot run.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"
SKIPPED = 77


def run(*command, status=0, **environment):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, **environment})
    print(done.stdout, end="")
    assert done.returncode == status, f"{command[0]} exited with {done.returncode}, not {status}"
    return done.stdout


def built(example, build, folder):
    """The program of an example that uses an installed similis, and the folder of the library."""
    run("cmake", "--install", build, "--prefix", folder / "prefix")
    run("cmake", "-S", EXAMPLES / example, "-B", folder / "build",
        f"-DCMAKE_PREFIX_PATH={folder / 'prefix'}")
    run("cmake", "--build", folder / "build")
    library = next((folder / "prefix").rglob("libsimilis.so")).parent
    return folder / "build" / example, library


def slabs(build, folder):
    """Any number of ranks gives the bits of one; the program compares them."""
    program, library = built("slabs", build, folder)
    for ranks in (1, 3, 24):
        printed = run(program, str(ranks), LD_LIBRARY_PATH=str(library))
        assert printed.startswith(f"{ranks} ranks: MI ") and "have the same bits" in printed


def frame_check(build, folder):
    """It passes an equal frame and finds the missing shadow, which is drawn around (220, 140)."""
    program, library = built("frame_check", build, folder)
    whole = run(program, LD_LIBRARY_PATH=str(library))
    assert 0.99 < float(re.match(r"SSIM ([\d.]+),", whole).group(1)) < 1
    broken = run(program, "--broken", status=1, LD_LIBRARY_PATH=str(library))
    column, row = map(int, re.search(r"worst at column (\d+), row (\d+)", broken).groups())
    assert (column - 220)**2 / 9 + (row - 140)**2 < 225, "the worst place is not in the shadow"


def score_encode(build, folder):
    """Scores fall with the bitrate, and the worst frames are among the noisy ones, 20 to 29."""
    encoders = subprocess.run(["ffmpeg", "-v", "error", "-encoders"], capture_output=True,
                              text=True).stdout if shutil.which("ffmpeg") else ""
    if "libx264" not in encoders or not shutil.which("ffprobe"):
        print("skipped: there is no ffmpeg with libx264; `make check` installs it")
        return SKIPPED
    printed = run(sys.executable, EXAMPLES / "score_encode.py", "--similis",
                  build / "bin/similis", "--crf", "20", "36")
    fine, coarse = ([float(word) for word in line.split()[:6]] for line in printed.splitlines()[1:])
    assert all(better > worse for better, worse in zip(fine[1:], coarse[1:])), "no score fell"
    assert fine[4] > fine[5] and coarse[4] > coarse[5], "the worst frames are not below the average"
    named = [int(frame) for frame in re.findall(r"(\d+) \(", printed)]
    assert len(named) == 6 and all(19 <= frame <= 30 for frame in named), named
    return 0


def main():
    build, folder = (pathlib.Path(argument).resolve() for argument in sys.argv[2:])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    examples = {"frame_check": frame_check, "slabs": slabs, "score_encode": score_encode}
    return examples[sys.argv[1]](build, folder)


if __name__ == "__main__":
    sys.exit(main())

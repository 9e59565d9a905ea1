# SPDX-License-Identifier: Apache-2.0
"""Small clips in y4m, and the program run on them, for the tests of `similis compare`. A test program
takes the program and a scratch folder as its arguments."""

import os
import pathlib
import random
import shutil
import subprocess
import sys

WIDTH, HEIGHT = 48, 32
PROGRAM, FOLDER = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def frame(seed, step=0, error=0):
    """A smooth luma plane with noise of a given size, and grey chroma."""
    noise = random.Random(seed)
    luma = bytes(
        max(0, min(255, (x * 3 + y * 2 + step) % 200 + 20 + noise.randint(-error, error)))
        for y in range(HEIGHT)
        for x in range(WIDTH)
    )
    return luma + b"\x80" * (WIDTH * HEIGHT // 2)


def y4m(name, frames, error=0, tags="F24:1", errors={}):
    content = f"YUV4MPEG2 W{WIDTH} H{HEIGHT} {tags} C420\n".encode()
    for i in range(frames):
        content += b"FRAME\n" + frame(1000 * error + i, i, errors.get(i, error))
    (FOLDER / name).write_bytes(content)
    return name


def run(*arguments, **options):
    return subprocess.run(
        [PROGRAM, *arguments], cwd=FOLDER, capture_output=True, text=True, timeout=120, **options
    )


def compare(*arguments, status=0):
    done = run("compare", *arguments)
    assert done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
    return done


def shell(script):
    return subprocess.run(
        ["bash", "-c", script], cwd=FOLDER, capture_output=True, text=True, timeout=120,
        env={**os.environ, "S": str(PROGRAM)},
    )


def run_all():
    """Makes the clips and runs every test; exits with 1 if one failed."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    y4m("r.y4m", 8)
    y4m("d.y4m", 8, 4)
    for error in 2, 5, 9:
        y4m(f"e{error}.y4m", 8, error)
    failed = 0
    for function in TESTS:
        try:
            function()
        except Exception as error:  # all tests run
            failed += 1
            print(f"FAILED {function.__name__}: {type(error).__name__}: {error}")
    print(f"{len(TESTS) - failed} of {len(TESTS)} passed")
    sys.exit(failed > 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory of VMAF on 1080p, and the instructions of several encodes of one reference.

    vmaf_cost_test.py PROGRAM SCRATCH_FOLDER
"""

import os
import random
import resource
import shutil
import subprocess

from clips import FOLDER, PROGRAM, run_all, test

MIB = 1 << 20


def noise(name, width, height, frames, seed):
    """Noise on a slope, so that no window is flat, as y4m, written row by row."""
    generator = random.Random(seed)
    slope = int.from_bytes(bytes(x * 150 // width for x in range(width)), "big")
    mask = int.from_bytes(b"\x3f" * width, "big")
    with open(FOLDER / name, "wb") as file:
        file.write(f"YUV4MPEG2 W{width} H{height} F25:1 Ip C420jpeg\n".encode())
        for _ in range(frames):
            file.write(b"FRAME\n")
            for _ in range(height):
                file.write((slope + (generator.getrandbits(8 * width) & mask)).to_bytes(width, "big"))
            for _ in range(height):  # two planes of half the width and height
                file.write(b"\x80" * (width // 2))
    return name


def peak_bytes(*arguments):
    """Resident at the peak. Python's own pages count too, until the program starts."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert own < 16 * MIB, f"this test takes {own / MIB:.1f} MiB itself"
    process = subprocess.Popen([PROGRAM, *arguments], cwd=FOLDER, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, arguments
    return usage.ru_maxrss * 1024


@test
def memory_is_16_MiB_and_4_a_thread():
    noise("large_r.y4m", 1920, 1080, 5, 1)
    noise("large_d.y4m", 1920, 1080, 5, 2)
    for threads in 1, 2:
        bound = (16 + 4 * threads) * MIB
        # The system maps pages of the program itself ahead of their use; these vary by 0.5 MiB.
        taken = min(peak_bytes("vmaf", "-r", "large_r.y4m", "-d", "large_d.y4m", "-o", "scores.xml",
                               "--threads", str(threads)) for _ in range(5))
        print(f"{threads} threads: {taken / MIB:.1f} MiB")
        assert taken <= bound, (threads, taken)


def instructions(*arguments):
    counts = FOLDER / "counts"
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={counts}", PROGRAM, *arguments],
        cwd=FOLDER, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    line = next(line for line in counts.read_text().splitlines() if line.startswith("summary:"))
    return int(line.split()[1])


@test
def the_reference_of_several_encodes_is_computed_once():
    """One more encode costs less than the first one, whose run computes the reference too."""
    if not shutil.which("valgrind"):
        print("there is no valgrind: instructions are not counted")
        return
    names = [noise(f"small_{i}.y4m", 320, 180, 2, i) for i in range(4)]

    def cost(encodes):
        # The cost of the second frame: what the program's start costs cancels out.
        one, two = (
            instructions("compare", names[0], *names[1:1 + encodes], "-m", "vmaf", "--threads", "1",
                         "--frames", f":{frames}", "--format", "json", "-o", "out.json")
            for frames in (1, 2)
        )
        return two - one

    alone, together = cost(1), cost(3)
    share = (together - alone) / 2 / alone
    print(f"another encode costs {share:.3f} of the instructions of one alone")
    assert share < 0.85, share


run_all()

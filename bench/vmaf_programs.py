#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs `similis vmaf` and libvmaf's `vmaf`, in turns on one raw 8-bit 4:2:0 clip of 1080p.

    vmaf_programs.py SIMILIS VMAF REFERENCE.yuv DISTORTED.yuv [CASE…] [--turns N] [--add-to FILE.json]

A frame's time is the difference between a long run and one of 2 frames. On one thread it is user and system
time, on two it is wall time. Put the clips into memory (/dev/shm), and name libvmaf's build with AVX-512.
Without CASE every case runs.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import rows

WIDTH, HEIGHT = 1920, 1080
SHORT = 2  # frames of the short run
NEG = ["-m", "version=vmaf_v0.6.1:name=vmaf", "-m", "version=vmaf_v0.6.1neg:name=neg"]


def alone(feature):
    return ["-n", "--feature", feature]


# {case: (options, frames of the long run, target ratio)} beside libvmaf on one thread
BESIDE = {
    "vmaf": ([], 32, 2.5),
    "vmaf_neg": (NEG, 22, None),
    "vif": (alone("vif"), 32, None),
    "adm": (alone("adm"), 42, None),
    "motion": (alone("motion"), 42, None),
    "cambi": (alone("cambi"), 42, 2),
    "psnr_hvs": (alone("psnr_hvs"), 32, 4),
    "ciede": (alone("ciede"), 6, 15),
}
# The same program in two ways, both of which take turns.
AGAINST_ITSELF = ("two_threads", "neg_beside")
MEMORY = "memory"


class Program:
    def __init__(self, command, clips, options=(), threads=1):
        self.command = [*command, "-r", clips[0], "-d", clips[1], "-w", str(WIDTH), "-h",
                        str(HEIGHT), "-p", "420", "-b", "8", "--json", "-o", "/dev/null", "-q",
                        "--threads", str(threads), *options]
        self.threads = threads

    def run(self, frames):
        """(seconds, bytes resident at the peak)"""
        os.sched_setaffinity(0, range(self.threads))  # the child inherits it
        start = time.perf_counter()
        child = subprocess.Popen([*self.command, "--frame_cnt", str(frames)],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            sys.exit(f"{' '.join(child.args)}: exit status {child.returncode}")
        if self.threads == 1:
            seconds = usage.ru_utime + usage.ru_stime
        return seconds, usage.ru_maxrss * 1024

    def frame_ms(self, frames):
        short, long = (self.run(count)[0] for count in (SHORT, frames))
        return 1000 * (long - short) / (frames - SHORT)


def in_turns(first, second, frames, turns):
    """(median ms of a frame of each program, ratios second / first of each turn)"""
    times = ([], [])
    for turn in range(turns):
        order = ((0, first), (1, second))
        for index, program in order if turn % 2 == 0 else order[::-1]:
            times[index].append(program.frame_ms(frames))
    return *map(statistics.median, times), sorted(b / a for a, b in zip(*times))


def spread(ratios):
    return f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("similis")
    parser.add_argument("vmaf")
    parser.add_argument("reference")
    parser.add_argument("distorted")
    parser.add_argument("cases", nargs="*", metavar="CASE",
                        help=", ".join((*BESIDE, *AGAINST_ITSELF, MEMORY)))
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--clip", default="", help="the clip's name, behind that of the measure")
    parser.add_argument("--add-to", type=pathlib.Path, help="the JSON that gets the rows")
    arguments = parser.parse_args()
    clips = arguments.reference, arguments.distorted

    def similis(*options, threads=1):
        return Program([arguments.similis, "vmaf"], clips, options, threads)

    def libvmaf(*options, threads=1):
        return Program([arguments.vmaf], clips, options, threads)

    found = []
    clip = f"_{arguments.clip}" if arguments.clip else ""

    def add(case, *values, **more):
        found.append(rows.row(f"{case}{clip}/program/{HEIGHT}x{WIDTH}/u8", *values, **more))

    for case in arguments.cases or (*BESIDE, *AGAINST_ITSELF, MEMORY):
        if case in BESIDE:
            options, frames, target = BESIDE[case]
            own, peers, ratios = in_turns(
                similis(*options), libvmaf(*options), frames, arguments.turns)
            print(f"{case}: {own:.2f} ms, libvmaf {peers:.2f} ms; ratio {spread(ratios)}", flush=True)
            add(case, 1, "ms", own, "libvmaf", peers, target)
        elif case == "two_threads":
            two, one, ratios = in_turns(
                similis(threads=2), similis(), BESIDE["vmaf"][1], arguments.turns)
            print(f"{case}: {two:.2f} ms, on one {one:.2f} ms; ratio {spread(ratios)}", flush=True)
            add("vmaf", 2, "ms", two, "similis on 1 thread", one, 1.8)
        elif case == "neg_beside":
            plain, both, ratios = in_turns(
                similis(), similis(*NEG), BESIDE["vmaf"][1], arguments.turns)
            print(f"{case}: {both:.2f} ms, alone {plain:.2f} ms; ratio {spread(ratios)}", flush=True)
            add("vmaf_neg", 1, "ms", both, "similis without neg", plain, target=1.2 * plain)
        elif case == MEMORY:
            pixels = WIDTH * HEIGHT
            for threads in 1, 2:
                own, peers = (max(program(threads=threads).run(6)[1] for _ in range(5))
                              for program in (similis, libvmaf))
                print(f"{threads} threads: {own / 2**20:.1f} MiB, libvmaf {peers / 2**20:.1f} MiB",
                      flush=True)
                found.append(rows.row(
                    f"vmaf{clip}/program_peak_memory/{HEIGHT}x{WIDTH}/u8", threads, "B/pixel",
                    own / pixels, "libvmaf", peers / pixels,
                    target=(16 + 4 * threads) * 2**20 / pixels))
        else:
            parser.error(f"there is no case {case}")
    if arguments.add_to:
        result = json.loads(arguments.add_to.read_text())
        result["rows"] += [{key: round(value, 3) if isinstance(value, float) else value
                            for key, value in row.items()} for row in found]
        arguments.add_to.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()

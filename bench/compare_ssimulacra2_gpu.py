#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times SSIMULACRA 2 on a GPU, device-resident and from pinned memory of the host, beside Vship.

Needs torch with CUDA. similis is called through its C interface on torch's tensors and streams, in
batches, with its workspace from torch's allocator; Vship by a program around its library, given with
--vship, which takes width, height, threads and frames and prints "… ms/frame", in the same minutes,
with the number of threads that it is fastest with. Medians after a warm-up; pictures are noise on
ramps.

    bench/compare_ssimulacra2_gpu.py --library build/lib/libsimilis.so --vship ./vship_bench
"""

import argparse
import ctypes
import pathlib
import re
import statistics
import subprocess
import time

import torch

import libsimilis
from gpu_report import Report
from gpu_similis import Similis

FLOORS = {"device_exact/1920x1080": 0.068, "device_fast/1920x1080": 0.050, "host/1920x1080": 0.25,
          "host/3840x2160": 1.0}  # ms a frame: bytes moved, or those over PCIe
TARGETS = {"device_exact/1920x1080": 0.20, "device_fast/1920x1080": 0.10, "host/1920x1080": 0.30,
           "host/3840x2160": 1.15}
SIZES = {(1920, 1080): 24, (3840, 2160): 6}  # and the frames of a batch, taken 12 (3) at once
STREAMS = 3


class Options(ctypes.Structure):
    """similis_ssimulacra2_options."""

    _fields_ = [("struct_size", ctypes.c_size_t), ("mode", ctypes.c_int32),
                ("transfer", ctypes.c_int32)]


def scorer(similis, mode):
    options = Options(ctypes.sizeof(Options), ("exact", "fast").index(mode), 0)

    def score(x, y, value):
        similis.execution.stream = torch.cuda.current_stream().cuda_stream
        status = similis.library.similis_ssimulacra2(
            similis.described(x), similis.described(y), ctypes.byref(options),
            ctypes.byref(value), ctypes.byref(similis.execution))
        if status != 0:
            raise RuntimeError(similis.library.similis_last_error().decode())
    return score


def results(count):
    value = torch.empty(count, dtype=torch.float64, device="cuda")
    shape = (ctypes.c_int64 * 1)(count)
    described = libsimilis.Tensor.__new__(libsimilis.Tensor)
    ctypes.Structure.__init__(described, data=value.data_ptr(), device=libsimilis.Device(2, 0),
                              ndim=1, dtype=libsimilis.DType(2, 64, 1), shape=shape)
    described.kept = (value, shape)
    return described


def pictures(width, height, count):
    torch.manual_seed(1)
    ramp = torch.linspace(30, 200, width, device="cuda")
    x = (ramp + 20 * torch.rand((count, 3, height, width), device="cuda"))
    y = x + 8 * torch.rand(x.shape, device="cuda")
    return x.to(torch.uint8), y.to(torch.uint8)


def on_device(score, width, height, frames):
    x, y = pictures(width, height, frames)
    value = results(frames)
    times = []
    for i in range(25):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        score(x, y, value)
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / frames)
    return statistics.median(times[5:])


def in_flight(score, width, height, frames, batches=24):
    """Milliseconds a frame of batches on STREAMS streams in turn."""
    x, y = pictures(width, height, frames)
    lanes = [(torch.cuda.Stream(), results(frames)) for _ in range(STREAMS)]

    def run(count):
        for i in range(count):
            stream, value = lanes[i % STREAMS]
            with torch.cuda.stream(stream):
                score(x, y, value)
        torch.cuda.synchronize()

    run(2 * STREAMS)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        run(batches)
        times.append(1e3 * (time.perf_counter() - start) / (batches * frames))
    return statistics.median(times)


def from_host(score, width, height, frames, batches=40):
    """Frames that stand in pinned memory, uploaded and scored on STREAMS streams in turn."""
    host = [each.cpu().pin_memory() for each in pictures(width, height, frames)]
    lanes = []
    for _ in range(STREAMS):
        buffers = [torch.empty(each.shape, dtype=torch.uint8, device="cuda") for each in host]
        lanes.append((torch.cuda.Stream(), buffers, results(frames)))

    def run(count):
        for i in range(count):
            stream, buffers, value = lanes[i % STREAMS]
            with torch.cuda.stream(stream):
                for to, picture in zip(buffers, host):
                    to.copy_(picture, non_blocking=True)
                score(*buffers, value)
        torch.cuda.synchronize()

    run(2 * STREAMS)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        run(batches)
        times.append(1e3 * (time.perf_counter() - start) / (batches * frames))
    return statistics.median(times)


def vship(program, width, height):
    """Milliseconds a frame with the best number of threads."""
    figures = {}
    for threads in (1, 2, 4, 8):
        words = subprocess.run([program, str(width), str(height), str(threads), "200"],
                               capture_output=True, text=True, check=True).stdout
        figures[threads] = min(map(float, re.findall(r"([\d.]+) ms/frame", words)))
        print(f"Vship {width}x{height}, {threads} threads: {words.strip()}")
    return min(figures.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", type=pathlib.Path, default=libsimilis.LIBRARY)
    parser.add_argument("--vship")
    parser.add_argument("--commit", default="")
    parser.add_argument("--output", type=pathlib.Path)
    arguments = parser.parse_args()
    similis = Similis(arguments.library, torch_memory=True)
    report = Report(arguments.output, arguments.commit,
                    {"similis": similis.library.similis_version().decode()}, "SSIMULACRA 2")
    for (width, height), frames in SIZES.items():
        size = f"{width}x{height}"

        def add(case, value, measured=None):
            case = f"{case}/{size}"
            report.add(f"ssimulacra2/{case}/u8", "ms", value, measured, FLOORS.get(case),
                       TARGETS.get(case))

        for mode in ("exact", "fast"):
            score = scorer(similis, mode)
            add(f"device_{mode}", in_flight(score, width, height, frames // 3))
            add(f"device_{mode}_one_batch", on_device(score, width, height, frames))
            add(f"device_{mode}_alone", on_device(score, width, height, 1))
        peer = {"Vship": vship(arguments.vship, width, height)} if arguments.vship else None
        add("host", from_host(scorer(similis, "exact"), width, height, max(frames // 3, 6)), peer)
    print(f"wrote {report.output}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""VMAF of luma planes on a GPU, with the model that gives credit for enhancement and the one that does
not: frames that lie on the device, several and one at a time, each feature alone, and frames that come
from pinned memory of the host, several in flight. Times are from the call to the scores, on the host's
clock: a call waits for the GPU.

    bench/gpu_vmaf.py --library build/lib/libsimilis.so --output rows.json
"""

import argparse
import ctypes
import pathlib
import statistics
import time

import torch

import libsimilis
from gpu_report import Report

BATCH, UPLOADED, IN_FLIGHT = 16, 8, 3  # frames of a push, of a copy; copies
MODELS = ("vmaf_v0.6.1", "version=vmaf_v0.6.1neg:name=neg")
FEATURES = {"vif": ("vif", "vif=vif_enhn_gain_limit=1"),
            "adm": ("adm", "adm=adm_enhn_gain_limit=1"), "motion": ("motion",)}
CODES = {torch.uint8: 8, torch.uint16: 16}
# ms a frame, of 650 integer operations a pixel at 14.8 T/s
CASES = (((1080, 1920), torch.uint8, 8, {"floor": 0.09, "target": 0.20}),
         ((2160, 3840), torch.uint16, 10, {"floor": 0.36, "target": 0.80}))


class Options(ctypes.Structure):
    """similis_vmaf_options."""

    _fields_ = [("struct_size", ctypes.c_size_t), ("models", ctypes.POINTER(ctypes.c_char_p)),
                ("model_count", ctypes.c_int64), ("features", ctypes.POINTER(ctypes.c_char_p)),
                ("feature_count", ctypes.c_int64), ("bit_depth", ctypes.c_int32),
                ("reserved", ctypes.c_int32)]


def texts(values):
    return (ctypes.c_char_p * max(1, len(values)))(*[each.encode() for each in values])


def tensor(array):
    shape = (ctypes.c_int64 * array.dim())(*array.shape)
    result = libsimilis.Tensor.__new__(libsimilis.Tensor)
    ctypes.Structure.__init__(
        result, data=array.data_ptr(), device=libsimilis.Device(2, array.device.index or 0),
        ndim=array.dim(), dtype=libsimilis.DType(1, CODES[array.dtype], 1), shape=shape)
    result.kept = (array, shape)
    return result


class Scorer:
    """A similis_vmaf_scorer."""

    def __init__(self, library, frame, bit_depth, models=MODELS, features=()):
        self.library = library
        self.handle = ctypes.c_void_p()
        options = Options(ctypes.sizeof(Options), texts(models), len(models), texts(features),
                          len(features), bit_depth, 0)
        self.check(library.similis_vmaf_scorer_create(
            *(ctypes.c_int64(each) for each in frame), ctypes.byref(options),
            ctypes.byref(self.handle)))
        library.similis_vmaf_scorer_column_count.restype = ctypes.c_int64
        self.values = (ctypes.c_double * library.similis_vmaf_scorer_column_count(self.handle))()
        self.execution = libsimilis.Execution(struct_size=ctypes.sizeof(libsimilis.Execution))

    def __del__(self):
        self.library.similis_vmaf_scorer_destroy(self.handle)

    def check(self, status):
        if status:
            raise RuntimeError(self.library.similis_last_error().decode())

    def push(self, reference, distorted):
        """Takes frames on torch's stream; returns the last score that is known then."""
        self.execution.stream = torch.cuda.current_stream().cuda_stream
        self.check(self.library.similis_vmaf_scorer_push(
            self.handle, ctypes.byref(reference), ctypes.byref(distorted),
            ctypes.byref(self.execution)))
        frame = ctypes.c_int64(0)
        while frame.value >= 0:
            self.check(self.library.similis_vmaf_scorer_pop(
                self.handle, ctypes.byref(frame), self.values))
        return self.values[len(self.values) - 1]


def clip(frame, dtype, bit_depth, count=2 * BATCH):
    """Smooth pictures with grain that move, as video has them: reference and distorted."""
    torch.manual_seed(1)
    height, width = frame
    peak = (1 << bit_depth) - 1
    sides = [torch.empty((count, *frame), dtype=dtype, device="cuda") for _ in range(2)]
    for i in range(count):
        rows = torch.linspace(0, 40, height, device="cuda").add(0.1 * i).cos()[:, None]
        columns = torch.linspace(0, 60, width, device="cuda").add(0.05 * i).sin()[None]
        x = 0.5 + 0.4 * rows * columns + 0.03 * torch.rand(frame, device="cuda")
        y = x + 0.05 * torch.rand_like(x) - 0.02
        for side, image in zip(sides, (x, y)):
            side[i] = (peak * image.clamp(0, 1)).round().to(torch.int32).to(dtype)
    return sides


def milliseconds(call, rounds=12):
    """The median of calls, which wait for the GPU."""
    times = []
    for _ in range(rounds + 3):
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[3:])


def per_frame(library, planes, bit_depth, count, **requested):
    """Milliseconds a frame where a push has `count` frames; pushes alternate between two parts."""
    scorer = Scorer(library, planes[0].shape[1:], bit_depth, **requested)
    parts = [[tensor(side[first:first + count]) for side in planes] for first in (0, BATCH)]
    turn = [0]

    def call():
        turn[0] += 1
        scorer.push(*parts[turn[0] % 2])

    return milliseconds(call) / count


def from_host(library, planes, bit_depth, uploaded=UPLOADED):
    """Milliseconds a frame from pinned memory, and those of copying alone: batches are copied on a
    stream of their own while the one before is scored."""
    host = [side[:BATCH].cpu().pin_memory() for side in planes]
    buffers = [[torch.empty_like(side[:uploaded]) for side in planes] for _ in range(IN_FLIGHT)]
    described = [[tensor(each) for each in slot] for slot in buffers]
    copier = torch.cuda.Stream()
    copied = [torch.cuda.Event() for _ in buffers]
    scorer = Scorer(library, planes[0].shape[1:], bit_depth)
    batches = 12

    def copy(i):
        with torch.cuda.stream(copier):
            for buffer, image in zip(buffers[i % IN_FLIGHT], host):
                first = uploaded * (i % (BATCH // uploaded))
                buffer.copy_(image[first:first + uploaded], non_blocking=True)
            copied[i % IN_FLIGHT].record()

    def run(scores):
        copy(0)
        for i in range(batches):
            if i + 1 < batches:
                copy(i + 1)
            copied[i % IN_FLIGHT].synchronize()
            if scores:
                scorer.push(*described[i % IN_FLIGHT])
        torch.cuda.synchronize()

    frames = uploaded * batches
    return milliseconds(lambda: run(True), 5) / frames, milliseconds(lambda: run(False), 5) / frames


def compare(report, library):
    for frame, dtype, bit_depth, bounds in CASES:
        planes = clip(frame, dtype, bit_depth)
        size = f"{frame[0]}x{frame[1]}/u{CODES[dtype]}"
        report.add(f"vmaf_neg/device/{size}", "ms", per_frame(library, planes, bit_depth, BATCH),
                   **bounds)
        report.add(f"vmaf/device/{size}", "ms",
                   per_frame(library, planes, bit_depth, BATCH, models=MODELS[:1]))
        report.add(f"vmaf_neg/device_one_frame_a_call/{size}", "ms",
                   per_frame(library, planes, bit_depth, 1))
        for name, features in FEATURES.items():
            report.add(f"{name}/device/{size}", "ms", per_frame(
                library, planes, bit_depth, BATCH, models=(), features=features))
        both, copies = from_host(library, planes, bit_depth)
        report.add(f"vmaf_neg/host/{size}", "ms", both, floor=copies, target=1.1 * copies)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", type=pathlib.Path, default=libsimilis.LIBRARY)
    parser.add_argument("--commit", default="")
    parser.add_argument("--output", type=pathlib.Path)
    arguments = parser.parse_args()
    library = ctypes.CDLL(str(arguments.library))
    for function in (library.similis_last_error, library.similis_version):
        function.restype = ctypes.c_char_p
    versions = {"similis": library.similis_version().decode()}
    compare(Report(arguments.output, arguments.commit, versions, "vmaf"), library)


if __name__ == "__main__":
    main()

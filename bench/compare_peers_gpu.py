#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times similis on a GPU beside its peers, on the same images in one process, and writes the JSON.

Needs torch with CUDA; peers that are not installed (fused_ssim, fussim, pytorch_msssim) are left out
and named. similis is called through its C interface on torch's tensors and stream; peers as their
users call them, forward and backward through autograd. Medians of device events after a warm-up;
images are noise, and take turns where they would fit the cache. Memory is what torch's allocator
holds at its peak beyond the images; similis takes its own from it too.

    bench/compare_peers_gpu.py --library build/lib/libsimilis.so
"""

import argparse
import ctypes
import datetime
import importlib
import json
import pathlib
import statistics
import subprocess

import torch

import libsimilis
import rows

CACHE_BYTES = 200e6
FLOORS = {  # ms, from instructions and bytes; see docs/design-notes.md
    "ssim/value/5x5x1080x1920/f32": 0.17, "ssim/value_and_gradient/5x5x1080x1920/f32": 0.32,
    "ssim/value/1x3x1080x1920/f32": 0.021, "ssim/value_and_gradient/1x3x1080x1920/f32": 0.038,
    "ssim/value/16x3x512x512/f32": 0.042, "ssim/value_and_gradient/16x3x512x512/f32": 0.077,
    "ssim/value_and_gradient/5x5x1080x1920/f16": 0.18}
TARGETS = {
    "ssim/value/5x5x1080x1920/f32": 0.25, "ssim/value_and_gradient/5x5x1080x1920/f32": 0.50,
    "ssim/value/1x3x1080x1920/f32": 0.035, "ssim/value_and_gradient/1x3x1080x1920/f32": 0.080,
    "ssim/value/16x3x512x512/f32": 0.065, "ssim/value_and_gradient/16x3x512x512/f32": 0.135,
    "ssim/value/1x3x256x256/f32": 0.012, "ssim/value_and_gradient/1x3x256x256/f32": 0.040,
    "ssim/map/5x5x1080x1920/f16": 0.25, "ssim/value_and_gradient/5x5x1080x1920/f16": 0.50,
    "ssim/value_and_gradient/1x1x128x128x128/f32": 0.08}
SHAPES = ((5, 5, 1080, 1920), (1, 3, 1080, 1920), (16, 3, 512, 512), (1, 3, 256, 256))
ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, libsimilis.Device,
                            ctypes.c_void_p)
RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t,
                           libsimilis.Device, ctypes.c_void_p)




def tensor(array):
    bits = {torch.float32: 32, torch.float16: 16}[array.dtype]
    shape = (ctypes.c_int64 * max(1, array.dim()))(*array.shape)
    result = libsimilis.Tensor.__new__(libsimilis.Tensor)
    ctypes.Structure.__init__(
        result, data=array.data_ptr(), device=libsimilis.Device(2, array.device.index or 0),
        ndim=array.dim(), dtype=libsimilis.DType(2, bits, 1), shape=shape)
    result.kept = (array, shape)
    return result


class Similis:
    """The library on torch's stream; its workspace from the stream's pool, or from torch."""

    def __init__(self, path, torch_memory=False):
        self.library = ctypes.CDLL(str(path))
        self.library.similis_last_error.restype = ctypes.c_char_p
        self.library.similis_version.restype = ctypes.c_char_p
        self.allocate = ALLOCATE(lambda context, size, device, stream:
                                 torch.cuda.caching_allocator_alloc(max(size, 1)))
        self.release = RELEASE(lambda context, pointer, size, device, stream:
                               torch.cuda.caching_allocator_delete(pointer))
        self.execution = libsimilis.Execution(struct_size=ctypes.sizeof(libsimilis.Execution))
        if torch_memory:
            self.execution.allocator = libsimilis.Allocator(
                ctypes.cast(self.allocate, ctypes.c_void_p),
                ctypes.cast(self.release, ctypes.c_void_p), None)

    def __call__(self, x, y, with_gradient):
        value = torch.empty((), device=x.device)
        gradient = torch.empty_like(x) if with_gradient else None
        arguments = [tensor(each) for each in (x, y, value)]
        out = tensor(gradient) if with_gradient else None
        self.execution.stream = torch.cuda.current_stream().cuda_stream
        pointer = ctypes.byref
        status = self.library.similis_ssim(
            pointer(arguments[0]), pointer(arguments[1]), None, None, pointer(arguments[2]),
            pointer(out) if out else None, None, pointer(self.execution))
        if status != 0:
            raise RuntimeError(self.library.similis_last_error().decode())
        return value, gradient


def with_autograd(function):
    def call(x, y, with_gradient):
        if not with_gradient:
            with torch.no_grad():
                return function(x, y, False), None
        x = x.detach().requires_grad_()
        value = function(x, y, True)
        value.backward()
        return value.detach(), x.grad
    return call


def peers():
    """What is installed, by name: functions of x, y and whether a gradient is wanted."""
    found, missing = {}, []

    def add(name, module, make):
        try:
            found[name] = with_autograd(make(importlib.import_module(module)))
        except ImportError as error:
            missing.append(f"{name} ({error})")

    add("fused-ssim", "fused_ssim", lambda module: lambda x, y, train: module.fused_ssim(
        x, y, padding="valid", train=train))
    add("fussim", "fussim", lambda module: lambda x, y, train: module.fused_ssim(
        x, y, padding="valid", train=train))
    add("pytorch-msssim", "pytorch_msssim", lambda module: lambda x, y, train: module.ssim(
        x, y, data_range=1.0))
    return found, missing


def milliseconds(call, pairs, with_gradient):
    for i in range(5):
        call(*pairs[i % len(pairs)], with_gradient)
    times = []
    for i in range(30):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call(*pairs[i % len(pairs)], with_gradient)
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)


def in_a_graph(call, pair, with_gradient):
    """Milliseconds of the work alone: replays of a captured graph."""
    call(*pair, with_gradient)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call(*pair, with_gradient)
    return milliseconds(lambda *_: graph.replay(), [pair], with_gradient)


def peak_bytes_per_element(call, pair):
    call(*pair, True)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    result = call(*pair, True)
    torch.cuda.synchronize()
    del result
    return (torch.cuda.max_memory_allocated() - before) / pair[0].numel()


def images(shape, dtype):
    elements = torch.Size(shape).numel()
    count = max(1, min(16, int(CACHE_BYTES / (elements * 8)) + 1))
    torch.manual_seed(1)
    return [(x.to(dtype), (0.7 * x + 0.3 * torch.rand(shape, device="cuda")).to(dtype))
            for x in (torch.rand(shape, device="cuda") for _ in range(count))]


def best(measured):
    """The fastest peer and its figure."""
    if not measured:
        return None, None
    return min(measured.items(), key=lambda item: item[1])


def result(case, unit, value, measured):
    peer, peer_value = best(measured)
    row = rows.row(case, None, unit, value, peer, peer_value)
    row["floor"], row["target"] = FLOORS.get(case), TARGETS.get(case)
    if case.startswith("ssim/memory"):
        row["floor"] = 2 if case.endswith("f16") else 4  # the gradient
        row["target"] = None if case.endswith("f16") else 4.1
    row["peers"] = measured
    others = ", ".join(f"{name} {each:.4f}" for name, each in measured.items())
    share = f", floor {row['floor']} ({row['floor'] / value:.0%})" if row["floor"] else ""
    ratio = f", {peer_value / value:.2f}x" if peer_value else ""
    print(f"{case}: {value:.4f} {unit}{ratio}{share}; {others}", flush=True)
    return row


def compare(similis, measured_memory, others):
    collected = []
    for dtype, name, shapes in ((torch.float32, "f32", SHAPES), (torch.float16, "f16", SHAPES[:1])):
        for shape in shapes:
            pairs = images(shape, dtype)
            text = "x".join(map(str, shape))
            for with_gradient, kind in ((False, "value"), (True, "value_and_gradient")):
                measured = {}
                for peer, call in others.items():
                    try:
                        measured[peer] = milliseconds(call, pairs, with_gradient)
                    except (RuntimeError, TypeError, ValueError) as error:
                        print(f"{peer} {kind} {text} {name}: {str(error).splitlines()[0]}")
                collected.append(result(f"ssim/{kind}/{text}/{name}", "ms",
                                        milliseconds(similis, pairs, with_gradient), measured))
                collected.append(result(f"ssim/{kind}_in_a_graph/{text}/{name}", "ms",
                                        in_a_graph(similis, pairs[0], with_gradient), {}))
            if shape == SHAPES[0]:
                measured = {}
                for peer, call in others.items():
                    try:
                        measured[peer] = peak_bytes_per_element(call, pairs[0])
                    except (RuntimeError, TypeError, ValueError) as error:
                        print(f"{peer} memory {text} {name}: {str(error).splitlines()[0]}")
                collected.append(result(f"ssim/memory/{text}/{name}", "B/elem",
                                        peak_bytes_per_element(measured_memory, pairs[0]), measured))
            del pairs
            torch.cuda.empty_cache()
    return collected


def agreement(similis, others):
    """How far peers' values and gradients are from ours; they clamp, and accumulate otherwise."""
    x, y = images((2, 3, 256, 320), torch.float32)[0]
    value, gradient = similis(x, y, True)
    for name, call in others.items():
        other, other_gradient = call(x, y, True)
        distance = ((gradient - other_gradient).norm() / gradient.norm()).item()
        print(f"agreement with {name}: value {abs(value.item() - other.item()):.1e}, "
              f"gradient {distance:.1e} (relative L2)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", type=pathlib.Path, default=libsimilis.LIBRARY)
    parser.add_argument("--commit", default="")
    parser.add_argument("--output", type=pathlib.Path)
    arguments = parser.parse_args()
    similis = Similis(arguments.library)
    others, missing = peers()
    for each in missing:
        print(f"left out: {each}")
    agreement(similis, others)
    date = datetime.date.today().isoformat()
    driver = subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
        capture_output=True, text=True, check=True).stdout.split()[0]
    report = {"device": torch.cuda.get_device_name(), "driver": driver, "cuda": torch.version.cuda,
              "commit": arguments.commit, "date": date,
              "versions": {"similis": similis.library.similis_version().decode(),
                           "torch": torch.__version__},
              "rows": compare(similis, Similis(arguments.library, torch_memory=True), others)}
    name = report["device"].replace(" ", "-").lower()
    output = arguments.output or rows.FOLDER / f"{name}-{date}.json"
    output.parent.mkdir(exist_ok=True)
    output.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    print(f"wrote {output}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times similis on a GPU beside its peers, on the same images in one process, and writes the JSON.

Needs torch with CUDA; peers that are not installed (fused_ssim, fussim, pytorch_msssim) are left out
and named. All are called as their users do, forward and backward through autograd: similis by its
Python package, or where that is not installed by its C interface on torch's tensors and stream, as
for what is captured in a graph. Medians of device events after a warm-up; images are noise, and take
turns where they would fit the cache. Memory is what torch's allocator holds at its peak beyond the
images; similis takes its own from it too.

    bench/compare_peers_gpu.py --library build/lib/libsimilis.so
"""

import argparse
import ctypes
import datetime
import importlib
import importlib.util
import json
import pathlib
import statistics
import subprocess
import time

import torch

import libsimilis
import rows

CACHE_BYTES = 200e6
LARGE, HD, MANY, SMALL = (5, 5, 1080, 1920), (1, 3, 1080, 1920), (16, 3, 512, 512), (1, 3, 256, 256)
ODD, VOLUME = (5, 5, 1079, 1917), (1, 1, 128, 128, 128)
FLOORS = {  # ms, from instructions and bytes; see docs/design-notes.md
    "ssim/value/5x5x1080x1920/f32": 0.17, "ssim/value_and_gradient/5x5x1080x1920/f32": 0.32,
    "ssim/value/1x3x1080x1920/f32": 0.021, "ssim/value_and_gradient/1x3x1080x1920/f32": 0.038,
    "ssim/value/16x3x512x512/f32": 0.042, "ssim/value_and_gradient/16x3x512x512/f32": 0.077,
    "ssim/map/5x5x1080x1920/f16": 0.18, "ssim/value_and_gradient/5x5x1080x1920/f16": 0.32,
    "ms_ssim/value_and_gradient/5x5x1080x1920/f32": 0.45,
    "ssim/value_and_gradient/1x1x128x128x128/f32": 0.02}
TARGETS = {
    "ssim/value/5x5x1080x1920/f32": 0.25, "ssim/value_and_gradient/5x5x1080x1920/f32": 0.50,
    "ssim/value/1x3x1080x1920/f32": 0.035, "ssim/value_and_gradient/1x3x1080x1920/f32": 0.080,
    "ssim/value/16x3x512x512/f32": 0.065, "ssim/value_and_gradient/16x3x512x512/f32": 0.135,
    "ssim/value/1x3x256x256/f32": 0.012, "ssim/value_and_gradient/1x3x256x256/f32": 0.040,
    "ssim/map/5x5x1080x1920/f16": 0.25, "ssim/value_and_gradient/5x5x1080x1920/f16": 0.50,
    "ms_ssim/value_and_gradient/5x5x1080x1920/f32": 0.9,
    "ssim/value_and_gradient/1x1x128x128x128/f32": 0.08}
DTYPES = {"f32": torch.float32, "f16": torch.float16, "u8": torch.uint8}
# What is measured: operation, kind, shape, dtype. Kinds with peers are those that peers have too.
CASES = [(operation, kind, shape, dtype)
         for operation, dtype, shapes in (("ssim", "f32", (LARGE, HD, MANY, SMALL, ODD)),
                                          ("ssim", "f16", (LARGE,)), ("ms_ssim", "f32", (LARGE, HD)))
         for shape in shapes for kind in ("value", "value_and_gradient")]
CASES += [("ssim", "map", LARGE, "f32"), ("ssim", "map", LARGE, "f16"),
          ("ssim", "map_and_gradient", LARGE, "f16"), ("ssim", "value", LARGE, "u8"),
          ("l1_ssim", "value_and_gradient", LARGE, "f32"),
          ("ssim", "value", VOLUME, "f32"), ("ssim", "value_and_gradient", VOLUME, "f32")]
ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, libsimilis.Device,
                            ctypes.c_void_p)
RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t,
                           libsimilis.Device, ctypes.c_void_p)


def tensor(array):
    code, bits = {torch.float32: (2, 32), torch.float16: (2, 16), torch.uint8: (1, 8)}[array.dtype]
    shape = (ctypes.c_int64 * max(1, array.dim()))(*array.shape)
    result = libsimilis.Tensor.__new__(libsimilis.Tensor)
    ctypes.Structure.__init__(
        result, data=array.data_ptr(), device=libsimilis.Device(2, array.device.index or 0),
        ndim=array.dim(), dtype=libsimilis.DType(code, bits, 1), shape=shape)
    result.kept = (array, shape)
    return result


class Similis:
    """The library on torch's stream; its workspace from the stream's pool, or from torch. A call makes
    its outputs as a framework would. The descriptors of inputs are kept, as ctypes takes longer to
    make one than a compiled binding takes for a call."""

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
        self.known = {}

    def described(self, array):
        """A pointer to the array's descriptor."""
        key = (array.data_ptr(), array.shape, array.dtype)
        if key not in self.known:
            descriptor = tensor(array)
            descriptor.kept = descriptor.kept[1:]  # whoever calls keeps the array
            self.known[key] = ctypes.byref(descriptor)
        return self.known[key]

    def function(self, operation, kind):
        """What measures a pair: takes x and y, returns value and gradient."""
        options = None
        if operation == "l1_ssim":
            options = libsimilis.SsimOptions(l1_weight=0.8, form=1)
            options.ssim_weight = 0.2
        if kind.startswith("map"):
            options = libsimilis.SsimOptions(reduction=2)
        entry = self.library.similis_ms_ssim if operation == "ms_ssim" else self.library.similis_ssim
        options_pointer = ctypes.byref(options) if options else None
        execution, execution_pointer = self.execution, ctypes.byref(self.execution)
        kept = options

        def call(x, y):
            value_shape = [*x.shape[:2], *(side - 10 for side in x.shape[2:])] if "map" in kind else ()
            value = torch.empty(value_shape, device=x.device)
            gradient = torch.empty_like(x) if "gradient" in kind else None
            execution.stream = torch.cuda.current_stream().cuda_stream
            status = entry(self.described(x), self.described(y), options_pointer, None,
                           self.described(value),
                           None if gradient is None else self.described(gradient), None,
                           execution_pointer)
            if status != 0:
                raise RuntimeError(self.library.similis_last_error().decode())
            return value, gradient, kept
        return call


def with_autograd(function):
    def make(kind):
        def call(x, y):
            if "gradient" not in kind:
                with torch.no_grad():
                    return function(x, y, False), None
            x = x.detach().requires_grad_()
            value = function(x, y, True)
            (value if value.dim() == 0 else value.sum()).backward()
            return value.detach(), x.grad
        return call
    return make


class Package:
    """similis as it is installed for Python."""

    def __init__(self):
        self.similis = importlib.import_module("similis")

    def function(self, operation, kind):
        measure = getattr(self.similis, operation)
        options = {"reduction": "none"} if kind.startswith("map") else {}
        return with_autograd(lambda x, y, train: measure(x, y, **options))(kind)


def peers():
    """What is installed: {name: {(operation, kind without gradient, rank): maker of calls}}."""
    found, missing = {}, []

    def add(name, module, make):
        image = torch.rand((1, 1, 256, 256), device="cuda")
        try:
            makers = {key: with_autograd(function)
                      for key, function in make(importlib.import_module(module)).items()}
            makers["ssim", "value", 4]("value")(image, image)  # some load their kernels here
            found[name] = makers
        except (ImportError, TypeError) as error:  # a kernel of another version takes other arguments
            missing.append(f"{name} ({str(error).splitlines()[0]})")

    add("fused-ssim", "fused_ssim", lambda module: {
        ("ssim", "value", 4): lambda x, y, train: module.fused_ssim(
            x, y, padding="valid", train=train),
        ("ssim", "value", 5): lambda x, y, train: module.fused_ssim3d(
            x, y, padding="valid", train=train)})
    add("fussim", "fussim", lambda module: {
        ("ssim", "value", 4): lambda x, y, train: module.fused_ssim(
            x, y, padding="valid", train=train)})
    add("pytorch-msssim", "pytorch_msssim", lambda module: {
        ("ssim", "value", 4): lambda x, y, train: module.ssim(x, y, data_range=1.0),
        ("ms_ssim", "value", 4): lambda x, y, train: module.ms_ssim(x, y, data_range=1.0)})
    return found, missing


def milliseconds(call, pairs, repeats=30):
    for i in range(5):
        call(*pairs[i % len(pairs)])
    times = []
    for i in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call(*pairs[i % len(pairs)])
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)


def in_a_graph(call, pair):
    """Milliseconds of the work alone: replays of a captured graph, in memory of torch's."""
    call(*pair)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = call(*pair)
    result = milliseconds(lambda *_: graph.replay(), [pair])
    del kept
    return result


def on_the_host(call, pair):
    """Milliseconds until a call returns, the GPU's work left out; Python's part is in it."""
    times = []
    for _ in range(100):
        torch.cuda.synchronize()
        start = time.perf_counter()
        call(*pair)
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def peak_bytes_per_element(call, pair):
    call(*pair)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    result = call(*pair)
    torch.cuda.synchronize()
    del result
    return (torch.cuda.max_memory_allocated() - before) / pair[0].numel()


def images(shape, dtype):
    elements = torch.Size(shape).numel()
    count = max(1, min(16, int(CACHE_BYTES / (elements * 8)) + 1))
    torch.manual_seed(1)
    scale = 255 if dtype == torch.uint8 else 1
    pairs = []
    for _ in range(count):
        x, noise = (torch.rand(shape, device="cuda") for _ in range(2))
        pairs.append(((scale * x).to(dtype), (scale * (0.7 * x + 0.3 * noise)).to(dtype)))
    return pairs


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


def attempt(measure, what):
    """What a peer takes, or None with a line if it refuses."""
    try:
        return measure()
    except (RuntimeError, TypeError, ValueError, AssertionError) as error:
        print(f"{what}: {str(error).splitlines()[0]}")
        return None


def compare(package, measured_memory, others, save):
    """package: what calls similis; measured_memory: its C interface, in torch's memory."""
    collected, shown = [], None
    for operation, kind, shape, dtype in CASES:
        if (shape, dtype) != shown:
            pairs = None
            torch.cuda.empty_cache()
            pairs, shown = images(shape, DTYPES[dtype]), (shape, dtype)
        name = f"{'x'.join(map(str, shape))}/{dtype}"
        base = kind.replace("_and_gradient", "")
        calls = {peer: makers[operation, base, len(shape)](kind) for peer, makers in others.items()
                 if (operation, base, len(shape)) in makers}
        repeats = {peer: 10 if peer == "pytorch-msssim" else 30 for peer in calls}
        measured = {peer: attempt(lambda: milliseconds(call, pairs, repeats[peer]), f"{peer} {kind} {name}")
                    for peer, call in calls.items()}
        measured = {peer: each for peer, each in measured.items() if each}
        ours = package.function(operation, kind)
        collected.append(
            result(f"{operation}/{kind}/{name}", "ms", milliseconds(ours, pairs), measured))
        collected.append(result(
            f"{operation}/{kind}_in_a_graph/{name}", "ms",
            in_a_graph(measured_memory.function(operation, kind), pairs[0]), {}))
        if shape == SMALL:
            collected.append(
                result(f"{operation}/{kind}_on_the_host/{name}", "ms", on_the_host(ours, pairs[0]), {}))
        if kind == "value_and_gradient" and shape == LARGE:
            measured = {peer: attempt(lambda: peak_bytes_per_element(call, pairs[0]),
                                      f"{peer} memory {name}") for peer, call in calls.items()}
            measured = {peer: each for peer, each in measured.items() if each}
            collected.append(result(
                f"{operation}/memory/{name}", "B/elem",
                peak_bytes_per_element(ours, pairs[0]),
                measured))
        save(collected)
    return collected


def agreement(similis, others):
    """How far peers' values and gradients are from ours; they clamp, and accumulate otherwise."""
    x, y = images((2, 3, 256, 320), torch.float32)[0]
    for operation in ("ssim", "ms_ssim"):
        value, gradient, _ = similis.function(operation, "value_and_gradient")(x, y)
        for name, makers in others.items():
            if (operation, "value", 4) not in makers:
                continue
            other, other_gradient = makers[operation, "value", 4]("value_and_gradient")(x, y)
            distance = ((gradient - other_gradient).norm() / gradient.norm()).item()
            print(f"{operation}, agreement with {name}: value {abs(value.item() - other.item()):.1e}, "
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
                           "torch": torch.__version__}}
    name = report["device"].replace(" ", "-").lower()
    output = arguments.output or rows.FOLDER / f"{name}-{date}.json"
    output.parent.mkdir(exist_ok=True)

    def save(collected):
        report["rows"] = collected
        output.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")

    in_torch_memory = Similis(arguments.library, torch_memory=True)
    has_package = importlib.util.find_spec("similis") is not None
    print(f"similis is called through its {'package' if has_package else 'C interface'}")
    compare(Package() if has_package else in_torch_memory, in_torch_memory, others, save)
    print(f"wrote {output}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times similis beside scikit-image and pytorch-msssim, and adds what similis_bench measures alone.
If SIMILIS_BENCH_LIBVMAF names a libvmaf.so built with -Denable_float=true, that is timed too.

All libraries run in this process on the same arrays and as many threads, in turn, once they agree
on the result. Prints a table and writes bench/results/cpu-DATE.json, or with --only
cpu-DATE-OPERATIONS.json, which the page shows as a subject of its own.

    bench/compare_peers.py --only sample compose
"""

import argparse
import collections
import contextlib
import datetime
import importlib.metadata
import json
import math
import pathlib
import platform
import subprocess
import sys
import tempfile

import numpy
import torch

import libvmaf
import measure
import peers
import rows
import transforms
from libsimilis import Similis

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build/bin/similis_bench"
VERSIONS_OF = ("numpy", "scikit-image", "torch", "pytorch-msssim")
QUIET = 0.05  # processors that other programs may keep busy before the figures are in doubt
# Relative L2 that arrays may differ by, where it is not 1e-4: torch forms coordinates in f32, and a
# voxel that lands on the other side of another has another slope.
DISTANCE = {"sample": 2e-2, "compose": 2e-2}
SCALING = 1.8  # times faster on two threads than on one: the target

# target_ratio: how many times faster than the peer similis is to be, if that is aimed at.
Peer = collections.namedtuple("Peer", "name run target_ratio max_threads", defaults=[None, 2])
# run: how to call similis: Similis.value, Similis.value_and_gradient or a function of transforms.py;
# inputs: what makes its arrays, images() if None.
Comparison = collections.namedtuple(
    "Comparison", "operation run shape dtype peers inputs", defaults=[None])

PICTURE, PATCHES, FRAME = (1, 3, 1080, 1920), (16, 3, 512, 512), (1080, 1920)
VOLUME, CUBE = (1, 1, 128, 160, 192), (1, 1, 96, 96, 96)
COMPARISONS = [
    Comparison("ssim", Similis.value, PICTURE, "f32",
               [Peer("scikit-image", peers.skimage_ssim, 10, max_threads=1),
                Peer("pytorch-msssim", peers.pytorch_ssim)]),
    Comparison("ssim", Similis.value, PICTURE, "u8",
               [Peer("scikit-image", peers.skimage_ssim, max_threads=1)]),
    Comparison("ssim", Similis.value_and_gradient, PICTURE, "f32",
               [Peer("pytorch-msssim", peers.pytorch_ssim_and_gradient, 10)]),
    Comparison("ssim", Similis.value_and_gradient, PATCHES, "f32",
               [Peer("pytorch-msssim", peers.pytorch_ssim_and_gradient)]),
    Comparison("ms_ssim", Similis.value, PICTURE, "f32",
               [Peer("pytorch-msssim", peers.pytorch_ms_ssim)]),
    Comparison("ms_ssim", Similis.value_and_gradient, PICTURE, "f32",
               [Peer("pytorch-msssim", peers.pytorch_ms_ssim_and_gradient)]),
    Comparison("mse", Similis.value, PICTURE, "f32",
               [Peer("scikit-image", peers.skimage_mse, max_threads=1),
                Peer("torch", peers.torch_mse)]),
    Comparison("mse", Similis.value_and_gradient, PICTURE, "f32",
               [Peer("torch", peers.torch_mse_and_gradient)]),
    Comparison("lncc", Similis.value, CUBE, "f32", [Peer("torch", peers.torch_lncc)]),
    Comparison("lncc", Similis.value_and_gradient, CUBE, "f32",
               [Peer("torch", peers.torch_lncc_and_gradient, 10)]),
    Comparison("mutual_information", Similis.value, CUBE, "f32",
               [Peer("torch", peers.torch_mutual_information)]),
    Comparison("mutual_information", Similis.value_and_gradient, CUBE, "f32",
               [Peer("torch", peers.torch_mutual_information_and_gradient, 10)]),
    Comparison("sample", transforms.value, VOLUME, "f32",
               [Peer("torch", transforms.torch_sample)], transforms.image_and_field),
    Comparison("sample", transforms.value_and_gradient_displacement, VOLUME, "f32",
               [Peer("torch", transforms.torch_sample_and_gradient_displacement, 10)],
               transforms.image_and_field),
    Comparison("sample", transforms.value_and_gradient_both, VOLUME, "f32",
               [Peer("torch", transforms.torch_sample_and_gradient_both)],
               transforms.image_and_field),
    Comparison("compose", transforms.value, VOLUME, "f32",
               [Peer("torch", transforms.torch_compose)], transforms.two_fields),
    Comparison("compose", transforms.value_and_gradient, VOLUME, "f32",
               [Peer("torch", transforms.torch_compose_and_gradient)], transforms.two_fields),
]
if libvmaf.is_there():
    COMPARISONS += [
        Comparison(operation, Similis.value, FRAME, "u8",
                   [Peer("libvmaf", run, target_ratio, max_threads=1)])
        for operation, run, target_ratio in (
            ("integer_ssim", peers.libvmaf_ssim, 8),
            ("float_ssim_scale1", peers.libvmaf_float_ssim_scale1, 5),
            ("float_ssim", peers.libvmaf_float_ssim, None),
            ("float_ms_ssim", peers.libvmaf_float_ms_ssim, 5))]


def images(shape, dtype):
    """Noise, and the same with other noise on it."""
    generator = numpy.random.default_rng(1)
    x = generator.random(shape, dtype=numpy.float32)
    y = (x + 0.1 * generator.standard_normal(shape, dtype=numpy.float32)).clip(0, 1)
    if dtype == "u8":
        return (255 * x).round().astype(numpy.uint8), (255 * y).round().astype(numpy.uint8)
    return x, y


def memory_case(case):
    """The memory of a training step is what people ask for; that of other calls says so."""
    operation, what, inputs = case.split("/", 2)
    what = "memory" if what == "value_and_gradient" else f"{what}_memory"
    return f"{operation}/{what}/{inputs}"


def require_agreement(case, peer, ours, theirs):
    """Figures of different results would say nothing."""
    if not isinstance(ours, tuple):
        ours, theirs = (ours,), (theirs,)
    for result, other in zip(ours, theirs):
        if numpy.ndim(result) == 0:
            if not abs(result - other) <= 1e-5:
                raise SystemExit(f"{case}: similis computes {result} and {peer} {other}")
            continue
        error = numpy.linalg.norm(result - other) / numpy.linalg.norm(other)
        if not error <= DISTANCE.get(case.split("/")[0], 1e-4):
            raise SystemExit(f"{case}: the arrays of similis and {peer} differ by {error:.1e}")


def copying_ms(size_bytes, threads):
    """The time to read and write so many bytes in all: that of copying half of them."""
    source = torch.rand(1 << 25)
    target = torch.empty_like(source)
    torch.set_num_threads(threads)
    seconds = measure.median_seconds({"copy": lambda: target.copy_(source)})["copy"]
    return 1e3 * seconds * size_bytes / (2 * source.nbytes)


def compare(comparison, threads):
    """The rows of one comparison: time beside each peer, and memory."""
    case = "/".join([comparison.operation, comparison.run.__name__,
                     "x".join(map(str, comparison.shape)), comparison.dtype])
    print(f"{case}, threads: {threads}", file=sys.stderr)
    x, y = (comparison.inputs or images)(comparison.shape, comparison.dtype)
    elements = math.prod(comparison.shape)

    def on_threads(count):
        similis = Similis(count)
        return lambda: comparison.run(similis, comparison.operation, x, y)

    torch.set_num_threads(threads)
    against = [peer for peer in comparison.peers if threads <= peer.max_threads]
    contenders = {"similis": on_threads(threads)}
    for peer in against:
        contenders[peer.name] = lambda run=peer.run: run(x, y)
        require_agreement(case, peer.name, contenders["similis"](), contenders[peer.name]())
    if threads > 1:
        alone = Peer("similis, 1 thread", None, SCALING)
        against.append(alone)
        contenders[alone.name] = on_threads(1)

    bytes_of_voxel = transforms.BYTES.get(case.rsplit("/", 2)[0])
    # Rows beside a copy find memory as the copy does, in pages that are there; all of them do.
    with measure.kept_memory() if bytes_of_voxel else contextlib.nullcontext():
        seconds = measure.median_seconds(contenders)
    peaks = {name: measure.peak_bytes(run) for name, run in contenders.items()}
    floor = bytes_of_voxel and copying_ms(bytes_of_voxel * elements, threads)
    times = [rows.row(case, threads, "ms", 1e3 * seconds["similis"], peer.name,
                      1e3 * seconds[peer.name], peer.target_ratio, floor) for peer in against]
    memory = [rows.row(memory_case(case), threads, "B/elem", peaks["similis"] / elements, peer.name,
                       peaks[peer.name] / elements) for peer in against]
    return times + memory


def measured_alone(only):
    """Results of similis_bench: the SIMD target in use, and rows without a peer."""
    print("similis_bench", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        chosen = [f"--benchmark_filter=^({'|'.join(only)})/"] if only else []
        subprocess.run([PROGRAM, f"--benchmark_out={report}", "--benchmark_out_format=json", *chosen,
                        "--benchmark_repetitions=5", "--benchmark_min_time=0.05"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        report = json.loads(report.read_text())
    result = []
    for each in report["benchmarks"]:
        if each.get("aggregate_name") != "median":
            continue
        case, threads = each["run_name"].removesuffix("/real_time").split("/threads:")
        result.append(rows.row(case, int(threads), each["time_unit"], each["real_time"]))
        result.append(
            rows.row(memory_case(case), int(threads), "B/elem", each["resident_B/elem"]))
    return report["context"]["simd_target"], result


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def commit():
    """The commit checked out, with "-dirty" if files differ from it; None outside of git."""
    described = subprocess.run(
        ["git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"], cwd=ROOT,
        capture_output=True, text=True)
    return described.stdout.strip() if described.returncode == 0 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="OPERATION", default=[],
                        choices=sorted({each.operation for each in COMPARISONS}),
                        help="time these alone, as a subject of its own")
    only = parser.parse_args().only
    machine = measure.Machine()
    measured = [row for comparison in COMPARISONS for threads in (1, 2)
                if not only or comparison.operation in only
                for row in compare(comparison, threads)]
    others = machine.others()
    compared = {(row["case"], row["threads"]) for row in measured}
    simd_target, alone = measured_alone(only)
    measured += [row for row in alone if (row["case"], row["threads"]) not in compared]

    for select, table in ((rows.is_compared, rows.compared_table),
                          (lambda row: not rows.is_compared(row), rows.alone_table)):
        for unit in ("ms", "B/elem"):
            print(table([row for row in measured if select(row) and row["unit"] == unit]) + "\n")
    if others > QUIET:
        print(f"The machine was not quiet: other programs kept {others:.2f} processors busy.")
    date = datetime.date.today().isoformat()
    versions = {"similis": Similis(1).version()}
    versions |= {name: importlib.metadata.version(name) for name in VERSIONS_OF}
    if libvmaf.is_there():
        versions["libvmaf"] = libvmaf.version()
    path = rows.FOLDER / f"{'-'.join(['cpu', date, *only])}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(
        {"device": processor(), "driver": None, "cuda": None, "commit": commit(), "date": date,
         **({"subject": ", ".join(only)} if only else {}), "versions": versions,
         "simd_target": simd_target, "busy_processors": round(others, 3), "rows": measured},
        indent=1) + "\n")
    print(f"Written to {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Registration of two volumes on a GPU: similis.register beside FireANTs' affine and greedy stages
where its package is importable (its fused operations are used if they are installed). Times are of
the host's clock around calls that wait for the GPU, the least of a few; an iteration's is the
difference of two numbers of iterations. NCC is Pearson's over the fixed grid.

    PYTHONPATH=build/python bench/gpu_registration.py FIXED MOVING --output rows.json
"""

import argparse
import pathlib
import threading
import time

import torch
from torch.nn import functional

from gpu_report import Report

import similis

SHAPE = (160, 192, 224)
LEVELS, ITERATIONS = (4, 2, 1), (50, 40, 20)  # of balanced, as both get them


def volume(path):
    """A volume on the GPU in SHAPE, 0 to 1."""
    data = torch.from_numpy(similis.volumes.read_volume(path).values[0, 0].copy()).float().cuda()
    data = functional.interpolate(data[None, None], SHAPE, mode="trilinear", align_corners=True)
    return ((data - data.min()) / (data.max() - data.min()))[0, 0].contiguous()


def seconds(call, times=3):
    """The least time of a call, and its last result."""
    least, result = float("inf"), None
    for _ in range(times):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        result = call()
        torch.cuda.synchronize()
        least = min(least, time.perf_counter() - begin)
    return least, result


def milliseconds_of_iteration(register, few, many, times):
    """register(iterations) at full resolution."""
    register(few)
    short, _ = seconds(lambda: register(few), times)
    long, _ = seconds(lambda: register(many), times)
    return 1e3 * (long - short) / (many - few)


def ncc(x, y):
    return torch.corrcoef(torch.stack([x.flatten(), y.flatten()]))[0, 1].item()


def peak_bytes(call):
    """The most device memory that a call takes, in bytes beyond those in use before."""
    call()  # the library's pool keeps some of it
    torch.cuda.synchronize()
    free, least, done = torch.cuda.mem_get_info()[0], [2**63], threading.Event()

    def look():
        while not done.is_set():
            least[0] = min(least[0], torch.cuda.mem_get_info()[0])

    thread = threading.Thread(target=look)
    thread.start()
    call()
    torch.cuda.synchronize()
    done.set()
    thread.join()
    return free - least[0]


KERNELS = ("warp_kernel", "windows_kernel", "slopes_kernel", "plane_kernel", "depth_kernel", "compose_kernel")


def milliseconds_of_kernels(call):
    """{kernel: its time in a launch} of a full-resolution iteration's kernels, the longest half of
    their launches, as those that the guard leaves nothing to do return at once."""
    call()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        call()
        torch.cuda.synchronize()
    times = {name: [] for name in KERNELS}
    for event in profile.events():
        for name in KERNELS:
            if name in event.name:
                times[name].append(1e-3 * event.device_time)
    longest = {name: sorted(each)[len(each) // 2:] for name, each in times.items()}
    return {name: sum(each) / len(each) for name, each in longest.items() if each}


def fireants_calls(fixed, moving):
    """(all stages, full-resolution greedy iterations) of FireANTs; None without it."""
    try:
        import SimpleITK
        from fireants.io import BatchedImages, Image
        from fireants.registration.affine import AffineRegistration
        from fireants.registration.greedy import GreedyRegistration
    except ImportError as error:
        print(f"FireANTs is left out: {error}")
        return None

    def batch(data):
        return BatchedImages([Image(SimpleITK.GetImageFromArray(data.cpu().numpy()), device="cuda")])

    f, m = batch(fixed), batch(moving)

    def greedy(scales, iterations, affine=None):
        return GreedyRegistration(scales=list(scales), iterations=list(iterations), fixed_images=f,
                                  moving_images=m, loss_type="cc", cc_kernel_size=5,
                                  optimizer="Adam", optimizer_lr=0.5, smooth_warp_sigma=0.25,
                                  smooth_grad_sigma=1.0, init_affine=affine, max_tolerance_iters=1000,
                                  progress_bar=False)

    def all_stages():
        affine = AffineRegistration([4, 2], [100, 50], f, m, optimizer="Adam", optimizer_lr=3e-3,
                                    cc_kernel_size=5, progress_bar=False)
        affine.optimize()
        stage = greedy(LEVELS, ITERATIONS, affine.get_affine_matrix().detach())
        stage.optimize()
        return stage.evaluate(f, m)[0, 0]

    def iterations(count):
        greedy([1], [count]).optimize()

    return all_stages, iterations


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fixed")
    parser.add_argument("moving")
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--commit", default="")
    parser.add_argument("--without-peer", action="store_true")
    arguments = parser.parse_args()
    report = Report(arguments.output, arguments.commit, {"similis": similis.__version__},
                    "registration")
    report.note("Volumes are resampled. FireANTs takes an affine of 100 and 50 iterations and greedy ones of "
                "50, 40 and 20. Results are copied to torch's memory, which the row of memory holds too. "
                "An iteration's time is with the guard's repairs, kernels' are without.")
    fixed, moving = volume(arguments.fixed), volume(arguments.moving)
    name = "x".join(map(str, SHAPE))
    print(f"{torch.cuda.get_device_name()}, NCC before {ncc(fixed, moving):.4f}")

    def register(**options):
        return similis.register(fixed, moving, **options)

    def iterations(count):
        register(stages=("deformable",), init="identity", levels=(1,), iterations=(count,),
                 tolerance=0)

    register()
    linear, _ = seconds(lambda: register(stages=("rigid", "affine")))
    balanced, r = seconds(register)
    print(f"NCC after the linear stages and balanced: {ncc(fixed, r.warped):.4f}; "
          f"iterations {[len(level['loss']) for level in r._found.report()['stages'][-1]['levels']]}")
    print("seconds of the stages:",
          {each["name"]: round(each["seconds"], 4) for each in r._found.report()["stages"]})
    iteration = milliseconds_of_iteration(iterations, 10, 40, 5)
    peak = peak_bytes(lambda: iterations(20)) / fixed.numel()
    kernels = milliseconds_of_kernels(lambda: iterations(10))
    symmetric, s = seconds(lambda: register(stages=("rigid", "affine", "symmetric")), 2)
    print(f"symmetric: {symmetric:.3f} s, NCC {ncc(fixed, s.warped):.4f}")
    peer = None if arguments.without_peer else fireants_calls(fixed, moving)
    peer_all = peer_iteration = None
    if peer is not None:
        peer[0]()
        peer_all, warped = seconds(peer[0], 1)
        peer_iteration = milliseconds_of_iteration(peer[1], 5, 15, 2)
        print(f"FireANTs: NCC {ncc(fixed, warped):.4f}")
    beside = [{} if each is None else {"FireANTs": each} for each in (peer_iteration, peer_all)]
    report.add(f"registration/greedy_iteration/{name}/f32", "ms", iteration, beside[0],
               floor=round(124 * fixed.numel() / 4.2e9, 3), target=0.5)
    report.add(f"registration/linear/{name}/f32", "s", linear, target=0.1)
    report.add(f"registration/balanced/{name}/f32", "s", balanced, beside[1], target=0.25)
    report.add(f"registration/symmetric/{name}/f32", "s", symmetric)
    report.add(f"registration/memory/greedy/{name}/f32", "B/voxel", peak, target=52)
    if len(kernels) == len(KERNELS):
        report.add(f"registration/greedy_iteration_kernels/{name}/f32", "ms", sum(kernels.values()),
                   floor=round(124 * fixed.numel() / 4.2e9, 3), target=0.5)
    for kernel, milliseconds in kernels.items():
        report.add(f"registration/{kernel}/{name}/f32", "ms", milliseconds)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Volumes over two GPUs beside one: a step of registration, `sample` and LNCC of window 7 with the
gradient to the field, |u| ≤ 8 voxels, 512×1024×1024 voxels a GPU.

    PYTHONPATH=build/python bench/gpu_distributed.py --output rows.json

The program starts its ranks itself, once for each set of cases and with a limit each, so that one
that fails leaves the others' rows. Times are of the host's clock around a few steps, which all ranks
begin together; a case's is that of the slowest rank, the middle of three rounds.
"""

import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

RANKS, DEPTH, WIDTH, REACH, WINDOW = 2, 512, 1024, 8, 7
SETS = {"scaling": 110, "turn": 60, "links": 40, "memory": 60, "eighth": 90}  # seconds


class Ranks:
    """The shared state of a rank's cases: its GPU, slabs of one rank and of all, and its rows."""

    def __init__(self, output):
        import torch
        import torch.distributed as dist

        import similis.distributed as sd

        sd.init(timeout=30)
        self.rank, self.output = dist.get_rank(), output
        self.torch, self.dist, self.sd = torch, dist, sd
        alone = [dist.new_group([each]) for each in range(RANKS)]
        self.alone = alone[self.rank]

    def milliseconds(self, step, steps=4, rounds=3):
        """The slowest rank's time of a step."""
        step()
        times = []
        for _ in range(rounds):
            self.torch.cuda.synchronize()
            self.together(0)
            begin = time.perf_counter()
            for _ in range(steps):
                step()
            self.torch.cuda.synchronize()
            times.append(max(self.together(1e3 * (time.perf_counter() - begin) / steps)))
        return statistics.median(times)

    def together(self, value):
        """The value of each rank."""
        every = [None] * RANKS
        self.dist.all_gather_object(every, value)
        return every

    def add(self, case, unit, value, target=None, floor=None):
        if self.rank == 0:
            row = {"case": case, "unit": unit, "value": value, "target": target, "floor": floor}
            with open(self.output, "a") as file:
                file.write(json.dumps(row) + "\n")
            print(f"  {case}: {value:.4g} {unit}", flush=True)

    def volume(self, start, rows, width, shift=0.0):
        """Rows of a volume of waves."""
        torch = self.torch
        line = torch.arange(width, device="cuda").float()
        plane = (0.11 * line).sin()[:, None] + (0.07 * line + shift).cos()[None]
        x = torch.empty(1, 1, rows, width, width, device="cuda")
        for row in range(rows):
            x[0, 0, row] = plane * (0.05 * (start + row + shift)) % 3
        return x

    def field(self, start, rows, extent, width):
        """Rows of a smooth field of at most REACH voxels, in sample()'s units."""
        torch = self.torch
        line = torch.arange(width, device="cuda").float()
        wave = (0.013 * line).sin()[:, None] * (0.017 * line).cos()[None]
        u = torch.empty(1, rows, width, width, 3, device="cuda")
        for row in range(rows):
            here = wave * torch.cos(torch.tensor(0.021 * (start + row)))
            for axis, of in enumerate((width, width, extent)):
                u[0, row, ..., axis] = here * (REACH - 0.01) * 2 / (of - 1)
        return u.requires_grad_()

    def step_of(self, fixed, moving, u, slabs=None, **options):
        import similis

        def step():
            u.grad = None
            if slabs is None:
                moved = similis.sample(moving, displacement=u)
                loss = similis.lncc_loss(fixed, moved, window_size=WINDOW)
            else:
                moved = self.sd.sample(moving, slabs, displacement=u, **options)
                loss = self.sd.lncc_loss(fixed, moved, slabs, window_size=WINDOW)
            loss.backward()
            return loss.detach()

        return step

    def profile(self, name, step):
        """Writes where a step's time goes, if a folder for it is named."""
        folder = os.environ.get("SIMILIS_PROFILES")
        if not folder:
            return
        profiler = self.torch.profiler
        activities = [profiler.ProfilerActivity.CUDA, profiler.ProfilerActivity.CPU]
        with profiler.profile(activities=activities) as profile:
            step()
            self.torch.cuda.synchronize()
        if self.rank == 0:
            profile.export_chrome_trace(f"{folder}/{name}.json")
            table = profile.key_averages().table(sort_by="cuda_time_total", row_limit=40)
            pathlib.Path(f"{folder}/{name}.txt").write_text(table)


def scaling(ranks):
    """Steps unsharded, sharded on one rank, and sharded on all."""
    sd, start, whole = ranks.sd, ranks.rank * DEPTH, RANKS * DEPTH
    fixed, moving = (ranks.volume(start, DEPTH, WIDTH, each) for each in (0.0, 0.4))
    size, near = f"{DEPTH}x{WIDTH}x{WIDTH}", {"reach": (REACH + 1, REACH + 1)}
    own_slabs = sd.Slabs([DEPTH], ranks.alone)
    u = ranks.field(0, DEPTH, DEPTH, WIDTH)
    step = ranks.step_of(fixed, moving, u)
    one = ranks.milliseconds(step)
    ranks.profile("one_gpu", step)
    ranks.add(f"distributed/step/one_gpu/{size}/f32", "ms", one)
    alone, times = {}, {}
    for name, options in (("", {}), ("/reach", near)):
        alone[name] = ranks.milliseconds(ranks.step_of(fixed, moving, u, own_slabs, **options))
        ranks.add(f"distributed/step/one_rank{name}/{size}/f32", "ms", alone[name])
    slabs = sd.Slabs([DEPTH] * RANKS)
    u = ranks.field(start, DEPTH, whole, WIDTH)
    for name, options in (("", {}), ("/reach", near)):
        step = ranks.step_of(fixed, moving, u, slabs, **options)
        two = times[name] = ranks.milliseconds(step)
        ranks.profile(f"step{name.replace('/', '_')}", step)
        ranks.add(f"distributed/step/two_gpus{name}/{size}/f32", "ms", two, target=one / 0.9)
        ranks.add(f"distributed/weak_scaling{name}/{size}/f32", "times one's", two / one, 1 / 0.9)
        share = (two - alone[name]) / two
        ranks.add(f"distributed/visible_exchange{name}/{size}/f32", "of a step", share, 0.05)
    del fixed, moving, u, step
    fixed, moving = (ranks.volume(0, whole, WIDTH, each) for each in (0.0, 0.4))
    u = ranks.field(0, whole, whole, WIDTH)
    large = ranks.milliseconds(ranks.step_of(fixed, moving, u), steps=2)
    ranks.add(f"distributed/step/one_gpu/{whole}x{WIDTH}x{WIDTH}/f32", "ms", large)
    case = f"distributed/strong_scaling/{whole}x{WIDTH}x{WIDTH}/f32"
    ranks.add(case, "times one's", times[""] / large, 1 / 1.8)


def turn(ranks):
    """A quarter turn about x, for which each rank needs every row of the image."""
    import similis

    torch, sd, whole = ranks.torch, ranks.sd, RANKS * DEPTH
    start = ranks.rank * DEPTH
    image, fixed = ranks.volume(0, whole, WIDTH), ranks.volume(start, DEPTH, WIDTH)
    own = image[:, :, start : start + DEPTH].clone()
    matrix = torch.tensor([[[1.0, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0]]], device="cuda")
    u = ranks.field(start, DEPTH, whole, WIDTH)
    slabs = sd.Slabs([DEPTH] * RANKS)
    ends = [2 * each / (whole - 1) - 1 for each in (start, start + DEPTH - 1)]

    def unsharded():
        u.grad = None
        coordinates = {"min_coords": (-1, -1, ends[0]), "max_coords": (1, 1, ends[1])}
        moved = similis.sample(image, affine=matrix, displacement=u, **coordinates)
        similis.lncc_loss(fixed, moved, window_size=WINDOW).backward()

    def sharded():
        u.grad = None
        moved = sd.sample(own, slabs, affine=matrix, displacement=u)
        sd.lncc_loss(fixed, moved, slabs, window_size=WINDOW).backward()

    one, two = ranks.milliseconds(unsharded), ranks.milliseconds(sharded)
    ranks.profile("turn", sharded)
    size = f"{whole}x{WIDTH}x{WIDTH}"
    ranks.add(f"distributed/quarter_turn/unsharded/{size}/f32", "ms", one)
    ranks.add(f"distributed/quarter_turn/two_gpus/{size}/f32", "ms", two, target=1.5 * one)
    ranks.add(f"distributed/quarter_turn/{size}/f32", "times unsharded", two / one, 1.5)
    with torch.no_grad():
        expected = similis.sample(image, affine=matrix)[:, :, start : start + DEPTH]
        assert torch.equal(sd.sample(own, slabs, affine=matrix), expected), "the turn's bits"


def links(ranks):
    """Times of rows, sums and words, from which the model of cost is made."""
    from similis.distributed import transport
    from similis.distributed.agreement import Agreement

    torch = ranks.torch
    slabs = ranks.sd.Slabs([128] * RANKS)
    x = torch.zeros(1, 1, 128, WIDTH, WIDTH, device="cuda")
    for rows in (1, 8, 128):
        wanted = [(128, 128 + rows), (128 - rows, 128)]

        def exchange():
            transport.Exchange(slabs, x, wanted, 2).rows()

        time = ranks.milliseconds(exchange, steps=8)
        ranks.add(f"distributed/exchange/{rows}_rows_each_way", "ms", time)
        rate = rows * 4 * WIDTH**2 / time / 1e6
        ranks.add(f"distributed/exchange/{rows}_rows_each_way/ns_a_KB", "ns/KB", 1e3 / rate)
    sums = torch.zeros(2, 1, 1, device="cuda", dtype=torch.float64)
    time = ranks.milliseconds(lambda: transport.sum_of_ranks(slabs, sums), steps=50)
    ranks.add("distributed/sum_of_ranks/gpu", "ms", time)

    def agree():
        with Agreement("benchmark", slabs) as agreement:
            agreement.array("x", x, slabs, 2)

    ranks.add("distributed/agreement", "ms", ranks.milliseconds(agree, steps=50))


def _greedy(ranks, rows, width):
    """A greedy step with Adam; bytes per own voxel at its peak, and what it has moved."""
    import similis

    torch, sd, whole = ranks.torch, ranks.sd, RANKS * rows
    torch.cuda.empty_cache()
    held = torch.cuda.memory_allocated()
    used = lambda: torch.cuda.mem_get_info()[1] - torch.cuda.mem_get_info()[0]
    beside = used() - torch.cuda.memory_reserved()
    start = ranks.rank * rows
    slabs = sd.Slabs([rows] * RANKS)
    near = torch.zeros(1, 1, rows, 8, 8, device="cuda")
    sd.halo(near, slabs, 1, 1)
    connected = used() - torch.cuda.memory_reserved() - beside
    fixed, moving = (ranks.volume(start, rows, width, each) for each in (0.0, 0.4))
    u = ranks.field(start, rows, whole, width)
    adam = torch.optim.Adam([u], lr=1e-4, fused=True)
    times = []
    for _ in range(3):
        torch.cuda.synchronize()
        ranks.together(0)
        begin = time.perf_counter()
        adam.zero_grad(set_to_none=True)
        moved = sd.sample(moving, slabs, displacement=u)
        loss = sd.lncc_loss(fixed, moved, slabs, window_size=WINDOW)
        del moved
        loss.backward()
        loss = float(loss.detach())
        adam.step()
        torch.cuda.synchronize()
        times.append(max(ranks.together(1e3 * (time.perf_counter() - begin))))
        print(f"  rank {ranks.rank}: loss {loss:.6f}, {times[-1]:.1f} ms", flush=True)
    peak = torch.cuda.max_memory_allocated() - held
    grown = max(used() - torch.cuda.memory_reserved() - beside, 0)
    print(
        f"  rank {ranks.rank}: torch's peak {peak / 1e9:.2f} GB, the library's and NCCL's "
        f"{grown / 1e9:.2f} GB, of which {connected / 1e9:.2f} to connect; in use on the device {used() / 1e9:.2f} GB", flush=True
    )
    assert len(set(ranks.together(loss))) == 1
    assert all(bool(torch.isfinite(row).all()) for row in u.grad[0])
    most = max(ranks.together(peak + grown))
    return most, max(ranks.together(used())), min(times), (moving, u, slabs)


def memory(ranks):
    most, _, _, _ = _greedy(ranks, DEPTH, WIDTH)
    voxels = DEPTH * WIDTH**2
    per_voxel = (most - 0.6e9) / voxels
    ranks.add(f"distributed/greedy_memory/{DEPTH}x{WIDTH}x{WIDTH}/f32", "B/voxel", per_voxel, 64)


def eighth(ranks):
    """One eighth of 2048³ a rank: 256 of 2048 rows, of which two ranks have a quarter."""
    rows, width = 256, 2048
    total = ranks.torch.cuda.mem_get_info()[1]  # torch keeps what it has freed, up to this
    ranks.torch.cuda.set_per_process_memory_fraction(72.5e9 / total)
    most, used, time, (moving, u, slabs) = _greedy(ranks, rows, width)
    ranks.add(f"distributed/eighth_of_2048/memory/{rows}x{width}x{width}/f32", "GB", used / 1e9, 75)
    ranks.add(f"distributed/eighth_of_2048/step/{rows}x{width}x{width}/f32", "ms", time)
    # In a linear volume the moved voxels are known, but for those that look beyond it.
    torch = ranks.torch
    u.grad = None
    line = torch.arange(width, device="cuda").float() / width
    for row in range(rows):
        at = (slabs.start + row) / width
        moving[0, 0, row] = at + line[:, None] + 2 * line[None]
    with torch.no_grad():
        moved = ranks.sd.sample(moving, slabs, displacement=u)
        worst, seen = 0.0, 0
        for row in range(rows):
            z = slabs.start + row + u[0, row, ..., 2] * (slabs.extent - 1) / 2
            y, x = (
                line.reshape(shape) * width + u[0, row, ..., axis] * (width - 1) / 2
                for axis, shape in ((1, (-1, 1)), (0, (1, -1)))
            )
            # f32 says to a thousandth of a voxel where they are.
            inside = (z >= 0.01) & (z <= slabs.extent - 1.01)
            for each in (y, x):
                inside &= (each >= 0.01) & (each <= width - 1.01)
            expected = (z + y + 2 * x) / width
            off = torch.where(inside, (moved[0, 0, row] - expected).abs(), 0.0).max()
            worst, seen = max(worst, float(off)), seen + int(inside.sum())
    print(f"  rank {ranks.rank}: moved voxels are off by {worst:.2e} at most, {seen} seen", flush=True)
    assert worst < 1e-5 and seen > 0.9 * rows * width**2


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--commit", default="")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--rank", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank:
        ranks = Ranks(arguments.rank)
        for name in arguments.sets:
            globals()[name](ranks)
        os._exit(0)
    import torch

    import similis
    from gpu_report import Report

    report = Report(arguments.output, arguments.commit, {"similis": similis.__version__}, "distributed")
    report.content["devices"] = torch.cuda.device_count()
    report.content["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    for name in arguments.sets:
        print(f"{name}:", flush=True)
        for row in run(name):
            case, unit, value = (row[key] for key in ("case", "unit", "value"))
            report.add(case, unit, value, floor=row["floor"], target=row["target"])


def run(name):
    """The rows of a set of cases, those that were measured before a failure if there is one."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Memory that torch keeps in pieces of unlike sizes would count as used.
    whole_memory = {"PYTORCH_ALLOC_CONF": "expandable_segments:True"} if name == "eighth" else {}
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "rows"
        processes = []
        for rank in range(RANKS):
            variables = {"RANK": rank, "WORLD_SIZE": RANKS, "LOCAL_RANK": rank,
                         "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            processes.append(subprocess.Popen(
                [sys.executable, "-u", __file__, "--rank", str(output), "--sets", name],
                env={**os.environ, **whole_memory, **{key: str(each) for key, each in variables.items()}}))
        until = time.monotonic() + SETS[name]
        for rank, process in enumerate(processes):
            try:
                status = process.wait(max(until - time.monotonic(), 0.1))
                if status:
                    print(f"{name}: rank {rank} ended with status {status}", flush=True)
            except subprocess.TimeoutExpired:
                print(f"{name}: rank {rank} is not done after {SETS[name]} s", flush=True)
                process.kill()
        text = output.read_text() if output.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


if __name__ == "__main__":
    main()

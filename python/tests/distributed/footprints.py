# SPDX-License-Identifier: Apache-2.0
"""Memory and messages of each operation: no rank makes an array as large as a whole one, and only
the rows that are needed travel.

Rank 0 holds most rows, so that a whole array on another rank would be many times its own.
"""

import ctypes
import gc
import pathlib

import torch
import torch.distributed as dist
from cases import DEVICE, noise, own
from torch.utils._python_dispatch import TorchDispatchMode

import similis.distributed as sd
from similis.distributed import Slabs, transport
from similis.distributed.registration import linear

DEPTH, WIDTH = 48, 48
PLANE = WIDTH * WIDTH
IMAGE_BYTES = 4 * DEPTH * PLANE
ROW = 4 * PLANE  # bytes of a row of an image; a field has three times as many


class _Allocations(TorchDispatchMode):
    """The largest memory behind any result of torch's operators."""

    largest = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        results = func(*args, **(kwargs or {}))
        for each in results if isinstance(results, (tuple, list)) else [results]:
            if isinstance(each, torch.Tensor):
                self.largest = max(self.largest, each.untyped_storage().nbytes())
        return results


class _Gathered:
    """Counts the bytes that a rank gives to collective calls."""

    def __enter__(self):
        self.bytes, self._plain = 0, dist.all_gather

        def counting(results, mine, **options):
            self.bytes += mine.numel() * mine.element_size()
            return self._plain(results, mine, **options)

        dist.all_gather = counting
        return self

    def __exit__(self, *_):
        dist.all_gather = self._plain


def peak_growth(run):
    """The growth of this process' memory at its peak during run(), in bytes; on a GPU torch's."""
    gc.collect()
    if DEVICE.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
        held = torch.cuda.memory_allocated()
        run()
        return torch.cuda.max_memory_allocated() - held
    ctypes.CDLL(None).malloc_trim(0)  # memory that earlier calls freed would be taken again unseen
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmHWM")
    run()
    return _status("VmHWM") - before


def _status(name):
    text = pathlib.Path("/proc/self/status").read_text()
    return 1024 * int(text.split(f"{name}:")[1].split()[0])


def halo_rows(slabs, radius):
    """Rows that all ranks together fetch if each needs so many on each side."""
    total = 0
    for rank in range(slabs.ranks):
        start, stop = slabs.rows(rank)
        if start < stop:
            total += start - max(start - radius, 0) + min(stop + radius, slabs.extent) - stop
    return total


def operations(slabs):
    """Name, call, operands, most bytes that all ranks send in forward and backward, and whether
    exactly so many."""
    x, y = (own(noise(1, 1, DEPTH, WIDTH, WIDTH, seed=k), slabs).requires_grad_() for k in (1, 2))
    u = own(noise(1, DEPTH, WIDTH, WIDTH, 3, seed=3, scale=0.01), slabs, 1).requires_grad_()
    waves = torch.sin(torch.arange(float(WIDTH), device=DEVICE) / 9)[:, None, None]
    waves = waves.expand(1, slabs.stop - slabs.start, WIDTH, WIDTH, 3)
    labels = x.detach().abs().floor()
    affine = torch.eye(3, 4, device=DEVICE)[None]
    one, two = halo_rows(slabs, 1) * ROW, halo_rows(slabs, 2) * ROW
    near = halo_rows(slabs, 3) * ROW  # |u| is below 2 rows, and a cell has two
    for name in ("ssim", "ssim_loss", "l1_ssim", "lncc", "lncc_loss"):
        call = getattr(sd, name)
        yield name, lambda call=call: call(x, y, slabs, window_size=5), (x, y), 4 * two, True
    for name in ("ssim", "lncc"):
        call = getattr(sd, name)
        yield (
            f"{name}'s map",
            lambda call=call: call(x, y, slabs, window_size=5, reduction="none"),
            (x, y), 4 * two, True,
        )  # fmt: skip
    for name in ("ms_ssim", "ms_ssim_loss"):
        call = getattr(sd, name)
        options = {"window_size": 5, "weights": (0.5, 0.5)}
        # The coarse level has a quarter of the pixels in f64, and rows are halved across borders.
        yield name, lambda call=call: call(x, y, slabs, **options), (x, y), 6 * two + 8 * one, False
    for name in ("mse", "mae", "psnr", "ncc", "ncc_loss", "mutual_information"):
        call = getattr(sd, name)
        yield name, lambda call=call: call(x, y, slabs), (x, y), 0, True
    yield "histogram", lambda: sd.histogram(x, y, slabs, range=(-3.0, 3.0)), (), 0, True
    yield "jacobian", lambda: sd.jacobian_determinant(u, slabs)[0], (u,), 2 * 3 * one, True
    yield "smooth", lambda: sd.smooth(x, 0.5, slabs), (x,), 2 * two, True
    yield "halo", lambda: sd.halo(x, slabs, 2, 2), (x,), 2 * two, True
    yield "affine_grid", lambda: sd.affine_grid(affine, u, slabs), (u,), 0, True
    yield "sample", lambda: sd.sample(x, slabs, displacement=u), (x, u), 3 * near, False
    yield (
        "sample_labels",
        lambda: sd.sample_labels(labels, slabs, displacement=u, return_weight=True)[1],
        (u,), 2 * near, False,
    )  # fmt: skip
    yield "compose", lambda: sd.compose(u, u, slabs), (u,), 3 * 3 * near, False
    yield "exponentiate", lambda: sd.exponentiate(u, slabs, 2), (u,), 2 * 3 * 3 * near, False
    yield "invert", lambda: sd.invert(0.02 * waves, slabs, 4)[0], (), 3 * 2 * near, False
    yield (
        "register",
        lambda: sd.register(
            x, y, slabs, stages=("deformable",), levels=(1,), iterations=(1,), fluid=0.6, elastic=0.4,
        ).displacement,
        (), 60 * near, False,
    )  # fmt: skip
    yield (
        "register both ways",
        lambda: sd.register(
            x, y, slabs, stages=("symmetric",), levels=(1,), iterations=(1,), fluid=0.6, elastic=0.4,
            fixed_labels=labels[0, 0], moving_labels=labels, metrics=["ncc", "dice"],
        ).displacement,
        (), 130 * near, False,
    )  # fmt: skip
    if slabs.ranks == 3:  # both copies go to all other ranks, and smoothing fetches rows
        copies = 2 * 4 * 16**3 * (slabs.ranks - 1)
        yield "linear", lambda: linear_stage(x, y, slabs), (), copies + 12 * near, False


def linear_stage(x, y, slabs):
    """On copies of 16 voxels along each axis."""
    before, linear._LONGEST = linear._LONGEST, 12
    try:
        return sd.register(x, y, slabs, stages=("translation",), init="identity").affine
    finally:
        linear._LONGEST = before


def main():
    slabs = Slabs([DEPTH - 4 * (dist.get_world_size() - 1)] + [4] * (dist.get_world_size() - 1))
    for name, call, operands, most, is_exact in operations(slabs):

        def run():
            value = call()
            if operands:
                torch.autograd.grad(value.sum(), operands)

        before = transport.sent_bytes
        with _Allocations() as allocations, _Gathered() as collective:
            run()
        sent = torch.tensor([transport.sent_bytes - before])
        dist.all_reduce(sent)
        assert int(sent) <= most and (int(sent) == most or not is_exact), (name, int(sent), most)
        assert collective.bytes < ROW, (name, collective.bytes)
        of_whole = IMAGE_BYTES * (3 if name in _OF_FIELDS else 1)
        if slabs.rank > 0:
            assert allocations.largest < of_whole / 2, (name, allocations.largest, of_whole)
    if slabs.ranks > 1:  # one rank may hold what it likes
        peaks(Slabs([DEPTH - slabs.ranks + 1] + [1] * (slabs.ranks - 1)))


def peaks(slabs):
    """The memory of the process, the library's included, in a step of registration."""
    size, of_whole = 256, 4 * DEPTH * 256**2
    x, y = (torch.rand(1, 1, slabs.stop - slabs.start, size, size, device=DEVICE) for _ in range(2))
    u = torch.zeros_like(x[0, ..., None].expand(-1, -1, -1, -1, 3)).requires_grad_()

    def step():
        moved = sd.sample(y, slabs, displacement=u)
        torch.autograd.grad(sd.lncc_loss(x, moved, slabs, window_size=5), u)

    growth = peak_growth(step)
    if slabs.rank > 0:
        assert growth < of_whole, (growth, of_whole)


_OF_FIELDS = (
    "jacobian", "affine_grid", "compose", "exponentiate", "invert", "register", "register both ways",
    "sample",
)  # fmt: skip

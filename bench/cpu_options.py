#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times options and other shapes on one thread of a CPU: through torch's autograd by the Python
package similis, beside the same work written with torch. Contenders take turns in this process, and
each figure is the least processor time of its calls, so that a loaded machine can measure.

    PYTHONPATH=build/python bench/cpu_options.py --only 'sample/.*nearest'
    PYTHONPATH=build/python bench/cpu_options.py --sweep

The sweep takes modes, paddings, dtypes, ranks, channels, sizes and layouts through sample(), and lists
the rows that are slower than torch. It writes no file.
"""

import argparse
import contextlib
import datetime
import functools
import importlib.metadata
import itertools
import json
import re
import subprocess
import time

import torch
from torch.nn import functional

import measure
import rows
from compare_peers import ROOT, commit, processor
from torch_step import step, waves

import similis

PROGRAM = ROOT / "build/bin/similis"
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64}
PICTURE, VOLUME = (1, 1, 1024, 1024), (1, 1, 96, 128, 128)
SMALL = ((1, 1, 16, 16), (1, 3, 32, 32), (1, 3, 48, 48), (8, 3, 32, 32))
# These of the operands have gradients.
KINDS = {"value": (), "value_and_gradient_displacement": (False, True),
         "value_and_gradient_both": (True, True), "value_and_gradient": (True, True),
         "value_and_gradient_image": (True, False)}


@functools.lru_cache(maxsize=1)
def identity(shape, align_corners):
    """The coordinates that torch adds a displacement to; a program makes them once."""
    axes = len(shape) - 2
    eye = torch.eye(axes, axes + 1).repeat(shape[0], 1, 1)
    return functional.affine_grid(eye, shape, align_corners=align_corners)


def sampled_by_torch(image, u, mode="linear", padding_mode="zeros", align_corners=True):
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    wide = image.float() if image.dtype in (torch.float16, torch.bfloat16) else image
    grid = (identity(tuple(image.shape), align_corners) + u).to(wide.dtype)
    return functional.grid_sample(wide, grid, mode=mode, padding_mode=padding_mode,
                                  align_corners=align_corners).to(image.dtype)


def composed_by_torch(u, v):
    return sampled_by_torch(u.movedim(-1, 1), v).movedim(1, -1)


def squared_gradient_norm(ssim):
    """A gradient penalty: the gradient of the squared norm of a gradient."""
    def call(x, y):
        x = x.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(ssim(x, y), x, create_graph=True)
        gradient.square().sum().backward()
        return x.grad
    return call


def least_milliseconds(contenders, operands, seconds):
    """{who: the least processor time of a call}, in turn; short calls are timed several at once."""
    counts, least = {}, dict.fromkeys(contenders, float("inf"))
    for who, call in contenders.items():
        call(*operands)
        before = time.process_time()
        call(*operands)
        counts[who] = max(1, int(1e-3 / max(time.process_time() - before, 1e-6)))
    start, rounds = time.process_time(), 0
    while rounds < 5 or time.process_time() - start < seconds:
        for who, call in contenders.items():
            before = time.process_time()
            for _ in range(counts[who]):
                call(*operands)
            least[who] = min(least[who], 1e3 * (time.process_time() - before) / counts[who])
        rounds += 1
    return least


def simd_target():
    """The SIMD target that the program of the same build reports."""
    facts = subprocess.run([PROGRAM, "info"], check=True, capture_output=True, text=True).stdout
    return re.search(r"\b(AVX\w*|SSE\w*|NEON\w*|SCALAR|EMU128)\b", facts)[1]


def name(shape):
    return "x".join(map(str, shape))


def sample_cases(shape, kinds, of_torch=None, **options):
    suffix = "".join(f"/{key}={value}".lower() for key, value in options.items())
    for kind in kinds:
        def contenders():
            image, u, upstream = torch.rand(shape), waves(shape, 2), torch.randn(shape)
            ours = lambda x, d: similis.sample(x, displacement=d, **options)
            theirs = lambda x, d: sampled_by_torch(x, d, **options)
            return {"similis": step(ours, upstream, KINDS[kind]),
                    "torch": step(theirs, upstream, KINDS[kind])}, (image, u)
        yield f"sample/{kind}/{name(shape)}/f32{suffix}", contenders, of_torch


def half_cases(shape, dtype):
    """Images of half precision beside the same in f32, which takes at most 1.3 times as long."""
    for kind in ("value", "value_and_gradient_displacement"):
        def contenders():
            image, u, upstream = torch.rand(shape), waves(shape, 2), torch.randn(shape)
            half = image.to(DTYPES[dtype])
            ours = lambda x, d: similis.sample(x, displacement=d)
            of_half = step(ours, upstream.to(half.dtype), KINDS[kind])
            return {"similis": lambda x, d: of_half(half, d),
                    "similis with f32": step(ours, upstream, KINDS[kind])}, (image, u)
        yield f"sample/{kind}/{name(shape)}/{dtype}", contenders, 1 / 1.3


def grid_case():
    def contenders():
        grid = identity(PICTURE, True) + waves(PICTURE, 2)
        theirs = lambda x, g: functional.grid_sample(x, g, align_corners=True)
        return {"similis": step(lambda x, g: similis.sample(x, grid=g), None, ()),
                "torch": step(theirs, None, ())}, (torch.rand(PICTURE), grid)
    yield f"sample/value/{name(PICTURE)}/f32/grid", contenders, 3


def compose_cases(shape):
    for kind, of_torch in (("value", 6), ("value_and_gradient", 4)):
        def contenders():
            u, v = waves(shape, 1), waves(shape, 2)
            upstream = torch.randn_like(u)
            return {"similis": step(similis.compose, upstream, KINDS[kind]),
                    "torch": step(composed_by_torch, upstream, KINDS[kind])}, (u, v)
        yield f"compose/{kind}/{name(shape[2:])}/f32", contenders, of_torch


def field_cases(shape):
    """Times alone; the targets are 2 and 150 ns a voxel."""
    u = lambda: (waves(shape, 1, 0.0005),)
    voxels = torch.Size(shape).numel()
    for operation, function, target in (
            ("jacobian_determinant", lambda x: similis.jacobian_determinant(x)[0], 2),
            ("invert", lambda x: similis.invert(x)[0], 150)):
        yield (f"{operation}/value/{name(shape[2:])}/f32",
               lambda function=function: ({"similis": step(function, None, ())}, u()),
               -1e-6 * target * voxels)


def measure_cases(operation, shapes, kinds, dtypes):
    theirs = {"mse": functional.mse_loss, "mae": functional.l1_loss}[operation]
    for shape in shapes:
        for dtype in dtypes:
            for kind in kinds:
                def contenders():
                    x, y = torch.rand(shape), torch.rand(shape)
                    both = x.to(DTYPES[dtype]), y.to(DTYPES[dtype])
                    gradients = KINDS[kind][:1] + (False,)
                    return {"similis": step(getattr(similis, operation), None, gradients),
                            "torch": step(theirs, None, gradients)}, both
                yield f"{operation}/{kind}/{name(shape)}/{dtype}", contenders, None


def double_backward_case():
    def contenders():
        from pytorch_msssim import ssim
        pair = torch.rand((1, 3, 135, 240)), torch.rand((1, 3, 135, 240))
        ours = lambda x, y: similis.ssim(x, y)
        return {"similis": squared_gradient_norm(ours),
                "pytorch-msssim": squared_gradient_norm(lambda x, y: ssim(x, y, data_range=1))}, pair
    yield "ssim/double_backward/1x3x135x240/f32", contenders, 1.5


def any_sample_case(kind, shape, dtype="f32", layout="dense", is_expanded=False, **options):
    """A case of the sweep. Halves are widened for torch, which wants coordinates in the image's dtype:
    those in halves are off by pixels."""
    def contenders():
        image, u = torch.rand(shape, dtype=torch.float64).to(DTYPES[dtype]), waves(shape, 2)
        if layout == "channels_last":
            image = image.movedim(1, -1).contiguous().movedim(-1, 1)
        elif layout == "sliced":  # every other column of a wider image
            image = image.repeat_interleave(2, -1)[..., ::2]
        upstream = torch.randn(shape).to(image.dtype)
        if is_expanded:
            upstream = torch.ones((), dtype=image.dtype).expand(shape)
        ours = lambda x, d: similis.sample(x, displacement=d, **options)
        theirs = lambda x, d: sampled_by_torch(x, d, **options)
        return {"similis": step(ours, upstream, KINDS[kind]),
                "torch": step(theirs, upstream, KINDS[kind])}, (image, u)
    suffix = "".join(f"/{key}={value}".lower() for key, value in options.items())
    suffix += "" if layout == "dense" else f"/layout={layout}"
    suffix += "/upstream=expanded" if is_expanded else ""
    return f"sample/{kind}/{name(shape)}/{dtype}{suffix}", contenders, None


def sweep_cases():
    kinds = list(KINDS)[:3]
    sizes = {2: ((33, 31), (257, 255), (512, 512)), 3: ((9, 17, 15), (33, 37, 65), (48, 64, 64))}
    for rank, (small, odd, large) in sizes.items():
        modes = ("linear", "nearest", "cubic") if rank == 2 else ("linear", "nearest")
        for kind, mode, padding, align in itertools.product(
                kinds, modes, ("zeros", "border", "reflection"), (True, False)):
            yield any_sample_case(kind, (1, 1, *odd), mode=mode, padding_mode=padding,
                                  align_corners=align)
        for kind, mode, dtype, channels, size in itertools.product(
                kinds, modes, DTYPES, (1, 3, 16), (small, odd, large)):
            images = 4 if size is small else 1
            yield any_sample_case(kind, (images, channels, *size), dtype, mode=mode)
        for kind, mode, channels in itertools.product(kinds, modes, (1, 3, 16)):
            for layout in ("channels_last", "sliced"):
                yield any_sample_case(kind, (1, channels, *odd), layout=layout, mode=mode)
            if kind != "value":
                yield any_sample_case(kind, (1, channels, *odd), is_expanded=True, mode=mode)


def cases():
    """(case, what makes its contenders and operands, how many times faster it is to be than the peer)"""
    value, field, both = list(KINDS)[:3]
    yield from sample_cases(VOLUME, (value, field, both))
    yield from sample_cases(VOLUME, (value,), 2, mode="nearest")
    yield from sample_cases(VOLUME, (field, both), mode="nearest")
    for shape in VOLUME, PICTURE:
        for dtype in "f16", "bf16":
            yield from half_cases(shape, dtype)
    yield from sample_cases(PICTURE, (value, field, both), 3)
    yield from sample_cases(PICTURE, (value,), 2, mode="nearest")
    yield from sample_cases(PICTURE, (field, both), mode="nearest")
    yield from sample_cases(PICTURE, (value, field, both), mode="cubic")
    yield from grid_case()
    for shape in (1, 3, 1024, 1024), (1, 16, 256, 256), (1, 64, 256, 256), (8, 3, 128, 128), \
            (1, 1, 256, 256):
        yield from sample_cases(shape, (value, field, both), 3)
    for mode in "border", "reflection":
        yield from sample_cases(
            PICTURE, (value, field), 3, padding_mode=mode, align_corners=False)
    yield from sample_cases((1, 1, 2160, 3840), (value,), 3)
    for shape in SMALL:
        yield from sample_cases(shape, (value, both))
    yield from compose_cases(VOLUME)
    yield from field_cases(VOLUME)
    yield from double_backward_case()
    for operation in "mse", "mae":
        yield from measure_cases(operation, ((1, 3, 256, 256), (1, 3, 1080, 1920)),
                                 ("value", "value_and_gradient"), ("f32", "f16", "bf16"))
        yield from measure_cases(operation, SMALL, ("value", "value_and_gradient"), ("f32",))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="REGEX", help="measure these cases alone")
    parser.add_argument("--sweep", action="store_true", help="measure the sweep's cases in their place")
    parser.add_argument("--seconds", type=float, help="of each case, about: 0.5, 0.1 in the sweep")
    parser.add_argument("--no-output", action="store_true", help="print the rows alone")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    machine, measured = measure.Machine(), []
    seconds = arguments.seconds or (0.1 if arguments.sweep else 0.5)
    for case, make, aim in sweep_cases() if arguments.sweep else cases():
        if not re.search(arguments.only, case):
            continue
        contenders, operands = make()
        with measure.kept_memory():
            least = least_milliseconds(contenders, operands, seconds)
        own = least.pop("similis")
        peer, peer_value = next(iter(least.items()), (None, None))
        target = None if aim is None else -aim if aim < 0 else peer_value / aim
        measured.append(rows.row(case, 1, "ms", own, peer, peer_value, target=target))
        ratio = f", {peer_value / own:.2f}x {peer} ({peer_value:.3f})" if peer else ""
        print(f"{case}: {own:.4f} ms{ratio}{f', target {target:.3f}' if target else ''}", flush=True)
    others = machine.others()
    print(f"Other programs kept {others:.2f} processors busy.")
    slower = sorted((row["peer_value"] / row["value"], row["case"]) for row in measured
                    if row["peer"] and row["peer_value"] < row["value"])
    print(f"{len(slower)} of {len(measured)} rows are slower than the peer.")
    for ratio, case in slower:
        print(f"  {ratio:.2f}x {case}")
    if arguments.no_output or arguments.sweep:
        return
    date = datetime.date.today().isoformat()
    versions = {"similis": similis.__version__, "torch": torch.__version__,
                "pytorch-msssim": importlib.metadata.version("pytorch-msssim")}
    (rows.FOLDER / f"cpu-{date}-transforms.json").write_text(json.dumps(
        {"device": processor(), "driver": None, "cuda": None, "commit": commit(), "date": date,
         "subject": "transforms", "versions": versions, "simd_target": simd_target(), "busy_processors": round(others, 3),
         "note": "Through torch: processor times, the least of calls that took turns, in memory that "
                 "the process keeps. Fields have a wave and noise of 0.002 in coordinates, one pixel "
                 "of a picture of 1024 squared.", "rows": measured}, indent=1) + "\n")


if __name__ == "__main__":
    main()

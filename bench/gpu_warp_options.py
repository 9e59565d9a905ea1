#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times options and other shapes of sampling, composing and fields on a GPU: through torch's
autograd by the Python package similis, beside the same work written with torch's grid_sample. A
case's "dense" peer is similis with a dense upstream gradient, its "f32" peer similis with the image
in f32.

    PYTHONPATH=build/python bench/gpu_warp_options.py --output rows.json
"""

import argparse
import functools
import pathlib

import torch
from torch.nn import functional

from gpu_report import Report
from torch_step import step
from torch_step import waves as waves_on

BRAIN, FEATURES = (1, 1, 160, 192, 224), (2, 16, 128, 128, 128)
FEATURE_MAP, PICTURES, FRAME = (1, 64, 256, 256), (8, 3, 512, 512), (1, 3, 2160, 3840)
DTYPES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}
SQUARINGS = 6
waves = functools.partial(waves_on, device="cuda")
# These of (image, displacement) have gradients.
KINDS = {"value": (False, False), "value_and_gradient_displacement": (False, True),
         "value_and_gradient_both": (True, True)}


@functools.lru_cache(maxsize=1)
def identity(shape, align_corners):
    """The coordinates that torch adds a displacement to; a program makes them once."""
    axes = len(shape) - 2
    eye = torch.eye(axes, axes + 1, device="cuda").repeat(shape[0], 1, 1)
    return functional.affine_grid(eye, shape, align_corners=align_corners)


def sampled_by_torch(image, u, padding_mode="zeros", align_corners=True, mode="linear"):
    grid = identity(tuple(image.shape), align_corners) + u
    mode = {"linear": "bilinear"}.get(mode, mode)
    return functional.grid_sample(image, grid.to(image.dtype), mode=mode,
                                  padding_mode=padding_mode, align_corners=align_corners)


def moved_by_torch(image, affine):
    grid = functional.affine_grid(affine, image.shape, align_corners=True)
    return functional.grid_sample(image, grid, align_corners=True)


def composed_by_torch(u, v):
    """u at x + v(x), plus v."""
    channels = u.movedim(-1, 1)
    return sampled_by_torch(channels, v).movedim(1, -1) + v


def exponentiated_by_torch(v):
    v = v / 2**SQUARINGS
    for _ in range(SQUARINGS):
        v = composed_by_torch(v, v)
    return v


def inverted_by_torch(u, iterations=30):
    inverse = torch.zeros_like(u)
    channels = u.movedim(-1, 1)
    for _ in range(iterations):
        inverse = -sampled_by_torch(channels, inverse).movedim(1, -1)
    return inverse


def determinant_by_torch(u):
    """The determinant of the derivative of x + u(x), coordinates from -1 to 1."""
    rows = []
    for axis, extent in enumerate(u.shape[1:4]):
        spacing = 2 / (extent - 1)
        along = torch.gradient(u, spacing=spacing, dim=axis + 1)[0]
        unit = torch.zeros(3, device=u.device)
        unit[2 - axis] = 1
        rows.append(along + unit)
    z, y, x = rows
    return (torch.linalg.cross(x, y) * z).sum(-1)


def name(shape):
    return "x".join(map(str, shape))


class Bench:
    def __init__(self, report, similis):
        self.report, self.similis = report, similis

    def row(self, case, calls, operands, target=None, of_torch=None):
        """calls: {who: call}, similis first; of_torch: how many times faster than torch is aimed at."""
        self.report.add_ways(case, calls, [operands], target, of_torch)

    def agreement(self, case, ours, others):
        distance = ((ours - others).double().norm() / others.double().norm()).item()
        print(f"{case}, agreement with torch: {distance:.1e} (relative L2)")

    def sample(self, shape, kinds, dtype=torch.float32, of_torch=None, expanded=False, **options):
        torch.manual_seed(1)
        image, u = torch.rand(shape, device="cuda").to(dtype), waves(shape, 2)
        upstream = torch.randn(shape, device="cuda").to(dtype)
        called = torch.ones((), device="cuda", dtype=dtype).expand(shape) if expanded else upstream
        similis_sample = lambda x, d: self.similis.sample(x, displacement=d, **options)
        torch_sample = lambda x, d: sampled_by_torch(x, d, **options)
        suffix = "".join(f"/{key}={value}".lower() for key, value in options.items())
        case_end = (f"{name(shape)}/{DTYPES[dtype]}{'/expanded_upstream' if expanded else ''}"
                    f"{suffix}")
        if dtype == torch.float32 and options.get("mode") != "nearest":
            self.agreement(case_end, similis_sample(image, u), torch_sample(image, u))
        for kind in kinds:
            gradients = KINDS[kind]
            calls = {"similis": step(similis_sample, called, gradients)}
            operands = (image, u)
            if dtype == torch.float32:
                calls["torch"] = step(torch_sample, called, gradients)
            else:
                wide, wide_upstream = image.float(), upstream.float()
                in_f32 = step(similis_sample, wide_upstream, gradients)
                calls["similis in f32"] = lambda _, d: in_f32(wide, d)
                torch_f32 = step(torch_sample, wide_upstream, gradients)
                calls["torch in f32"] = lambda _, d: torch_f32(wide, d)
            if expanded:
                calls["similis, dense upstream"] = step(similis_sample, upstream, gradients)
            self.row(f"sample/{kind}/{case_end}", calls, operands, of_torch=of_torch)

    def affine(self):
        image = torch.rand(BRAIN, device="cuda")
        affine = torch.eye(3, 4, device="cuda")[None].contiguous()
        affine[0, 0, 1], affine[0, 1, 2] = 0.02, -0.02
        upstream = torch.randn(BRAIN, device="cuda")
        ours = lambda x, a: self.similis.sample(x, affine=a)
        self.agreement("affine", ours(image, affine), moved_by_torch(image, affine))
        self.row(f"sample/value_and_gradient_affine/{name(BRAIN)}/f32",
                 {"similis": step(ours, upstream, (False, True)),
                  "torch": step(moved_by_torch, upstream, (False, True))},
                 (image, affine), target=0.12)

    def fields(self):
        u, v = waves(BRAIN, 3, jitter=0.0005), waves(BRAIN, 4, jitter=0.0005)
        size, upstream = name(BRAIN[2:]), torch.randn_like(waves(BRAIN, 3))
        none = (False,)
        ours, others = self.similis.jacobian_determinant(u)[0], determinant_by_torch(u)
        inside = (slice(None),) + 3 * (slice(1, -1),)
        self.agreement("jacobian_determinant", ours[inside], others[inside])
        self.row(f"jacobian_determinant/value/{size}/f32",
                 {"similis": step(lambda x: self.similis.jacobian_determinant(x)[0], None, none),
                  "torch": step(determinant_by_torch, None, none)}, (u,), target=0.06)
        exponentiate = lambda x: self.similis.exponentiate(x, SQUARINGS)
        self.agreement("exponentiate", exponentiate(v), exponentiated_by_torch(v))
        for kind, gradients, target in (("value", none, 0.65), ("value_and_gradient", (True,), None)):
            self.row(f"exponentiate/{kind}/{size}/f32/n={SQUARINGS}",
                     {"similis": step(exponentiate, upstream, gradients),
                      "torch": step(exponentiated_by_torch, upstream, gradients)}, (v,),
                     target=target)
        invert = lambda x: self.similis.invert(x)[0]
        self.agreement("invert", invert(u), inverted_by_torch(u))
        self.row(f"invert/value/{size}/f32",
                 {"similis": step(invert, None, none),
                  "torch": step(inverted_by_torch, None, none)}, (u,), target=1.2)
        compose = lambda a, b: self.similis.compose(a, b) + b
        self.agreement("compose", compose(u, v), composed_by_torch(u, v))


def compare(report, similis):
    bench = Bench(report, similis)
    report.add_empty_function(BRAIN)
    value, field, both = KINDS
    for shape in BRAIN, FEATURES, FRAME:
        for dtype in torch.float16, torch.bfloat16:
            bench.sample(shape, (value, field), dtype)
        torch.cuda.empty_cache()
    bench.sample(BRAIN, (value, field, both), of_torch=2)
    bench.sample(BRAIN, (value,), mode="nearest")
    bench.sample(BRAIN, (both,), of_torch=2, align_corners=False)
    for mode in "border", "reflection":
        bench.sample(BRAIN, (both,), of_torch=2, padding_mode=mode)
        bench.sample(BRAIN, (both,), of_torch=2, padding_mode=mode, align_corners=False)
    bench.sample(FEATURE_MAP, KINDS, of_torch=1.2)
    bench.sample(PICTURES, KINDS, of_torch=1.2)
    bench.sample(FRAME, KINDS)
    bench.sample(FEATURES, KINDS, of_torch=2)
    for shape in BRAIN, FEATURE_MAP, PICTURES:
        bench.sample(shape, (field, both), expanded=True)
    bench.affine()
    bench.fields()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--commit", default="")
    parser.add_argument("--output", type=pathlib.Path)
    arguments = parser.parse_args()
    import similis

    compare(Report(arguments.output, arguments.commit, {"similis": similis.__version__},
                   "transforms options"), similis)


if __name__ == "__main__":
    main()

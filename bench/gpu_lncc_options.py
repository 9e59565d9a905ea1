#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the options of LNCC on a GPU, on one brain volume, through torch's autograd by the Python
package similis, beside the same measure written in torch, as separable convolutions. `_in_a_graph`
is the work alone, `_without_autograd` similis.value_and_gradient().

    PYTHONPATH=build/python bench/gpu_lncc_options.py --output rows.json
"""

import argparse
import pathlib

import torch

from gpu_lncc import VOLUME, WINDOW, ours, peers, step
from gpu_report import Report
from gpu_time import images

BRAIN = (1, 1, 160, 192, 224)
# The options of a call on BRAIN, its dtype, and the target in ms. "random" stands for a mask.
OPTIONS = [
    ({}, torch.float32, 0.22),
    ({"gradient": "ants"}, torch.float32, 0.15),
    ({"window": "gaussian"}, torch.float32, 0.45),
    ({"window_size": 9, "window": "gaussian", "sigma": 1.5}, torch.float32, 0.45),
    ({"valid_mask": "random"}, torch.float32, 0.45),
    ({"mask": "random"}, torch.float32, 0.30),
    ({"signed": True}, torch.float32, 0.30),
    ({"padding": "renormalize"}, torch.float32, 0.30),
    ({}, torch.float16, 0.25),
    ({}, torch.bfloat16, 0.25),
]


def in_torch(window_size=WINDOW, window="box", sigma=1.5, padding="same", signed=False,
             mask=None, valid_mask=None, gradient="exact"):
    """-LNCC as a user would write it: separable convolutions in the images' dtype."""
    functional = torch.nn.functional
    distance = torch.arange(window_size, device="cuda") - window_size // 2
    taps = torch.ones(window_size, device="cuda")
    if window == "gaussian":
        taps = torch.exp(-distance ** 2 / (2 * sigma ** 2))
    taps = taps / taps.sum()
    count = window_size ** 3
    smooth = 1e-5 * count

    def average(planes):
        for axis in range(3):
            shape, sides = [1] * 5, [0] * 3
            shape[axis + 2], sides[axis] = window_size, window_size // 2
            planes = functional.conv3d(planes, taps.to(planes.dtype).view(shape), padding=sides)
        return planes

    def loss(x, y):
        weights = None
        if padding == "renormalize" or valid_mask is not None:
            weights = torch.ones_like(x) if valid_mask is None else valid_mask.expand_as(x)
            share = average(weights)
            mean = lambda planes: average(weights * planes) / share
        else:
            mean = average
        mean_x, mean_y = mean(x), mean(y)
        covariance = count * (mean(x * y) - mean_x * mean_y)
        variance_x = (count * (mean(x * x) - mean_x ** 2)).clamp(min=smooth)
        variance_y = (count * (mean(y * y) - mean_y ** 2)).clamp(min=smooth)
        if signed:
            value = covariance / (variance_x * variance_y).sqrt()
        else:
            value = (covariance ** 2 + smooth) / (variance_x * variance_y + smooth)
        value = value.clamp(-1, 1)
        weights = mask if mask is not None else valid_mask
        if weights is None:
            return -value.mean()
        return -(weights * value).sum() / weights.expand_as(value).sum()
    return loss


def without_autograd(window_size, **options):
    import similis

    return lambda x, y: similis.value_and_gradient(
        similis.lncc_loss, x, y, window_size=window_size, **options)


def compare(report):
    """Each option beside torch's and, without options, beside the peers."""
    report.add_empty_function(BRAIN)
    random = (torch.rand(BRAIN, device="cuda") > 0.2).float()
    for options, dtype, target in OPTIONS:
        given = {name: random if value == "random" else value for name, value in options.items()}
        size = given.pop("window_size", WINDOW)
        pairs = images(BRAIN, dtype)
        calls = {"torch": step(in_torch(size, **given)), "similis": ours(size, **given)}
        if not options and dtype == torch.float32:
            calls |= peers(size)
        if options.get("gradient") == "ants":
            del calls["torch"]  # whose gradient is exact
        words = "".join(f"/{name}" if value in ("random", True) else f"/{name}={value}"
                        for name, value in options.items())
        name = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}[dtype]
        report.add_ways(f"lncc/value_and_gradient/{'x'.join(map(str, BRAIN))}/{name}{words}", calls,
                        pairs, target, without_autograd=without_autograd(size, **given))
    torch.cuda.empty_cache()
    report.add_ways(f"lncc/value_and_gradient/{'x'.join(map(str, VOLUME))}/f32/gradient=ants",
                    {"similis": ours(WINDOW, gradient="ants")}, images(VOLUME, torch.float32), 0.9,
                    without_autograd=without_autograd(WINDOW, gradient="ants"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--commit", default="")
    parser.add_argument("--output", type=pathlib.Path)
    arguments = parser.parse_args()
    import similis

    compare(Report(arguments.output, arguments.commit, {"similis": similis.__version__},
                   "LNCC options"))


if __name__ == "__main__":
    main()

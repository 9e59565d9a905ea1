#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""LNCC on a GPU as registration calls it: value and gradient through torch's autograd, by the Python
package similis, beside fused-lncc and FireANTs where these are installed. Options are measured on one
brain volume, beside what is written in torch for them.

    PYTHONPATH=build/python bench/gpu_lncc.py --output rows.json
"""

import argparse
import importlib
import pathlib

import torch

from gpu_report import Report
from gpu_time import (
    images,
    in_a_graph,
    milliseconds,
    peak_bytes_per_element,
    side_by_side,
)

VOLUME, FEATURES = (1, 1, 384, 320, 448), (2, 16, 128, 128, 128)
BRAIN = (1, 1, 160, 192, 224)
WINDOW = 7
# ms: each image read once and the gradient written, at 4.2 TB/s.
FLOORS = {VOLUME: 0.16, FEATURES: 0.19}
TARGETS = {VOLUME: 1.6, FEATURES: 1.9}
AUTO_TARGET, SMALL_TARGET = 20.1, 4.1  # B/voxel
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


def step(loss):
    """A training step's part: the loss, and its gradient by the first image."""
    def call(x, y):
        x = x.detach().requires_grad_()
        value = loss(x, y)
        value.backward()
        return value.detach(), x.grad
    return call


def peers(window):
    """{name: step} of those that are installed; those that are not are named."""
    found = {}

    def add(name, module, loss):
        try:
            found[name] = step(loss(importlib.import_module(module)))
        except ImportError as error:
            print(f"left out: {name} ({str(error).splitlines()[0]})")

    if window <= 9:  # the widest that it takes
        add("fused-lncc", "fused_lncc",
            lambda module: lambda x, y: module.fused_lncc_loss(x, y, kernel_size=window))
    add("FireANTs", "fireants.losses.fusedcc",
        lambda module: module.FusedLocalNormalizedCrossCorrelationLoss(
            spatial_dims=3, kernel_size=window, use_ants_gradient=False))
    return found


def ours(window_size, **options):
    import similis

    return step(lambda x, y: similis.lncc_loss(x, y, window_size=window_size, **options))


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


def options_rows(report):
    """Each option beside torch's and, without options, beside the peers."""
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
        measured = side_by_side(calls, pairs)
        words = "".join(f"/{name}" if value in ("random", True) else f"/{name}={value}"
                        for name, value in options.items())
        name = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}[dtype]
        report.add(f"lncc/value_and_gradient/{'x'.join(map(str, BRAIN))}/{name}{words}", "ms",
                   measured.pop("similis"), measured, None, target)
        report.add(f"lncc/value_and_gradient_in_a_graph/{'x'.join(map(str, BRAIN))}/{name}{words}",
                   "ms", in_a_graph(ours(size, **given), pairs[0]))


def agreement(pair):
    """How far peers' values are from ours; fused-lncc's is 1 - LNCC."""
    value, gradient = ours(WINDOW)(*pair)
    for name, call in peers(WINDOW).items():
        other, other_gradient = call(*pair)
        offset = 1 if name == "fused-lncc" else 0
        distance = (gradient - other_gradient).norm() / gradient.norm()
        print(f"lncc, agreement with {name}: value {abs(value + offset - other).item():.1e}, gradient "
              f"{distance.item():.1e} (relative L2), |theirs| / |ours| "
              f"{(other_gradient.norm() / gradient.norm()).item():.6g}")


def compare(report):
    for shape in VOLUME, FEATURES:
        torch.cuda.empty_cache()
        pairs = images(shape, torch.float32)
        name = f"{'x'.join(map(str, shape))}/f32"
        agreement(pairs[0])
        windows = (3, 5, WINDOW, 11) if shape == VOLUME else (WINDOW,)
        for window in windows:
            kind = "value_and_gradient" + ("" if window == WINDOW else f"_window_{window}")
            measured = side_by_side({**peers(window), "similis": ours(window)}, pairs)
            is_named = window == WINDOW
            report.add(f"lncc/{kind}/{name}", "ms", measured.pop("similis"), measured,
                       FLOORS[shape] if is_named else None, TARGETS[shape])
        report.add(f"lncc/value_and_gradient_in_a_graph/{name}", "ms",
                   in_a_graph(ours(WINDOW), pairs[0]))
        report.add(f"lncc/value_and_gradient/{name}/gradient=ants", "ms",
                   milliseconds(ours(WINDOW, gradient="ants"), pairs),
                   target=0.9 if shape == VOLUME else None)
        small = ours(WINDOW, workspace="small")
        report.add(f"lncc/value_and_gradient/{name}/workspace=small", "ms",
                   milliseconds(small, pairs))
        measured = {peer: peak_bytes_per_element(call, pairs[0])
                    for peer, call in peers(WINDOW).items()}
        report.add(f"lncc/memory/{name}", "B/voxel", peak_bytes_per_element(ours(WINDOW), pairs[0]),
                   measured, 4, AUTO_TARGET)
        report.add(f"lncc/memory/{name}/workspace=small", "B/voxel",
                   peak_bytes_per_element(small, pairs[0]), measured, 4, SMALL_TARGET)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--commit", default="")
    parser.add_argument("--output", type=pathlib.Path)
    arguments = parser.parse_args()
    import similis

    report = Report(arguments.output, arguments.commit, {"similis": similis.__version__}, "LNCC")
    options_rows(report)
    compare(report)


if __name__ == "__main__":
    main()

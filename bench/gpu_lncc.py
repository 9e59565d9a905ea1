#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""LNCC on a GPU as registration calls it: value and gradient through torch's autograd, by the Python
package similis, beside fused-lncc and FireANTs where these are installed.

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
WINDOW = 7
# ms: each image read once and the gradient written, at 4.2 TB/s.
FLOORS = {VOLUME: 0.16, FEATURES: 0.19}
TARGETS = {VOLUME: 1.6, FEATURES: 1.9}
AUTO_TARGET, SMALL_TARGET = 20.1, 4.1  # B/voxel


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


def agreement(pair):
    """Prints the distances of peers' values and gradients from ours; fused-lncc's is 1 - LNCC."""
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
    compare(report)


if __name__ == "__main__":
    main()

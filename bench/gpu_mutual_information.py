#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mutual information on a GPU as registration calls it: through torch's autograd by the Python package
similis, beside FireANTs where it is installed, and Parzen windows in torch's own operators, which
hold a volume's weights in all bins and so take a smaller one.

    PYTHONPATH=build/python bench/gpu_mutual_information.py --output rows.json
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

VOLUME, SMALL = (1, 1, 384, 320, 448), (1, 1, 128, 128, 128)
BINS = 32
# ms: each image read once, twice with the gradient, which is written, at 4.2 TB/s.
FLOORS = {"value": 0.10, "value_and_gradient": 0.26}
TARGETS = {"value": 0.5, "value_and_gradient": 1.2}


def caller(loss, kind):
    def call(x, y):
        if kind == "value":
            with torch.no_grad():
                return loss(x, y)
        x = x.detach().requires_grad_()
        value = loss(x, y)
        value.backward()
        return value.detach(), x.grad
    return call


def fireants(kernel):
    """{name: loss}: its default, which blurs a histogram of whole voxels instead of spreading each, and
    what it takes for the histogram that we compute. Empty with a line if it is not installed."""
    try:
        module = importlib.import_module("fireants.losses.fusedmi")
    except ImportError as error:
        print(f"left out: FireANTs ({str(error).splitlines()[0]})")
        return {}
    return {name: module.FusedGlobalMutualInformationLoss(
                kernel_type=kernel, num_bins=BINS, approximate_reduction=is_approximate)
            for name, is_approximate in (("FireANTs", True), ("FireANTs, exact", False))}


def in_torch(x, y):
    """The same in torch's operators: B-spline weights in all bins, and a product of matrices."""
    def weights(image):
        distance = (image.reshape(-1, 1) * BINS - 0.5 - torch.arange(BINS, device=image.device)).abs()
        outer, inner = (2 - distance).clamp(min=0), (1 - distance).clamp(min=0)
        each = outer * outer * outer - 4 * inner * inner * inner
        return each / each.sum(1, keepdim=True)
    p = weights(x).T @ weights(y) / x.numel()
    product = p.sum(1, keepdim=True) * p.sum(0, keepdim=True)
    return -(p * torch.log(p / product + 1e-12)).sum()


def ours(**options):
    import similis

    return lambda x, y: similis.mutual_information_loss(x, y, num_bins=BINS, **options)


def with_background(pair):
    """The same with 60 % of the voxels, in one piece, at 0."""
    result = [image.clone() for image in pair]
    for image in result:
        image[:, :, : int(0.6 * image.shape[2])] = 0
    return result


def compare(report):
    unit = {"range": (0.0, 1.0)}
    for kind in "value", "value_and_gradient":
        torch.cuda.empty_cache()
        name = f"{'x'.join(map(str, VOLUME))}/f32"
        pairs = images(VOLUME, torch.float32)
        call = caller(ours(**unit), kind)
        calls = {who: caller(loss, kind) for who, loss in fireants("b-spline").items()}
        measured = side_by_side({**calls, "similis": call}, pairs)
        report.add(f"mutual_information/{kind}/{name}", "ms", measured.pop("similis"), measured,
                   FLOORS[kind], TARGETS[kind])
        report.add(
            f"mutual_information/{kind}_in_a_graph/{name}", "ms", in_a_graph(call, pairs[0]))
        for case, options in (("per_image", {}), ("gaussian", {**unit, "kernel": "gaussian"}),
                              ("binned", {**unit, "kernel": "gaussian", "method": "binned"})):
            report.add(f"mutual_information/{kind}_{case}/{name}", "ms",
                       milliseconds(caller(ours(**options), kind), pairs))
        report.add(f"mutual_information/{kind}_background/{name}", "ms",
                   milliseconds(call, [with_background(pairs[0])]))
        if kind != "value":
            report.add(f"mutual_information/memory/{name}", "B/voxel",
                       peak_bytes_per_element(call, pairs[0]), {}, 4)
        pairs = images(SMALL, torch.float32)
        measured = side_by_side({"torch": caller(in_torch, kind), "similis": call}, pairs)
        report.add(f"mutual_information/{kind}/{'x'.join(map(str, SMALL))}/f32", "ms",
                   measured.pop("similis"), measured)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--commit", default="")
    parser.add_argument("--output", type=pathlib.Path)
    arguments = parser.parse_args()
    import similis

    compare(Report(arguments.output, arguments.commit, {"similis": similis.__version__},
                   "mutual information"))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times masks on a GPU, through torch's autograd by the Python package similis, beside the same
measure written in torch as a user would, and beside ours without a mask. LNCC's row is in
gpu_lncc_options.py. `_in_a_graph` is the work alone.

    PYTHONPATH=build/python bench/gpu_masked.py --output rows.json
"""

import argparse
import pathlib

import torch
import torch.nn.functional as functional

from gpu_report import Report
from gpu_ssim_options import gaussian_average as average
from gpu_time import images, in_a_graph, side_by_side

HD = (1, 3, 1080, 1920)
LEVELS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)  # weights of MS-SSIM's
NAMES = {torch.float32: "f32", torch.float16: "f16"}


def _mean(values, mask):
    """Sums in f32, which those of f16 would leave."""
    weights = mask.expand_as(values)
    total = (weights * values).sum(dtype=torch.float32)
    return total / weights.sum(dtype=torch.float32)


def torch_mse(x, y, mask):
    return _mean((x - y).square(), mask)


def torch_mae(x, y, mask):
    return _mean((x - y).abs(), mask)


def torch_psnr(x, y, mask):
    return -10 * torch.log10(torch_mse(x, y, mask))


def _ssim_maps(x, y):
    """SSIM's map and its second factor, with a Gaussian window of 11 and no padding."""
    distance = torch.arange(11, device=x.device) - 5
    taps = torch.exp(-distance.float().square() / (2 * 1.5**2))
    taps = (taps / taps.sum()).to(x.dtype)
    mean_x, mean_y = average(x, taps, "valid"), average(y, taps, "valid")
    variances = average(x * x + y * y, taps, "valid") - mean_x.square() - mean_y.square()
    covariance = average(x * y, taps, "valid") - mean_x * mean_y
    c1, c2 = 0.01**2, 0.03**2
    contrast = (2 * covariance + c2) / (variances + c2)
    means = (2 * mean_x * mean_y + c1) / (mean_x.square() + mean_y.square() + c1)
    return means * contrast, contrast


def torch_ssim(x, y, mask):
    return _mean(_ssim_maps(x, y)[0], mask[..., 5:-5, 5:-5])


def torch_ms_ssim(x, y, mask):
    result = 1
    for level, weight in enumerate(LEVELS):
        if level > 0:
            sides = [side % 2 for side in x.shape[2:]]
            x, y, mask = (functional.avg_pool2d(each, 2, padding=sides) for each in (x, y, mask))
        similarity, contrast = _ssim_maps(x, y)
        values = similarity if level == len(LEVELS) - 1 else contrast
        weights = mask[..., 5:-5, 5:-5].expand_as(values)
        means = (weights * values).sum((2, 3)) / weights.sum((2, 3))
        result = result * means.relu()**weight
    return result.mean()


PEERS = {"mse": torch_mse, "mae": torch_mae, "psnr": torch_psnr, "ssim": torch_ssim,
         "ms_ssim": torch_ms_ssim}
HALVES = ("mse", "mae", "psnr")  # those that a user would compute in f16


def step(measure):
    def call(x, y):
        x = x.detach().requires_grad_()
        value = measure(x, y)
        value.backward()
        return value.detach(), x.grad
    return call


def _agreement(case, ours, theirs, pair):
    """In f64, where torch's convolutions round nothing to TF32."""
    pair = [each.double() for each in pair]
    value, gradient = ours(*pair)
    other, other_gradient = theirs(*pair)
    distance = ((gradient - other_gradient).norm() / other_gradient.norm()).item()
    print(f"{case}, agreement with torch: value {abs(value - other).item():.1e}, gradient "
          f"{distance:.1e} (relative L2)")


def compare(report, similis):
    for dtype, name in NAMES.items():
        pairs = images(HD, dtype)
        mask = torch.rand((1, 1, *HD[2:]), device="cuda")
        mask = mask * (mask > 0.3)
        for operation, peer in PEERS.items():
            if dtype == torch.float16 and operation not in HALVES:
                continue
            measure = getattr(similis, operation)
            ours = step(lambda x, y: measure(x, y, mask=mask))
            case = f"{'x'.join(map(str, HD))}/{name}/mask"
            if dtype == torch.float32:
                exact = mask.double()
                _agreement(f"{operation}/{case}", step(lambda x, y: measure(x, y, mask=exact)),
                           step(lambda x, y: peer(x, y, exact)), pairs[0])
            of_their_dtype = mask.to(dtype)
            theirs = step(lambda x, y: peer(x, y, of_their_dtype))
            calls = {"similis": ours, "torch": theirs, "unmasked": step(measure)}
            measured = side_by_side(calls, pairs)
            report.add(f"{operation}/value_and_gradient/{case.removesuffix('/mask')}", "ms",
                       measured.pop("unmasked"))
            report.add(f"{operation}/value_and_gradient/{case}", "ms", measured.pop("similis"),
                       measured)
            report.add(f"{operation}/value_and_gradient_in_a_graph/{case}", "ms",
                       in_a_graph(ours, pairs[0]), {"torch": in_a_graph(theirs, pairs[0])})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--commit", default="")
    parser.add_argument("--output", type=pathlib.Path)
    arguments = parser.parse_args()
    import similis

    compare(Report(arguments.output, arguments.commit, {"similis": similis.__version__}, "masks"),
            similis)


if __name__ == "__main__":
    main()

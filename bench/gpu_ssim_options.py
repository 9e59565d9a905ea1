#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the options of SSIM on a GPU, beside the same measure written in torch as a user would:
depthwise convolutions with the taps along each axis; volumes, second derivatives and errors of
pixels. `_in_a_graph` is the work alone, `_without_autograd` similis.value_and_gradient().

    PYTHONPATH=build/python bench/gpu_ssim_options.py --library build/lib/libsimilis.so
"""

import argparse
import pathlib

import torch
import torch.nn.functional as functional

import gpu_peers
import gpu_similis
import libsimilis
from gpu_report import Report
from gpu_time import images, milliseconds

HD, MANY, VOLUME = (1, 3, 1080, 1920), (16, 3, 512, 512), (1, 1, 192, 192, 192)
BRAIN = (1, 1, 384, 320, 448)
ERRORS = {"mse": functional.mse_loss, "mae": functional.l1_loss,
          "psnr": lambda x, y: -10 * torch.log10(functional.mse_loss(x, y))}
# Options, and the most milliseconds aimed at for each shape, through the framework.
OPTIONS = {
    "": ({}, 0.08, 0.135),
    "window_size=7": ({"window_size": 7}, 0.17, 0.20),
    "window_size=9/sigma=2": ({"window_size": 9, "sigma": 2.0}, 0.17, 0.20),
    "window_size=21/sigma=3": ({"window_size": 21, "sigma": 3.0}, 0.40, 0.48),
    "padding=reflect": ({"padding": "reflect"}, 0.20, 0.24),
    "padding=replicate": ({"padding": "replicate"}, 0.20, 0.24),
    "padding=renormalize": ({"padding": "renormalize"}, 0.20, 0.24),
    "valid_mask": ({}, 0.35, 0.42),
}


def gaussian_average(image, taps, padding):
    """The Gaussian average of each channel."""
    channels, axes, radius = image.shape[1], image.dim() - 2, taps.numel() // 2
    convolve = functional.conv2d if axes == 2 else functional.conv3d
    if padding != "valid":
        mode = {"same": "constant", "renormalize": "constant"}.get(padding, padding)
        image = functional.pad(image, 2 * axes * [radius], mode=mode)
    for axis in range(axes):
        shape = [-1 if other == axis else 1 for other in range(axes)]
        weight = taps.reshape(1, 1, *shape).repeat(channels, 1, *axes * [1])
        image = convolve(image, weight, groups=channels)
    return image


def torch_ssim(x, y, window_size=11, sigma=1.5, padding="valid", valid_mask=None):
    positions = torch.arange(window_size, device=x.device) - window_size // 2
    taps = torch.exp(-positions.float().square() / (2 * sigma**2))
    taps = taps / taps.sum()
    weights = valid_mask
    if weights is None and padding == "renormalize":
        weights = torch.ones_like(x[:1, :1])
    if weights is None:
        def average(image):
            return gaussian_average(image, taps, padding)
    else:
        weight = gaussian_average(weights, taps, padding)

        def average(image):
            return gaussian_average(weights * image, taps, padding) / weight
    mean_x, mean_y = average(x), average(y)
    variances = average(x * x + y * y) - mean_x.square() - mean_y.square()
    covariance = average(x * y) - mean_x * mean_y
    c1, c2 = 0.01**2, 0.03**2
    similarity = ((2 * mean_x * mean_y + c1) * (2 * covariance + c2)
                  / ((mean_x.square() + mean_y.square() + c1) * (variances + c2)))
    if valid_mask is None:
        return similarity.mean()
    rim = window_size // 2 if padding == "valid" else 0
    inside = valid_mask[..., rim:x.shape[2] - rim, rim:x.shape[3] - rim].expand_as(similarity)
    return (inside * similarity).sum() / inside.sum()


def _agreement(similis, options, pair, case):
    """Torch's convolutions may round products to TF32 when they are timed, and not here."""
    torch.backends.cudnn.allow_tf32 = False
    value, gradient, _ = similis.function("ssim", "value_and_gradient", **options)(*pair)
    other, other_gradient = gpu_peers.with_autograd(
        lambda x, y, train: torch_ssim(x, y, **options))("value_and_gradient")(*pair)
    torch.backends.cudnn.allow_tf32 = True
    distance = ((gradient - other_gradient).norm() / other_gradient.norm()).item()
    print(f"{case}, agreement with torch: value {abs(value.item() - other.item()):.1e}, "
          f"gradient {distance:.1e} (relative L2)")


def _row(report, similis, package, operation, case, pairs, options, peer, target):
    kind = "value_and_gradient"
    alone = similis.function(operation, kind, **options)
    called = gpu_similis.as_called(package, operation, kind, **options) if package else alone
    calls = {"similis": called}
    if peer is not None:
        calls["torch"] = gpu_peers.with_autograd(lambda x, y, train: peer(x, y))(kind)
    without = None
    if package:
        measure = getattr(package, operation)
        without = lambda x, y: package.value_and_gradient(measure, x, y, **options)
    report.add_ways(f"{operation}/{kind}/{case}", calls, pairs, target, alone=alone,
                    without_autograd=without)


def _second_derivatives(report, package, shape):
    """The gradient of a squared gradient norm; torch takes seconds, and is called once or twice."""
    x, y = images(shape, torch.float32)[0]

    def of(measure):
        def call(x, y):
            x = x.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(measure(x, y), x, create_graph=True)
            return torch.autograd.grad(gradient.square().sum(), x)
        return call
    of(torch_ssim)(x, y)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    of(torch_ssim)(x, y)
    end.record()
    end.synchronize()
    torch.cuda.empty_cache()
    report.add(f"ssim/double_backward/{'x'.join(map(str, shape))}/f32", "ms",
               milliseconds(of(package.ssim), [(x, y)]), {"torch": start.elapsed_time(end)},
               target=12 if shape == HD else None)


def compare(report, similis, package):
    """similis: through C, in torch's memory; package: the Python package, or None."""
    report.add_empty_function(HD)
    for column, shape in enumerate((HD, MANY)):
        torch.cuda.empty_cache()
        pairs = images(shape, torch.float32)
        valid_mask = torch.rand((shape[0], 1, *shape[2:]), device="cuda")
        valid_mask = valid_mask * (valid_mask > 0.3)
        for option, (options, *targets) in OPTIONS.items():
            if option == "valid_mask":
                options = {"valid_mask": valid_mask}
            case = f"{'x'.join(map(str, shape))}/f32" + (f"/{option}" if option else "")
            _agreement(similis, options, pairs[0], case)
            _row(report, similis, package, "ssim", case, pairs, options,
                 lambda x, y: torch_ssim(x, y, **options), targets[column])
    torch.cuda.empty_cache()
    pairs = images(VOLUME, torch.float32)
    name = f"{'x'.join(map(str, VOLUME))}/f32"
    _row(report, similis, package, "ssim", name, pairs, {}, torch_ssim, 0.30)
    _row(report, similis, package, "ssim", f"{name}/window_size=7", pairs, {"window_size": 7},
         lambda x, y: torch_ssim(x, y, window_size=7), 0.25)
    _row(report, similis, package, "ms_ssim", name, pairs, {}, None, 0.5)
    if package is None:
        return
    for shape in (3, 3, 64, 64), (1, 3, 256, 256), HD, VOLUME, BRAIN:
        torch.cuda.empty_cache()
        pairs = images(shape, torch.float32)
        for operation, peer in ERRORS.items():
            case = f"{operation}/value_and_gradient/{'x'.join(map(str, shape))}/f32"
            measure = getattr(package, operation)
            ours, theirs = (gpu_peers.with_autograd(lambda x, y, train, each=each: each(x, y))(
                "value_and_gradient") for each in (measure, peer))
            report.add_ways(case, {"similis": ours, "torch": theirs}, pairs, of_torch=1,
                            without_autograd=lambda x, y: package.value_and_gradient(measure, x, y))
    for shape in HD, MANY:
        _second_derivatives(report, package, shape)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", type=pathlib.Path, default=libsimilis.LIBRARY)
    parser.add_argument("--commit", default="")
    parser.add_argument("--output", type=pathlib.Path)
    arguments = parser.parse_args()
    similis = gpu_similis.Similis(arguments.library, torch_memory=True)
    version = similis.library.similis_version().decode()
    package = gpu_similis.package()
    compare(Report(arguments.output, arguments.commit, {"similis": version}, "SSIM options"),
            similis, package)


if __name__ == "__main__":
    main()

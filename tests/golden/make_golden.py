#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes ssim.inc and ms_ssim.inc: what other libraries say about pictures that a formula makes.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install -r tests/golden/requirements.txt
    /tmp/golden/bin/python tests/golden/make_golden.py

Each row is a library, the call that was made there, the options that ask similis for the same, the
pictures, the value, and, where the library has gradients, the value's slope as x moves towards y.
Everything is float64. tests/golden/pictures.h makes the same pictures in C++.
"""

import importlib.metadata
import pathlib

import kornia
import numpy as np
import piq
import piqa
import pytorch_msssim
import torch
import torch.nn.functional as F
from skimage.metrics import structural_similarity
from torchmetrics.functional.image import structural_similarity_index_measure as torchmetrics_ssim

HERE = pathlib.Path(__file__).parent


def uniform(seed, count):
    """As test::uniform of tests/arrays.h, for the indices 0 … count-1."""
    with np.errstate(over="ignore"):
        bits = np.arange(count, dtype=np.uint32) * np.uint32(0x9E3779B9)
        bits += np.uint32(seed * 0x85EBCA6B & 0xFFFFFFFF)
        bits = (bits ^ bits >> np.uint32(16)) * np.uint32(0x21F0AAAD)
        bits = (bits ^ bits >> np.uint32(15)) * np.uint32(0x735A2D97)
        bits ^= bits >> np.uint32(15)
    return (bits >> np.uint32(8)).astype(np.float64) * 2.0**-24


def pictures(kind, shape):
    """x, y and their data_range; as pictures() of pictures.h."""
    count = int(np.prod(shape))
    index = np.arange(count)
    column, row = index % shape[-1], index // shape[-1]
    ramp = (5 * column + 3 * row) % 64 / 64
    board = (column // 8 + row // 8) % 2
    x = 0.5 * ramp + 0.25 * board + 0.25 * uniform(1, count)
    noise = uniform(2, count)
    if kind == "distorted":
        y, data_range = 0.8 * x + 0.2 * noise, 1
    elif kind == "nearly_equal":
        y, data_range = x + 0.001 * noise, 1
    elif kind == "inverted":
        y, data_range = 1 - x, 1
    elif kind == "bytes":
        x, y, data_range = np.floor(256 * x), np.floor(256 * (0.8 * x + 0.2 * noise)), 255
    elif kind == "twelve_bits":
        x, y, data_range = np.floor(4096 * x), np.floor(4096 * (0.8 * x + 0.2 * noise)), 4095
    return x.reshape(shape), y.reshape(shape), data_range


class Table:
    """Rows of one .inc file."""

    def __init__(self, options_type):
        self.options_type = options_type
        self.rows = []

    def add(self, library, call, options, kind, shape, measure):
        """measure(x, y, data_range): takes NumPy arrays if it returns a float, else tensors."""
        x, y, data_range = pictures(kind, shape)
        name = f"{library} {importlib.metadata.version(library)}"
        if library == "scikit-image":
            value, slope = float(measure(x, y, data_range)), "std::nullopt"
        else:
            tensor = torch.from_numpy(x).requires_grad_()
            result = measure(tensor, torch.from_numpy(y), data_range)
            result.backward()
            value, slope = result.item(), repr(float((tensor.grad.numpy() * (y - x)).sum()))
        extents = ", ".join(str(extent) for extent in shape)
        self.rows.append(
            f'{{"{name}", "{call}", {self.options_type}({options}), Kind::{kind}, '
            f"{{{extents}}}, {value!r}, {slope}}},"
        )
        print(f"{name:24} {kind:12} {str(shape):20} {value:.12f}  {call}")

    def write(self, file):
        head = "// SPDX-License-Identifier: Apache-2.0\n// Written by make_golden.py.\n"
        (HERE / file).write_text(head + "\n".join(self.rows) + "\n")


def scikit_image(**arguments):
    def measure(x, y, data_range):
        # One image of one channel, or of several with the channels first.
        x, y = x[0], y[0]
        axis = 0 if x.shape[0] > 1 else None
        if axis is None:
            x, y = x[0], y[0]
        return structural_similarity(
            x, y, data_range=data_range, channel_axis=axis, use_sample_covariance=False, **arguments
        )

    return measure


def add_scikit_image(table):
    call = "structural_similarity(gaussian_weights=True, sigma=1.5, use_sample_covariance=False)"
    measure = scikit_image(gaussian_weights=True, sigma=1.5)
    for kind in ("distorted", "nearly_equal", "bytes", "twelve_bits", "inverted"):
        table.add("scikit-image", call, "", kind, (1, 1, 37, 53), measure)
    table.add("scikit-image", call, "", "distorted", (1, 1, 11, 11), measure)
    table.add("scikit-image", call, "", "bytes", (1, 3, 64, 48), measure)
    table.add("scikit-image", call, "", "distorted", (1, 1, 13, 17, 19), measure)
    call = "structural_similarity(gaussian_weights=True, sigma=0.8, use_sample_covariance=False)"
    options = ".window_size = 7, .sigma = 0.8"
    measure = scikit_image(gaussian_weights=True, sigma=0.8)
    table.add("scikit-image", call, options, "distorted", (1, 1, 37, 53), measure)
    call = (
        "structural_similarity(gaussian_weights=True, sigma=1.5, K1=0.02, K2=0.05, "
        "use_sample_covariance=False)"
    )
    measure = scikit_image(gaussian_weights=True, sigma=1.5, K1=0.02, K2=0.05)
    table.add("scikit-image", call, ".k1 = 0.02, .k2 = 0.05", "distorted", (1, 1, 37, 53), measure)
    call = "structural_similarity(win_size=7, use_sample_covariance=False)"
    options = ".window_size = 7, .sigma = 1e9"
    table.add("scikit-image", call, options, "distorted", (1, 1, 37, 53), scikit_image(win_size=7))


def taps_of_channels(channels):
    """[C,1,11]: pytorch-msssim and piqa make theirs in float32, where they sum to 1 - 3e-8."""
    distance = np.arange(-5, 6)
    taps = np.exp(-(distance**2) / (2 * 1.5**2))
    return torch.from_numpy(taps / taps.sum()).expand(channels, 1, 11)


def add_pytorch_msssim(table):
    def measure(**arguments):
        return lambda x, y, data_range: pytorch_msssim.ssim(x, y, data_range=data_range, **arguments)

    for kind in ("distorted", "nearly_equal", "bytes", "twelve_bits"):
        table.add("pytorch-msssim", "ssim()", "", kind, (2, 3, 37, 53), measure())
    call, in_float64 = "ssim(win=taps in float64)", measure(win=taps_of_channels(3)[:, :, None])
    for kind in ("distorted", "inverted"):
        table.add("pytorch-msssim", call, "", kind, (2, 3, 37, 53), in_float64)
    table.add("pytorch-msssim", "ssim()", "", "distorted", (1, 2, 13, 17, 19), measure())
    call, options = "ssim(win_size=7, win_sigma=1.0)", ".window_size = 7, .sigma = 1.0"
    arguments = {"win_size": 7, "win_sigma": 1.0}
    table.add("pytorch-msssim", call, options, "distorted", (1, 1, 37, 53), measure(**arguments))
    call, options = "ssim(K=(0.02, 0.05))", ".k1 = 0.02, .k2 = 0.05"
    table.add(
        "pytorch-msssim", call, options, "distorted", (1, 1, 37, 53), measure(K=(0.02, 0.05))
    )


def add_torchmetrics(table):
    name = "structural_similarity_index_measure"

    def measure(**arguments):
        return lambda x, y, data_range: torchmetrics_ssim(
            x, y, data_range=float(data_range), **arguments
        )

    options = ".padding = Padding::reflect"
    for kind in ("distorted", "nearly_equal", "bytes"):
        table.add("torchmetrics", f"{name}()", options, kind, (2, 3, 37, 53), measure())
    table.add("torchmetrics", f"{name}()", options, "distorted", (1, 1, 13, 17, 19), measure())
    options = ".window_size = {7, 15}, .sigma = {0.8, 2.0}, .padding = Padding::reflect"
    call = f"{name}(sigma=(0.8, 2.0))"
    table.add(
        "torchmetrics", call, options, "distorted", (1, 1, 37, 53), measure(sigma=(0.8, 2.0))
    )
    options = ".window_size = 7, .sigma = 1e9, .padding = Padding::reflect"
    call = f"{name}(gaussian_kernel=False, kernel_size=7)"
    arguments = {"gaussian_kernel": False, "kernel_size": 7}
    table.add("torchmetrics", call, options, "distorted", (1, 1, 37, 53), measure(**arguments))


def add_kornia(table):
    def measure(size, padding):
        return lambda x, y, data_range: kornia.metrics.ssim(
            x, y, size, max_val=float(data_range), eps=0.0, padding=padding
        ).mean()

    for kind in ("distorted", "nearly_equal", "bytes"):
        call, options = "ssim(11, eps=0).mean()", ".padding = Padding::reflect"
        table.add("kornia", call, options, kind, (2, 3, 37, 53), measure(11, "same"))
        call = "ssim(11, eps=0, padding='valid').mean()"
        table.add("kornia", call, "", kind, (2, 3, 37, 53), measure(11, "valid"))
    call, options = "ssim(5, eps=0).mean()", ".window_size = 5, .padding = Padding::reflect"
    table.add("kornia", call, options, "distorted", (1, 1, 37, 53), measure(5, "same"))


def add_piq(table):
    def measure(**arguments):
        return lambda x, y, data_range: piq.ssim(
            x, y, data_range=data_range, downsample=False, **arguments
        )

    for kind in ("distorted", "bytes"):
        table.add("piq", "ssim(downsample=False)", "", kind, (2, 3, 37, 53), measure())
    call = "ssim(downsample=False, kernel_size=7, kernel_sigma=1.0)"
    options = ".window_size = 7, .sigma = 1.0"
    arguments = {"kernel_size": 7, "kernel_sigma": 1.0}
    table.add("piq", call, options, "distorted", (1, 1, 37, 53), measure(**arguments))


def add_piqa(table):
    def measure(padding):
        return lambda x, y, data_range: piqa.ssim.ssim(
            x, y, taps_of_channels(x.shape[1]), value_range=data_range, padding=padding
        )[0].mean()

    for shape in ((2, 3, 37, 53), (1, 2, 13, 17, 19)):
        call, options = "ssim(kernel=taps in float64)", ""
        table.add("piqa", call, options, "distorted", shape, measure(False))
        call, options = "ssim(kernel=taps in float64, padding=True)", ".padding = Padding::same"
        table.add("piqa", call, options, "distorted", shape, measure(True))


def add_pytorch_ms_ssim(table):
    def measure(**arguments):
        return lambda x, y, data_range: pytorch_msssim.ms_ssim(
            x, y, data_range=data_range, **arguments
        )

    for shape in ((1, 1, 161, 161), (1, 1, 255, 256), (1, 1, 512, 500), (2, 3, 163, 190)):
        table.add("pytorch-msssim", "ms_ssim()", "", "distorted", shape, measure())
    call, in_float64 = "ms_ssim(win=taps in float64)", measure(win=taps_of_channels(3)[:, :, None])
    table.add("pytorch-msssim", call, "", "distorted", (2, 3, 163, 190), in_float64)
    for kind in ("nearly_equal", "bytes", "inverted"):
        table.add("pytorch-msssim", "ms_ssim()", "", kind, (1, 2, 175, 170), measure())
    call = "ms_ssim(win_size=7, win_sigma=1.0, weights=[0.3, 0.3, 0.4])"
    options = ".window_size = 7, .sigma = 1.0, .weights = {0.3, 0.3, 0.4}"
    arguments = {"win_size": 7, "win_sigma": 1.0, "weights": [0.3, 0.3, 0.4]}
    table.add("pytorch-msssim", call, options, "distorted", (1, 2, 97, 99), measure(**arguments))
    call, options = "ms_ssim(win_size=3)", ".window_size = 3"
    table.add("pytorch-msssim", call, options, "distorted", (1, 1, 35, 33, 34), measure(win_size=3))


def add_piqa_ms_ssim(table):
    def measure(x, y, data_range):
        weights = torch.tensor([0.0448, 0.2856, 0.3001, 0.2363, 0.1333], dtype=torch.float64)
        return piqa.ssim.ms_ssim(
            x, y, taps_of_channels(x.shape[1]), weights, value_range=data_range
        ).mean()

    for shape in ((1, 1, 161, 161), (1, 1, 163, 250), (2, 3, 201, 177)):
        options = ".downsample = Downsample::ceil"
        table.add("piqa", "ms_ssim(kernel=taps in float64)", options, "distorted", shape, measure)


def add_piq_ms_ssim(table):
    def measure(x, y, data_range):
        return piq.multi_scale_ssim(x, y, data_range=data_range)

    for shape in ((1, 1, 161, 161), (1, 1, 163, 250), (1, 1, 250, 163), (2, 3, 201, 177)):
        options = ".downsample = Downsample::piq"
        table.add("piq", "multi_scale_ssim()", options, "distorted", shape, measure)


def add_torchmetrics_ms_ssim(table):
    """From torchmetrics' own SSIM of each level.

    Its multiscale_structural_similarity_index_measure() leaves the rim out of the means of cs but
    not out of the mean of SSIM at the coarsest level, and averages channels before it takes powers.
    No option of similis does that; this checks the rule by which it halves.
    """

    def measure(x, y, data_range):
        arguments = {"data_range": float(data_range)}
        result = 1
        for weight in (0.0448, 0.2856, 0.3001, 0.2363):
            _, cs = torchmetrics_ssim(x, y, return_contrast_sensitivity=True, **arguments)
            result = result * torch.relu(cs) ** weight
            x, y = F.avg_pool2d(x, (2, 2)), F.avg_pool2d(y, (2, 2))
        _, ssim_map = torchmetrics_ssim(x, y, return_full_image=True, **arguments)
        return (result * torch.relu(ssim_map[..., 5:-5, 5:-5].mean()) ** 0.1333).sum()

    for shape in ((1, 1, 176, 176), (1, 1, 179, 250), (1, 1, 191, 177)):
        call = "structural_similarity_index_measure() of each level, without its rim"
        options = ".downsample = Downsample::floor"
        table.add("torchmetrics", call, options, "distorted", shape, measure)


def main():
    ssim = Table("SSIM_OPTIONS")
    for add in (
        add_scikit_image, add_pytorch_msssim, add_torchmetrics, add_kornia, add_piq, add_piqa,
    ):
        add(ssim)
    ssim.write("ssim.inc")
    ms_ssim = Table("MS_SSIM_OPTIONS")
    for add in (
        add_pytorch_ms_ssim, add_piqa_ms_ssim, add_piq_ms_ssim, add_torchmetrics_ms_ssim,
    ):
        add(ms_ssim)
    ms_ssim.write("ms_ssim.inc")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""The libraries that similis is compared with, each called as its users call it.

Every function takes the images x and y, [N,C,H,W] or [N,C,D,H,W] ([H,W] for libvmaf), and returns the
value; with the gradient by x where its name says so. transforms.py has those that sample.
"""

import numpy
import pytorch_msssim
import skimage.metrics
import torch

import libvmaf


def data_range(x):
    return 255 if x.dtype == numpy.uint8 else 1


def skimage_ssim(x, y):
    return numpy.mean([
        skimage.metrics.structural_similarity(
            one, other, data_range=data_range(x), channel_axis=0, gaussian_weights=True, sigma=1.5,
            use_sample_covariance=False) for one, other in zip(x, y)])


def skimage_mse(x, y):
    return skimage.metrics.mean_squared_error(x, y)


def _torch_value(function, x, y, **options):
    with torch.no_grad():
        return function(torch.from_numpy(x), torch.from_numpy(y), **options).item()


def _torch_value_and_gradient(function, x, y, **options):
    variable = torch.from_numpy(x).requires_grad_()
    value = function(variable, torch.from_numpy(y), **options)
    value.backward()
    return value.item(), variable.grad.numpy()


def pytorch_ssim(x, y):
    return _torch_value(pytorch_msssim.ssim, x, y, data_range=data_range(x))


def pytorch_ssim_and_gradient(x, y):
    return _torch_value_and_gradient(pytorch_msssim.ssim, x, y, data_range=data_range(x))


def pytorch_ms_ssim(x, y):
    return _torch_value(pytorch_msssim.ms_ssim, x, y, data_range=data_range(x))


def pytorch_ms_ssim_and_gradient(x, y):
    return _torch_value_and_gradient(pytorch_msssim.ms_ssim, x, y, data_range=data_range(x))


def torch_mse(x, y):
    return _torch_value(torch.nn.functional.mse_loss, x, y)


def torch_mse_and_gradient(x, y):
    return _torch_value_and_gradient(torch.nn.functional.mse_loss, x, y)


def _lncc(x, y, window_size=7, smooth=1e-5):
    """As MONAI and FireANTs have it, by three one-dimensional convolutions a product."""
    taps = window_size**3

    def average(volume):
        for axis in range(3):
            size = [window_size if axis == each else 1 for each in range(3)]
            volume = torch.nn.functional.conv3d(
                volume, torch.full((1, 1, *size), 1 / window_size),
                padding=[each // 2 for each in size])
        return volume

    mean_x, mean_y = average(x), average(y)
    a = taps * (average(x * y) - mean_x * mean_y)
    b = (taps * (average(x * x) - mean_x * mean_x)).clamp(min=taps * smooth)
    c = (taps * (average(y * y) - mean_y * mean_y)).clamp(min=taps * smooth)
    return ((a * a + taps * smooth) / (b * c + taps * smooth)).clamp(-1, 1).mean()


def _mutual_information(x, y, bins=32):
    """B-spline weights in all bins, and a product of matrices."""
    def weights(image):
        low, high = image.detach().min(), image.detach().max()
        centres = torch.arange(bins) + 0.5
        distance = ((image.reshape(-1, 1) - low) / (high - low) * bins - centres).abs()
        outer, inner = (2 - distance).clamp(min=0), (1 - distance).clamp(min=0)
        each = outer**3 - 4 * inner**3
        return each / each.sum(1, keepdim=True)

    p = weights(x).T @ weights(y) / x.numel()
    product = p.sum(1, keepdim=True) * p.sum(0, keepdim=True)
    return (p * torch.log(p / product + 1e-12)).sum()


def torch_lncc(x, y):
    return _torch_value(_lncc, x, y)


def torch_lncc_and_gradient(x, y):
    return _torch_value_and_gradient(_lncc, x, y)


def torch_mutual_information(x, y):
    return _torch_value(_mutual_information, x, y)


def torch_mutual_information_and_gradient(x, y):
    return _torch_value_and_gradient(_mutual_information, x, y)


def libvmaf_ssim(x, y):
    return libvmaf.score(x, y, "ssim")


def libvmaf_float_ssim(x, y):
    return libvmaf.score(x, y, "float_ssim")


def libvmaf_float_ssim_scale1(x, y):
    return libvmaf.score(x, y, "float_ssim", scale=1)


def libvmaf_float_ms_ssim(x, y):
    return libvmaf.score(x, y, "float_ms_ssim")

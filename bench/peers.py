# SPDX-License-Identifier: Apache-2.0
"""The libraries that similis is compared with, each called as its users call it.

Every function takes the images x and y, [N,C,H,W] ([H,W] for libvmaf), and returns the value; with
the gradient by x where its name says so.
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


def libvmaf_ssim(x, y):
    return libvmaf.score(x, y, "ssim")


def libvmaf_float_ssim(x, y):
    return libvmaf.score(x, y, "float_ssim")


def libvmaf_float_ssim_scale1(x, y):
    return libvmaf.score(x, y, "float_ssim", scale=1)


def libvmaf_float_ms_ssim(x, y):
    return libvmaf.score(x, y, "float_ms_ssim")

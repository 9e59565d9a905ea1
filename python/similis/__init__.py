# SPDX-License-Identifier: Apache-2.0
"""similis measures how alike two images are, and how to make them more alike.

Every measure takes two images x and y, alike in shape, dtype and device, with any strides. The
result has the type of the images: torch.Tensor, differentiable by both images, or an array of
NumPy, CuPy or JAX. Images are [N,C,H,W], volumes [N,C,D,H,W]; one picture may be [C,H,W] or [H,W],
and channel_axis=-1 takes [H,W,C] and [N,H,W,C]. Elements are u8, f16, bf16, f32 or f64; bool, u16,
i16 and i32 are converted first. Results are f32, or f64 for f64 images; numbers of NumPy's images
are numpy.float64.

Wrong arguments raise ValueError or TypeError with a sentence that names the argument. A device or
driver that is missing or too old raises similis.DeviceError. Images on a GPU are never moved.
"""

from __future__ import annotations

import importlib
from typing import Any

from ._library.c_abi import DeviceError, __version__
from ._library.threads import get_num_threads, set_num_threads
from ._functions.correlation import lncc, lncc_loss, ncc, ncc_loss
from ._functions.fields import exponentiate, invert, jacobian_determinant
from ._functions.mutual_information import (
    histogram,
    mutual_information,
    mutual_information_from_histogram,
    mutual_information_loss,
)
from ._functions.pixel_error import mae, mse, psnr
from ._functions.register import register
from ._functions.scores import float_ms_ssim, float_ssim, integer_ssim, libvmaf_psnr, ssimulacra2
from ._functions.smooth import smooth
from ._functions.ssim import l1_ssim, ms_ssim, ms_ssim_loss, ssim, ssim_loss
from ._functions.transforms import affine_grid, compose, sample, sample_labels
from ._functions.value_and_gradient import value_and_gradient
from ._functions.vmaf import VmafScorer, vmaf

__all__ = [
    "DeviceError",
    "VmafScorer",
    "__version__",
    "affine_grid",
    "compose",
    "exponentiate",
    "float_ms_ssim",
    "float_ssim",
    "get_num_threads",
    "histogram",
    "integer_ssim",
    "invert",
    "jacobian_determinant",
    "l1_ssim",
    "libvmaf_psnr",
    "lncc",
    "lncc_loss",
    "mae",
    "ms_ssim",
    "ms_ssim_loss",
    "mse",
    "mutual_information",
    "mutual_information_from_histogram",
    "mutual_information_loss",
    "ncc",
    "ncc_loss",
    "psnr",
    "register",
    "sample",
    "sample_labels",
    "set_num_threads",
    "smooth",
    "ssim",
    "ssim_loss",
    "ssimulacra2",
    "value_and_gradient",
    "vmaf",
]

_SUBMODULES = ("compat", "metrics", "nn", "volumes")
_OF_VOLUMES = ("Volume", "read_transform", "read_volume", "write_transform", "write_volume")


def __getattr__(name: str) -> Any:
    """Imports the parts that need torch or NumPy when they are first used."""
    if name in _SUBMODULES:
        return importlib.import_module(f"similis.{name}")
    if name in _OF_VOLUMES:
        return getattr(importlib.import_module("similis.volumes"), name)
    raise AttributeError(f"module 'similis' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES, *_OF_VOLUMES})

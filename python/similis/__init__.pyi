# SPDX-License-Identifier: Apache-2.0
# Written by scripts/python_stubs.py.

from . import compat as compat
from . import metrics as metrics
from . import nn as nn
from . import volumes as volumes
from ._library.c_abi import DeviceError as DeviceError
from ._functions.vmaf import VmafScorer as VmafScorer
from ._library.c_abi import __version__ as __version__
from ._library.threads import get_num_threads as get_num_threads
from ._library.threads import set_num_threads as set_num_threads
from ._functions.register import register as register
from ._signatures.measures import (
    ssim as ssim,
    l1_ssim as l1_ssim,
    ms_ssim as ms_ssim,
    lncc as lncc,
    ncc as ncc,
    mutual_information as mutual_information,
    mse as mse,
    mae as mae,
    psnr as psnr,
    value_and_gradient as value_and_gradient,
)
from ._signatures.losses import (
    ssim_loss as ssim_loss,
    ms_ssim_loss as ms_ssim_loss,
    lncc_loss as lncc_loss,
    ncc_loss as ncc_loss,
    mutual_information_loss as mutual_information_loss,
)
from ._signatures.scores import (
    integer_ssim as integer_ssim,
    float_ssim as float_ssim,
    float_ms_ssim as float_ms_ssim,
    libvmaf_psnr as libvmaf_psnr,
    ssimulacra2 as ssimulacra2,
    vmaf as vmaf,
    histogram as histogram,
    mutual_information_from_histogram as mutual_information_from_histogram,
)
from ._signatures.transforms import (
    sample as sample,
    compose as compose,
    affine_grid as affine_grid,
    sample_labels as sample_labels,
    exponentiate as exponentiate,
    invert as invert,
    jacobian_determinant as jacobian_determinant,
    smooth as smooth,
)
from .volumes import (
    Volume as Volume,
    read_transform as read_transform,
    read_volume as read_volume,
    write_transform as write_transform,
    write_volume as write_volume,
)

__all__ = ["DeviceError",
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
    "vmaf"]

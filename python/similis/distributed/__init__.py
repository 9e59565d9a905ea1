# SPDX-License-Identifier: Apache-2.0
"""Volumes over several GPUs or processes, by torch.distributed.

A volume is cut along its first spatial axis: each rank holds its own rows as a plain tensor, and
Slabs says which. The functions are those of similis with slabs added. Results that are not arrays
of pixels have the same bits on every rank, and every rank calls backward with the same upstream
gradient.

    similis.distributed.init()
    slabs = Slabs.even(extent)
    loss = similis.distributed.lncc_loss(fixed, moved, slabs)  # own rows of both
    loss.backward()

DTensors whose rows are sharded are taken too, and fields and images returned as such. Arguments are
agreed upon before pixels move: one rank's mistake is a ValueError on all of them. A
rank that is lost or stalls raises LostRank on the others.
"""

from typing import Any

from . import fields, grids, measures, transforms
from .calls import rows_axis
from .dtensors import takes_dtensors
from .failure import LostRank, init
from .files import read, write
from .rows import halo
from .registration import Registered, register
from .slabs import Slabs

_pair = takes_dtensors({"x": rows_axis, "y": rows_axis})
histogram = _pair(measures.histogram)
l1_ssim = _pair(measures.l1_ssim)
lncc = _pair(measures.lncc)
lncc_loss = _pair(measures.lncc_loss)
mae = _pair(measures.mae)
mse = _pair(measures.mse)
mutual_information = _pair(measures.mutual_information)
mutual_information_loss = _pair(measures.mutual_information_loss)
ncc = _pair(measures.ncc)
ms_ssim = _pair(measures.ms_ssim)
ms_ssim_loss = _pair(measures.ms_ssim_loss)
ncc_loss = _pair(measures.ncc_loss)
psnr = _pair(measures.psnr)
ssim = _pair(measures.ssim)
ssim_loss = _pair(measures.ssim_loss)

_image = {"image": 2, "displacement": 1, "grid": 1}
sample = takes_dtensors(_image, [2])(transforms.sample)
sample_labels = takes_dtensors(_image, [2, 2])(transforms.sample_labels)
compose = takes_dtensors({"u": 1, "v": 1}, [1])(transforms.compose)
affine_grid = takes_dtensors({"displacement": 1}, [1])(grids.affine_grid)
exponentiate = takes_dtensors({"v": 1}, [1])(fields.exponentiate)
invert = takes_dtensors({"u": 1}, [1, None])(fields.invert)
jacobian_determinant = takes_dtensors({"u": 1}, [1, None])(fields.jacobian_determinant)


def _rows_to_smooth(arguments: Any) -> int:
    return 1 if arguments.get("field") else 2


smooth = takes_dtensors({"x": _rows_to_smooth}, [_rows_to_smooth])(fields.smooth)

__all__ = [
    "LostRank",
    "Registered",
    "Slabs",
    "affine_grid",
    "compose",
    "exponentiate",
    "halo",
    "histogram",
    "init",
    "invert",
    "jacobian_determinant",
    "l1_ssim",
    "lncc",
    "lncc_loss",
    "mae",
    "ms_ssim",
    "ms_ssim_loss",
    "mse",
    "mutual_information",
    "mutual_information_loss",
    "ncc",
    "ncc_loss",
    "psnr",
    "read",
    "register",
    "sample",
    "sample_labels",
    "smooth",
    "ssim",
    "ssim_loss",
    "write",
]

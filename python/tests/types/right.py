# SPDX-License-Identifier: Apache-2.0
"""Correct uses, which type checkers must accept with these types."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import similis
import torch
from numpy.typing import NDArray
from similis import nn, volumes
from similis.compat.fused_ssim import fused_ssim
from similis.compat.pytorch_msssim import MS_SSIM

u8: NDArray[np.uint8] = np.zeros((2, 3, 32, 32), np.uint8)
f32: NDArray[np.float32] = np.zeros((2, 3, 32, 32), np.float32)
f64: NDArray[np.float64] = np.zeros((2, 3, 32, 32))
tensor = torch.zeros(2, 3, 32, 32)
array: jax.Array = jnp.zeros((2, 3, 32, 32))

number: np.float64 = similis.ssim(u8, u8)
plain: float = similis.psnr(f32, f32, data_range=(0, 1))
scores: NDArray[np.float64] = similis.ssimulacra2(u8, u8)
each: NDArray[np.float32] = similis.ssim(u8, u8, reduction="per_image")
wide: NDArray[np.float64] = similis.lncc(f64, f64, reduction="none")
masked: np.float64 = similis.ssim(u8, u8, mask=np.ones((32, 32), np.bool_), window="box")
loss: torch.Tensor = similis.ssim_loss(tensor, tensor, padding="reflect")
of_jax: jax.Array = similis.mse(array, array)
value, gradient = similis.value_and_gradient(similis.ssim, f32, f32)
slope: NDArray[np.float32] = gradient
_, by_x, by_y = similis.value_and_gradient(similis.ssim, f64, f64, wrt="both")
both: NDArray[np.float64] = by_x + by_y
moved: NDArray[np.float32] = similis.sample(f32, affine=np.eye(2, 3)[None], mode="cubic")
labels: torch.Tensor = similis.sample_labels(tensor, affine=torch.eye(2, 3)[None])
module = nn.SSIMLoss(window_size=7, padding="same")
of_module: torch.Tensor = module(tensor, tensor, mask=torch.ones(32, 32))
grid: volumes.Grid = volumes.Grid((2, 2, 2), np.eye(4))
smoothed: NDArray[np.float32] = similis.smooth(f32, 1.5, padding="zeros")
field: torch.Tensor = similis.smooth(torch.zeros(1, 8, 8, 2), (1.0, 2.0), field=True)
determinant, folds = similis.jacobian_determinant(torch.zeros(1, 8, 8, 2), rows=None)
inverse, residual = similis.invert(torch.zeros(1, 8, 8, 2), 30, tolerance=0.1)
similis.set_num_threads(2)
threads: int = similis.get_num_threads()
last: NDArray[np.float32] = similis.ssim(f32, f32, channel_axis=-1, reduction="none")
exact: torch.Tensor = similis.integer_ssim(tensor, tensor)
torch_value, torch_gradient = similis.value_and_gradient(similis.lncc, tensor, tensor)
of_torch: torch.Tensor = torch_value + torch_gradient
_, torch_x, torch_y = similis.value_and_gradient(similis.mse, tensor, tensor, wrt="both")
both_of_torch: torch.Tensor = torch_x + torch_y
loss_of_partial, by_partial = similis.value_and_gradient(
    functools.partial(similis.ssim, padding="same"), f32, f32
)
fused: torch.Tensor = fused_ssim(tensor, tensor, padding="valid")
windowed = MS_SSIM(data_range=1.0, channel=3)
window: torch.Tensor = windowed.win

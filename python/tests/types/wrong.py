# SPDX-License-Identifier: Apache-2.0
"""Wrong uses: type checkers must report each line that ends so, and no other."""

import numpy as np
import similis
import torch
from similis import nn

array, tensor = np.zeros((1, 1, 32, 32)), torch.zeros(1, 1, 32, 32)

similis.ssim(array, array, padding="zeros")  # wrong
similis.ssim(tensor, tensor, reduction="meen")  # wrong
similis.ssim(tensor, array)  # wrong
similis.ssim(array, tensor)  # wrong
similis.ssim(1.0, 1.0)  # wrong
similis.ssim(array, array, window_sise=7)  # wrong
similis.lncc(tensor, tensor, window="square")  # wrong
similis.ms_ssim(array, array, reduction="none")  # wrong
similis.sample(tensor, mode="bicubic")  # wrong
similis.ssimulacra2(array, array, mode="quick")  # wrong
nn.SSIM(window=3)  # wrong
nn.SSIM(padding="zeros")  # wrong
nn.PSNR(kernel_size=3)  # wrong
similis.value_and_gradient(similis.ssim, array, array, wrt="z")  # wrong
similis.smooth(tensor, 1.5, padding="same")  # wrong
similis.smooth(tensor)  # wrong
similis.ssim(array, array, channel_axis="last")  # wrong
similis.set_num_threads("two")  # wrong
nn.LNCCLoss(window="square")  # wrong
similis.jacobian_determinant(tensor, rows=3)  # wrong

# SPDX-License-Identifier: Apache-2.0
"""torch's tensors: autograd and operators around the library.

binding                how tensors reach the library
tensors                checks of tensors
registry               the operators' library
measure_operators      the operators of the measures; measures: autograd around them
transform_operators    the operators of sampling and composing
transform_autograd     autograd around them; transforms: the functions that choose
information_parts      mutual information of a part of an image
plain                  the fast path of measures and transforms; gradients without autograd
smooth                 Gaussian smoothing of images and fields
fields                 exponential, inverse and Jacobian determinant of a vector field
decomposition          the measures in torch's own operators; windows: its averages; reductions:
                       its weights and results; mutual_information: that measure
gradient_scaling       keeps gradients in the range of f16
devices                what each device of torch can hold
elsewhere              tensors that the library does not take: kernels, torch's operators, refusals;
                       graphs: what torch.compile does not read of it
ssim_kernels           SSIM on Apple's and Intel's GPUs; gpu_modules: the kernels' text and launches;
                       xpu_queue, sycl_text, metal_words.h: those on Intel's
sampling               sampling and composing in torch's own operators; inversion: the inverse of a field
"""

from __future__ import annotations

from .binding import BINDING, are_same
from .fields import exponentiate, invert, jacobian_determinant
from .information_parts import information_of_part
from .measures import evaluate, is_plain, largest
from .plain import by_autograd, with_gradients
from .plain import evaluate as evaluate_plainly
from .plain import transform as transform_plainly
from .psnr import psnr, psnr_with_gradients
from .smooth import smooth
from .tensors import TELLS_KEYS
from .transforms import labels, transform

__all__ = [
    "BINDING",
    "TELLS_KEYS",
    "are_same",
    "by_autograd",
    "evaluate",
    "evaluate_plainly",
    "exponentiate",
    "information_of_part",
    "invert",
    "is_plain",
    "jacobian_determinant",
    "labels",
    "largest",
    "psnr",
    "psnr_with_gradients",
    "smooth",
    "transform",
    "transform_plainly",
    "with_gradients",
]

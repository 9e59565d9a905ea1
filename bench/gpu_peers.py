# SPDX-License-Identifier: Apache-2.0
"""Other libraries' SSIM on GPUs, called as their users call them: forward and backward through
autograd. A peer is {(operation, kind without gradient, rank): maker of calls}."""

import importlib
import sys

import torch


def with_autograd(function):
    def make(kind):
        def call(x, y):
            if "gradient" not in kind:
                with torch.no_grad():
                    return function(x, y, False), None
            x = x.detach().requires_grad_()
            value = function(x, y, True)
            (value if value.dim() == 0 else value.sum()).backward()
            return value.detach(), x.grad
        return call
    return make


def _imported(module, folder):
    """A package from a folder, beside another of the same name."""
    if folder is None:
        return importlib.import_module(module)
    hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith(module)}
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        return importlib.import_module(module)
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.startswith(module)]:
            del sys.modules[name]
        sys.modules.update(hidden)


def _of_two_axes(module):
    return {("ssim", "value", 4): lambda x, y, train: module.fused_ssim(
        x, y, padding="valid", train=train)}


def _fused_ssim(module):
    return {**_of_two_axes(module),
            ("ssim", "value", 5): lambda x, y, train: module.fused_ssim3d(
                x, y, padding="valid", train=train)}


def _pytorch_msssim(module):
    return {("ssim", "value", 4): lambda x, y, train: module.ssim(x, y, data_range=1.0),
            ("ms_ssim", "value", 4): lambda x, y, train: module.ms_ssim(x, y, data_range=1.0)}


def find(optimized_fused_ssim=None):
    """Those that are installed, and why others are left out. optimized-fused-ssim's package is named
    as fused-ssim's: it is taken from a folder that is named."""
    found, missing = {}, []
    candidates = [("fused-ssim", "fused_ssim", None, _fused_ssim),
                  ("fussim", "fussim", None, _of_two_axes),
                  ("pytorch-msssim", "pytorch_msssim", None, _pytorch_msssim)]
    if optimized_fused_ssim is None:
        missing.append("optimized-fused-ssim (no folder is named)")
    else:
        candidates.insert(1, ("optimized-fused-ssim", "fused_ssim", optimized_fused_ssim,
                              _of_two_axes))
    for name, module, folder, make in candidates:
        image = torch.rand((1, 1, 256, 256), device="cuda")
        try:
            makers = {key: with_autograd(function)
                      for key, function in make(_imported(module, folder)).items()}
            makers["ssim", "value", 4]("value")(image, image)  # some load their kernels here
            found[name] = makers
        except (ImportError, TypeError, RuntimeError) as error:  # built for another torch, too
            missing.append(f"{name} ({str(error).splitlines()[0]})")
    return found, missing

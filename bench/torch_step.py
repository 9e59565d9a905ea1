# SPDX-License-Identifier: Apache-2.0
"""Calls through torch's autograd, and the fields that they get, for the benchmarks of transforms."""

import torch


class Empty(torch.autograd.Function):
    """Saves what it takes, allocates a number and a gradient, and computes nothing."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        ctx.gradient = torch.empty_like(x)
        return torch.empty((), device=x.device)

    @staticmethod
    def backward(ctx, upstream):
        x, y = ctx.saved_tensors
        return ctx.gradient, None


def step(function, upstream, gradients):
    """A call of function and, where some of its operands want gradients, its backward pass."""
    def call(*operands):
        if not any(gradients):
            with torch.no_grad():
                return function(*operands)
        variables = [each.detach().requires_grad_(wanted)
                     for each, wanted in zip(operands, gradients)]
        value = function(*variables)
        value.backward(upstream)
        return value.detach(), [each.grad for each in variables]
    return call


def waves(shape, seed, jitter=0.002, device="cpu"):
    """Half a period of a wave along each axis, a twentieth of the image high, and noise."""
    generator = torch.Generator(device=device).manual_seed(seed)
    wave = torch.full((), 0.05, device=device)
    for axis, extent in enumerate(shape[2:]):
        around = [-1 if other == axis else 1 for other in range(len(shape) - 2)]
        wave = wave * torch.linspace(0, 3.1416, extent, device=device).sin().reshape(around)
    size = (shape[0], *shape[2:], len(shape) - 2)
    noise = torch.randn(size, device=device, generator=generator)
    return wave[None, ..., None] + jitter * noise

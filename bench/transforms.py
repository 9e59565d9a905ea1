# SPDX-License-Identifier: Apache-2.0
"""Sampling and composing on the CPU as a step of registration calls them, in similis and in torch: a
value, and gradients that come by a second call. Inputs are a volume, or a field, and a smooth field
with a little noise on it; the upstream gradient is noise.
"""

import numpy
import torch
from torch.nn import functional

# Bytes for each voxel that a call has to read and write: fields 12, images 4.
BYTES = {"sample/value": 20, "sample/value_and_gradient_displacement": 52,
         "sample/value_and_gradient_both": 60, "compose/value": 36,
         "compose/value_and_gradient": 96}


def field(shape, seed):
    """Half a period of a wave along each axis, a twentieth of the volume high, and noise."""
    generator = numpy.random.default_rng(seed)
    z, y, x = (numpy.sin(numpy.linspace(0, numpy.pi, n, dtype=numpy.float32)) for n in shape)
    wave = 0.05 * z[:, None, None] * y[:, None] * x
    noise = generator.standard_normal((*shape, 3), dtype=numpy.float32)
    return (wave[..., None] + 0.002 * noise)[None]


def image_and_field(shape, _dtype):
    generator = numpy.random.default_rng(1)
    return generator.random(shape, dtype=numpy.float32), field(shape[2:], 2)


def two_fields(shape, _dtype):
    return field(shape[2:], 1), field(shape[2:], 2)


_upstreams = {}


def upstream_like(array):
    if array.shape not in _upstreams:
        generator = numpy.random.default_rng(9)
        _upstreams.clear()
        _upstreams[array.shape] = generator.standard_normal(array.shape, dtype=numpy.float32)
    return _upstreams[array.shape]


# similis. The functions' names are those of the cases.
def value(similis, operation, x, y):
    output = numpy.empty_like(x)
    getattr(similis, operation)(x, y, output=output)
    return (output,)


def value_and_gradient_displacement(similis, _operation, image, u):
    output, gradient = numpy.empty_like(image), numpy.empty_like(u)
    similis.sample(image, u, output=output)
    similis.sample(image, u, upstream_like(image), displacement_gradient=gradient)
    return output, gradient


def value_and_gradient_both(similis, _operation, image, u):
    output, by_image, by_u = (numpy.empty_like(each) for each in (image, image, u))
    similis.sample(image, u, output=output)
    similis.sample(image, u, upstream_like(image), image_gradient=by_image,
                   displacement_gradient=by_u)
    return output, by_image, by_u


def value_and_gradient(similis, _operation, u, v):
    output, by_u, by_v = (numpy.empty_like(each) for each in (u, u, v))
    similis.compose(u, v, output=output)
    similis.compose(u, v, upstream_like(u), u_gradient=by_u, v_gradient=by_v)
    return output, by_u, by_v


# torch, whose sampling takes coordinates. Those of the voxels are made once, as a program would.
_coordinates = {}


def coordinates(shape):
    if shape not in _coordinates:
        identity = torch.eye(3, 4)[None]
        _coordinates[shape] = functional.affine_grid(identity, (1, 1, *shape), align_corners=True)
    return _coordinates[shape]


def _sampled(image, u):
    return functional.grid_sample(image, coordinates(u.shape[1:4]) + u, align_corners=True)


def _composed(u, v):
    return _sampled(u.movedim(-1, 1), v).movedim(1, -1)


def _torch_value(function):
    def call(x, y):
        with torch.no_grad():
            return (function(torch.from_numpy(x), torch.from_numpy(y)).numpy(),)
    return call


def _torch_gradients(function, by_x):
    def call(x, y):
        first, second = torch.from_numpy(x).detach(), torch.from_numpy(y).detach()
        wanted = [first, second] if by_x else [second]
        for each in wanted:
            each.requires_grad_()
        output = function(first, second)
        output.backward(torch.from_numpy(upstream_like(x)))
        return (output.detach().numpy(), *(each.grad.numpy() for each in wanted))
    return call


torch_sample = _torch_value(_sampled)
torch_sample_and_gradient_displacement = _torch_gradients(_sampled, by_x=False)
torch_sample_and_gradient_both = _torch_gradients(_sampled, by_x=True)
torch_compose = _torch_value(_composed)
torch_compose_and_gradient = _torch_gradients(_composed, by_x=True)

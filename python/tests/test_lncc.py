# SPDX-License-Identifier: Apache-2.0
"""Local normalised cross-correlation against torch's own convolutions in float64: values, gradients,
every kind of call, and FireANTs' drop-in with what is wrong there and right here."""

import numpy
import pytest

import similis

torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
import torch.nn.functional as F
from similis import nn
from similis._library import measures
from similis._torch.measure_operators import gradient_op, value_op
from similis.compat.fireants import FusedLocalNormalizedCrossCorrelationLoss


def window_average(planes, size, sigma=None):
    """[B,1,…] with zeros outside."""
    spatial = planes.dim() - 2
    distance = torch.arange(size, dtype=planes.dtype, device=planes.device) - size // 2
    taps = (
        torch.ones_like(distance) if sigma is None else torch.exp(-(distance**2) / (2 * sigma**2))
    )
    kernel = taps
    for _ in range(spatial - 1):
        kernel = kernel[..., None] * taps
    kernel = (kernel / kernel.sum())[None, None]
    return (F.conv2d if spatial == 2 else F.conv3d)(planes, kernel, padding=size // 2)


def composed(x, y, size, sigma=None, smooth=1e-5, signed=False):
    """The map of the definition, in float64."""
    shape, taps = x.shape, size ** (x.dim() - 2)
    x, y = (each.double().reshape(-1, 1, *shape[2:]) for each in (x, y))
    average = lambda planes: window_average(planes, size, sigma)
    mean_x, mean_y = average(x), average(y)
    a = taps * (average(x * y) - mean_x * mean_y)
    b = (taps * (average(x * x) - mean_x**2)).clamp(min=smooth * taps)
    c = (taps * (average(y * y) - mean_y**2)).clamp(min=smooth * taps)
    if signed:
        result = a / (b.sqrt() * c.sqrt())
    else:
        result = (a * a + smooth * taps) / (b * c + smooth * taps)
    return result.clamp(-1, 1).reshape(shape)


@pytest.mark.parametrize("window, sigma", [("box", None), ("gaussian", 1.2)])
@pytest.mark.parametrize("shape", [(2, 3, 20, 17), (1, 2, 9, 12, 14)])
@pytest.mark.parametrize("signed", [False, True])
def test_values_and_gradients(images, relative_l2, window, sigma, shape, signed):
    x, y = images(*shape, requires_grad="xy")
    value = similis.lncc(x, y, window_size=5, window=window, sigma=sigma or 1.5, signed=signed)
    expected = composed(x, y, 5, sigma, signed=signed).mean()
    torch.testing.assert_close(value.double(), expected, rtol=1e-5, atol=1e-6)
    for own, other in zip(
        torch.autograd.grad(value, (x, y)), torch.autograd.grad(expected, (x, y))
    ):
        assert relative_l2(own, other) < 1e-5


@pytest.mark.parametrize("low, high", [(0, 4095), (1e4, 1e4 + 1), (-1000, 2000)])
def test_intensities_of_every_kind(images, relative_l2, low, high):
    x, y = (low + (high - low) * each for each in images(1, 1, 12, 14, 16))
    x.requires_grad_()
    value = similis.lncc(x, y, window_size=7, padding="valid")
    expected = composed(x, y, 7)[..., 3:-3, 3:-3, 3:-3].mean()
    torch.testing.assert_close(value.double(), expected, rtol=1e-4, atol=1e-5)
    (own,), (other,) = torch.autograd.grad(value, x), torch.autograd.grad(expected, x)
    assert relative_l2(own, other) < 1e-4


MEASURES = {
    "box": lambda x, y: similis.lncc(x, y, window_size=3),
    "map": lambda x, y: similis.lncc_loss(x, y, reduction="none", padding="renormalize"),
    "signed": lambda x, y: similis.lncc(x, y, signed=True, reduction="per_channel"),
    "gaussian": lambda x, y: similis.lncc(x, y, window="gaussian", padding="valid"),
}


@pytest.mark.parametrize("name", MEASURES)
def test_first_and_second_derivatives(images, name):
    x, y = images(1, 2, 6, 5, dtype=torch.float64, requires_grad="xy")
    assert torch.autograd.gradcheck(MEASURES[name], (x, y), fast_mode=True)
    assert torch.autograd.gradgradcheck(MEASURES[name], (x, y), fast_mode=True, nondet_tol=1e-12)


def test_masks_hide_what_they_exclude(images):
    x, y = images(1, 1, 8, 9, 10, requires_grad="x")
    valid = torch.ones(8, 9, 10, device=x.device)
    valid[2:5, 3:6, 4:8] = 0
    with torch.no_grad():
        x[..., 2:5, 3:6, 4:8] = float("nan")
    value = similis.lncc(x, y, window_size=5, valid_mask=valid)
    (gradient,) = torch.autograd.grad(value, x)
    assert value.isfinite() and gradient.isfinite().all()
    assert (gradient[..., 2:5, 3:6, 4:8] == 0).all() and gradient.abs().max() > 0
    again = torch.func.vmap(lambda a, b: similis.lncc(a, b, window_size=5, valid_mask=valid))
    torch.testing.assert_close(again(x[None], y[None])[0], value)


def test_compiled_whole(images, relative_l2):
    torch.compiler.reset()
    module = nn.LNCCLoss(window_size=5, gradient="ants")
    loss = lambda x, y: module(x, y) + similis.lncc(x, y, reduction="none").sum()
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    x, y = images(1, 2, 7, 8, 9, requires_grad="xy")
    value = compiled(x, y)
    torch.testing.assert_close(value, loss(x, y))
    for own, other in zip(
        torch.autograd.grad(value, (x, y)), torch.autograd.grad(loss(x, y), (x, y))
    ):
        assert relative_l2(own, other) < 1e-5


def test_operators_keep_torchs_rules(images):
    x, y = images(1, 1, 6, 7, 8)
    text = measures.text("lncc", 3, padding="same", reduction="mean", weight=-1.0)
    torch.library.opcheck(value_op, (x, y, None, None, text))
    torch.library.opcheck(gradient_op, (x, y, None, None, None, True, True, True, text))


def test_half_precision_and_layouts(images, relative_l2):
    x, y = images(2, 3, 16, 18, requires_grad="x")
    expected = torch.autograd.grad(similis.lncc(x, y), x)[0]
    for dtype, allowed in ((torch.float16, 0.02), (torch.bfloat16, 0.15)):
        half = x.detach().to(dtype).to(memory_format=torch.channels_last).requires_grad_()
        (gradient,) = torch.autograd.grad(similis.lncc(half, y.to(dtype)) * 1024, half)
        assert gradient.dtype == dtype
        assert relative_l2(gradient / 1024, expected) < allowed


def test_arrays_of_numpy():
    rng = numpy.random.default_rng(1)
    x = rng.random((1, 2, 8, 9, 10))
    y = 0.5 * x + 0.5 * rng.random(x.shape)
    value, by_x, by_y = similis.value_and_gradient(
        similis.lncc_loss, x, y, wrt="both", window_size=(3, 5, 7)
    )
    tensors = [torch.from_numpy(each).requires_grad_() for each in (x, y)]
    loss = similis.lncc_loss(*tensors, window_size=(3, 5, 7))
    assert value == loss.item()
    for own, other in zip((by_x, by_y), torch.autograd.grad(loss, tensors)):
        numpy.testing.assert_array_equal(own, other.numpy())


def test_refusals(images):
    x, y = images(1, 1, 8, 8)
    with pytest.raises(ValueError, match="^lncc: padding is 'reflect'; it must be valid, same or"):
        similis.lncc(x, y, padding="reflect")
    with pytest.raises(ValueError, match="^lncc: window is 'disc'; it must be box or gaussian$"):
        similis.lncc(x, y, window="disc")
    with pytest.raises(ValueError, match="^lncc: window_size is 4; it must be an odd number from 1 to 65535$"):
        similis.lncc(x, y, window_size=4)
    with pytest.raises(TypeError, match="^lncc: signed is 1; it must be True or False$"):
        similis.lncc(x, y, signed=1)
    with pytest.raises(ValueError, match="^lncc: gradient is ants and the measure is signed"):
        similis.lncc(x, y, signed=True, gradient="ants")
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(
        similis.lncc(x, y, gradient="ants") ** 2, x, retain_graph=True
    )
    assert gradient.norm() > 0
    with pytest.raises(TypeError, match="^lncc: gradient is ants, which is no derivative"):
        torch.autograd.grad(similis.lncc(x, y, gradient="ants"), x, create_graph=True)


def ants_gradient(x, y, size, smooth=1e-5):
    """The gradient of a mean: D·((y - E[y]) - A/(B + dr)·(x - E[x])), D = 2·A / (B·C + dr) / N."""
    taps = size ** (x.dim() - 2)
    x, y = x.double(), y.double()
    average = lambda image: window_average(image, size)
    mean_x, mean_y = average(x), average(y)
    a = taps * (average(x * y) - mean_x * mean_y)
    b, c = (taps * (average(i * i) - average(i) ** 2) for i in (x, y))
    dr = smooth * taps
    d = 2 * a / (b.clamp(min=dr) * c.clamp(min=dr) + dr) / x.numel()
    return d * ((y - mean_y) - a / (b + dr) * (x - mean_x))


def test_fireants_values_and_ants_gradient(images, relative_l2):
    x, y = images(1, 1, 9, 10, 11, requires_grad="x")
    for size in 3, 5, 7:
        loss = FusedLocalNormalizedCrossCorrelationLoss(kernel_size=size)(x, y)
        torch.testing.assert_close(loss.double(), -composed(x, y, size).mean(), rtol=1e-5, atol=0)
        (gradient,) = torch.autograd.grad(loss, x)
        assert relative_l2(gradient, -ants_gradient(x, y, size)) < 1e-5
    gaussian = FusedLocalNormalizedCrossCorrelationLoss(
        kernel_size=5, kernel_type="gaussian", sigma=1.3, reduction="none", use_separable=False
    )(x, y)
    torch.testing.assert_close(gaussian.double(), -composed(x, y, 5, 1.3), rtol=1e-4, atol=1e-5)


def test_fireants_exact_gradient_is_the_derivative(images, relative_l2):
    x, y = images(2, 2, 7, 8, 9, requires_grad="x")
    for kind, sigma in (("rectangular", None), ("gaussian", 1.5)):
        (expected,) = torch.autograd.grad(-composed(x, y, 5, sigma).mean(), x)
        loss = FusedLocalNormalizedCrossCorrelationLoss(
            kernel_size=5, kernel_type=kind, use_ants_gradient=False
        )
        assert relative_l2(torch.autograd.grad(loss(x, y), x)[0], expected) < 1e-5


@pytest.mark.parametrize("kind", ["rectangular", "gaussian"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("ants", [False, True])
def test_fireants_gradient_scale(images, relative_l2, kind, reduction, ants):
    """Factors measured against FireANTs' own build on an H200: a box's mean is not divided by N, and
    windows are averaged where they should be summed up."""
    x, y = images(2, 2, 7, 8, 9, requires_grad="x")
    options = {"kernel_size": 3, "kernel_type": kind, "reduction": reduction}
    right = FusedLocalNormalizedCrossCorrelationLoss(use_ants_gradient=ants, **options)
    scaled = FusedLocalNormalizedCrossCorrelationLoss(
        use_ants_gradient=ants, gradient_scale="fireants", **options
    )
    factor = x.numel() if (kind, reduction) == ("rectangular", "mean") else 1
    factor /= 1 if ants else 27
    upstream = torch.rand_like(right(x, y))
    (expected,) = torch.autograd.grad(right(x, y), x, upstream)
    assert relative_l2(torch.autograd.grad(scaled(x, y), x, upstream)[0], factor * expected) < 1e-6
    torch.testing.assert_close(scaled(x, y), right(x, y), rtol=0, atol=0)


def test_fireants_half_precision_does_not_overflow(images):
    """There the sums of f16 images are f16: 27 squares above 50 leave its range."""
    x, y = (200 * each for each in images(1, 1, 8, 9, 10))
    loss = FusedLocalNormalizedCrossCorrelationLoss()
    torch.testing.assert_close(loss(x.half(), y.half()), loss(x, y), rtol=0, atol=2e-2)


@pytest.mark.parametrize("mode", ["mult", "max"])
def test_fireants_masked(images, mode):
    """Masks of different sizes: the mean over items is not the mean over voxels."""
    x, y = images(2, 3, 7, 8, 9, requires_grad="x")
    of_x, of_y = (torch.rand(2, 1, 7, 8, 9, device=x.device) > 0.4 for _ in range(2))
    of_x[1, :, :4] = of_y[1, :, :4] = False
    weights = ((of_x & of_y) if mode == "mult" else (of_x | of_y)).double()
    loss = FusedLocalNormalizedCrossCorrelationLoss(masked=True, mask_mode=mode)(
        torch.cat([x, of_x.float()], 1), torch.cat([y, of_y.float()], 1)
    )
    weighted = weights * composed(x, y, 3)
    expected = -(weighted.sum((1, 2, 3, 4)) / weights.sum((1, 2, 3, 4))).mean()
    torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=1e-6)
    assert torch.autograd.grad(loss, x)[0].norm() > 0


def test_fireants_refusals(images):
    x, y = images(1, 1, 8, 8)
    with pytest.raises(ValueError, match="pred has shape .1, 1, 8, 8.; it must have 5 axes$"):
        FusedLocalNormalizedCrossCorrelationLoss()(x, y)
    with pytest.raises(
        ValueError, match="kernel_type is 'triangular'; it must be 'rectangular' or"
    ):
        FusedLocalNormalizedCrossCorrelationLoss(kernel_type="triangular")
    with pytest.raises(
        ValueError, match="gradient_scale is 'right'; it must be None or 'fireants'"
    ):
        FusedLocalNormalizedCrossCorrelationLoss(gradient_scale="right")


def test_fireants_loss_without_a_smallest_variance(images):
    """smooth_dr = 0: flat windows are 0, not NaN."""
    x, y = images(1, 1, 12, 10, requires_grad="x")
    flat = torch.where(torch.arange(12, device=x.device)[:, None] < 6, 0.0, y)
    loss = FusedLocalNormalizedCrossCorrelationLoss(2, smooth_nr=0, smooth_dr=0)
    value = loss(x, flat)
    assert value.isfinite() and value < 0
    value.backward()
    assert x.grad.isfinite().all() and x.grad.norm() > 0
    close = FusedLocalNormalizedCrossCorrelationLoss(2, smooth_nr=0, smooth_dr=1e-9)
    torch.testing.assert_close(loss(x, y), close(x, y), rtol=1e-5, atol=1e-5)

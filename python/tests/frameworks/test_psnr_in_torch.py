# SPDX-License-Identifier: Apache-2.0
"""PSNR's own autograd.Function, beside the logarithm of mse() by torch's operators."""

import pytest
import torch

import similis

DEVICES = ["cpu"] + ["cuda"] * torch.cuda.is_available()
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
CLOSE = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float32: 1e-6, torch.float64: 1e-12}
MASKS = ["none", "weights", "bool"]


def images(device, dtype):
    torch.manual_seed(7)
    pair = torch.rand((2, 2, 3, 20, 21), dtype=torch.float64, device=device).to(dtype)
    return [each.requires_grad_() for each in pair]


def mask_of(name, device):
    torch.manual_seed(8)
    weights = torch.rand((2, 1, 20, 21), device=device)
    return {"none": None, "weights": weights, "bool": weights > 0.3}[name]


def composed(x, y, mask, reduction):
    """By torch alone, in f64."""
    error = (x.double() - y.double()).square()
    weights = torch.ones_like(error) if mask is None else mask.double().expand_as(error)
    axes = {"mean": (0, 1, 2, 3), "per_image": (1, 2, 3), "per_channel": (2, 3)}[reduction]
    return -10 * torch.log10((weights * error).sum(axes) / weights.sum(axes))


def distance(found, expected):
    return ((found.double() - expected).norm() / expected.norm()).item()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("reduction", ["mean", "per_image", "per_channel"])
def test_a_step_is_that_of_torch(device, dtype, mask, reduction):
    x, y = images(device, dtype)
    mask = mask_of(mask, device)
    value = similis.psnr(x, y, mask=mask, reduction=reduction)
    expected = composed(x, y, mask, reduction)
    assert value.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    torch.testing.assert_close(value.double(), expected, rtol=1e-6, atol=0)
    torch.testing.assert_close(value, similis.psnr(x.detach(), y.detach(), mask=mask,
                                                   reduction=reduction))
    upstream = torch.linspace(50, 100, value.numel(), device=device).reshape(value.shape)
    found = torch.autograd.grad(value, (x, y), upstream.to(value.dtype), retain_graph=True)
    again = torch.autograd.grad(value, (x, y), upstream.to(value.dtype))
    wanted = torch.autograd.grad(expected, (x, y), upstream.double())
    for one, other, right in zip(found, again, wanted):
        assert one.dtype == dtype and torch.equal(one, other)
        assert distance(one, right.double()) < CLOSE[dtype]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("which", [0, 1])
def test_one_image_alone_asks_for_its_gradient(device, which):
    pair = [each.detach() for each in images(device, torch.float32)]
    pair[which].requires_grad_()
    similis.psnr(*pair).backward()
    found, pair[which].grad = pair[which].grad, None
    composed(*pair, None, "mean").backward()
    assert distance(found, pair[which].grad.double()) < 1e-6
    assert pair[1 - which].grad is None


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("mask", MASKS)
def test_gradients_of_gradients(device, mask):
    mask, penalties = mask_of(mask, device), []
    for measure in similis.psnr, lambda x, y, mask: composed(x, y, mask, "mean"):
        x, y = images(device, torch.float64)
        gradient = torch.autograd.grad(measure(x, y, mask=mask), x, create_graph=True)[0]
        penalties.append(torch.autograd.grad(gradient.square().sum(), (x, y)))
    for found, expected in zip(*penalties):
        assert distance(found, expected) < 1e-10


@pytest.mark.parametrize("device", DEVICES)
def test_a_channel_of_no_weight_has_no_gradient(device):
    x, y = images(device, torch.float32)
    mask = torch.ones((2, 3, 20, 21), device=device)
    mask[1, 2] = 0
    value = similis.psnr(x, y, mask=mask, reduction="per_channel")
    assert torch.isnan(value[1, 2]) and torch.isnan(value).sum() == 1
    value.sum().backward()
    assert (x.grad[1, 2] == 0).all() and (x.grad[0] != 0).all()
    assert torch.isfinite(x.grad).all()
    x.grad = None
    similis.psnr(x, y, mask=torch.zeros((20, 21), device=device)).backward()
    assert (x.grad == 0).all()


def test_an_image_changed_before_the_backward_pass_is_refused():
    x, y = images("cpu", torch.float32)
    value = similis.psnr(x, y)
    with torch.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        value.backward()


def test_a_mask_that_asks_for_a_gradient_is_refused():
    x, y = images("cpu", torch.float32)
    mask = torch.ones((20, 21), requires_grad=True)
    with pytest.raises(ValueError, match="psnr: mask asks for a gradient; only x and y"):
        similis.psnr(x, y, mask=mask)
    with pytest.raises(ValueError, match="^psnr: "):
        similis.psnr(x, y, mask=torch.ones((20, 22)))
    with pytest.raises(ValueError, match="^psnr: "):
        similis.psnr(x.detach(), y.detach(), mask=torch.ones((20, 22)))

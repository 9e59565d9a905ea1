# SPDX-License-Identifier: Apache-2.0
"""Gradients of torch's tensors, of every order, and in every order of calls."""

import pytest

torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
import similis

SMALL = {"window_size": 5, "sigma": 1.2}
MEASURES = {
    "ssim": lambda x, y: similis.ssim(x, y, **SMALL),
    "ssim_loss_map": lambda x, y: similis.ssim_loss(
        x, y, padding="same", reduction="none", **SMALL
    ),
    "l1_ssim": lambda x, y: similis.l1_ssim(x, y, reduction="per_image", **SMALL),
    "ms_ssim": lambda x, y: similis.ms_ssim(x, y, weights=(0.4, 0.6), window_size=3),
    "mse": lambda x, y: similis.mse(x, y, reduction="per_channel"),
    "psnr": similis.psnr,
}


@pytest.mark.parametrize("name", MEASURES)
def test_first_and_second_derivatives(images, name):
    x, y = images(1, 2, 8, 7, dtype=torch.float64, requires_grad="xy")
    assert torch.autograd.gradcheck(MEASURES[name], (x, y), fast_mode=True)
    assert torch.autograd.gradgradcheck(MEASURES[name], (x, y), fast_mode=True)


def test_second_derivatives_of_volumes_and_masks(images):
    x, y = images(1, 1, 4, 6, 5, dtype=torch.float64, requires_grad="xy")
    valid = torch.ones(4, 6, 5, device=x.device)
    valid[1:3, 2:4, 2] = 0

    def measure(x, y):
        return similis.ssim(
            x, y, window_size=3, padding="reflect", mask=valid + 0.5, valid_mask=valid
        )

    assert torch.autograd.gradcheck(measure, (x, y), fast_mode=True)
    # On a GPU torch's own padding adds its gradients up in any order.
    assert torch.autograd.gradgradcheck(measure, (x, y), fast_mode=True, nondet_tol=1e-12)


SECOND_DERIVATIVES = {
    "valid": {},
    "wide_reflect": {"window_size": 13, "sigma": 3.0, "padding": "reflect"},
    "renormalize": {"padding": "renormalize", "reduction": "per_channel"},
    "masks": {"padding": "same", "masked": True},
}


@pytest.mark.parametrize("shape", [(2, 3, 33, 41), (1, 1, 13, 17, 15)], ids=["2d", "3d"])
@pytest.mark.parametrize("name", SECOND_DERIVATIVES)
def test_second_derivatives_in_f32_are_those_in_f64(images, relative_l2, name, shape):
    options = {"window_size": 11, "sigma": 1.5, **SECOND_DERIVATIVES[name]}
    if options.pop("masked", False):
        weights = torch.rand(shape[2:], generator=torch.Generator().manual_seed(1))
        options |= {"mask": weights, "valid_mask": (weights > 0.3).float()}
    x, y = images(*shape, dtype=torch.float64)

    def penalty_gradient(dtype):
        image = x.to(dtype).requires_grad_()
        on_device = {
            key: value.to(image.device) if isinstance(value, torch.Tensor) else value
            for key, value in options.items()
        }
        value = similis.ssim(image, y.to(dtype), **on_device).sum()
        (gradient,) = torch.autograd.grad(value, image, create_graph=True)
        return torch.autograd.grad(gradient.square().sum(), image)[0]

    assert relative_l2(penalty_gradient(torch.float32), penalty_gradient(torch.float64)) < 1e-5


def test_only_the_second_image_asks(images, relative_l2):
    x, y = images(1, 3, 24, 20)
    y.requires_grad_()
    similis.ssim(x, y).backward()
    other = y.detach().clone().requires_grad_()
    similis.ssim(other, x).backward()
    assert x.grad is None
    assert relative_l2(y.grad, other.grad) < 1e-6


def test_the_same_image_twice(images):
    x, _ = images(1, 1, 24, 20, requires_grad="x")
    value = similis.ssim(x, x)
    value.backward()
    assert value == 1
    assert x.grad.abs().max() < 1e-6


def test_backward_after_evaluation(images):
    """A call under no_grad leaves nothing behind."""
    x, y = images(1, 3, 24, 20, requires_grad="x")
    with torch.no_grad():
        evaluated = similis.ssim(x, y)
    assert not evaluated.requires_grad
    module = similis_module().eval()
    value = module(x, y)
    assert value == evaluated
    value.backward()
    assert x.grad.norm() > 0


def similis_module():
    from similis import nn

    return nn.SSIM()


@pytest.mark.parametrize("reduction", ["mean", "per_channel"])
def test_backward_twice(images, reduction):
    x, y = images(2, 3, 24, 20, requires_grad="xy")
    value = similis.ssim_loss(x, y, reduction=reduction).sum()
    first = torch.autograd.grad(3 * value, (x, y), retain_graph=True)
    kept = [gradient.clone() for gradient in first]
    second = torch.autograd.grad(5 * value, (x, y))
    for before, gradient, later in zip(kept, first, second):
        assert torch.equal(before, gradient), "the second pass wrote into the first one's result"
        torch.testing.assert_close(later, gradient * 5 / 3)


def test_gradients_are_multiplied_by_what_follows(images, relative_l2):
    x, y = images(1, 3, 24, 20, requires_grad="x")
    (plain,) = torch.autograd.grad(similis.ssim(x, y), x)
    (scaled,) = torch.autograd.grad(similis.ssim(x, y).double() ** 2 * 7, x)
    factor = 14 * similis.ssim(x, y).detach()
    assert relative_l2(scaled, plain * factor) < 1e-6


def test_inputs_that_changed_before_backward_are_an_error(images):
    x, y = images(1, 3, 24, 20, requires_grad="x")
    value = similis.ssim(x, y)
    y.add_(0.1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        value.backward()


def test_forward_mode(images):
    x, y = images(1, 2, 12, 11, dtype=torch.float64)
    direction = torch.ones_like(x) * x
    value, tangent = torch.func.jvp(lambda x: similis.ssim(x, y, **SMALL), (x,), (direction,))
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(similis.ssim(x, y, **SMALL), x)
    torch.testing.assert_close(tangent, (gradient * direction).sum())
    torch.testing.assert_close(value, similis.ssim(x, y, **SMALL))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x.detach(), direction)
        result = torch.autograd.forward_ad.unpack_dual(similis.ssim(dual, y, **SMALL))
    torch.testing.assert_close(result.tangent, tangent)


def test_vmap_is_a_loop(images):
    x, y = images(4, 2, 3, 12, 11)
    looped = torch.stack([similis.ssim(a, b, **SMALL) for a, b in zip(x, y)])
    torch.testing.assert_close(torch.vmap(lambda a, b: similis.ssim(a, b, **SMALL))(x, y), looped)
    one = torch.vmap(lambda a: similis.ssim(a, y[0], **SMALL))(x)
    torch.testing.assert_close(one[0], looped[0])
    gradient = torch.func.grad(lambda a, b: similis.ssim(a, b, **SMALL))
    by_vmap = torch.vmap(gradient)(x, y)
    torch.testing.assert_close(by_vmap[2], gradient(x[2], y[2]))


def test_hessian(images):
    x, y = images(1, 1, 4, 4, dtype=torch.float64)
    hessian = torch.func.hessian(lambda x: similis.ssim_loss(x, y, window_size=3))(x)
    assert hessian.reshape(16, 16).allclose(hessian.reshape(16, 16).T)
    assert hessian.norm() > 0


def test_errors_inside_transforms_are_the_library_s(images):
    x, y = images(3, 1, 1, 8, 8)
    with pytest.raises(ValueError, match="ssim: height is 8; with padding valid"):
        torch.vmap(similis.ssim)(x, y)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(images, dtype):
    """A network's half-precision output is compared with its f32 target in f32."""
    x, y = images(1, 3, 24, 20, requires_grad="x")
    with torch.autocast(x.device.type, dtype=dtype):
        output = torch.nn.functional.conv2d(x, torch.eye(3, device=x.device)[:, :, None, None])
        assert output.dtype == dtype
        value = similis.ssim(output, y)
        same = similis.ssim(x, y)
    assert value.dtype == torch.float32
    assert torch.equal(value, similis.ssim(x.to(dtype).float(), y))
    assert torch.equal(same, similis.ssim(x, y)), "f32 images are not rounded"
    value.backward()
    assert x.grad.norm() > 0
    with pytest.raises(ValueError, match="ssim: y is float32; it must be"):
        similis.ssim(x.to(dtype), y)

# SPDX-License-Identifier: Apache-2.0
"""Gradients of f16 and bf16 images, scaled while they wait for their upstream gradient."""

import functools

import pytest

torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
import similis
from similis._library import measures
from similis._torch import gradient_scaling
from similis._torch import measures as torch_measures

HALVES = [torch.float16, torch.bfloat16]
MEASURES = {  # and the range of the images
    "ssim": (1, similis.ssim),
    "padded": (1, lambda x, y: similis.ssim_loss(x, y, padding="replicate", window_size=(7, 11))),
    "l1_ssim": (1, lambda x, y: similis.l1_ssim(x, y, padding="reflect")),
    "wide_range": (255, lambda x, y: similis.l1_ssim(x, y, data_range=255)),
    "small_range": (1 / 64, lambda x, y: similis.ssim(x, y, data_range=1 / 64)),
    "lncc": (1, lambda x, y: similis.lncc_loss(x, y, window_size=7)),
    "lncc_of_levels": (400, lambda x, y: similis.lncc(x, y, window_size=(5, 9), signed=True)),
}


def gradients(measure, images, scale):
    return torch.autograd.grad(measure(*images) * scale, images)


def in_f64(images):
    return [image.detach().double().requires_grad_() for image in images]


@pytest.mark.parametrize("scale", [65536, 3000.0])
@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("dtype", HALVES)
def test_scaled_losses_agree_with_f64(images, relative_l2, dtype, name, scale):
    """Two roundings, in the norm below one of the largest size."""
    data_range, measure = MEASURES[name]
    pair = [(data_range * image).requires_grad_() for image in images(1, 3, 384, 384, dtype=dtype)]
    expected = gradients(measure, in_f64(pair), scale)
    for gradient, of_f64 in zip(gradients(measure, pair, scale), expected):
        assert gradient.dtype == dtype
        assert relative_l2(gradient, of_f64) < torch.finfo(dtype).eps


def test_losses_that_are_not_scaled(images, relative_l2):
    pair = images(1, 1, 24, 20, dtype=torch.float16, requires_grad="xy")
    expected = gradients(similis.ssim, in_f64(pair), 1)
    for gradient, of_f64 in zip(gradients(similis.ssim, pair, 1), expected):
        assert relative_l2(gradient, of_f64) < torch.finfo(torch.float16).eps


@pytest.mark.parametrize("shape", [(2, 3, 40, 30), (1, 2, 12, 16, 14)])
def test_a_loss_scale_that_is_a_power_of_2_rounds_nothing(images, shape):
    """As if the gradient had been computed in the backward pass."""
    pair = images(*shape, dtype=torch.float16, requires_grad="xy")
    text = measures.text("ssim", len(shape) - 2, padding="same", reduction="mean", form="loss")
    evaluate = functools.partial(torch_measures.evaluate, "ssim", text)
    factor = torch_measures._gradient_scale(text, pair[0], False)
    for scale in 4096, 65536:
        ahead, waiting = (
            gradients(
                functools.partial(evaluate, one_pass=one_pass),
                pair,
                scale,
            )
            for one_pass in (True, False)
        )
        for one, other in zip(ahead, waiting):
            smallest = torch.finfo(torch.float16).tiny * max(1, scale / factor)
            is_normal = other.abs() >= 2 * smallest  # both while it waits and in the result
            assert is_normal.sum() > 0.9 * other.numel()
            assert torch.equal(one[is_normal], other[is_normal])


@pytest.mark.parametrize("dtype", HALVES)
def test_what_waits(images, dtype):
    """One pass where the gradient has a bound, and for every measure in bf16."""
    x, y = images(1, 1, 192, 176, dtype=dtype, requires_grad="x")
    mask = torch.ones_like(y)
    is_wide = dtype == torch.bfloat16
    for value, waits in (
        (similis.ssim(x, y), True),
        (similis.l1_ssim(x, y, padding="same"), True),
        (similis.ssim(x, y, mask=mask), is_wide),
        (similis.ssim(x, y, valid_mask=mask), is_wide),
        (similis.ssim(x, y, k2=0), is_wide),
        (similis.ssim(x, y, reduction="sum"), is_wide),
        (similis.ssim(x, y, reduction="per_image"), False),
        (similis.ms_ssim(x, y), is_wide),
        (similis.mse(x, y), is_wide),
        (similis.lncc(x, y), True),
        (similis.lncc(x, y, gradient="ants"), True),
        (similis.lncc(x, y, mask=mask), is_wide),
        (similis.lncc(x, y, smooth_dr=1e-9), is_wide),
    ):
        assert (getattr(value.grad_fn, "gradients", None) is not None) == waits


@pytest.mark.parametrize("padding", ["valid", "same", "reflect", "replicate", "renormalize"])
@pytest.mark.parametrize("shape", [(1, 1, 30, 26), (1, 1, 11, 11), (1, 1, 14, 12, 16)])
def test_gradients_stay_below_their_bound(images, shape, padding):
    """The images with the steepest slopes are dark, of little contrast, and opposed to each other."""
    spatial = len(shape) - 2
    text = measures.text("ssim", spatial, padding=padding, reduction="mean", form="loss")
    bound = gradient_scaling.bound_of_one(text, spatial)
    measure = functools.partial(similis.ssim_loss, padding=padding)
    x, y = images(*shape, dtype=torch.float64)
    windows = similis.ssim(x, y, padding=padding, reduction="none").numel()
    for contrast in 0.003, 0.03, 0.3:
        waves = contrast * (x - x.mean())
        edge = torch.zeros_like(x)
        edge[..., 0], edge[..., 0, :] = contrast, contrast
        for one, other in ((waves, -waves), (waves, y), (edge, 0 * edge), (edge, -edge)):
            pair = [image.half().requires_grad_() for image in (one, other)]
            for gradient in gradients(measure, in_f64(pair), 1):
                assert windows * gradient.abs().max() < bound
            for gradient in measure(*pair).grad_fn.gradients[:2]:
                assert gradient.abs().max() < 2.0**15


@pytest.mark.parametrize("options", [
    {}, {"window": "gaussian"}, {"signed": True}, {"padding": "renormalize"}, {"gradient": "ants"},
])
@pytest.mark.parametrize("shape", [(1, 1, 30, 26), (1, 1, 14, 12, 16)])
def test_gradients_of_lncc_stay_below_their_bound(images, shape, options):
    """The steepest slopes are those of windows whose variance is about smooth_dr."""
    spatial = len(shape) - 2
    text = measures.text("lncc", spatial, window_size=5, reduction="mean", weight=-1.0, **options)
    bound = gradient_scaling.bound_of_one(text, spatial)
    measure = functools.partial(similis.lncc_loss, window_size=5, **options)
    x, y = images(*shape, dtype=torch.float64)
    steepest = 0
    for contrast in 0.001, 0.003, 0.01, 0.1:
        waves = contrast * (x - x.mean())
        for other in (-waves, y - y.mean(), waves + contrast * y, contrast * y):
            pair = [image.half().requires_grad_() for image in (waves, other)]
            for gradient in gradients(measure, in_f64(pair), 1):
                steepest = max(steepest, x.numel() * gradient.abs().max().item())
            for gradient in measure(*pair).grad_fn.gradients[:2]:
                assert gradient.abs().max() < 2.0**15
    assert bound / 1000 < steepest < bound


@pytest.mark.parametrize("dtype", HALVES)
def test_backward_twice_in_half_precision(images, dtype):
    x, y = images(1, 3, 40, 30, dtype=dtype, requires_grad="xy")
    value = similis.ssim_loss(x, y)
    first = torch.autograd.grad(1024 * value, (x, y), retain_graph=True)
    kept = [gradient.clone() for gradient in first]
    second = torch.autograd.grad(1024 * value, (x, y))
    for before, gradient, later in zip(kept, first, second):
        assert torch.equal(before, gradient), "the second pass wrote into the first one's result"
        assert torch.equal(later, gradient)


@pytest.mark.parametrize("dtype", HALVES)
def test_under_a_profiler_the_gradient_is_the_same(images, dtype):
    """There torch multiplies, on a GPU by a factor rounded to half precision if one lets it."""
    x, y = images(1, 1, 256, 256, dtype=dtype, requires_grad="x")
    (plain,) = gradients(lambda x: similis.ssim(x, y), [x], 3000.0)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        (profiled,) = gradients(lambda x: similis.ssim(x, y), [x], 3000.0)
    assert torch.equal(plain, profiled)


def test_second_derivatives_in_half_precision(images):
    x, y = images(1, 1, 24, 20, dtype=torch.float16, requires_grad="x")
    (gradient,) = torch.autograd.grad(similis.ssim(x, y) * 1024, x, create_graph=True)
    (second,) = torch.autograd.grad(gradient.float().square().sum(), x)
    assert second.isfinite().all() and second.abs().max() > 0


def test_graphs_capture_the_gradient_scale(images, relative_l2):
    x, y = images(1, 1, 64, 64, dtype=torch.float16, requires_grad="x")
    if not x.is_cuda:
        pytest.skip("there are graphs on a GPU alone")
    expected = gradients(lambda x: similis.ssim(x, y), [x], 65536)[0]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        (captured,) = gradients(lambda x: similis.ssim(x, y), [x], 65536)
    for _ in range(2):
        captured.zero_()
        graph.replay()
        assert relative_l2(captured, expected) < 1e-6

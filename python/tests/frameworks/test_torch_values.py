# SPDX-License-Identifier: Apache-2.0
"""Values and gradients of torch's tensors, against the measures composed of torch's operators."""

import itertools
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
import similis
from similis._functions import dispatch
from similis._library import measures
from similis._torch import binding, decomposition
from similis._torch import measures as torch_measures

PADDINGS = ["valid", "same", "reflect", "replicate", "renormalize"]
REDUCTIONS = ["mean", "sum", "none", "per_image", "per_channel"]


@pytest.fixture
def composed(monkeypatch):
    """composed(measure, x, y, …): without the library's kernels."""

    def call(measure, *arguments, **options):
        compositions = []

        def evaluate(*arguments):
            compositions.append(arguments)
            return decomposition.evaluate(*arguments)

        with monkeypatch.context() as patched:
            patched.setattr(dispatch, "evaluate_plainly", lambda *arguments: None)
            patched.setattr(torch_measures, "is_transformed", lambda: True)
            patched.setattr(torch_measures, "decomposition", SimpleNamespace(evaluate=evaluate))
            value = measure(*arguments, **options)
        assert compositions
        return value

    return call


def gradients(value, *images):
    weights = torch.linspace(0.5, 1.5, value.numel(), device=value.device).reshape(value.shape)
    return torch.autograd.grad((value * weights).sum(), images)


def agree(composed, measure, x, y, tolerance=2e-6, **options):
    ours, theirs = measure(x, y, **options), composed(measure, x, y, **options)
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape and ours.device == x.device
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)
    for own, other in zip(gradients(ours, x, y), gradients(theirs, x, y)):
        assert own.dtype == x.dtype
        assert (own.double() - other.double()).norm() <= 10 * tolerance * other.double().norm()


@pytest.mark.parametrize("padding, reduction", [*itertools.product(PADDINGS, REDUCTIONS)])
def test_ssim_under_every_padding_and_reduction(images, composed, padding, reduction):
    x, y = images(2, 3, 19, 23, requires_grad="xy")
    for measure in similis.ssim, similis.ssim_loss:
        agree(composed, measure, x, y, padding=padding, reduction=reduction)


@pytest.mark.parametrize("padding", PADDINGS)
def test_masks(images, composed, padding):
    x, y = images(2, 2, 17, 21, requires_grad="xy")
    mask = torch.rand(17, 21, generator=torch.Generator().manual_seed(1)).to(x.device)
    valid = (torch.rand(2, 1, 17, 21, generator=torch.Generator().manual_seed(2)) > 0.3).to(
        x.device
    )
    for masks in {"mask": mask}, {"valid_mask": valid}, {"mask": mask, "valid_mask": valid}:
        for reduction in "mean", "per_image":
            agree(composed, similis.ssim, x, y, padding=padding, reduction=reduction, **masks)
    agree(composed, similis.l1_ssim, x, y, padding=padding, mask=mask, valid_mask=valid)


def test_pixels_that_do_not_exist_may_be_nan(images):
    x, y = images(1, 1, 16, 16)
    valid = torch.ones(16, 16, device=x.device)
    valid[3:6, 4:9] = 0
    x[..., 3:6, 4:9] = float("nan")
    x.requires_grad_()
    value = similis.ssim(x, y, valid_mask=valid)
    value.backward()
    assert value.isfinite() and x.grad.isfinite().all()
    assert (x.grad[..., 3:6, 4:9] == 0).all()


def test_volumes_with_a_window_for_each_axis(images, composed):
    x, y = images(1, 2, 9, 14, 13, requires_grad="xy")
    options = {"window_size": (3, 5, 7), "sigma": (0.8, 1.0, 1.5)}
    for padding in PADDINGS:
        agree(composed, similis.ssim, x, y, padding=padding, **options)
    agree(composed, similis.l1_ssim, x, y, padding="same", weight=0.3, **options)


@pytest.mark.parametrize("downsample", ["vainf", "ceil", "floor", "piq"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "per_image", "per_channel"])
def test_ms_ssim(images, composed, downsample, reduction):
    x, y = images(2, 2, 45, 39, requires_grad="xy")
    options = {"window_size": 5, "weights": (0.3, 0.3, 0.4), "downsample": downsample}
    for measure in similis.ms_ssim, similis.ms_ssim_loss:
        agree(composed, measure, x, y, reduction=reduction, **options)


@pytest.mark.parametrize("downsample", ["vainf", "ceil", "floor", "piq"])
def test_ms_ssim_of_an_axis_of_one_voxel(images, composed, downsample):
    x, y = images(1, 2, 9, 11, 1, requires_grad="xy")
    options = {"window_size": (3, 3, 1), "weights": (0.4, 0.6), "padding": "same"}
    if downsample == "floor":
        options["weights"] = (1.0,)  # nothing is left of one voxel
    agree(composed, similis.ms_ssim, x, y, downsample=downsample, **options)


def test_errors_of_pixels(images, composed):
    x, y = images(2, 3, 7, 5, requires_grad="xy")
    for measure, reduction in itertools.product(
        (similis.mse, similis.mae), ("mean", "sum", "per_image", "per_channel")
    ):
        agree(composed, measure, x, y, reduction=reduction)
    decibels = 10 * torch.log10(4 / ((x.double() - y.double()) ** 2).mean())
    torch.testing.assert_close(similis.psnr(x, y, data_range=2), decibels.float())
    (gradient,) = torch.autograd.grad(similis.psnr(x, y), x)
    (expected,) = torch.autograd.grad(decibels, x)
    torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_dtypes(images, composed, dtype):
    x, y = images(1, 3, 24, 20, dtype=dtype, requires_grad="xy")
    tolerance = max(torch.finfo(dtype).eps, 1e-6) / 2
    agree(composed, similis.ssim_loss, x, y, tolerance=tolerance)
    assert similis.ssim(x, y).dtype == (dtype if dtype == torch.float64 else torch.float32)


def test_integers_have_values_in_their_own_range(images, composed):
    x, y = [(255 * image).to(torch.uint8) for image in images(1, 3, 24, 20)]
    torch.testing.assert_close(similis.ssim(x, y), composed(similis.ssim, x, y), rtol=1e-6, atol=0)
    scaled = similis.ssim(x.double() / 255, y.double() / 255)
    torch.testing.assert_close(similis.ssim(x, y).double(), scaled, rtol=1e-6, atol=0)


def test_scaled_losses_in_half_precision_keep_their_gradients(images):
    """Gradients of a mean are below f16's range until the loss is scaled."""
    x, y = images(4, 3, 128, 128, dtype=torch.float16, requires_grad="x")
    (similis.ssim_loss(x, y) * 65536).backward()
    full = x.detach().float().requires_grad_()
    (similis.ssim_loss(full, y.float()) * 65536).backward()
    assert (x.grad.float() - full.grad).norm() < 1e-3 * full.grad.norm()


def strided(name, image):
    """An image with the same elements, elsewhere in memory."""
    if name == "channels_last":
        return image.contiguous(memory_format=torch.channels_last)
    if name == "permuted":
        return image.permute(3, 1, 0, 2).contiguous().permute(2, 1, 3, 0)
    if name == "cropped":
        wide = torch.full((*image.shape[:2], 40, 41), 9.0, device=image.device)
        wide[..., 3:27, 5:27] = image
        return wide[..., 3:27, 5:27]
    if name == "flipped":
        return image.flip(2).flip(2)
    return image[:, :1].expand(-1, 3, -1, -1)


@pytest.mark.parametrize("name", ["channels_last", "permuted", "cropped", "flipped", "expanded"])
def test_strides_change_nothing(images, name):
    x, y = images(2, 3, 24, 22)
    if name == "expanded":
        x, y = [image[:, :1].expand(-1, 3, -1, -1).contiguous() for image in (x, y)]
    other_x, other_y = strided(name, x), strided(name, y)
    assert torch.equal(other_x, x)
    for measure in similis.ssim, similis.mse, similis.l1_ssim:
        assert measure(other_x, y) == measure(x, other_y) == measure(x, y)
    dense, other = x.clone().requires_grad_(), other_x.detach().requires_grad_()
    similis.ssim(dense, y).backward()
    similis.ssim(other, other_y).backward()
    torch.testing.assert_close(other.grad, dense.grad)


def test_both_bindings_give_the_same_bits(images):
    x, y = images(2, 3, 24, 22)
    mask = x[:, :1].contiguous()
    if binding.BINDING != "direct":
        pytest.skip("ctypes is the binding")
    call = binding.direct_functions()[0]
    measure = measures.parse(
        measures.text("ssim", 2, padding="valid", reduction="mean", form="loss")
    )
    results = []
    for run in binding.run_measure_by_ctypes, binding.run_measure_directly(call):
        value, gradient = x.new_empty(()), torch.empty_like(x)
        run(measure, x, y, mask, None, x.new_tensor(3.0), value, gradient, None)
        results.append((value, gradient))
    assert torch.equal(results[0][0], results[1][0]) and torch.equal(results[0][1], results[1][1])


def test_binding_is_the_one_that_was_asked_for():
    import os

    wanted = os.environ.get("SIMILIS_BINDING", "auto")
    assert wanted == "auto" or dispatch.for_torch().BINDING == wanted


def test_composition_is_not_what_is_tested(images):
    """The comparisons above compare two things."""
    x, y = images(1, 1, 16, 16, requires_grad="x")
    assert "Evaluation" in type(similis.ssim(x, y).grad_fn).__name__
    assert (
        "Evaluation"
        not in type(
            decomposition.evaluate(
                x, y, None, None, measures.parse("mse reduction=mean")
            ).grad_fn
        ).__name__
    )

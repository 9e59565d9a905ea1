# SPDX-License-Identifier: Apache-2.0
"""value_and_gradient() of torch's tensors: the bits that backward() gives, without autograd."""

import functools

import pytest

torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
import similis
from similis._functions import dispatch
from similis._functions.value_and_gradient import _WITH_GRADIENT
from similis._library import range_warning

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
CALLS = {
    **{each.__name__: each for each in _WITH_GRADIENT},
    "a map": functools.partial(similis.ssim, reduction="none"),
    "per_image": functools.partial(similis.l1_ssim, reduction="per_image", padding="reflect"),
    "per_channel": functools.partial(similis.lncc, reduction="per_channel", window_size=5),
    "decibels of each channel": functools.partial(similis.psnr, reduction="per_channel"),
    "decibels of 255": functools.partial(similis.psnr, data_range=255.0),
    "a sum": functools.partial(similis.mae, reduction="sum"),
    "ants": functools.partial(similis.lncc_loss, gradient="ants"),
}
MASKED = {
    **{name: getattr(similis, name) for name in ("ssim", "l1_ssim", "ms_ssim", "lncc", "mse", "psnr")},
    "mutual_information": similis.mutual_information,
    "decibels of each image": functools.partial(similis.psnr, reduction="per_image"),
}


def images(dtype=torch.float32, device="cpu", side=176):
    generator = torch.Generator().manual_seed(3)
    x, noise = torch.rand((2, 2, 2, side + 4, side), generator=generator)
    return x.to(device, dtype), (0.7 * x + 0.3 * noise).to(device, dtype)


def by_autograd(measure, x, y, wrt, **options):
    variables = [x.clone().requires_grad_(wrt != "y"), y.clone().requires_grad_(wrt != "x")]
    value = measure(*variables, **options)
    value.sum().backward()
    return value, *[each.grad for each in variables if each.grad is not None]


def require_equal(found, wanted):
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted):
        assert one.dtype == other.dtype and one.shape == other.shape
        assert torch.equal(one, other) and not one.requires_grad


@pytest.fixture
def alone(monkeypatch):
    """Makes autograd raise."""
    if dispatch.evaluate_plainly is dispatch._not_plainly:
        return

    def refuse(*_, **__):
        raise AssertionError("autograd was used")

    monkeypatch.setattr(dispatch.for_torch(), "by_autograd", refuse)


def side_of(name):
    return 176 if "ms_ssim" in name else 40


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLS)
def test_measures(name, dtype, device, alone):
    x, y = images(dtype, device, side_of(name))
    for wrt in "x", "y", "both":
        found = similis.value_and_gradient(CALLS[name], x, y, wrt=wrt)
        require_equal(found, by_autograd(CALLS[name], x, y, wrt))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MASKED)
def test_masks(name, dtype, device, alone):
    x, y = images(dtype, device, side_of(name))
    mask = (torch.rand(x.shape[2:], generator=torch.Generator().manual_seed(4)) > 0.3).to(device)
    for weights in mask, mask.float():
        found = similis.value_and_gradient(MASKED[name], x, y, mask=weights)
        require_equal(found, by_autograd(MASKED[name], x, y, "x", mask=weights))
    if name in ("ssim", "lncc"):
        found = similis.value_and_gradient(MASKED[name], x, y, valid_mask=mask)
        require_equal(found, by_autograd(MASKED[name], x, y, "x", valid_mask=mask))


@pytest.mark.parametrize("device", DEVICES)
def test_a_mask_without_weight(device, alone):
    x, y = images(device=device, side=24)
    nothing = torch.zeros(x.shape[2:], device=device)
    for measure in similis.mse, similis.psnr, similis.ssim:
        value, gradient = similis.value_and_gradient(measure, x, y, mask=nothing)
        assert value.isnan() and not gradient.any()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("measure", [similis.ssim, similis.lncc_loss, similis.mse, similis.psnr])
def test_strided_images(measure, dtype, device, alone):
    x, y = images(dtype, device, 40)
    for view in (
        lambda each: each.transpose(2, 3),
        lambda each: each[..., 1::2],
        lambda each: each[:1].expand(3, -1, -1, -1),
        lambda each: each.contiguous(memory_format=torch.channels_last),
    ):
        variable = view(x).detach().requires_grad_()
        value = measure(variable, view(y))
        value.backward()
        require_equal(similis.value_and_gradient(measure, view(x), view(y)), (value, variable.grad))


@pytest.mark.parametrize("device", DEVICES)
def test_volumes_and_layouts(device):
    """Layouts that have to be rearranged go by autograd, with the shape that the images have."""
    x, y = images(device=device, side=16)
    volumes = [each.reshape(1, 2, 10, 8, 8) for each in (x, y)]
    for pair, options in (
        (volumes, {"window_size": 3}),
        ((x[0, 0], y[0, 0]), {}),
        ((x[0], y[0]), {}),
        ((x.movedim(1, -1), y.movedim(1, -1)), {"channel_axis": -1}),
    ):
        found = similis.value_and_gradient(similis.ssim, *pair, **options)
        require_equal(found, by_autograd(similis.ssim, *pair, "x", **options))
        assert found[1].shape == pair[0].shape
    found = similis.value_and_gradient(similis.psnr, x[0], y[0])
    require_equal(found, by_autograd(similis.psnr, x[0], y[0], "x"))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("measure", [similis.ssim, similis.l1_ssim, similis.lncc])
def test_sums_of_parts(measure, device):
    """Their values are f64, in which a GPU's two kernels differ; autograd takes one after the other."""
    x, y = images(device=device, side=40)
    options = {"sums": True, "window_size": 7}
    found = similis.value_and_gradient(measure, x, y, **options)
    require_equal(found, by_autograd(measure, x, y, "x", **options))


def test_a_part_s_mutual_information():
    x, y = images(side=16)
    limits = torch.tensor([0.0, 1.0, 0.0, 1.0], dtype=torch.float64).expand(2, 2, 4).contiguous()
    options = {"limits": limits, "histogram": similis.histogram(x, y, limits=limits)}
    found = similis.value_and_gradient(similis.mutual_information, x, y, **options)
    require_equal(found, by_autograd(similis.mutual_information, x, y, "x", **options))


@pytest.mark.parametrize("device", DEVICES)
def test_autograd_knows_nothing_of_it(device, alone):
    """Neither of variables, nor where gradients are or are not recorded; the images stay."""
    x, y = images(device=device, side=24)
    wanted = by_autograd(similis.ssim, x, y, "x")
    kept = x.clone()
    variable = x.clone().requires_grad_()
    require_equal(similis.value_and_gradient(similis.ssim, variable, y), wanted)
    with torch.no_grad():
        require_equal(similis.value_and_gradient(similis.ssim, x, y), wanted)
    with torch.inference_mode():
        require_equal(similis.value_and_gradient(similis.ssim, x, y), wanted)
    assert torch.equal(variable, kept) and variable.grad is None


def test_without_gradients_recorded_autograd_serves_layouts():
    x, y = images(side=24)
    with torch.no_grad():
        found = similis.value_and_gradient(similis.ssim, x[0, 0], y[0, 0])
    require_equal(found, by_autograd(similis.ssim, x[0, 0], y[0, 0], "x"))


def test_other_layouts_take_one_pass_too(alone):
    x, y = images(side=24)
    for pair, options in (
        ((x[0, 0], y[0, 0]), {}),
        ((x[0], y[0]), {}),
        ((x.movedim(1, -1), y.movedim(1, -1)), {"channel_axis": -1}),
        ((x.half()[0, 0], y.half()[0, 0]), {"reduction": "per_image"}),
    ):
        found = similis.value_and_gradient(similis.ssim, *pair, wrt="both", **options)
        require_equal(found, by_autograd(similis.ssim, *pair, "both", **options))


def test_partial_takes_options_and_wrt():
    x, y = images(side=24)
    measure = functools.partial(similis.ssim, window_size=7)
    found = similis.value_and_gradient(measure, x, y, wrt="y", sigma=2.0)
    require_equal(found, by_autograd(similis.ssim, x, y, "y", window_size=7, sigma=2.0))


def test_errors_are_the_measure_s():
    x, y = images(side=24)
    negative = -torch.ones(x.shape[2:])
    for measure, other, options in [
        (similis.ssim, y[:1], {}),
        (similis.psnr, y[:1], {}),
        (similis.ssim, y.numpy(), {}),
        (similis.ssim, y.double(), {}),
        (similis.ssim, y, {"window_size": 4}),
        (similis.ssim, y, {"windows": 3}),
        (similis.psnr, y, {"mask": negative}),
        (similis.lncc, y, {"mask": negative}),
        (similis.mse, y, {"mask": torch.ones(x.shape[2:], requires_grad=True)}),
    ]:
        with pytest.raises((ValueError, TypeError)) as wanted:
            measure(x, other, **options)
        with pytest.raises(wanted.type) as caught:
            similis.value_and_gradient(measure, x, other, **options)
        assert str(caught.value) == str(wanted.value)
    with pytest.raises(ValueError, match="value_and_gradient: wrt is 'z'; it must be x, y or both"):
        similis.value_and_gradient(similis.ssim, x, y, wrt="z")
    bytes_ = x.to(torch.uint8)
    for measure in similis.ssim, similis.psnr:
        with pytest.raises(ValueError, match=f"{measure.__name__}: .* the images are uint8; gradients need"):
            similis.value_and_gradient(measure, bytes_, bytes_)


def test_out_of_range_images_warn(monkeypatch):
    monkeypatch.setattr(range_warning, "_warned", set())
    x, y = images(side=256)
    for measure in similis.ssim, similis.psnr:
        with pytest.warns(UserWarning, match="data_range"):
            similis.value_and_gradient(measure, 255 * x, 255 * y)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_a_graph_captures_it(alone):
    x, y = images(device="cuda", side=64)
    for measure in similis.ssim, similis.psnr, similis.lncc_loss:
        for dtype in torch.float32, torch.float16:
            static_x, static_y = x.to(dtype, copy=True), y.to(dtype)
            similis.value_and_gradient(measure, static_x, static_y)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                found = similis.value_and_gradient(measure, static_x, static_y)
            static_x.copy_(x.flip(3))
            graph.replay()
            require_equal(found, by_autograd(measure, x.flip(3).to(dtype), static_y, "x"))

# SPDX-License-Identifier: Apache-2.0
"""Weights that are none, and measures of nothing: never a good score."""

import functools

import numpy
import pytest

torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
import similis

def at_two_levels(function):
    return lambda x, y, **options: function(x, y, window_size=3, weights=(0.4, 0.6), **options)


# The measure and the loss, if there are both.
MEASURES = {
    "mse": (similis.mse, None),
    "mae": (similis.mae, None),
    "psnr": (similis.psnr, None),
    "ms_ssim": (at_two_levels(similis.ms_ssim), at_two_levels(similis.ms_ssim_loss)),
    "ssim": (similis.ssim, similis.ssim_loss),
    "l1_ssim": (None, similis.l1_ssim),
    "lncc": (similis.lncc, similis.lncc_loss),
    "mutual_information": (similis.mutual_information, similis.mutual_information_loss),
}
MASKS = [
    (name, mask)
    for name in MEASURES
    for mask in ("mask", "valid_mask")
    if mask == "mask" or name in ("ssim", "l1_ssim", "lncc")
]
EMPTY = pytest.mark.parametrize("name, mask", MASKS)


def both(name):
    """The measure and the loss, or the one that there is."""
    return [each for each in MEASURES[name] if each is not None]


@EMPTY
@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
def test_weights_that_are_none(images, name, mask, bad):
    x, y = images(2, 1, 16, 16, requires_grad="x")
    weights = torch.ones(16, 16, device=x.device)
    weights[9, 9] = bad
    for measure in both(name):
        if x.is_cuda:
            if bad != float("inf"):
                value = measure(x, y, **{mask: weights})
                value.backward()
                assert value.isnan() and x.grad.isnan().any()
            continue
        words = rf"^{name}: {mask} holds {bad:g}; each weight must be a finite number of 0 or more"
        for kind in (torch.Tensor.detach, lambda each: each, lambda each: each.detach().numpy()):
            arrays = kind(x), kind(y)
            own = weights if isinstance(arrays[0], torch.Tensor) else weights.numpy()
            with pytest.raises(ValueError, match=words):
                measure(*arrays, **{mask: own})


@EMPTY
def test_a_measure_of_nothing(images, name, mask):
    x, y = images(2, 1, 16, 16, requires_grad="xy")
    nothing = {mask: torch.zeros(16, 16, device=x.device)}
    for reduction in "mean", "per_image", "per_channel":
        for measure in both(name):
            value = measure(x, y, reduction=reduction, **nothing)
            if measure is MEASURES[name][0]:
                assert value.isnan().all()
            else:
                assert (value == 0).all()
            for gradient in torch.autograd.grad(value.sum(), (x, y)):
                assert (gradient == 0).all()
    if not x.is_cuda:
        arrays = x.detach().numpy(), y.detach().numpy()
        own = {mask: nothing[mask].numpy()}
        if MEASURES[name][1]:
            assert MEASURES[name][1](*arrays, **own) == 0
        if MEASURES[name][0]:
            assert numpy.isnan(MEASURES[name][0](*arrays, **own))


@EMPTY
def test_a_mean_leaves_out_an_image_without_weights(images, name, mask):
    x, y = images(3, 1, 16, 16)
    weights = torch.ones(3, 1, 16, 16, device=x.device)
    weights[1] = 0
    measure, loss = MEASURES[name]
    kept = [0, 2]
    if measure:
        each = measure(x, y, reduction="per_image", **{mask: weights})
        assert each.isnan().tolist() == [False, True, False]
        alone = measure(x[kept], y[kept], reduction="per_image")
        torch.testing.assert_close(each[kept], alone)
    of_all = loss or measure
    torch.testing.assert_close(of_all(x, y, **{mask: weights}), of_all(x[kept], y[kept]))


@pytest.mark.parametrize("measure", [similis.ssim, similis.ssim_loss, similis.lncc])
def test_in_a_map_a_pixel_that_does_not_exist_is_nan(images, measure):
    x, y = images(1, 1, 16, 16, requires_grad="x")
    valid = torch.ones(16, 16, device=x.device)
    valid[3:6, 4:12] = 0
    map = measure(x, y, padding="same", reduction="none", valid_mask=valid)
    assert torch.equal(map[0, 0].isnan(), valid == 0)
    map.nansum().backward()
    assert x.grad.isfinite().all() and (x.grad[0, 0][valid == 0] == 0).all()


@EMPTY
def test_the_decomposition_agrees(images, name, mask):
    """vmap and second derivatives."""
    x, y = images(3, 1, 16, 16, dtype=torch.float64)
    weights = torch.rand(3, 1, 16, 16, dtype=torch.float64).to(x.device)
    weights[1] = 0
    for measure in both(name):

        def of_one(a, b, w):
            return measure(a[None], b[None], **{mask: w[None]})

        composed = torch.func.vmap(of_one)(x, y, weights)
        direct = torch.stack([of_one(*each) for each in zip(x, y, weights)])
        torch.testing.assert_close(composed, direct, rtol=2e-6, atol=2e-6, equal_nan=True)
        gradient = torch.func.vmap(torch.func.grad(of_one))(x, y, weights)
        assert gradient.isfinite().all() and (gradient[1] == 0).all()
        for bad in -1.0, float("nan"), float("inf"):
            spoilt = weights.clone()
            spoilt[2, 0, 8, 8] = bad
            values = torch.func.vmap(of_one)(x, y, spoilt)
            assert values[2].isnan() and values[0].isfinite()
            gradient = torch.func.vmap(torch.func.grad(of_one))(x, y, spoilt)
            assert gradient[2].isnan().any() and gradient[0].isfinite().all()


ERRORS = {"mse": lambda d: d**2, "mae": lambda d: d.abs()}


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("reduction", ["mean", "sum", "per_image", "per_channel"])
def test_weighted_errors_are_the_definition(images, reduction, dtype):
    """Compares errors of floats, and their gradients, with torch's own operators in f64."""
    x, y = images(2, 3, 16, 19, dtype=dtype, requires_grad="xy")
    weights = torch.rand(2, 1, 16, 19).to(x.device)
    weights[0, 0, 3:9] = 0
    axes = {"per_image": (1, 2, 3), "per_channel": (2, 3)}.get(reduction, (0, 1, 2, 3))
    for name, error in ERRORS.items():
        given = [each.detach().double().requires_grad_() for each in (x, y)]
        wide = weights.double().expand(x.shape)
        expected = (wide * error(given[0] - given[1])).sum(axes)
        if reduction != "sum":
            expected = expected / wide.sum(axes)
        value = getattr(similis, name)(x, y, mask=weights, reduction=reduction)
        torch.testing.assert_close(value.double(), expected, rtol=1e-6, atol=0)
        upstream = torch.rand_like(expected) + 0.5
        own = torch.autograd.grad((value * upstream).sum(), (x, y))
        wanted = torch.autograd.grad((expected * upstream).sum(), given)
        bound = {torch.float16: 2e-3, torch.float32: 1e-6, torch.float64: 1e-12}[dtype]
        for actual, by in zip(own, wanted):
            assert (actual.double() - by).norm() <= bound * by.norm()


def test_psnr_and_integers_under_a_mask():
    generator = numpy.random.default_rng(0)
    x, y = (generator.integers(0, 256, (2, 3, 16, 19), "uint8") for _ in range(2))
    weights = generator.random((16, 19)).astype("float32")
    squares = (x.astype(float) - y) ** 2
    error = (squares * weights).sum((2, 3)) / weights.sum(dtype=float)
    expected = 10 * numpy.log10(255**2 / error)
    for kind in numpy.asarray, torch.from_numpy:
        value = similis.psnr(kind(x), kind(y), mask=kind(weights), reduction="per_channel")
        numpy.testing.assert_allclose(value, expected, rtol=1e-6)
    wide = [each.astype("int32") * 1000 for each in (x, y)]
    value = similis.mse(*wide, mask=weights > 0.5)
    kept = (weights > 0.5) & numpy.ones_like(x, bool)
    assert value == pytest.approx(1e6 * squares[kept].mean(), rel=1e-12)


@pytest.mark.parametrize("name", ["mse", "mae", "psnr"])
def test_a_pixel_of_weight_0_may_hold_anything(images, name):
    x, y = images(1, 2, 16, 19, requires_grad="x")
    weights = torch.ones(16, 19, device=x.device)
    weights[4:7, 5:9] = 0
    expected = getattr(similis, name)(x, y, mask=weights)
    spoilt = x.detach().clone()
    spoilt[..., 4:7, 5:9] = float("nan")
    spoilt.requires_grad_()
    value = getattr(similis, name)(spoilt, y, mask=weights)
    assert value == expected
    value.backward()
    assert spoilt.grad.isfinite().all() and (spoilt.grad[..., 4:7, 5:9] == 0).all()


def test_a_mask_of_ms_ssim_weighs_each_level(images):
    """Compares two levels with SSIM and its contrast by the decomposition in f64."""
    x, y = images(2, 3, 30, 34, dtype=torch.float64, requires_grad="x")
    weights = torch.rand(2, 1, 30, 34, dtype=torch.float64).to(x.device)
    options = {"window_size": 5, "weights": (0.3, 0.7), "mask": weights}
    value = similis.ms_ssim(x, y, **options)
    (by_x,) = torch.autograd.grad(value, x)

    def of_batch(a, b, w):
        return similis.ms_ssim(a[None], b[None], **{**options, "mask": w[None]}, reduction="mean")

    composed = torch.func.vmap(of_batch)(x, y, weights).mean()
    torch.testing.assert_close(composed, value, rtol=1e-9, atol=0)
    (by_composed,) = torch.autograd.grad(composed, x)
    torch.testing.assert_close(by_composed, by_x, rtol=1e-7, atol=1e-12)
    pooled = torch.nn.functional.avg_pool2d
    second = similis.ssim(pooled(x, 2), pooled(y, 2), window_size=5, mask=pooled(weights, 2))
    one_level = {**options, "weights": (0.0, 1.0), "reduction": "per_channel"}
    each = similis.ms_ssim(x, y, **one_level)
    per_channel = similis.ssim(
        pooled(x, 2), pooled(y, 2), window_size=5, mask=pooled(weights, 2), reduction="per_channel"
    )
    torch.testing.assert_close(each, per_channel, rtol=1e-9, atol=0)
    assert second.isfinite()


def test_ones_as_a_mask_change_nothing(images):
    x, y = images(2, 3, 24, 28)
    ones = torch.ones(24, 28, dtype=torch.bool, device=x.device)
    for name in ("mse", "mae", "psnr", "ms_ssim"):
        measure = MEASURES[name][0]
        torch.testing.assert_close(measure(x, y, mask=ones), measure(x, y), rtol=1e-6, atol=0)
        if not x.is_cuda:
            arrays = x.numpy(), y.numpy()
            assert measure(*arrays, mask=ones.numpy()) == pytest.approx(measure(*arrays), rel=1e-6)


def test_value_and_gradient_of_psnr_is_torch_s(images):
    x, y = images(2, 3, 16, 19, requires_grad="xy")
    if x.is_cuda:
        pytest.skip("NumPy's arrays are on the CPU")
    weights = torch.rand(16, 19)
    arrays = x.detach().numpy(), y.detach().numpy()
    for reduction in "mean", "per_image", "per_channel":
        for mask in None, weights:
            value = similis.psnr(x, y, mask=mask, reduction=reduction)
            expected = torch.autograd.grad(value.sum(), (x, y))
            own = similis.value_and_gradient(
                functools.partial(similis.psnr, reduction=reduction),
                *arrays,
                wrt="both",
                mask=None if mask is None else mask.numpy(),
            )
            numpy.testing.assert_allclose(own[0], value.detach(), rtol=1e-6)
            for actual, wanted in zip(own[1:], expected):
                numpy.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-9)
    nothing = numpy.zeros((16, 19), "float32")
    value, gradient = similis.value_and_gradient(similis.psnr, *arrays, mask=nothing)
    assert numpy.isnan(value) and not gradient.any()

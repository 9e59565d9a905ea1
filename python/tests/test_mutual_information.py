# SPDX-License-Identifier: Apache-2.0
"""Mutual information in torch, NumPy and JAX, and FireANTs' loss on it."""

import math

import numpy
import pytest

import similis
from similis._library import measures

RNG = numpy.random.default_rng(5)


def arrays(*shape, dtype="float64"):
    x = RNG.random(shape)
    y = 0.7 * numpy.sin(3 * x) + 0.3 * RNG.random(shape)
    return x.astype(dtype), y.astype(dtype)


def parzen(v, bins, low, high):
    """Weights of a cubic B-spline in all bins, as the definition has them."""
    share = numpy.clip((v.ravel() - low) / (high - low), 0, 1)
    distance = numpy.abs(share[:, None] * bins - 0.5 - numpy.arange(bins))
    weights = numpy.where(
        distance < 1,
        2 / 3 - distance**2 + distance**3 / 2,
        numpy.clip(2 - distance, 0, None) ** 3 / 6,
    )
    return weights / weights.sum(1, keepdims=True)


def information(joint):
    p = joint / joint.sum()
    product = p.sum(1, keepdims=True) * p.sum(0, keepdims=True)
    return (p[p > 0] * numpy.log(p[p > 0] / product[p > 0])).sum()


def test_numpy_is_the_definition():
    x, y = arrays(1, 1, 9, 10, 11)
    joint = parzen(x, 32, x.min(), x.max()).T @ parzen(y, 32, y.min(), y.max())
    assert similis.mutual_information(x, y) == pytest.approx(information(joint), abs=1e-9)
    assert similis.mutual_information_loss(x, y) == pytest.approx(-information(joint), abs=1e-9)
    numpy.testing.assert_allclose(similis.histogram(x, y)[0, 0], joint, atol=1e-9)


def test_delta_is_numpys_histogram():
    x, y = arrays(1, 1, 40, 50)
    joint = numpy.histogram2d(x.ravel(), y.ravel(), bins=20)[0]
    found = similis.mutual_information(x, y, kernel="delta", num_bins=20)
    assert found == pytest.approx(information(joint), abs=1e-12)
    numpy.testing.assert_array_equal(
        similis.histogram(x, y, kernel="delta", num_bins=20)[0, 0], joint
    )


def test_parts_add_up():
    x, y = arrays(2, 1, 12, 9)
    options = {"range": (0.0, 1.0), "num_bins": 16}
    joint = sum(
        similis.histogram(x[:, :, part], y[:, :, part], **options)
        for part in (slice(0, 5), slice(5, 12))
    )
    whole = similis.mutual_information(x, y, reduction="none", **options)
    found = similis.mutual_information_from_histogram(joint, reduction="none")
    numpy.testing.assert_allclose(found, whole, atol=1e-12)


def test_value_and_gradient_is_a_slope():
    x, y = arrays(1, 1, 6, 7)
    options = {"range": (-0.2, 1.2), "num_bins": 8, "kernel": "gaussian"}
    value, gradient = similis.value_and_gradient(similis.mutual_information, x, y, **options)
    step = numpy.zeros_like(x)
    step[0, 0, 2, 3] = 1e-6
    above, below = [similis.mutual_information(x + sign * step, y, **options) for sign in (1, -1)]
    assert value == similis.mutual_information(x, y, **options)
    assert gradient[0, 0, 2, 3] == pytest.approx((above - below) / 2e-6, abs=1e-7)


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"num_bins": 3}, "mutual_information: num_bins is 3; it must be a whole number from 4 to 256"),
        ({"range": (1.0,)}, r"mutual_information: range is \(1.0,\); it must be per_image, "),
        ({"range": "fixed"}, r"it must be per_image, common, unit_or_common or \(low, high\)$"),
        ({"range": (1, 0)}, r"range is \(1, 0\); high must be above low"),
        ({"kernel": "box"}, "kernel is 'box'; it must be b_spline, gaussian or delta"),
        ({"seed": -1}, "seed is -1; it must be a whole number of 0 or more"),
        ({"mask": numpy.ones((2, 2))}, r"mask has shape \[2, 2\]"),
    ],
)
def test_refusals(options, sentence):
    x, y = arrays(1, 1, 4, 4)
    with pytest.raises(ValueError, match=sentence):
        similis.mutual_information(x, y, **options)


def test_switches_are_bools():
    x, y = arrays(1, 1, 4, 4)
    with pytest.raises(TypeError, match="normalized is 1; it must be True or False"):
        similis.mutual_information(x, y, normalized=1)


def test_jax():
    jax = pytest.importorskip("jax", reason="jax is not installed")
    x, y = [jax.numpy.asarray(each) for each in arrays(1, 1, 8, 9, dtype="float32")]
    loss = lambda x: similis.mutual_information_loss(x, y, range=(0.0, 1.0))
    value, gradient = jax.jit(jax.value_and_grad(loss))(x)
    expected = similis.value_and_gradient(
        similis.mutual_information_loss, numpy.asarray(x), numpy.asarray(y), range=(0.0, 1.0)
    )
    assert value == pytest.approx(float(expected[0]), abs=1e-6)
    numpy.testing.assert_allclose(gradient, expected[1], atol=1e-7)
    counts = similis.histogram(x, y, range=(0.0, 1.0))
    expected = similis.histogram(numpy.asarray(x), numpy.asarray(y), range=(0.0, 1.0))
    numpy.testing.assert_allclose(counts, expected, rtol=1e-6, atol=1e-6)


torch = None
try:
    import torch
except ImportError:
    pass
needs_torch = pytest.mark.skipif(torch is None, reason="`make check-python` installs torch")

OPTIONS = {
    "b_spline": {"num_bins": 10},
    "gaussian": {"kernel": "gaussian", "sigma_ratio": 1.7, "range": "common"},
    "fixed": {"num_bins": 12, "range": (0.1, 0.8), "reduction": "sum"},
    "normalized": {"num_bins": 9, "normalized": True, "reduction": "none"},
    "smoothed": {"num_bins": 9, "smooth_nr": 1e-3, "smooth_dr": 1e-3, "reduction": "per_image"},
    "unit": {"num_bins": 9, "range": "unit_or_common"},
}


def tensors(*shape, dtype="float64", requires_grad=False):
    return [
        torch.from_numpy(each).requires_grad_(requires_grad) for each in arrays(*shape, dtype=dtype)
    ]


@needs_torch
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_values_and_gradients_are_those_of_torchs_operators(options):
    from similis._torch import decomposition

    x, y = tensors(2, 2, 5, 6, 7, requires_grad=True)
    mask = torch.rand(2, 1, 5, 6, 7) < 0.8
    found = similis.mutual_information_loss(x, y, mask=mask, **options)
    upstream = torch.rand_like(found)
    gradients = torch.autograd.grad(found, (x, y), upstream)
    text = measures.text("mutual_information", 0, **options, form="loss")
    expected = decomposition.evaluate(x, y, mask, None, measures.parse(text))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)
    for gradient, wanted in zip(gradients, torch.autograd.grad(expected, (x, y), upstream)):
        assert (gradient - wanted).norm() < 1e-8 * wanted.norm()


@needs_torch
@pytest.mark.parametrize("kernel", ["b_spline", "gaussian"])
def test_gradcheck(kernel):
    x, y = tensors(1, 1, 2, 4, requires_grad=True)
    measure = lambda x, y: similis.mutual_information(
        x, y, kernel=kernel, num_bins=6, range=(-0.1, 1.2), reduction="none"
    )
    assert torch.autograd.gradcheck(measure, (x, y))
    assert torch.autograd.gradgradcheck(measure, (x, y))


@needs_torch
def test_opcheck():
    x, y = tensors(1, 2, 5, 6, dtype="float32")
    text = measures.text("mutual_information", 0, num_bins=8, reduction="none", form="loss")
    torch.library.opcheck(torch.ops.similis.value.default, (x, y, None, None, text))
    torch.library.opcheck(
        torch.ops.similis.gradient.default, (x, y, None, None, None, True, True, False, text)
    )
    text = measures.text("histogram", 0, num_bins=8, kernel="delta", range=(0.0, 1.0))
    torch.library.opcheck(torch.ops.similis.value.default, (x, y, None, None, text))


@needs_torch
def test_compiles_without_a_break():
    x, y = tensors(1, 1, 8, 9, dtype="float32", requires_grad=True)

    def loss(x, y):
        return similis.mutual_information_loss(2 * x, y, num_bins=16, range=(0.0, 2.0)) + x.mean()

    expected = torch.autograd.grad(loss(x, y), (x, y))
    found = torch.autograd.grad(torch.compile(loss, fullgraph=True)(x, y), (x, y))
    for gradient, wanted in zip(found, expected):
        torch.testing.assert_close(gradient, wanted)


@needs_torch
def test_vmap():
    x, y = tensors(4, 1, 1, 5, 6)
    found = torch.func.vmap(similis.mutual_information)(x, y)
    each = [similis.mutual_information(*pair) for pair in zip(x, y)]
    torch.testing.assert_close(found, torch.stack(each), rtol=0, atol=1e-9)
    with pytest.raises(TypeError, match="sampling is below 1"):
        torch.func.vmap(lambda x, y: similis.mutual_information(x, y, sampling=0.5))(x, y)


@needs_torch
def test_modules():
    from similis import nn

    x, y = tensors(1, 1, 8, 9, dtype="float32", requires_grad=True)
    loss = nn.MutualInformationLoss(num_bins=20, kernel="gaussian")(x, y)
    assert loss == -nn.MutualInformation(num_bins=20, kernel="gaussian")(x, y)
    loss.backward()
    assert x.grad.norm() > 0 and y.grad.norm() > 0
    with pytest.raises(TypeError, match="bins"):
        nn.MutualInformationLoss(bins=20)


@needs_torch
def test_delta_refuses_a_gradient():
    x, y = tensors(1, 1, 8, 9, requires_grad=True)
    with pytest.raises(ValueError, match="the kernel is delta"):
        similis.mutual_information(x, y, kernel="delta")


# FireANTs' loss, by its definition, in torch's operators.


def fireants(x, y, bins=32, sigma_ratio=1.0, smooth=1e-5, approximate=True):
    low, high = min(x.min(), y.min()), max(x.max(), y.max())
    if low < 0 or high > 1:
        x, y = (x - low) / (high - low), (y - low) / (high - low)
    results = []
    for plane_x, plane_y in zip(x.flatten(0, 1).flatten(1), y.flatten(0, 1).flatten(1)):
        if approximate:
            indices = [(plane * bins).long().clamp(max=bins - 1) for plane in (plane_x, plane_y)]
            p = torch.bincount(indices[0] * bins + indices[1], minlength=bins * bins).double()
            counts = p.reshape(bins, bins)
            p = counts[None, None]
            sigma = sigma_ratio / 2
            radius = int(max(4 * sigma, 0.5) + 0.5)
            at = (torch.arange(-radius, radius + 1).double()) / (math.sqrt(2) * sigma)
            half = 0.5 / (math.sqrt(2) * sigma)
            taps = (torch.erf(at + half) - torch.erf(at - half)) / 2
            p = torch.nn.functional.conv2d(p, (taps[:, None] * taps)[None, None], padding=radius)[
                0, 0
            ]
        else:
            centres = (torch.arange(bins).double() + 0.5) / bins
            weights = [
                torch.exp(-((plane[:, None] - centres) ** 2) * 2 * (bins / sigma_ratio) ** 2)
                for plane in (plane_x, plane_y)
            ]
            weights = [each / each.sum(1, keepdim=True) for each in weights]
            p = weights[0].T @ weights[1]
        p_x, p_y = p.sum(1), p.sum(0)
        if approximate:
            p_x, p_y = [
                torch.nn.functional.conv1d(each[None, None], taps[None, None], padding=radius)[0, 0]
                for each in (counts.sum(1), counts.sum(0))
            ]
        p = p / p.sum()
        product = (p_x / p_x.sum())[:, None] * (p_y / p_y.sum())
        results.append((p * torch.log((p + smooth) / (product + smooth) + smooth)).sum())
    return -torch.stack(results).mean()


@needs_torch
@pytest.mark.parametrize("approximate", [True, False])
@pytest.mark.parametrize("scale", [1.0, 900.0])
def test_fireants_values_and_gradients(approximate, scale):
    from similis.compat.fireants import FusedGlobalMutualInformationLoss

    x, y = [scale * each.float() for each in tensors(1, 3, 9, 8, 7)]
    loss = FusedGlobalMutualInformationLoss(approximate_reduction=approximate)
    wide_x, wide_y = x.double(), y.double()
    found, expected = loss(x, y), fireants(wide_x, wide_y, approximate=approximate)
    assert found.item() == pytest.approx(expected.item(), abs=1e-5)
    if approximate:
        return
    x.requires_grad_(), wide_x.requires_grad_()
    loss(x, y).backward()
    low, high = min(x.min(), y.min()).item(), max(x.max(), y.max()).item()
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    # The limits are constants for the gradient.
    fireants(
        (wide_x - low) / (high - low), (wide_y - low) / (high - low), approximate=False
    ).backward()
    assert (x.grad - wide_x.grad).norm() < 1e-4 * wide_x.grad.norm()
    assert (x.grad[:, 1:].norm() > 0.1 * x.grad.norm()).item()  # FireANTs': 0 beyond the first


@needs_torch
def test_fireants_b_spline_gradient_is_right():
    from similis.compat.fireants import FusedGlobalMutualInformationLoss

    x, y = tensors(1, 1, 4, 5, requires_grad=True)
    loss = FusedGlobalMutualInformationLoss("b-spline", num_bins=8, approximate_reduction=False)
    assert torch.autograd.gradcheck(loss, (x, y))
    with pytest.raises(ValueError, match="kernel_type is 'box'"):
        FusedGlobalMutualInformationLoss("box")


@needs_torch
@pytest.mark.parametrize("mode", ["mult", "max"])
def test_fireants_masks_are_the_last_channels(mode):
    from similis.compat.fireants import FusedGlobalMutualInformationLoss

    x, y = [900 * each for each in tensors(2, 3, 6, 7, 8)]
    x[:, -1], y[:, -1] = x[:, -1] / 900, y[:, -1] / 900
    mask = x[:, -1] * y[:, -1] if mode == "mult" else torch.maximum(x[:, -1], y[:, -1])
    each = [
        fireants(
            *[image[:, :-1, kept >= 0.5][:, :, None] for image in (x[i : i + 1], y[i : i + 1])]
        )
        for i, kept in enumerate(mask)
    ]
    loss = FusedGlobalMutualInformationLoss(masked=True, mask_mode=mode)
    assert loss(x, y).item() == pytest.approx(torch.stack(each).mean().item(), abs=1e-9)
    with pytest.raises(ValueError, match="mask_mode is 'min'"):
        FusedGlobalMutualInformationLoss(masked=True, mask_mode="min")


needs_gpu = pytest.mark.skipif(
    torch is None or not torch.cuda.is_available(), reason="there is no GPU"
)


@needs_gpu
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gpu_is_the_cpu(options, dtype):
    pair = tensors(2, 2, 15, 16, 17, dtype=dtype)
    results = []
    for device in "cpu", "cuda":
        x, y = [each.to(device).requires_grad_() for each in pair]
        value = similis.mutual_information(x, y, **options)
        results.append([value, *torch.autograd.grad(value.sum(), (x, y))])
    for ours, expected in zip(results[1], results[0]):
        assert (ours.cpu() - expected).norm() < 1e-5 * expected.norm()


@needs_gpu
def test_gpu_graph_and_gradcheck():
    x, y = [each.cuda() for each in tensors(1, 1, 32, 33, 34, dtype="float32")]
    x.requires_grad_()

    def step():
        x.grad = None
        value = similis.mutual_information_loss(x, y)
        value.backward()
        return value, x.grad

    expected = step()[1].clone()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        value, gradient = step()
    gradient.zero_()
    graph.replay()
    assert torch.equal(gradient, expected)
    small = [each.cuda().requires_grad_() for each in tensors(1, 1, 2, 4)]
    measure = lambda x, y: similis.mutual_information(x, y, num_bins=6, range=(-0.1, 1.2))
    assert torch.autograd.gradcheck(measure, small)


@needs_gpu
def test_cupy():
    cupy = pytest.importorskip("cupy", reason="cupy is not installed")
    x, y = arrays(1, 2, 30, 31, dtype="float32")
    found = similis.histogram(cupy.asarray(x), cupy.asarray(y), num_bins=16)
    numpy.testing.assert_allclose(
        cupy.asnumpy(found), similis.histogram(x, y, num_bins=16), atol=1e-3
    )
    value = similis.mutual_information_from_histogram(found)
    assert float(value) == pytest.approx(similis.mutual_information(x, y, num_bins=16), abs=1e-5)

# SPDX-License-Identifier: Apache-2.0
"""smooth() against scipy's gaussian_filter, where it is installed, and sums in NumPy; its
derivatives, of any order and under every transform, in torch and JAX."""

import numpy as np
import pytest

import similis

SHAPES = {
    "image": ((2, 3, 9, 14), False, (1.5, 2)),
    "volume": ((1, 2, 6, 7, 11), False, (0.5, 2, 1)),
    "field": ((2, 9, 14, 2), True, 1.2),
    "field_of_volume": ((1, 6, 7, 11, 3), True, (1, 0, 2)),
}
PADDINGS = ("replicate", "zeros")


def definition(x, sigma, field, padding, truncate=3.0):
    first = 1 if field else 2
    axes = range(first, x.ndim - 1 if field else x.ndim)
    sigmas = sigma if isinstance(sigma, tuple) else (sigma,) * len(axes)
    for axis, s in zip(axes, sigmas):
        radius = int(np.floor(truncate * s + 0.5))
        if radius == 0:
            continue
        taps = np.exp(-0.5 * (np.arange(-radius, radius + 1) / s) ** 2)
        margins = [(radius, radius) if a == axis else (0, 0) for a in range(x.ndim)]
        padded = np.pad(x, margins, mode="edge" if padding == "replicate" else "constant")
        x = np.apply_along_axis(np.convolve, axis, padded, taps / taps.sum(), mode="valid")
    return x


def seeded(shape):
    return np.random.default_rng(3).standard_normal(shape)


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("name", SHAPES)
def test_matches_its_definition(name, padding):
    shape, field, sigma = SHAPES[name]
    x = seeded(shape)
    own = similis.smooth(x, sigma, field=field, padding=padding)
    np.testing.assert_allclose(own, definition(x, sigma, field, padding), atol=1e-14)
    strided = np.asfortranarray(x.astype("float32"))
    own = similis.smooth(strided, sigma, field=field, padding=padding, truncate=2)
    assert own.dtype == np.float32
    np.testing.assert_allclose(own, definition(x, sigma, field, padding, 2.0), atol=1e-6)


def test_is_scipys_gaussian_filter():
    ndimage = pytest.importorskip("scipy.ndimage", reason="`make check-python` installs scipy")
    x = seeded((1, 1, 9, 14, 17))
    for padding, mode in zip(PADDINGS, ("nearest", "constant")):
        own = similis.smooth(x, 1.3, padding=padding)
        expected = ndimage.gaussian_filter(x[0, 0], 1.3, mode=mode, truncate=3.0)
        np.testing.assert_allclose(own[0, 0], expected, atol=1e-14)


def test_refusals():
    x = np.zeros((1, 1, 5, 6), "float32")
    with pytest.raises(ValueError, match="^smooth: sigma is -1; it must be a number of 0 or more$"):
        similis.smooth(x, -1)
    with pytest.raises(ValueError, match="smooth: padding is 'same'; it must be replicate or zeros"):
        similis.smooth(x, 1, padding="same")
    with pytest.raises(ValueError, match="sigma has 3 numbers; it takes one, or one for each of the 2"):
        similis.smooth(x, (1, 1, 1))
    with pytest.raises(ValueError, match=r"a field must be \[N, Y, X, 2\] or \[N, Z, Y, X, 3\]"):
        similis.smooth(x, 1, field=True)
    with pytest.raises(ValueError, match="x is uint8; it must be float16"):
        similis.smooth(x.astype("uint8"), 1)
    with pytest.raises(TypeError, match="x is int64; it must be float16"):
        similis.smooth(x.astype("int64"), 1)
    with pytest.raises(TypeError, match="x is of type list; it must be a torch.Tensor"):
        similis.smooth([1.0], 1)


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="`make check-python` installs torch")


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("name", SHAPES)
def test_torchs_derivatives(torch, name, padding):
    shape, field, sigma = SHAPES[name]
    x = torch.from_numpy(seeded(shape)).requires_grad_()

    def function(x):
        return similis.smooth(x, sigma, field=field, padding=padding)

    own = function(x)
    np.testing.assert_allclose(own.detach(), similis.smooth(x.detach().numpy(), sigma, field=field, padding=padding))
    assert torch.autograd.gradcheck(function, (x,), fast_mode=True)
    assert torch.autograd.gradcheck(function, (x,), fast_mode=True, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(function, (x,), fast_mode=True)
    tangent = torch.ones_like(x)
    value, derivative = torch.func.jvp(function, (x,), (tangent,))
    torch.testing.assert_close(value, own)
    torch.testing.assert_close(derivative, function(tangent))
    by_x = torch.func.grad(lambda x: function(x).square().sum())(x)
    torch.testing.assert_close(by_x, torch.autograd.grad(own.square().sum(), x)[0])
    stacked = torch.stack([x, 2 * x, -x], 1)
    torch.testing.assert_close(torch.vmap(function, 1, 1)(stacked), torch.stack([own, 2 * own, -own], 1))


def test_torchs_operator_and_graphs(torch):
    x = torch.from_numpy(seeded((1, 2, 8, 9)))
    from similis._library import smooth as library

    call = library.text(2, sigma=1.0, field=False, truncate=3.0, padding="replicate")
    torch.library.opcheck(torch.ops.similis.smooth.default, (x, call))
    torch.compiler.reset()

    def function(x):
        return similis.smooth(x, 1.0)

    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), function(x))
    variables = [x.clone().requires_grad_() for _ in range(2)]
    for each, own in zip(variables, (compiled, function)):
        own(each).square().sum().backward()
    torch.testing.assert_close(variables[0].grad, variables[1].grad)
    half = similis.smooth(x.bfloat16(), 1.0)
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.double(), function(x), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("name", SHAPES)
def test_a_gpu_smooths_as_the_cpu(torch, name, padding):
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    shape, field, sigma = SHAPES[name]
    x = torch.rand(shape).requires_grad_()
    there = x.detach().cuda().requires_grad_()
    upstream = torch.rand(shape)
    own = similis.smooth(x, sigma, field=field, padding=padding)
    other = similis.smooth(there, sigma, field=field, padding=padding)
    assert other.device == there.device
    own.backward(upstream)
    other.backward(upstream.cuda())
    torch.testing.assert_close(other.detach().cpu(), own.detach(), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(there.grad.cpu(), x.grad, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("name", SHAPES)
def test_jaxs_derivatives(name, padding):
    jax = pytest.importorskip("jax", reason="`make check-python` installs jax")
    if jax.default_backend() != "cpu":
        pytest.skip("JAX's arrays are taken on the CPU")
    shape, field, sigma = SHAPES[name]
    x = jax.numpy.asarray(seeded(shape).astype("float32"))
    weights = seeded(shape)[..., ::-1].astype("float32")

    def function(x):
        return similis.smooth(x, sigma, field=field, padding=padding)

    expected = definition(np.asarray(x, "float64"), sigma, field, padding)
    np.testing.assert_allclose(jax.jit(function)(x), expected, atol=1e-6)
    gradient = jax.grad(lambda x: (weights * function(x)).sum())(x)
    # Σ w·G(y) = Σ Gᵀ(w)·y for any y.
    y = seeded(shape)[::-1, ::-1].astype("float32")
    np.testing.assert_allclose((weights * function(jax.numpy.asarray(y))).sum(), (gradient * y).sum(), rtol=2e-3, atol=2e-4)
    twice = jax.grad(lambda x: jax.grad(lambda x: (function(x) ** 2).sum())(x)[0].sum())(x)
    assert np.isfinite(twice).all()
    batched = jax.vmap(function)(jax.numpy.stack([x, 2 * x]))
    np.testing.assert_allclose(batched[1], 2 * function(x), rtol=1e-6)

# SPDX-License-Identifier: Apache-2.0
"""JAX's arrays: under jit, grad and vmap."""

import pytest

jax = pytest.importorskip("jax", reason="`make check-python` installs jax")
import jax.numpy as jnp
import numpy
import similis


@pytest.fixture
def images():
    if jax.default_backend() != "cpu":
        pytest.skip("JAX's arrays are taken on the CPU")
    generator = numpy.random.default_rng(5)
    x = generator.random((2, 3, 24, 22), dtype="float32")
    y = (x + 0.1 * generator.random(x.shape, dtype="float32")).clip(0, 1)
    return x, y


def test_values_are_numpy_s(images):
    x, y = images
    for measure in similis.ssim, similis.l1_ssim, similis.mse:
        value = measure(jnp.asarray(x), jnp.asarray(y))
        assert isinstance(value, jax.Array) and value == measure(x, y)
    decibels = similis.psnr(jnp.asarray(x), jnp.asarray(y))
    numpy.testing.assert_allclose(decibels, similis.psnr(x, y), rtol=1e-6)
    assert jax.grad(similis.psnr)(jnp.asarray(x), jnp.asarray(y)).any()
    per_image = similis.ssim(jnp.asarray(x), jnp.asarray(y), reduction="per_image")
    assert numpy.array_equal(per_image, similis.ssim(x, y, reduction="per_image"))


def test_gradients_under_jit(images):
    x, y = images
    for measure in similis.ssim, similis.ssim_loss, similis.mae:
        loss = jax.jit(jax.value_and_grad(lambda a, b: 3 * measure(a, b), argnums=(0, 1)))
        value, (by_x, by_y) = loss(jnp.asarray(x), jnp.asarray(y))
        expected = similis.value_and_gradient(measure, x, y, wrt="both")
        numpy.testing.assert_allclose(value, 3 * expected[0], rtol=1e-6)
        for own, other in (by_x, expected[1]), (by_y, expected[2]):
            numpy.testing.assert_allclose(own, 3 * other, rtol=1e-5, atol=1e-9)
        only_y = jax.jit(jax.grad(measure, argnums=1))(jnp.asarray(x), jnp.asarray(y))
        numpy.testing.assert_allclose(only_y, by_y / 3, rtol=1e-4, atol=1e-8)


def test_masks_and_results_with_axes(images):
    x, y = images
    mask = (x[:1, :1] > 0.3).astype("float32")
    loss = jax.jit(
        lambda a: similis.ssim(
            a, jnp.asarray(y), mask=jnp.asarray(mask), reduction="per_channel"
        ).sum()
    )
    gradient = jax.grad(loss)(jnp.asarray(x))
    expected = similis.value_and_gradient(similis.ssim, x, y, mask=mask, reduction="per_channel")
    numpy.testing.assert_allclose(gradient, expected[1], rtol=1e-5, atol=1e-9)


def test_vmap_is_a_loop(images):
    x, y = [jnp.asarray(image)[:, None] for image in images]
    by_vmap = jax.vmap(similis.ssim)(x, y)
    assert numpy.array_equal(by_vmap, jnp.stack([similis.ssim(a, b) for a, b in zip(x, y)]))


def test_half_precision(images):
    x, y = [jnp.asarray(image, dtype=jnp.bfloat16) for image in images]
    assert similis.ssim(x, y).dtype == jnp.float32
    assert jax.grad(similis.ssim)(x, y).dtype == jnp.bfloat16


def test_refusals(images):
    x, y = [jnp.asarray(image) for image in images]
    with pytest.raises(ValueError, match="ssim: y has shape"):
        similis.ssim(x, y[:1])
    with pytest.raises(ValueError, match="ssim: padding is 'zero'"):
        similis.ssim(x, y, padding="zero")
    with pytest.raises(TypeError, match="ssim: y is of type numpy.ndarray; it must be a jax.Array"):
        similis.ssim(x, images[1])
    with pytest.raises(TypeError, match="ssim: x is int32"):
        similis.ssim(x.astype("int32"), y)
    with pytest.raises(Exception, match="ssim: window_size is 4; it must be an odd number from 1 to 65535"):
        jax.block_until_ready(similis.ssim(x, y, window_size=4))

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
    with pytest.raises(TypeError, match="ssim: y is of type str; it must be a jax.Array or a numpy"):
        similis.ssim(x, "y")


NEGATIVE = -numpy.ones((24, 22), "float32")
REFUSED = {
    "ssim: window_size is 8; it must be an odd number": lambda x, y: similis.ssim(
        x, y, window_size=8
    ),
    "ssim: height is 24; with padding valid it must be": lambda x, y: similis.ssim(
        x, y, window_size=25
    ),
    "ms_ssim: height is 24; for 5 levels and a window of 11 it must be at least 161": similis.ms_ssim,
    "ssim: mask has shape .4, 4.; it must be the images'": lambda x, y: similis.ssim(
        x, y, mask=jnp.ones((4, 4))
    ),
    "mse: mask holds -1; each weight must be": lambda x, y: similis.mse(
        x, y, mask=NEGATIVE
    ),
    "lncc: window_size is 1; it must be above 1": lambda x, y: similis.lncc(x, y, window_size=1),
    "ssim: x has shape .22.; it must be": lambda x, y: similis.ssim(x[0, 0, 0], y[0, 0, 0]),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_the_library_refuses_is_one_sentence_at_once_and_while_traced(images, words, capfd):
    x, y = [jnp.asarray(image) for image in images]
    call = REFUSED[words]
    for how in (
        call,
        jax.jit(call),
        jax.grad(call),
        jax.jit(jax.grad(call)),
        lambda x, y: jax.vmap(lambda a, b: call(a[None], b[None]))(x, y),
        lambda x, y: jax.eval_shape(call, x, y),
    ):
        with pytest.raises(ValueError, match=words) as caught:
            jax.block_until_ready(how(x, y))
        assert "\n" not in str(caught.value) and not capfd.readouterr().err


def test_a_traced_mask_that_is_none_makes_values_and_gradients_nan(images):
    x, y = [jnp.asarray(image) for image in images]

    @jax.jit
    def loss(x, mask):
        return similis.ssim_loss(x, y, mask=mask)

    good = jnp.ones(x.shape[2:])
    assert loss(x, good) == similis.ssim_loss(x, y)
    assert jnp.isnan(loss(x, good.at[9, 9].set(-1)))
    assert jnp.isnan(jax.grad(loss)(x, good.at[9, 9].set(jnp.nan))).all()


def test_an_ndarray_beside_a_jax_array(images):
    x, y = images
    expected = similis.ssim(jnp.asarray(x), jnp.asarray(y))
    mask = numpy.ones(x.shape[2:], "float32")
    for given in (jnp.asarray(x), y), (x, jnp.asarray(y)):
        value = similis.ssim(*given, mask=mask)
        assert isinstance(value, jax.Array) and value == expected
        assert isinstance(similis.psnr(*given), jax.Array)
        assert similis.ssim(*given, data_range=jnp.float32(1)) == expected
    assert jax.grad(similis.ssim)(jnp.asarray(x), y).any()
    with pytest.raises(ValueError, match="ssim: y is float64; it must be float32 as x is"):
        similis.ssim(jnp.asarray(x), y.astype("float64"))
    with pytest.raises(TypeError, match="ssim: mask is float64 beside a jax.Array, and JAX has none"):
        similis.ssim(jnp.asarray(x), y, mask=mask.astype("float64"))


def test_scores_in_f32_where_jax_has_no_f64(images):
    x, y = images
    arrays = jnp.asarray(x), jnp.asarray(y)
    for call in (
        similis.ssimulacra2,
        lambda a, b: similis.histogram(a, b, num_bins=8),
        lambda a, b: similis.mutual_information_from_histogram(similis.histogram(a, b, num_bins=8)),
    ):
        expected = call(x, y)
        for how in call, jax.jit(call):
            value = how(*arrays)
            assert value.dtype == jnp.float32
            numpy.testing.assert_allclose(value, expected, rtol=1e-6)
    with jax.enable_x64(True):
        wide = similis.ssimulacra2(jnp.asarray(x), jnp.asarray(y))
        assert wide.dtype == jnp.float64 and (wide == similis.ssimulacra2(x, y)).all()
    assert not jax.grad(lambda a: similis.ssimulacra2(a, arrays[1]).sum())(arrays[0]).any()
    planes = [jnp.asarray((255 * each[0]).astype("uint8")) for each in images]
    with pytest.raises(TypeError, match="integer_ssim: x is a jax.Array, and its bits need float64"):
        similis.integer_ssim(*planes)
    with pytest.raises(ValueError, match="ssim: y is float32; it must be int32 as x is"):
        similis.ssim(x.astype("int32"), y)
    with pytest.raises(Exception, match="ssim: window_size is 4; it must be an odd number from 1 to 65535"):
        jax.block_until_ready(similis.ssim(x, y, window_size=4))


def test_forward_mode_is_refused_in_one_sentence(images):
    x, y = [jnp.asarray(image) for image in images]
    for name in "ssim", "psnr", "ncc_loss", "smooth":
        function = getattr(similis, name)
        own = (lambda each: function(each, 1.0)) if name == "smooth" else lambda each: function(each, y)
        for call in (
            lambda: jax.jvp(own, (x,), (x,)),
            lambda: jax.jacfwd(own)(x),
            lambda: jax.hessian(own)(x),
        ):
            with pytest.raises(NotImplementedError) as caught:
                call()
            assert str(caught.value) == (
                f"{name.removesuffix('_loss')}: forward mode (jvp, jacfwd, hessian) is not supported "
                "on JAX's arrays; use grad, vjp or jacrev"
            )


def test_gradients_of_gradients_are_refused_in_one_sentence(images):
    x, y = [jnp.asarray(image) for image in images]
    for how in (lambda each: each), jax.jit:
        with pytest.raises(NotImplementedError, match="^ssim: gradients of gradients are not supported on"):
            jax.grad(how(lambda each: jax.grad(similis.ssim)(each, y).sum()))(x)

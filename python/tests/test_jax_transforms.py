# SPDX-License-Identifier: Apache-2.0
"""Transforms of JAX's arrays: torch's numbers and gradients, under jit and vmap."""

import pytest

jax = pytest.importorskip("jax", reason="`make check-python` installs jax")
torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
import jax.numpy as jnp
import numpy
import similis


def seeded(*shape, seed=0, scale=1.0):
    return scale * numpy.random.default_rng(seed).standard_normal(shape).astype("float32")


IMAGE, FIELD = seeded(2, 3, 9, 8), seeded(1, 9, 8, 2, seed=1, scale=0.1)
AFFINE = numpy.eye(2, 3, dtype="float32")[None] + seeded(2, 2, 3, seed=2, scale=0.05)
S = numpy.eye(2, dtype="float32")[None] + seeded(1, 2, 2, seed=3, scale=0.05)
CALLS = {
    "sample": (
        lambda image, affine, u, s: similis.sample(
            image, affine=affine, displacement=u, grid_affine=s, padding_mode="border"
        ),
        (IMAGE, AFFINE, FIELD, S),
    ),
    "grid": (lambda image, v: similis.sample(image, grid=v, mode="cubic"), (IMAGE, FIELD)),
    "compose": (
        lambda u, v, affine: similis.compose(u, v, affine=affine),
        (FIELD, FIELD[:, :5].copy(), AFFINE),
    ),
    "affine_grid": (similis.affine_grid, (AFFINE, FIELD)),
    "of_shape": (lambda affine: similis.affine_grid(affine, out_shape=(4, 5)), (AFFINE,)),
    "exponentiate": (lambda v: similis.exponentiate(v, 3), (FIELD,)),
}


@pytest.fixture(autouse=True)
def on_cpu():
    if jax.default_backend() != "cpu":
        pytest.skip("JAX's arrays are taken on the CPU")


@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients_are_torch_s(name):
    function, operands = CALLS[name]
    tensors = [torch.from_numpy(each).requires_grad_() for each in operands]
    expected = function(*tensors)
    weights = seeded(*expected.shape, seed=7)
    gradients = torch.autograd.grad((expected * torch.from_numpy(weights)).sum(), tensors)

    def loss(*arrays):
        return (function(*arrays) * weights).sum()

    arrays = [jnp.asarray(each) for each in operands]
    numpy.testing.assert_allclose(function(*arrays), expected.detach(), rtol=1e-6, atol=1e-6)
    for compute in (jax.grad, lambda *given: jax.jit(jax.grad(*given))):
        own = compute(loss, tuple(range(len(arrays))))(*arrays)
        for actual, wanted in zip(own, gradients):
            numpy.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-5)
    last = len(arrays) - 1
    alone = jax.grad(loss, last)(*arrays)
    numpy.testing.assert_allclose(alone, gradients[last], rtol=1e-5, atol=1e-5)


def test_labels_and_what_they_weigh():
    labels, u = numpy.round(2 * IMAGE), jnp.asarray(FIELD)
    label, weight = similis.sample_labels(jnp.asarray(labels), displacement=u, return_weight=True)
    wanted = similis.sample_labels(labels, displacement=FIELD, return_weight=True)
    assert numpy.array_equal(label, wanted[0]) and numpy.array_equal(weight, wanted[1])

    def total(u):
        return similis.sample_labels(jnp.asarray(labels), displacement=u, return_weight=True)[
            1
        ].sum()

    tensor = torch.from_numpy(FIELD).requires_grad_()
    _, expected = similis.sample_labels(
        torch.from_numpy(labels), displacement=tensor, return_weight=True
    )
    expected.sum().backward()
    numpy.testing.assert_allclose(jax.grad(total)(u), tensor.grad, rtol=1e-5, atol=1e-4)


def test_inverses():
    inverse, residual = similis.invert(jnp.asarray(FIELD), 5)
    expected = similis.invert(FIELD, 5)
    assert numpy.array_equal(inverse, expected[0]) and numpy.array_equal(residual, expected[1])
    assert not jax.grad(lambda u: similis.invert(u, 5)[0].sum())(jnp.asarray(FIELD)).any()


def test_vmap_is_a_loop():
    images, u = jnp.asarray(IMAGE)[:, None], jnp.asarray(FIELD)
    by_vmap = jax.vmap(lambda image: similis.sample(image, displacement=u))(images)
    looped = jnp.stack([similis.sample(image, displacement=u) for image in images])
    assert numpy.array_equal(by_vmap, looped)


def test_refusals():
    image, u = jnp.asarray(IMAGE), jnp.asarray(FIELD)
    for message, call in (
        ("sample: displacement is of type numpy.ndarray; it must be a jax.Array", {"displacement": FIELD}),
        ("sample: output is given; a jax.Array cannot be changed", {"output": image}),
        ("sample: displacement is int32", {"displacement": u.astype("int32")}),
    ):
        with pytest.raises(TypeError, match=message):
            similis.sample(image, **call)
    with pytest.raises(ValueError, match="exponentiate: the field has shape"):
        similis.exponentiate(image)
    with pytest.raises(Exception, match="sample: affine has shape"):
        jax.block_until_ready(similis.sample(image, affine=image))
    with pytest.raises(TypeError, match="jacobian_determinant: u is a jax.Array"):
        similis.jacobian_determinant(u)

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
        ("sample: displacement is of type list; it must be a jax.Array or a", {"displacement": [1]}),
        (
            "sample: displacement is float64 beside a jax.Array",
            {"displacement": FIELD.astype("float64")},
        ),
        ("sample: output is given; a jax.Array cannot be changed", {"output": image}),
        ("sample: displacement is int32", {"displacement": u.astype("int32")}),
    ):
        with pytest.raises(TypeError, match=message):
            similis.sample(image, **call)
    with pytest.raises(ValueError, match="exponentiate: the field has shape"):
        similis.exponentiate(image)
    for call in similis.sample, jax.jit(similis.sample), jax.jit(jax.grad(lambda *a, **k: similis.sample(*a, **k).sum())):
        with pytest.raises(ValueError, match="^sample: affine has shape"):
            jax.block_until_ready(call(image, affine=image))
    for call in similis.jacobian_determinant, jax.jit(similis.jacobian_determinant), similis.invert:
        with pytest.raises(ValueError, match="the field has shape"):
            jax.block_until_ready(call(image))


def test_arrays_beside_those_of_jax():
    image, u = jnp.asarray(IMAGE), jnp.asarray(FIELD)
    expected = similis.sample(image, displacement=u)
    value = similis.sample(image, displacement=FIELD)
    assert isinstance(value, jax.Array) and (value == expected).all()


@pytest.mark.parametrize("rank", [2, 3])
def test_jacobian_determinants_and_their_gradients(rank):
    u = seeded(2, *(7, 8, 9)[:rank], rank, seed=4, scale=0.05)
    options = {"min_coords": [-0.5] * rank, "max_coords": [0.9] * rank}
    det, folds = similis.jacobian_determinant(u, **options)
    tensor = torch.from_numpy(u).requires_grad_()
    weights = seeded(*det.shape, seed=8)
    (similis.jacobian_determinant(tensor, **options)[0] * torch.from_numpy(weights)).sum().backward()

    def total(u):
        return (similis.jacobian_determinant(u, **options)[0] * weights).sum()

    for how in (lambda call: call), jax.jit:
        own_det, own_folds = how(lambda u: similis.jacobian_determinant(u, **options))(jnp.asarray(u))
        numpy.testing.assert_allclose(own_det, det, rtol=1e-6)
        assert own_folds.dtype == jnp.float32 and (own_folds == folds).all()
        if how is jax.jit or rank == 2:  # out of a graph, each of many operations is compiled alone
            gradient = how(jax.grad(total))(jnp.asarray(u))
            numpy.testing.assert_allclose(gradient, tensor.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "int32"])
def test_labels_of_integers(dtype):
    labels = numpy.random.default_rng(2).integers(0, 2, (1, 1, 6, 7, 8)).astype(dtype)
    affine = numpy.eye(3, 4, dtype="float32")[None] * 0.9
    call = lambda x, a: similis.sample_labels(x, affine=a)
    if dtype == "int32":
        with pytest.raises(TypeError, match="sample_labels: image is int32, which needs float64 to be"):
            call(jnp.asarray(labels), jnp.asarray(affine))
        return
    for function in call, jax.jit(call):
        result = function(jnp.asarray(labels), jnp.asarray(affine))
        assert result.dtype == dtype
        assert (numpy.asarray(result) == call(labels, affine)).all()


def test_smooth_refuses_shapes_with_a_sentence():
    field = jnp.zeros((1, 2, 6, 7, 8), "float32")  # its components do not come last
    call = lambda each: similis.smooth(each, 1.0, field=True)
    for how in (lambda each: each), jax.jit, jax.grad:
        with pytest.raises(ValueError, match="^smooth: x has shape ") as caught:
            how(lambda each: call(each).sum())(field)
        assert "\n" not in str(caught.value)


def test_numpys_arrays_beside_jaxs_are_refused_with_a_sentence():
    affine, field = jnp.asarray(AFFINE), numpy.zeros((1, 6, 7, 8, 3), "float32")
    masked = numpy.ma.masked_array(field, field > 1)
    for other, words in (
        (masked, "displacement is a masked array; give its data"),
        (field.astype(">f4"), "displacement is >f4; it must be float16, bfloat16, float32 or float64"),
        (field.astype(object), "displacement is object; it must be float16, bfloat16"),
    ):
        with pytest.raises(TypeError, match=f"^affine_grid: {words}"):
            similis.affine_grid(affine, other)


def test_forward_mode_is_refused_in_one_sentence():
    image, field = jnp.asarray(IMAGE), jnp.zeros((1, 6, 7, 8, 3), "float32")
    for name, call, operand in (
        ("sample", lambda each: similis.sample(each, affine=AFFINE), image),
        ("compose", lambda each: similis.compose(each, each), field),
        ("jacobian_determinant", lambda each: similis.jacobian_determinant(each)[0], field),
    ):
        with pytest.raises(NotImplementedError, match=f"^{name}: forward mode .* is not supported on JAX's"):
            jax.jvp(call, (operand,), (operand,))


def test_gradients_of_gradients_are_refused_in_one_sentence():
    def slope(image):
        return jax.grad(lambda each: (similis.sample(each, affine=AFFINE) ** 2).sum())(image).sum()

    with pytest.raises(NotImplementedError, match="^sample: gradients of gradients are not supported on JAX's"):
        jax.grad(slope)(jnp.asarray(IMAGE))

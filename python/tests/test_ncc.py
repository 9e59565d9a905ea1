# SPDX-License-Identifier: Apache-2.0
"""Normalised cross-correlation of whole images against its definition in float64."""

import numpy
import pytest

import similis

torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
from similis import nn
from similis._library import measures
from similis._torch.measure_operators import gradient_op, value_op


def correlations(x, y):
    """[N,C], by torch's corrcoef."""
    rows = zip(x.double().flatten(2).flatten(0, 1), y.double().flatten(2).flatten(0, 1))
    return torch.stack([torch.corrcoef(torch.stack(pair))[0, 1] for pair in rows]).reshape(
        x.shape[:2]
    )


@pytest.mark.parametrize("shape", [(2, 3, 20, 17), (1, 2, 9, 12, 14)])
def test_values_and_gradients(images, relative_l2, shape):
    x, y = images(*shape, requires_grad="xy")
    expected = correlations(x, y)
    for reduction, wanted in {
        "mean": expected.mean(),
        "sum": expected.sum(),
        "per_image": expected.mean(1),
        "per_channel": expected,
    }.items():
        value = similis.ncc(x, y, reduction=reduction)
        assert value.dtype == torch.float32
        torch.testing.assert_close(value.double(), wanted, rtol=1e-6, atol=1e-7)
        upstream = torch.rand_like(value)
        for own, other in zip(
            torch.autograd.grad(value, (x, y), upstream),
            torch.autograd.grad(wanted, (x, y), upstream.double(), retain_graph=True),
        ):
            assert relative_l2(own, other) < 1e-5
    torch.testing.assert_close(similis.ncc_loss(x, y), -similis.ncc(x, y), rtol=0, atol=0)


def test_first_and_second_derivatives(images):
    x, y = images(2, 1, 6, 5, dtype=torch.float64, requires_grad="xy")
    for measure in similis.ncc, lambda x, y: similis.ncc_loss(x, y, reduction="per_image"):
        assert torch.autograd.gradcheck(measure, (x, y), fast_mode=True)
        assert torch.autograd.gradgradcheck(measure, (x, y), fast_mode=True, nondet_tol=1e-12)


def test_vmap_is_a_loop(images):
    x, y = images(3, 1, 8, 9)
    by_vmap = torch.func.vmap(similis.ncc)(x[:, None], y[:, None])
    torch.testing.assert_close(by_vmap, similis.ncc(x, y, reduction="per_image"))


def test_compiled_whole(images, relative_l2):
    torch.compiler.reset()
    module = nn.NCCLoss()
    x, y = images(1, 2, 7, 8, requires_grad="xy")
    value = torch.compile(module, backend="aot_eager", fullgraph=True)(x, y)
    torch.testing.assert_close(value, module(x, y))
    for own, other in zip(
        torch.autograd.grad(value, (x, y)), torch.autograd.grad(module(x, y), (x, y))
    ):
        assert relative_l2(own, other) < 1e-6


def test_operators_keep_torchs_rules(images):
    x, y = images(1, 1, 6, 7)
    text = measures.text("ncc", 0, reduction="mean", weight=-1.0)
    torch.library.opcheck(value_op, (x, y, None, None, text))
    torch.library.opcheck(gradient_op, (x, y, None, None, None, True, True, True, text))


def test_arrays_of_numpy():
    rng = numpy.random.default_rng(1)
    x = rng.random((1, 2, 8, 9, 10))
    y = 0.5 * x + 0.5 * rng.random(x.shape)
    value, by_x, by_y = similis.value_and_gradient(similis.ncc_loss, x, y, wrt="both")
    tensors = [torch.from_numpy(each).requires_grad_() for each in (x, y)]
    loss = similis.ncc_loss(*tensors)
    assert value == loss.item()
    for own, other in zip((by_x, by_y), torch.autograd.grad(loss, tensors)):
        numpy.testing.assert_array_equal(own, other.numpy())


def test_flat_images_and_refusals(images):
    x, _ = images(1, 1, 8, 8, requires_grad="x")
    value = similis.ncc(x, torch.full_like(x, 0.5))
    assert value == 0 and (torch.autograd.grad(value, x)[0] == 0).all()
    with pytest.raises(ValueError, match="^ncc: reduction is 'none'; it must be mean, sum"):
        similis.ncc(x, x, reduction="none")
    with pytest.raises(ValueError, match="^ncc: reduction is 'max'; it must be mean, sum"):
        similis.ncc(x, x, reduction="max")


def test_flat_images_are_flat_under_torch_func(images):
    """Whatever the mean of equal numbers is rounded to."""
    _, y = images(1, 1, 11, 15, dtype=torch.float64)
    for number in (0.1, 0.3, 0.7, 1 / 3):
        flat = torch.full_like(y, number)
        assert (torch.func.grad(similis.ncc)(flat, y) == 0).all()
        assert torch.func.jvp(similis.ncc, (flat, y), (y, y)) == (0, 0)

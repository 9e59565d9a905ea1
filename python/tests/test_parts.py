# SPDX-License-Identifier: Apache-2.0
"""Parts of arrays that are cut along their first spatial axis have the whole's bits."""

import numpy
import pytest

import similis


def noise(*shape, seed=0, scale=1.0):
    return (scale * numpy.random.default_rng(seed).standard_normal(shape)).astype("float32")


def test_rows_and_blocks_add_up_to_the_whole():
    image, u = noise(1, 2, 9, 7, 21), noise(1, 8, 7, 21, 3, seed=1, scale=0.3)
    whole = similis.sample(image, displacement=u)
    parts = []
    for row in range(8):
        own = u[:, row : row + 1]
        part = similis.sample(
            image[:, :, :6], displacement=own, rows=(row, 8), image_rows=(0, 9), cells=(-1, 5)
        )
        similis.sample(
            image[:, :, 5:],
            displacement=own,
            rows=(row, 8),
            image_rows=(5, 9),
            cells=(5, 9),
            output=part,
        )
        parts.append(part)
    assert numpy.array_equal(numpy.concatenate(parts, 2), whole)


def test_torch_gradients_of_one_row_at_zero():
    torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
    for extent in (5, 13, 53):
        image = torch.from_numpy(noise(1, 1, extent, 6, 8))
        u = torch.zeros(1, extent, 6, 8, 3, requires_grad=True)
        upstream = torch.from_numpy(noise(1, 1, extent, 6, 8, seed=2))
        (whole,) = torch.autograd.grad(similis.sample(image, displacement=u), u, upstream)
        for row in range(extent):
            own = u[:, row : row + 1].detach().requires_grad_()
            part = similis.sample(image, displacement=own, rows=(row, extent))
            (gradient,) = torch.autograd.grad(part, own, upstream[:, :, row : row + 1])
            assert torch.equal(gradient, whole[:, row : row + 1]), row


def test_affine_grids_and_compositions():
    affine, u = noise(1, 3, 4, seed=3), noise(1, 7, 5, 6, 3, scale=0.2)
    whole = similis.affine_grid(affine, out_shape=(7, 5, 6))
    part = similis.affine_grid(affine, out_shape=(2, 5, 6), rows=(3, 7))
    assert numpy.array_equal(part, whole[:, 3:5])
    composed = similis.compose(u, u)
    low = similis.compose(u[:, :5], u[:, 2:3], rows=(2, 7), image_rows=(0, 7), cells=(-1, 4))
    high = similis.compose(u[:, 4:], u[:, 2:3], rows=(2, 7), image_rows=(4, 7), cells=(4, 7))
    assert numpy.array_equal(low + high, composed[:, 2:3])


def test_fields():
    torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
    u = noise(1, 9, 7, 8, 3, scale=0.05)
    det, folds = similis.jacobian_determinant(u)
    inverse, _ = similis.invert(u)
    counted = 0
    for first, end in ((0, 1), (1, 5), (5, 9)):
        low, high = max(first - 1, 0), min(end + 1, 9)
        own, folded = similis.jacobian_determinant(
            u[:, low:high], rows=(first, end), u_rows=(low, 9)
        )
        assert numpy.array_equal(own, det[:, first:end])
        counted += folded
        w, residual = similis.invert(u, rows=(first, end), u_rows=(0, 9))
        assert numpy.array_equal(w, inverse[:, first:end])
        assert numpy.isfinite(residual).all()
    assert counted == folds
    assert numpy.isinf(similis.invert(u[:, 4:5], rows=(4, 5), u_rows=(4, 9))[1]).all()
    tensor = torch.from_numpy(u).requires_grad_()
    whole = torch.autograd.grad(similis.jacobian_determinant(tensor)[0][:, 3:5].sum(), tensor)[0]
    part = similis.jacobian_determinant(tensor[:, 2:6], rows=(3, 5), u_rows=(2, 9))[0]
    assert part.shape == (1, 2, 7, 8)
    assert torch.allclose(torch.autograd.grad(part.sum(), tensor)[0], whole, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rows": 3}, r"sample: rows is 3; it must be \(start, extent\)"),
        ({"cells": (1,)}, r"sample: cells is \(1,\); it must be \(first, end\)"),
        ({"image_rows": (0, 0)}, "sample: the extent of image_rows is 0; it must be at least 1"),
        (
            {"rows": (4, 5)},
            "sample: rows begin at 4, and the array has 4; they must lie in an axis",
        ),
    ],
)
def test_refusals(options, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        similis.sample(noise(1, 1, 4, 5, 6), displacement=noise(1, 4, 5, 6, 3), **options)


def test_refusals_of_fields():
    u = noise(1, 4, 5, 6, 3)
    with pytest.raises(TypeError, match="invert: u_rows is None; it must be"):
        similis.invert(u, rows=(0, 1))
    with pytest.raises(ValueError, match="it must hold rows 3 to 7"):
        similis.jacobian_determinant(u, rows=(4, 6), u_rows=(4, 9))


@pytest.mark.parametrize("padding", ["valid", "same", "renormalize"])
@pytest.mark.parametrize("function", ["ssim", "ssim_loss", "l1_ssim", "lncc", "lncc_loss"])
def test_sums_of_rows_add_up_to_the_mean(function, padding):
    torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
    measure = getattr(similis, function)
    options = {"window_size": 3, "padding": padding}
    generator = torch.Generator().manual_seed(1)
    x, y = (torch.rand(2, 2, 9, 8, 7, generator=generator).double() for _ in range(2))
    x.requires_grad_()

    def summed(first, end, rows):
        return measure(x[:, :, first:end], y[:, :, first:end], rows=rows, sums=True, **options)

    sums = summed(0, 5, (0, 4)) + summed(3, 9, (1, 6))
    assert sums.dtype == torch.float64 and sums.shape[1:] == (2, 2)
    pairs = sums.sum((1, 2)).reshape(-1, 2)
    mean, expected = (pairs[:, 0] / pairs[:, 1]).sum(), measure(x, y, **options)
    torch.testing.assert_close(mean, expected, rtol=1e-12, atol=1e-12)
    found, wanted = (torch.autograd.grad(each, x)[0] for each in (mean, expected))
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("function", ["ssim", "l1_ssim", "lncc"])
def test_the_decomposition_knows_rows_and_sums(function):
    torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
    measure = getattr(similis, function)
    x, y = torch.rand(1, 2, 9, 8, 7).double(), torch.rand(1, 2, 9, 8, 7).double()
    for options in ({"sums": True}, {"reduction": "none"}, {"reduction": "per_channel"}):
        given = {"window_size": 3, "padding": "same", "rows": (1, 8), **options}
        composed = torch.func.vmap(lambda a, b: measure(a, b, **given))(x[None], y[None])[0]
        torch.testing.assert_close(composed, measure(x, y, **given), rtol=1e-9, atol=1e-12)


def test_rows_are_refused_in_a_sentence():
    x = noise(1, 1, 20, 20)
    with pytest.raises(TypeError, match=r"ssim: rows is 3; it must be \(first, end\)"):
        similis.ssim(x, x, rows=3)
    with pytest.raises(ValueError, match="windows there see rows 3 to 6 alone: give these"):
        similis.ssim(x, x, window_size=3, rows=(4, 6))

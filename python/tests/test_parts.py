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


INFORMATION = [
    {},
    {"range": "common", "num_bins": 16, "normalized": True},
    {"kernel": "gaussian", "reduction": "per_channel"},
    {"method": "binned", "smooth_nr": 1e-6, "smooth_dr": 1e-6, "reduction": "per_image"},
]


def limits_of_whole(parts, options):
    """As ranks find them: extremes of each part, then those of all. [N,C,4]."""
    axes = tuple(range(2, parts[0][0].ndim))
    ends = []
    for images in zip(*parts):  # x's, then y's
        ends.append(numpy.minimum.reduce([each.min(axes) for each in images]))
        ends.append(numpy.maximum.reduce([each.max(axes) for each in images]))
    if options.get("range") == "common":
        low, high = numpy.minimum(ends[0], ends[2]), numpy.maximum(ends[1], ends[3])
        ends = [low, high, low, high]
    return numpy.stack(ends, -1).astype("float64")


def information_by_hand(parts, masks, options):
    """Value and gradients of mutual information of images in parts, by sums of histograms alone."""
    limits = limits_of_whole(parts, options)
    counting = {k: v for k, v in options.items() if k in ("num_bins", "kernel", "method")}
    whole = sum(
        similis.histogram(x, y, mask=mask, limits=limits, **counting)
        for (x, y), mask in zip(parts, masks)
    )
    results = [
        similis.value_and_gradient(
            similis.mutual_information_loss,
            *part,
            wrt="both",
            mask=mask,
            histogram=whole,
            limits=limits,
            **options,
        )
        for part, mask in zip(parts, masks)
    ]
    for value, *_ in results[1:]:
        assert numpy.array_equal(value, results[0][0])
    return results[0][0], *(numpy.concatenate(each, 2) for each in list(zip(*results))[1:])


@pytest.mark.parametrize("options", INFORMATION)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("is_masked", [False, True])
def test_mutual_information_by_hand(options, dtype, is_masked):
    x, y = noise(2, 2, 9, 8, 7).astype(dtype), noise(2, 2, 9, 8, 7, seed=1).astype(dtype)
    y = 0.6 * x + 0.4 * y
    mask = (noise(9, 8, 7, seed=2) > -0.5).astype("uint8")
    if is_masked:  # the extremes below are those of all voxels
        for n, c in numpy.ndindex(2, 2):
            for image in (x, y):
                for end in (image[n, c].argmin(), image[n, c].argmax()):
                    mask.reshape(-1)[end] = 1
    rows = [slice(0, 4), slice(4, 5), slice(5, 9)]
    parts = [(x[:, :, each], y[:, :, each]) for each in rows]
    masks = [mask[each] if is_masked else None for each in rows]
    found = information_by_hand(parts, masks, options)
    whole = similis.value_and_gradient(
        similis.mutual_information_loss,
        x,
        y,
        wrt="both",
        mask=mask if is_masked else None,
        **options,
    )
    tolerance = 1e-9 if dtype == "float64" else 1e-5
    for one, other in zip(found, whole):
        assert numpy.linalg.norm(one - other) <= tolerance * numpy.linalg.norm(other)


def test_torch_mutual_information_of_a_part():
    torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
    x, y = (torch.from_numpy(noise(1, 2, 9, 8, 7, seed=k)).double() for k in (0, 1))
    x.requires_grad_()
    upstream = torch.tensor([[0.7, -1.3]], dtype=torch.float64)
    options = {"reduction": "per_channel", "num_bins": 16}
    (wanted,) = torch.autograd.grad(similis.mutual_information(x, y, **options), x, upstream)
    planes = [each.detach().flatten(2) for each in (x, y)]
    ends = torch.stack([end(2) for each in planes for end in (each.amin, each.amax)], -1)
    whole = sum(
        similis.histogram(x[:, :, each], y[:, :, each], num_bins=16, limits=ends)
        for each in (slice(0, 4), slice(4, 9))
    )
    part = x[:, :, 4:].detach().requires_grad_()
    given = {"histogram": whole, "limits": ends}
    value = similis.mutual_information(part, y[:, :, 4:], **given, **options)
    torch.testing.assert_close(value, similis.mutual_information(x, y, **options))
    # An upstream gradient without memory of its own.
    (gradient,) = torch.autograd.grad(value, part, upstream, retain_graph=True)
    torch.testing.assert_close(gradient, wanted[:, :, 4:], rtol=1e-9, atol=1e-12)
    (expanded,) = torch.autograd.grad(value, part, torch.ones(()).double().expand(1, 2))
    (dense,) = torch.autograd.grad(
        similis.mutual_information(x, y, **options), x, torch.ones(1, 2).double()
    )
    torch.testing.assert_close(expanded, dense[:, :, 4:], rtol=1e-9, atol=1e-12)
    loss = similis.mutual_information_loss(part, y[:, :, 4:], **given, **options)
    torch.testing.assert_close(loss, -value)
    flat = similis.mutual_information(part[0, :, :, 0], y[0, :, 4:, 0], **given, num_bins=16)
    assert flat.shape == ()


def test_refusals_of_a_whole():
    torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
    x, y = noise(1, 1, 4, 5, 6), noise(1, 1, 4, 5, 6, seed=1)
    whole, limits = numpy.zeros((1, 1, 32, 32)), numpy.tile([-1.0, 1.0], 2)[None, None]
    for given, error, sentence in (
        ({"histogram": whole[:, :, :9]}, ValueError, "histogram has shape"),
        ({"histogram": whole.astype("f4")}, ValueError, "histogram is f32|histogram is float32"),
        ({"limits": limits[..., :2]}, ValueError, "limits has shape"),
        ({"limits": [0.0, 1.0]}, TypeError, "limits is of type list"),
    ):
        for convert in (lambda each: each, torch.from_numpy):
            named = {k: v if isinstance(v, list) else convert(v) for k, v in given.items()}
            with pytest.raises(error, match=f"mutual_information: {sentence}"):
                similis.mutual_information(convert(x), convert(y), **named)
    a, b = torch.from_numpy(x).requires_grad_(), torch.from_numpy(y)
    given = {"limits": torch.from_numpy(limits)}
    value = similis.mutual_information(a, b, **given)
    with pytest.raises(NotImplementedError, match="with histogram or limits gradients are"):
        torch.autograd.grad(value, a, create_graph=True)
    with pytest.raises(NotImplementedError, match="are not taken by torch.compile and torch.func"):
        torch.func.grad(lambda each: similis.mutual_information(each, b, **given))(a.detach())
    with pytest.raises(TypeError, match="mutual_information: limits is of type numpy.ndarray"):
        similis.mutual_information(a, b, limits=limits)

# SPDX-License-Identifier: Apache-2.0
"""Weights that are none, and measures of nothing: never a good score."""

import numpy
import pytest

torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
import similis

MEASURES = {
    "ssim": (similis.ssim, similis.ssim_loss),
    "l1_ssim": (None, similis.l1_ssim),
    "lncc": (similis.lncc, similis.lncc_loss),
    "mutual_information": (similis.mutual_information, similis.mutual_information_loss),
}
MASKS = [
    (name, mask)
    for name in MEASURES
    for mask in ("mask", "valid_mask")
    if (name, mask) != ("mutual_information", "valid_mask")
]
EMPTY = pytest.mark.parametrize("name, mask", MASKS)


def both(name):
    """The measure, unless there is only a loss, and the loss."""
    return [each for each in MEASURES[name] if each is not None]


@EMPTY
@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
def test_weights_that_are_none(images, name, mask, bad):
    x, y = images(2, 1, 16, 16, requires_grad="x")
    weights = torch.ones(16, 16, device=x.device)
    weights[9, 9] = bad
    called = "ssim" if name == "l1_ssim" else name
    for measure in both(name):
        if x.is_cuda:
            if bad != float("inf"):
                value = measure(x, y, **{mask: weights})
                value.backward()
                assert value.isnan() and x.grad.isnan().any()
            continue
        words = rf"^{called}: {mask} holds {bad:g}; each weight must be a finite number of 0 or more"
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
    torch.testing.assert_close(loss(x, y, **{mask: weights}), loss(x[kept], y[kept]))


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

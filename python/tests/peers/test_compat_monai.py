# SPDX-License-Identifier: Apache-2.0
"""compat.monai against MONAI, over its own options; MONAI computes sums in f32 here and there."""

import inspect

import pytest

torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
from similis.compat import monai as ours

theirs = pytest.importorskip("monai.losses", reason="`make check` installs MONAI where there is torch")

LNCC, MI, SSIM = "LocalNormalizedCrossCorrelationLoss", "GlobalMutualInformationLoss", "SSIMLoss"
SHAPES = {1: (2, 2, 40), 2: (2, 2, 20, 22), 3: (1, 2, 12, 13, 14)}
CASES = [
    *[
        (LNCC, SHAPES[axes], {"spatial_dims": axes, "kernel_type": kind, "kernel_size": size})
        for axes in SHAPES
        for kind in ("rectangular", "triangular", "gaussian")
        for size in (5, 9)
    ],
    (LNCC, SHAPES[3], {"smooth_nr": 1e-3}),
    (LNCC, SHAPES[3], {"smooth_dr": 1e-1, "reduction": "none"}),
    (LNCC, SHAPES[2], {"spatial_dims": 2, "reduction": "sum"}),
    (MI, (2, 1, 20, 22), {}),
    (MI, (2, 500), {"num_bins": 40, "sigma_ratio": 1.0, "reduction": "sum"}),
    (MI, (2, 3, 10, 11, 12), {"reduction": "none", "smooth_nr": 1e-5, "smooth_dr": 1e-5}),
    (MI, (2, 1, 20, 22), {"kernel_type": "b-spline", "num_bins": 32}),
    (MI, (2, 3, 10, 11, 12), {"kernel_type": "b-spline", "num_bins": 16, "reduction": "none"}),
    (SSIM, (2, 3, 20, 22), {"spatial_dims": 2}),
    (SSIM, (2, 3, 20, 22), {"spatial_dims": 2, "kernel_type": "uniform", "win_size": 7}),
    (SSIM, (2, 3, 20, 22), {"spatial_dims": 2, "win_size": (5, 7), "kernel_sigma": (0.8, 1.0)}),
    (SSIM, (2, 1, 14, 15, 16), {"spatial_dims": 3, "data_range": 2.0, "k1": 0.02, "k2": 0.05}),
    (SSIM, (2, 1, 14, 15, 16), {"spatial_dims": 3, "reduction": "none"}),
    (SSIM, (2, 1, 14, 15, 16), {"spatial_dims": 3, "reduction": "sum"}),
]


@pytest.mark.parametrize("name, shape, options", CASES, ids=str)
def test_values_and_gradients_are_those_of_monai(name, shape, options, relative_l2):
    dtype = torch.float32 if name == SSIM else torch.float64  # MONAI's SSIM is f32
    generator = torch.Generator().manual_seed(len(shape))
    x = torch.rand(shape, dtype=dtype, generator=generator)
    y = (x**2 + 0.3 * torch.rand(shape, dtype=dtype, generator=generator)).clamp(0, 1)
    images = [[each.clone().requires_grad_() for each in (x, y)] for _ in range(2)]
    results = [
        getattr(module, name)(**options)(*each) for module, each in zip((ours, theirs), images)
    ]
    assert results[0].shape == results[1].shape
    torch.testing.assert_close(*results, rtol=1e-5, atol=1e-5, check_dtype=False)
    for result in results:
        result.sum().backward()
    for mine, other in zip(*images):
        assert (mine.grad is None) == (other.grad is None)
        if mine.grad is not None:
            assert relative_l2(mine.grad, other.grad) < 1e-5


@pytest.mark.parametrize("name", [LNCC, MI, SSIM])
def test_signatures(name):
    def named(given):
        return [(each.name, str(each.default).split(".")[-1].lower()) for each in given.values()]

    mine, other = (inspect.signature(getattr(module, name)).parameters for module in (ours, theirs))
    assert [word for word, _ in named(mine)] == [word for word, _ in named(other)]
    numbers = {"reduction", "kernel_type"}  # enumerations there, words here
    for each in mine:
        if each not in numbers:
            assert mine[each].default == other[each].default


def test_large_intensities_keep_their_digits():
    """Sums of squares of 12 bits have no digits left in f32."""
    x = torch.rand(1, 1, 12, 12, 12) * 4 + 4000
    y = x + torch.rand(1, 1, 12, 12, 12)
    exact = theirs.LocalNormalizedCrossCorrelationLoss()(x.double(), y.double())
    assert ours.LocalNormalizedCrossCorrelationLoss()(x, y).item() == pytest.approx(exact.item(), 1e-5)


@pytest.mark.parametrize(
    "name, options, words",
    [
        (LNCC, {"kernel_size": 4}, "kernel_size is 4; it must be odd"),
        (LNCC, {"kernel_type": "round"}, "kernel_type is 'round'; it must be rectangular, triangular"),
        (LNCC, {"reduction": None}, "reduction is None; it must be none, mean or sum"),
        (LNCC, {"spatial_dims": 4}, "spatial_dims is 4; it must be 1, 2 or 3"),
        (MI, {"num_bins": 0}, "num_bins is 0; it must be from 4 to 256"),
        (SSIM, {"spatial_dims": 2, "kernel_type": "box"}, "kernel_type is 'box'; it must be gaussian"),
    ],
    ids=str,
)
def test_refusals(name, options, words):
    with pytest.raises(ValueError, match=f"{name}: {words}"):
        getattr(ours, name)(**options)

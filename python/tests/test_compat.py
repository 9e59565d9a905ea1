# SPDX-License-Identifier: Apache-2.0
"""The drop-ins' names, defaults and numbers, against formulas spelled out here."""

import inspect
import warnings

import pytest

torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
import torch.nn.functional as F
from similis.compat import fireants, fused_ssim, fussim, pytorch_msssim
from similis.compat.fireants import interpolator


def taps(size, sigma, like):
    distance = torch.arange(size, dtype=torch.float64, device=like.device) - size // 2
    weights = torch.exp(-(distance**2) / (2 * sigma**2))
    return weights / weights.sum()


def averaged(images, weights, padding):
    """The sums of each channel under a separable window, with zeros outside."""
    n, c, *sides = images.shape
    planes = images.reshape(n * c, 1, *sides)
    convolve = F.conv2d if len(sides) == 2 else F.conv3d
    for axis in range(len(sides)):
        shape, rim = [1] * (2 + len(sides)), [0] * len(sides)
        shape[2 + axis], rim[axis] = weights.numel(), padding
        planes = convolve(planes, weights.reshape(shape), padding=rim)
    return planes.reshape(n, c, *planes.shape[2:])


def ssim_terms(x, y, data_range=1.0, size=11, sigma=1.5, padding=0, k=(0.01, 0.03)):
    x, y = x.double(), y.double()
    weights = taps(size, sigma, x)
    mean_x, mean_y = averaged(x, weights, padding), averaged(y, weights, padding)
    var_x = averaged(x * x, weights, padding) - mean_x**2
    var_y = averaged(y * y, weights, padding) - mean_y**2
    covariance = averaged(x * y, weights, padding) - mean_x * mean_y
    c1, c2 = (k[0] * data_range) ** 2, (k[1] * data_range) ** 2
    contrast = (2 * covariance + c2) / (var_x + var_y + c2)
    return contrast * (2 * mean_x * mean_y + c1) / (mean_x**2 + mean_y**2 + c1), contrast


def defaults(function):
    return {
        name: each.default
        for name, each in inspect.signature(function).parameters.items()
        if name != "self"
    }


NONE = inspect.Parameter.empty


def test_signatures():
    assert defaults(fused_ssim.fused_ssim) == {
        "img1": NONE,
        "img2": NONE,
        "padding": "same",
        "train": True,
    }
    assert defaults(fused_ssim.fused_ssim3d) == defaults(fused_ssim.fused_ssim)
    assert fused_ssim.allowed_padding == ["same", "valid"]
    assert defaults(fussim.fused_ssim) == {**defaults(fused_ssim.fused_ssim), "window_size": 11}
    ssim = {
        "X": NONE,
        "Y": NONE,
        "data_range": 255,
        "size_average": True,
        "win_size": 11,
        "win_sigma": 1.5,
        "win": None,
        "K": (0.01, 0.03),
        "nonnegative_ssim": False,
    }
    assert defaults(pytorch_msssim.ssim) == defaults(fussim.ssim) == ssim
    module = {
        "data_range": 255,
        "size_average": True,
        "win_size": 11,
        "win_sigma": 1.5,
        "channel": 3,
        "spatial_dims": 2,
        "K": (0.01, 0.03),
        "nonnegative_ssim": False,
    }
    assert defaults(pytorch_msssim.SSIM.__init__) == defaults(fussim.SSIM.__init__) == module
    assert list(defaults(pytorch_msssim.ms_ssim)) == [
        "X",
        "Y",
        "data_range",
        "size_average",
        "win_size",
        "win_sigma",
        "win",
        "weights",
        "K",
    ]
    assert list(defaults(pytorch_msssim.MS_SSIM.__init__)) == [
        "data_range",
        "size_average",
        "win_size",
        "win_sigma",
        "channel",
        "spatial_dims",
        "weights",
        "K",
    ]


@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize("train", [True, False])
def test_fused_ssim(images, relative_l2, padding, train):
    x, y = images(2, 3, 24, 20, requires_grad="xy")
    value = fused_ssim.fused_ssim(x, y, padding, train)
    expected = ssim_terms(x, y, padding=5)[0]
    if padding == "valid":
        expected = expected[..., 5:-5, 5:-5]
    torch.testing.assert_close(value.double(), expected.mean(), rtol=0, atol=1e-6)
    own = torch.autograd.grad(value, (x, y))
    for gradient, other in zip(own, torch.autograd.grad(expected.mean(), (x, y))):
        assert relative_l2(gradient, other) < 1e-5


def test_fused_ssim_in_three_dimensions(images):
    x, y = images(1, 2, 12, 13, 14)
    expected = ssim_terms(x, y, padding=5)[0].mean().float()
    torch.testing.assert_close(fused_ssim.fused_ssim3d(x, y), expected, rtol=0, atol=1e-6)


def test_fused_ssim_map(images):
    x, y = images(1, 3, 24, 20, requires_grad="x")
    for function, more in (fused_ssim.FusedSSIMMap, ("same", True, 2)), (fussim.FusedSSIMMap, ()):
        result = function.apply(0.02**2, 0.05**2, x, y, *more)
        expected = ssim_terms(x, y, padding=5, k=(0.02, 0.05))[0].float()
        torch.testing.assert_close(result, expected, rtol=0, atol=2e-6)
        weights = torch.rand_like(result)
        own, other = [
            torch.autograd.grad((each * weights).sum(), x)[0] for each in (result, expected)
        ]
        torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-5)


def test_fused_ssim_refuses_what_was_silently_wrong(images):
    x, y = images(1, 1, 10, 24)
    with pytest.raises(ValueError, match="height is 10; with padding valid it must be at least"):
        fused_ssim.fused_ssim(x, y, "valid")
    with pytest.raises(ValueError, match="fused_ssim: padding is 'zero'; it must be same or valid"):
        fused_ssim.fused_ssim(x, y, "zero")
    with pytest.raises(ValueError, match="fused_ssim: img1 has shape"):
        fused_ssim.fused_ssim(x[0], y[0])
    with pytest.raises(ValueError, match="fused_ssim: img2 has shape"):
        fused_ssim.fused_ssim(x, y[..., 1:])
    transposed = x.mT.contiguous().mT
    assert fused_ssim.fused_ssim(transposed, y) == fused_ssim.fused_ssim(x, y)


def test_channels_last_pictures_of_fused_ssim(images, relative_l2):
    """[N,H,W,3], whose permuted view trainers of radiance fields pass, is refused as it is."""
    x, y = images(2, 24, 20, 3, requires_grad="x")
    views = [each.permute(0, 3, 1, 2) for each in (x, y)]
    dense = [each.detach().contiguous().requires_grad_() for each in views]
    for module in fused_ssim, fussim:
        value = module.fused_ssim(*views)
        torch.testing.assert_close(value, module.fused_ssim(*dense), rtol=0, atol=1e-7)
        (own,) = torch.autograd.grad(value, x)
        (expected,) = torch.autograd.grad(module.fused_ssim(*dense), dense[0])
        assert relative_l2(own.permute(0, 3, 1, 2), expected) < 1e-6
        words = r"img1 has shape \[2, 24, 20, 3\], which looks channel-last; give img1.permute"
        with pytest.raises(ValueError, match=f"fused_ssim: {words}"):
            module.fused_ssim(x, y)
        with pytest.raises(ValueError, match=f"FusedSSIMMap: {words}"):
            module.FusedSSIMMap.apply(0.01**2, 0.03**2, x, y)
    with pytest.raises(ValueError, match="fused_ssim: img1 has shape .* looks channel-last"):
        fused_ssim.fused_ssim(x, y, "valid")
    narrow = torch.rand(1, 2, 7, 3, device=x.device)
    assert fused_ssim.fused_ssim(narrow, narrow) == 1


@pytest.mark.parametrize("window_size", [7, 9, 11])
def test_fussim_windows_have_sigma_as_documented(images, window_size):
    x, y = images(2, 3, 24, 20)
    own = fussim.fused_ssim(x, y, window_size=window_size)
    expected = ssim_terms(x, y, size=window_size, padding=window_size // 2)[0].mean().float()
    torch.testing.assert_close(own, expected, rtol=0, atol=1e-6)
    with pytest.raises(ValueError, match="fused_ssim: window_size is 5; it must be 7, 9 or 11"):
        fussim.fused_ssim(x, y, window_size=5)


def test_fussim_ssim(images):
    x, y = [255 * image for image in images(2, 3, 24, 20)]
    y = 255 - y
    values = ssim_terms(x, y, data_range=255)[0]
    torch.testing.assert_close(fussim.ssim(x, y).double(), values.mean(), rtol=0, atol=1e-6)
    one_each = fussim.SSIM(size_average=False)(x, y)
    torch.testing.assert_close(one_each.double(), values.mean((1, 2, 3)), rtol=0, atol=1e-6)
    cut = fussim.ssim(x, y, nonnegative_ssim=True)
    torch.testing.assert_close(cut.double(), values.clamp(min=0).mean(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("size_average", [True, False])
@pytest.mark.parametrize("nonnegative", [True, False])
def test_pytorch_msssim_ssim(images, size_average, nonnegative):
    x, y = [255 * image for image in images(2, 3, 24, 20)]
    y[0] = 255 - y[0]
    own = pytorch_msssim.ssim(
        x, y, 255, size_average, 7, 1.2, K=(0.02, 0.04), nonnegative_ssim=nonnegative
    )
    means = ssim_terms(x, y, 255, 7, 1.2, k=(0.02, 0.04))[0].mean((2, 3))
    assert (means < 0).any()
    if nonnegative:
        means = means.relu()
    expected = means.mean() if size_average else means.mean(1)
    torch.testing.assert_close(own.double(), expected, rtol=0, atol=1e-6)
    module = pytorch_msssim.SSIM(
        255, size_average, 7, 1.2, K=(0.02, 0.04), nonnegative_ssim=nonnegative
    )
    assert torch.equal(module(x, y), own)


def test_pytorch_msssim_takes_windows(images, relative_l2):
    x, y = images(2, 3, 24, 20, requires_grad="xy")
    win = taps(7, 1.2, x).float().reshape(1, 1, 1, 7).repeat(3, 1, 1, 1)
    own = pytorch_msssim.ssim(x, y, 1.0, win=win)
    other = pytorch_msssim.ssim(x, y, 1.0, win_size=7, win_sigma=1.2)
    torch.testing.assert_close(own, other, rtol=0, atol=2e-6)
    box = torch.full((3, 1, 1, 5), 0.2, device=x.device)
    assert abs(pytorch_msssim.ssim(x, y, 1.0, win=box) - other) > 1e-4
    by_window, by_kernel = [torch.autograd.grad(each, (x, y)) for each in (own, other)]
    for gradient, expected in zip(by_window, by_kernel):
        assert relative_l2(gradient, expected) < 1e-4


def halved(images):
    pool = F.avg_pool2d if images.dim() == 4 else F.avg_pool3d
    return pool(images, 2, padding=[side % 2 for side in images.shape[2:]])


def test_pytorch_msssim_ms_ssim(images, relative_l2):
    x, y = images(2, 2, 71, 66, requires_grad="xy")
    weights = [0.2, 0.3, 0.5]
    own = pytorch_msssim.ms_ssim(x, y, 1.0, size_average=False, win_size=5, weights=weights)
    a, b, product = x.double(), y.double(), 1
    for level, weight in enumerate(weights):
        if level > 0:
            a, b = halved(a), halved(b)
        whole, contrast = ssim_terms(a, b, 1.0, 5)
        mean = (whole if level == 2 else contrast).mean((2, 3)).relu()
        product = product * mean**weight
    torch.testing.assert_close(own.double(), product.mean(1), rtol=0, atol=2e-6)
    own_gradients = torch.autograd.grad(own.sum(), (x, y))
    for gradient, other in zip(own_gradients, torch.autograd.grad(product.mean(1).sum(), (x, y))):
        assert relative_l2(gradient, other) < 1e-5
    module = pytorch_msssim.MS_SSIM(1.0, False, 5, weights=weights)
    assert torch.equal(module(x, y), own)


def test_pytorch_msssim_composes_what_a_kernel_does_not_do(images):
    """Volumes that are thinner than the window at a coarser level."""
    x, y = images(1, 1, 6, 70, 66)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        own = pytorch_msssim.ms_ssim(x, y, 1.0, win_size=5, weights=[0.5, 0.5])
    assert any("axis 2 is 3, shorter than the window, 5" in str(each.message) for each in caught)
    contrast = ssim_terms(x, y, 1.0, 5)[1].mean()
    flat = [halved(each.double()).transpose(1, 2).reshape(3, 1, 35, 33) for each in (x, y)]
    whole = ssim_terms(*flat, 1.0, 5)[0].mean()
    torch.testing.assert_close(own.double(), (contrast * whole).sqrt(), rtol=0, atol=1e-5)


def test_pytorch_msssim_squeezes_and_warns(images):
    x, y = images(2, 3, 1, 24, 20)
    flat = pytorch_msssim.ssim(x[:, :, 0], y[:, :, 0], 1.0)
    assert torch.equal(pytorch_msssim.ssim(x, y, 1.0), flat)
    x, y = images(1, 1, 4, 24, 20)
    with pytest.warns(UserWarning, match="axis 2 is 4, shorter than the window, 11"):
        own = pytorch_msssim.ssim(x, y, 1.0)
    planes = [each.transpose(1, 2).reshape(4, 1, 24, 20) for each in (x, y)]
    torch.testing.assert_close(own.double(), ssim_terms(*planes)[0].mean(), rtol=0, atol=1e-6)


def test_pytorch_msssim_refusals(images):
    x, y = images(1, 1, 24, 20)
    with pytest.raises(ValueError, match="Window size should be odd."):
        pytorch_msssim.ssim(x, y, win_size=10)
    with pytest.raises(ValueError, match=r"ssim: Y has shape \[1, 1, 24, 19\]"):
        pytorch_msssim.ssim(x, y[..., 1:])
    with pytest.raises(ValueError, match="it must have 4 or 5 axes"):
        pytorch_msssim.ssim(x[..., 0], y[..., 0])
    with pytest.raises(AssertionError, match="Image size should be larger than 160"):
        pytorch_msssim.ms_ssim(x, y)


X = torch.rand(1, 3, 20, 20)
WIN = torch.ones(3, 1, 1, 5) / 5
REFUSED = [
    (pytorch_msssim.ssim, (None, X), {}, TypeError, "ssim: X is of type NoneType; it must be"),
    (pytorch_msssim.ssim, (X, X), {"K": 1}, TypeError, "ssim: K is 1; it must be two numbers"),
    (pytorch_msssim.ssim, (X, X), {"win": 3}, TypeError, "ssim: win is of type int; it must be"),
    (pytorch_msssim.ssim, (X, X), {"win": WIN[:1]}, ValueError, "ssim: win has shape [1, 1, 1, 5]"),
    (
        pytorch_msssim.ssim,
        (X, X),
        {"win": WIN, "data_range": 0},
        ValueError,
        "ssim: data_range is 0; it must be a number above 0",
    ),
    (fussim.ssim, (X, X), {"data_range": 0}, ValueError, "ssim: data_range is 0; it must be a n"),
    (interpolator.fireants_interpolator, (None,), {}, TypeError, "fireants_interpolator: input is"),
    (interpolator.affine_warp_2d, (None, None), {}, TypeError, "affine_warp: grid is of type NoneType"),
    (
        fireants.FusedLocalNormalizedCrossCorrelationLoss(2),
        (X.numpy(), X),
        {},
        TypeError,
        "FusedLocalNormalizedCrossCorrelationLoss: pred is of type numpy.ndarray; it must be a torch.Tensor",
    ),
    (
        fireants.FusedLocalNormalizedCrossCorrelationLoss(2, masked=True),
        (X[:, :1], X[:, :1]),
        {},
        ValueError,
        "FusedLocalNormalizedCrossCorrelationLoss: pred has shape [1, 1, 20, 20]; with masked its last",
    ),
    (
        fireants.FusedGlobalMutualInformationLoss(masked=True),
        (None, X),
        {},
        TypeError,
        "FusedGlobalMutualInformationLoss: pred is of type NoneType",
    ),
]


@pytest.mark.parametrize("function, arguments, options, error, sentence", REFUSED)
def test_what_peers_take_for_granted_is_checked(function, arguments, options, error, sentence):
    with pytest.raises(error) as caught:
        function(*arguments, **options)
    assert str(caught.value).startswith(sentence), caught.value

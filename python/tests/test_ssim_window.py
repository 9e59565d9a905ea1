# SPDX-License-Identifier: Apache-2.0
"""SSIM under a box, and with a sample's covariance, against torch's own operators."""

import pytest

torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
import torch.nn.functional as F
import similis


def spelled_out(x, y, size, sample, k1=0.01, k2=0.03):
    pool = F.avg_pool2d if x.dim() == 4 else F.avg_pool3d
    x, y = x.double(), y.double()
    mean_x, mean_y = pool(x, size, 1), pool(y, size, 1)
    n = size ** (x.dim() - 2)
    factor = n / (n - 1) if sample else 1
    var_x, var_y, covariance = (
        factor * (pool(a * b, size, 1) - pool(a, size, 1) * pool(b, size, 1))
        for a, b in ((x, x), (y, y), (x, y))
    )
    c1, c2 = k1**2, k2**2
    return (
        (2 * mean_x * mean_y + c1)
        * (2 * covariance + c2)
        / ((mean_x**2 + mean_y**2 + c1) * (var_x + var_y + c2))
    )


@pytest.mark.parametrize("sample", [False, True])
@pytest.mark.parametrize("shape, size", [((2, 3, 24, 20), 7), ((1, 2, 9, 10, 11), 3), ((1, 1, 40, 41), 37)])
def test_values_and_gradients(images, relative_l2, shape, size, sample):
    options = {"window": "box", "window_size": size, "sample_covariance": sample}
    for dtype in (torch.float64, torch.float32, torch.float16):
        x, y = images(*shape, dtype=dtype, requires_grad="xy")
        expected = spelled_out(x, y, size, sample).mean()
        value = similis.ssim(x, y, **options)
        assert abs(value.double() - expected) < 1e-6
        for image, slope in zip((x, y), torch.autograd.grad(expected, (x, y))):
            mine = torch.autograd.grad(value, image, retain_graph=True)[0]
            assert relative_l2(mine, slope) < (2e-3 if dtype == torch.float16 else 2e-5)


def test_second_derivatives_and_vmap(images):
    x, y = images(2, 1, 6, 7, dtype=torch.float64)
    options = {"window": "box", "window_size": 5, "sample_covariance": True, "padding": "same"}
    assert torch.autograd.gradgradcheck(
        lambda a: similis.ssim_loss(a, y, **options), x.requires_grad_(), atol=1e-6, fast_mode=True
    )
    x = x.detach()
    each = torch.vmap(lambda a, b: similis.ssim(a[None], b[None], **options))(x, y)
    torch.testing.assert_close(each, similis.ssim(x, y, reduction="per_image", **options))


def test_a_box_equals_a_very_wide_gaussian(images):
    x, y = images(1, 1, 20, 20)
    box = similis.ssim(x, y, window="box", window_size=7)
    assert abs(box - similis.ssim(x, y, window_size=7, sigma=1e9)) < 1e-6


@pytest.mark.parametrize(
    "options, words",
    [
        ({"window": "square"}, "window is 'square'; it must be box or gaussian"),
        ({"sample_covariance": 1}, "sample_covariance is 1; it must be True or False"),
        ({"sample_covariance": True, "window_size": 1}, "window_size is 1; with sample_covariance"),
        ({"use_sample_covariance": True}, "no option use_sample_covariance; here it is sample_"),
        ({"gaussian_weights": True}, 'no option gaussian_weights; here it is window="gaussian"'),
    ],
    ids=str,
)
def test_refusals(options, words):
    x = torch.rand(1, 1, 16, 16)
    with pytest.raises((TypeError, ValueError), match=f"ssim: .*{words}"):
        similis.ssim(x, x, **options)

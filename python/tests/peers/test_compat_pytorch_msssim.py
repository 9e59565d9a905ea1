# SPDX-License-Identifier: Apache-2.0
"""compat.pytorch_msssim against pytorch-msssim, over its own options."""

import inspect

import pytest

torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
from similis.compat import pytorch_msssim as ours

theirs = pytest.importorskip(
    "pytorch_msssim", reason="`make check` installs pytorch-msssim where there is torch"
)
CLASSES = {"ssim": "SSIM", "ms_ssim": "MS_SSIM"}


def box(channels, *sides):
    """A window that is no Gaussian and not symmetric."""
    taps = torch.tensor([0.1, 0.3, 0.3, 0.2, 0.1])
    return taps.repeat([channels] + [1] * (len(sides) or 2) + [1])


WINDOW = {"win": box(3)}
VOLUMES = (2, 2, 14, 15, 16)
CASES = [
    ("ssim", (2, 3, 24, 20), {"data_range": 1.0}),
    ("ssim", (2, 3, 24, 20), {"data_range": 1.0, "size_average": False, "K": (0.02, 0.05)}),
    ("ssim", (2, 3, 24, 20), {"data_range": 1.0, "nonnegative_ssim": True}),
    ("ssim", (2, 3, 24, 20), {"data_range": 1.0, "win_size": 5, "win_sigma": 0.8}),
    ("ssim", (2, 3, 24, 20), {"data_range": 1.0, **WINDOW}),
    ("ssim", (2, 3, 24, 20), {"data_range": 1.0, "size_average": False, **WINDOW}),
    ("ssim", (2, 3, 24, 20), {"data_range": 1.0, "nonnegative_ssim": True, **WINDOW}),
    ("ssim", VOLUMES, {"data_range": 1.0}),
    ("ssim", VOLUMES, {"data_range": 1.0, "win": box(2, 1, 1, 1)}),
    ("ssim", (2, 3, 24, 4), {"data_range": 1.0}),  # an axis that is not smoothed
    ("ssim", (2, 3, 1, 24, 20), {"data_range": 1.0, **WINDOW}),  # an axis of one pixel
    ("ms_ssim", (1, 2, 170, 165), {"data_range": 1.0}),
    ("ms_ssim", (2, 3, 70, 71), {"data_range": 1.0, "win_size": 5, "size_average": False}),
    ("ms_ssim", (2, 3, 70, 71), {"data_range": 1.0, **WINDOW}),
    ("ms_ssim", (2, 3, 70, 71), {"data_range": 1.0, "weights": [0.4, 0.6], **WINDOW}),
    ("ms_ssim", (1, 2, 6, 35, 36), {"data_range": 1.0, "win_size": 3, "weights": [0.4, 0.6]}),
]


def pair(shape):
    generator = torch.Generator().manual_seed(len(shape))
    x = torch.rand(shape, dtype=torch.float64, generator=generator)
    y = (x + 0.3 * torch.rand(shape, dtype=torch.float64, generator=generator) - 0.1).clamp(0, 1)
    return x, y


@pytest.fixture(autouse=True)
def exact_taps(monkeypatch):
    """pytorch-msssim rounds its taps to f32, which moves an SSIM of f64 images by 2e-7."""
    monkeypatch.setattr(torch, "float", torch.float64)


@pytest.mark.filterwarnings("ignore:.*(Skipping|shorter than the window)")
@pytest.mark.parametrize("name, shape, options", CASES, ids=str)
def test_values_and_gradients_are_those_of_pytorch_msssim(name, shape, options, relative_l2):
    images = [[each.clone().requires_grad_() for each in pair(shape)] for _ in range(2)]
    results = [
        getattr(module, name)(*each, **options) for module, each in zip((ours, theirs), images)
    ]
    torch.testing.assert_close(*results, rtol=1e-9, atol=1e-9)
    for result in results:
        result.sum().backward()
    for mine, other in zip(*images):
        assert relative_l2(mine.grad, other.grad) < 1e-6


@pytest.mark.parametrize("name", CLASSES)
def test_signatures(name):
    def named(function):
        parameters = inspect.signature(function).parameters
        return {each.name: each.default for each in parameters.values()}

    assert named(getattr(ours, name)) == named(getattr(theirs, name))
    assert named(getattr(ours, CLASSES[name])) == named(getattr(theirs, CLASSES[name]))


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("spatial_dims", [2, 3])
def test_windows_of_modules(name, spatial_dims):
    """The attribute `win`, which forward() uses when it is assigned."""
    options = {"data_range": 1.0, "win_size": 3, "channel": 2, "spatial_dims": spatial_dims}
    modules = [getattr(module, CLASSES[name])(**options) for module in (ours, theirs)]
    assert modules[0].win.shape == modules[1].win.shape
    torch.testing.assert_close(modules[0].win.double(), modules[1].win.double(), rtol=0, atol=1e-7)
    x, y = pair((1, 2, *[34] * (spatial_dims - 2), 36, 35))
    default = modules[0](x, y)
    torch.testing.assert_close(default, modules[1](x, y), rtol=1e-9, atol=1e-9)
    for module in modules:
        module.win = torch.full_like(module.win, 1 / 3, dtype=torch.float64)
    torch.testing.assert_close(modules[0](x, y), modules[1](x, y), rtol=1e-9, atol=1e-9)
    assert abs(modules[0](x, y) - default) > 1e-5
    with pytest.raises(TypeError, match=f"{CLASSES[name]}: win is of type NoneType; it must be a t"):
        modules[0].win = None

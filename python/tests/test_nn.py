# SPDX-License-Identifier: Apache-2.0
"""The modules are their functions with options given once."""

import inspect

import pytest

torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
import similis
from similis import nn

PAIRS = [
    (nn.SSIM(window_size=5, padding="same"), similis.ssim, {"window_size": 5, "padding": "same"}),
    (nn.SSIMLoss(data_range=2.0), similis.ssim_loss, {"data_range": 2.0}),
    (nn.L1SSIMLoss(0.4, k1=0.02), similis.l1_ssim, {"weight": 0.4, "k1": 0.02}),
    (
        nn.MSSSIM((0.5, 0.5), window_size=5),
        similis.ms_ssim,
        {"weights": (0.5, 0.5), "window_size": 5},
    ),
    (nn.MSSSIMLoss(weights=[1.0], downsample="floor"), similis.ms_ssim_loss, {"weights": [1.0]}),
    (nn.PSNR(reduction="per_image"), similis.psnr, {"reduction": "per_image"}),
]


@pytest.mark.parametrize("module, function, options", PAIRS, ids=lambda each: type(each).__name__)
def test_modules(images, module, function, options):
    x, y = images(2, 3, 24, 20)
    assert torch.equal(module(x, y), function(x, y, **options))
    assert not list(module.parameters()) and not module.state_dict()


def test_masks_by_name_and_words():
    module = nn.SSIMLoss(window_size=7)
    x = torch.rand(1, 1, 16, 16)
    assert module(x, x, mask=torch.ones(16, 16)) == 0
    assert "window_size=7" in repr(module)
    with pytest.raises(TypeError, match="window"):
        nn.MSSSIM(window=7)


def test_training_lowers_the_loss(images):
    x, target = images(1, 3, 32, 32, requires_grad="x")
    optimizer = torch.optim.Adam([x], lr=0.02)
    module = nn.L1SSIMLoss()
    first = module(x, target).item()
    for _ in range(20):
        optimizer.zero_grad()
        module(x, target).backward()
        optimizer.step()
    assert module(x, target).item() < first / 3


def test_submodules_are_found_without_an_import_of_their_own(run_python):
    run_python("""
        import sys
        import similis
        assert "torch" not in sys.modules
        similis.nn.SSIM, similis.compat.fussim.SSIM, similis.compat.pytorch_msssim.MS_SSIM
        assert not hasattr(similis, "m")
    """)


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: nn.SSIM(window_size=8), "nn.SSIM: window_size is 8; it must be an odd number"),
        (lambda: nn.SSIMLoss(padding="foo"), "nn.SSIMLoss: padding is 'foo'; it must be valid, "),
        (lambda: nn.SSIM(data_range=(1, 0)), r"nn.SSIM: data_range is \(1, 0\); the second must"),
        (lambda: nn.SSIM(window_size=(3, 4)), "nn.SSIM: window_size is 4; it must be an odd"),
        (lambda: nn.L1SSIMLoss(2), "nn.L1SSIMLoss: weight is 2; it must be a number from 0 to 1"),
        (lambda: nn.MSSSIM(weights=[-1.0]), "nn.MSSSIM: weights is -1.0; it must be a number of 0"),
        (lambda: nn.LNCCLoss(window="square"), "nn.LNCCLoss: window is 'square'; it must be box"),
        (lambda: nn.MutualInformation(range="all"), "nn.MutualInformation: range is 'all'; it must"),
        (lambda: nn.PSNR(reduction="sum"), "nn.PSNR: reduction is 'sum'; it must be mean"),
        (lambda: nn.NCCLoss(channel_axis="last"), "nn.NCCLoss: channel_axis is 'last'; it must be an"),
        (lambda: nn.PSNR(1.0, "mean", None, 4), "PSNR: 4 options came without a name; it takes 3"),
        (lambda: nn.FloatSSIM(scale=11), "nn.FloatSSIM: scale is 11; it must be"),
        (lambda: nn.SSIM(mask=1), "nn.SSIM: mask is no option; give it with the images of each call"),
        (lambda: nn.SSIM(win_size=7), "nn.SSIM: there is no option win_size; here it is window_size"),
    ],
)
def test_options_are_checked_when_a_module_is_made(make, words):
    with pytest.raises((TypeError, ValueError), match=words):
        make()


def test_each_measure_has_a_module(images):
    x, y = images(2, 3, 24, 20)
    for name in ("LNCC", "NCC", "MSE", "MAE", "LNCCLoss", "NCCLoss", "MutualInformation"):
        module = getattr(nn, name)()
        assert torch.equal(module(x, y), type(module).function(x, y))
    bytes_ = [(255 * each).to(torch.uint8) for each in (x, y)]
    assert torch.equal(nn.SSIMULACRA2()(*bytes_), similis.ssimulacra2(*bytes_))
    planes = [each[0].contiguous() for each in bytes_]
    assert torch.equal(nn.IntegerSSIM()(*planes), similis.integer_ssim(*planes))


def test_constructors_show_their_options():
    """With the defaults of the functions, to inspect and help()."""
    for name in nn.__all__:
        made = getattr(nn, name)
        own = inspect.signature(made).parameters
        options = inspect.signature(made.function).parameters
        assert own and all(each.default is not each.empty for each in own.values())
        assert all(own[each].default == options[each].default for each in own)
        assert not [each for each in own if "mask" in each]
    assert list(inspect.signature(nn.L1SSIMLoss).parameters)[0] == "weight"


def test_modules_take_what_functions_take(images):
    x, y = images(2, 3, 24, 20)
    last = [each.movedim(1, -1) for each in (x, y)]
    value = nn.SSIMLoss(channel_axis=-1, data_range=(0, 1))(*last)
    torch.testing.assert_close(value, similis.ssim_loss(x, y))
    nn.SSIM(window_size=(3, 5, 7))  # of volumes

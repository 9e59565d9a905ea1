# SPDX-License-Identifier: Apache-2.0
"""compat.torchmetrics against torchmetrics, over its own options."""

import inspect

import pytest

torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
from similis.compat.torchmetrics.functional import image as ours

METRICS = "`make check` installs torchmetrics where there is torch"
theirs = pytest.importorskip("torchmetrics.functional.image", reason=METRICS)
their_classes = pytest.importorskip("torchmetrics.image", reason=METRICS)
from similis.compat.torchmetrics import image as our_classes

SSIM = "structural_similarity_index_measure"
MS_SSIM = "multiscale_structural_similarity_index_measure"
PSNR = "peak_signal_noise_ratio"
CLASSES = {
    SSIM: "StructuralSimilarityIndexMeasure",
    MS_SSIM: "MultiScaleStructuralSimilarityIndexMeasure",
    PSNR: "PeakSignalNoiseRatio",
}
BOX = {"gaussian_kernel": False}
CASES = [
    *[
        (SSIM, shape, options)
        for shape in [(2, 3, 24, 20), (2, 1, 20, 21, 22)]
        for options in [
            {"data_range": 1.0},
            {},
            {"data_range": (0.1, 0.9)},
            {"data_range": 1.0, "sigma": 0.8, "k1": 0.02, "k2": 0.05},
            {"data_range": 1.0, "kernel_size": 7, **BOX},
            {"data_range": 1.0, "reduction": "none"},
            {"data_range": 1.0, "reduction": "sum", "return_full_image": True},
            {"data_range": 1.0, "return_contrast_sensitivity": True},
            {"data_range": 1.0, "kernel_size": (3, 5, 7)[: len(shape) - 2], **BOX},
            {"data_range": 1.0, "sigma": (0.5, 1.0, 1.4)[: len(shape) - 2]},
        ]
    ],
    *[
        (MS_SSIM, (2, 3, 90, 101), {"kernel_size": 3, "sigma": 0.5, **options})
        for options in [
            {"data_range": 1.0},
            {},
            {"data_range": (0.0, 1.0), "reduction": "sum"},
            {"data_range": 1.0, "normalize": "simple", **BOX},
            {"data_range": 1.0, "normalize": None, "betas": (0.5, 0.5), "reduction": "none"},
        ]
    ],
    (MS_SSIM, (1, 2, 30, 31, 32), {"data_range": 1.0, "kernel_size": 3, "betas": (0.5, 0.5), "sigma": 0.5}),
    *[
        (PSNR, (3, 20, 21), {"data_range": 1.0, **options})
        for options in [
            {},
            {"data_range": (0.2, 0.8)},
            {"base": 2.0},
            {"dim": (1, 2), "reduction": "none"},
            {"dim": 1, "reduction": "sum"},
        ]
    ],
]


def pair(shape):
    generator = torch.Generator().manual_seed(len(shape))
    x = torch.rand(shape, dtype=torch.float64, generator=generator)
    y = (x + 0.3 * torch.rand(shape, dtype=torch.float64, generator=generator) - 0.1).clamp(0, 1.2)
    return x, y


def numbers(result):
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("name, shape, options", CASES, ids=str)
def test_values_and_gradients_are_those_of_torchmetrics(name, shape, options, relative_l2):
    images = [[each.clone().requires_grad_() for each in pair(shape)] for _ in range(2)]
    results = [
        numbers(getattr(module, name)(*each, **options))
        for module, each in zip((ours, theirs), images)
    ]
    for ours_, theirs_ in zip(*results):
        torch.testing.assert_close(ours_, theirs_.to(ours_.dtype), rtol=1e-6, atol=1e-6)
    for result in results:
        sum(each.mean() for each in result).backward()
    for mine, other in zip(*images):
        assert relative_l2(mine.grad, other.grad) < 1e-6


@pytest.mark.parametrize("name", CLASSES)
def test_signatures(name):
    def named(function):
        parameters = inspect.signature(function).parameters
        return {each.name: each.default for each in parameters.values()}

    assert named(getattr(ours, name)) == named(getattr(theirs, name))
    each = CLASSES[name]
    assert named(getattr(our_classes, each)) == named(getattr(their_classes, each))


@pytest.mark.parametrize(
    "name, shape, options",
    [
        (SSIM, (3, 1, 24, 20), {"data_range": 1.0}),
        (SSIM, (3, 1, 24, 20), {"data_range": 1.0, "reduction": "none"}),
        (SSIM, (3, 1, 24, 20), {"data_range": 1.0, "reduction": "sum", "return_full_image": True}),
        (MS_SSIM, (3, 1, 90, 90), {"data_range": 1.0, "kernel_size": 3, "sigma": 0.5}),
        (PSNR, (3, 1, 24, 20), {"data_range": 1.0}),
        (PSNR, (3, 1, 24, 20), {"data_range": (0.1, 0.9), "dim": (1, 2, 3), "reduction": "none"}),
    ],
    ids=str,
)
def test_classes_accumulate(name, shape, options):
    mine, other = (getattr(module, CLASSES[name])(**options) for module in (our_classes, their_classes))
    x, y = (each.float() for each in pair(shape))
    for batch in (slice(0, 2), slice(2, 3)):
        mine.update(x[batch], y[batch])
        other.update(x[batch], y[batch])
    for one, two in zip(numbers(mine.compute()), numbers(other.compute())):
        assert one.dtype == two.dtype
        torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-5)  # of its own f32
    torch.testing.assert_close(numbers(mine(x, y))[0], numbers(other(x, y))[0], rtol=1e-5, atol=1e-5)
    mine.reset()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name, options", [(SSIM, {}), (MS_SSIM, {}), (PSNR, {"data_range": 1.0})])
def test_classes_are_scriptable(name, options):
    torch.jit.script(getattr(our_classes, CLASSES[name])(**options))


def test_flat_images_and_equal_ones():
    x = torch.full((1, 1, 16, 16), 0.5)
    assert ours.structural_similarity_index_measure(x, x, data_range=1.0) == 1
    assert ours.peak_signal_noise_ratio(x, x, data_range=1.0) == torch.inf


@pytest.mark.parametrize(
    "name, options, words",
    [
        (SSIM, {"kernel_size": 4}, "kernel_size is 4; it must be odd"),
        (SSIM, {"sigma": 0.0}, "sigma is 0.0; it must be above 0"),
        (SSIM, {"sigma": (1.0, 1.0, 1.0)}, "sigma has 3 numbers; it takes one, or one for each of"),
        (SSIM, {"reduction": "mean"}, "reduction is 'mean'; it must be elementwise_mean, sum"),
        (MS_SSIM, {}, "the height is 16; with 5 betas it must be at least 32"),
        (MS_SSIM, {"betas": [1.0]}, "betas is .1.0.; it must be a tuple of floats"),
        (MS_SSIM, {"normalize": "abs"}, "normalize is 'abs'; it must be relu, simple or None"),
    ],
    ids=str,
)
def test_refusals(name, options, words):
    x = torch.rand(1, 1, 16, 16)
    with pytest.raises(ValueError, match=f"{name}: {words}"):
        getattr(ours, name)(x, x, **{"data_range": 1.0, **options})

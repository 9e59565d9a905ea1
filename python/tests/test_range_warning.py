# SPDX-License-Identifier: Apache-2.0
"""Float images far outside data_range are warned of, once."""

import warnings

import pytest

numpy = pytest.importorskip("numpy", reason="`make check` installs numpy")
import similis
from similis._library import range_warning

MEASURES = {
    "ssim": similis.ssim,
    "ssim_loss": similis.ssim_loss,
    "l1_ssim": similis.l1_ssim,
    "ms_ssim": lambda x, y, **options: similis.ms_ssim(x, y, weights=(0.5, 0.5), **options),
    "psnr": similis.psnr,
}


@pytest.fixture(autouse=True)
def nothing_warned(monkeypatch):
    monkeypatch.setattr(range_warning, "_warned", set())


def frameworks():
    yield lambda array: array
    torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
    yield lambda array: torch.from_numpy(array.copy())


def pair(scale, size=150):
    generator = numpy.random.default_rng(1)
    return [(scale * generator.random((1, 1, size, size))).astype("float32") for _ in range(2)]


@pytest.mark.parametrize("name", MEASURES)
def test_once_and_not_again(name, monkeypatch):
    x, y = pair(255)
    for convert in frameworks():
        monkeypatch.setattr(range_warning, "_warned", set())
        called = name.removesuffix("_loss")
        with pytest.warns(UserWarning, match=f"^{called}: .*; give data_range, the largest") as found:
            MEASURES[name](convert(x), convert(y))
        assert [each.filename for each in found] == [__file__]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            MEASURES[name](convert(x), convert(y))


@pytest.mark.parametrize("name", MEASURES)
def test_images_within_it_are_no_news(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for convert in frameworks():
            for scale, options in ((1, {}), (1.9, {}), (255, {"data_range": 255}), (255, {"data_range": 200})):
                x, y = pair(scale)
                MEASURES[name](convert(x), convert(y), **options)
            bytes_ = [each.astype("uint8") for each in pair(255)]
            MEASURES[name](*map(convert, bytes_))
            broken = numpy.full((1, 1, 150, 150), numpy.nan, "float32")
            MEASURES[name](convert(broken), convert(broken))


def test_one_value_of_either_image():
    for convert in frameworks():
        for which in 0, 1:
            range_warning._warned.clear()
            images = pair(1)
            images[which][0, 0, 77, 3] = 2.5
            words = f"ssim: {'xy'[which]} holds 2.5, above twice data_range, 1; give data_range"
            with pytest.warns(UserWarning, match=words):
                similis.ssim(*map(convert, images), mask=convert(images[0] * 0 + 1))


def test_other_layouts_and_scores():
    x, y = pair(255)
    with pytest.warns(UserWarning, match="ssim: x holds"):
        similis.ssim(x[0, 0], y[0, 0])
    with pytest.warns(UserWarning, match="ssimulacra2: reference holds .*: divide by the largest"):
        similis.ssimulacra2(x, y)
    with pytest.warns(UserWarning, match="psnr: "):
        similis.psnr(x[0], y[0])


def test_small_images_are_not_looked_at():
    """The look would take a fifth of the call."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        similis.ssim(*pair(255, 100))


def test_compiled_and_transformed_calls_are_as_before():
    torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
    x, y = (torch.from_numpy(each) for each in pair(255))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        torch.func.vmap(similis.ssim)(x[None], y[None])
    assert not range_warning._warned

# SPDX-License-Identifier: Apache-2.0
"""compat.skimage against scikit-image, over its own options."""

import itertools

import pytest

numpy = pytest.importorskip("numpy", reason="`make check` installs numpy")
metrics = pytest.importorskip("skimage.metrics", reason="`make check` installs scikit-image")
from similis.compat.skimage import structural_similarity

SHAPES = [((40, 33), None), ((64,), None), ((14, 15, 16), None), ((30, 31, 3), -1), ((2, 30, 31), 0)]
OPTIONS = [
    {},
    {"win_size": 5},
    {"use_sample_covariance": False, "K1": 0.02, "K2": 0.05},
    {"gaussian_weights": True},
    {"gaussian_weights": True, "win_size": 5, "sigma": 1.0},
    {"gaussian_weights": True, "win_size": 11, "sigma": 0.8, "use_sample_covariance": False},
]


def pair(shape, dtype):
    rng = numpy.random.default_rng(len(shape))
    x = rng.random(shape)
    y = (x + 0.3 * rng.random(shape) - 0.1).clip(0, 1)
    if numpy.dtype(dtype).kind == "i" or dtype == "uint8":
        return (255 * x).astype(dtype), (255 * y).astype(dtype), 255
    return x.astype(dtype), y.astype(dtype), 1.0


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("shape, channel_axis", SHAPES, ids=str)
def test_numbers_are_those_of_scikit_image(shape, channel_axis, options):
    for dtype in ("uint8", "int32", "float64", "float32", "float16"):
        x, y, data_range = pair(shape, dtype)
        given = {"data_range": data_range, "channel_axis": channel_axis, **options}
        expected = metrics.structural_similarity(x, y, gradient=True, full=True, **given)
        results = structural_similarity(x, y, gradient=True, full=True, **given)
        tolerance = 1e-6 if dtype not in ("float32", "float16") else 2e-5  # of scikit-image's own f32
        assert results[0] == pytest.approx(expected[0], abs=tolerance)
        for ours, theirs in zip(results[1:], expected[1:]):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            difference = numpy.linalg.norm(ours - theirs)
            assert difference <= tolerance * numpy.linalg.norm(theirs)
        assert structural_similarity(x, y, **given) == results[0]


def test_what_is_returned():
    x, y, _ = pair((20, 21), "uint8")
    for gradient, full in itertools.product((False, True), repeat=2):
        result = structural_similarity(x, y, gradient=gradient, full=full)
        expected = metrics.structural_similarity(x, y, gradient=gradient, full=full)
        count = len(expected) if isinstance(expected, tuple) else 0
        assert (len(result) if isinstance(result, tuple) else 0) == count
    assert isinstance(structural_similarity(x, y), numpy.float64)
    assert structural_similarity(x, x) == 1


def test_ranges_of_integers_are_said():
    x, y, _ = pair((20, 21), "int32")
    with pytest.warns(UserWarning, match="Setting data_range based on im1.dtype"):
        value = structural_similarity(x.astype("uint16"), y.astype("uint16"))
    assert value == structural_similarity(x, y, data_range=65535)
    with pytest.warns(UserWarning, match="Inputs have mismatched dtypes"):
        structural_similarity(x.astype("uint8"), y.astype("int32"))


@pytest.mark.parametrize(
    "shape, options, words",
    [
        ((20, 20), {"win_size": 6}, "win_size is 6; it must be odd"),
        ((20, 20), {"win_size": 21}, "win_size is 21; it must not be above the smallest side of"),
        ((20, 20), {"win_size": 1}, "win_size is 1; with use_sample_covariance it must be"),
        ((20, 20), {"K1": -0.1}, "K1 is -0.1; it must be 0 or more"),
        ((20, 20), {"multichannel": True}, "there is no option multichannel; here it is channel_axis"),
        ((20, 20), {"channel_axis": 2}, "channel_axis is 2; it must be an axis of im1"),
        ((3, 3, 3, 3), {}, "im1 has shape .3, 3, 3, 3.; it must have 1 to 3 axes"),
        ((20, 20), {"data_range": None}, "data_range is None, and floats have no usual range"),
    ],
    ids=str,
)
def test_refusals(shape, options, words):
    x = numpy.ones(shape)
    with pytest.raises((ValueError, TypeError), match=f"structural_similarity: {words}"):
        structural_similarity(x, x, **{"data_range": 1.0, **options})

# SPDX-License-Identifier: Apache-2.0
"""NumPy's arrays: what torch's give, in any layout, with gradients by value_and_gradient()."""

import math
import sys

import pytest

numpy = pytest.importorskip("numpy", reason="`make check` installs numpy")
import similis


def make_images(*shape, dtype="float32"):
    generator = numpy.random.default_rng(math.prod(shape))
    x = generator.random(shape)
    y = (x + 0.1 * generator.random(shape) - 0.05).clip(0, 1)
    if dtype == "uint8":
        x, y = 255 * x, 255 * y
    return x.astype(dtype), y.astype(dtype)


def direct_ssim(x, y, size=7, sigma=1.5, data_range=1.0):
    """SSIM of one plane, window by window, as the paper writes it."""
    taps = numpy.exp(-((numpy.arange(size) - size // 2) ** 2) / (2 * sigma**2))
    weights = numpy.outer(taps, taps) / taps.sum() ** 2
    windows_x = numpy.lib.stride_tricks.sliding_window_view(x.astype("float64"), (size, size))
    windows_y = numpy.lib.stride_tricks.sliding_window_view(y.astype("float64"), (size, size))

    def mean(values):
        return (values * weights).sum((-1, -2))

    mean_x, mean_y = mean(windows_x), mean(windows_y)
    of_x, of_y = windows_x - mean_x[..., None, None], windows_y - mean_y[..., None, None]
    c1, c2 = (0.01 * data_range) ** 2, (0.03 * data_range) ** 2
    numerator = (2 * mean_x * mean_y + c1) * (2 * mean(of_x * of_y) + c2)
    variances = mean(of_x**2) + mean(of_y**2)
    return numerator / ((mean_x**2 + mean_y**2 + c1) * (variances + c2))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
def test_ssim_is_the_paper_s(dtype):
    x, y = make_images(1, 1, 24, 21, dtype=dtype)
    data_range = 255 if dtype == "uint8" else 1
    expected = direct_ssim(x[0, 0], y[0, 0], data_range=data_range)
    similarity = similis.ssim(x, y, window_size=7, reduction="none")
    assert similarity.dtype == ("float64" if dtype == "float64" else "float32")
    numpy.testing.assert_allclose(similarity[0, 0], expected, atol=1e-6)
    mean = similis.ssim(x, y, window_size=7)
    assert numpy.isscalar(mean) and abs(mean - expected.mean()) < 1e-6


@pytest.mark.parametrize("measure", [similis.ssim_loss, similis.l1_ssim, similis.mse])
def test_gradients_are_slopes(measure):
    x, y = make_images(1, 1, 14, 13, dtype="float64")
    value, by_x, by_y = similis.value_and_gradient(measure, x, y, wrt="both")
    assert value == measure(x, y)
    for image, gradient, of_first in (x, by_x, True), (y, by_y, False):
        step = numpy.zeros_like(image)
        step[0, 0, 6, 7] = 1e-5
        ahead = measure(x + step, y) if of_first else measure(x, y + step)
        behind = measure(x - step, y) if of_first else measure(x, y - step)
        assert gradient[0, 0, 6, 7] == pytest.approx((ahead - behind) / 2e-5, rel=1e-5)
    alone = similis.value_and_gradient(measure, x, y, wrt="y")[1]
    numpy.testing.assert_allclose(alone, by_y, rtol=1e-9, atol=1e-15)


def test_layouts_change_nothing():
    x, y = make_images(2, 3, 24, 22)
    expected = similis.ssim(x, y)
    read_only = x.copy()
    read_only.flags.writeable = False
    reversed_twice = x[:, ::-1, ::-1].copy()[:, ::-1, ::-1]
    channels_last = x.transpose(0, 2, 3, 1).copy().transpose(0, 3, 1, 2)
    record = numpy.zeros(x.shape, dtype=[("byte", "u1"), ("pixel", "f4")])
    record["pixel"] = x
    for other in read_only, reversed_twice, channels_last, record["pixel"]:
        assert similis.ssim(other, y) == expected


def test_masks_and_empty_pixels():
    x, y = make_images(1, 2, 16, 16)
    valid = numpy.ones((16, 16), dtype=bool)
    valid[4:7, 5:9] = False
    x[..., 4:7, 5:9] = numpy.nan
    value, gradient = similis.value_and_gradient(similis.ssim, x, y, valid_mask=valid)
    assert numpy.isfinite(value) and numpy.isfinite(gradient).all()
    assert (gradient[..., ~valid] == 0).all() and (gradient[..., valid] != 0).any()


def test_decibels():
    x, y = make_images(2, 3, 9, 8, dtype="uint8")
    error = ((x.astype("float64") - y) ** 2).mean((1, 2, 3))
    numpy.testing.assert_allclose(
        similis.psnr(x, y, reduction="per_image"), 10 * numpy.log10(255**2 / error), rtol=1e-6
    )
    assert similis.psnr(x, x) == numpy.inf
    wide = x.astype("uint16") * 257
    assert similis.psnr(wide, y.astype("uint16") * 257) == pytest.approx(
        similis.psnr(x, y), rel=1e-6
    )


def test_torch_gives_the_same_bits():
    torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
    x, y = make_images(2, 3, 24, 22)
    a, b = torch.from_numpy(x).requires_grad_(), torch.from_numpy(y)
    for measure in similis.ssim, similis.l1_ssim, similis.mae:
        value, gradient = similis.value_and_gradient(measure, x, y)
        result = measure(a, b)
        assert result.item() == value
        assert numpy.array_equal(torch.autograd.grad(result, a)[0].numpy(), gradient)
    assert similis.psnr(a, b).item() == similis.psnr(x, y)


def test_no_framework_is_imported_for_numpy(run_python):
    run_python("""
        import sys
        import numpy, similis
        x = numpy.random.rand(1, 1, 16, 16)
        assert similis.ssim(x, x) == 1
        assert not {"torch", "jax", "cupy"} & set(sys.modules)
    """)


def test_cupy_arrays():
    cupy = pytest.importorskip("cupy", reason="cupy is not installed")
    if not cupy.cuda.is_available():
        pytest.skip("there is no GPU")
    x, y = make_images(2, 3, 24, 22)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        value, gradient = similis.value_and_gradient(similis.ssim, cupy.array(x), cupy.array(y))
        stream.synchronize()
    assert isinstance(value, cupy.ndarray)
    expected, expected_gradient = similis.value_and_gradient(similis.ssim, x, y)
    assert abs(float(value) - expected) < 1e-6
    error = numpy.linalg.norm(gradient.get() - expected_gradient)
    assert error < 1e-5 * numpy.linalg.norm(expected_gradient)


def test_arrays_of_two_libraries_are_refused():
    x, y = make_images(1, 1, 16, 16)
    with pytest.raises(TypeError, match="ssim: y is of type list; it must be a numpy.ndarray"):
        similis.ssim(x, y.tolist())
    if "torch" in sys.modules:
        tensor = sys.modules["torch"].from_numpy(y)
        with pytest.raises(TypeError, match="y is of type torch.Tensor; it must be a numpy.ndarray"):
            similis.ssim(x, tensor)
        with pytest.raises(TypeError, match="y is of type numpy.ndarray; it must be a torch.Tensor"):
            similis.ssim(tensor, x)

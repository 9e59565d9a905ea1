# SPDX-License-Identifier: Apache-2.0
"""libvmaf's measures of planes: one number whatever library, layout or thread it comes from."""

import json
import pathlib
import subprocess

import pytest

numpy = pytest.importorskip("numpy", reason="`make check` installs numpy")
import similis


def planes(*shape, bits=8):
    generator = numpy.random.default_rng(bits)
    x = generator.integers(0, 2**bits, size=shape)
    y = (x + generator.integers(-9, 10, size=shape)).clip(0, 2**bits - 1)
    dtype = "uint8" if bits == 8 else "uint16"
    return x.astype(dtype), y.astype(dtype)


def direct(x, y, bits):
    """The mean over all pixels, weighted by what is left of their windows, in f64."""
    taps = numpy.array([2, 9, 28, 55, 68, 55, 28, 9, 2], dtype="float64")
    peak = 2**bits - 1
    weights, similarities = 0.0, 0.0
    height, width = x.shape
    for row in range(height):
        for column in range(width):
            rows = slice(max(row - 4, 0), row + 5)
            columns = slice(max(column - 4, 0), column + 5)
            window = numpy.outer(
                taps[rows.start - row + 4 : min(height, row + 5) - row + 4],
                taps[columns.start - column + 4 : min(width, column + 5) - column + 4],
            )
            a, b = x[rows, columns].astype("float64"), y[rows, columns].astype("float64")
            w = window.sum()
            mx, my = (window * a).sum(), (window * b).sum()
            xx, yy, xy = [(window * each).sum() for each in (a * a, b * b, a * b)]
            c1, c2 = 0.01**2 * peak**2 * w * w, 0.03**2 * peak**2 * w * w
            numerator = (2 * mx * my + c1) * (2 * (xy * w - mx * my) + c2)
            denominator = (mx * mx + my * my + c1) * (xx * w - mx * mx + yy * w - my * my + c2)
            similarities += w * numerator / denominator
            weights += w
    return similarities / weights


@pytest.mark.parametrize("bits", [8, 10])
def test_it_is_the_weighted_mean_of_cut_windows(bits):
    x, y = planes(14, 17, bits=bits)
    own = similis.integer_ssim(x, y, bit_depth=bits)
    assert own.dtype == "float64" and own == pytest.approx(direct(x, y, bits), rel=1e-12)
    assert similis.integer_ssim(x, x, bit_depth=bits) == 1


def test_batches_layouts_and_torch_give_the_same_bits():
    x, y = planes(3, 40, 52)
    each = similis.integer_ssim(x, y)
    assert each.shape == (3,)
    assert [similis.integer_ssim(a, b) for a, b in zip(x, y)] == each.tolist()
    transposed = x.transpose(2, 1, 0).copy().transpose(2, 1, 0)
    assert numpy.array_equal(similis.integer_ssim(transposed, y), each)
    torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
    tensors = torch.from_numpy(x), torch.from_numpy(y)
    assert similis.integer_ssim(*tensors).tolist() == each.tolist()
    compiled = torch.compile(similis.integer_ssim, backend="aot_eager", fullgraph=True)
    assert compiled(*tensors).tolist() == each.tolist()
    assert similis.integer_ssim(tensors[0][0], tensors[1][0]).shape == ()


def test_refusals():
    x, y = planes(16, 16)
    for bit_depth in 7, 17:
        with pytest.raises(ValueError, match="integer_ssim: bit_depth is .*; it must be 8, 10, 12"):
            similis.integer_ssim(x, y, bit_depth=bit_depth)
    with pytest.raises(ValueError, match="integer_ssim: bit_depth is 9; it must be 8 for uint8"):
        similis.integer_ssim(x, y, bit_depth=9)
    with pytest.raises(
        ValueError, match="integer_ssim: bit_depth is 9; it must be 8, 10, 12 or 16"
    ):
        similis.integer_ssim(x.astype("uint16"), y.astype("uint16"), bit_depth=9)
    with pytest.raises(ValueError, match="integer_ssim: bit_depth is 10"):
        similis.integer_ssim(x, y, bit_depth=10)
    with pytest.raises(ValueError, match="integer_ssim: x"):
        similis.integer_ssim(x.astype("float32"), y.astype("float32"))
    with pytest.raises(ValueError, match="integer_ssim: "):
        similis.integer_ssim(x.astype("uint16") * 99, y.astype("uint16"), bit_depth=10)
    with pytest.raises(TypeError, match="value_and_gradient: measure is"):
        similis.value_and_gradient(similis.integer_ssim, x, y)


def test_libvmaf_psnr():
    x, y = planes(3, 40, 50, bits=10)
    error = ((x.astype("float64") - y) ** 2).mean((1, 2))
    own = similis.libvmaf_psnr(x, y, bit_depth=10)
    numpy.testing.assert_allclose(own, 10 * numpy.log10(1023**2 / error), rtol=1e-6)
    assert numpy.isfinite(similis.libvmaf_psnr(x, x, bit_depth=10)).all()


def test_float_ssim_is_near_ssim_of_whole_pixels():
    x, y = planes(2, 180, 200)
    windows = similis.ssim(*[each[:, None].astype("float32") for each in (x, y)], data_range=255)
    whole = similis.float_ssim(x, y, scale=1)
    assert whole.dtype == "float64" and whole.shape == (2,)
    assert whole.mean() == pytest.approx(windows, abs=1e-3)
    assert similis.float_ssim(x, y, scale=2)[0] != whole[0]
    decibels = similis.float_ssim(x, y, scale=1, enable_db=True)
    numpy.testing.assert_allclose(decibels, -10 * numpy.log10(1 - whole), rtol=1e-5)
    assert 0.5 < similis.float_ms_ssim(x[0], y[0]) < 1 == similis.float_ms_ssim(x[0], x[0])


def test_torch_gets_the_same_of_floats():
    torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
    x, y = planes(180, 200)
    for measure in similis.float_ssim, similis.float_ms_ssim, similis.libvmaf_psnr:
        value = measure(torch.from_numpy(x), torch.from_numpy(y))
        assert value.dtype == torch.float64 and value.item() == measure(x, y)


def test_refusals_of_libvmaf_s_others():
    x, y = planes(180, 200)
    with pytest.raises(ValueError, match="float_ssim: scale is 11; it must be a whole number from 0 to 10"):
        similis.float_ssim(x, y, scale=11)
    with pytest.raises(TypeError, match="float_ms_ssim: enable_db is 1; it must be True or False"):
        similis.float_ms_ssim(x, y, enable_db=1)
    with pytest.raises(
        ValueError, match="libvmaf_psnr: bit_depth is 9; it must be 8, 10, 12 or 16"
    ):
        similis.libvmaf_psnr(x.astype("uint16"), y.astype("uint16"), bit_depth=9)
    with pytest.raises(ValueError, match="float_ms_ssim: "):
        similis.float_ms_ssim(x[:100], y[:100])


def test_means_of_the_factors_are_those_the_program_prints(tmp_path):
    x, y = planes(2, 180, 200)
    header = b"YUV4MPEG2 W200 H180 F25:1 Cmono\n"
    for name, video in (("x.y4m", x), ("y.y4m", y)):
        frames = b"".join(b"FRAME\n" + frame.tobytes() for frame in video)
        (tmp_path / name).write_bytes(header + frames)
    program = pathlib.Path(similis.__file__).parent / "native/similis"
    command = [program, "compare", "x.y4m", "y.y4m", "--format", "json"]
    for metric in "float-ssim", "float-ms-ssim":
        command += ["-m", f"{metric}=enable_lcs=true"]
    printed = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout
    frames = json.loads(printed)["frames"]
    factors = {"l": "luminance", "c": "contrast", "s": "structure"}
    single = similis.float_ssim(x, y, enable_lcs=True)
    scales = similis.float_ms_ssim(x, y, enable_lcs=True)
    assert scales.luminance.shape == (2, 5)
    for index, frame in enumerate(frames):
        assert single.value[index] == frame["float-ssim"]
        assert scales.value[index] == frame["float-ms-ssim"]
        for letter, factor in factors.items():
            assert getattr(single, factor)[index] == frame[f"float-ssim-{letter}"]
            expected = [frame[f"float-ms-ssim-{letter}_scale{scale}"] for scale in range(5)]
            assert getattr(scales, factor)[index].tolist() == expected
    plane = similis.float_ms_ssim(x[1], y[1], enable_lcs=True)
    assert plane.structure.tolist() == scales.structure[1].tolist() and plane.value.shape == ()
    assert similis.float_ssim(x[0], y[0], enable_lcs=True).contrast == single.contrast[0]
    with pytest.raises(TypeError, match="float_ssim: enable_lcs is 1; it must be True or False"):
        similis.float_ssim(x, y, enable_lcs=1)


def test_torch_gets_the_means_of_the_factors_too():
    torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
    x, y = planes(2, 180, 200)
    tensors = torch.from_numpy(x), torch.from_numpy(y)
    for measure in similis.float_ssim, similis.float_ms_ssim:
        found = measure(*tensors, enable_lcs=True)
        for own, expected in zip(found, measure(x, y, enable_lcs=True)):
            assert own.dtype == torch.float64 and own.tolist() == expected.tolist()

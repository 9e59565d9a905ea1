# SPDX-License-Identifier: Apache-2.0
"""Every measure of every layout and element type of every library: the number that [N,C,H,W] in
float64 gives, or one sentence."""

import json
import math

import pytest

numpy = pytest.importorskip("numpy", reason="`make check` installs numpy")
import similis


def to_torch(array):
    torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
    return torch.from_numpy(array.copy())


def to_jax(array):
    return pytest.importorskip("jax", reason="`make check-python` installs JAX").numpy.asarray(array)


def to_cupy(array):
    cupy = pytest.importorskip("cupy", reason="there is no CuPy")
    if not cupy.cuda.is_available():
        pytest.skip("there is no GPU")
    return cupy.asarray(array)


LIBRARIES = {"numpy": lambda array: array, "torch": to_torch, "jax": to_jax, "cupy": to_cupy}
# The scale of samples, and the range they have if none is given.
DTYPES = {
    "bool": (1, 1),
    "uint8": (255, 255),
    "uint16": (65535, 65535),
    "int16": (2000, None),
    "int32": (2000, None),
    "float16": (1, 1),
    "float32": (1, 1),
    "float64": (1, 1),
}
MEASURES = {
    "ssim": {},
    "ssim_loss": {"padding": "same"},
    "l1_ssim": {},
    "ms_ssim": {"weights": (0.5, 0.5), "window_size": 5},
    "ms_ssim_loss": {"weights": (0.5, 0.5), "window_size": 5},
    "lncc": {},
    "lncc_loss": {"window_size": 5},
    "ncc": {},
    "ncc_loss": {},
    "mutual_information": {"num_bins": 8},
    "mutual_information_loss": {"num_bins": 8},
    "mse": {},
    "mae": {},
    "psnr": {},
}
WITH_RANGE = ("ssim", "ssim_loss", "l1_ssim", "ms_ssim", "ms_ssim_loss", "psnr")
# From [N,C,H,W] of one image, whose first channel is the grey picture.
LAYOUTS = {
    "HW": (lambda x: x[0, 0], None),
    "CHW": (lambda x: x[0], None),
    "NCHW": (lambda x: x, None),
    "HWC": (lambda x: x[0].transpose(1, 2, 0), -1),
    "NHWC": (lambda x: x.transpose(0, 2, 3, 1), -1),
    "HCW": (lambda x: x[0].transpose(1, 0, 2), 1),
}


def pair(dtype, channels=3):
    """Waves and noise, [1,channels,24,26], that dtype holds."""
    scale = DTYPES[dtype][0]
    generator = numpy.random.default_rng(5)
    waves = numpy.sin(numpy.linspace(0, 40, channels * 24 * 26)).reshape(1, channels, 24, 26)
    x = (0.5 + 0.3 * waves + 0.1 * generator.random(waves.shape)).clip(0, 1)
    y = (x + 0.2 * generator.random(waves.shape) - 0.1).clip(0, 1)
    if dtype == "bool":
        return x > 0.5, y > 0.5
    samples = [scale * each for each in (x, y)]
    return [(each.round() if scale > 1 else each).astype(dtype) for each in samples]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("measure", MEASURES)
def test_every_layout_and_type(measure, layout, library):
    arranged, channel_axis = LAYOUTS[layout]
    for dtype, (scale, default_range) in DTYPES.items():
        images = pair(dtype)
        options = dict(MEASURES[measure])
        exact = [each.astype("float64") for each in images]
        if layout == "HW":
            exact = [each[:, :1] for each in exact]
        if channel_axis is not None:
            options["channel_axis"] = channel_axis
        function = getattr(similis, measure)
        given = [LIBRARIES[library](numpy.ascontiguousarray(arranged(each))) for each in images]
        if library == "jax" and given[0].dtype != dtype:
            continue  # JAX makes float64 a float32
        if measure in WITH_RANGE and default_range is None:
            with pytest.raises(ValueError, match=f"{measure.removesuffix('_loss')}.* x is {dtype}, "):
                function(*given, **options)
            options["data_range"] = scale
        if library == "jax" and dtype == "int32":
            with pytest.raises(TypeError, match=": x is int32, which needs float64 to be exact"):
                function(*given, **options)
            continue
        plain = {name: each for name, each in options.items() if name != "channel_axis"}
        if measure in WITH_RANGE:
            plain["data_range"] = scale
        expected = float(function(*exact, **plain))
        value = float(function(*given, **options))
        assert math.isclose(value, expected, rel_tol=2e-5, abs_tol=2e-6), (dtype, value, expected)


# Every measure but NCC takes a mask; losses take what their measures do.
MASKED = [each for each in MEASURES if each not in ("ncc", "ncc_loss")]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("measure", MASKED)
def test_masks_of_every_layout_and_type(measure, layout, library):
    arranged, channel_axis = LAYOUTS[layout]
    weights = numpy.random.default_rng(9).random((1, 3, 24, 26)).round(2)
    weights[..., 5:8] = 0
    masks = {"uint8": weights > 0.4, "bool": weights > 0.4, "float32": weights, "float64": weights}
    for number, dtype in enumerate(DTYPES):
        images, scale = pair(dtype), DTYPES[dtype][0]
        of_mask = list(masks)[number % len(masks)]
        mask = masks[of_mask].astype(of_mask)
        options = dict(MEASURES[measure])
        exact = [each.astype("float64") for each in images]
        own = mask
        if layout == "HW":
            exact, own = [each[:, :1] for each in exact], mask[:, :1]
        if measure in WITH_RANGE:
            options["data_range"] = scale
        expected = getattr(similis, measure)(*exact, mask=own.astype("float64"), **options)
        if channel_axis is not None:
            options["channel_axis"] = channel_axis
        given = [
            LIBRARIES[library](numpy.ascontiguousarray(arranged(each))) for each in (*images, mask)
        ]
        if library == "jax" and (given[0].dtype != dtype or dtype == "int32"):
            continue
        value = float(getattr(similis, measure)(*given[:2], mask=given[2], **options))
        assert math.isclose(value, expected, rel_tol=2e-5, abs_tol=2e-6), (dtype, value, expected)


def right_or_one_sentence(name, call):
    """The result as a flat array, or None for a refusal that names the function."""
    try:
        result = call()
    except (TypeError, ValueError, similis.DeviceError) as refusal:
        assert str(refusal).startswith(f"{name}: ") and "\n" not in str(refusal), refusal
        assert len(str(refusal)) < 300, refusal
        return None
    on_the_cpu = result.get() if hasattr(result, "get") else result  # CuPy's
    return numpy.asarray(on_the_cpu, "float64").ravel()


def expected_score(score, images, scale):
    """[C] or one number, from NumPy's planes or from [C,H,W] in float64; None if dtype has none."""
    function = getattr(similis, score)
    if score == "histogram":
        exact = [each.astype("float64") for each in images]
        return function(*exact, num_bins=8, range=(0.0, float(scale))).ravel()
    if score == "ssimulacra2":
        return numpy.ravel(function(*[each[0].astype("float64") / scale for each in images]))
    if images[0].dtype not in ("uint8", "uint16"):
        return None
    return numpy.array([function(*[each[0, c] for each in images]) for c in range(images[0].shape[1])])


# Each takes these layouts and dtypes. All else is refused.
OF_PLANES = ("HW", "CHW", "HWC", "HCW")
SCORES = {
    "integer_ssim": (OF_PLANES, ("uint8", "uint16")),
    "float_ssim": (OF_PLANES, ("uint8", "uint16")),
    "libvmaf_psnr": (OF_PLANES, ("uint8", "uint16")),
    "ssimulacra2": (LAYOUTS, ("uint8", "uint16", "float16", "float32", "float64")),
    "histogram": (LAYOUTS, DTYPES),
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("score", SCORES)
def test_scores_of_every_layout_and_type(score, layout, library):
    arranged, channel_axis = LAYOUTS[layout]
    for dtype, (scale, _) in DTYPES.items():
        images = pair(dtype)
        if layout == "HW":
            images = [each[:, :1] for each in images]
        given = [LIBRARIES[library](numpy.ascontiguousarray(arranged(each))) for each in images]
        options = {} if channel_axis is None else {"channel_axis": channel_axis}
        if score == "histogram":
            options |= {"num_bins": 8, "range": (0.0, float(scale))}
        if library == "jax" and given[0].dtype != dtype:
            continue  # JAX makes float64 a float32
        result = right_or_one_sentence(score, lambda: getattr(similis, score)(*given, **options))
        layouts, dtypes = SCORES[score]
        is_taken = layout in layouts and dtype in dtypes
        if library == "cupy":
            is_taken = is_taken and score not in ("float_ssim", "libvmaf_psnr")
        if library == "jax":  # it has no float64, which libvmaf's bits and int32 need
            is_taken = is_taken and layouts is LAYOUTS and dtype != "int32"
        assert (result is not None) == is_taken, (dtype, result)
        if is_taken:
            expected = expected_score(score, images, scale)
            # SSIMULACRA 2 of a grey u8 picture is 6e-5 from that of the same picture in float64.
            near = {"rtol": 1e-4 if score == "ssimulacra2" else 2e-5, "atol": 1e-4}
            numpy.testing.assert_allclose(result, expected, **near, err_msg=dtype)


@pytest.mark.parametrize("dtypes", [("int16", "float32"), ("float32", "int16"), ("bool", "uint8")])
@pytest.mark.parametrize("measure", MEASURES)
def test_images_of_two_types_are_refused_by_both(measure, dtypes):
    x, y = (pair(dtype)[0] for dtype in dtypes)
    options = {**MEASURES[measure], **({"data_range": 1} if measure in WITH_RANGE else {})}
    for kind in LIBRARIES["numpy"], to_torch:
        with pytest.raises(ValueError, match=rf": y is (torch\.)?{dtypes[1]}; it must be .*{dtypes[0]}"):
            getattr(similis, measure)(kind(x), kind(y), **options)


@pytest.mark.parametrize("measure", [*MEASURES, "histogram"])
def test_one_list_of_types(measure):
    x = numpy.zeros((1, 1, 24, 26), "int64")
    taken = "bool, uint8, uint16, int16, int32, float16, bfloat16, float32 or float64"
    for kind in LIBRARIES["numpy"], to_torch:
        with pytest.raises(TypeError, match=f"x is (torch.)?int64; it must be {taken}$"):
            getattr(similis, measure)(kind(x), kind(x))


@pytest.mark.parametrize("measure", [*MEASURES, "histogram"])
def test_what_looks_channel_last_is_refused(measure):
    for shape in (2, 24, 26, 3), (2, 24, 26, 4), (24, 26, 3), (8, 8, 4):
        x = numpy.zeros(shape, "float32")
        axis = len(shape) - 3
        words = rf"x has shape .*, which looks channel-last; give channel_axis=-1, or channel_axis={axis} "
        with pytest.raises(ValueError, match=words):
            getattr(similis, measure)(x, x)
        with pytest.raises(ValueError, match=words):
            getattr(similis, measure)(to_torch(x), to_torch(x))


def test_a_channel_axis_in_front_takes_narrow_pictures():
    x, y = (numpy.random.default_rng(i).random((2, 24, 26, 3)).astype("float32") for i in (0, 1))
    for kind in LIBRARIES["numpy"], to_torch:
        value = similis.ssim(kind(x), kind(y), padding="same", channel_axis=1)
        assert float(value) == pytest.approx(
            float(similis.ssim(x[:, :1], y[:, :1], padding="same", channel_axis=1)), abs=0.1
        )
    # A side of 7 pixels, or 5 channels, is no picture's.
    for shape in (1, 7, 26, 3), (1, 26, 7, 3), (1, 24, 26, 5):
        x = numpy.zeros(shape, "float32")
        assert similis.ssim(x, x, padding="same") == 1


def test_results_have_the_layout_of_the_images():
    x, y = pair("float32")
    last = [each.transpose(0, 2, 3, 1) for each in (x, y)]
    for reduction in "per_image", "per_channel":
        expected = similis.ssim(x, y, reduction=reduction)
        assert (similis.ssim(*last, reduction=reduction, channel_axis=-1) == expected).all()
        one = similis.ssim(x[0], y[0], reduction=reduction)
        assert (one == expected[0]).all() and one.shape == expected.shape[1:]
        assert similis.ssim(x[0, 0], y[0, 0], reduction=reduction).shape == ()
    expected = similis.ssim(x, y, reduction="none")
    assert (similis.ssim(x[0], y[0], reduction="none") == expected[0]).all()
    assert (similis.ssim(x[0, 0], y[0, 0], reduction="none") == expected[0, 0]).all()
    map = similis.ssim(*last, reduction="none", channel_axis=-1)
    assert (map == expected.transpose(0, 2, 3, 1)).all()
    map = similis.ssim(*[each[0] for each in last], reduction="none", channel_axis=2)
    assert (map == expected[0].transpose(1, 2, 0)).all()


def test_gradients_have_the_layout_of_the_images():
    x, y = pair("float32")
    _, expected = similis.value_and_gradient(similis.ssim, x, y)
    last = [each[0].transpose(1, 2, 0) for each in (x, y)]
    value, gradient = similis.value_and_gradient(similis.ssim, *last, channel_axis=-1)
    assert (gradient == expected[0].transpose(1, 2, 0)).all() and isinstance(value, float)
    a, b = (to_torch(each) for each in last)
    similis.ssim(a.requires_grad_(), b, channel_axis=-1).backward()
    assert (a.grad.numpy() == gradient).all()


def test_masks_have_the_layout_of_the_images():
    x, y = pair("float32")
    mask = numpy.random.default_rng(3).random((24, 26)).astype("float32")
    expected = similis.ssim(x, y, mask=mask)
    last = [each.transpose(0, 2, 3, 1) for each in (x, y)]
    for own in mask, mask[None, :, :, None], numpy.repeat(mask[None, :, :, None], 3, -1):
        assert similis.ssim(*last, mask=own, channel_axis=-1) == expected
    for own in mask, mask[:, :, None]:
        one = [each[0] for each in last]
        assert similis.ssim(*one, valid_mask=own, channel_axis=-1) == similis.ssim(
            x, y, valid_mask=mask
        )
    assert similis.ssim(x[0, 0], y[0, 0], mask=mask) == similis.ssim(x[:, :1], y[:, :1], mask=mask)


def test_volumes_with_channels_last():
    x, y = (numpy.random.default_rng(i).random((1, 2, 12, 13, 14)) for i in (0, 1))
    last = [numpy.moveaxis(each, 1, -1) for each in (x, y)]
    assert similis.ssim(*last, channel_axis=-1) == similis.ssim(x, y)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("measure", MEASURES)
def test_volumes_of_every_type(measure, library):
    """CT is int16, and labels are of any integer type."""
    for dtype, (scale, default_range) in DTYPES.items():
        x, y = [each.reshape(1, 1, 12, 12, 13) for each in pair(dtype)]
        options = dict(MEASURES[measure])
        if measure in WITH_RANGE:
            options["data_range"] = scale
        expected = getattr(similis, measure)(x.astype("float64"), y.astype("float64"), **options)
        if measure in WITH_RANGE and default_range is not None:
            del options["data_range"]
        for axis in (None, -1):
            given = [x, y] if axis is None else [numpy.moveaxis(each, 1, -1) for each in (x, y)]
            given = [LIBRARIES[library](numpy.ascontiguousarray(each)) for each in given]
            if library == "jax" and (given[0].dtype != dtype or dtype == "int32"):
                continue
            value = float(getattr(similis, measure)(*given, **options, channel_axis=axis))
            assert math.isclose(value, expected, rel_tol=2e-5, abs_tol=2e-6), (dtype, axis)


@pytest.mark.parametrize("measure", MEASURES)
def test_bfloat16(measure):
    torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
    x, y = [to_torch(each).bfloat16() for each in pair("float32")]
    expected = getattr(similis, measure)(x.double(), y.double(), **MEASURES[measure])
    for arranged, axis in (lambda each: each, None), (lambda each: each.movedim(1, -1), -1):
        value = getattr(similis, measure)(
            arranged(x), arranged(y), **MEASURES[measure], channel_axis=axis
        )
        assert value.dtype == torch.float32
        assert math.isclose(value, expected, rel_tol=2e-5, abs_tol=2e-6), axis


@pytest.mark.parametrize("score", ["integer_ssim", "libvmaf_psnr", "float_ssim"])
def test_planes(score):
    x, y = (numpy.random.default_rng(i).integers(0, 256, (24, 26, 3), "uint8") for i in (0, 1))
    function = getattr(similis, score)
    with pytest.raises(ValueError, match=rf"^{score}: x has shape \[24, 26, 3\], which looks"):
        function(x, y)
    expected = [function(x[..., i], y[..., i]) for i in range(3)]
    assert list(function(x, y, channel_axis=-1)) == expected
    planes = x.transpose(2, 0, 1), y.transpose(2, 0, 1)
    assert list(function(*planes, channel_axis=0)) == expected == list(function(*planes))
    with pytest.raises(ValueError, match=f"{score}: x has shape .* one picture of three axes"):
        function(x[None], y[None], channel_axis=-1)


def test_pictures_of_ssimulacra2():
    x, y = (numpy.random.default_rng(i).integers(0, 256, (24, 26, 3), "uint8") for i in (0, 1))
    expected = similis.ssimulacra2(x.transpose(2, 0, 1), y.transpose(2, 0, 1))
    assert similis.ssimulacra2(x, y, channel_axis=-1) == expected
    assert list(similis.ssimulacra2(x[None], y[None], channel_axis=-1)) == [expected]
    assert similis.ssimulacra2(x[..., 0], y[..., 0]) == similis.ssimulacra2(x[None, ..., 0], y[None, ..., 0])
    for shape in (24, 26, 3), (1, 24, 26, 3):
        with pytest.raises(ValueError, match="ssimulacra2: reference has shape .*channel_axis=-1"):
            similis.ssimulacra2(x.reshape(shape), y.reshape(shape))


def test_channel_axes_that_are_none():
    x = numpy.zeros((24, 26, 3), "float32")
    with pytest.raises(ValueError, match="ssim: channel_axis is 3; it must be an axis of x, which"):
        similis.ssim(x, x, channel_axis=3)
    with pytest.raises(ValueError, match="channel_axis is 0; .* other than the first, which counts"):
        similis.ssim(x[None], x[None], channel_axis=0)
    with pytest.raises(TypeError, match="ssim: channel_axis is of type str; it must be an integer"):
        similis.ssim(x, x, channel_axis="last")
    with pytest.raises(ValueError, match=r"ssim: x has shape \[24, 26\], so channel_axis, -1, has"):
        similis.ssim(x[..., 0], x[..., 0], channel_axis=-1)
    with pytest.raises(ValueError, match=r"ssim: y has shape \[24, 26\]; it must be that of x"):
        similis.ssim(x, x[..., 0], channel_axis=-1)


@pytest.mark.parametrize("measure", WITH_RANGE)
def test_data_range_in_other_forms(measure):
    function, options = getattr(similis, measure), MEASURES[measure]
    x, y = pair("float32")
    expected = function(x, y, data_range=2.0, **options)
    torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
    for given in 2, numpy.float32(2), numpy.array(2), torch.tensor(2.0), (-1, 1), [0.5, 2.5]:
        assert function(x, y, data_range=given, **options) == expected
        assert float(function(to_torch(x), to_torch(y), data_range=given, **options)) == expected
    for given, words in (
        ((1, 1), r"data_range is \(1, 1\); the second must be above the first"),
        ((0, 1, 2), "data_range has 3 numbers; it must be a number above 0, or"),
    ):
        with pytest.raises(ValueError, match=f"{measure}: {words}"):
            function(x, y, data_range=given, **options)
    with pytest.raises(TypeError, match="(ssim|psnr): data_range is of type numpy.ndarray; it must be a"):
        function(x, y, data_range=numpy.ones(1), **options)


def test_a_tensor_that_changes_is_read_at_each_call():
    torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
    x, y = (to_torch(each) for each in pair("float32"))
    value_range = torch.tensor(1.0)
    first = similis.ssim(x, y, data_range=value_range)
    value_range.fill_(5)
    assert similis.ssim(x, y, data_range=value_range) == similis.ssim(x, y, data_range=5) != first


@pytest.mark.parametrize("measure", MEASURES)
def test_numbers_of_numpy_are_floats(measure):
    x, y = pair("float32")
    for images in (x, y), (x[0], y[0]):
        value = getattr(similis, measure)(*images, **MEASURES[measure])
        assert isinstance(value, float) and json.loads(json.dumps(value)) == value


def test_several_numbers_of_numpy_go_into_json():
    x, y = pair("float32")
    planes = [(255 * numpy.tile(each[0, 0], (2, 2))).astype("uint8") for each in (x, y)]
    value, gradient = similis.value_and_gradient(similis.ssim, x, y)
    means = similis.float_ssim(*planes, enable_lcs=True)
    frames = similis.VmafScorer(*planes[0].shape)
    report = [
        [value, gradient.tolist()],
        list(means),
        similis.ssim(x, y, reduction="per_channel").tolist(),
        frames.push(numpy.stack([planes[0]] * 2), numpy.stack([planes[1]] * 2)) + frames.finish(),
    ]
    assert json.loads(json.dumps(report)) == report and len(report[3]) == 2


def test_pillow_pictures():
    image = pytest.importorskip("PIL.Image", reason="there is no Pillow")
    x, y = (numpy.random.default_rng(i).integers(0, 256, (24, 26, 3), "uint8") for i in (0, 1))
    pictures = [image.fromarray(each) for each in (x, y)]
    with pytest.raises(TypeError, match=r"ssim: x is of type PIL.* give numpy.asarray\(x\), with channel_axis=-1 where"):
        similis.ssim(*pictures)
    arrays = [numpy.asarray(each) for each in pictures]
    assert similis.ssim(*arrays, channel_axis=-1) == similis.ssim(
        *[each.transpose(2, 0, 1)[None] for each in arrays]
    )

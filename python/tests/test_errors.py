# SPDX-License-Identifier: Apache-2.0
"""Error messages, word for word; no argument may end the interpreter."""

import itertools

import pytest

numpy = pytest.importorskip("numpy", reason="`make check` installs numpy")
import similis

try:
    import torch
except ImportError:
    torch = None


def pair(*shape, dtype="float32"):
    x = numpy.linspace(0, 1, int(numpy.prod(shape))).reshape(shape).astype(dtype)
    return x, x.copy()


X, Y = pair(1, 2, 24, 20)
REFUSALS = [
    (ValueError, {"window_size": 4}, "ssim: window_size is 4; it must be an odd number from 1 to 65535"),
    (ValueError, {"window_size": -3}, "ssim: window_size is -3; it must be an odd number from 1 to 65535"),
    (ValueError, {"window_size": 25}, "ssim: height is 24; with padding valid it must be at least"),
    (
        ValueError,
        {"window_size": (3, 3, 3)},
        "ssim: window_size has 3 numbers; it takes one, or one for each of the 2 axes",
    ),
    (ValueError, {"window_size": 10**6 + 1}, "ssim: window_size is 1000001; it must be an odd number from 1 to 65535"),
    (
        ValueError,
        {"window_size": 10**12},
        "ssim: window_size is 1000000000000; it must be an odd number from 1 to 65535",
    ),
    (TypeError, {"window_size": 11.0}, "ssim: window_size is 11.0; it must be an integer"),
    (TypeError, {"window_size": "11"}, "ssim: window_size is '11'; it must be an integer"),
    (TypeError, {"window_size": True}, "ssim: window_size is True; it must be an integer"),
    (TypeError, {"window_size": numpy.True_}, "ssim: window_size is of type numpy.bool"),
    (TypeError, {"window_size": numpy.array([3, 5])}, "ssim: window_size is of type numpy.ndarray; it must be"),
    (TypeError, {"window_size": int}, "ssim: window_size is <class 'int'>; it must be an integer"),
    (ValueError, {"sigma": 0}, "ssim: sigma is 0; it must be a number above 0"),
    (ValueError, {"sigma": float("nan")}, "ssim: sigma is nan; it must be a number above 0"),
    (TypeError, {"sigma": None}, "ssim: sigma is None; it must be a number"),
    (ValueError, {"data_range": 0}, "ssim: data_range is 0; it must be a number above 0"),
    (ValueError, {"data_range": -1.0}, "ssim: data_range is -1.0; it must be a number above 0"),
    (ValueError, {"data_range": float("inf")}, "ssim: data_range is inf; it must be a number above 0 and finite"),
    (TypeError, {"data_range": "1"}, "ssim: data_range is '1'; it must be a number"),
    (ValueError, {"data_range": 10**400}, "ssim: data_range is above float64's largest number"),
    (TypeError, {"data_range": numpy.ones(1)}, "ssim: data_range is of type numpy.ndarray; it must be a number, such as"),
    (TypeError, {"data_range": numpy.arange(2)}, "ssim: data_range is of type numpy.ndarray; it must be a number"),
    (ValueError, {"k1": -1}, "ssim: k1 is -1; it must be a number of 0 or more"),
    (
        ValueError,
        {"padding": "zero"},
        "ssim: padding is 'zero'; it must be valid, same, reflect, replicate or renormalize",
    ),
    (TypeError, {"padding": 1}, "ssim: padding is 1; it must be a string"),
    (
        ValueError,
        {"reduction": "min"},
        "ssim: reduction is 'min'; it must be mean, sum, none, per_image or per_channel",
    ),
]


def frameworks():
    yield lambda array: array
    if torch is not None:
        yield lambda array: torch.from_numpy(array.copy())


@pytest.mark.parametrize("kind, options, message", REFUSALS)
def test_options(kind, options, message):
    for convert in frameworks():
        with pytest.raises(kind) as caught:
            similis.ssim(convert(X), convert(Y), **options)
        assert str(caught.value).startswith(message)


def test_images():
    refusals = [
        (ValueError, X, Y[:, :1], "ssim: y has shape [1, 1, 24, 20]; it must be that of x"),
        (
            ValueError,
            X[:0],
            Y[:0],
            "ssim: x has shape [0, 2, 24, 20]; every extent must be at least",
        ),
        (
            ValueError,
            X[0, 0, 0],
            Y[0, 0, 0],
            "ssim: x has shape [20]; it must be [N,C,H,W] or [N,C,D,H,W]",
        ),
        (ValueError, X, Y.astype("float64"), "ssim: y is float64; it must be float32 as x is"),
        (
            TypeError,
            X.astype("int64"),
            Y,
            "ssim: x is ",
        ),
        (TypeError, X, Y.astype("complex64"), "ssim: y is "),
    ]
    for (kind, x, y, message), convert in itertools.product(refusals, frameworks()):
        with pytest.raises(kind) as caught:
            similis.ssim(convert(x), convert(y))
        assert str(caught.value).startswith(message), caught.value


@pytest.mark.parametrize("thing", [None, 3, "x", [[1.0]], object(), {}])
def test_what_is_no_image(thing):
    with pytest.raises(TypeError, match="ssim: x is of type .*; it must be a torch.Tensor"):
        similis.ssim(thing, thing)
    with pytest.raises(TypeError, match="ssim: y is of type "):
        similis.ssim(X, thing)
    with pytest.raises(TypeError, match="ssim: mask is of type "):
        similis.ssim(X, Y, mask="mask")


def test_lists_are_answered_with_their_arrays():
    for thing in X.tolist(), tuple(X.tolist()):
        with pytest.raises(TypeError, match=r"ssim: x is of type (list|tuple); .*; give numpy.asarray\(x\)$"):
            similis.ssim(thing, thing)


def test_an_empty_picture_has_the_shape_that_was_given():
    for convert in frameworks():
        for empty in X[0, 0, :0], X[0, :, :0]:
            with pytest.raises(ValueError, match="x has shape ") as caught:
                similis.psnr(convert(empty), convert(empty))
            shape = list(empty.shape)
            words = f"psnr: x has shape {shape}; every extent must be at least 1"
            assert str(caught.value) == words


def test_equal_tuples_of_other_types_are_refused_too():
    for convert in frameworks():
        x, y = convert(X), convert(Y)
        assert similis.ssim(x, y, window_size=(3, 3)) == 1
        with pytest.raises(TypeError, match="ssim: window_size is 3.0; it must be an integer"):
            similis.ssim(x, y, window_size=(3.0, 3.0))


def test_masked_arrays():
    """Their masks would be passed over."""
    masked = numpy.ma.masked_array(X, X > 0.5)
    with pytest.raises(TypeError, match="ssim: x is a masked array; give its data, and its mask"):
        similis.ssim(masked, Y)
    with pytest.raises(TypeError, match="ssim: y is a masked array"):
        similis.ssim(X, masked)
    with pytest.raises(TypeError, match="sample: image is a masked array"):
        similis.sample(masked)


def test_arguments_by_their_names():
    with pytest.raises(TypeError, match="ssimulacra2: reference is of type list"):
        similis.ssimulacra2([1], [1])
    with pytest.raises(TypeError, match="ssimulacra2: distorted is of type list"):
        similis.ssimulacra2(X, [1])
    with pytest.raises(TypeError, match="mutual_information_from_histogram: histogram is of type list"):
        similis.mutual_information_from_histogram([1])
    with pytest.raises(TypeError, match="compose: u is of type list"):
        similis.compose([1], X)


def test_masks():
    for convert in frameworks():
        x, y = convert(X), convert(Y)
        with pytest.raises(ValueError, match=r"ssim: mask has shape .*, with N and C left out"):
            similis.ssim(x, y, mask=convert(X[..., 1:]))
        with pytest.raises(ValueError, match="ssim: valid_mask has shape"):
            similis.ssim(x, y, valid_mask=convert(numpy.ones(3, dtype="float32")))


def test_other_measures():
    for convert in frameworks():
        x, y = convert(X), convert(Y)
        for message, call in [
            (
                "ms_ssim: height is 24; for 5 levels and a window of 11 it must be at least 161",
                lambda: similis.ms_ssim(x, y),
            ),
            (
                "ms_ssim: weights is -1.0; it must be a number of 0 or more",
                lambda: similis.ms_ssim(x, y, weights=[-1.0]),
            ),
            ("ms_ssim: weights has 0 numbers", lambda: similis.ms_ssim(x, y, weights=[])),
            (
                "ms_ssim: downsample is 'x'; it must be vainf, ceil, floor or piq",
                lambda: similis.ms_ssim(x, y, downsample="x"),
            ),
            (
                "l1_ssim: weight is 2; it must be a number from 0 to 1",
                lambda: similis.l1_ssim(x, y, weight=2),
            ),
            (
                "mse: reduction is 'none'; it must be mean, sum, per_image or per_channel",
                lambda: similis.mse(x, y, reduction="none"),
            ),
            ("psnr: reduction is ", lambda: similis.psnr(x, y, reduction="sum")),
            (
                "lncc: sigma is -1; it must be a number above 0",
                lambda: similis.lncc(x, y, sigma=-1),
            ),
            (
                "histogram: num_bins is -1; it must be a whole number from 4 to 256",
                lambda: similis.histogram(x, y, num_bins=-1),
            ),
        ]:
            with pytest.raises(ValueError) as caught:
                call()
            assert str(caught.value).startswith(message), caught.value
        assert similis.psnr(x, 0 * y, data_range=10**20) > 300
    with pytest.raises(TypeError, match="ms_ssim: weights is 1.0; it must be a tuple or list"):
        similis.ms_ssim(X, Y, weights=1.0)


def test_gradients():
    bytes_ = (255 * X).astype("uint8")
    with pytest.raises(ValueError, match="the images are uint8; gradients need float16"):
        similis.value_and_gradient(similis.ssim, bytes_, bytes_)
    with pytest.raises(
        TypeError, match="value_and_gradient: measure is .*; it must be one of ssim"
    ):
        similis.value_and_gradient(similis.ssimulacra2, X, Y)
    with pytest.raises(ValueError, match="value_and_gradient: wrt is 'z'; it must be x, y or both"):
        similis.value_and_gradient(similis.ssim, X, Y, wrt="z")


def test_tensors_of_other_kinds():
    if torch is None:
        pytest.skip("`make check-python` installs torch")
    x = torch.rand(1, 1, 16, 16)
    for message, image in [
        ("x is torch.sparse_coo; it must be torch.strided", x.to_sparse()),
        ("x is torch.complex64; it must be bool, uint8", x.to(torch.complex64)),
        ("x is nested; it must be torch.strided", torch.nested.nested_tensor([x[0], x[0]])),
    ]:
        with pytest.raises(TypeError, match=message):
            similis.ssim(image, image)
    conjugate = torch.complex(x, x).conj()
    assert similis.ssim(conjugate.imag, x) == similis.ssim(-x, x), "a view that negates lazily"
    with pytest.raises(ValueError, match="ssim: mask asks for a gradient; only x and y"):
        similis.ssim(x, x, mask=x.clone().requires_grad_())
    with pytest.raises(ValueError, match="ssim: y is on meta; it must be on cpu as x is"):
        similis.ssim(x, x.to("meta"))


def test_unknown_bindings(run_python):
    if torch is None:
        pytest.skip("`make check-python` installs torch")
    run_python(
        """
        import similis, torch
        try:
            similis.ssim(torch.rand(1, 1, 16, 16), torch.rand(1, 1, 16, 16))
        except ValueError as error:
            assert str(error) == "SIMILIS_BINDING is 'c'; it must be auto, direct or ctypes", error
        else:
            raise AssertionError("nothing was refused")
        """,
        SIMILIS_BINDING="c",
    )


def random_image(generator, shape):
    """Tensors of any type and layout, some of them useless."""
    dtypes = ["float32"] * 6 + [
        "float64",
        "float16",
        "uint8",
        "uint16",
        "int32",
        "bool",
        "complex64",
    ]
    image = generator.random(shape).astype(dtypes[generator.integers(len(dtypes))])
    if generator.random() < 0.3:
        image = image.transpose(generator.permutation(image.ndim))
    if generator.random() < 0.3 and image.ndim:
        image = image[..., ::-1]
    if generator.random() < 0.1:
        image = numpy.broadcast_to(image, (2, *image.shape))
    return image


def random_options(generator):
    choices = {
        "window_size": [1, 3, 5, 11, 2, 0, -1, 31, (3, 5), (3, 3, 3), None, 2.5],
        "sigma": [0.5, 1.5, 1e-9, 1e9, 0, (1.0, 2.0), float("inf")],
        "data_range": [1, 255.0, 1e-30, 1e30, 0, None],
        "k1": [0.0, 0.01, -1.0],
        "padding": ["valid", "same", "reflect", "replicate", "renormalize", ""],
        "reduction": ["mean", "sum", "none", "per_image", "per_channel", "no"],
    }
    names = [name for name in choices if generator.random() < 0.4]
    return {name: choices[name][generator.integers(len(choices[name]))] for name in names}


def test_whatever_is_passed_returns_or_is_refused():
    generator, results = numpy.random.default_rng(3), 0
    windowed = [similis.ssim, similis.ssim_loss, similis.l1_ssim, similis.ms_ssim]
    for _ in range(1500):
        rank = generator.choice([4, 4, 4, 5, 5, 0, 1, 2, 3, 6, 9])
        most = 13 if rank <= 5 else 2
        shape = generator.integers(generator.choice([0, 1, 1, 1]), most, endpoint=True, size=rank)
        x = random_image(generator, shape)
        y = x.copy() if generator.random() < 0.8 else random_image(generator, shape)
        measure = windowed[generator.integers(len(windowed))]
        options = random_options(generator)
        mask = y if generator.random() < 0.2 else None
        for convert in frameworks():
            try:
                with_mask = {} if mask is None else {"mask": convert(mask)}
                measure(convert(x), convert(y), **options, **with_mask)
                results += 1
            except (ValueError, TypeError):
                pass
    assert results > 100


@pytest.mark.parametrize(
    "call, words",
    [
        (
            lambda x: similis.ssim(x, x, win_size=7),
            "ssim: there is no option win_size; here it is window_size",
        ),
        (
            lambda x: similis.ssim_loss(x, x, kernel_size=7),
            "ssim_loss: there is no option kernel_size; here it is window_size",
        ),
        (
            lambda x: similis.ms_ssim(x, x, size_average=False),
            'ms_ssim: there is no option size_average; here it is reduction="mean" or "per_image"',
        ),
        (
            lambda x: similis.lncc(x, x, kernel_type="gaussian"),
            'lncc: there is no option kernel_type; here it is window="box" or "gaussian"',
        ),
        (
            lambda x: similis.ssim(x, x, multichannel=True),
            "ssim: there is no option multichannel; here it is channel_axis",
        ),
        (lambda x: similis.psnr(x, x, valid_mask=x), "psnr: it takes no valid_mask yet"),
        (lambda x: similis.ms_ssim(x, x, valid_mask=x), "ms_ssim: it takes no valid_mask yet"),
        (lambda x: similis.ncc(x, x, mask=x), "ncc: it takes no mask yet"),
        (
            lambda x: similis.mse(x, x, foo=1),
            "mse: there is no option foo; it takes reduction, mask, channel_axis",
        ),
        (
            lambda x: similis.ncc_loss(x, x, reduction="none"),
            "ncc: reduction is 'none'; it must be mean, sum, per_image or per_channel",
        ),
    ],
)
def test_names_of_other_libraries(call, words):
    for convert in frameworks():
        with pytest.raises((TypeError, ValueError)) as caught:
            call(convert(X))
        assert str(caught.value) == words


FIELD = numpy.zeros((1, 8, 9, 2))


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda x: similis.sample(x, theta=x), "sample: there is no option theta; here it is affine"),
        (
            lambda x: similis.sample(x, padding="border"),
            "sample: there is no option padding; here it is padding_mode",
        ),
        (
            lambda x: similis.sample_labels(x, flow=x),
            "sample_labels: there is no option flow; here it is displacement",
        ),
        (
            lambda x: similis.compose(x, x, size=x),
            "compose: there is no option size; it takes affine, padding_mode, align_corners, min_coords, "
            "max_coords, rows, image_rows, cells, deterministic, output",
        ),
        (
            lambda x: similis.affine_grid(x, size=(3, 3)),
            "affine_grid: there is no option size; here it is out_shape",
        ),
        (
            lambda x: similis.exponentiate(x, steps=3),
            "exponentiate: there is no option steps; it takes align_corners",
        ),
        (
            lambda x: similis.invert(x, tol=3),
            "invert: there is no option tol; it takes align_corners, tolerance, rows, u_rows",
        ),
        (
            lambda x: similis.jacobian_determinant(x, spacing=1),
            "jacobian_determinant: there is no option spacing; it takes align_corners, min_coords, "
            "max_coords, rows, u_rows",
        ),
        (
            lambda x: similis.smooth(x, 1.0, mode="zeros"),
            "smooth: there is no option mode; it takes field, truncate, padding",
        ),
        (
            lambda x: similis.histogram(x, x, bins=8),
            "histogram: there is no option bins; here it is num_bins",
        ),
        (
            lambda x: similis.ncc_loss(x, x, win_size=3),
            "ncc_loss: there is no option win_size; it takes reduction, channel_axis",
        ),
        (lambda x: similis.ssimulacra2(x, x, mask=x), "ssimulacra2: it takes no mask yet"),
        (
            lambda x: similis.integer_ssim(x, x, data_range=255),
            "integer_ssim: there is no option data_range; it takes bit_depth, channel_axis",
        ),
        (
            lambda x: similis.float_ssim(x, x, win_size=11),
            "float_ssim: there is no option win_size; it takes bit_depth, scale, enable_db, clip_db, "
            "enable_lcs, channel_axis",
        ),
        (
            lambda x: similis.float_ms_ssim(x, x, betas=1),
            "float_ms_ssim: there is no option betas; it takes bit_depth, enable_db, clip_db, "
            "enable_lcs, channel_axis",
        ),
        (
            lambda x: similis.libvmaf_psnr(x, x, max_val=1),
            "libvmaf_psnr: there is no option max_val; it takes bit_depth, channel_axis",
        ),
        (
            lambda x: similis.vmaf(x, x, version="vmaf_v0.6.1"),
            "vmaf: there is no option version; it takes model, bit_depth, features",
        ),
        (
            lambda x: similis.VmafScorer(40, 50, model="vmaf_v0.6.1"),
            "VmafScorer: there is no option model; it takes models, features, bit_depth",
        ),
    ],
)
def test_unknown_names_of_scores_and_transforms(call, words):
    for convert in frameworks():
        with pytest.raises(TypeError) as caught:
            call(convert(FIELD))
        assert str(caught.value) == words


def test_tables_of_other_libraries_are_answered_with_their_values():
    class DataArray:
        values = X
        shape, ndim, dtype = X.shape, X.ndim, X.dtype

    with pytest.raises(TypeError, match=r"DataArray; it must be .* or jax.Array; give x\.values$"):
        similis.ssim(DataArray(), DataArray())


def test_scores_name_their_own_arguments():
    for x in numpy.zeros((5, 24, 20), "uint8"), numpy.zeros((3, 7, 20), "uint8"):
        with pytest.raises(ValueError, match="ssimulacra2: reference has|reference is|height is"):
            similis.ssimulacra2(x, x)
    with pytest.raises(ValueError, match="ssimulacra2: distorted is uint16; .* as reference is"):
        similis.ssimulacra2(numpy.zeros((3, 24, 20), "uint8"), numpy.zeros((3, 24, 20), "uint16"))


@pytest.mark.parametrize(
    "mode, words",
    [
        ("bilinear", 'here it is "linear"'),
        ("trilinear", 'here it is "linear"'),
        ("bicubic", 'here "cubic" is an interpolating B-spline'),
        ("bspline", 'here "cubic" is an interpolating B-spline'),
    ],
)
def test_torchs_modes_are_answered_with_ours(mode, words):
    numpy = pytest.importorskip("numpy", reason="`make check` installs numpy")
    with pytest.raises(ValueError, match=f"sample: mode is '{mode}'; .*cubic; {words}"):
        similis.sample(numpy.zeros((1, 1, 4, 4)), affine=numpy.eye(2, 3)[None], mode=mode)

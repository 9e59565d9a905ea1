# SPDX-License-Identifier: Apache-2.0
"""Tensors on Apple's and Intel's GPUs: what runs as torch's own operators, and what is refused.

No such GPU is needed: stand_in.py pretends one, without float64 for mps, and refuses every copy.
Expected values are the library's of f64 tensors on the CPU.
"""

import warnings

import pytest

torch = pytest.importorskip("torch", reason="`make check-python` installs torch")

import similis
from similis._torch import ssim_kernels
from stand_in import OnGpu, gpu, memory_of


@pytest.fixture(params=["mps", "xpu"])
def kind(request, monkeypatch):
    """A kind of GPU without kernels."""
    monkeypatch.setattr(ssim_kernels, "can_launch", lambda device: False)
    return request.param


def textured(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    waves = torch.linspace(0, 20, shape[-1]).sin() + torch.linspace(0, 9, shape[-2]).cos()[:, None]
    x = 0.5 + 0.2 * waves + 0.2 * torch.rand(shape, generator=generator)
    return x, x + 0.1 * torch.rand(shape, generator=generator) - 0.05


def run(kind, function, *tensors, copies=True):
    """The results and the gradients of their weighted sum, of f64 tensors on the CPU and of f32
    tensors on the GPU; and what was warned of."""
    answers, warned = [], []
    for on_gpu in (False, True):
        with gpu(kind) as put:
            given = []
            for each in tensors:
                each = each.float() if each.is_floating_point() else each
                each = put(each) if on_gpu else each.double() if each.is_floating_point() else each
                given.append(each.requires_grad_() if each.is_floating_point() else each)
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                results = function(*given)
            results = results if isinstance(results, tuple) else (results,)
            differentiable = [each for each in results if each.requires_grad]
            gradients = []
            if differentiable:
                total = sum((each * _weights(each, put if on_gpu else None)).sum()
                            for each in differentiable)
                floats = [each for each in given if each.is_floating_point()]
                gradients = torch.autograd.grad(total, floats, allow_unused=True)
            if on_gpu:
                assert all(isinstance(each, OnGpu) for each in results)
            found = [None if each is None else memory_of(each.detach()).double()
                     for each in (*results, *gradients)]
            answers.append((found, len(results)))
    (expected, count), (actual, _) = answers
    return actual[:count], expected[:count], actual[count:], expected[count:], warned


def _weights(like, put):
    weights = torch.linspace(0.5, 1.5, max(like.numel(), 1))[: like.numel()].reshape(like.shape)
    return weights.double() if put is None else put(weights)


def check(answers, value=1e-6, gradient=1e-5):
    actual, expected, gradients, expected_gradients, warned = answers
    for found, wanted in zip(actual, expected):
        assert found.shape == wanted.shape
        assert torch.equal(found.isnan(), wanted.isnan())
        scale = max(1.0, wanted.nan_to_num().abs().max().item()) if wanted.numel() else 1.0
        assert (found - wanted).nan_to_num().abs().max().item() <= value * scale
    assert len(gradients) == len(expected_gradients)
    for found, wanted in zip(gradients, expected_gradients):
        assert (found is None) == (wanted is None)
        if wanted is not None:
            assert torch.equal(found.isnan(), wanted.isnan())
            distance = (found - wanted).nan_to_num().norm()
            assert distance <= gradient * wanted.nan_to_num().norm()
    return warned


PICTURE, VOLUME = (2, 2, 29, 23), (1, 2, 9, 12, 13)
MASK = (torch.linspace(0, 6, 29).cos()[:, None] * torch.linspace(0, 5, 23).sin()).clamp(min=0)
MEASURES = {
    "ssim": (similis.ssim, {}, PICTURE),
    "ssim of volumes": (similis.ssim, {"window_size": 5, "padding": "same"}, VOLUME),
    "ssim_loss": (similis.ssim_loss, {"padding": "replicate", "window": "box"}, PICTURE),
    "ssim map": (similis.ssim, {"reduction": "none", "padding": "renormalize"}, PICTURE),
    "ssim per channel": (similis.ssim, {"reduction": "per_channel", "padding": "reflect"}, PICTURE),
    "ssim of a sample": (similis.ssim, {"sample_covariance": True, "window_size": (5, 7)}, PICTURE),
    "ssim, masked": (similis.ssim, {"mask": MASK}, PICTURE),
    "ssim, wide": (similis.ssim_loss, {"window_size": 15, "sigma": 2.5}, PICTURE),
    "l1_ssim": (similis.l1_ssim, {"padding": "same", "reduction": "per_image"}, PICTURE),
    "ms_ssim": (similis.ms_ssim, {"window_size": 5, "weights": (0.3, 0.3, 0.4)}, PICTURE),
    "ms_ssim_loss": (
        similis.ms_ssim_loss,
        {"window_size": 3, "weights": (0.5, 0.5), "downsample": "ceil", "padding": "same"},
        PICTURE,
    ),
    "lncc": (similis.lncc, {"window_size": 5}, VOLUME),
    "lncc_loss": (similis.lncc_loss, {"signed": True, "padding": "renormalize"}, PICTURE),
    "lncc, masked": (similis.lncc, {"mask": MASK, "window_size": 7}, PICTURE),
    "lncc, gaussian": (similis.lncc, {"window": "gaussian", "window_size": 7}, PICTURE),
    "ncc": (similis.ncc, {}, PICTURE),
    "ncc_loss": (similis.ncc_loss, {"reduction": "per_image"}, VOLUME),
    "mutual_information": (similis.mutual_information, {"num_bins": 16}, PICTURE),
    "mutual_information_loss": (
        similis.mutual_information_loss,
        {"kernel": "gaussian", "range": (0.0, 1.0), "normalized": True},
        PICTURE,
    ),
    "mse": (similis.mse, {"reduction": "per_channel"}, PICTURE),
    "mae": (similis.mae, {}, VOLUME),
    "psnr": (similis.psnr, {"mask": MASK}, PICTURE),
}


@pytest.mark.parametrize("name", MEASURES)
def test_measures_agree_with_the_library_and_warn_once(kind, name):
    function, options, shape = MEASURES[name]

    def call(x, y):
        given = dict(options)
        if "mask" in given:
            wide = given["mask"].to(memory_of(x).dtype)
            given["mask"] = OnGpu(wide, kind) if isinstance(x, OnGpu) else wide
        return function(x, y, **given)

    if function is similis.psnr:
        tolerance = {"value": 2e-6}
    else:
        tolerance = {}
    warned = check(run(kind, call, *textured(*shape)), gradient=2e-5, **tolerance)
    called = name.split()[0].split(",")[0].removesuffix("_loss")
    assert len(warned) == 1
    words = f"{called}: there is no kernel for this call on {kind}:0; it runs as torch's own operators"
    assert str(warned[0].message).startswith(words)
    assert warned[0].filename == __file__


@pytest.mark.parametrize("level", [0.02, 0.5, 0.97])
def test_variances_keep_their_digits_without_float64(kind, level):
    """E[x²] - E[x]² in f32 is off by a third of the variance here."""
    x, y = (level + 1e-3 * (each - 0.5) for each in textured(1, 1, 40, 40))
    check(run(kind, lambda x, y: similis.ssim_loss(x, y, k2=1e-4), x, y), gradient=3e-4)
    check(run(kind, lambda x, y: similis.lncc(x, y, smooth_dr=1e-9), x, y), 2e-4, 2e-3)


def test_a_valid_mask_hides_pixels(kind):
    x, y = textured(*PICTURE)
    hidden = (MASK > 0.3).float()
    x[..., MASK <= 0.3] = float("nan")

    def call(x, y):
        mask = OnGpu(hidden, kind) if isinstance(x, OnGpu) else hidden
        return similis.ssim(x, y, valid_mask=mask, padding="renormalize")

    check(run(kind, call, x, y))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16, torch.bfloat16])
def test_narrow_images(kind, dtype):
    x, y = (each.clamp(0, 1) for each in textured(*PICTURE))
    if dtype == torch.uint8:
        x, y = x * 255, y * 255
    x, y = x.to(dtype), y.to(dtype)
    expected = similis.ssim(x, y).item()
    with gpu(kind) as put, warnings.catch_warnings(record=True):
        result = similis.ssim(put(x), put(y))
    assert result.dtype == torch.float32
    assert abs(result.memory.item() - expected) < 1e-6


def test_second_derivatives(kind):
    x, y = textured(1, 1, 14, 15)

    def call(x, y):
        (gradient,) = torch.autograd.grad(similis.ssim_loss(x, y), x, create_graph=True)
        return (gradient**2).sum()

    check(run(kind, call, x, y), gradient=1e-4)


def test_histograms(kind):
    x, y = textured(1, 2, 17, 19)

    def call(x, y):
        counts = similis.histogram(x, y, num_bins=8)
        return counts, similis.mutual_information_from_histogram(counts)

    check(run(kind, call, x, y), 2e-6)


def field(*shape):
    generator = torch.Generator().manual_seed(3)
    return 0.15 * torch.rand(shape, generator=generator) - 0.07


AFFINE_2D = torch.tensor([[[0.9, 0.1, 0.05], [-0.08, 1.05, -0.1]]])
AFFINE_3D = torch.tensor([[[0.9, 0.1, 0, 0.05], [0, 1.05, 0.1, -0.1], [0.05, 0, 0.95, 0.02]]])


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_sample(kind, mode, padding, aligned):
    image = textured(2, 3, 13, 11)[0]

    def call(image, affine, u):
        return similis.sample(
            image, affine=affine, displacement=u, mode=mode, padding_mode=padding,
            align_corners=aligned,
        )

    # A coordinate of f32 is off by 1e-6 of an axis, and an image's slope is up to 3 a voxel.
    check(run(kind, call, image, AFFINE_2D, field(2, 9, 10, 2)), 2e-5, 2e-4)


def test_sample_of_volumes_and_its_options(kind):
    image, u = textured(1, 2, 7, 9, 8)[0], field(2, 6, 5, 7, 3)
    call = lambda image, affine, u: similis.sample(image, affine=affine, displacement=u)
    check(run(kind, call, image, AFFINE_3D, u), 2e-5, 2e-4)
    call = lambda image, u, s: similis.sample(image, grid=u, grid_affine=s, padding_mode="border")
    check(run(kind, call, image, 10 * u, torch.eye(3)[None]), 2e-5, 2e-4)
    call = lambda image: similis.sample(
        image, out_shape=(3, 9, 8), rows=(2, 7), min_coords=(-0.5, -1, -1), max_coords=(0.5, 1, 1)
    )
    check(run(kind, call, image), 2e-5, 2e-4)


def test_coordinates_that_are_no_numbers(kind):
    image, u = textured(1, 1, 8, 9)[0], field(1, 5, 6, 2)
    u[0, 1, 2, 0], u[0, 3, 3, 1], u[0, 4, 4, 0] = float("nan"), float("inf"), -float("inf")
    call = lambda image, u: similis.sample(image, displacement=u, padding_mode="border")
    check(run(kind, call, image, u), 2e-5, 2e-4)


def test_compose_and_affine_grid(kind):
    u, v = field(1, 6, 7, 8, 3), field(1, 5, 7, 6, 3)
    check(run(kind, lambda u, v, a: similis.compose(u, v, affine=a), u, v, AFFINE_3D), 2e-6, 2e-4)
    check(run(kind, lambda a, u: similis.affine_grid(a, u), AFFINE_3D, u))
    call = lambda a: similis.affine_grid(a, out_shape=(4, 5), align_corners=False)
    check(run(kind, call, AFFINE_2D))


def test_a_result_is_added_to_an_output(kind):
    image = textured(1, 1, 8, 9)[0]
    expected = 2 + similis.sample(image, affine=AFFINE_2D)
    with gpu(kind) as put, warnings.catch_warnings(record=True):
        output = put(torch.full((1, 1, 8, 9), 2.0))
        result = similis.sample(put(image), affine=put(AFFINE_2D), output=output)
    assert result is output
    assert (output.memory - expected).abs().max() < 1e-5


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.float32])
def test_labels(kind, dtype):
    labels = torch.randint(0, 4, (1, 1, 9, 8), generator=torch.Generator().manual_seed(1)).to(dtype)

    def call(labels, u):
        return similis.sample_labels(
            labels, displacement=u, background=3, smallest_label=1, return_weight=True
        )

    # Coordinates are chosen so that no two labels have nearly the same weight.
    check(run(kind, call, labels, field(1, 9, 8, 2)), 2e-5, 2e-4)


def test_fields(kind):
    v = 0.5 * field(1, 7, 8, 9, 3)
    check(run(kind, lambda v: similis.exponentiate(v, 4), v), 2e-6, 1e-5)
    u = torch.stack([similis.smooth(field(1, 1, 12, 13), 1.5)[0, 0]] * 2, -1)[None]
    check(run(kind, lambda u: similis.jacobian_determinant(u), u), 2e-5, 1e-5)
    with gpu(kind) as put, warnings.catch_warnings(record=True):
        w, residual = similis.invert(put(u), tolerance=1e-3)
    expected, _ = similis.invert(u, tolerance=1e-3)
    assert residual.memory.item() * 6 < 1.1e-3
    assert (w.memory - expected).abs().max() * 6 < 3e-3


@pytest.mark.parametrize("padding", ["replicate", "zeros"])
def test_smooth(kind, padding):
    call = lambda x: similis.smooth(x, (1.2, 0), padding=padding)
    check(run(kind, call, textured(2, 1, 12, 9)[0]), 1e-6)
    call = lambda u: similis.smooth(u, 0.8, field=True, padding=padding)
    check(run(kind, call, field(1, 6, 7, 8, 3)))


def test_the_warning_comes_once_for_each_function(kind):
    with gpu(kind) as put, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        x, y = map(put, textured(1, 1, 12, 12))
        for _ in range(2):
            similis.ncc(x, y)
            similis.mse(x, y)
    assert [str(each.message).split(":")[0] for each in warned] == ["ncc", "mse"]


X, Y = textured(1, 3, 24, 20)
REFUSALS = {
    "bits": (
        lambda x, y: similis.integer_ssim((x[0, 0] * 255).byte(), (y[0, 0] * 255).byte()),
        "integer_ssim: x is on {}:0, which has neither a kernel for it nor operators of torch that "
        "keep its bits; give copies on the CPU",
    ),
    "ssimulacra2": (lambda x, y: similis.ssimulacra2(x, y), "ssimulacra2: reference is on {}:0, which"),
    "window": (
        lambda x, y: similis.ssim(x, y, window_size=25),
        "ssim: height is 24; with padding valid it must be at least window_size, 25",
    ),
    "reflect": (
        lambda x, y: similis.ssim(x, y, window_size=41, padding="reflect"),
        "ssim: width is 20; with padding reflect it must be more than half the window, 20",
    ),
    "levels": (lambda x, y: similis.ms_ssim(x, y), "ms_ssim: "),
    "map": (lambda x, y: similis.l1_ssim(x, y, reduction="none"), "l1_ssim: reduction is none and"),
    "mask": (
        lambda x, y: similis.ssim(x, y, mask=x[..., :5]),
        "ssim: mask has shape [1, 3, 24, 5]; it must be that of x, [1, 3, 24, 20]",
    ),
    "sampling": (
        lambda x, y: similis.mutual_information(x, y, sampling=0.5),
        "mutual_information: method is binned or sampling is below 1; ",
    ),
    "ants": (lambda x, y: similis.lncc(x, y, gradient="ants"), "lncc: gradient is ants, which is no"),
    "axes": (lambda x, y: similis.compose(x, y), "compose: u has shape [1, 3, 24, 20]; it must be"),
    "parts": (
        lambda x, y: similis.sample(x, cells=(0, 3)),
        "sample: cells is given and image is on {}:0; parts of an image are sampled on the CPU",
    ),
    "device": (lambda x, y: similis.ssim(x, Y), "ssim: y is on cpu; it must be on {}:0 as x is"),
    "range": (lambda x, y: similis.ssim(x, y, data_range=x[0, 0, 0, 0]), "ssim: data_range is of type"),
    "vmaf": (
        lambda x, y: similis.vmaf(x[0].byte(), y[0].byte()),
        "vmaf: reference is on {}:0; it must be on the CPU or a CUDA device",
    ),
    "register": (lambda x, y: similis.register(x[0], y[0]), "register: fixed is on {}:0"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_are_one_sentence(kind, name):
    call, words = REFUSALS[name]
    with gpu(kind) as put, warnings.catch_warnings(record=True):
        with pytest.raises((ValueError, TypeError)) as refused:
            call(put(X), put(Y))
    assert str(refused.value).startswith(words.format(kind))


def test_integers_that_need_float64():
    x = torch.arange(240).reshape(1, 1, 12, 20).int()
    with gpu("mps") as put:
        with pytest.raises(TypeError, match="x is int32, which needs float64 to be exact, and mps:0"):
            similis.mse(put(x), put(x))


def test_the_stand_in_refuses_what_would_be_a_copy():
    with gpu("mps") as put:
        x = put(torch.ones(3))
        for call in (lambda: x.cpu(), lambda: x.sum().item(), lambda: x.tolist(), lambda: bool(x[0])):
            with pytest.raises((AssertionError, RuntimeError)):
                call()
        with pytest.raises(TypeError, match="float64"):
            x.double()
        with pytest.raises(RuntimeError, match="same device"):
            x + torch.ones(3)

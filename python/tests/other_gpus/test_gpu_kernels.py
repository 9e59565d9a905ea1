# SPDX-License-Identifier: Apache-2.0
"""SSIM's kernels as text of Metal, compared with the reference in f64, as tensors reach them.

On mps clang compiles the text and the CPU runs it; metal_stub.py. With SIMILIS_TEST_QUEUE, a library
that makes a SYCL queue on a CPU, they run as SYCL's kernels on xpu: `make check-sycl`.
"""

import ctypes
import os
import types
import warnings

import pytest

torch = pytest.importorskip("torch", reason="`make check-python` installs torch")

import metal_stub
import similis
from similis._torch import gpu_modules, ssim_kernels
from similis.compat import fused_ssim, fussim, pytorch_msssim
from stand_in import OnGpu, gpu, memory_of

QUEUE = os.environ.get("SIMILIS_TEST_QUEUE")
KIND = "xpu" if QUEUE else "mps"
pytestmark = [
    pytest.mark.skipif(
        metal_stub.CLANG is None and not QUEUE, reason="there is no clang; `make check` installs it"
    ),
    pytest.mark.skipif(
        gpu_modules.module("gpu/launch/totals") is None, reason="this build has no text of kernels"
    ),
]


@pytest.fixture(scope="session")
def queue():
    """SYCL's queue on a CPU, and the library that made it."""
    library = ctypes.CDLL(QUEUE)
    library.queue_on_cpu.restype = ctypes.c_void_p
    return library, library.queue_on_cpu()


@pytest.fixture(autouse=True)
def launches(monkeypatch, request):
    """The number of launches so far: [count]. A call that has a kernel runs by it, unwarned."""
    count = [0]
    if QUEUE:
        library, address = request.getfixturevalue("queue")
        stream = types.SimpleNamespace(sycl_queue=address)
        monkeypatch.setattr(torch.xpu, "current_stream", lambda device: stream)
    else:
        compile_shader = metal_stub.ShaderLibrary
        monkeypatch.setattr(torch.mps, "compile_shader", compile_shader, raising=False)

    def launch(*arguments):
        count[0] += 1
        gpu_modules.launch(*arguments)
        if QUEUE:  # the memory's next reader is the CPU
            library.wait(ctypes.c_void_p(address))

    monkeypatch.setattr(ssim_kernels, "launch", launch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield count
    assert count[0] > 0


def textured(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    waves = torch.linspace(0, 20, shape[-1]).sin() + torch.linspace(0, 9, shape[-2]).cos()[:, None]
    x = 0.5 + 0.2 * waves + 0.2 * torch.rand(shape, generator=generator)
    return x, x + 0.1 * torch.rand(shape, generator=generator) - 0.05


def values_and_gradients(function, x, y, of, weights):
    for image, name in ((x, "x"), (y, "y")):
        if name in of:
            image.requires_grad_()
    value = function(x, y)
    gradients = []
    if of:
        variables = [image for image, name in ((x, "x"), (y, "y")) if name in of]
        gradients = torch.autograd.grad(value, variables, weights(value))
    return [memory_of(each.detach()).double() for each in (value, *gradients)]


def check(function, x, y, of="xy", value=1e-6, gradient=1e-5, arrange=lambda image: image):
    """The kernels beside the library's f64; the upstream gradient is no constant."""

    def weights(result):
        return torch.linspace(0.5, 1.5, max(1, result.numel()))[: result.numel()].reshape(result.shape)

    wide = [each.double() for each in (x, y)]
    if x.dtype == torch.uint8:
        wide = [x, y]
    expected = values_and_gradients(function, *wide, of, lambda v: weights(v).to(v.dtype))
    with gpu(KIND) as put:
        actual = values_and_gradients(
            function, *[arrange(put(each)) for each in (x, y)], of, lambda v: put(weights(v))
        )
    for found, wanted, tolerance in zip(actual, expected, [value, gradient, gradient]):
        assert found.shape == wanted.shape
    assert (actual[0] - expected[0]).abs().max() <= value
    for found, wanted in zip(actual[1:], expected[1:]):
        assert (found - wanted).norm() <= gradient * wanted.norm()


WIDE, FOURS, SMALL = (1, 2, 37, 141), (2, 1, 36, 148), (2, 2, 13, 17)


def test_a_mean_with_its_gradient():
    check(similis.ssim, *textured(*WIDE), of="x")


def test_rows_in_vectors_of_four():
    check(lambda x, y: similis.ssim(x, y, padding="same"), *textured(*FOURS))


def test_values_alone():
    check(lambda x, y: similis.ssim(x, y, reduction="per_image"), *textured(*WIDE), of="")


def test_many_segments_of_rows():
    check(similis.ssim, *textured(1, 1, 131, 40), of="x")


@pytest.mark.parametrize("padding", ["valid", "same", "renormalize"])
def test_maps(padding):
    call = lambda x, y: similis.ssim_loss(x, y, padding=padding, reduction="none")
    check(call, *textured(*SMALL), value=1e-5, gradient=2e-5)


@pytest.mark.parametrize("padding", ["reflect", "replicate"])
def test_gradients_of_padded_images_are_folded(padding):
    call = lambda x, y: similis.l1_ssim(x, y, padding=padding, reduction="per_channel")
    check(call, *textured(*SMALL))


def test_windows_of_other_shapes():
    call = lambda x, y: similis.ssim(
        x, y, window_size=(5, 7), window="box", sample_covariance=True, reduction="sum"
    )
    check(call, *textured(*SMALL), of="y", value=2e-4)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float16, 1e-3), (torch.bfloat16, 6e-3)])
def test_halves(dtype, tolerance):
    x, y = (each.to(dtype) for each in textured(*SMALL))
    check(similis.ssim_loss, x, y, gradient=tolerance)


def test_bytes():
    x, y = ((255 * each.clamp(0, 1)).byte() for each in textured(*SMALL))
    check(similis.ssim, x, y, of="")


def test_any_strides_and_offsets():
    x, y = textured(3, 4, 26, 17)
    arrange = lambda image: image[1:, ::2, ::2].transpose(2, 3)
    call = lambda x, y: similis.ssim(x, y, window_size=5)
    wide_x, wide_y = (arrange(each.double()).requires_grad_() for each in (x, y))
    expected = torch.autograd.grad(call(wide_x, wide_y), (wide_x, wide_y))
    with gpu(KIND) as put:
        given = [arrange(put(each)).requires_grad_() for each in (x, y)]
        actual = torch.autograd.grad(call(*given), given)
    for found, wanted in zip(actual, expected):
        assert (found.memory - wanted).norm() <= 1e-5 * wanted.norm()


def test_equal_and_nearly_equal_images():
    x, _ = textured(*SMALL)
    with gpu(KIND) as put:
        assert similis.ssim_loss(put(x), put(x)).memory.item() == 0
        assert similis.ssim(put(x), put(x)).memory.item() == 1
    y = x + 1e-4 * torch.rand(SMALL, generator=torch.Generator().manual_seed(5))
    expected = similis.ssim_loss(x.double(), y.double()).item()
    with gpu(KIND) as put:
        found = similis.ssim_loss(put(x), put(y)).memory.item()
    assert abs(found - expected) <= 1e-4 * expected


def test_small_contrast_on_grounds_of_different_brightness():
    x, y = torch.rand((2, *SMALL), generator=torch.Generator().manual_seed(6))
    check(similis.ssim, 0.2 + 1e-3 * x, 0.9 + 1e-3 * y)


def test_a_pixel_that_is_no_number_shows():
    x, y = textured(*SMALL)
    x[0, 0, 6, 6] = float("nan")
    with gpu(KIND) as put:
        values = similis.ssim(put(x), put(y), reduction="per_channel").memory
    assert values.isnan().tolist() == [[True, False], [False, False]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8])
def test_ms_ssim_by_a_kernel_for_each_level(dtype, launches):
    x, y = textured(1, 2, 43, 38)
    of = "xy"
    if dtype == torch.uint8:
        x, y, of = *((255 * each.clamp(0, 1)).byte() for each in (x, y)), ""
    call = lambda x, y: similis.ms_ssim(x, y, weights=(0.2, 0.3, 0.5), window_size=7)
    check(call, x, y, of)
    assert launches[0] >= 6  # three levels, and the sums of each


def test_drop_ins():
    x, y = textured(1, 3, 40, 45)
    for call in (
        fused_ssim.fused_ssim,
        lambda x, y: fussim.fused_ssim(x, y, window_size=7),
        lambda x, y: fussim.ssim(x, y, data_range=1.0),
        lambda x, y: pytorch_msssim.ssim(x, y, data_range=1.0),
        lambda x, y: similis.nn.SSIMLoss()(x, y),
    ):
        check(call, x, y, of="x")


def test_a_training_step_reads_nothing():
    """Every operator of the step is seen by the stand-in, which refuses reads and copies."""
    x, y = textured(1, 1, 24, 24)
    with gpu(KIND) as put:
        image = put(x).requires_grad_()
        optimiser = torch.optim.SGD([image], lr=10.0)
        before = None
        for _ in range(3):
            loss = similis.l1_ssim(image, put(y))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            assert isinstance(loss, OnGpu) and isinstance(image.grad, OnGpu)
            assert before is None or loss.memory < before
            before = loss.memory.clone()


def test_second_derivatives():
    x, y = textured(1, 1, 14, 15)

    def call(x, y):
        (gradient,) = torch.autograd.grad(similis.ssim_loss(x, y), x, create_graph=True)
        return (gradient**2).sum()

    check(call, x, y, gradient=1e-4)


def test_sizes_are_refused_before_a_kernel_runs():
    x, y = textured(*SMALL)
    with gpu(KIND) as put:
        similis.ssim(put(x), put(y), window_size=3)
        with pytest.raises(ValueError, match="ssim: height is 10; with padding valid it must be at"):
            similis.ssim(put(x[:, :, :10]), put(y[:, :, :10]))

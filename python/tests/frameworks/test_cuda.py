# SPDX-License-Identifier: Apache-2.0
"""Streams, captured graphs and memory of a GPU, and the errors without one."""

import ctypes
import warnings

import pytest

torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
import similis
from similis._library import c_abi, measures
from similis.compat.fused_ssim import fused_ssim

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


def gpu_images(*shape):
    generator = torch.Generator(device="cuda").manual_seed(7)
    x = torch.rand(shape, generator=generator, device="cuda")
    return x, (x + 0.1 * torch.rand(shape, generator=generator, device="cuda")).clamp(0, 1)


@needs_gpu
@pytest.mark.parametrize(
    "measure", [similis.ssim, similis.l1_ssim, similis.mutual_information_loss, fused_ssim]
)
def test_work_is_queued_on_the_current_stream(measure):
    """The images are only written once the stream has waited a while."""
    x, y = gpu_images(2, 3, 256, 256)
    expected, stream = measure(x, y), torch.cuda.Stream()
    late = torch.zeros_like(x)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        late.copy_(x)
        variable = late.detach().requires_grad_()
        value = measure(variable, y)
        value.backward()
    stream.synchronize()
    assert value == expected
    reference = x.clone().requires_grad_()
    measure(reference, y).backward()
    assert torch.equal(variable.grad, reference.grad)


@needs_gpu
def test_graphs_are_captured_and_replayed():
    x, y = gpu_images(2, 3, 128, 160)
    static_x, static_y = x.clone().requires_grad_(), y.clone()

    def step():
        static_x.grad = None
        value = fused_ssim(static_x, static_y)
        value.backward()
        return value

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        value = step()
    for seed in range(3):
        new = torch.rand(
            x.shape, generator=torch.Generator("cuda").manual_seed(seed), device="cuda"
        )
        with torch.no_grad():
            static_x.copy_(new)
        graph.replay()
        fresh = new.clone().requires_grad_()
        expected = fused_ssim(fresh, y)
        expected.backward()
        assert torch.equal(value, expected) and torch.equal(static_x.grad, fresh.grad)


@needs_gpu
def test_a_captured_step_reads_its_upstream_when_it_is_replayed(relative_l2):
    x, y = gpu_images(2, 3, 128, 160)
    x.requires_grad_()
    weight = torch.ones((), device="cuda")
    (expected,) = torch.autograd.grad(similis.ssim_loss(x, y), x)  # warms up

    def step():
        (gradient,) = torch.autograd.grad(similis.ssim_loss(x, y) * weight, x)
        return gradient

    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        step()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        gradient = step()
    for value in (1.0, 0.25, 3.0):
        weight.fill_(value)
        graph.replay()
        assert relative_l2(gradient, value * expected) < 1e-6


@needs_gpu
def test_a_training_step_takes_little_beyond_its_gradient():
    x, y = gpu_images(4, 3, 1024, 1024)
    x.requires_grad_()
    fused_ssim(x, y).backward()
    x.grad = None
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    fused_ssim(x, y).backward()
    taken = torch.cuda.max_memory_allocated() - before
    assert taken <= 4.1 * x.numel()


@needs_gpu
def test_workspaces_are_torch_s():
    """Whatever the library takes shows in torch's own count, and is given back."""
    x, y = gpu_images(1, 3, 512, 512)
    similis.ssim(x, y, reduction="per_channel")
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    value = similis.ssim(x, y, reduction="per_channel")
    assert torch.cuda.memory_allocated() - before <= 512
    del value
    assert torch.cuda.memory_allocated() == before


@needs_gpu
def test_images_on_two_devices_are_refused():
    x, y = gpu_images(1, 1, 16, 16)
    with pytest.raises(ValueError, match="ssim: y is on cpu; it must be on cuda:0 as x is"):
        similis.ssim(x, y.cpu())
    with pytest.raises(ValueError, match="ssim: mask is on cpu; it must be on cuda:0 as x is"):
        similis.ssim(x, y, mask=torch.ones(16, 16))


@needs_gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there are not two GPUs")
def test_images_on_the_device_that_is_not_current():
    x, y = gpu_images(1, 3, 64, 64)
    far_x, far_y = x.to("cuda:1").requires_grad_(), y.to("cuda:1")
    assert torch.cuda.current_device() == 0
    value = fused_ssim(far_x, far_y)
    value.backward()
    assert value.device.index == far_x.grad.device.index == 1
    assert value.item() == fused_ssim(x, y).item()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_gpu_images_without_a_gpu_are_a_device_error():
    memory = (ctypes.c_float * 256)()
    strides = [256, 256, 16, 1]
    image, value = [
        c_abi.tensor(
            ctypes.addressof(memory), shape, strides[: len(shape)], "float32", c_abi.Device(c_abi.CUDA, 0)
        )
        for shape in ([1, 1, 16, 16], [])
    ]
    measure = measures.parse(measures.text("ssim", 2, reduction="mean"))
    with pytest.raises(similis.DeviceError, match="ssim: the images are on cuda:0"):
        measures.run(measure, [image, image, None, None, None, value, None, None])


@needs_gpu
@pytest.mark.parametrize(
    ("dtype", "count"), [(torch.uint8, 0), (torch.int16, 0), (torch.int32, 0), (torch.int64, 1)]
)
def test_labels_synchronise_as_documented(dtype, count):
    """int64 labels are checked by one synchronisation, others by none."""
    labels = torch.arange(20, device="cuda").reshape(1, 1, 4, 5).to(dtype)
    field = torch.zeros(1, 4, 5, 2, device="cuda")
    similis.sample_labels(labels, displacement=field)  # the first call loads kernels
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            result = similis.sample_labels(labels, displacement=field)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    # The mode itself warns once that it is a prototype.
    assert sum("called a synchronizing" in str(each.message) for each in caught) == count
    assert torch.equal(result, labels)


@needs_gpu
def test_integer_ssim_has_the_bits_of_the_cpu():
    generator = torch.Generator().manual_seed(3)
    x = torch.randint(0, 256, (3, 90, 130), generator=generator, dtype=torch.uint8)
    y = (x // 3 * 3).to(torch.uint8)
    value = similis.integer_ssim(x.cuda(), y.cuda())
    assert value.is_cuda and value.tolist() == similis.integer_ssim(x, y).tolist()

# SPDX-License-Identifier: Apache-2.0
"""The fast path of _torch/plain.py gives the same bits as the way around it."""

import pytest

torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
import similis
from similis._functions import dispatch

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
pytestmark = pytest.mark.skipif(
    dispatch.evaluate_plainly is dispatch._not_plainly, reason="there is no library"
)


@pytest.fixture
def without(monkeypatch):
    """Runs a function without the fast path."""

    def run(function):
        with monkeypatch.context() as patch:
            patch.setattr(dispatch, "evaluate_plainly", dispatch._not_plainly)
            patch.setattr(dispatch, "transform_plainly", dispatch._not_plainly)
            return function()

    return run


@pytest.fixture
def alone(monkeypatch):
    """Makes all that is no fast path raise."""

    def refuse(*_, **__):
        raise AssertionError("the fast path was left")

    for name in "evaluate", "transform":
        monkeypatch.setattr(dispatch.for_torch(), name, refuse)


def random(*shape, device="cpu", **options):
    generator = torch.Generator().manual_seed(5)
    return torch.rand(shape, generator=generator, **options).to(device)


MEASURES = {
    "mse": lambda x, y: similis.mse(x, y),
    "mae of each image": lambda x, y: similis.mae(x, y, reduction="per_image"),
    "ssim": lambda x, y: similis.ssim(x, y),
    "a map": lambda x, y: similis.ssim(x, y, reduction="none"),
    "ms_ssim": lambda x, y: similis.ms_ssim(x, y, window_size=3),
    "lncc_loss": lambda x, y: similis.lncc_loss(x, y, window_size=5),
    "ncc": lambda x, y: similis.ncc(x, y),
    "mutual_information": lambda x, y: similis.mutual_information(x, y),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", MEASURES)
def test_measures(name, dtype, device, without):
    measure = MEASURES[name]
    x, noise = random(2, 2, 33, 35, device=device), random(2, 2, 33, 35, device=device).flip(3)
    x, y = x.to(dtype), (0.7 * x + 0.3 * noise).to(dtype)

    def run():
        variables = [each.clone().requires_grad_() for each in (x, y)]
        value = measure(*variables)
        value.backward(torch.full_like(value, 0.5))
        return [measure(x, y), value, *(each.grad for each in variables)]

    for fast, slow in zip(run(), without(run)):
        assert fast.dtype == slow.dtype and torch.equal(fast, slow)


@pytest.mark.parametrize("device", DEVICES)
def test_transforms(device, without):
    image = random(1, 2, 9, 11, device=device)
    field = 0.2 * random(3, 9, 11, 2, device=device)
    affine = torch.eye(2, 3, device=device)[None]
    calls = [
        lambda a, b, c: similis.sample(a, displacement=b),
        lambda a, b, c: similis.sample(a.transpose(2, 3), grid=b[:1]),
        lambda a, b, c: similis.sample(a, affine=c, out_shape=[4, 5], mode="nearest") + 0 * b.sum(),
        lambda a, b, c: similis.compose(b, b[:1], affine=c),
        lambda a, b, c: similis.affine_grid(c, b),
        lambda a, b, c: similis.affine_grid(c, out_shape=[3, 7]),
    ]

    def run(call):
        variables = [each.clone().requires_grad_() for each in (image, field, affine)]
        value = call(*variables)
        value.backward(torch.linspace(-1, 1, value.numel(), device=device).reshape(value.shape))
        return [call(image, field, affine), value, *(each.grad for each in variables)]

    for call in calls:
        for fast, slow in zip(run(call), without(lambda: run(call))):
            assert (fast is None) == (slow is None)
            if fast is not None:
                assert fast.stride() == slow.stride()
                # A GPU adds to the image's gradient in any order.
                rtol, atol = (0, 0) if device == "cpu" else (1e-5, 1e-6)
                torch.testing.assert_close(fast, slow, rtol=rtol, atol=atol)


@pytest.mark.parametrize("device", DEVICES)
def test_it_is_taken(device, alone):
    """Else the comparisons above compare nothing."""
    x = random(1, 1, 16, 16, device=device).requires_grad_()
    y, grid = random(1, 1, 16, 16, device=device), 2 * random(1, 16, 16, 2, device=device) - 1
    for measure in similis.mse, similis.ssim, similis.ssim_loss, similis.lncc_loss, similis.ncc:
        measure(x, y).backward()
        measure(x.detach(), y)
    similis.sample(x, grid=grid).sum().backward()
    similis.affine_grid(torch.eye(2, 3, device=device)[None], out_shape=[4, 4])


def test_lazy_tensors_are_left_alone(without):
    """Lazy negations and lazy zeros have no memory that holds their values."""
    image, field = random(1, 1, 8, 8), 0.1 * random(1, 8, 8, 2)
    negated = torch._neg_view(field)
    assert negated.is_neg()
    lazy, dense = (similis.sample(image, displacement=each) for each in (negated, -field))
    assert torch.equal(lazy, dense)
    assert torch.equal(similis.mse(torch._neg_view(image), image), similis.mse(-image, image))
    zeros = torch._efficientzerotensor((1, 8, 8, 2))
    assert torch.equal(
        similis.sample(image, affine=2 * torch.eye(2, 3)[None], displacement=zeros),
        similis.sample(image, affine=2 * torch.eye(2, 3)[None]),
    )
    variable = field.clone().requires_grad_()
    for upstream in torch._neg_view(image), torch._efficientzerotensor(image.shape):
        taken, dense = (
            torch.autograd.grad(similis.sample(image, displacement=variable), variable, each)[0]
            for each in (upstream, upstream + torch.zeros(1))
        )
        assert torch.equal(taken, dense)


@pytest.mark.parametrize("device", DEVICES)
def test_backward_passes(device):
    """One after another, with an upstream gradient of 1 or not, and by torch's own operators."""
    x, y = random(1, 1, 16, 16, device=device).requires_grad_(), random(1, 1, 16, 16).to(device) / 2
    value = similis.mse(x, y)
    first, second = (torch.autograd.grad(value, x, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second)
    third = torch.autograd.grad(3 * value, x, retain_graph=True)[0]
    torch.testing.assert_close(third, 3 * first)
    (again,) = torch.autograd.grad(value, x, create_graph=True)
    torch.testing.assert_close(torch.autograd.grad(again.sum(), x)[0], torch.full_like(x, 2 / 256))
    batched = torch.autograd.grad(
        similis.mse(x, y), x, torch.tensor([1.0, 2.0], device=device), is_grads_batched=True
    )[0]
    torch.testing.assert_close(batched, torch.stack([first, 2 * first]))
    value = similis.mse(x, y)
    with torch.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        value.backward()


def test_options_are_told_from_equal_ones():
    image = random(1, 1, 8, 8)
    similis.sample(image, affine=torch.eye(2, 3)[None])
    with pytest.raises(TypeError, match="align_corners is 1; it must be True or False"):
        similis.sample(image, affine=torch.eye(2, 3)[None], align_corners=1)


def test_determinism_is_asked_in_each_call(monkeypatch):
    from similis._functions import transforms

    seen = []
    text = transforms._sample_text

    def seen_text(*given):
        seen.append(given[-1])
        return text(*given)

    seen_text.remembered = lambda options: seen_text(*options)
    monkeypatch.setattr(transforms, "_sample_text", seen_text)
    image, affine = random(1, 1, 8, 8), torch.eye(2, 3)[None]
    similis.sample(image, affine=affine)
    torch.use_deterministic_algorithms(True)
    try:
        similis.sample(image, affine=affine)
    finally:
        torch.use_deterministic_algorithms(False)
    assert seen == [False, True]


@pytest.fixture(params=["of Python", "by ctypes"])
def functions(request):
    """attempt, attempt_images and scale, made in either way."""
    from similis._torch import binding

    if request.param == "by ctypes":
        scale = binding.scale_by_ctypes
        return binding.attempt_by_ctypes, binding.attempt_images_by_ctypes, scale
    if binding.BINDING != "direct":
        pytest.skip("ctypes is the binding")
    _, attempt, attempt_images, scale = binding.direct_functions()
    return attempt, attempt_images, lambda tensor, factor: scale(tensor, factor, 0)


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_taken_and_what_is_left(functions, device):
    from similis._library import measures

    attempt, attempt_images, scale = functions
    measure = measures.parse("mse reduction=mean")
    head = measure.index, measure.options_address, 0

    def run(x, y, take_images=True):
        value, gradient = torch.empty((), device=device), torch.empty_like(x)
        results = value, gradient, None
        if take_images:
            return attempt_images(*head, measure.unasked, x, y, *results), value, gradient
        return attempt(*head, x, y, None, None, *results), value, gradient

    x, y = random(2, 1, 5, 7, device=device).requires_grad_(), random(2, 1, 5, 14, device=device)[..., ::2]
    expected = (x.detach() - y).square().mean()
    for take_images in True, False:
        status, value, gradient = run(x, y, take_images)
        assert status == 0
        torch.testing.assert_close(value, expected)
        torch.testing.assert_close(gradient, (x.detach() - y) / 35)
    scale(gradient, torch.tensor(3.0, device=device))
    torch.testing.assert_close(gradient, 3 * (x.detach() - y) / 35)
    for shape, dtype in (((1, 8, 8), None), ((1, 8, 8, 3), None), ((1, 1, 8, 4), None), ((1, 1, 8, 8), torch.int16)):
        left = torch.zeros(shape, dtype=dtype or torch.float32, device=device)
        assert run(left, left)[0] == -1
    assert run(random(1, 1, 4, 4, 3, device=device), random(1, 1, 4, 4, 3, device=device))[0] == 0
    for empty in random(0, 1, 8, 8, device=device), torch._efficientzerotensor((1, 1, 8, 8), device=device):
        assert run(random(1, 1, 8, 8, device=device), empty)[0] == -1
        assert run(random(1, 1, 8, 8, device=device), empty, take_images=False)[0] == -1
    assert run(random(1, 1, 8, 8, device=device), random(1, 1, 8, 9, device=device))[0] != 0


def test_wrong_arguments_are_errors():
    """They end in an exception, never in a read of something else."""
    from similis._torch import binding

    if binding.BINDING != "direct":
        pytest.skip("ctypes is the binding")
    call, attempt, attempt_images, scale = binding.direct_functions()
    x = random(1, 1, 8, 8)
    for wrong in (
        lambda: call(),
        lambda: call(0, 0, 0, None),
        lambda: call(0, 0, 0, x, [1.0]),
        lambda: attempt(),
        lambda: attempt(0, 0, 0),
        lambda: attempt(0, 0, 0, None),
        lambda: attempt("0", 0, 0, x),
        lambda: attempt(0, 0, 0, *[x] * 25),
        lambda: attempt_images(0, 0, 0, 23, x, x, x),
        lambda: attempt_images(0, 0, 0, -1, x, x, x),
        lambda: attempt_images(0, 0, 0, 1, x),
        lambda: scale(x, x),
        lambda: scale(x, "x", 0),
        lambda: attempt(0, 0, 0, [1.0]),
    ):
        with pytest.raises((TypeError, RuntimeError)):
            wrong()
    assert call(10**6, 0, 0, x) != 0
    assert attempt(10**6, 0, 0, x) != 0


def test_a_first_call_in_a_mode_spoils_none_after_it(monkeypatch):
    from torch.func import grad

    from similis._torch import tensors

    if not tensors.TELLS_KEYS:
        pytest.skip("this torch does not tell a tensor's keys")

    def look(tensor):
        tensors.is_memory(tensor)
        return tensor.sum()

    for first in (
        torch.inference_mode()(lambda: tensors.is_memory(torch.zeros(2))),
        lambda: grad(look)(torch.zeros(2)),
    ):
        monkeypatch.setattr(tensors, "_known_keys", set())
        first()
        assert tensors.is_memory(torch.zeros(2))
        left = []
        grad(lambda x: (left.append(x), x.sum())[1])(torch.zeros(2))
        assert not tensors.is_memory(left[0])

# SPDX-License-Identifier: Apache-2.0
"""The fast path of _torch/plain.py gives the same bits as the way around it."""

import importlib

import pytest

torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
import similis
from similis._functions import dispatch
from similis.compat.fused_ssim import fused_ssim

fields = importlib.import_module("similis._torch.fields")
smooth = importlib.import_module("similis._torch.smooth")
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
            patch.setattr(fields, "transform_of", dispatch._not_plainly)
            patch.setattr(smooth, "_plainly", dispatch._not_plainly)
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


def weights(x):
    return random(2, 1, 33, 35, device=x.device).to(x.dtype)


MEASURES = {
    "mse": lambda x, y: similis.mse(x, y),
    "mae of each image": lambda x, y: similis.mae(x, y, reduction="per_image"),
    "ssim": lambda x, y: similis.ssim(x, y),
    "a map": lambda x, y: similis.ssim(x, y, reduction="none"),
    "ms_ssim": lambda x, y: similis.ms_ssim(x, y, window_size=3),
    "lncc_loss": lambda x, y: similis.lncc_loss(x, y, window_size=5),
    "ncc": lambda x, y: similis.ncc(x, y),
    "mse under a mask": lambda x, y: similis.mse(x, y, mask=weights(x)),
    "mae of each channel under bits": lambda x, y: similis.mae(
        x, y, mask=weights(x) > 0.5, reduction="per_channel"
    ),
    "ssim under two masks": lambda x, y: similis.ssim(
        x, y, mask=weights(x).float(), valid_mask=weights(x)[:1, :1] > 0.1
    ),
    "ssim of a grey picture": lambda x, y: similis.ssim(x[0, 0], y[0, 0]),
    "fused_ssim": lambda x, y: fused_ssim(x, y),
    "mutual_information": lambda x, y: similis.mutual_information(x, y),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
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
        lambda a, b, c: similis.affine_grid(c.detach(), b),
        lambda a, b, c: similis.affine_grid(c.double(), b[:1]),
        lambda a, b, c: similis.exponentiate(b, 3),
        lambda a, b, c: similis.smooth(a, 1.5, padding="zeros"),
        lambda a, b, c: similis.smooth(b.transpose(1, 2), (0.5, 2.0), field=True),
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
        measure(x, y, mask=y).backward() if measure is not similis.ncc else None
        measure(x, y, reduction="per_image").sum().backward()
        measure(x.half(), y.half()).backward()
        measure(x[0, 0], y[0, 0]).backward()
        measure(x.detach(), y)
    fused_ssim(x, y).backward()
    similis.exponentiate(grid.requires_grad_(), 2).sum().backward()
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


@pytest.fixture(params=["directly", "by ctypes"])
def functions(request):
    """are_plain, compute and multiply, made in either way."""
    from similis._torch import binding

    if request.param == "by ctypes":
        return binding.are_plain_by_python, binding.compute_by_ctypes, binding.multiply_by_ctypes
    if binding.BINDING != "direct":
        pytest.skip("ctypes is the binding")
    return binding.direct_functions()[2:5]


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_taken_and_what_is_left(functions, device):
    from similis._library import measures

    _, compute, multiply = functions
    plan = measures.parse("mse reduction=mean").plan

    def run(x, y):
        return compute(plan, (x, y, None, None, None), (torch.empty((), device=device), x, None))

    x, y = random(2, 1, 5, 7, device=device).requires_grad_(), random(2, 1, 5, 14, device=device)[..., ::2]
    value, gradient, left_out = run(x, y)
    assert left_out is None and not value.requires_grad and not gradient.requires_grad
    torch.testing.assert_close(value, (x.detach() - y).square().mean())
    torch.testing.assert_close(gradient, (x.detach() - y) / 35)
    given = torch.empty((), device=device)
    into = measures.parse("mse reduction=mean").plan_into
    assert compute(into, (x, y, None, None, None, given), ()) == () and given == value
    assert multiply(torch.tensor(3.0, device=device), gradient, None) == 0
    torch.testing.assert_close(gradient, 3 * (x.detach() - y) / 35)
    for shape, dtype in (((1, 8, 8), None), ((1, 8, 8, 3), None), ((1, 1, 8, 4), None), ((1, 1, 8, 8), torch.int16)):
        left = torch.zeros(shape, dtype=dtype or torch.float32, device=device)
        assert run(left, left) is None
    volume = random(1, 1, 4, 4, 3, device=device)
    assert run(volume, volume) is not None
    for empty in random(0, 1, 8, 8, device=device), torch._efficientzerotensor((1, 1, 8, 8), device=device):
        assert run(random(1, 1, 8, 8, device=device), empty) is None
    assert run(random(1, 1, 8, 8, device=device), random(1, 1, 8, 9, device=device)) is None


@pytest.mark.parametrize("device", DEVICES)
def test_results_of_transforms_are_dense(functions, device):
    from similis._library import warp

    _, compute, _ = functions
    call = warp.parse("sample mode=linear")
    image = random(2, 8, 9, 3, device=device).permute(0, 3, 1, 2)
    field = random(2, 8, 9, 2, device=device)
    (result,) = compute(call.plan, (image, None, field, None), (image,))
    assert result.is_contiguous()
    expected = similis.sample(image.contiguous(), displacement=field)
    torch.testing.assert_close(result, expected)
    upstream = torch.ones_like(image)
    gradients = compute(
        call.plan_of_gradients, (image, None, field, None, upstream), (image, None, field, None)
    )
    assert [each is None for each in gradients] == [False, True, False, True]
    assert all(each is None or each.is_contiguous() for each in gradients)


def test_what_is_multiplied(functions):
    multiply = functions[2]
    one, half = torch.ones(3), torch.tensor([0.5, 0.5])[1]
    for factor, expected in (
        (torch.tensor(1.0), 1.0),
        (torch.tensor(1.0, dtype=torch.float64), 1.0),
        (half, 0.5),
        (torch.tensor(2.0, dtype=torch.float64), 1.0),
    ):
        assert multiply(factor, one, None) == 0
        assert torch.equal(one, torch.full((3,), expected))
    for lazy in torch._neg_view(half), torch._efficientzerotensor(()):
        assert multiply(lazy, one) == -1
    with torch.autograd.forward_ad.dual_level():
        assert multiply(half, one) == -1
    seen = []
    torch.func.vmap(lambda each: seen.append(multiply(half, one)) or each)(torch.ones(2))
    assert seen == [-1] and torch.equal(one, torch.ones(3))


def test_who_looks(functions):
    are_plain = functions[0]
    x = random(1, 1, 8, 8)
    assert are_plain() and are_plain(x, None, torch.nn.Parameter(x))
    for other in x.numpy(), torch._neg_view(x), x.as_subclass(Subclass), "x":
        assert not are_plain(x, other)
    seen = []

    def look(each):
        seen.append(are_plain(x))
        return each

    look(x)
    with torch.utils._python_dispatch.TorchDispatchMode():
        look(x)
    with torch.autograd.profiler.profile():
        look(x)
    with torch.autograd.forward_ad.dual_level():
        look(x)
    torch.func.vmap(look)(torch.ones(2))
    torch.func.grad(lambda each: look(each).sum())(torch.ones(2))
    torch.jit.trace(look, torch.ones(2), check_trace=False)
    assert seen == [True] + 6 * [False]
    assert are_plain(x)


class Subclass(torch.Tensor):
    pass


def test_wrong_arguments_are_errors():
    """They end in an exception, never in a read of something else."""
    from similis._torch import binding

    if binding.BINDING != "direct":
        pytest.skip("ctypes is the binding")
    call, scale, _, compute, multiply, are_same = binding.direct_functions()
    x, plan = random(1, 1, 8, 8), bytes(24) + b"\0"
    for wrong in (
        lambda: call(),
        lambda: call(0, 0, 0),
        lambda: call(0, 0, 0, None),
        lambda: call("0", 0, 0, x),
        lambda: call(0, 0, 0, x, [1.0]),
        lambda: call(0, 0, 0, *[x] * 25),
        lambda: scale(x, x),
        lambda: scale(x, "x", 0),
        lambda: scale(x, None, 0),
        lambda: compute(plan, (x,)),
        lambda: compute("0" * 25, (x,), ()),
        lambda: compute(bytes(24), (x,), ()),
        lambda: compute(bytes(24 + 25), (x,), ()),
        lambda: compute(plan, (None,), ()),
        lambda: compute(plan, (), ()),
        lambda: compute(plan, [x], ()),
        lambda: compute(plan, (x,), [x]),
        lambda: compute(plan, (x,), ("x",)),
        lambda: compute(plan, (x,) * 9, ()),
        lambda: compute(plan, (x,), (x,) * 17),
        lambda: compute(bytes(24) + b"\1", (x,), ()),
        lambda: are_same((), []),
        lambda: are_same(()),
        lambda: multiply(),
        lambda: multiply(torch.tensor(2.0), "x"),
    ):
        with pytest.raises((TypeError, RuntimeError, IndexError, SystemError)):
            wrong()
    assert call(10**6, 0, 0, x) != 0
    assert compute(b"\x40\x42\x0f" + plan[3:], (x,), ()) is None


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

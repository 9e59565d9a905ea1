# SPDX-License-Identifier: Apache-2.0
"""torch.compile without graph breaks, and the operators' own checks."""

import pathlib
import sysconfig
import warnings

import pytest

torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
import similis
from similis import nn
from similis._arrays import kinds
from similis._library import measures
from similis._torch.measure_operators import gradient_op, value_op


def loss(x, y):
    """Every measure, with options of every kind."""
    total = similis.ssim_loss(x, y, window_size=(5, 7), sigma=1.2, padding="reflect")
    total = total + similis.l1_ssim(x, y, weight=0.3, window_size=5, reduction="per_image").sum()
    total = total + similis.ms_ssim_loss(x, y, window_size=3, weights=(0.4, 0.6), data_range=2)
    return total + similis.mse(x, y) + similis.mae(x, y) - similis.psnr(x, y) / 100


def compare(loss, backend, images, relative_l2):
    torch.compiler.reset()
    compiled = torch.compile(loss, backend=backend, fullgraph=True)
    x, y = images(2, 3, 24, 20, requires_grad="xy")
    value = compiled(x, y)
    torch.testing.assert_close(value, loss(x, y))
    for own, expected in zip(
        torch.autograd.grad(value, (x, y)), torch.autograd.grad(loss(x, y), (x, y))
    ):
        assert relative_l2(own, expected) < 1e-5
    with torch.no_grad():
        torch.testing.assert_close(compiled(x, y), loss(x, y))


def test_the_compiler_is_imported_by_who_compiles(run_python):
    printed = run_python(
        """
        import sys
        import torch
        from similis._torch import elsewhere

        print("torch._dynamo" in sys.modules)
        import torch._dynamo as compiler

        inside = compiler.trace_rules.is_callable_allowed
        print(inside(elsewhere._smoothed), inside(elsewhere.smooth))
        """
    )
    assert printed.split() == ["False", "True", "False"]


def test_whole_graphs(images, relative_l2):
    compare(loss, "aot_eager", images, relative_l2)


def test_inductor(images, relative_l2):
    if not (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists():
        pytest.skip("inductor compiles against Python.h, which is not installed")
    compare(similis.l1_ssim, "inductor", images, relative_l2)  # C++ compilers take their time


@pytest.mark.parametrize("name", ["ssim", "ms_ssim", "lncc", "mutual_information", "psnr"])
def test_graphs_do_not_walk_the_imported_modules(images, monkeypatch, name):
    """torch.compile would, while a thread or itself imports another: "dictionary changed size"."""
    torch.compiler.reset()
    x, y = images(1, 1, 176, 176)
    expected = getattr(similis, name)(x, y)
    monkeypatch.setattr(kinds, "sys", None)
    compiled = torch.compile(getattr(similis, name), backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(x, y), expected)


@pytest.mark.parametrize("name", ["ssim", "l1_ssim", "lncc", "ncc", "mutual_information", "psnr"])
def test_defaults_are_numbers_where_shapes_change(images, name):
    """dynamic=True makes symbols of the defaults of what is compiled, too."""
    torch.compiler.reset()
    compiled = torch.compile(
        getattr(similis, name), backend="aot_eager", fullgraph=True, dynamic=True
    )
    for side in 16, 19:
        x, y = images(1, 2, side, side + 2)
        torch.testing.assert_close(compiled(x, y), getattr(similis, name)(x, y))


def test_modules_masks_and_half_precision(images):
    torch.compiler.reset()
    module = nn.L1SSIMLoss(weight=0.5, window_size=5, padding="same")
    x, y = images(1, 3, 16, 16, dtype=torch.bfloat16, requires_grad="x")
    mask = torch.ones(16, 16, device=x.device)
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    (gradient,) = torch.autograd.grad(compiled(x, y, mask=mask), x)
    (expected,) = torch.autograd.grad(module(x, y, mask=mask), x)
    torch.testing.assert_close(gradient, expected)


def test_shapes_that_change(images):
    torch.compiler.reset()
    compiled = torch.compile(
        lambda x, y: similis.ssim(x, y, reduction="none", window_size=5),
        backend="aot_eager",
        fullgraph=True,
        dynamic=True,
    )
    for side in 16, 17, 23:
        x, y = images(1, 2, side, side + 2)
        expected = similis.ssim(x, y, reduction="none", window_size=5)
        torch.testing.assert_close(compiled(x, y), expected)


@pytest.mark.parametrize("reduction", ["mean", "per_channel", "none"])
@pytest.mark.parametrize("operation", ["ssim", "mse"])
def test_operators(images, operation, reduction):
    if operation == "mse":
        if reduction == "none":
            pytest.skip("there is no map of squared errors")
        text = measures.text("mse", 0, reduction=reduction)
    else:
        text = measures.text("ssim", 2, window_size=5, reduction=reduction, form="loss")
    x, y = images(2, 3, 12, 11)
    y = y.contiguous(memory_format=torch.channels_last)
    torch.library.opcheck(value_op, (x, y, None, None, text))
    value = value_op(x, y, None, None, text)
    for upstream, with_value in (None, True), (torch.rand_like(value), False):
        torch.library.opcheck(
            gradient_op, (x, y, None, None, upstream, with_value, True, True, text)
        )


class Recorder(torch.utils._python_dispatch.TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(function.name())
        return function(*args, **(kwargs or {}))


def test_whoever_looks_at_operators_sees_them(images):
    x, y = images(1, 1, 16, 16, requires_grad="x")
    with Recorder() as seen:
        similis.ssim(x, y)
        similis.ssim(x.detach(), y)
    assert [name for name in seen.names if "similis" in name] == [
        "similis::gradient",
        "similis::value",
    ]
    with torch.profiler.profile() as profile:
        similis.ssim(x.detach(), y)
    assert "similis::value" in [event.key for event in profile.key_averages()]
    with torch._subclasses.FakeTensorMode() as mode:
        fake = mode.from_tensor(y)
    result = similis.ssim(fake, fake, reduction="none")
    assert type(result) is type(fake) and result.shape == (1, 1, 6, 6)


def test_graphs_of_the_backward_pass(images):
    """A graph of the backward pass of a call that was not compiled."""
    from torch._dynamo import compiled_autograd

    if not hasattr(compiled_autograd, "_enable"):
        pytest.skip("this torch compiles no backward pass by itself")
    torch.compiler.reset()
    x, y = images(1, 1, 16, 16, requires_grad="x")
    (expected,) = torch.autograd.grad(similis.ssim(x, y), x)
    with compiled_autograd._enable(torch.compile(backend="eager", fullgraph=True)):
        similis.ssim(x, y).backward()
    torch.testing.assert_close(x.grad, expected)


def test_traces_compute(images):
    x, y = images(1, 1, 16, 16)

    def measure(x, y):
        return similis.ssim(x, y)

    graph = torch.fx.experimental.proxy_tensor.make_fx(measure)(x, y)
    assert graph(y, y) == 1 != graph(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is deprecated, and fixes shapes
        traced = torch.jit.trace(measure, (x, y), check_trace=False)
        assert traced(y, y) == 1 != traced(x, y)


def test_meta_tensors_have_the_shape_of_the_result():
    x = torch.empty(2, 3, 32, 40, device="meta")
    assert similis.ssim(x, x, reduction="none").shape == (2, 3, 22, 30)
    assert similis.ms_ssim(x, x, reduction="per_image").shape == (2,)
    assert similis.ssim(x.double(), x.double()).dtype == torch.float64


def test_autocast_inside_a_graph(images):
    torch.compiler.reset()
    x, y = images(1, 3, 16, 16)
    kernel = torch.eye(3, device=x.device)[:, :, None, None].clone().requires_grad_()

    def loss(x, y):
        return similis.ssim_loss(torch.nn.functional.conv2d(x, kernel), y)

    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        value, expected = compiled(x, y), loss(x, y)
    torch.testing.assert_close(value, expected)
    (gradient,) = torch.autograd.grad(value, kernel)
    torch.testing.assert_close(gradient, torch.autograd.grad(expected, kernel)[0])

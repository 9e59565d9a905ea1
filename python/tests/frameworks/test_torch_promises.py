# SPDX-License-Identifier: Apache-2.0
"""Promises of every differentiable function under torch, one test each: measures and transforms,
on each device."""

import pytest

torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
import similis

RANGE = {"range": (-0.1, 1.1)}  # found limits would be constants for the gradient
MEASURES = {
    "ssim": lambda x, y: similis.ssim(x, y, window_size=5),
    "ssim_loss": lambda x, y: similis.ssim_loss(x, y, window_size=3, padding="same"),
    "l1_ssim": lambda x, y: similis.l1_ssim(x, y, window_size=3, padding="reflect"),
    "ms_ssim": lambda x, y: similis.ms_ssim(x, y, weights=(0.4, 0.6), window_size=3),
    "lncc": lambda x, y: similis.lncc(x, y),
    "lncc_gaussian": lambda x, y: similis.lncc_loss(x, y, window="gaussian", signed=True),
    "ncc": similis.ncc,
    "mutual_information": lambda x, y: similis.mutual_information(x, y, num_bins=8, **RANGE),
    "normalized": lambda x, y: similis.mutual_information_loss(
        x, y, num_bins=8, normalized=True, kernel="gaussian", **RANGE
    ),
    "mse": similis.mse,
    "mae": similis.mae,
    "psnr": similis.psnr,
}
TRANSFORMS = {
    "sample": lambda image, u: similis.sample(image, displacement=u),
    "sample_cubic": lambda image, u: similis.sample(image, displacement=u, mode="cubic"),
    "compose": lambda image, u: similis.compose(image.movedim(1, -1), u),
    "affine_grid": lambda image, u: similis.affine_grid(image[:, :, 0, :3], u),
}
DIFFERENTIABLE = {**MEASURES, **TRANSFORMS}


@pytest.fixture(params=DIFFERENTIABLE)
def name(request):
    return request.param


@pytest.fixture
def operands(name, images):
    """operands(dtype): two images, or an image and a displacement field, of 2 channels."""

    def make(dtype=torch.float64):
        x, y = images(2, 2, 8, 7, dtype=dtype)
        if name in TRANSFORMS:
            x, y = x - 0.5, 0.2 * (y.movedim(1, -1) - 0.45)
        return x, y

    return make


def gradients(function, *operands):
    variables = [each.detach().clone().requires_grad_() for each in operands]
    value = function(*variables)
    upstream = torch.linspace(0.5, 1.5, value.numel(), dtype=value.dtype, device=value.device)
    return torch.autograd.grad(value, variables, upstream.reshape(value.shape))


def close(actual, expected):
    """Allows for sums whose order may differ on a GPU."""
    wide = expected[0].dtype == torch.float64
    for one, other in zip(actual, expected):
        error = (one - other).norm() / other.norm()
        assert error < (1e-9 if wide else 1e-4), error


def test_gradcheck(name, operands):
    function = DIFFERENTIABLE[name]
    variables = [each.requires_grad_() for each in operands()]
    nondet = 1e-9 if variables[0].is_cuda else 0.0  # an image's gradient is added as voxels arrive
    assert torch.autograd.gradcheck(function, variables, fast_mode=True, nondet_tol=nondet)


def test_gradgradcheck(name, operands):
    function = DIFFERENTIABLE[name]
    variables = [each.requires_grad_() for each in operands()]
    if name in TRANSFORMS:
        with pytest.raises(NotImplementedError, match="gradients of gradients"):
            torch.autograd.gradgradcheck(function, variables, fast_mode=True)
    else:
        assert torch.autograd.gradgradcheck(function, variables, fast_mode=True, nondet_tol=1e-9)


class Recorder(torch.utils._python_dispatch.TorchDispatchMode):
    """The library's operators with what they were given."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.namespace == "similis":
            self.calls.append((function, args))
        return function(*args, **(kwargs or {}))


def test_operators_by_torch_s_own_checks(name, operands):
    with Recorder() as seen:
        gradients(DIFFERENTIABLE[name], *operands())
        DIFFERENTIABLE[name](*operands())
    assert len({operator for operator, _ in seen.calls}) == 2
    for operator, arguments in seen.calls:
        detached = [each.detach() if isinstance(each, torch.Tensor) else each for each in arguments]
        torch.library.opcheck(operator, detached)


def test_whole_graphs(name, operands):
    torch.compiler.reset()
    function, pair = DIFFERENTIABLE[name], operands()
    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    close(gradients(compiled, *pair), gradients(function, *pair))
    torch.testing.assert_close(compiled(*pair), function(*pair))


def test_autocast(name, operands):
    """Half precision meets f32: the result is as in f32, or in the first one's dtype."""
    function, (x, y) = DIFFERENTIABLE[name], operands(torch.float32)
    y = y.requires_grad_()
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        value = function(x.bfloat16(), y)
    expected = function(x.bfloat16().float(), y)
    torch.testing.assert_close(value.float(), expected, rtol=1e-2, atol=1e-2)
    value.float().sum().backward()
    assert y.grad.dtype == torch.float32 and y.grad.norm() > 0


def permuted(tensor):
    axes = list(range(tensor.dim()))
    return tensor.permute(axes[::-1]).contiguous().permute(axes[::-1])


def test_permuted_and_expanded_operands(name, operands):
    function, (x, y) = DIFFERENTIABLE[name], operands()
    expected = gradients(function, x, y)
    close(gradients(lambda x, y: function(permuted(x), permuted(y)), x, y), expected)
    one = x[:1]
    by_one = gradients(lambda one, y: function(one.expand_as(x), y), one, y)
    by_all = gradients(function, one.expand_as(x), y)
    close(by_one, (by_all[0].sum(0, keepdim=True), by_all[1]))


def test_only_the_second_operand_asks(name, operands):
    function, (x, y) = DIFFERENTIABLE[name], operands()
    (own,) = gradients(lambda y: function(x, y), y)
    close((own,), gradients(function, x, y)[1:])


def test_backward_after_evaluation(name, operands):
    function, (x, y) = DIFFERENTIABLE[name], operands()
    x.requires_grad_()
    with torch.no_grad():
        evaluated = function(x, y)
    with torch.inference_mode():
        inferred = function(x, y)
    value = function(x, y)
    assert not evaluated.requires_grad and value.requires_grad
    torch.testing.assert_close(value, evaluated)
    torch.testing.assert_close(value, inferred.clone())
    value.sum().backward()
    assert x.grad.norm() > 0


def test_backward_twice(name, operands):
    function = DIFFERENTIABLE[name]
    variables = [each.requires_grad_() for each in operands()]
    value = function(*variables).sum()
    first = torch.autograd.grad(value, variables, retain_graph=True)
    close(torch.autograd.grad(value, variables), first)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        torch.autograd.grad(value, variables)


def test_operands_that_changed_before_backward_are_an_error(name, operands):
    if name == "affine_grid":
        pytest.skip("its gradient reads no operand")
    function, (x, y) = DIFFERENTIABLE[name], operands()
    value = function(x.requires_grad_(), y).sum()
    y.mul_(1.5)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        value.backward()


def test_work_is_queued_on_the_current_stream(name, operands):
    """The operands are only written once the stream has waited a while."""
    x, y = operands(torch.float32)
    if not x.is_cuda:
        pytest.skip("there are streams on a GPU alone")
    function, expected = DIFFERENTIABLE[name], gradients(DIFFERENTIABLE[name], x, y)
    stream, late = torch.cuda.Stream(), torch.zeros_like(x)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        late.copy_(x)
        own = gradients(function, late, y)
    stream.synchronize()
    close(own, expected)


def test_graphs_are_captured_and_replayed(name, operands):
    x, y = operands(torch.float32)
    if not x.is_cuda:
        pytest.skip("there are graphs on a GPU alone")
    function, static = DIFFERENTIABLE[name], x.clone()
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        gradients(function, static, y)
    torch.cuda.current_stream().wait_stream(stream)
    with torch.cuda.graph(graph):
        own = gradients(function, static, y)
    for each in (x, 0.5 * x):
        static.copy_(each)
        graph.replay()
        close(own, gradients(function, each, y))

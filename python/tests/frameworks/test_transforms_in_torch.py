# SPDX-License-Identifier: Apache-2.0
"""Transforms under what torch does with functions: graphs, torch.func, autocast, streams of any
strides, outputs in place; and what is refused there."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
import similis


def seeded(*shape, seed=0, dtype=torch.float64, device="cpu", scale=1.0):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return (scale * torch.randn(shape, generator=generator)).to(device=device, dtype=dtype)


def of_field(function):
    """As a function of an image and a field, the field alone."""
    return lambda image, u: function(u)


FUNCTIONS = {
    "sample": lambda image, u: similis.sample(image, displacement=u),
    "cubic": lambda image, u: similis.sample(image, grid=u, mode="cubic", padding_mode="border"),
    "weight": lambda image, u: similis.sample_labels(
        image.round(), displacement=u, return_weight=True
    )[1],
    "compose": of_field(lambda u: similis.compose(u, u.flip(1))),
    "affine_grid": of_field(
        lambda u: similis.affine_grid(u[:1, :2, 0].repeat(1, 1, 2)[..., :3], u)
    ),
    "exponentiate": of_field(lambda u: similis.exponentiate(u, 2)),
    "jacobian_determinant": of_field(lambda u: similis.jacobian_determinant(u)[0]),
}


@pytest.fixture(params=FUNCTIONS)
def function(request):
    return FUNCTIONS[request.param]


@pytest.fixture
def operands(device):
    return seeded(2, 2, 7, 6, device=device), seeded(2, 7, 6, 2, device=device, scale=0.1)


def gradient(function, image, u):
    u = u.clone().requires_grad_()
    return torch.autograd.grad(function(image, u).square().sum(), u)[0]


def test_functions_of_torch_func(function, operands):
    """grad composes with vmap, which is a loop."""
    image, u = operands
    expected = gradient(function, image, u)
    by_func = torch.func.grad(lambda u: function(image, u).square().sum())(u)
    torch.testing.assert_close(by_func, expected)
    looped = torch.stack([function(image, each) for each in (u, 0.5 * u)])
    stacked = torch.stack([u, 0.5 * u])
    torch.testing.assert_close(torch.vmap(lambda u: function(image, u))(stacked), looped)
    by_vmap = torch.vmap(torch.func.grad(lambda u: function(image, u).square().sum()))(stacked)
    torch.testing.assert_close(by_vmap[0], expected)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "jacobian_determinant"])
def test_forward_mode_is_refused(operands, name):
    """Nothing drops a tangent."""
    image, u = operands
    with pytest.raises(NotImplementedError, match="^[a-z_]+: forward mode is not supported; backward"):
        torch.func.jvp(lambda u: FUNCTIONS[name](image, u), (u,), (u,))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(u, u)
        with pytest.raises(NotImplementedError, match="^[a-z_]+: forward mode is not supported; backward"):
            FUNCTIONS[name](image, dual)


def test_determinants_have_tangents(operands):
    _, u = operands
    function = lambda u: similis.jacobian_determinant(u)[0].square().sum()
    _, tangent = torch.func.jvp(function, (u,), (u,))
    torch.testing.assert_close(tangent, (torch.func.grad(function)(u) * u).sum())
    assert torch.autograd.gradgradcheck(function, (u.requires_grad_(),), fast_mode=True)


@pytest.mark.parametrize("dynamic", [False, True])
def test_whole_graphs(function, operands, dynamic):
    torch.compiler.reset()
    image, u = operands
    compiled = torch.compile(function, backend="aot_eager", fullgraph=True, dynamic=dynamic)
    torch.testing.assert_close(gradient(compiled, image, u), gradient(function, image, u))
    cut = u[:, :5].clone()
    torch.testing.assert_close(compiled(image, cut), function(image, cut))


def test_inverses_and_labels_in_graphs(operands):
    torch.compiler.reset()
    image, u = operands
    labels = (4 * image).round().to(torch.int32)
    for function in (
        lambda u: similis.invert(u),
        lambda u: similis.jacobian_determinant(u)[1],
        lambda u: similis.sample_labels(labels, displacement=u),
    ):
        compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
        torch.testing.assert_close(compiled(u), function(u))


def test_operators_of_fields(operands):
    from similis._library import warp
    from similis._torch import fields

    _, u = operands
    for operation, number in (("invert", 3), ("jacobian_determinant", None)):
        call = warp.text(operation)
        torch.library.opcheck(fields.field_map_op, (u, number, call))


def each_way(image, affine, u):
    """Calls of each C function, with a gradient to all that may have one."""
    spatial = similis.sample(image, affine=affine, displacement=u, padding_mode="border")
    by_grid = similis.sample(image, grid=u, grid_affine=affine[:, :, :2], mode="cubic")
    labels, weight = similis.sample_labels(image.round(), displacement=u, return_weight=True)
    composed = similis.compose(u, u.flip(1), affine=affine)
    values = [spatial, by_grid, labels, weight, composed, similis.affine_grid(affine, u)]
    values += [similis.affine_grid(affine, out_shape=(4, 5))]
    loss = sum(each.double().square().sum() for each in values if each.requires_grad)
    return [*values, *torch.autograd.grad(loss, (image, affine, u))]


@pytest.fixture
def variables(operands):
    image, u = [each.float() for each in operands]
    affine = seeded(1, 2, 3, dtype=torch.float32, device=u.device, scale=0.5)
    return [each.requires_grad_() for each in (image, affine, u)]


def equal(given, expected):
    """In every bit on the CPU; sums by atomics are close alone."""
    for own, wanted in zip(given, expected, strict=True):
        bits = {} if wanted.is_cuda else {"rtol": 0, "atol": 0}
        torch.testing.assert_close(own, wanted, **bits)


def test_both_bindings_give_the_same_bits(monkeypatch, variables):
    from similis._torch import binding, transform_operators, transforms

    if binding.BINDING != "direct":
        pytest.skip("ctypes is the binding")
    call = binding.direct_functions()[0]
    results = []
    for run in binding.run_transform_by_ctypes, binding.run_transform_directly(call):
        for module in transform_operators, transforms:
            monkeypatch.setattr(module, "run_transform", run)
        added_to = torch.ones_like(variables[0])
        similis.sample(variables[0].detach(), displacement=variables[2].detach(), output=added_to)
        with pytest.raises(ValueError, match="sample: displacement has shape"):
            similis.sample(variables[0], displacement=variables[2][..., :1])
        results.append([*each_way(*variables), added_to])
    equal(*results)


class Seen(torch.utils._python_dispatch.TorchDispatchMode):
    """Counts the calls of each of the library's operators."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.namespace == "similis":
            self.names.append(function.name())
        return function(*args, **(kwargs or {}))


class Wrapped(torch.Tensor):
    """A subclass, which sees what is done to it."""

    seen: list = []

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        cls.seen.append(getattr(function, "name", lambda: "")())
        return super().__torch_function__(function, types, args, kwargs or {})


def test_whoever_looks_at_operators_sees_them(variables):
    """And the same bits; where nobody looks, nobody is asked."""
    image, affine, u = variables
    expected = each_way(*variables)
    with Seen() as seen:
        looked_at = each_way(*variables)
    equal(looked_at, expected)
    assert [seen.names.count(f"similis::{name}") for name in ("transform", "labels")] == [5, 1]
    assert seen.names.count("similis::transform_gradient") == 6
    moved = similis.sample(image, displacement=u)
    with Seen() as seen:  # in the backward pass alone
        (own,) = torch.autograd.grad(moved.sum(), u)
    assert seen.names == ["similis::transform_gradient"]
    equal([own], torch.autograd.grad(similis.sample(image, displacement=u).sum(), u))
    with torch.profiler.profile() as profile, torch.no_grad():
        similis.compose(u, u)
    assert "similis::transform" in [event.key for event in profile.key_averages()]
    Wrapped.seen = []
    wrapped = similis.sample(image.detach().as_subclass(Wrapped), displacement=u.detach())
    assert type(wrapped) is Wrapped and "similis::transform" in Wrapped.seen
    u = u.detach()
    with torch._subclasses.FakeTensorMode() as mode:
        fake = mode.from_tensor(u)
        assert type(similis.compose(fake, fake)) is type(fake)


def test_nobody_looks_at_plain_calls(monkeypatch, variables):
    """Else the comparison above compares nothing."""
    from similis._torch import tensors, transform_autograd, transforms

    if not tensors.TELLS_KEYS:
        pytest.skip("this torch does not tell a tensor's keys")

    def refuse(*_):
        raise AssertionError("an operator was called")

    for name in "transform_op", "gradient_op":
        monkeypatch.setattr(transform_autograd, name, refuse)
    monkeypatch.setattr(transforms, "require_operands", refuse)
    image, affine, u = variables
    similis.sample(image, affine=affine, displacement=u).sum().backward()
    similis.compose(u.detach(), u.detach(), output=torch.zeros_like(u))
    assert all(each.grad.norm() > 0 for each in variables)


def test_graphs_of_the_backward_pass(variables):
    """The calls themselves were not compiled."""
    from torch._dynamo import compiled_autograd

    if not hasattr(compiled_autograd, "_enable"):
        pytest.skip("this torch compiles no backward pass by itself")
    torch.compiler.reset()
    image, affine, u = variables
    functions = (
        lambda: similis.sample(image, affine=affine, displacement=u),
        lambda: similis.compose(u, u),
        lambda: similis.affine_grid(affine, u),
    )
    for function in functions:
        (expected,) = torch.autograd.grad(function().square().sum(), u)
        u.grad = None
        with compiled_autograd._enable(torch.compile(backend="eager", fullgraph=True)):
            function().square().sum().backward()
        equal([u.grad], [expected])


def test_saved_operands_that_hooks_replaced(variables):
    """They may be more than memory when backward reads them."""
    image, _, u = variables
    expected = torch.autograd.grad(similis.sample(image, displacement=u).sum(), u)
    negated = lambda saved: torch.complex(saved, -saved)
    back = lambda kept: kept.conj().imag  # negates when it is read
    with torch.autograd.graph.saved_tensors_hooks(negated, back):
        value = similis.sample(image, displacement=u)
    equal(torch.autograd.grad(value.sum(), u), expected)


def test_strides_change_nothing(function, operands):
    image, u = operands
    expected = gradient(function, image, u)
    permuted_u = u.permute(3, 2, 0, 1).contiguous().permute(2, 3, 1, 0).requires_grad_()
    value = function(image.transpose(2, 3).contiguous().transpose(2, 3), permuted_u)
    upstream = (2 * value.detach()).transpose(0, 1).contiguous().transpose(0, 1)
    (own,) = torch.autograd.grad(value, permuted_u, upstream)
    torch.testing.assert_close(own, expected)


def test_expanded_operands_add_their_gradients_up(function, operands):
    image, u = operands
    one = u[:1].clone().requires_grad_()
    (own,) = torch.autograd.grad(function(image, one.expand_as(u)).square().sum(), one)
    each = gradient(function, image, u[:1].expand_as(u).contiguous())
    torch.testing.assert_close(own, each.sum(0, keepdim=True))


def test_backward_twice_and_after_evaluation(function, operands):
    image, u = operands
    u = u.clone().requires_grad_()
    with torch.no_grad():
        evaluated = function(image, u)
    assert not evaluated.requires_grad
    value = function(image, u)
    torch.testing.assert_close(value, evaluated)
    first, second = [torch.autograd.grad(value.sum(), u, retain_graph=again)[0] for again in (1, 0)]
    torch.testing.assert_close(first, second)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        torch.autograd.grad(value.sum(), u)


def test_operands_that_changed_before_backward_are_an_error(operands):
    image, u = operands
    u.requires_grad_()
    value = similis.sample(image, displacement=u)
    image.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        value.sum().backward()


def test_an_output_that_changed_is_an_error(device):
    """The library writes where it lies; autograd is told."""
    weight = torch.ones(1, 1, 4, 5, device=device, requires_grad=True)
    output = torch.ones(1, 1, 4, 5, device=device)
    product = weight * output
    similis.sample(output.clone(), output=output)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


def test_autocast(operands):
    image, u = operands
    image, u = image.float().bfloat16(), u.float().requires_grad_()
    with torch.autocast(image.device.type, dtype=torch.bfloat16):
        value = similis.sample(image, displacement=u)
    assert value.dtype == torch.bfloat16
    value.float().sum().backward()
    assert u.grad.dtype == torch.float32 and u.grad.norm() > 0


def test_an_output_in_the_operand_s_place(device):
    """Others still read the memory of the output, so the result is computed elsewhere."""
    image = seeded(1, 1, 9, 8, device=device, dtype=torch.float32)
    u = torch.full((1, 9, 8, 2), 0.25, device=device)
    expected = image + similis.sample(image, displacement=u)
    in_place = image.clone()
    assert similis.sample(in_place, displacement=u, output=in_place) is in_place
    torch.testing.assert_close(in_place, expected)
    if device.type == "cpu":
        array = image.numpy().copy()
        similis.sample(array, displacement=u.numpy(), output=array)
        np.testing.assert_allclose(array, expected.numpy())
        view = torch.complex(image, -image).conj().imag  # negates when it is read
        output = torch.zeros_like(image)
        similis.sample(view, displacement=u, output=output)
        torch.testing.assert_close(output, similis.sample(image, displacement=u))


def read_only(array):
    array.flags.writeable = False
    return array


IMAGE, FIELD = np.ones((1, 1, 4, 5), "float32"), np.zeros((1, 4, 5, 2), "float32")
ARRAYS = [
    ({"output": 3}, TypeError, "output is of type int; it must be a "),
    ({"output": np.ones((1, 1, 4, 6), "float32")}, ValueError, "output has shape [1, 1, 4, 6]; it"),
    ({"output": np.ones((1, 1, 4, 5))}, ValueError, "output has dtype "),
    ({"output": np.ones((1, 1, 4, 5), "int64")}, TypeError, "output is "),
    ({"out_shape": (0, 5)}, ValueError, "out_shape holds 0; every extent must be at least 1"),
    ({"out_shape": (-3, 5)}, ValueError, "out_shape holds -3; every extent must be at least 1"),
    ({"out_shape": (2**30, 2**30)}, ValueError, "out_shape is [1073741824, 1073741824]; the resul"),
    ({"min_coords": (-1, -1, -1)}, ValueError, "min_coords has 3 numbers; it takes one for each"),
    ({"max_coords": 1.0}, TypeError, "max_coords is 1.0; it must be a tuple or a list"),
]


@pytest.mark.parametrize("options, error, sentence", ARRAYS)
def test_refusals(options, error, sentence):
    for convert in (lambda array: array, torch.from_numpy):
        given = {
            name: convert(each) if isinstance(each, np.ndarray) else each
            for name, each in options.items()
        }
        with pytest.raises(error) as caught:
            similis.sample(convert(IMAGE), **given)
        assert str(caught.value).startswith(f"sample: {sentence}"), caught.value


def test_read_only_outputs_stay_as_they_are():
    output = read_only(IMAGE.copy())
    with pytest.raises(ValueError, match="sample: output is read-only"):
        similis.sample(IMAGE, output=output)
    assert (output == 1).all()


def test_coordinates_have_as_many_numbers_as_space_has_axes():
    three = {"min_coords": (-1, -1, -1)}
    for name, call in (
        ("compose", lambda: similis.compose(FIELD, FIELD, **three)),
        ("affine_grid", lambda: similis.affine_grid(np.eye(2, 3)[None], FIELD, **three)),
        ("affine_grid", lambda: similis.affine_grid(np.eye(2, 3)[None], out_shape=(2, 2), **three)),
        ("sample_labels", lambda: similis.sample_labels(IMAGE, **three)),
        ("jacobian_determinant", lambda: similis.jacobian_determinant(FIELD, **three)),
    ):
        with pytest.raises(ValueError, match=f"^{name}: min_coords has 3 numbers"):
            call()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64"])
def test_integer_labels(dtype):
    labels = np.arange(20).reshape(1, 1, 4, 5).astype(dtype)
    for image in (labels, torch.from_numpy(labels)):
        label, weight = similis.sample_labels(image, return_weight=True)
        assert label.dtype == image.dtype and (label == image).all() and (weight == 1).all()
    if dtype != "bool":
        for image in (labels, torch.from_numpy(labels)):
            for background in (1.5, float("nan"), 2.0**70):
                with pytest.raises(ValueError, match="^sample_labels: background is .*a value of"):
                    similis.sample_labels(image, background=background)


def test_labels_that_f64_rounds_are_refused():
    for least in (2**53 + 1, -(2**63)):
        image = np.full((1, 1, 4, 5), least)
        for convert in (lambda array: array, torch.from_numpy):
            with pytest.raises(ValueError, match=r"image has labels beyond 2\*\*53"):
                similis.sample_labels(convert(image))
    with pytest.raises(TypeError, match="sample_labels: return_weight is 1; it must be True or"):
        similis.sample_labels(IMAGE, return_weight=1)
    with pytest.raises(TypeError, match="sample_labels: image is torch.complex64"):
        similis.sample_labels(torch.from_numpy(IMAGE).to(torch.complex64))


@pytest.mark.parametrize("name", ["exponentiate", "invert", "jacobian_determinant"])
def test_what_is_no_field(name):
    function = getattr(similis, name)
    argument = "v" if name == "exponentiate" else "u"
    with pytest.raises(TypeError, match=f"^{name}: {argument} is of type list"):
        function([1.0])
    with pytest.raises(ValueError, match=f"^{name}: the field has shape"):
        function(torch.zeros(1, 4, 5, 3))
    with pytest.raises(TypeError, match=f"^{name}: {argument} is torch.int64"):
        function(torch.zeros(1, 4, 5, 2, dtype=torch.int64))

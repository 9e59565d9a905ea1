# SPDX-License-Identifier: Apache-2.0
"""sample(), compose() and their like against torch's affine_grid and grid_sample in float64."""

import inspect
import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
import similis
from similis.compat.fireants import interpolator as fireants
from torch.nn import functional


def seeded(*shape, seed=0, dtype=torch.float32, device="cpu", scale=1.0):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return (scale * torch.randn(shape, generator=generator)).to(device=device, dtype=dtype)


def transform(rank, batch=1, seed=1, device="cpu"):
    identity = torch.eye(rank, rank + 1).expand(batch, rank, rank + 1)
    return (0.9 * identity + 0.1 * seeded(batch, rank, rank + 1, seed=seed)).to(device)


def expected(image, affine, displacement, mode, padding_mode, align_corners):
    """By torch, in float64, and where it has kinks."""
    size = [image.shape[0], image.shape[1], *displacement.shape[1:-1]]
    grid = functional.affine_grid(affine, size, align_corners=align_corners) + displacement
    extents = torch.tensor(image.shape[2:][::-1], dtype=torch.float64, device=image.device)
    if align_corners:
        index = (grid + 1) / 2 * (extents - 1)
    else:
        index = ((grid + 1) * extents - 1) / 2
    if mode == "nearest":
        index = index - 0.5
    kinks = ((index - index.round()).abs() < 1e-4).any(-1)
    torch_mode = "bilinear" if mode == "linear" else mode
    value = functional.grid_sample(
        image, grid, mode=torch_mode, padding_mode=padding_mode, align_corners=align_corners
    )
    return value, kinks


MODES = list(
    itertools.product(
        ("linear", "nearest"), ("zeros", "border", "reflection"), (True, False), (2, 3)
    )
)


@pytest.mark.parametrize("mode,padding_mode,align_corners,rank", MODES)
def test_matches_torch(mode, padding_mode, align_corners, rank, device, relative_l2):
    shape, out = ((9, 14, 11), (8, 1, 13)) if rank == 3 else ((23, 14), (17, 31))
    image = seeded(2, 3, *shape, device=device).requires_grad_()
    affine = transform(rank, 2, device=device).requires_grad_()
    u = seeded(2, *out, rank, seed=2, device=device, scale=0.3).requires_grad_()
    operands = (image, affine, u)
    wide = [each.detach().double().requires_grad_() for each in operands]
    value, kinks = expected(*wide, mode, padding_mode, align_corners)
    upstream = seeded(*value.shape, seed=3, device=device) * ~kinks[:, None]
    own = similis.sample(
        image,
        affine=affine,
        displacement=u,
        mode=mode,
        padding_mode=padding_mode,
        align_corners=align_corners,
    )
    assert relative_l2(own * ~kinks[:, None], value * ~kinks[:, None]) < 1e-5
    gradients = torch.autograd.grad(own, operands, upstream)
    for name, actual, wanted in zip(
        ("image", "affine", "u"), gradients, torch.autograd.grad(value, wide, upstream.double())
    ):
        if wanted.norm() == 0:
            assert actual.norm() == 0, name
        else:
            assert relative_l2(actual, wanted) < 1e-5, name


def test_an_expanded_upstream_and_only_what_is_asked_for(device):
    image = seeded(1, 1, 8, 9, 10, device=device)
    u = seeded(1, 8, 9, 10, 3, device=device, scale=0.1).requires_grad_()
    similis.sample(image, displacement=u).sum().backward()
    assert image.grad is None and u.grad.isfinite().all() and u.grad.norm() > 0


@pytest.mark.parametrize("rank", [2, 3])
def test_gradcheck(rank):
    shape = (3, 4, 5)[:rank]
    image = seeded(2, 2, *shape, dtype=torch.float64).requires_grad_()
    affine = transform(rank).double().requires_grad_()
    u = seeded(1, *shape, rank, dtype=torch.float64, scale=0.1).requires_grad_()
    s = (torch.eye(rank) + 0.1).double()[None].requires_grad_()

    def sampled(image, affine, u, s):
        return similis.sample(
            image, affine=affine, displacement=u, grid_affine=s, padding_mode="border"
        )

    assert torch.autograd.gradcheck(sampled, (image, affine, u, s))
    cubic = lambda image, u: similis.sample(image, displacement=u, mode="cubic")
    assert torch.autograd.gradcheck(cubic, (image, u))
    w = (seeded(1, *shape, rank, seed=5, dtype=torch.float64, scale=0.1)).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda w, u, affine: similis.compose(w, u, affine=affine), (w, u, affine)
    )
    assert torch.autograd.gradcheck(lambda a, u: similis.affine_grid(a, u), (affine, u))
    assert torch.autograd.gradcheck(lambda u: similis.exponentiate(u, 3), (u,))
    assert torch.autograd.gradcheck(lambda u: similis.jacobian_determinant(u)[0], (u,))


def test_gradients_of_gradients_are_refused():
    u = seeded(1, 4, 5, 2, dtype=torch.float64).requires_grad_()
    image = seeded(1, 1, 4, 5, dtype=torch.float64)
    labels = (4 * image).round()
    for name, value in (
        ("sample", similis.sample(image, displacement=u)),
        ("compose", similis.compose(u, u)),
        ("affine_grid", similis.affine_grid(u[0, :1, :2].mT[..., :2].repeat(1, 1, 2)[..., :3], u)),
        ("sample_labels", similis.sample_labels(labels, displacement=u, return_weight=True)[1]),
    ):
        (gradient,) = torch.autograd.grad(value.square().sum(), u, create_graph=True)
        with pytest.raises(NotImplementedError, match=f"{name}: gradients of gradients"):
            gradient.square().sum().backward()


def test_operators_by_torchs_own_checks():
    from similis._library import warp

    image = seeded(1, 2, 4, 5, 6, dtype=torch.float64)
    u = seeded(1, 4, 5, 6, 3, dtype=torch.float64, scale=0.1)
    call = warp.text("sample", padding_mode="border")
    torch.library.opcheck(torch.ops.similis.transform.default, (image, None, u, None, call))
    torch.library.opcheck(
        torch.ops.similis.transform_gradient.default,
        (image, None, u, None, image, True, False, True, False, call),
    )
    labels = warp.text("sample_labels")
    torch.library.opcheck(torch.ops.similis.labels.default, (image, None, u, None, labels))


def test_compiles_without_graph_breaks(relative_l2):
    image, affine = seeded(1, 1, 6, 7, 8), transform(3)
    u = seeded(1, 6, 7, 8, 3, scale=0.1)

    def loss(image, affine, u):
        moved = similis.sample(image, affine=affine, displacement=u)
        return moved.square().sum() + similis.compose(u, u).square().sum()

    operands = [each.requires_grad_() for each in (image, affine, u)]
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    for own, wanted in zip(
        torch.autograd.grad(compiled(*operands), operands),
        torch.autograd.grad(loss(*operands), operands),
    ):
        assert relative_l2(own, wanted) < 1e-6


def test_output_is_added_to(device):
    image = seeded(1, 2, 6, 7, device=device)
    output = torch.ones(1, 2, 6, 7, device=device)
    assert similis.sample(image, output=output) is output
    torch.testing.assert_close(output, image + 1)
    total = similis.sample(image.requires_grad_(), output=output)
    total.sum().backward()
    torch.testing.assert_close(image.grad, torch.ones_like(image))


def test_affine_grids_are_added_to_output(device):
    """In the dtype of the displacement, whatever A's; NumPy's alike; and where somebody looks."""
    affine = torch.eye(3, 4, dtype=torch.float64, device=device)[None]
    u = seeded(1, 5, 6, 7, 3, device=device)
    wanted = similis.affine_grid(affine, u)
    for variable in (u, u.clone().requires_grad_()):
        output = torch.ones_like(u)
        assert similis.affine_grid(affine, variable, output=output) is output
        torch.testing.assert_close(output, wanted + 1)
    with pytest.raises(ValueError, match="affine_grid: output has dtype torch.float64"):
        similis.affine_grid(affine, u, output=torch.ones_like(u).double())
    plain = np.ones((1, 5, 6, 7, 3), np.float32)
    assert similis.affine_grid(affine.cpu().numpy(), u.cpu().numpy(), output=plain) is plain
    np.testing.assert_allclose(plain, wanted.cpu().numpy() + 1, atol=1e-6)


def test_coordinates_that_are_nan_give_nan(device):
    """At their own voxels, in value and gradient; the image's gradient stays finite."""
    image = seeded(1, 1, 5, 6, 7, device=device).requires_grad_()
    u = torch.zeros(1, 5, 6, 7, 3, device=device)
    u[0, 2, 3, 4, 1] = float("nan")
    u.requires_grad_()
    for padding in ("zeros", "border", "reflection"):
        value = similis.sample(image, displacement=u, padding_mode=padding)
        assert value.isnan().sum() == 1 and value[0, 0, 2, 3, 4].isnan()
        by_image, by_u = torch.autograd.grad(value.sum(), (image, u))
        assert by_image.isfinite().all()
        assert by_u.isnan().any(-1).sum() == 1
    broken = torch.full((1, 3, 4), float("nan"), device=device, requires_grad=True)
    value = similis.sample(image, affine=broken)
    assert value.isnan().all()
    assert torch.autograd.grad(value.sum(), broken)[0].isnan().all()
    label, weight = similis.sample_labels(
        image.detach(), affine=broken.detach(), background=3, return_weight=True
    )
    assert (label == 3).all() and weight.isnan().all()
    composed = similis.compose(u, u)
    assert composed.isnan().any()


def test_composition_of_displacements(device, relative_l2):
    """v + compose(u, v) moves as v, then u."""
    image = seeded(1, 1, 8, 9, 10, dtype=torch.float64, device=device)
    u, v = (
        seeded(1, 8, 9, 10, 3, seed=seed, dtype=torch.float64, device=device, scale=0.02)
        for seed in (1, 2)
    )
    grid = similis.affine_grid(torch.eye(3, 4, dtype=torch.float64, device=device)[None], v)
    at_v = functional.grid_sample(u.movedim(-1, 1), grid, align_corners=True).movedim(1, -1)
    torch.testing.assert_close(similis.compose(u, v), at_v)
    both = similis.sample(image, displacement=v + similis.compose(u, v))
    direct = functional.grid_sample(image, grid + at_v, align_corners=True)
    assert relative_l2(both, direct) < 1e-12


def test_labels(device):
    image = torch.tensor([[3, 7], [5, 7]], device=device)[None, None]
    at = lambda x, y: torch.tensor([[[[x, y]]]], dtype=torch.float64, device=device)
    for dtype in (torch.uint8, torch.int16, torch.int64, torch.float32):
        label, weight = similis.sample_labels(
            image.to(dtype), grid=at(0.0, 0.0), return_weight=True
        )
        assert label.dtype == dtype and label.item() == 7 and weight.item() == 0.5
    assert similis.sample_labels(-image, grid=at(5.0, 5.0), background=-9).item() == -9
    grid = at(-0.5, -0.2).requires_grad_()
    _, weight = similis.sample_labels(image.double(), grid=grid, return_weight=True)
    weight.sum().backward()
    torch.testing.assert_close(grid.grad.flatten(), at(-0.3, -0.375).flatten())


def test_inverse_and_jacobian(device):
    x = torch.linspace(-1, 1, 30, dtype=torch.float64, device=device)
    u = 0.1 * torch.stack([(1 - x**2) * torch.ones(20, 1, device=device), 0 * x.expand(20, -1)], -1)
    w, residual = similis.invert(u[None], 60, tolerance=0)
    assert residual.item() < 1e-9
    back = w + similis.compose(u[None], w)
    assert back.norm() < 1e-8
    det, folds = similis.jacobian_determinant(u[None])
    torch.testing.assert_close(det[0, 5, 1:-1], 1 - 0.2 * x[1:-1])
    assert folds.tolist() == [0]
    u[3, 3] = float("nan")
    assert similis.jacobian_determinant(u[None])[1].item() == 4  # its neighbours


def test_inverses_converge_at_the_rim_of_ordinary_fields(device):
    """Plain steps would swing between two fields for ever: u changes by more than it moves."""
    x, y = torch.meshgrid(*2 * [torch.linspace(-1, 1, 81, device=device)], indexing="xy")
    bump = 0.9 * torch.exp(-(x**2) - y**2)
    u = torch.stack([bump * torch.sin(1.5 * x), bump * torch.sin(1.5 * y)], -1)[None]
    assert similis.jacobian_determinant(u)[1].item() == 0
    w = -u
    for _ in range(60):
        w = -similis.compose(u, w, padding_mode="border")
    plain = (w + similis.compose(u, w, padding_mode="border")).norm(dim=-1).max().item()
    voxel = 2 / 80
    w, residual = similis.invert(u, 60)
    assert residual.item() <= 0.0101 * voxel < plain
    left = (w + similis.compose(u, w, padding_mode="border")).norm(dim=-1).max().item()
    assert left <= 0.011 * voxel
    assert similis.invert(u, 60, tolerance=1e-4)[1].item() <= 1.1e-4 * voxel
    u[0, 40, 40, 0] = float("nan")
    assert similis.invert(u)[1].isnan().all()


def test_exponentials_with_and_without_gradients_agree(device):
    v = seeded(1, 5, 6, 7, 3, device=device, scale=0.1)
    for n in (0, 1, 2, 3, 6):
        plain = similis.exponentiate(v, n)
        torch.testing.assert_close(
            plain, similis.exponentiate(v.clone().requires_grad_(), n).detach()
        )


def test_numpy_arrays_are_as_tensors():
    image, affine, u = seeded(1, 2, 5, 6, 7), transform(3), seeded(1, 5, 6, 7, 3, scale=0.1)
    arrays = [each.numpy() for each in (image, affine, u)]
    same = lambda own, wanted: np.testing.assert_array_equal(own, wanted.numpy())
    same(
        similis.sample(arrays[0], affine=arrays[1], displacement=arrays[2], mode="cubic"),
        similis.sample(image, affine=affine, displacement=u, mode="cubic"),
    )
    same(similis.compose(arrays[2], arrays[2]), similis.compose(u, u))
    same(similis.affine_grid(arrays[1], arrays[2]), similis.affine_grid(affine, u))
    same(
        similis.affine_grid(arrays[1], out_shape=(2, 3, 4)),
        similis.affine_grid(affine, out_shape=(2, 3, 4)),
    )
    np.testing.assert_allclose(
        similis.exponentiate(arrays[2], 4), similis.exponentiate(u, 4).numpy(), atol=1e-6
    )
    for own, wanted in zip(similis.invert(arrays[2]), similis.invert(u)):
        same(own, wanted)
    for own, wanted in zip(
        similis.jacobian_determinant(arrays[2]), similis.jacobian_determinant(u)
    ):
        same(own, wanted)
    label, weight = similis.sample_labels(arrays[0], return_weight=True)
    same(label, image)
    output = np.ones_like(arrays[0])
    assert similis.sample(arrays[0], output=output) is output
    np.testing.assert_allclose(output, arrays[0] + 1, rtol=1e-6)


@pytest.mark.parametrize("shape", [(1, 2, 40, 50), (1, 1, 9, 40, 20)])
def test_cubic_is_scipys(shape):
    ndimage = pytest.importorskip("scipy.ndimage")
    image = seeded(*shape, dtype=torch.float64)
    rank = len(shape) - 2
    index = np.random.default_rng(0).uniform(1, 7, (rank, 200))
    grid = np.stack([2 * each / (n - 1) - 1 for each, n in zip(index[::-1], shape[:1:-1])], -1)
    grid = torch.from_numpy(grid.reshape(1, *[1] * (rank - 1), 200, rank))
    own = similis.sample(image, grid=grid, mode="cubic", padding_mode="reflection")
    for channel in range(shape[1]):
        wanted = ndimage.map_coordinates(image[0, channel].numpy(), index, order=3, mode="mirror")
        np.testing.assert_allclose(own[0, channel].numpy().ravel(), wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "call,error,sentence",
    [
        (lambda x: similis.sample(x, mode="bilinear"), ValueError, "sample: mode is 'bilinear'"),
        (
            lambda x: similis.sample(x, affine=x[0]),
            ValueError,
            r"sample: affine has shape \[1, 4, 5",
        ),
        (lambda x: similis.sample(x, grid=1), TypeError, "sample: grid is of type int"),
        (lambda x: similis.sample(x, out_shape=7), TypeError, "sample: out_shape is 7"),
        (lambda x: similis.sample([1]), TypeError, "sample: image is of type list"),
        (lambda x: similis.compose(x, x), ValueError, "compose: u has shape"),
        (lambda x: similis.exponentiate(x), ValueError, "exponentiate: the field has shape"),
        (lambda x: similis.affine_grid(x), ValueError, "affine_grid: out_shape is None"),
    ],
)
def test_refusals(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call(torch.zeros(1, 1, 4, 5))


def test_fireants_signature():
    """Editors and inspect see the arguments of FireANTs' interpolator, in its order."""
    parameters = inspect.signature(fireants.fireants_interpolator).parameters
    assert list(parameters)[:6] == ["input", "affine", "grid", "grid_affine", "mode", "padding_mode"]
    assert not any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    for function in fireants.fused_grid_sampler_3d, fireants.fused_grid_sampler_3d_generic_label:
        for name, own in inspect.signature(function).parameters.items():
            assert parameters[name].annotation == own.annotation
            assert name == "mode" or parameters[name].default == own.default


def test_fireants_interpolator_takes_labels():
    labels, affine = (4 * seeded(1, 1, 6, 7, 8, seed=4)).round(), transform(3)
    interpolate = fireants.fireants_interpolator
    expected = fireants.fused_grid_sampler_3d_generic_label(labels, affine, return_probs=True)
    by_name = interpolate(labels, affine, mode="genericlabel", return_probs=True)
    by_place = interpolate(labels, affine, None, None, "genericlabel", return_probs=True)
    for given in by_name, by_place:
        assert all(torch.equal(own, wanted) for own, wanted in zip(given, expected, strict=True))
    with pytest.raises(ValueError, match="output is given; genericlabel takes none"):
        interpolate(labels, affine, mode="genericlabel", output=labels)


def test_fireants_names(device):
    image, affine = seeded(1, 1, 6, 7, 8, device=device), transform(3, device=device)
    u = seeded(1, 5, 6, 7, 3, device=device, scale=0.1)
    interpolate = fireants.fireants_interpolator
    torch.testing.assert_close(
        interpolate(image, affine, u), similis.sample(image, affine=affine, displacement=u)
    )
    torch.testing.assert_close(
        interpolate(image, affine, u, is_displacement=False), similis.sample(image, grid=u)
    )
    whole = interpolate(image, affine, out_shape=(1, 1, 4, 5, 6), mode="nearest")
    torch.testing.assert_close(
        whole, similis.sample(image, affine=affine, out_shape=(4, 5, 6), mode="nearest")
    )
    torch.testing.assert_close(
        interpolate.warp_composer(u, affine, u), similis.compose(u, u, affine=affine)
    )
    torch.testing.assert_close(interpolate.affine_warp(affine, u), similis.affine_grid(affine, u))
    identity = torch.eye(3, 4, device=device)[None]
    torch.testing.assert_close(
        fireants.fused_affine_warp_3d(None, u), similis.affine_grid(identity, u)
    )
    labels = (4 * seeded(1, 1, 6, 7, 8, seed=4, device=device)).round()
    torch.testing.assert_close(
        fireants.fused_grid_sampler_3d_generic_label(labels, affine),
        similis.sample_labels(labels, affine=affine, background=float(labels.min())),
    )
    label, weight = fireants.fused_grid_sampler_3d_generic_label(
        labels, affine, return_probs=True, background_label=-1
    )
    assert label.shape == weight.shape == labels.shape and label.min() >= -1
    # In FireANTs' order: coordinates, then the shape.
    slab = fireants.fused_grid_sampler_3d(
        image, affine, None, None, "bilinear", "zeros", True, (-1, -1, -1), (1, 1, 0), (3, 7, 8)
    )
    torch.testing.assert_close(
        slab,
        similis.sample(
            image, affine=affine, out_shape=(3, 7, 8), min_coords=(-1, -1, -1), max_coords=(1, 1, 0)
        ),
    )
    with pytest.raises(ValueError, match="fused_grid_sampler_2d"):
        fireants.fused_grid_sampler_2d(image, affine)

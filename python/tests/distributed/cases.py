# SPDX-License-Identifier: Apache-2.0
"""Each rank checks that any split of a volume gives the whole's bits, or is within a tolerance."""

import itertools
import os
import random

import torch
import torch.distributed as dist

import similis
import similis.distributed as sd
from similis.distributed import Slabs, transport


# The device of the arrays: with NCCL each rank has a GPU.
DEVICE = torch.device(os.environ["SIMILIS_RANKS_ON"])
if DEVICE.type == "cuda":
    DEVICE = torch.device("cuda", int(os.environ["LOCAL_RANK"]))


def noise(*shape, seed=0, dtype=torch.float32, scale=1.0):
    generator = torch.Generator().manual_seed(seed)
    return (scale * torch.randn(shape, generator=generator, dtype=torch.float64)).to(DEVICE, dtype)


_calls = itertools.count()


def splits(extent):
    """Two splits, other ones at each call: one of even rows, rows of one, empty slabs and uneven
    rows, and one at random, which may have any of these. The same on all ranks."""
    n, call = dist.get_world_size(), next(_calls)
    if n == 1:
        return [Slabs([extent])]
    fixed = [
        list(Slabs.even(extent).sizes),
        [1] * (n - 1) + [extent - n + 1],
        [0] * (n - 1) + [extent],
        [extent - 2 * (n - 1)] + [2] * (n - 1),
        [extent - 1, 1] + [0] * (n - 2),
    ]
    generator = random.Random(100 * call + n)
    ends = sorted(generator.randint(0, extent) for _ in range(n - 1))
    at_random = [b - a for a, b in zip([0, *ends], [*ends, extent])]
    return [Slabs(fixed[call % len(fixed)]), Slabs(at_random)]


def own(whole, slabs, axis=2):
    """The rank's rows, as a leaf."""
    part = whole.detach().narrow(axis, slabs.start, slabs.stop - slabs.start).clone()
    return part.requires_grad_(whole.requires_grad)


def distance(actual, expected, whole=None):
    """Relative L2, of NaN and infinity 0 where they are alike; relative to the whole that these are
    rows of, if it is given."""
    whole = (expected if whole is None else whole).detach().double()
    actual, expected = (each.detach().double().flatten() for each in (actual, expected))
    same = (actual == expected) | (actual.isnan() & expected.isnan())
    difference = torch.where(same, 0.0, actual - expected).norm()
    return float(difference / max(float(whole.nan_to_num().norm()), 1e-30))


def check(actual, expected, tolerance, *about, whole=None):
    assert actual.shape == expected.shape, (about, actual.shape, expected.shape)
    assert actual.dtype == expected.dtype, (about, actual.dtype, expected.dtype)
    if tolerance == 0:
        assert torch.equal(actual.nan_to_num(7e7), expected.nan_to_num(7e7)), about
    elif actual.numel():
        found = distance(actual, expected, whole)
        assert found <= tolerance, (about, found)


_alike = []


def alike_on_all_ranks(value, *about):
    """Kept until compare_ranks(): ranks that share a processor take milliseconds for each word."""
    _alike.append((str(about), str(value.detach().double().tolist())))


def compare_ranks():
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, _alike)
    for said in zip(*every, strict=True):
        assert all(each == said[0] for each in said), said
    _alike.clear()


TOLERANCE = {
    torch.float64: (1e-12, 1e-10),
    torch.float32: (1e-6, 1e-6),
    # Sums are rounded once, as one process rounds them, to the other side now and then: of a slab of
    # one row, one of 180 voxels was 1.4e-4.
    torch.float16: (1e-6, 3e-4),
    torch.bfloat16: (1e-6, 3e-4),
}


def weights_of(*shape):
    """Weights of pixels, of which a fifth is 0."""
    return noise(*shape, seed=3).abs() * (noise(*shape, seed=4) > -0.8)


def check_measure(
    name,
    options,
    dtype=torch.float32,
    shape=(1, 2, 14, 9, 10),
    masks=(),
    exact=False,
    holes=False,
):
    """Value and gradients of a measure of every split against one process. masks: their names, or
    them by name. holes: where a mask is 0 the images hold NaN."""
    plain, sharded = getattr(similis, name), getattr(sd, name)
    x, y = noise(*shape, seed=1, dtype=dtype), noise(*shape, seed=2, dtype=dtype)
    y = (0.7 * x.double() + 0.3 * y.double()).to(dtype)
    weights = masks if isinstance(masks, dict) else {each: weights_of(*shape[2:]) for each in masks}
    if holes:
        for mask in weights.values():
            x, y = (torch.where(mask > 0, each, torch.nan) for each in (x, y))
    x.requires_grad_(), y.requires_grad_()
    # One process takes MS-SSIM's mask with images on the CPU alone.
    there = torch.device("cpu") if name.startswith("ms_ssim") and masks else DEVICE
    on = {each: mask.to(there) for each, mask in weights.items()}
    shown = {each: (str(mask.dtype), list(mask.shape)) for each, mask in weights.items()}
    expected = plain(x.to(there), y.to(there), **options, **on).to(DEVICE)
    upstream = noise(*expected.shape, seed=5, dtype=expected.dtype)
    is_map = options.get("reduction") == "none" and expected.dim() > 2
    if dtype in (torch.float16, torch.bfloat16) and not is_map:
        upstream = torch.ones_like(upstream)  # with another one process rounds a second time
    wanted = torch.autograd.grad(expected, (x, y), upstream)
    of_value, of_gradient = TOLERANCE[dtype]
    # A GPU's sums of windows are f32 about a constant. Volumes in slabs have the whole's; pictures
    # and MS-SSIM's coarser levels do not.
    has_constant = len(shape) == 5 and not name.startswith("ms_ssim")
    is_rounded = DEVICE.type == "cuda" and dtype == torch.float32 and "ssim" in name
    is_rounded &= not has_constant
    if is_rounded:
        of_value, of_gradient = 2e-6, 5e-6
    for slabs in splits(shape[2]):
        a, b = own(x, slabs), own(y, slabs)
        own_weights = {
            each: own(mask, slabs, mask.dim() - len(shape) + 2) for each, mask in weights.items()
        }
        value = sharded(a, b, slabs, **options, **own_weights)
        about = (name, options, str(dtype), slabs.sizes, shown, holes)
        given = upstream
        if is_map:
            cut = (shape[2] - expected.shape[2]) // 2
            first = max(slabs.start, cut) - cut
            last = max(min(slabs.stop, shape[2] - cut) - cut, first)
            check(value, expected[:, :, first:last], of_value, *about)
            given = upstream[:, :, first:last]
        else:
            check(value, expected, 0 if exact else of_value, *about)
            alike_on_all_ranks(value, *about)
        gradients = torch.autograd.grad(value, (a, b), given)
        for gradient, whole in zip(gradients, wanted):
            # In a slab of two rows at the border little more than rounding is left.
            of = whole if is_rounded else None
            check(gradient, own(whole, slabs), of_gradient, *about, "gradient", whole=of)


def check_integers():
    shape = (2, 2, 11, 6, 7)
    x = torch.randint(0, 256, shape, generator=torch.Generator().manual_seed(1), dtype=torch.uint8).to(DEVICE)
    y = torch.randint(0, 256, shape, generator=torch.Generator().manual_seed(2), dtype=torch.uint8).to(DEVICE)
    for name in ("mse", "mae", "psnr"):
        for slabs in splits(shape[2]):
            value = getattr(sd, name)(own(x, slabs), own(y, slabs), slabs)
            check(value, getattr(similis, name)(x, y), 0, name, slabs.sizes)


def measures():
    for name, reduction in itertools.product(
        ("mse", "mae", "ncc", "ncc_loss"), ("mean", "sum", "per_image", "per_channel")
    ):
        check_measure(name, {"reduction": reduction}, shape=(2, 2, 8, 5, 6))
    for name in ("mse", "mae", "psnr", "ncc"):
        for dtype in (torch.float64, torch.float16):
            check_measure(name, {}, dtype)
    check_measure("psnr", {"data_range": 4.0, "reduction": "per_channel"}, shape=(2, 2, 8, 6))
    check_integers()


def information():
    for options in (
        {"range": (-3.0, 3.0)},
        {},
        {"range": "common", "num_bins": 16, "normalized": True},
        {"kernel": "gaussian", "reduction": "per_channel"},
        {"method": "binned", "range": (-3.0, 3.0), "smooth_nr": 1e-6, "smooth_dr": 1e-6},
    ):
        for name in ("mutual_information", "mutual_information_loss"):
            check_measure(name, options)
    check_measure("mutual_information", {"range": (-3.0, 3.0)}, torch.float64)
    check_measure("mutual_information", {}, torch.float64)
    check_measure("mutual_information", {}, masks=("mask",))
    for options in ({"range": (-3.0, 3.0)}, {"seed": 2**64 - 7}, {"range": "common", "seed": 3}):
        check_measure("mutual_information", {"sampling": 0.3, **options})
    x, y = noise(1, 1, 9, 5, 6, seed=1), noise(1, 1, 9, 5, 6, seed=2)
    for slabs in splits(9):
        whole = similis.histogram(x, y, range=(-3.0, 3.0))
        check(sd.histogram(own(x, slabs), own(y, slabs), slabs, range=(-3.0, 3.0)), whole, 1e-12)


def windows():
    for padding in ("valid", "same", "reflect", "replicate", "renormalize"):
        check_measure("ssim", {"window_size": 5, "padding": padding})
    check_measure("ssim_loss", {"window_size": (7, 3, 3), "reduction": "per_channel"})
    check_measure("ssim", {"window_size": 5, "reduction": "none"})
    check_measure("ssim", {"window_size": 5, "padding": "same"}, masks=("mask",))
    check_measure("ssim", {"window_size": 5}, masks=("mask",))
    check_measure("ssim", {"window_size": 5}, masks=("valid_mask",))
    check_measure(
        "ssim_loss", {"window_size": 5, "padding": "renormalize"}, masks=("mask", "valid_mask")
    )
    check_measure("ssim", {"window_size": 3, "data_range": 2.0}, shape=(2, 1, 9, 12))
    for padding in ("same", "renormalize", "valid"):
        check_measure("lncc", {"window_size": 5, "padding": padding}, torch.float64)
    check_measure("lncc_loss", {"window_size": 7, "window": "gaussian", "reduction": "sum"})
    check_measure("lncc_loss", {"signed": True}, torch.float16)
    halves()
    check_measure(
        "lncc_loss", {"reduction": "per_image"}, masks=("valid_mask",), shape=(2, 1, 9, 8, 7)
    )
    check_measure("l1_ssim", {"window_size": 5})
    check_measure("l1_ssim", {"window_size": 5, "weight": 0.6, "padding": "same"}, masks=("mask",))


def halves():
    """Gradients of halves are added before they are rounded: in slabs of one row all of it, where
    windows inside and at a border meet 4e-4 of f16 and 3e-3 of bf16 were lost."""
    volume, few = (1, 2, 19, 6, 7), {"window_size": 3}
    for dtype in (torch.float16, torch.bfloat16):
        check_measure("ssim", few, dtype, volume)
        check_measure("ssim", {"window_size": 5, "padding": "same"}, dtype, volume, ("mask",))
        check_measure("ssim_loss", {**few, "padding": "reflect", "reduction": "none"}, dtype, volume)
        check_measure("lncc", few, dtype, volume)
        check_measure("lncc_loss", few, dtype, volume, ("valid_mask",))
        check_measure("l1_ssim", few, dtype, volume)
        check_measure("ms_ssim", {**few, "weights": (0.4, 0.6)}, dtype, volume)
    # A mean's are near f16's least, and one process rounds them twice.
    check_measure("lncc", {"gradient": "ants", "reduction": "sum"}, torch.float16, volume)


def levels():
    shape, three = (1, 2, 13, 12, 13), {"weights": (0.3, 0.5, 0.2), "window_size": 3}
    for rule in ("vainf", "ceil", "floor", "piq"):
        check_measure("ms_ssim", {**three, "downsample": rule}, torch.float64, shape)
        check_measure("ms_ssim_loss", {**three, "downsample": rule, "padding": "same"}, shape=shape)
        check_measure(
            "ms_ssim", {**three, "downsample": rule}, torch.float64, (2, 1, 22, 13), ("mask",)
        )
    for padding in ("reflect", "replicate", "renormalize"):
        options = {**three, "padding": padding, "reduction": "per_channel"}
        check_measure("ms_ssim", options, shape=(2, 2, 14, 9, 10))
    check_measure("ms_ssim", {**three, "reduction": "per_image"}, torch.float16, shape)
    check_measure("ms_ssim", {**three, "data_range": 6.0, "k1": 0.05, "k2": 0.06}, shape=shape)
    check_measure("ms_ssim", {**three, "weights": (0.4, 0.0, 0.6), "reduction": "sum"}, shape=shape)
    check_measure("ms_ssim", {}, shape=(1, 1, 163, 162))
    x = torch.randint(0, 256, (1, 1, 31, 29), generator=torch.Generator().manual_seed(1)).byte().to(DEVICE)
    y = (x.int() * 3 // 4 + 9).byte()
    for slabs in splits(31):
        value = sd.ms_ssim(own(x, slabs), own(y, slabs), slabs, **three)
        check(value, similis.ms_ssim(x, y, **three), 1e-6, "ms_ssim of bytes", slabs.sizes)


def smoothing():
    for dtype in (torch.float32, torch.float64, torch.float16):
        for padding in ("replicate", "zeros"):
            for sigma in (0.8, (2.5, 0.0, 1.0), 0.0):
                check_smooth(noise(1, 2, 13, 6, 7, seed=1, dtype=dtype), sigma, padding=padding)
    check_smooth(noise(2, 1, 12, 9, seed=1), 1.3, truncate=2.0)
    check_smooth(noise(1, 12, 6, 7, 3, seed=1), (1.5, 0.7, 1.0), field=True)
    check_smooth(noise(2, 12, 7, 2, seed=1), 9.0, field=True)


def check_smooth(x, sigma, **options):
    axis = 1 if options.get("field") else 2
    x.requires_grad_()
    whole = similis.smooth(x, sigma, **options)
    upstream = noise(*x.shape, seed=2, dtype=x.dtype)
    (wanted,) = torch.autograd.grad(whole, x, upstream)
    for slabs in splits(x.shape[axis]):
        mine = own(x, slabs, axis)
        value = sd.smooth(mine, sigma, slabs, **options)
        about = ("smooth", sigma, options, str(x.dtype), slabs.sizes)
        check(value, own(whole, slabs, axis), 0, *about)
        part = upstream.narrow(axis, slabs.start, slabs.stop - slabs.start)
        (gradient,) = torch.autograd.grad(value, mine, part)
        check(gradient, own(wanted, slabs, axis), 0, *about, "gradient")


def check_transform(
    name, image, field, options, dtype, tolerance=0, block_bytes=None, with_affine=False
):
    """sample() or compose() of every pair of splits against one process."""
    plain, sharded = getattr(similis, name), getattr(sd, name)
    operand = noise(*image, seed=1, dtype=dtype).requires_grad_()
    u = field.clone().requires_grad_()
    affine = grid_affine = None
    if with_affine:
        rank = len(image) - 2
        affine = torch.eye(rank, rank + 1, device=DEVICE)[None] * 0.9 + noise(1, rank, rank + 1, seed=4, scale=0.1)
        affine.requires_grad_()
        if name == "sample":
            grid_affine = torch.eye(rank, device=DEVICE)[None] + noise(1, rank, rank, seed=5, scale=0.1)
            grid_affine.requires_grad_()
    matrices = {
        k: v for k, v in (("affine", affine), ("grid_affine", grid_affine)) if v is not None
    }
    leaves = [operand, u, *matrices.values()]
    axis = 1 if name == "compose" else 2

    def run(function, a, b, *slabs, **more):
        if name == "compose":
            return function(a, b, *slabs, **options, **matrices, **more)
        return function(a, *slabs, displacement=b, **options, **matrices, **more)

    expected = run(plain, operand, u)
    upstream = noise(*expected.shape, seed=6, dtype=expected.dtype)
    wanted = torch.autograd.grad(expected, leaves, upstream)
    # Parts of the gradient to an image of halves are rounded before they are added.
    of_gradient = 1e-3 if dtype == torch.float16 else TOLERANCE[dtype][1]
    pairs = list(zip(splits(image[axis]), reversed(splits(field.shape[1]))))
    for image_slabs, slabs in pairs:
        a, b = own(operand, image_slabs, axis), own(u, slabs, 1)
        more = {"block_bytes": block_bytes} if block_bytes else {}
        value = run(sharded, a, b, image_slabs, slabs=slabs, **more)
        about = (name, options, str(dtype), image_slabs.sizes, slabs.sizes, block_bytes)
        check(value, own(expected, slabs, axis), tolerance, *about)
        given = upstream.narrow(axis, slabs.start, slabs.stop - slabs.start)
        gradients = torch.autograd.grad(value, [a, b, *matrices.values()], given)
        check(gradients[0], own(wanted[0], image_slabs, axis), of_gradient, *about, "image")
        check(gradients[1], own(wanted[1], slabs, 1), tolerance, *about, "field")
        for gradient, whole in zip(gradients[2:], wanted[2:]):
            check(gradient, whole, of_gradient, *about, "matrix")
            alike_on_all_ranks(gradient, *about)


def transforms():
    volume, shape = (1, 2, 13, 6, 9), (1, 11, 7, 8, 3)
    still, moved = torch.zeros(shape, device=DEVICE), noise(*shape, seed=2, scale=0.3)
    for padding in ("zeros", "border", "reflection"):
        for align in (True, False):
            options = {"padding_mode": padding, "align_corners": align}
            for field in (still, moved, 4 * moved):
                check_transform("sample", volume, field, options, torch.float32)
            check_transform("sample", volume, moved, options, torch.float32, block_bytes=2000)
            check_transform(
                "sample", volume, moved, options, torch.float32, with_affine=True, block_bytes=2000
            )
            check_transform("compose", (1, 9, 6, 7, 3), moved, options, torch.float32)
    for dtype in (torch.float16, torch.float64):
        check_transform("sample", volume, moved.to(dtype), {}, dtype)
    check_transform("compose", (1, 9, 6, 7, 3), moved, {}, torch.float32, with_affine=True)
    check_transform("sample", (2, 1, 12, 9), noise(2, 9, 8, 2, scale=0.3), {}, torch.float32)
    check_transform("sample", volume, moved, {"mode": "nearest"}, torch.float32)
    check_transform("sample", volume, moved, {"mode": "cubic", "prefilter": False}, torch.float32)
    check_transform(
        "sample",
        (1, 1, 80, 4, 5),
        noise(1, 80, 4, 5, 3, scale=0.2),
        {"mode": "cubic"},
        torch.float32,
        1e-6,
    )
    lost = moved.clone()
    lost[0, 3, 2, 1, 2], lost[0, 7, 2, 1, 0] = float("nan"), float("inf")
    check_transform("sample", volume, lost, {}, torch.float32, block_bytes=2000)


def labels_and_grids():
    moved = noise(1, 11, 7, 8, 3, seed=2, scale=0.3)
    for dtype in (torch.uint8, torch.int64, torch.float32):
        image = torch.randint(
            0, 5, (1, 1, 13, 6, 9), generator=torch.Generator().manual_seed(1)
        ).to(DEVICE, dtype)
        u = moved.clone().requires_grad_()
        label, weight = similis.sample_labels(
            image, displacement=u, background=3, return_weight=True
        )
        (wanted,) = torch.autograd.grad(weight.sum(), u)
        for image_slabs, slabs in zip(splits(13), reversed(splits(11))):
            for block_bytes in (1 << 28, 300):
                b = own(u, slabs, 1)
                got, weighs = sd.sample_labels(
                    own(image, image_slabs), image_slabs, slabs=slabs, displacement=b, background=3,
                    return_weight=True, block_bytes=block_bytes,
                )  # fmt: skip
                about = (str(dtype), image_slabs.sizes, slabs.sizes, block_bytes)
                check(got, own(label, slabs), 0, *about)
                check(weighs, own(weight, slabs), 0, *about)
                (gradient,) = torch.autograd.grad(weighs.sum(), b)
                check(gradient, own(wanted, slabs, 1), 0, *about, "field")
    affine = noise(1, 3, 4, seed=7).requires_grad_()
    u = moved.clone().requires_grad_()
    for given in (u, None):
        space = None if given is not None else (11, 7, 8)
        whole = similis.affine_grid(affine, given, out_shape=space)
        upstream = noise(*whole.shape, seed=8)
        (wanted,) = torch.autograd.grad(whole, affine, upstream)
        for slabs in splits(11):
            mine = None if given is None else own(given, slabs, 1)
            value = sd.affine_grid(affine, mine, slabs, out_shape=space)
            check(value, own(whole, slabs, 1), 0, "affine_grid", slabs.sizes)
            part = upstream[:, slabs.start : slabs.stop]
            (gradient,) = torch.autograd.grad(value, affine, part)
            check(gradient, wanted, 1e-6, "affine_grid", slabs.sizes)
    image = noise(1, 1, 13, 6, 9)
    turn = torch.tensor([[[1.0, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0]]], device=DEVICE)
    whole = similis.sample(image, affine=turn, out_shape=(9, 8, 7))
    for image_slabs, slabs in zip(splits(13), splits(9)):
        value = sd.sample(
            own(image, image_slabs), image_slabs, slabs=slabs, affine=turn, out_shape=(9, 8, 7)
        )
        check(value, own(whole, slabs), 0, "turn", slabs.sizes)


def fields():
    for shape in ((1, 12, 6, 7, 3), (2, 13, 8, 2)):
        for amplitude in (0.03, 0.4):
            u = noise(*shape, seed=3, scale=amplitude).requires_grad_()
            det, folds = similis.jacobian_determinant(u, align_corners=False)
            (wanted,) = torch.autograd.grad(det.sum(), u)
            exponential = similis.exponentiate(u.detach(), 5)
            inverse, residual = similis.invert(u, 12)
            for slabs in splits(shape[1]):
                mine = own(u, slabs, 1)
                value, folded = sd.jacobian_determinant(mine, slabs, align_corners=False)
                check(value, own(det, slabs, 1), 0, "det", slabs.sizes)
                check(folded, folds, 0, "folds", slabs.sizes)
                (gradient,) = torch.autograd.grad(value.sum(), mine)
                check(gradient, own(wanted, slabs, 1), 1e-6, "det", slabs.sizes)
                result = sd.exponentiate(mine.detach(), slabs, 5)
                check(result, own(exponential, slabs, 1), 0, "exp", slabs.sizes)
                w, largest = sd.invert(mine, slabs, 12)
                check(w, own(inverse, slabs, 1), 0, "invert", slabs.sizes)
                check(largest, residual, 0, "invert", slabs.sizes)
    v = noise(1, 9, 6, 7, 3, seed=3, scale=0.1).requires_grad_()
    whole = similis.exponentiate(v, 3)
    (wanted,) = torch.autograd.grad(whole.square().sum(), v)
    for slabs in splits(9):
        mine = own(v, slabs, 1)
        value = sd.exponentiate(mine, slabs, 3)
        check(value, own(whole, slabs, 1), 0)
        (gradient,) = torch.autograd.grad(value.square().sum(), mine)
        check(gradient, own(wanted, slabs, 1), 1e-6, "exp", slabs.sizes)


def halos_and_traffic():
    x = noise(1, 1, 11, 3, 4).requires_grad_()
    row = 3 * 4 * 4
    for slabs in splits(11):
        mine = own(x, slabs)
        before = transport.sent_bytes
        rows = sd.halo(mine, slabs, 4, 2)
        sent = torch.tensor([transport.sent_bytes - before])
        dist.all_reduce(sent)
        needed = 0
        for rank in range(slabs.ranks):
            start, stop = slabs.rows(rank)
            if start < stop:
                needed += max(0, min(stop + 2, 11) - stop) + start - max(start - 4, 0)
        assert int(sent) == needed * row, (slabs.sizes, int(sent), needed * row)
        first = max(slabs.start - 4, 0)
        last = min(slabs.stop + 2, 11) if slabs.start < slabs.stop else first
        first = first if slabs.start < slabs.stop else last
        check(rows, x[:, :, first:last], 0, slabs.sizes)
        weights = torch.arange(11.0, device=DEVICE)[first:last].reshape(1, 1, -1, 1, 1)
        (gradient,) = torch.autograd.grad((rows * weights).sum(), mine)
        holders = torch.zeros(11, device=DEVICE)
        for rank in range(slabs.ranks):
            start, stop = slabs.rows(rank)
            if start < stop:
                holders[max(start - 4, 0) : min(stop + 2, 11)] += 1
        wanted = (holders * torch.arange(11.0, device=DEVICE)).reshape(1, 1, -1, 1, 1).expand(x.shape)
        check(gradient, own(wanted, slabs), 0, slabs.sizes)
    n = dist.get_world_size()
    if n > 1:  # a field of less than a row fetches a row or two on each side, not the image
        slabs = Slabs.even(64)
        image, u = noise(1, 1, 64, 3, 4), noise(1, 64, 3, 4, 3, scale=0.001)
        before = transport.sent_bytes
        sd.sample(own(image, slabs), slabs, displacement=own(u, slabs, 1))
        assert transport.sent_bytes - before <= 2 * 2 * row

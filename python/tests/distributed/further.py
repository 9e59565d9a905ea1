# SPDX-License-Identifier: Apache-2.0
"""Options and dtypes that the checks of cases.py leave out, on small arrays."""

import torch
import torch.distributed as dist
from cases import DEVICE, check, check_measure, check_transform, noise, own, splits

import similis
import similis.distributed as sd
from similis.distributed import plan, transport, window_sums, windows


def about_a_middle():
    """Only GPUs compute maps and L1-SSIM of volumes about the whole's middle. A CPU does not read
    it, and has the whole's values all the same."""
    before = windows.is_read
    always = lambda text, x: text.startswith("ssim ") and x.dim() == 5  # noqa: E731
    modules = (windows, window_sums)
    try:
        for module in modules:
            module.is_read = always
        for padding in ("valid", "same"):
            check_measure("l1_ssim", {"window_size": 3, "padding": padding})
            check_measure("ssim_loss", {"window_size": 3, "padding": padding, "reduction": "none"})
        check_measure("l1_ssim", {"window_size": 3}, torch.float16, (1, 2, 19, 6, 7))
        check_measure("ssim", {"window_size": 3, "reduction": "none"}, masks=("valid_mask",))
    finally:
        for module in modules:
            module.is_read = before


def main():
    about_a_middle()
    small, volume = (2, 2, 9, 8), (1, 2, 9, 7, 8)
    for dtype in (torch.float16, torch.float64):
        check_measure("ssim", {"window_size": 3, "padding": "same"}, dtype, volume)
        check_measure("l1_ssim", {"window_size": 3}, dtype, volume)
        check_measure("lncc", {"padding": "valid"}, dtype, volume)
    check_measure("mutual_information", {"range": (-3.0, 3.0)}, torch.float16, volume)
    for reduction in ("mean", "sum", "per_image", "per_channel"):
        check_measure("ssim", {"window_size": 3, "reduction": reduction}, shape=small)
        check_measure("l1_ssim", {"window_size": 3, "reduction": reduction}, shape=small)
        check_measure("lncc", {"reduction": reduction}, shape=small)
        check_measure("mutual_information", {"reduction": reduction}, shape=small)
    box = {"window": "box", "window_size": 3, "sample_covariance": True, "k1": 0.02, "k2": 0.05}
    check_measure("ssim", box, shape=volume)
    check_measure("ssim", {"window_size": (1, 3, 5), "sigma": (1.0, 0.7, 2.0)}, shape=volume)
    check_measure("l1_ssim", {"window_size": 3, "reduction": "none", "padding": "reflect"})
    check_measure("l1_ssim", {"window_size": 3}, masks=("valid_mask",), shape=volume)
    check_measure("l1_ssim", {"window_size": 3}, masks=("mask", "valid_mask"), shape=volume)
    check_measure("lncc", {"reduction": "none", "padding": "valid"}, shape=volume)
    check_measure("lncc", {"gradient": "ants"}, shape=volume)
    check_measure("lncc", {"smooth_nr": 0.0, "smooth_dr": 1e-3}, masks=("mask",), shape=volume)
    check_measure("lncc_loss", {}, masks=("mask", "valid_mask"), shape=volume)
    check_measure("mutual_information", {"sampling": 0.5}, masks=("mask",), shape=volume)
    u = noise(1, 9, 6, 7, 3, seed=2, scale=0.2)
    for dtype in (torch.float16, torch.float64):
        check_transform("compose", (1, 9, 6, 7, 3), u.to(dtype), {}, dtype)
    within = {"min_coords": (-0.5, -0.9, -0.7), "max_coords": (0.8, 0.6, 0.9)}
    check_transform("sample", (1, 1, 11, 6, 7), u, within, torch.float32, block_bytes=700)
    check_transform("compose", (1, 9, 6, 7, 3), u, within, torch.float32)
    check_transform("sample", (1, 1, 11, 6, 7), u, {"deterministic": True}, torch.float32)
    check_transform("compose", (2, 9, 8, 2), noise(2, 7, 6, 2, scale=0.2), {}, torch.float32)
    image, grid = noise(2, 1, 11, 6, 7, seed=1), noise(2, 9, 5, 4, 3, seed=2, scale=0.5)
    whole = similis.sample(image, grid=grid, padding_mode="border")
    for image_slabs, slabs in zip(splits(11), reversed(splits(9))):
        mine = own(image, image_slabs), own(grid, slabs, 1)
        value = sd.sample(mine[0], image_slabs, slabs=slabs, grid=mine[1], padding_mode="border")
        check(value, own(whole, slabs), 0, "grid", image_slabs.sizes, slabs.sizes)
    for dtype in (torch.float16, torch.float64):
        v, options = u.to(dtype), {"align_corners": False}
        det, folds = similis.jacobian_determinant(v, **within)
        flow = similis.exponentiate(v, 3, **options)
        for slabs in splits(9):
            mine = own(v, slabs, 1)
            value, folded = sd.jacobian_determinant(mine, slabs, **within)
            check(value, own(det, slabs, 1), 0, "det", str(dtype), slabs.sizes)
            check(folded, folds, 0, "folds", str(dtype), slabs.sizes)
            value = sd.exponentiate(mine, slabs, 3, **options)
            check(value, own(flow, slabs, 1), 0, "exp", str(dtype), slabs.sizes)
    small_field = noise(1, 9, 6, 7, 3, seed=2, scale=0.03).double()
    inverse, residual = similis.invert(small_field, 9, align_corners=False)
    for slabs in splits(9):
        w, largest = sd.invert(own(small_field, slabs, 1), slabs, 9, align_corners=False)
        check(w, own(inverse, slabs, 1), 0, "invert", slabs.sizes)
        check(largest, residual, 0, "invert", slabs.sizes)
    turned()
    layouts()
    given_information()


def layouts():
    """Images whose channels are elsewhere, with masks shaped as they are, as one process takes them."""
    shape = (2, 9, 7, 8, 3)
    weights = noise(*shape, seed=3).abs()
    for k, (name, options, axis) in enumerate((
        ("ssim", {"window_size": 3, "mask": weights, "reduction": "per_channel"}, -1),
        ("lncc_loss", {"reduction": "none"}, 4),
        ("mse", {"mask": weights[:, :, :, :, :1].expand(shape)}, -1),
        ("ncc", {"reduction": "per_channel"}, 1),
        ("mutual_information", {"reduction": "per_channel"}, -1),
    )):  # fmt: skip
        if dist.get_world_size() not in (1 + k % 4, 3):
            continue
        at = 2 if axis == 1 else 1  # of the rows
        x, y = (noise(*shape, seed=each).requires_grad_() for each in (1, 2))
        whole = getattr(similis, name)(x, y, channel_axis=axis, **options)
        upstream = noise(*whole.shape, seed=5)
        wanted = torch.autograd.grad(whole, x, upstream)[0]
        slabs = splits(shape[at])[-1]
        a, b = own(x, slabs, at), own(y, slabs, at)
        mine = {k: own(v, slabs, at) if k == "mask" else v for k, v in options.items()}
        value = getattr(sd, name)(a, b, slabs, channel_axis=axis, **mine)
        is_map = whole.dim() > 2
        expected = own(whole.detach(), slabs, at) if is_map else whole
        check(value, expected, 1e-6, name, axis, slabs.sizes)
        given = own(upstream, slabs, at) if is_map else upstream
        (gradient,) = torch.autograd.grad(value, a, given)
        check(gradient, own(wanted, slabs, at), 1e-6, name, axis, slabs.sizes, "gradient")


def given_information():
    """Limits of the caller, and a histogram that holds other images too."""
    x, y = (noise(2, 1, 9, 5, 6, seed=each).requires_grad_() for each in (1, 2))
    ends = torch.tensor([[-2.0, 1.5, -1.0, 2.0], [-3.0, 3.0, -2.0, 2.5]], device=DEVICE)
    limits = ends[:, None].double()
    counted = similis.histogram(x, y, limits=limits)
    both = counted + similis.histogram(y.detach(), x.detach(), limits=limits)
    for name, given in (
        ("mutual_information", {"limits": limits}),
        ("mutual_information_loss", {"limits": limits, "histogram": both}),
    ):
        whole = getattr(similis, name)(x, y, **given)
        wanted = torch.autograd.grad(whole, (x, y))
        for slabs in splits(9):
            a, b = own(x, slabs), own(y, slabs)
            check(sd.histogram(a, b, slabs, limits=limits), counted, 1e-12, slabs.sizes)
            value = getattr(sd, name)(a, b, slabs, **given)
            check(value, whole, 1e-6, name, slabs.sizes)
            for gradient, each in zip(torch.autograd.grad(value, (a, b)), wanted):
                check(gradient, own(each, slabs), 1e-6, name, slabs.sizes, "gradient")


def turned():
    """A map that takes rows of each rank over the whole image: the whole's bits, and rows from
    others travel once for values and gradients."""
    u = noise(1, 9, 8, 7, 3, seed=2, scale=0.02).requires_grad_()
    turn = torch.tensor([[[1.0, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0]]], device=DEVICE)
    image = noise(1, 1, 13, 6, 9)
    whole = similis.sample(image, affine=turn, displacement=u)
    (wanted,) = torch.autograd.grad(whole.square().sum(), u)
    halved, cases = plan._HALVED_BYTES, (({}, None), ({}, 700), ({DEVICE.type: 0}, None))
    for image_slabs, slabs in zip(splits(13), splits(9)):
        for plan._HALVED_BYTES, block_bytes in cases:
            about = ("turn", image_slabs.sizes, slabs.sizes, block_bytes, plan._HALVED_BYTES)
            mine = own(u, slabs, 1)
            value = sd.sample(
                own(image, image_slabs), image_slabs, slabs=slabs, affine=turn, displacement=mine,
                block_bytes=block_bytes,
            )  # fmt: skip
            check(value, own(whole, slabs), 0, *about)
            before = transport.sent_bytes
            (gradient,) = torch.autograd.grad(value.square().sum(), mine, retain_graph=True)
            check(gradient, own(wanted, slabs, 1), 0, *about, "field")
            assert block_bytes is not None or transport.sent_bytes == before, about
            (gradient,) = torch.autograd.grad(value.square().sum(), mine)
            check(gradient, own(wanted, slabs, 1), 0, *about, "field")
    plan._HALVED_BYTES = halved

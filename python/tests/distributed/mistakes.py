# SPDX-License-Identifier: Apache-2.0
"""A wrong argument of one rank is a ValueError on all, and the group works on."""

import pytest
import torch
import torch.distributed as dist
from cases import DEVICE, noise, own

import similis
import similis.distributed as sd
from similis.distributed import Slabs


def main():
    slabs = Slabs.even(8)
    if slabs.ranks == 1:
        return
    x, y = noise(1, 1, 8, 6, 7, seed=1), noise(1, 1, 8, 6, 7, seed=2)
    a, b = own(x, slabs), own(y, slabs)
    u = torch.zeros(1, slabs.stop - slabs.start, 6, 7, 3, device=DEVICE)
    last = slabs.rank == slabs.ranks - 1
    wrong = a[:, :, :-1] if last else a

    def refused(sentence, function, *arguments, **options):
        with pytest.raises(ValueError, match=sentence):
            function(*arguments, **options)

    refused("ssim: x has shape .*; the slab of rank .* has", sd.ssim, wrong, b, slabs, window_size=3)
    refused("lncc: y is .*float64", sd.lncc, a, b.double() if last else b, slabs)
    refused(
        "ssim: padding is 'valid' on rank 0 and 'same'", sd.ssim, a, b, slabs, window_size=3,
        padding="same" if last else "valid",
    )  # fmt: skip
    refused("lncc: mask is None on rank 0", sd.lncc, a, b, slabs, mask=b[0, 0].abs() if last else None)
    refused(
        "mse: x is torch.float32 .* without gradient on rank 0 and .* with gradient",
        sd.mse, a.clone().requires_grad_(last), b, slabs,
    )  # fmt: skip
    refused("ssim: window_size is 4; it must be odd", sd.ssim, a, b, slabs, window_size=4)
    refused("calls it while rank 0 calls mse", sd.mae if last else sd.mse, a, b, slabs)
    refused("sample: reach is", sd.sample, a, slabs, displacement=u, reach=(1,))
    given = {"window_size": 3, "weights": [0.5] if last else [1.0]}
    refused("ms_ssim: weights is", sd.ms_ssim, a, b, slabs, **given)
    refused("register: the metric dice is given without", sd.register, a, b, slabs, metrics=["dice"])
    refused(
        "mutual_information: there is no option bins", sd.mutual_information, a, b, slabs, bins=3
    )
    refused("sample: displacement has shape", sd.sample, a, slabs, displacement=u[..., :2])
    refused(
        "sample: mode is 'cubik'",
        sd.sample,
        a,
        slabs,
        displacement=u,
        mode="cubik" if last else "cubic",
    )
    refused("compose: v has shape .*; the slab of", sd.compose, u, u[:, :-1] if last else u, slabs)
    refused("invert: iterations is -1", sd.invert, u, slabs, -1)
    refused("exponentiate: n is 33", sd.exponentiate, u, slabs, 33)
    refused("halo: before is -1", sd.halo, a, slabs, -1, 0)
    with pytest.raises(TypeError, match="ssim: slabs is of type tuple; it must be Slabs"):
        sd.ssim(a, b, (3, 6))
    with pytest.raises(ValueError, match="Slabs: sizes has 9 numbers"):
        Slabs([1] * 9)
    splits_that_are_none()
    before_agreeing(a, b, u, slabs, last)
    shapes(a, u, slabs)
    options(a, b, u, slabs, last)
    second(a, b, u, slabs)
    value = sd.ssim(a, b, slabs, window_size=3)
    assert abs(float(value) - float(similis.ssim(x, y, window_size=3))) < 1e-6
    dist.barrier()


def splits_that_are_none():
    for sizes in ([4.5, 3.5], "ab", 8, [None]):
        with pytest.raises(ValueError, match="Slabs: sizes is .*; it must be whole numbers, the rows"):
            Slabs(sizes)
    for extent in (0, -1, 8.0, True, "8"):
        with pytest.raises(ValueError, match="Slabs: extent is .*; it must be a whole number of 1"):
            Slabs.even(extent)


def before_agreeing(a, b, u, slabs, last):
    """All ranks hear at once of an argument so wrong that one rank's function cannot begin."""
    affine = torch.eye(3, 4, device=DEVICE)[None]
    good = {"displacement": u}
    for sentence, function, right, wrong in (
        ("sample: grid is given with affine", sd.sample, good, {"grid": u, "affine": affine}),
        ("sample: slabs is of type int; it must be Slabs", sd.sample, good, {**good, "slabs": 8}),
        ("sample: reach is 3; it must be two whole", sd.sample, good, {**good, "reach": 3}),
        ("sample: block_bytes is '9'", sd.sample, good, {**good, "block_bytes": "9"}),
        ("sample: there is no option colour", sd.sample, good, {**good, "colour": 3}),
        ("sample: .* takes 2 positional arguments", sd.sample, good, {**good, "more": (3,)}),
        ("halo: before is 1.0 and after is 1", sd.halo, {"more": (1, 1)}, {"more": (1.0, 1)}),
        ("halo: axis is 2.0", sd.halo, {"more": (1, 1)}, {"more": (1, 1, 2.0)}),
        ("write: path is of type int", sd.write, {}, {"path": 3}),
        ("write: like is of type int", sd.write, {}, {"like": 3}),
        ("write: .*x.png does not end in .nii", sd.write, {}, {"path": "/nowhere/x.png"}),
        ("ssim: window_size is 3.0; it must be odd", sd.ssim, {"window_size": 3}, {"window_size": 3.0}),
        ("lncc: data_range is 1.0 on|lncc: there is no option", sd.lncc, {}, {"data_range": 1.0}),
        ("ms_ssim: (height|the first spatial axis) .* with padding", sd.ms_ssim, {"weights": (1.0,)}, {"weights": (0.4, 0.3, 0.3)}),
        ("register: moving_slabs is of type int", sd.register, {}, {"moving_slabs": 3}),
        ("register: there is no option fluids", similis.register, {}, {"fluids": 3}),
        ("register: levels is .'a',.; it must be", sd.register, {}, {"levels": ("a",)}),
        ("register: metrics is 3; it must be a list", sd.register, {}, {"metrics": 3}),
        ("register: metrics has .*; it must be a name, or", sd.register, {}, {"metrics": [("ncc", 3)]}),
    ):
        given = dict(wrong if last else right)
        arguments = [a, slabs, *given.pop("more", ())]
        if function in (sd.ssim, sd.lncc, sd.ms_ssim, sd.register):
            arguments = [a, b, slabs]
            given.update({"window_size": 3, **given} if function is sd.ms_ssim else {})
        if function is similis.register:
            arguments, given = [a, b], {**given, "slabs": slabs}
        if function is sd.write:
            arguments = [given.pop("path", "/nowhere/x.nii"), *arguments]
        with pytest.raises(ValueError, match=sentence):
            function(*arguments, **given)


def shapes(a, u, slabs):
    for sentence, call in (
        (r"ssim: x has shape \[.*\]; it must be \[N,C,H,W\] or", lambda: sd.ssim(a[0, 0], a[0, 0], slabs)),
        (r"ssim: mask has shape \[6, 7\]; it must be the images'", lambda: sd.ssim(a, a, slabs, mask=a[0, 0, 0] if a.numel() else a.new_ones(6, 7))),
        ("sample: image is torch.int32; it must be of a float", lambda: sd.sample(a.int(), slabs)),
        (r"sample: image has shape \[.*\]; it must be \[N,C,Y,X\] or", lambda: sd.sample(a[0, 0], slabs)),
        (r"jacobian_determinant: u is .*; it must be \[N,Y,X,2\]", lambda: sd.jacobian_determinant(u[0, 0], slabs)),
        (r"compose: v has shape .*; it must be \[N,Z,Y,X,3\], as u is 3D", lambda: sd.compose(u, u[..., :2], slabs)),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=sentence):
            call()


def options(a, b, u, slabs, last):
    """An option that only one rank gives is everybody's error, whether there is such a one or not."""

    def refused(sentence, function, *arguments, **given):
        with pytest.raises(ValueError, match=sentence):
            function(*arguments, slabs, **(given if last else {}))

    refused("mse: there is no option masks on slabs", sd.mse, a, b, masks=None)
    refused("lncc: there is no option rows on slabs", sd.lncc, a, b, rows=(0, 3))
    refused("smooth: there is no option rows on slabs", sd.smooth, a, 1.0, rows=(0, 3))
    refused("invert: there is no option u_rows on slabs", sd.invert, u, u_rows=(0, 3))
    refused("ncc: there is no option mask on slabs", sd.ncc, a, b, mask=None)
    refused("psnr: channel_axis is 7; it must be an axis", sd.psnr, a, b, channel_axis=7)
    refused("lncc: channel_axis is of type str", sd.lncc, a, b, channel_axis="last")
    limits = torch.tensor([[[0.0, 1, 0, 1]]], device=DEVICE).double()
    refused("limits is None on rank 0", sd.histogram, a, b, limits=limits)
    with pytest.raises(ValueError, match="mutual_information: limits is .*alike on all ranks"):
        given = limits + 1e-9 * slabs.rank
        sd.mutual_information(a, b, slabs, limits=given)
    for wrong in (limits[:, :, :3], limits.float(), limits * torch.nan):
        refused("mutual_information: .*limits", sd.mutual_information, a, b, limits=wrong)
    refused("histogram: there is no option histogram", sd.histogram, a, b, histogram=limits)


# Functions without a gradient, and names that are no functions of arrays.
WITHOUT_GRADIENT = {"histogram", "init", "invert", "read", "register", "write"}
WITHOUT_GRADIENT |= {"LostRank", "Registered", "Slabs"}


def differentiable(b, u, slabs):
    """Each function with a gradient as one of an image or a field, which are of 8 rows."""
    small = {"window_size": 3}
    matrix = torch.eye(3, 4, device=DEVICE)[None]
    calls = {name: (lambda x, f=getattr(sd, name): f(x, b, slabs)) for name in _PLAIN}
    calls.update({name: (lambda x, f=getattr(sd, name): f(x, b, slabs, **small)) for name in _WITH_WINDOW})
    for name in ("ms_ssim", "ms_ssim_loss"):
        calls[name] = lambda x, f=getattr(sd, name): f(x, b, slabs, weights=(1.0,), **small)
    calls["halo"] = lambda x: sd.halo(x, slabs, 1, 1)
    calls["smooth"] = lambda x: sd.smooth(x, 1.0, slabs)
    calls["sample"] = lambda x: sd.sample(x, slabs, displacement=u)
    of_field = {
        "sample": lambda v: sd.sample(b, slabs, displacement=v),
        "sample_labels": lambda v: sd.sample_labels(b, slabs, displacement=v, return_weight=True)[1],
        "compose": lambda v: sd.compose(v, u, slabs),
        "exponentiate": lambda v: sd.exponentiate(v, slabs, 2),
        "jacobian_determinant": lambda v: sd.jacobian_determinant(v, slabs)[0],
    }
    of_affine = {"affine_grid": lambda m: sd.affine_grid(matrix + m, u, slabs)}
    of_affine["sample"] = lambda m: sd.sample(b, slabs, displacement=u, affine=matrix + m)
    named = {*calls, *of_field, *of_affine}
    assert not named & WITHOUT_GRADIENT and named | WITHOUT_GRADIENT == set(sd.__all__)
    return calls, of_field, of_affine


_PLAIN = ("mae", "mse", "mutual_information", "mutual_information_loss", "ncc", "ncc_loss", "psnr")
_WITH_WINDOW = ("l1_ssim", "lncc", "lncc_loss", "ssim", "ssim_loss")


def second(a, b, u, slabs):
    """Second derivatives and forward mode are refused on every rank, by every function."""
    calls = differentiable(b, u + 0.1, slabs)
    for operand, functions in zip((a, u, torch.zeros(1, 3, 4, device=DEVICE)), calls):
        for name, function in functions.items():
            variable = operand.clone().requires_grad_()
            value = function(variable)
            with pytest.raises(NotImplementedError, match=r"^\w+: gradients of gradients are not supported"):
                torch.autograd.grad(value.sum(), variable, create_graph=True)
                pytest.fail(f"{name} was differentiated")
            with pytest.raises(NotImplementedError, match="torch.func and forward mode are not"):
                torch.func.jvp(function, (operand,), (operand,))
                pytest.fail(f"{name} was differentiated in forward mode")

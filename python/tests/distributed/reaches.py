# SPDX-License-Identifier: Apache-2.0
"""Sampling that fetches rows by a given reach."""

import torch
from cases import DEVICE, check, noise, own, splits

import similis
import similis.distributed as sd
from similis.distributed import Slabs, inner, transforms


def main():
    """Rows that a reach fetches give the whole's bits; a coordinate beyond is NaN and a refusal."""
    image, u = noise(1, 2, 16, 5, 6, seed=1), noise(1, 16, 5, 6, 3, seed=2, scale=0.1)
    field = noise(1, 16, 5, 6, 3, seed=3, scale=0.1)
    affine = torch.eye(3, 4, device=DEVICE)[None] * 0.95
    for padding in ("zeros", "border", "reflection"):
        for align in (True, False):
            options = {"padding_mode": padding, "align_corners": align}
            for given in ({}, {"affine": affine, "grid_affine": 0.8 * torch.eye(3, device=DEVICE)[None]}):
                leaf = u.clone().requires_grad_()
                whole = similis.sample(image, displacement=leaf, **options, **given)
                (wanted,) = torch.autograd.grad(whole.sum(), leaf)
                for slabs in splits(16):
                    mine = own(leaf, slabs, 1)
                    value = sd.sample(
                        own(image, slabs), slabs, displacement=mine, reach=(16, 16),
                        block_bytes=700, **options, **given,
                    )  # fmt: skip
                    about = ("reach", options, slabs.sizes)
                    check(value, own(whole, slabs), 0, *about)
                    (gradient,) = torch.autograd.grad(value.sum(), mine)
                    check(gradient, own(wanted, slabs, 1), 0, *about, "field")
                    slabs.check()
    for shift in (0.0, 1 / 15):  # none, and half a row
        moved = torch.zeros_like(u)
        moved[..., 2] = shift
        whole = similis.sample(image, displacement=moved)
        for slabs in splits(16):
            rows = {"slabs": slabs, "reach": (0, 0)}
            value = sd.sample(own(image, slabs), slabs, displacement=own(moved, slabs, 1), **rows)
            for row in range(slabs.start, slabs.stop):
                got, about = value[:, :, row - slabs.start], ("reach", shift, slabs.sizes, row)
                if shift > 0 and row == slabs.stop - 1 < 15:  # needs the next rank's row
                    assert bool(got.isnan().all()), about
                else:
                    assert torch.equal(got, whole[:, :, row]), about
            ends = [slabs.rows(rank)[1] for rank in range(slabs.ranks) if slabs.sizes[rank]]
            try:
                slabs.check()
            except ValueError as error:
                assert shift > 0 and min(ends) < 16, (shift, slabs.sizes)
                assert "an earlier sample has coordinates beyond its reach" in str(error), error
            else:
                assert shift == 0 or min(ends) == 16, (shift, slabs.sizes)
    slabs = Slabs.even(16)
    composed = similis.compose(field, u)
    value = sd.compose(own(field, slabs, 1), own(u, slabs, 1), slabs, reach=(9, 9))
    check(value, own(composed, slabs, 1), 0, "reach of compose")
    labels = (3 * image.abs()).floor()
    whole = similis.sample_labels(labels, displacement=u)
    value = sd.sample_labels(own(labels, slabs), slabs, displacement=own(u, slabs, 1), reach=(9, 9))
    check(value, own(whole, slabs), 0, "reach of labels")
    far = own(torch.full_like(u, 3.0), slabs, 1)
    if slabs.ranks > 1:
        sd.sample(own(image, slabs), slabs, displacement=far, reach=(0, 0))
        try:
            # On a GPU a call does not wait to see.
            if DEVICE.type == "cuda":
                slabs.check()
            sd.mse(own(image, slabs), own(image, slabs), slabs)
        except ValueError as error:
            assert ": an earlier sample has coordinates beyond its reach" in str(error), error
        else:
            raise AssertionError("the next call takes no notice")
    sd.mse(own(image, slabs), own(image, slabs), slabs)
    inner_rows()


def inner_rows():
    """Rows that are sampled before anyone looks at them: the whole's bits, wherever voxels look."""
    image, u = noise(1, 2, 48, 5, 6, seed=1), noise(1, 48, 5, 6, 3, seed=2, scale=0.01)
    kept = inner._OUTER_VOXELS, inner._OUTER_ROWS, inner.Answers.are_no, transforms.are_taken
    inner._OUTER_VOXELS, inner._OUTER_ROWS = 0, 4
    found = []

    def are_no(self):
        found.append(kept[2](self))
        if DEVICE.type == "cpu":  # which notes nothing
            assert not found[-1]
            found[-1] = is_near
        return found[-1]

    inner.Answers.are_no = are_no
    if DEVICE.type == "cpu":
        transforms.are_taken = lambda *_: True
    try:
        for slabs in (Slabs.even(48), *splits(48)):
            for scale, options in ((1, {}), (1, {"padding_mode": "border"}), (30, {}), (1e3, {})):
                leaf, is_near = (scale * u).requires_grad_(), scale == 1
                found.clear()
                whole = similis.sample(image, displacement=leaf, **options)
                (wanted,) = torch.autograd.grad(whole.sum(), leaf)
                mine = own(leaf, slabs, 1)
                value = sd.sample(own(image, slabs), slabs, displacement=mine, **options)
                about = ("inner rows", scale, options, slabs.sizes)
                check(value, own(whole, slabs), 0, *about)
                (gradient,) = torch.autograd.grad(value.sum(), mine)
                check(gradient, own(wanted, slabs, 1), 0, *about, "field")
                if slabs.ranks > 1 and min(slabs.sizes) >= 16:
                    assert found == [is_near], (found, about)
    finally:
        inner._OUTER_VOXELS, inner._OUTER_ROWS, inner.Answers.are_no, transforms.are_taken = kept

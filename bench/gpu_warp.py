#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sampling and composing on a GPU as registration calls them: through torch's autograd by the Python
package similis, beside torch's affine_grid and grid_sample, and FireANTs' fused operations where they
are installed. An affine map near the identity and a smooth displacement with a little noise on it.

    PYTHONPATH=build/python bench/gpu_warp.py --output rows.json
"""

import argparse
import importlib
import pathlib

import torch
from torch.nn import functional

from gpu_report import Report
from gpu_time import in_a_graph, peak_bytes_per_element, side_by_side
from torch_step import step

VOLUME = (384, 320, 448)
# ms at 4.2 TB/s: fields 12 B a voxel, images 4; a pass reads its operands once and writes its results.
FLOORS = {"sample/value": 0.26, "sample/value_and_gradient_displacement": 0.67,
          "sample/value_and_gradient_both": 0.82, "compose/value": 0.47,
          "compose/value_and_gradient": 1.4}
TARGETS = {"sample/value": 0.45, "sample/value_and_gradient_displacement": 1.1,
           "sample/value_and_gradient_both": 2.0, "compose/value": 0.9,
           "compose/value_and_gradient": 3.5}


def field(seed, jitter=0.002):
    """Half a period of a wave along each axis, a twentieth of the volume high, and noise."""
    generator = torch.Generator(device="cuda").manual_seed(seed)
    waves = [torch.linspace(0, 3.1416, n, device="cuda").sin() for n in VOLUME]
    wave = 0.05 * waves[0][:, None, None] * waves[1][:, None] * waves[2]
    noise = torch.randn((*VOLUME, 3), device="cuda", generator=generator)
    return (wave[..., None] + jitter * noise)[None]


def sampled_by_torch(image, u, affine):
    grid = functional.affine_grid(affine, (1, 1, *VOLUME), align_corners=True) + u
    return functional.grid_sample(image, grid, align_corners=True)


def composed_by_torch(u, v, affine):
    grid = functional.affine_grid(affine, (1, 3, *VOLUME), align_corners=True) + v
    return functional.grid_sample(u.movedim(-1, 1), grid, align_corners=True).movedim(1, -1)


def fireants():
    """Its interpolator, or None with a line if it is not installed."""
    try:
        return importlib.import_module("fireants.interpolator.fused_grid_sample")
    except ImportError as error:
        print(f"left out: FireANTs ({str(error).splitlines()[0]})")
        return None


def contenders():
    """{operation: {who: function}}, similis first."""
    import similis

    peer = fireants()
    sample = {"similis": lambda image, u, affine: similis.sample(
        image, affine=affine, displacement=u), "torch": sampled_by_torch}
    compose = {"similis": lambda u, v, affine: similis.compose(u, v, affine=affine),
               "torch": composed_by_torch}
    if peer:
        sample["FireANTs"] = lambda image, u, affine: peer.fused_grid_sampler_3d(
            image, affine=affine, grid=u, is_displacement=True, align_corners=True)
        compose["FireANTs"] = lambda u, v, affine: peer.fused_warp_composer_3d(
            u, affine, v, align_corners=True)
    return {"sample": sample, "compose": compose}


def compare(report):
    size = "x".join(map(str, VOLUME))
    affine = torch.eye(3, 4, device="cuda")[None].contiguous()
    affine[0, 0, 1], affine[0, 1, 2], affine[0, 2, 3] = 0.02, -0.02, 0.01
    operands = {"sample": (torch.rand((1, 1, *VOLUME), device="cuda"), field(1), affine),
                "compose": (field(1), field(2), affine)}
    shapes = {"sample": ("1x1x" + size, (1, 1, *VOLUME)), "compose": (size, (1, *VOLUME, 3))}
    kinds = {"sample": {"value": (), "value_and_gradient_displacement": (False, True, False),
                        "value_and_gradient_both": (True, True, False)},
             "compose": {"value": (), "value_and_gradient": (True, True, False)}}
    for operation, functions in contenders().items():
        name, shape = shapes[operation]
        upstream = torch.randn(shape, device="cuda")
        for kind, gradients in kinds[operation].items():
            calls = {who: step(function, upstream, gradients) for who, function in functions.items()}
            measured = side_by_side(calls, [operands[operation]])
            own, case = calls.pop("similis"), f"{operation}/{kind}"
            report.add(f"{case}/{name}/f32", "ms", measured.pop("similis"), measured,
                       FLOORS[case], TARGETS[case])
            report.add(f"{operation}/{kind}_in_a_graph/{name}/f32", "ms",
                       in_a_graph(own, operands[operation]))
            report.add(f"{operation}/memory_{kind}/{name}/f32", "B/voxel",
                       memory(own, operands[operation]),
                       {who: memory(call, operands[operation]) for who, call in calls.items()})


def memory(call, operands):
    """Bytes that torch's allocator holds at its peak beyond the operands, for each voxel."""
    return peak_bytes_per_element(call, operands) * operands[0].numel() / torch.Size(VOLUME).numel()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--commit", default="")
    parser.add_argument("--output", type=pathlib.Path)
    arguments = parser.parse_args()
    import similis

    compare(Report(arguments.output, arguments.commit, {"similis": similis.__version__},
                   "transforms"))


if __name__ == "__main__":
    main()

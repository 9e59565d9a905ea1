# SPDX-License-Identifier: Apache-2.0
"""SSIM, MS-SSIM and L1 with SSIM on a GPU: which calls are measured, what the hardware allows of them
and what is aimed at. `_in_a_graph` is the work alone, through the C interface."""

import torch

import gpu_similis
from gpu_time import images, in_a_graph, on_the_host, peak_bytes_per_element, side_by_side

LARGE, HD, MANY, SMALL = (5, 5, 1080, 1920), (1, 3, 1080, 1920), (16, 3, 512, 512), (1, 3, 256, 256)
ODD, VOLUME = (5, 5, 1079, 1917), (1, 1, 128, 128, 128)
FLOORS = {  # ms, from instructions and bytes; see docs/notes/gpu.md
    "ssim/value/5x5x1080x1920/f32": 0.17, "ssim/value_and_gradient/5x5x1080x1920/f32": 0.32,
    "ssim/value/1x3x1080x1920/f32": 0.021, "ssim/value_and_gradient/1x3x1080x1920/f32": 0.038,
    "ssim/value/16x3x512x512/f32": 0.042, "ssim/value_and_gradient/16x3x512x512/f32": 0.077,
    "ssim/map/5x5x1080x1920/f16": 0.18, "ssim/value_and_gradient/5x5x1080x1920/f16": 0.32,
    "ms_ssim/value_and_gradient/5x5x1080x1920/f32": 0.45,
    "ssim/value_and_gradient/1x1x128x128x128/f32": 0.02}
TARGETS = {
    "ssim/value/5x5x1080x1920/f32": 0.25, "ssim/value_and_gradient/5x5x1080x1920/f32": 0.50,
    "ssim/value/1x3x1080x1920/f32": 0.035, "ssim/value_and_gradient/1x3x1080x1920/f32": 0.080,
    "ssim/value/16x3x512x512/f32": 0.065, "ssim/value_and_gradient/16x3x512x512/f32": 0.135,
    "ssim/value/1x3x256x256/f32": 0.012, "ssim/value_and_gradient/1x3x256x256/f32": 0.040,
    "ssim/map/5x5x1080x1920/f16": 0.25, "ssim/value_and_gradient/5x5x1080x1920/f16": 0.50,
    "ms_ssim/value_and_gradient/5x5x1080x1920/f32": 0.9,
    "ssim/value_and_gradient/1x1x128x128x128/f32": 0.08}
DTYPES = {"f32": torch.float32, "f16": torch.float16, "u8": torch.uint8}
# The rows: operation, kind, shape, dtype. Kinds with peers are those that peers have too.
CASES = [(operation, kind, shape, dtype)
         for operation, dtype, shapes in (("ssim", "f32", (LARGE, HD, MANY, SMALL, ODD)),
                                          ("ssim", "f16", (LARGE,)), ("ms_ssim", "f32", (LARGE, HD)))
         for shape in shapes for kind in ("value", "value_and_gradient")]
CASES += [("ssim", "map", LARGE, "f32"), ("ssim", "map", LARGE, "f16"),
          ("ssim", "map_and_gradient", LARGE, "f16"), ("ssim", "value", LARGE, "u8"),
          ("l1_ssim", "value_and_gradient", LARGE, "f32"),
          ("ssim", "value", VOLUME, "f32"), ("ssim", "value_and_gradient", VOLUME, "f32")]


def attempt(measure, what):
    """The result of measure(); None, with a line printed, if a peer refuses the call."""
    try:
        return measure()
    except (RuntimeError, TypeError, ValueError, AssertionError) as error:
        print(f"{what}: {str(error).splitlines()[0]}")
        return None


def those_that_take(calls, pair, what):
    """Peers' calls that take the pair; prints a line for each other one."""
    return {peer: call for peer, call in calls.items()
            if attempt(lambda: call(*pair), f"{peer} {what}") is not None}


def compare(report, similis, package, others):
    """similis: through C, in torch's memory; package: the Python package, or None."""
    shown = None
    for operation, kind, shape, dtype in CASES:
        if (shape, dtype) != shown:
            pairs = None
            torch.cuda.empty_cache()
            pairs, shown = images(shape, DTYPES[dtype]), (shape, dtype)
        name = f"{'x'.join(map(str, shape))}/{dtype}"
        base = kind.replace("_and_gradient", "")
        alone = similis.function(operation, kind)
        called = gpu_similis.as_called(package, operation, kind) if package else alone
        calls = {peer: makers[operation, base, len(shape)](kind) for peer, makers in others.items()
                 if (operation, base, len(shape)) in makers}

        def add(case, unit, value, measured=None, floor=None, target=None):
            report.add(case, unit, value, measured, FLOORS.get(case, floor),
                       TARGETS.get(case, target))

        calls = those_that_take(calls, pairs[0], f"{kind} {name}")
        measured = side_by_side({**calls, "similis": called}, pairs)
        add(f"{operation}/{kind}/{name}", "ms", measured.pop("similis"), measured)
        add(f"{operation}/{kind}_in_a_graph/{name}", "ms", in_a_graph(alone, pairs[0]))
        if shape == SMALL:
            add(f"{operation}/{kind}_on_the_host/{name}", "ms", on_the_host(called, pairs[0]))
        if kind == "value_and_gradient" and shape == LARGE:
            measured = {peer: peak_bytes_per_element(call, pairs[0])
                        for peer, call in calls.items()}
            gradient = 2 if dtype == "f16" else 4
            add(f"{operation}/memory/{name}", "B/elem", peak_bytes_per_element(called, pairs[0]),
                measured, gradient, 4.1 if operation == "ssim" and dtype == "f32" else None)


def agreement(similis, others):
    """Prints the distances of peers' values and gradients from ours; they clamp, and accumulate
    otherwise."""
    x, y = images((2, 3, 256, 320), torch.float32)[0]
    for operation in ("ssim", "ms_ssim"):
        value, gradient, _ = similis.function(operation, "value_and_gradient")(x, y)
        for name, makers in others.items():
            if (operation, "value", 4) not in makers:
                continue
            other, other_gradient = makers[operation, "value", 4]("value_and_gradient")(x, y)
            distance = ((gradient - other_gradient).norm() / gradient.norm()).item()
            print(f"{operation}, agreement with {name}: value {abs(value.item() - other.item()):.1e}, "
                  f"gradient {distance:.1e} (relative L2)")

# SPDX-License-Identifier: Apache-2.0
"""Tensors that the library does not take: on Apple's and Intel's GPUs, and all where the package
has no library.

    a kernel of the device's own ─ ssim_kernels.py ─ where there is one
    else torch's own operators ─ decomposition, sampling ─ with one warning that names the function
    else a refusal, in one sentence

Nothing is copied to the CPU.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn, Optional

import torch
import torch.nn.functional as F
from torch import Tensor

from .._library import measures, warp
from .._library.c_abi import HAS_LIBRARY
from .._library.range_warning import level_of_caller
from . import decomposition, graphs, inversion, mutual_information, sampling, ssim_kernels
from .tensors import is_transformed

_MEASURES = ("ssim", "ms_ssim", "lncc", "ncc", "mse", "mae", *mutual_information.OPERATIONS)
_warned: set[tuple[str, str]] = set()


def place(device: torch.device) -> str:
    """The place of a tensor, in words that tell why the library does not compute there."""
    return str(device) if HAS_LIBRARY or device.type != "cpu" else "cpu without the library"


def warn(operation: str, device: torch.device) -> None:
    """Says once for each function and kind of device that there is no kernel."""
    if torch.compiler.is_compiling() or (operation, device.type) in _warned:
        return
    _warned.add((operation, device.type))
    warnings.warn(
        f"{operation}: there is no kernel for this call on {place(device)}; it runs as torch's own "
        "operators, which take more time and memory",
        stacklevel=level_of_caller(),
    )


def refuse(operation: str, name: str, device: torch.device) -> NoReturn:
    copies = "; give copies on the CPU" if HAS_LIBRARY else ""
    raise ValueError(
        f"{operation}: {name} is on {place(device)}, which has neither a kernel for it nor "
        f"operators of torch that keep its bits{copies}"
    )


def _require_window(operation: str, measure: measures.Measure, shape: Sequence[int]) -> None:
    """Raises for a window that the images have no room for."""
    spatial = len(shape) - 2
    sizes = measure.window_size[-spatial:]
    for axis, extent, size in zip(("depth", "height", "width")[-spatial:], shape[2:], sizes):
        if measure.padding == "valid" and extent < size:
            raise ValueError(
                f"{operation}: {axis} is {extent}; with padding valid it must be at least "
                f"window_size, {size}"
            )
        if measure.padding == "reflect" and extent <= size // 2:
            raise ValueError(
                f"{operation}: {axis} is {extent}; with padding reflect it must be more than half "
                f"the window, {size // 2}"
            )


def _require_levels(measure: measures.Measure, shape: Sequence[int]) -> None:
    """Raises unless the coarsest level of MS-SSIM has room for a window."""
    rounds_up = int(measure.downsample != "floor")
    coarsest = list(shape[2:])
    for _ in measure.weights[1:]:
        coarsest = [(extent + rounds_up) // 2 for extent in coarsest]
    if min(coarsest) == 0:
        raise ValueError(
            f"ms_ssim: x has shape {list(shape)}, which leaves nothing after "
            f"{len(measure.weights) - 1} halvings; give fewer weights"
        )
    try:
        _require_window("ms_ssim", measure, (1, 1, *coarsest))
    except ValueError as error:
        words = str(error).replace("ms_ssim: ", "ms_ssim: at the coarsest level ", 1)
        raise ValueError(words) from None


def _require_mask(operation: str, name: str, mask: Optional[Tensor], x: Tensor) -> None:
    if mask is None:
        return
    fits = mask.dim() <= x.dim() and all(
        own in (1, of_x) if axis < 2 else own == of_x
        for axis, (own, of_x) in enumerate(
            zip([1] * (x.dim() - mask.dim()) + list(mask.shape), x.shape)
        )
    )
    if not fits:
        raise ValueError(
            f"{operation}: {name} has shape {list(mask.shape)}; it must be that of x, "
            f"{list(x.shape)}, with N and C left out or 1 where they are the same for all"
        )


def _require_images(
    operation: str,
    measure: measures.Measure,
    x: Tensor,
    mask: Optional[Tensor],
    valid_mask: Optional[Tensor],
) -> None:
    """Raises for images and masks that the library would refuse."""
    has_window = "window_size" in measure.values
    least, most = (4, 5) if has_window else (3, 8)
    if measure.operation != measures.OF_HISTOGRAM and not least <= x.dim() <= most:
        kinds = "[N, C, H, W] or [N, C, D, H, W]" if has_window else "3 to 8 axes, [N, C, ...]"
        raise ValueError(f"{operation}: x has shape {list(x.shape)}; it must be {kinds}")
    _require_mask(operation, "mask", mask, x)
    _require_mask(operation, "valid_mask", valid_mask, x)
    if measure.operation == "ms_ssim":
        _require_levels(measure, x.shape)
    elif has_window:
        _require_window(operation, measure, x.shape)
        sizes = measure.window_size[2 - x.dim() :]
        if math.prod(sizes) == 1 and (
            measure.operation == "lncc" or measure.values.get("sample_covariance")
        ):
            raise ValueError(
                f"{operation}: window_size is 1; it must be above 1 along at least one axis, as one "
                "pixel has no variance"
            )
    is_map = measure.values.get("reduction") == "none"
    if measure.values.get("l1_weight") and is_map and measure.padding == "valid":
        raise ValueError(
            "l1_ssim: reduction is none and padding is valid; |x - y| has no map of SSIM's size "
            "then, take another padding"
        )


def has_kernel(operation: str, text: str, x: Tensor, has_mask: bool) -> bool:
    """True if one kernel computes the measure, as an operator; refuses what the library would.

    MS-SSIM is not such a measure: each of its levels is a kernel's, and torch halves the images.
    """
    measure = measures.parse(text)
    if has_mask or measure.operation != "ssim" or not ssim_kernels.takes(measure, x):
        return False
    _require_images(operation, measures.parse(text), x, None, None)
    return True


def _decomposed(
    x: Tensor, y: Tensor, mask: Optional[Tensor], valid_mask: Optional[Tensor], text: str
) -> Tensor:
    return decomposition.evaluate(x, y, mask, valid_mask, measures.parse(text))


def evaluate(
    operation: str,
    text: str,
    x: Tensor,
    y: Tensor,
    mask: Optional[Tensor],
    valid_mask: Optional[Tensor],
) -> Tensor:
    """A measure of images that are alike, as the library's own evaluate() computes it."""
    if text.split(" ", 1)[0] not in _MEASURES:
        refuse(operation, "x", x.device)
    if not torch.compiler.is_compiling():
        measure = measures.parse(text)
        _require_images(operation, measure, x, mask, valid_mask)
        if mask is None and not is_transformed() and ssim_kernels.takes(measure, x):  # MS-SSIM
            mean_of = ssim_kernels.mean_of_level
            return decomposition.evaluate(x, y, None, None, measure, True, mean_of)
    warn(operation, x.device)
    return _decomposed(x, y, mask, valid_mask, text)


def _prepare(call: str, names: Sequence[str], operands: Sequence[Optional[Tensor]]) -> str:
    """Refuses operands that the library would, and warns; returns the call."""
    operand, affine, field, grid_affine = operands
    assert operand is not None
    if not torch.compiler.is_compiling():
        sampling.require_shapes(warp.parse(call), names, operand, affine, field, grid_affine)
    warn(call.split(" ", 1)[0], operand.device)
    return call


def transform(
    call: str, names: Sequence[str], operands: Sequence[Optional[Tensor]]
) -> Tensor:
    """sample, compose or affine_grid."""
    return _transformed(_prepare(call, names, operands), *operands)


def labels(
    call: str, names: Sequence[str], operands: Sequence[Optional[Tensor]]
) -> tuple[Tensor, Tensor]:
    return _labelled(_prepare(call, names, operands), *operands)


def _transformed(call: str, *operands: Any) -> Tensor:
    return sampling.transform(warp.parse(call), *operands)


def _labelled(call: str, *operands: Any) -> tuple[Tensor, Tensor]:
    return sampling.labels(warp.parse(call), *operands)


def smooth(x: Tensor, text: str) -> Tensor:
    """Gaussian smoothing along every spatial axis."""
    warn("smooth", x.device)
    return _smoothed(x, text)


def _smoothed(x: Tensor, text: str) -> Tensor:
    values = measures.parse(text).values
    is_field = values["field"]
    rank = x.dim() - 2
    if rank not in (2, 3) or (is_field and x.shape[-1] != rank):
        kinds = "[N, Y, X, 2] or [N, Z, Y, X, 3]" if is_field else "[N, C, Y, X] or [N, C, Z, Y, X]"
        raise ValueError(f"smooth: x has shape {list(x.shape)}; it must be {kinds}")
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    planes = (x.movedim(-1, 1) if is_field else x).to(wide)
    for axis, sigma in enumerate(values["sigma"][-rank:], start=2):
        radius = int(values["truncate"] * sigma + 0.5)
        if radius > 0:
            planes = _smoothed_along(planes, axis, sigma, radius, values["padding"])
    return (planes.movedim(1, -1) if is_field else planes).to(x.dtype)


def _smoothed_along(planes: Tensor, axis: int, sigma: float, radius: int, padding: str) -> Tensor:
    taps = [math.exp(-((i - radius) ** 2) / (2 * sigma**2)) for i in range(2 * radius + 1)]
    total, count = math.fsum(taps), planes.shape[axis]
    along = planes.movedim(axis, -1)
    flat = along.reshape(-1, 1, count)
    mode = "replicate" if padding == "replicate" else "constant"
    weights = torch.tensor([tap / total for tap in taps], dtype=planes.dtype, device=planes.device)
    result = F.conv1d(F.pad(flat, (radius, radius), mode=mode), weights[None, None])
    return result.reshape(along.shape).movedim(-1, axis)


def invert(u: Tensor, iterations: int, call: warp.Call) -> tuple[Tensor, Tensor]:
    _refuse_rows(call, u.device)
    warn("invert", u.device)
    values = call.values
    return inversion.inverse(u, iterations, values["align_corners"], values["tolerance"])


def _refuse_rows(call: warp.Call, device: torch.device) -> None:
    """Parts of a field are what several processes share, which is done on the CPU."""
    if call.out_shape:
        raise ValueError(
            f"{call.operation}: rows is given and u is on {place(device)}; parts of a field are "
            "taken on the CPU"
        )


# Graphs of torch.compile get the operators of these, not their reading of text.
graphs.allow_in_graph(_decomposed, _transformed, _labelled, _smoothed)

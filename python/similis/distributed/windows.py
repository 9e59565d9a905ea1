# SPDX-License-Identifier: Apache-2.0
"""SSIM and LNCC of slabs: rows around own ones come from their owners, and the windows that are
centred on own rows are added up, or make a map.

Windows that end at a slab's border see the volume's pixels; padding acts at the volume's ends,
where the rows end too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Callable, Optional

import torch
from torch import Tensor

from .._functions.correlation import lncc, lncc_loss
from .._functions.ssim import ssim, ssim_loss
from .._library import measures, values
from .._torch.binding import run_measure
from .._torch.measure_operators import empty_value
from .agreement import Agreement
from .middles import is_read, middle_of
from .operands import as_five, require_images, require_mask, taken_images
from .rows import halos, refuse_second_derivative, rows_of
from .slabs import Slabs
from .sums import (
    pixel_error_sums,
    reduced,
    require_reduction,
    result_dtype,
    weighted_sums,
)
from .window_sums import Plan, window_sums


def _radius(window_size: Any, spatial: int) -> int:
    """The window's radius along the first spatial axis."""
    listed = window_size if isinstance(window_size, (tuple, list)) else [window_size] * spatial
    if len(listed) != spatial or not isinstance(listed[0], int) or listed[0] % 2 == 0:
        raise ValueError(
            f"window_size is {window_size!r}; it must be odd, one number or one an axis"
        )
    return listed[0] // 2


# The text of each function: an operation, and what the function adds to its options.
_FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "ssim": ("ssim", {"form": "similarity"}),
    "ssim_loss": ("ssim", {"form": "loss"}),
    "lncc": ("lncc", {"weight": 1.0}),
    "lncc_loss": ("lncc", {"weight": -1.0}),
}
_tried: set[str] = set()  # calls that the plain functions take
_MOST_TRIED = 1024


class Centres:
    """The windows whose centres are own rows of images of this rank, and their weights."""

    def __init__(
        self,
        slabs: Slabs,
        rank: int,
        options: dict[str, Any],
        mask: Optional[Tensor] = None,
        valid_mask: Optional[Tensor] = None,
    ) -> None:
        self.slabs, self.options = slabs, options
        self.mask, self.valid_mask = mask, valid_mask
        self.padding = options["padding"]
        self._rank = rank
        self.settle: Callable[[], None] = lambda: None
        self.radius = _radius(options["window_size"], rank - 2)
        if self.padding == "valid" and slabs.extent <= 2 * self.radius:
            raise ValueError(
                f"the first spatial axis has {slabs.extent} rows; with padding valid it must "
                f"have {2 * self.radius + 1} at least"
            )
        self.fetched = halos(slabs, self.radius, self.radius)

    def try_on(
        self,
        function: Callable[..., Any],
        shape: Sequence[int],
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        """Refuses here, before pixels move, what the plain function refuses of these options."""
        rows = min(self.slabs.extent, 4 * self.radius + 2)
        plane = [min(each, 64) for each in shape[3:]]
        tried = repr((function.__name__, rows, plane, dtype, device, sorted(self.options.items())))
        if tried in _tried:
            return
        small = torch.zeros([1, 1, rows, *plane], dtype=dtype, device=device)
        function(small, small, **self.options)
        if len(_tried) >= _MOST_TRIED:
            _tried.clear()
        _tried.add(tried)

    def first_centre(self) -> int:
        """The whole's row that the map of a whole image begins with."""
        return self.radius if self.padding == "valid" else 0

    def own_map(self, function: Callable[..., Any], x: Tensor, y: Tensor) -> Tensor:
        """The rows of the map whose centres are own rows; not multiplied by a mask."""
        self.settle()
        slabs, first = self.slabs, self.fetched[self.slabs.rank][0]
        middle = middle_of(x, y, self.valid_mask, slabs) if self._reads_middle(function, x) else None
        near = [rows_of(each, slabs, self.fetched, 2, wide=True) for each in (x, y)]
        valid = self._fetched_mask(self.valid_mask)
        start, stop = self.own_centres()
        if start >= stop:
            empty = near[0].sum() + near[1].sum() if near[0].is_floating_point() else near[0].sum()
            shape = [*x.shape[:2], 0, *self.plane(x)]
            return (empty * 0).to(result_dtype(x)).expand(shape)
        rows = self._map(function, near[0], near[1], valid, middle)
        begin = start - first - self.first_centre()
        return rows.narrow(2, begin, stop - start)

    def _reads_middle(self, function: Callable[..., Any], x: Tensor) -> bool:
        return function in (ssim, ssim_loss) and is_read("ssim ", x)

    def _map(
        self,
        function: Callable[..., Any],
        x: Tensor,
        y: Tensor,
        valid_mask: Optional[Tensor],
        middle: Optional[Tensor],
    ) -> Tensor:
        if middle is None:
            whole: Tensor = function(
                x, y, valid_mask=valid_mask, reduction="none", **self.options
            )
            return whole
        text = self._text(function.__name__, reduction="none")
        apply: Any = _MapAboutMiddle.apply
        rows: Tensor = apply(x.contiguous(), y.contiguous(), valid_mask, middle, text)
        return rows

    def _text(self, operation: str, **more: Any) -> str:
        of, form = _FORMS[operation]
        options = dict(self.options)
        if options.get("data_range") is not None:
            options["data_range"] = values.plain_range(operation, options["data_range"])
        return measures.text(of, self._rank - 2, operation, **options, **form, **more)

    def sums(
        self, operation: str, x: Tensor, y: Tensor, reduction: str
    ) -> tuple[Tensor, Tensor]:
        """The whole's Σ weight·value and Σ weight, [N,C], for a reduction."""
        text = self._text(operation, sums=True)
        of_halves = x.dtype in (torch.float16, torch.bfloat16)
        plan = Plan(self.slabs, self.radius, self.first_centre(), self.settle, of_halves)
        expected = 1.0
        if self.mask is None and self.valid_mask is None:
            channels = {"mean": x.shape[0] * x.shape[1], "per_image": x.shape[1]}
            expected /= self.rows_of_whole(self.plane(x)) * channels.get(reduction, 1)
        return window_sums(x, y, self.mask, self.valid_mask, plan, text, expected)

    def _fetched_mask(self, mask: Optional[Tensor]) -> Optional[Tensor]:
        if mask is None:
            return None
        held = mask.to(torch.uint8) if mask.dtype == torch.bool else mask
        return rows_of(held, self.slabs, self.fetched, held.dim() + 2 - self._rank)

    def own_centres(self) -> tuple[int, int]:
        cut = self.first_centre()
        return (
            max(self.slabs.start, cut),
            min(self.slabs.stop, self.slabs.extent - cut),
        )

    def plane(self, x: Tensor) -> list[int]:
        """The other spatial extents of the map."""
        if self.padding != "valid":
            return list(x.shape[3:])
        size = self.options["window_size"]
        sizes = [size] * (x.dim() - 2) if isinstance(size, int) else list(size)
        return [extent - each + 1 for extent, each in zip(x.shape[3:], sizes[1:])]

    def weights(self, x: Tensor, plane: list[int], cut: bool) -> Optional[Tensor]:
        """The weights of own centres (cut: with padding valid not all rows are), or None."""
        given = self.mask if self.mask is not None else self.valid_mask
        if given is None:
            return None
        whole = as_five(given, x).double()
        if self.mask is not None and self.valid_mask is not None:
            whole = whole * (as_five(self.valid_mask, x) > 0)
        if not cut:
            return whole
        start, stop = self.own_centres()
        begin = min(start - self.slabs.start, whole.shape[2])
        whole = whole.narrow(2, begin, max(stop - start, 0))
        for axis, extent in enumerate(plane, 3):
            if whole.shape[axis] != extent:
                whole = whole.narrow(axis, (whole.shape[axis] - extent) // 2, extent)
        return whole

    def rows_of_whole(self, plane: list[int]) -> float:
        return float((self.slabs.extent - 2 * self.first_centre()) * math.prod(plane))


class _MapAboutMiddle(torch.autograd.Function):
    """SSIM's map of a volume's rows on a GPU, with the rounding errors of the whole volume's."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, y: Tensor, valid_mask: Optional[Tensor], middle: Tensor, text: str
    ) -> Tensor:
        ctx.text = text
        ctx.save_for_backward(x, y, valid_mask, middle)
        result = empty_value(x, measures.parse(text))
        run_measure(
            measures.parse(text), x, y, None, valid_mask, None, result, None, None, middle
        )
        return result

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
        refuse_second_derivative(ctx.text.split(" ", 1)[0])
        x, y, valid_mask, middle = ctx.saved_tensors
        by = [
            torch.empty_like(each) if wanted else None
            for each, wanted in zip((x, y), ctx.needs_input_grad)
        ]
        run_measure(
            measures.parse(ctx.text), x, y, None, valid_mask, upstream, None, *by, middle
        )
        return *by, None, None, None


class _Call(Centres):
    """A call of a windowed measure, agreed on by all ranks."""

    def __init__(
        self,
        operation: str,
        x: Tensor,
        y: Tensor,
        slabs: Slabs,
        options: dict[str, Any],
        window_size: int,
        padding: str,
        weight: float = 0,
    ) -> None:
        options = {"window_size": window_size, "padding": padding, **options}
        padding = options["padding"]
        self.reduction = options.pop("reduction", "mean")
        masks = {name: options.pop(name, None) for name in ("mask", "valid_mask")}
        agreed = {"reduction": self.reduction, "weight": weight, **options}
        with Agreement(operation, slabs, later=True, **agreed) as agreement:
            if not isinstance(weight, (int, float)) or not 0 <= weight <= 1:
                raise ValueError(f"weight is {weight!r}; it must be a number from 0 to 1")
            require_images(agreement, x, y, slabs)
            for name, mask in masks.items():
                require_mask(agreement, name, mask, x, slabs)
            for name in ("rows", "sums"):
                if name in options:
                    raise ValueError(f"there is no option {name} on slabs")
            require_reduction(self.reduction, ("none",))
            if operation == "l1_ssim" and self.reduction == "none" and padding == "valid":
                raise ValueError("reduction is none and padding valid; give another padding")
            super().__init__(slabs, x.dim(), options, **masks)
            function = {"ssim": ssim, "ssim_loss": ssim, "l1_ssim": ssim}.get(operation, lncc)
            of = function.__name__
            self.x, self.y = taken_images(operation, x, y, options, has_range=of == "ssim")
            self.try_on(function, x.shape, self.x.dtype, x.device)
        self.settle = agreement.settle


def require_call(
    agreement: Agreement,
    x: Any,
    y: Any,
    slabs: Slabs,
    mask: Any,
    options: dict[str, Any],
    defaults: dict[str, Any],
) -> dict[str, Any]:
    """The options of a call with a mask, completed by the plain function's defaults."""
    require_images(agreement, x, y, slabs)
    require_mask(agreement, "mask", mask, x, slabs)
    for name in options:
        if name not in defaults or name == "channel_axis":
            raise ValueError(f"there is no option {name} on slabs")
    completed = {**defaults, **options}
    for name in ("mask", "channel_axis"):
        completed.pop(name, None)
    return completed


def _measure(
    operation: str,
    x: Tensor,
    y: Tensor,
    slabs: Slabs,
    options: dict[str, Any],
    window_size: int,
    padding: str,
) -> Tensor:
    call = _Call(operation, x, y, slabs, options, window_size, padding)
    if call.reduction == "none":
        return _map(operation, call, call.x, call.y)
    sums = call.sums(operation, call.x, call.y, call.reduction)
    of_nothing = 0.0 if operation.endswith("loss") else math.nan
    return reduced(*sums, call.reduction, of_nothing).to(result_dtype(call.x))


def _map(operation: str, call: _Call, x: Tensor, y: Tensor) -> Tensor:
    rows = call.own_map(_FUNCTIONS[operation], x, y)
    if call.mask is None:
        return rows
    weights = call.weights(x, call.plane(x), cut=True)
    assert weights is not None
    return rows * weights.to(rows.dtype)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ssim": ssim,
    "ssim_loss": ssim_loss,
    "lncc": lncc,
    "lncc_loss": lncc_loss,
}


def ssim_of_slabs(x: Tensor, y: Tensor, slabs: Slabs, **options: Any) -> Tensor:
    return _measure("ssim", x, y, slabs, options, 11, "valid")


def ssim_loss_of_slabs(x: Tensor, y: Tensor, slabs: Slabs, **options: Any) -> Tensor:
    return _measure("ssim_loss", x, y, slabs, options, 11, "valid")


def lncc_of_slabs(x: Tensor, y: Tensor, slabs: Slabs, **options: Any) -> Tensor:
    return _measure("lncc", x, y, slabs, options, 3, "same")


def lncc_loss_of_slabs(x: Tensor, y: Tensor, slabs: Slabs, **options: Any) -> Tensor:
    return _measure("lncc_loss", x, y, slabs, options, 3, "same")


def l1_ssim_of_slabs(
    x: Tensor, y: Tensor, slabs: Slabs, *, weight: float = 0.2, **options: Any
) -> Tensor:
    """Two means, of which SSIM's runs over centres and that of |x - y| over all pixels."""
    call = _Call("l1_ssim", x, y, slabs, options, 11, "valid", weight=weight)
    x, y = call.x, call.y
    if x.dtype in (torch.float16, torch.bfloat16):
        x, y = x.float(), y.float()  # the sum of both gradients alone is rounded
    if call.reduction == "none":
        rows = _map("ssim_loss", call, x, y)
        return (1 - weight) * _errors(call, x, y) + weight * rows
    given = call.mask
    if is_read("ssim ", x) and given is None and call.valid_mask is None:
        # A GPU takes a volume's SSIM with an L1 term by the kernels of masks: so do its parts.
        call.mask = x.new_ones(()).expand(x.shape[2:])
    of_ssim = reduced(*call.sums("ssim_loss", x, y, call.reduction), call.reduction, 0.0)
    call.mask = given
    of_errors = reduced(*_sums_of_errors(call, x, y), call.reduction, 0.0)
    return ((1 - weight) * of_errors + weight * of_ssim).to(result_dtype(x))


def _errors(call: _Call, x: Tensor, y: Tensor) -> Tensor:
    """|x - y| of own pixels; 0 where there is none."""
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    errors = (x.to(wide) - y.to(wide)).abs()
    if call.valid_mask is not None:  # other pixels may hold anything
        errors = torch.where(as_five(call.valid_mask, x) > 0, errors, torch.zeros_like(errors))
    return errors


def _sums_of_errors(call: _Call, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    if call.valid_mask is None:
        return pixel_error_sums("mae", x, y, call.mask, call.slabs)
    weights = call.weights(x, call.plane(x), cut=False)
    assert weights is not None
    return weighted_sums(_errors(call, x, y), weights, call.slabs)

# SPDX-License-Identifier: Apache-2.0
"""Calls of the public functions before they reach their operation: layouts of images, and refusals
of options that a function does not have."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Optional, TypeVar

from torch import Tensor

from .._functions.layouts import Layout, channel_index

Function = TypeVar("Function", bound=Callable[..., Any])
_MASKS = ("mask", "valid_mask")


def refuse_unknown(
    function: Callable[..., Any], names: Optional[frozenset[str]], options: dict[str, Any]
) -> None:
    """Refuses an option that the function does not have. names: those of named_of()."""
    if names is None or names.issuperset(options):
        return
    unknown = next(each for each in options if each not in names)
    raise ValueError(f"{function.__name__}: there is no option {unknown} on slabs")


def named_of(function: Callable[..., Any]) -> Optional[frozenset[str]]:
    """The names of a function's parameters; None if it takes any."""
    parameters = inspect.signature(function).parameters
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return None
    return frozenset(parameters)


def rows_axis(arguments: dict[str, Any]) -> int:
    """The axis of the rows of a measure's images: the first that counts neither images nor
    channels."""
    of_rest = arguments.get("options", {})
    axis, x = arguments.get("channel_axis", of_rest.get("channel_axis")), arguments.get("x")
    if not isinstance(axis, int) or not isinstance(x, Tensor):
        return 2
    return 2 if axis % x.dim() == 1 else 1


def layout_of(operation: str, x: Any, channel_axis: Any) -> Optional[Layout]:
    """The axes of images whose channels do not come second; None if they do."""
    if channel_axis is None:
        return None
    if not isinstance(x, Tensor) or x.dim() not in (4, 5):
        raise ValueError(
            f"{operation}: channel_axis is given; x must be a torch.Tensor of 4 or 5 axes"
        )
    channel_index(operation, "x", x.dim(), channel_axis, 1)
    return Layout(operation, "x", tuple(x.shape), channel_axis)


def channels_second(layout: Optional[Layout], array: Any) -> Any:
    """An array with as many axes as the images as [N,C,…], others as they are."""
    is_as_large = layout is not None and isinstance(array, Tensor) and array.dim() == layout.rank
    return layout.arranged(array) if layout is not None and is_as_large else array


def takes_channel_axis(measure: Function) -> Function:
    """A measure of (x, y, slabs, **options) of images [N,C,…] as one of images whose channels are
    anywhere."""

    @functools.wraps(measure)
    def call(
        x: Any, y: Any, slabs: Any, *, channel_axis: Optional[int] = None, **options: Any
    ) -> Any:
        layout = layout_of(measure.__name__, x, channel_axis)
        if layout is None:
            return measure(x, y, slabs, **options)
        masks = {each: channels_second(layout, options[each]) for each in _MASKS if each in options}
        x, y = channels_second(layout, x), channels_second(layout, y)
        return layout.restored(measure(x, y, slabs, **{**options, **masks}))

    return call  # type: ignore[return-value]

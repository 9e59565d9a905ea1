# SPDX-License-Identifier: Apache-2.0
"""The choice of the package that computes for an array."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any, Callable, Optional

from .._arrays import measures as arrays_measures
from .._arrays.kinds import imported, is_of, kind_of
from .._library import range_warning, warp
from .._library.refusals import type_name
from . import layouts

Coordinates = Optional[Sequence[float]]


def _is_compiling_with_torch() -> bool:
    torch = imported("torch")
    return torch is not None and torch.compiler.is_compiling()


# True inside torch.compile, which ignores caches with a warning. torch's own function once
# for_torch() has been called.
_is_compiling: Callable[[], bool] = _is_compiling_with_torch
_is_deterministic: Callable[[], bool] = bool


_ARRAYS = ("mask", "valid_mask", "histogram", "limits")  # that belong to a call, as images do


def takes_array(name: str) -> bool:
    """True if the argument of this name is an array and not an option."""
    return name in _ARRAYS


def options_of(function: Callable[..., Any]) -> list[str]:
    """The names of the function's options, in the order of its signature."""
    names = function.__kwdefaults__ or ()
    return [name for name in names if not takes_array(name) and name != "channel_axis"]


def _are_same_by_python(options: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    return all(map(operator.is_, options, others))


_are_same: Callable[..., bool] = _are_same_by_python  # a builtin once for_torch() has been called


def described_once(describe: Callable[..., str]) -> Callable[..., str]:
    """Remembers the text of options, so that the same options are checked once.

    The last options are remembered apart: a loop gives the same objects again, and to compare them
    one by one takes a third of the time that a search for equal ones takes. text.remembered takes
    options as one tuple, and asks for no compiler.
    """
    last: Optional[tuple[tuple[Any, ...], str]] = None

    @functools.lru_cache(maxsize=256, typed=True)
    def cached(kinds: Any, *options: Any) -> str:
        return describe(*options)

    def remembered(options: tuple[Any, ...]) -> str:
        nonlocal last
        known = last
        if known is not None and _are_same(options, known[0]):
            return known[1]
        # The cache takes equal tuples for one: (3.0, 3.0) would find the text of (3, 3).
        kinds = None
        if tuple in map(type, options):
            kinds = tuple([tuple(map(type, each)) for each in options if type(each) is tuple])
        try:
            described = cached(kinds, *options)
        except TypeError:  # an option is a list, or it is refused, as it is again below
            return describe(*options)
        last = (options, described)
        return described

    def text(*options: Any) -> str:
        return describe(*options) if _is_compiling() else remembered(options)

    text.remembered = remembered  # type: ignore[attr-defined]
    return text


def text_of(operation: str, *names: str) -> Callable[..., str]:
    """warp.text() of the values of these options; the same values are checked once."""
    return described_once(lambda *given: warp.text(operation, **dict(zip(names, given))))


_torch_package: Any = None


def _not_plainly(*_: Any) -> None:
    return None


# The fast paths of _torch/plain.py, once for_torch() has been called: a result, or None.
evaluate_plainly: Callable[..., Any] = _not_plainly
transform_plainly: Callable[..., Any] = _not_plainly
_jax_measures: Any = None
_jax_transforms: Any = None
_jax_smooth: Any = None


def for_torch() -> Any:
    """The package _torch, imported when somebody who has imported torch needs it."""
    global _torch_package, _is_compiling, _is_deterministic, _are_same
    global evaluate_plainly, transform_plainly
    if _torch_package is None:
        from .. import _torch

        _torch_package = _torch
        torch = imported("torch")
        _is_compiling = torch.compiler.is_compiling
        _is_deterministic = torch.are_deterministic_algorithms_enabled
        _are_same = _torch.are_same or _are_same
        if _torch.TELLS_KEYS:
            evaluate_plainly = _torch.evaluate_plainly
            transform_plainly = _torch.transform_plainly
    return _torch_package


def for_jax() -> Any:
    """The module for JAX's measures, imported when somebody who has imported jax needs it."""
    global _jax_measures
    if _jax_measures is None:
        from .._arrays import jax_measures

        _jax_measures = jax_measures
    return _jax_measures


def for_jax_transforms() -> Any:
    """The module for JAX's transforms, imported likewise."""
    global _jax_transforms
    if _jax_transforms is None:
        from .._arrays import jax_transforms

        _jax_transforms = jax_transforms
    return _jax_transforms


def for_jax_smooth() -> Any:
    """The module that smooths JAX's arrays, imported likewise."""
    global _jax_smooth
    if _jax_smooth is None:
        from .._arrays import jax_smooth

        _jax_smooth = jax_smooth
    return _jax_smooth


def require_tensor(operation: str, name: str, value: Any) -> None:
    if not is_of("torch", "Tensor", value):
        raise TypeError(
            f"{operation}: {name} is of type {type_name(value)}; it must be a torch.Tensor"
        )


def refuse_jax(operation: str, name: str, array: Any) -> None:
    if not is_of("torch", "Tensor", array) and is_of("jax", "Array", array):
        raise TypeError(
            f"{operation}: {name} is a jax.Array, and its bits need float64, which JAX does not have by "
            f"default; give numpy.asarray({name})"
        )


def without_gradient(array: Any) -> Any:
    if is_of("torch", "Tensor", array):
        return array.detach()
    return imported("jax").lax.stop_gradient(array) if is_of("jax", "Array", array) else array


class WithGradient:
    """An image x with the gradients that value_and_gradient() wants; measures take it as x and
    return a list."""

    def __init__(self, x: Any, of_x: bool, of_y: bool) -> None:
        self.image, self.of_x, self.of_y = x, of_x, of_y
        self.ndim = getattr(x, "ndim", 4)


def spatial(x: Any) -> int:
    """The number of axes of a window; 2 also for an x that will be refused."""
    return 3 if getattr(x, "ndim", 4) == 5 else 2


def rank_of(operand: Any) -> int:
    """The number of spatial axes, 2 or 3; 0 for an operand that will be refused."""
    if is_of("torch", "Tensor", operand):
        rank = 0 if operand.is_nested else operand.dim() - 2
    else:
        rank = getattr(operand, "ndim", 0) - 2
    return rank if rank in (2, 3) else 0


def check_coordinates(operation: str, rank: int, low: Coordinates, high: Coordinates) -> None:
    for name, given in (("min_coords", low), ("max_coords", high)):
        if given is not None and rank != 0 and len(given) != rank:
            raise ValueError(
                f"{operation}: {name} has {len(given)} numbers; it takes one for each of the "
                f"{rank} axes"
            )


def is_usual_array(x: Any) -> bool:
    """True for images that the library takes as they are, and for what it refuses."""
    rank = getattr(x, "ndim", 0)
    if rank < 4:
        return rank < 2
    return layouts.is_usual_dtype(x.dtype) and (rank > 4 or x.shape[3] not in (3, 4))


def are_algorithms_deterministic() -> bool:
    """True if torch is used and torch.use_deterministic_algorithms(True) holds."""
    return _torch_package is not None and not _is_compiling() and bool(_is_deterministic())


def look_at_range(operation: str, described: Any, **images: Any) -> None:
    """Warns of floats far outside data_range, in images on the CPU whose values are known."""
    array = next(iter(images.values()))
    if is_of("torch", "Tensor", array):
        if _is_compiling() or not array.is_cpu or not for_torch().is_plain(*images.values()):
            return
        elements, largest = array.numel(), for_torch().largest
    else:
        numpy = imported("numpy")
        if is_of("cupy", "ndarray", array) or (
            imported("jax") and isinstance(array, imported("jax").core.Tracer)
        ):
            return
        elements, largest = array.size, lambda each: float(numpy.asarray(each).max())
    if range_warning.wants_look(operation, elements, layouts.dtype_name(array)):
        range_warning.look(operation, described, largest, **images)


def evaluate_images(
    operation: str,
    describe: Callable[..., str],
    options: tuple[Any, ...],
    x: Any,
    y: Any,
    mask: Any = None,
    valid_mask: Any = None,
    channel_axis: Optional[int] = None,
) -> Any:
    """evaluate() of images in any layout and integer type that layouts.py knows. describe: a function
    of described_once(), which makes the text of the options.

    None for torch's tensors WithGradient whose gradients are for autograd to compute.
    """
    if x.__class__ is WithGradient and is_of("torch", "Tensor", x.image):
        return _with_gradients(operation, describe(*options), x, y, (mask, valid_mask), channel_axis)
    if channel_axis is None:
        value = evaluate_plainly(operation, describe, options, x, y, mask, valid_mask)
        if value is not None:
            return value
    text = describe(*options)
    if is_of("torch", "Tensor", x):
        if channel_axis is None and (_is_compiling() or x.dim() not in (2, 3)):
            value = for_torch().evaluate(operation, text, x, y, mask, valid_mask, usual_only=True)
            if value is not None:
                return value
        image = x
    else:
        image = x.image if isinstance(x, WithGradient) else x
        if channel_axis is None and is_usual_array(image):
            value = evaluate(operation, text, x, y, mask, valid_mask)
            if image.size >= range_warning.LOOK_FROM:
                look_at_range(operation, text, x=image, y=y)
            return value

    def run(value_range: Optional[float], arranged_x: Any, arranged_y: Any, *masks: Any) -> Any:
        described = text
        if value_range is not None:
            described = text.replace(" data_range=0.0", f" data_range={value_range}")
        if image is not x:
            arranged_x = WithGradient(arranged_x, x.of_x, x.of_y)
        elif value_range is None:
            value = evaluate_plainly(operation, describe, options, arranged_x, arranged_y, *masks)
            if value is not None:
                return value
        value = evaluate(operation, described, arranged_x, arranged_y, *masks)
        look_at_range(operation, described, x=image, y=y)
        return value

    needs_range = " data_range=0.0 " in text + " "
    return layouts.evaluate(
        run, operation, (image, y), (mask, valid_mask), channel_axis, needs_range
    )


def _with_gradients(
    operation: str,
    text: str,
    x: WithGradient,
    y: Any,
    masks: tuple[Any, Any],
    channel_axis: Optional[int],
) -> Optional[list[Any]]:
    """The value and gradients of torch's tensors, or None if they are for autograd to compute."""
    gradients_of = for_torch().with_gradients
    if channel_axis is None and (_is_compiling() or x.image.dim() not in (2, 3)):
        given: Optional[list[Any]] = gradients_of(operation, text, x.image, y, *masks, x.of_x, x.of_y)
        return given

    def run(value_range: Optional[float], *arranged: Any) -> Any:
        return gradients_of(operation, text, *arranged, x.of_x, x.of_y) or []

    results: list[Any] = layouts.evaluate(run, operation, (x.image, y), masks, channel_axis, False)
    return results or None


def evaluate(
    operation: str,
    text: str,
    x: Any,
    y: Any,
    mask: Any = None,
    valid_mask: Any = None,
    names: tuple[str, str] = ("x", "y"),
) -> Any:
    """The value of a measure; names: the function's first two arguments, for error messages."""
    if is_of("torch", "Tensor", x):
        return for_torch().evaluate(operation, text, x, y, mask, valid_mask, names=names)
    if isinstance(x, WithGradient):
        kind = kind_of(operation, x.image)
        return arrays_measures.evaluate(
            operation, text, kind, x.image, y, mask, valid_mask, x.of_x, x.of_y
        )
    if is_of("jax", "Array", x) or is_of("jax", "Array", y):
        return for_jax().evaluate(operation, text, x, y, mask, valid_mask, names)
    kind = kind_of(operation, x, names[0])
    return arrays_measures.evaluate(operation, text, kind, x, y, mask, valid_mask, names=names)[0]


if imported("torch"):  # torch.compile finds the operators while it traces
    for_torch()

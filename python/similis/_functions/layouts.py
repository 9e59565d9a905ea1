# SPDX-License-Identifier: Apache-2.0
"""Images in the layouts and integer types that people have, as the library takes them.

[H,W] and [C,H,W] become [1,C,H,W], and with channel_axis the channels come second: views, which
copy nothing. Integers that the library does not take become floats that hold them exactly, and bool
becomes u8. Results get the layout of the images again.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any, Callable, Optional

from .._arrays.kinds import imported, is_of
from .._library.refusals import (
    require_extents,
    require_same_dtype,
    require_same_shape,
    type_name,
)

# Types that every operation takes in another: int32 needs f64 to be exact.
_WIDER = {"bool": "uint8", "int16": "float32", "int32": "float64"}
# Those that no operation needs converted; kernels of some take no u16.
USUAL_DTYPES = frozenset(("uint8", "float16", "bfloat16", "float32", "float64"))
_WITHOUT_U16 = ("ssim", "l1_ssim", "ms_ssim", "lncc", "ncc")
_DEFAULT_RANGES = {"bool": 1.0, "uint16": 65535.0}


def dtype_name(array: Any) -> str:
    """ "int16", of torch's and NumPy's alike."""
    return str(getattr(array, "dtype", "")).removeprefix("torch.")


@functools.lru_cache(maxsize=64)
def is_usual_dtype(dtype: Any) -> bool:
    """True for a dtype of NumPy's that every measure takes as it is."""
    return str(dtype) in USUAL_DTYPES


def wider_dtype(operation: str, name: str) -> Optional[str]:
    """The dtype that stands for another in an operation; None if it is taken as it is."""
    if name == "uint16" and operation in _WITHOUT_U16:
        return "float32"
    return _WIDER.get(name)


def looks_channel_last(shape: Sequence[int]) -> bool:
    """True for [N,H,W,C] and [H,W,C] with 3 or 4 channels and sides of 8 pixels or more."""
    return (
        len(shape) in (3, 4) and shape[-1] in (3, 4) and shape[-2] >= 8 and shape[-3] >= 8
    )


def refuse_channel_last(operation: str, name: str, shape: Sequence[int]) -> None:
    """Raises for a picture whose channels seem to come last and that names no channel_axis."""
    if looks_channel_last(shape):
        raise ValueError(
            f"{operation}: {name} has shape {list(shape)}, which looks channel-last; give "
            f"channel_axis=-1, or channel_axis={len(shape) - 3} if it has {shape[-3]} channels"
        )


def _moved(array: Any, source: int, to: int) -> Any:
    """The array with one axis at another place."""
    if is_of("torch", "Tensor", array):
        return array.movedim(source, to)
    axes = [axis for axis in range(array.ndim) if axis != source % array.ndim]
    axes.insert(to % array.ndim, source % array.ndim)
    return array.transpose(axes)


def channel_index(operation: str, name: str, rank: int, channel_axis: Any, first: int) -> int:
    """channel_axis as an index from the front, which is `first` at least."""
    try:
        axis = operator.index(channel_axis)
    except TypeError:
        raise TypeError(
            f"{operation}: channel_axis is of type {type_name(channel_axis)}; it must be an integer"
        ) from None
    index = axis + rank if axis < 0 else axis
    if not first <= index < rank:
        raise ValueError(
            f"{operation}: channel_axis is {axis}; it must be an axis of {name}, which has {rank}"
            + (", other than the first, which counts images" if index == 0 else "")
        )
    return index


class Layout:
    """The axes of an array of images, and the way to [N,C,…] and back."""

    def __init__(self, operation: str, name: str, shape: Sequence[int], channel_axis: Any) -> None:
        self.has_maps = operation != "histogram"  # whose last axes are bins
        self.rank = len(shape)
        self.lacks_channels = self.rank == 2
        self.lacks_images = self.rank < 4
        self.axis: Optional[int] = None
        if channel_axis is None:
            refuse_channel_last(operation, name, shape)
        elif self.rank == 2:
            raise ValueError(
                f"{operation}: {name} has shape {list(shape)}, so channel_axis, {channel_axis}, "
                "has no axis to name; leave it out for one grey picture"
            )
        else:
            first = 0 if self.lacks_images else 1
            self.axis = channel_index(operation, name, self.rank, channel_axis, first)

    def arranged(self, array: Any) -> Any:
        """An array as large as the images, as [N,C,…]."""
        if self.axis is not None:
            array = _moved(array, self.axis, 0 if self.lacks_images else 1)
        if self.lacks_channels and is_of("torch", "Tensor", array):
            return array.view(1, 1, *array.shape)  # one step of autograd, where [None, None] is two
        if self.lacks_channels:
            array = array[None]
        return array[None] if self.lacks_images else array

    def restored(self, result: Any) -> Any:
        """A result with the axes that the images have: [N], [N,C] or as large as the images."""
        is_map = self.has_maps and result.ndim >= 4
        if self.lacks_images and result.ndim > 0:
            result = result[0]
            if self.lacks_channels and result.ndim > 0:
                result = result[0]
        if self.axis is not None and is_map:
            result = _moved(result, 0 if self.lacks_images else 1, self.axis)
        if result.ndim == 0 and is_of("numpy", "generic", result):
            return imported("numpy").float64(result)  # as NumPy's other numbers are
        return result


def _widened(operation: str, array: Any, dtype: str) -> Any:
    if is_of("torch", "Tensor", array):
        from .._torch.devices import has_float64  # torch is there

        if dtype == "float64" and not has_float64(array.device):
            raise TypeError(
                f"{operation}: x is {dtype_name(array)}, which needs float64 to be exact, and "
                f"{array.device} has none; give x.float() if float32 holds all values"
            )
        return array.to(getattr(imported("torch"), dtype))
    if dtype == "float64" and is_of("jax", "Array", array):
        if not imported("jax").config.jax_enable_x64:
            raise TypeError(
                f"{operation}: x is {array.dtype}, which needs float64 to be exact, and JAX has "
                "none by default; give numpy.asarray(x), or x.astype('float32') if it holds all values"
            )
    return array.astype(dtype)


def with_taken_dtypes(
    operation: str, needs_range: bool, x: Any, y: Any
) -> tuple[Optional[float], Any, Any]:
    """The images in a dtype that the library takes, and the range of values of the one they had.

    needs_range: the caller names none.
    """
    given = dtype_name(x)
    dtype = wider_dtype(operation, given)
    if dtype is None or not dtype_name(y):
        return None, x, y
    require_same_dtype(operation, ("x", "y"), given, dtype_name(y))
    if needs_range and given not in _DEFAULT_RANGES:
        raise ValueError(
            f"{operation}: x is {given}, which has no usual range; give data_range, the largest "
            "minus the smallest value that a pixel can take"
        )
    value_range = _DEFAULT_RANGES.get(given) if needs_range else None
    return value_range, _widened(operation, x, dtype), _widened(operation, y, dtype)


def evaluate(
    run: Callable[..., Any],
    operation: str,
    images: tuple[Any, Any],
    masks: tuple[Any, ...],
    channel_axis: Any,
    needs_range: bool,
) -> Any:
    """run(data_range, x, y, *masks) of the images as the library takes them, and its results as the
    images are. x is an array; y and the masks may be anything."""
    x, y = images
    shape = tuple(x.shape)
    if hasattr(y, "shape"):
        require_same_shape(operation, ("x", "y"), shape, tuple(y.shape))
    require_extents(operation, "x", shape)
    layout = Layout(operation, "x", shape, channel_axis)

    def arranged(array: Any) -> Any:
        return layout.arranged(array) if getattr(array, "ndim", None) == len(shape) else array

    value_range, x, y = with_taken_dtypes(operation, needs_range, x, y)
    results = run(value_range, *map(arranged, (x, y, *masks)))
    if isinstance(results, list):  # the value and gradients
        return [layout.restored(each) for each in results]
    return layout.restored(results)


def planes_first(operation: str, array: Any, channel_axis: Any) -> Any:
    """A plane [H,W] or planes [N,H,W]; with channel_axis each channel of one picture is a plane."""
    shape: Sequence[int] = getattr(array, "shape", ())
    if channel_axis is None:
        if len(shape) == 3 and looks_channel_last(shape):
            raise ValueError(
                f"{operation}: x has shape {list(shape)}, which looks channel-last, and it takes "
                "planes; give channel_axis=-1 to score each channel, a plane such as x[..., 0], or "
                f"channel_axis=0 if these are {shape[0]} planes"
            )
        return array
    if len(shape) != 3:
        raise ValueError(
            f"{operation}: x has shape {list(shape)}; with channel_axis it must be one picture of "
            "three axes"
        )
    return _moved(array, channel_index(operation, "x", 3, channel_axis, 0), 0)


def pictures_first(operation: str, name: str, array: Any, channel_axis: Any) -> Any:
    """[C,H,W] or [N,C,H,W] of pictures that may be [H,W] or have their channels elsewhere."""
    shape: Sequence[int] = getattr(array, "shape", ())
    if len(shape) not in (2, 3, 4):
        return array
    layout = Layout(operation, name, shape, channel_axis)
    arranged = layout.arranged(array)
    return arranged[0] if layout.lacks_images else arranged

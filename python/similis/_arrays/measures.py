# SPDX-License-Identifier: Apache-2.0
"""The measures of NumPy's and CuPy's arrays.

ctypes calls the library. It takes longer than the binding for torch, which matters little here: the
images lie on the CPU, or the work is queued on a GPU.
"""

from __future__ import annotations

from typing import Any

from .._library import measures
from .._library.refusals import require_extents, require_same_dtype, require_same_shape
from .kinds import Kind, require_dtype, require_kind

_CONVERTED = ("bool", "int16", "int32")  # of both images, before they come here


def require_alike(operation: str, x: Any, y: Any, names: tuple[str, str] = ("x", "y")) -> None:
    """Raises for what can be refused before the library is called."""
    require_dtype(operation, names[0], x)
    if str(y.dtype) in _CONVERTED:
        require_same_dtype(operation, names, str(x.dtype), str(y.dtype))
    require_dtype(operation, names[1], y)
    require_same_shape(operation, names, x.shape, y.shape)
    require_extents(operation, names[0], x.shape)


def _mask(operation: str, kind: Kind, name: str, mask: Any) -> Any:
    if mask is None:
        return None
    if kind.owns(mask) and str(mask.dtype) == "bool":
        mask = mask.view("uint8")
    require_kind(operation, kind, name, mask)
    require_dtype(operation, name, mask)
    return kind.prepared(mask)


def evaluate(
    operation: str,
    text: str,
    kind: Kind,
    x: Any,
    y: Any,
    mask: Any = None,
    valid_mask: Any = None,
    of_x: bool = False,
    of_y: bool = False,
    upstream: Any = None,
    names: tuple[str, str] = ("x", "y"),
    histogram: Any = None,
    limits: Any = None,
) -> list[Any]:
    """The value, unless there is an upstream gradient, and the gradients that are asked for.

    Without an upstream gradient, gradients are those of the sum over all results.
    """
    require_kind(operation, kind, names[0], x)
    require_kind(operation, kind, names[1], y)
    require_alike(operation, x, y, names)
    measure = measures.parse(text)
    mask = _mask(operation, kind, "mask", mask)
    valid_mask = _mask(operation, kind, "valid_mask", valid_mask)
    dtype = "float64" if measure.in_float64 or str(x.dtype) == "float64" else "float32"
    value = None
    if upstream is None:
        value = kind.empty(measure.result_shape(x.shape), dtype, like=x)
    gradients = [kind.empty(x.shape, "same", like=x) if of else None for of in (of_x, of_y)]
    arrays = [kind.prepared(x), kind.prepared(y), mask, valid_mask, upstream, value, *gradients]
    described = [None if array is None else kind.describe(array) for array in arrays]
    of_whole = {"histogram": histogram, "limits": limits}
    for name, array in of_whole.items():
        if array is not None:
            require_kind(operation, kind, name, array)
            require_dtype(operation, name, array)
            of_whole[name] = kind.describe(array)
    measures.run(measure, described, kind.stream(), **of_whole)
    return [kind.finished(each) for each in (value, *gradients) if each is not None]

# SPDX-License-Identifier: Apache-2.0
"""JAX's arrays on the CPU: the library at once, or pure_callback with a custom_vjp around it.

A callback works under jit, vmap (one call for each element) and grad, needs no compiler at run time
and costs the CPU no copy. Arrays on a GPU are refused: a callback would move them to the host.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Callable, Optional

import jax
import jax.numpy as jnp
import numpy

from .._library import measures
from . import jax_calls
from . import measures as arrays_measures
from .kinds import NumPy

_numpy = NumPy()


class _Value:
    """The value of a measure of NumPy's arrays x, y, mask and valid_mask."""

    def __init__(self, operation: str, text: str, names: tuple[str, str]) -> None:
        self.call = operation, text, names

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Value) and self.call == other.call

    def __hash__(self) -> int:
        return hash(self.call)

    def __call__(self, *arrays: Any) -> Any:
        operation, text, names = self.call
        x, y, mask, valid_mask = _in_float64(operation, arrays)
        value = arrays_measures.evaluate(
            operation, text, _numpy, x, y, mask, valid_mask, names=names
        )[0]
        return numpy.asarray(value, _value_dtype(text, x))


def _in_float64(operation: str, arrays: Sequence[Any]) -> Sequence[Any]:
    """The arrays, histograms as the library takes them: JAX has them in f32."""
    if operation != measures.OF_HISTOGRAM:
        return arrays
    return [None if each is None else numpy.asarray(each, numpy.float64) for each in arrays]


def _value_dtype(text: str, x: Any) -> Any:
    is_wide = x.dtype == jnp.float64 or measures.parse(text).in_float64
    return jax_calls.float64_or_float32() if is_wide else jnp.float32


def _call(operation: str, text: str, of_x: bool, of_y: bool, arrays: tuple[Any, ...]) -> Any:
    """The value and the gradients that are asked for, scaled by the upstream gradient, if any.

    A mask that was traced and has weights that are none makes them NaN, as on a GPU.
    """
    x, y, mask, valid_mask, upstream = _in_float64(operation, jax_calls.as_numpy(arrays))
    try:
        results = arrays_measures.evaluate(
            operation, text, _numpy, x, y, mask, valid_mask, of_x, of_y, upstream
        )
    except ValueError as error:
        if "mask holds" not in str(error):
            raise
        results = [numpy.full_like(each, numpy.nan) for each in (x, y)][: of_x + of_y]
        if upstream is None:
            results.insert(0, numpy.full(measures.parse(text).result_shape(x.shape), numpy.nan))
    # NumPy's results without axes are in f64.
    value = [] if upstream is not None else [numpy.asarray(results[0], _value_dtype(text, x))]
    return (*value, *results[len(value) :])


def _called_back(operation: str, text: str, of_x: bool, of_y: bool, arrays: tuple[Any, ...]) -> Any:
    x, upstream = arrays[0], arrays[4]
    shapes = []
    if upstream is None:
        shape = measures.parse(text).result_shape(x.shape)
        shapes.append(jax.ShapeDtypeStruct(tuple(shape), _value_dtype(text, x)))
    shapes += [jax.ShapeDtypeStruct(x.shape, x.dtype) for of in (of_x, of_y) if of]
    callback = functools.partial(_call, operation, text, of_x, of_y)
    return jax.pure_callback(callback, tuple(shapes), arrays, vmap_method="sequential")


@functools.lru_cache(maxsize=1024)
def _function(operation: str, text: str) -> Callable[..., Any]:
    """The measure as a function of (x, y, mask, valid_mask) with a gradient rule."""

    @jax.custom_vjp
    def value(x: Any, y: Any, mask: Any, valid_mask: Any) -> Any:
        return _called_back(operation, text, False, False, (x, y, mask, valid_mask, None))[0]

    def forward(*primals: Any) -> tuple[Any, Any]:
        x, y = primals[:2]
        mask, valid_mask = [None if each is None else each.value for each in primals[2:]]
        # The structure says which gradients are asked for; it is known while tracing.
        asked = tuple(() if each.perturbed else None for each in (x, y))
        arrays = (x.value, y.value, mask, valid_mask)
        return value(*arrays), (arrays, asked)

    def backward(saved: Any, upstream: Any) -> tuple[Any, ...]:
        arrays, asked = saved
        of_x, of_y = [each is not None for each in asked]
        if isinstance(upstream, jax.custom_derivatives.SymbolicZero) or not (of_x or of_y):
            return None, None, None, None
        compute = functools.partial(_called_back, operation, text, of_x, of_y)
        gradients = jax_calls.once_differentiable(operation, compute)((*arrays, upstream))
        return gradients[0] if of_x else None, gradients[-1] if of_y else None, None, None

    value.defvjp(forward, backward, symbolic_zeros=True)
    return value


def evaluate(
    operation: str,
    text: str,
    x: Any,
    y: Any,
    mask: Any,
    valid_mask: Any,
    names: tuple[str, str] = ("x", "y"),
) -> Any:
    given = list(zip((*names, "mask", "valid_mask"), (x, y, mask, valid_mask)))
    if isinstance(x, numpy.ndarray) != isinstance(y, numpy.ndarray) and hasattr(y, "dtype"):
        other, like = given[:2] if isinstance(x, numpy.ndarray) else given[1::-1]
        if str(other[1].dtype) != str(like[1].dtype):
            raise ValueError(
                f"{operation}: {other[0]} is {other[1].dtype}; it must be {like[1].dtype} as "
                f"{like[0]} is"
            )
    arrays = [
        None if array is None and "mask" in name else jax_calls.taken(operation, name, array)
        for name, array in given
    ]
    arrays_measures.require_alike(operation, arrays[0], arrays[1], names)
    value = _Value(operation, text, names)
    if not any(map(jax_calls.is_traced, arrays)):
        return jax_calls.as_jax([value(*jax_calls.as_numpy(arrays))], arrays[0])[0]
    jax_calls.refuse(value, arrays)
    return jax_calls.with_gradients_alone(operation, _function(operation, text), *arrays)


def psnr(data_range: Optional[float], reduction: str, x: Any, y: Any, mask: Any) -> Any:
    """PSNR from the MSE; differentiable as the MSE is."""
    text = measures.psnr_error_text(data_range, reduction)
    try:
        error = evaluate("psnr", text, x, y, mask, None)
    except ValueError as refusal:  # the library knows only the error inside
        raise ValueError(str(refusal).replace("mse: ", "psnr: ", 1)) from None
    value_range = float(data_range or measures.DATA_RANGES.get(str(x.dtype), 1.0))
    if mask is None:
        return 10 * jnp.log10(value_range**2 / error)
    exists = ~jnp.isnan(error)  # an error of no pixels is NaN, and its gradient is to be 0
    return jnp.where(exists, 10 * jnp.log10(value_range**2 / jnp.where(exists, error, 1)), jnp.nan)

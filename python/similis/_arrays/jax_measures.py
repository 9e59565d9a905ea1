# SPDX-License-Identifier: Apache-2.0
"""JAX's arrays on the CPU: pure_callback into the library, with a custom_vjp around it.

A callback works under jit, vmap (one call for each element) and grad, needs no compiler at run time
and costs the CPU no copy. Arrays on a GPU are refused: a callback would move them to the host.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Optional

import jax
import jax.numpy as jnp
import numpy

from .._library import c_abi, measures
from .._library.refusals import type_name
from . import measures as arrays_measures
from .kinds import NumPy

_numpy = NumPy()


def require_cpu(operation: str, name: str, array: Any) -> None:
    if isinstance(array, jax.core.Tracer):
        platform = jax.default_backend()
    else:
        platform = next(iter(array.devices())).platform
    if platform != "cpu":
        raise c_abi.DeviceError(
            f"{operation}: {name} is on JAX's {platform}; a jax.Array must be on the CPU, and on a "
            "GPU torch and CuPy are supported"
        )


def _call(operation: str, text: str, of_x: bool, of_y: bool, arrays: tuple[Any, ...]) -> Any:
    """The value and the gradients that are asked for, scaled by the upstream gradient, if any."""
    given: list[Any] = [None if each is None else numpy.asarray(each) for each in arrays]
    x, y, mask, valid_mask, upstream = given
    results = arrays_measures.evaluate(
        operation, text, _numpy, x, y, mask, valid_mask, of_x, of_y, upstream
    )
    # NumPy's results without axes are in f64.
    dtype = x.dtype if upstream is not None or x.dtype == numpy.float64 else numpy.float32
    value = [] if upstream is not None else [numpy.asarray(results[0], dtype)]
    return (*value, *results[len(value) :])


def _called_back(operation: str, text: str, of_x: bool, of_y: bool, arrays: tuple[Any, ...]) -> Any:
    x, upstream = arrays[0], arrays[4]
    dtype = jnp.float64 if x.dtype == jnp.float64 else jnp.float32
    shapes = []
    if upstream is None:
        shape = measures.parse(text).result_shape(x.shape)
        shapes.append(jax.ShapeDtypeStruct(tuple(shape), dtype))
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
        gradients = _called_back(operation, text, of_x, of_y, (*arrays, upstream))
        return gradients[0] if of_x else None, gradients[-1] if of_y else None, None, None

    value.defvjp(forward, backward, symbolic_zeros=True)
    return value


def evaluate(operation: str, text: str, x: Any, y: Any, mask: Any, valid_mask: Any) -> Any:
    for name, array in (("x", x), ("y", y), ("mask", mask), ("valid_mask", valid_mask)):
        if array is None and "mask" in name:
            continue
        if not isinstance(array, jax.Array):
            raise TypeError(
                f"{operation}: {name} is of type {type_name(array)}; it must be a jax.Array"
            )
        require_cpu(operation, name, array)
    arrays_measures.require_alike(operation, x, y)
    return _function(operation, text)(x, y, mask, valid_mask)


def psnr(data_range: Optional[float], reduction: str, x: Any, y: Any) -> Any:
    """PSNR from the MSE; differentiable as the MSE is."""
    text = measures.psnr_error_text(data_range, reduction)
    error = evaluate("psnr", text, x, y, None, None)
    value_range = float(data_range or measures.DATA_RANGES.get(str(x.dtype), 1.0))
    return 10 * jnp.log10(value_range**2 / error)

# SPDX-License-Identifier: Apache-2.0
"""The common part of JAX's measures and transforms: where arrays are, and when a call runs.

Arrays with values are computed with at once, as NumPy's. Arrays that JAX traces (under jit, grad,
vmap) become a callback. The library refuses their wrong shapes and options while they are traced:
once for each kind of call, the same call is made with zeros in their places.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Callable, Optional

import jax
import jax.numpy as jnp
import numpy

from .._library import c_abi
from .._library.refusals import dtype_names, type_name


def once_differentiable(operation: str, compute: Callable[..., Any]) -> Callable[..., Any]:
    """compute(arrays), which gives gradients; differentiating these is refused in one sentence."""

    @jax.custom_jvp
    def gradients(arrays: Any) -> Any:
        return compute(arrays)

    @gradients.defjvp
    def refuse_tangents(primals: Any, tangents: Any) -> Any:
        raise NotImplementedError(
            f"{operation}: gradients of gradients are not supported on JAX's arrays"
        )

    return gradients


def with_gradients_alone(operation: str, function: Callable[..., Any], *operands: Any) -> Any:
    """function(*operands), a custom_vjp; JAX's forward mode is refused in one sentence.

    Under an inner jit, and by jax.linearize, JAX refuses it later and in its own words.
    """
    try:
        return function(*operands)
    except TypeError as error:
        if "forward-mode" not in str(error):
            raise
        raise NotImplementedError(
            f"{operation}: forward mode (jvp, jacfwd, hessian) is not supported on JAX's arrays; "
            "use grad, vjp or jacrev"
        ) from None


def is_traced(array: Any) -> bool:
    return isinstance(array, jax.core.Tracer)


def has_float64() -> bool:
    """JAX has none unless it is told to."""
    config: Any = jax.config
    return bool(config.jax_enable_x64)


def float64_or_float32() -> Any:
    """The dtype of a result that is float64 elsewhere."""
    return jnp.float64 if has_float64() else jnp.float32


def require_cpu(operation: str, name: str, array: Any) -> None:
    if is_traced(array):
        platform = jax.default_backend()
    else:
        platform = next(iter(array.devices())).platform
    if platform != "cpu":
        raise c_abi.DeviceError(
            f"{operation}: {name} is on JAX's {platform}; a jax.Array must be on the CPU, and on a "
            "GPU torch and CuPy are supported"
        )


def taken(operation: str, name: str, array: Any) -> Any:
    """The argument as a jax.Array, which a numpy.ndarray beside one becomes."""
    if isinstance(array, numpy.ndarray):
        if array.dtype == numpy.float64 and not has_float64():
            raise TypeError(
                f"{operation}: {name} is float64 beside a jax.Array, and JAX has none by default; "
                f"give {name}.astype('float32')"
            )
        if hasattr(array, "mask"):  # numpy.ma.MaskedArray
            raise TypeError(
                f"{operation}: {name} is a masked array; give its data, and its mask as an argument"
            )
        if not array.dtype.isnative or array.dtype.kind not in "biufV":  # V: ml_dtypes' bfloat16
            raise TypeError(
                f"{operation}: {name} is {array.dtype}; it must be {dtype_names(operation, name)}"
            )
        with jax.ensure_compile_time_eval():  # it keeps its values while others are traced
            return jnp.asarray(array)
    if not isinstance(array, jax.Array):
        raise TypeError(
            f"{operation}: {name} is of type {type_name(array)}; it must be a jax.Array or a "
            "numpy.ndarray"
        )
    require_cpu(operation, name, array)
    return array


def as_numpy(arrays: Sequence[Any]) -> list[Any]:
    return [None if each is None else numpy.asarray(each) for each in arrays]


def as_jax(results: Sequence[Any], like: Any) -> list[Any]:
    """Results of a call at once, where the operand is."""
    device = next(iter(like.devices()))
    return [jax.device_put(each, device) for each in results]


Kind = Optional[tuple[tuple[int, ...], Any]]


@functools.lru_cache(maxsize=1024)
def _tried(compute: Callable[..., Any], kinds: tuple[Kind, ...]) -> None:
    compute(*[None if each is None else _zeros(*each) for each in kinds])


def _zeros(shape: tuple[int, ...], dtype: Any) -> Any:
    """One zero, seen in each place."""
    return numpy.broadcast_to(numpy.zeros((), dtype), shape)


def refuse(compute: Callable[..., Any], arrays: Sequence[Any]) -> None:
    """Raises what compute(*arrays) refuses, as far as the values of traced arrays do not matter.

    compute: hashable, and equal for equal calls.
    """
    if any(each is not None and not is_traced(each) for each in arrays[2:]):  # a mask to look at
        compute(
            *[
                _zeros(each.shape, each.dtype)
                if each is not None and is_traced(each)
                else each
                if each is None
                else numpy.asarray(each)
                for each in arrays
            ]
        )
        return
    _tried(compute, tuple(None if each is None else (each.shape, each.dtype) for each in arrays))

# SPDX-License-Identifier: Apache-2.0
"""Smoothing JAX's arrays on the CPU, at once or by callbacks as in jax_measures.py."""

from __future__ import annotations

import functools
from typing import Any, Callable

import jax
import numpy

from .._library.smooth import adjoint_of
from . import jax_calls, smooth as numpy_smooth
from .transforms import require_array


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def _smooth(x: Any, call: str) -> Any:
    def compute(held: Any) -> Any:
        return numpy_smooth.smooth(numpy.asarray(held), call)

    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return jax.pure_callback(compute, shape, x, vmap_method="sequential")


def _forward(x: Any, call: str) -> tuple[Any, None]:
    return _smooth(x, call), None


def _backward(call: str, _: None, upstream: Any) -> tuple[Any]:
    return (_smooth(upstream, adjoint_of(call)),)


_smooth.defvjp(_forward, _backward)


@functools.lru_cache(maxsize=64)
def _tried(call: str) -> Callable[..., Any]:
    """The same for jax_calls.refuse(), one function for equal calls."""
    return lambda x: numpy_smooth.smooth(x, call)


def smooth(x: Any, call: str) -> Any:
    jax_calls.require_cpu("smooth", "x", x)
    require_array("smooth", "x", x)
    if not jax_calls.is_traced(x):
        return jax_calls.as_jax([_tried(call)(numpy.asarray(x))], x)[0]
    jax_calls.refuse(_tried(call), (x,))
    return jax_calls.with_gradients_alone("smooth", _smooth, x, call)

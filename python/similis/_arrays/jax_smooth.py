# SPDX-License-Identifier: Apache-2.0
"""Smoothing JAX's arrays on the CPU, by callbacks as in jax_measures.py."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy

from .._library.smooth import adjoint_of
from . import smooth as numpy_smooth
from .jax_calls import require_cpu, with_gradients_alone
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


def smooth(x: Any, call: str) -> Any:
    require_cpu("smooth", "x", x)
    require_array("smooth", "x", x)
    return with_gradients_alone("smooth", _smooth, x, call)

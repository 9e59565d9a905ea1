# SPDX-License-Identifier: Apache-2.0
"""Sampling and composing JAX's arrays on the CPU, by callbacks as in jax_measures.py."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy

from .._library import warp
from .._library.refusals import type_name
from . import transforms
from .jax_measures import require_cpu
from .kinds import NumPy

_numpy = NumPy()
Operands = tuple[Any, ...]  # image, u or A; affine; field; grid_affine: some of them None


def _as_numpy(arrays: Sequence[Any]) -> list[Any]:
    return [None if each is None else numpy.asarray(each) for each in arrays]


def _value(call: str, names: Sequence[str], operands: Operands) -> Any:
    return transforms.run(call, names, _as_numpy(operands))


def _gradients(call: str, asked: Sequence[bool], operands: Operands, upstream: Any) -> Any:
    """The gradients to the operands that ask for one."""
    held = _as_numpy((*operands, upstream))
    gradients = [numpy.empty_like(each) if of else None for each, of in zip(held, asked)]
    described = [None if each is None else _numpy.describe(each) for each in held]
    parsed = warp.parse(call)
    by_each = [None if each is None else _numpy.describe(each) for each in gradients]
    outputs = warp.gradient_outputs(parsed.operation, described[4], *by_each)
    warp.run(parsed, described[:4], outputs)
    return tuple(each for each in gradients if each is not None)


def _shapes(call: str, operands: Operands) -> Any:
    parsed = warp.parse(call)
    operand, _, field, _ = operands
    batches = [each.shape[0] for each in operands if each is not None]
    shape = parsed.result_shape(operand.shape, batches, None if field is None else field.shape)
    of_field = parsed.operation == "affine_grid" and field is not None
    result = jax.ShapeDtypeStruct(tuple(shape), field.dtype if of_field else operand.dtype)
    if parsed.operation != "sample_labels":
        return result
    wide = jnp.float64 if operand.dtype == jnp.float64 else jnp.float32
    return result, jax.ShapeDtypeStruct(tuple(shape), wide)


@functools.lru_cache(maxsize=1024)
def _function(call: str, names: tuple[str, ...]) -> Callable[..., Any]:
    """The function of the four operands, with a gradient rule."""

    @jax.custom_vjp
    def value(*operands: Any) -> Any:
        compute = functools.partial(_value, call, names)
        shapes = _shapes(call, operands)
        return jax.pure_callback(compute, shapes, operands, vmap_method="sequential")

    def forward(*primals: Any) -> tuple[Any, Any]:
        operands = tuple(None if each is None else each.value for each in primals)
        # The structure says which gradients are asked for; it is known while tracing.
        asked = tuple(() if each is not None and each.perturbed else None for each in primals)
        return value(*operands), (operands, asked)

    def backward(saved: Any, upstream: Any) -> tuple[Any, ...]:
        operands, wanted = saved
        asked = [each is not None for each in wanted]
        if isinstance(upstream, tuple):  # labels have no gradient, their weights have one
            asked[0], upstream = False, upstream[1]
        if isinstance(upstream, jax.custom_derivatives.SymbolicZero):
            return None, None, None, None
        by_field = None
        if call.startswith("affine_grid ") and asked[2]:  # the derivative of x + u(x) by u is 1
            field = operands[2]
            by_field = upstream.astype(field.dtype)
            if field.shape[0] != upstream.shape[0]:
                by_field = by_field.sum(0, keepdims=True)
            asked[2] = False
        shapes = tuple(
            jax.ShapeDtypeStruct(each.shape, each.dtype) for each, of in zip(operands, asked) if of
        )
        compute = functools.partial(_gradients, call, tuple(asked))
        computed = iter(
            jax.pure_callback(compute, shapes, operands, upstream, vmap_method="sequential")
            if shapes
            else ()
        )
        results = [next(computed) if of else None for of in asked]
        if by_field is not None:
            results[2] = by_field
        return tuple(results)

    value.defvjp(forward, backward, symbolic_zeros=True)
    return value


def require_arrays(operation: str, names: Sequence[str], operands: Sequence[Any]) -> None:
    for name, array in zip(names, operands):
        if array is None:
            continue
        if not isinstance(array, jax.Array):
            raise TypeError(
                f"{operation}: {name} is of type {type_name(array)}; it must be a jax.Array"
            )
        require_cpu(operation, name, array)
        transforms.require_array(operation, name, array)


def transform(call: str, names: Sequence[str], operands: Sequence[Any], output: Any) -> Any:
    operation = call.split(" ", 1)[0]
    if output is not None:
        raise TypeError(f"{operation}: output is given; a jax.Array cannot be changed")
    require_arrays(operation, names, operands)
    return _function(call, tuple(names))(*operands)


def exponentiate(v: Any, n: int, align_corners: bool) -> Any:
    """Repeated compose(), and differentiable as that is."""
    require_arrays("exponentiate", ("v",), (v,))
    call = warp.text("compose", align_corners=align_corners)
    u = (v if v.dtype == jnp.float64 else v.astype(jnp.float32)) * 2.0**-n
    for _ in range(n):
        u = u + _function(call, ("u", "affine", "v", "grid_affine"))(u, None, u, None)
    return u.astype(v.dtype)


def invert(u: Any, iterations: int, call: str) -> tuple[Any, Any]:
    require_arrays("invert", ("u",), (u,))
    wide = jnp.float64 if u.dtype == jnp.float64 else jnp.float32
    shapes = (
        jax.ShapeDtypeStruct(u.shape, u.dtype),
        jax.ShapeDtypeStruct(u.shape[:1], wide),
    )

    def compute(u: Any) -> Any:
        return transforms.invert(numpy.asarray(u), iterations, call)

    constant = jax.lax.stop_gradient(u)
    inverse, residual = jax.pure_callback(compute, shapes, constant, vmap_method="sequential")
    return inverse, residual

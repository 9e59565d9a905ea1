# SPDX-License-Identifier: Apache-2.0
"""Sampling and composing JAX's arrays on the CPU, at once or by callbacks as in jax_measures.py."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy

from .._library import c_abi, warp
from . import jax_calls, transforms
from .jax_calls import as_numpy
from .kinds import NumPy

_numpy = NumPy()
Operands = tuple[Any, ...]  # image, u or A; affine; field; grid_affine: some of them None


def _value(call: str, names: Sequence[str], operands: Operands) -> Any:
    return transforms.run(call, names, as_numpy(operands))


@functools.lru_cache(maxsize=1024)
def _tried_value(call: str, names: tuple[str, ...]) -> Callable[..., Any]:
    """The same for jax_calls.refuse(), one function for equal calls."""
    return lambda *operands: _value(call, names, operands)


def _gradients(call: str, asked: Sequence[bool], operands: Operands, upstream: Any) -> Any:
    """The gradients to the operands that ask for one."""
    held = as_numpy((*operands, upstream))
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
        if call.split(" ", 1)[0] == "affine_grid" and asked[2]:  # the derivative of x + u(x) by u is 1
            field = operands[2]
            by_field = upstream.astype(field.dtype)
            if field.shape[0] != upstream.shape[0]:
                by_field = by_field.sum(0, keepdims=True)
            asked[2] = False
        shapes = tuple(
            jax.ShapeDtypeStruct(each.shape, each.dtype) for each, of in zip(operands, asked) if of
        )
        compute = functools.partial(_gradients, call, tuple(asked))

        def called_back(arrays: Any) -> Any:
            return jax.pure_callback(compute, shapes, *arrays, vmap_method="sequential")

        gradients = jax_calls.once_differentiable(call.split(" ", 1)[0], called_back)
        computed = iter(gradients((operands, upstream)) if shapes else ())
        results = [next(computed) if of else None for of in asked]
        if by_field is not None:
            results[2] = by_field
        return tuple(results)

    value.defvjp(forward, backward, symbolic_zeros=True)
    return value


def taken_arrays(operation: str, names: Sequence[str], operands: Sequence[Any]) -> list[Any]:
    arrays = []
    for name, operand in zip(names, operands):
        array = None if operand is None else jax_calls.taken(operation, name, operand)
        if array is not None:
            transforms.require_array(operation, name, array)
        arrays.append(array)
    return arrays


def transform(call: str, names: Sequence[str], operands: Sequence[Any], output: Any) -> Any:
    operation = call.split(" ", 1)[0]
    if output is not None:
        raise TypeError(f"{operation}: output is given; a jax.Array cannot be changed")
    arrays = taken_arrays(operation, names, operands)
    if any(map(jax_calls.is_traced, arrays)):
        jax_calls.refuse(_tried_value(call, tuple(names)), arrays)
        function = _function(call, tuple(names))
        return jax_calls.with_gradients_alone(operation, function, *arrays)
    value = _value(call, names, tuple(arrays))
    results = jax_calls.as_jax(value if isinstance(value, tuple) else (value,), arrays[0])
    return tuple(results) if isinstance(value, tuple) else results[0]


_HELD_BY_FLOAT32 = ("bool", "int8", "int16")


def labels(call: str, names: Sequence[str], operands: Sequence[Any]) -> Any:
    """Label and weight. Integers that the library does not take pass through floats that hold them."""
    image = operands[0]
    dtype = str(getattr(image, "dtype", ""))
    if dtype in c_abi.DTYPES or not (dtype in transforms.INTEGERS or dtype == "bool"):
        return transform(call, names, operands, None)
    if dtype not in _HELD_BY_FLOAT32 and (dtype != "int32" or not jax_calls.has_float64()):
        raise TypeError(
            f"sample_labels: image is {dtype}, which needs float64 to be exact, and JAX has none by "
            "default; give image.astype('int16') or numpy.asarray(image)"
        )
    wider = jnp.float32 if dtype in _HELD_BY_FLOAT32 else jnp.float64
    label, weight = transform(call, names, (image.astype(wider), *operands[1:]), None)
    return label.astype(dtype), weight.astype(jnp.float32)


def exponentiate(v: Any, n: int, align_corners: bool) -> Any:
    """Repeated compose(), and differentiable as that is."""
    (v,) = taken_arrays("exponentiate", ("v",), (v,))
    call = warp.text("compose", align_corners=align_corners)
    u = (v if v.dtype == jnp.float64 else v.astype(jnp.float32)) * 2.0**-n
    for _ in range(n):
        u = u + transform(call, ("u", "affine", "v", "grid_affine"), (u, None, u, None), None)
    return u.astype(v.dtype)


@functools.lru_cache(maxsize=64)
def _tried_inverse(iterations: int, call: str) -> Callable[..., Any]:
    return lambda u: transforms.invert(u, iterations, call)


def invert(u: Any, iterations: int, call: str) -> tuple[Any, Any]:
    (u,) = taken_arrays("invert", ("u",), (u,))
    if not jax_calls.is_traced(u):
        inverse, residual = jax_calls.as_jax(
            transforms.invert(numpy.asarray(u), iterations, call), u
        )
        return inverse, residual
    jax_calls.refuse(_tried_inverse(iterations, call), (u,))
    wide = jnp.float64 if u.dtype == jnp.float64 else jnp.float32
    voxels = (u.shape[0], *(warp.parse(call).out_shape or u.shape[1:-1]))
    shapes = (
        jax.ShapeDtypeStruct((*voxels, u.shape[-1]), u.dtype),
        jax.ShapeDtypeStruct(u.shape[:1], wide),
    )

    def compute(u: Any) -> Any:
        return transforms.invert(numpy.asarray(u), iterations, call)

    constant = jax.lax.stop_gradient(u)
    inverse, residual = jax.pure_callback(compute, shapes, constant, vmap_method="sequential")
    return inverse, residual


@functools.lru_cache(maxsize=64)
def _jacobian(call: str, spacing: tuple[float, ...]) -> Callable[..., Any]:
    """The determinant and the number of folds of u, with a gradient rule."""

    @jax.custom_vjp
    def value(u: Any) -> Any:
        folds_dtype = jax_calls.float64_or_float32()
        shapes = (
            jax.ShapeDtypeStruct(u.shape[:-1], u.dtype),
            jax.ShapeDtypeStruct(u.shape[:1], folds_dtype),
        )

        def compute(u: Any) -> Any:
            det, folds = transforms.jacobian_determinant(numpy.asarray(u), call)
            return det, folds.astype(folds_dtype)

        return jax.pure_callback(compute, shapes, u, vmap_method="sequential")

    def forward(u: Any) -> Any:
        return value(u), u

    def backward(u: Any, upstream: Any) -> Any:
        _, pull_back = jax.vjp(lambda field: _determinant(field, spacing), u)
        return pull_back(upstream[0])

    value.defvjp(forward, backward)
    return value


def _determinant(u: Any, spacing: Sequence[float]) -> Any:
    """The determinant in JAX's own operators, whose gradient it knows; spacing: along (x, y, z)."""
    rank = u.ndim - 2
    wide = u if u.dtype == jnp.float64 else u.astype(jnp.float32)
    columns = []
    for axis in range(rank):
        along = jnp.moveaxis(wide, rank - axis, 0)
        if along.shape[0] == 1:
            slope = jnp.zeros_like(along)
        else:
            inner = (along[2:] - along[:-2]) / (2 * spacing[axis])
            first = (along[1:2] - along[:1]) / spacing[axis]
            last = (along[-1:] - along[-2:-1]) / spacing[axis]
            slope = jnp.concatenate([first, inner, last])
        columns.append(jnp.moveaxis(slope, 0, rank - axis))
    j = jnp.stack(columns, -1) + jnp.eye(rank, dtype=wide.dtype)
    if rank == 2:
        det = j[..., 0, 0] * j[..., 1, 1] - j[..., 0, 1] * j[..., 1, 0]
    else:
        det = (j[..., 0] * jnp.cross(j[..., 1], j[..., 2])).sum(-1)
    return det.astype(u.dtype)


def jacobian_determinant(u: Any, call: str, spacing: tuple[float, ...]) -> tuple[Any, Any]:
    """The determinant and the number of folds, f32 where JAX has no f64."""
    (u,) = taken_arrays("jacobian_determinant", ("u",), (u,))
    if not jax_calls.is_traced(u):
        det, folds = transforms.jacobian_determinant(numpy.asarray(u), call)
        folds = folds.astype(jax_calls.float64_or_float32())
        det, folds = jax_calls.as_jax((det, folds), u)
        return det, folds
    jax_calls.refuse(_tried_jacobian(call), (u,))
    function = _jacobian(call, spacing)
    det, folds = jax_calls.with_gradients_alone("jacobian_determinant", function, u)
    return det, folds


@functools.lru_cache(maxsize=64)
def _tried_jacobian(call: str) -> Callable[..., Any]:
    return lambda u: transforms.jacobian_determinant(u, call)

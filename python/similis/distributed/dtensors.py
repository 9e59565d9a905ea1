# SPDX-License-Identifier: Apache-2.0
"""DTensors whose rows are sharded: their own rows are taken, and results with rows are returned so.

DTensor splits as torch.chunk and Slabs.even do, and in no other way.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional, TypeVar, Union

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor, Shard

from .agreement import heard
from .calls import named_of, refuse_unknown
from .slabs import Slabs

Function = TypeVar("Function", bound=Callable[..., Any])
Axis = Union[int, Callable[[dict[str, Any]], int]]


def _axis(axis: Axis, arguments: dict[str, Any]) -> int:
    return axis if isinstance(axis, int) else axis(arguments)


def takes_dtensors(
    operands: Mapping[str, Axis], results: Sequence[Optional[Axis]] = ()
) -> Callable[[Function], Function]:
    """operands: the axis of the rows by the argument's name; results: that of each result, or None
    for one without rows. An axis may depend on the arguments."""

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        names = named_of(function)

        @heard
        @functools.wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            refuse_unknown(function, names, options)
            if not any(isinstance(each, DTensor) for each in (*arguments, *options.values())):
                return function(*arguments, **options)
            bound = signature.bind(*arguments, **options)
            mesh = None
            for name, given in bound.arguments.items():
                if isinstance(given, DTensor):
                    if name not in operands:
                        raise ValueError(
                            f"{function.__name__}: {name} is a DTensor; give its own rows"
                        )
                    bound.arguments[name] = _own_rows(
                        function, name, given, _axis(operands[name], bound.arguments)
                    )
                    mesh = given.device_mesh
            value = function(*bound.args, **bound.kwargs)
            slabs = bound.arguments.get("slabs") or bound.arguments.get(
                "image_slabs", bound.arguments.get("u_slabs")
            )
            axes = [None if each is None else _axis(each, bound.arguments) for each in results]
            if isinstance(value, tuple):
                return tuple(_whole(each, mesh, slabs, at) for each, at in zip(value, axes))
            return _whole(value, mesh, slabs, axes[0] if axes else None)

        return call  # type: ignore[return-value]

    return decorate


def _own_rows(function: Callable[..., Any], name: str, given: DTensor, axis: int) -> Tensor:
    if given.device_mesh.ndim != 1 or tuple(given.placements) != (Shard(axis),):
        raise ValueError(
            f"{function.__name__}: {name} is a DTensor with placements {list(given.placements)}; "
            f"they must be [Shard({axis})] on a mesh of one dimension"
        )
    return given.to_local()


def _whole(value: Any, mesh: Any, slabs: Any, axis: Optional[int]) -> Any:
    if axis is None or not isinstance(value, Tensor):
        return value
    if slabs.sizes != Slabs.even(slabs.extent, slabs.mesh).sizes:
        return value  # as it is: a DTensor has no such split
    shape = list(value.shape)
    shape[axis] = slabs.extent
    strides = [math.prod(shape[at + 1 :]) for at in range(len(shape))]
    placements = [Shard(axis)]
    return DTensor.from_local(
        value, mesh, placements, run_check=False, shape=torch.Size(shape), stride=tuple(strides)
    )

# SPDX-License-Identifier: Apache-2.0
"""The operators torch.ops.similis.*, which graphs, traces and modes see."""

from __future__ import annotations

from typing import Any, Callable

import torch

_library = torch.library.Library("similis", "DEF")


def define(schema: str, compute: Callable[..., Any], describe: Callable[..., Any]) -> Any:
    """Adds an operator and returns it.

    Args:
        schema: name, arguments and results in torch's words: "value(Tensor x) -> Tensor".
        compute: the implementation for tensors with memory.
        describe: allocates results of the right shape and dtype, for tensors without memory.
    """
    name = schema.split("(", 1)[0]
    _library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    for device in "CPU", "CUDA", "MPS", "XPU":
        _library.impl(name, compute, device)
    torch.library.register_fake(f"similis::{name}", describe, lib=_library)
    return getattr(torch.ops.similis, name).default


def differentiate(name: str, backward: Callable[..., Any], remember: Callable[..., None]) -> None:
    """Gives an operator a gradient of its own, for those who call it where no autograd.Function
    stands around it: graphs of torch.jit.

    backward, remember: those of an autograd.Function with a setup_context().
    """
    torch.library.register_autograd(
        f"similis::{name}", backward, setup_context=remember, lib=_library
    )


def applied_plainly(function: Any) -> Any:
    """function.apply() of an autograd.Function, without what torch does around it in Python.

    Function.apply() searches for leftovers of transforms first, which takes 1.5 µs, and the engine
    calls backward() by a method that looks which of two names a class defines, another 1.5 µs.
    """
    engines_class = getattr(function, "_backward_cls", None)
    if engines_class is not None:
        engines_class.apply = function.backward
    return super(torch.autograd.Function, function).apply

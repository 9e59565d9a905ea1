# SPDX-License-Identifier: Apache-2.0
"""Smoothing as text and through the C interface, as measures.py does it for measures."""

from __future__ import annotations

from typing import Any

from . import c_abi, measures


def adjoint_of(call: str) -> str:
    """The text of the call's adjoint, of which the call itself is the adjoint."""
    before, _, adjoint = call.rpartition("=")
    return f"{before}={1 - int(adjoint)}"


def text(axes: int, **options: Any) -> str:
    return measures.text("smooth", axes, **options, adjoint=False)


def run(
    call: str, x: c_abi.Tensor, output: c_abi.Tensor, stream: int = 0, most_threads: int = 0
) -> None:
    """One pass. Raises what the library refuses; the interpreter's lock is released meanwhile."""
    tensors = (x, None, None, None, None, output, None, None)
    measures.run(measures.parse(call), tensors, stream, most_threads)

# SPDX-License-Identifier: Apache-2.0
"""Which library of arrays an image belongs to, and the file that knows it.

No library is imported here before its arrays appear.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable

from .._arrays import numpy_cupy

_seen: dict[str, Any] = {}


def _module(name: str) -> Any:
    """A library of arrays, if somebody has imported it.

    Remembered: torch.compile walks a dict that it sees being read, and sys.modules may grow meanwhile.
    """
    if name not in _seen and name in sys.modules:
        _seen[name] = sys.modules[name]
    return _seen.get(name)


def _is_compiling() -> bool:
    """Inside torch.compile, which ignores caches with a warning."""
    torch = _module("torch")
    return torch is not None and torch.compiler.is_compiling()


def described_once(describe: Callable[..., str]) -> Callable[..., str]:
    """The same text for the same options without checking them again."""
    cached = functools.lru_cache(maxsize=256, typed=True)(describe)

    def text(*options: Any) -> str:
        # A tuple finds the text of another that equals it: (3.0, 3.0) that of (3, 3).
        if not _is_compiling() and tuple not in map(type, options):
            try:
                return cached(*options)
            except TypeError:  # a list among the options, or a refusal that is repeated below
                pass
        return describe(*options)

    return text


_cached_kinds: dict[str, numpy_cupy.Kind] = {}


def is_of(module: str, name: str, array: Any) -> bool:
    """Whether this is an array of a library, which then has been imported."""
    library = _module(module)
    return library is not None and isinstance(array, getattr(library, name))


def _kind(name: str, make: Callable[[], numpy_cupy.Kind]) -> numpy_cupy.Kind:
    if name not in _cached_kinds:
        _cached_kinds[name] = make()
    return _cached_kinds[name]


def kind_of(operation: str, x: Any, name: str = "x") -> numpy_cupy.Kind:
    if is_of("numpy", "ndarray", x):
        return _kind("numpy", numpy_cupy.NumPy)
    if is_of("cupy", "ndarray", x):
        return _kind("cupy", numpy_cupy.CuPy)
    raise TypeError(
        f"{operation}: {name} is a {type(x).__name__}; it must be a torch.Tensor, numpy.ndarray, "
        "cupy.ndarray or jax.Array"
    )


_torch_module: Any = None
_jax_module: Any = None


def for_torch() -> Any:
    """_torch/measures.py, once torch has been imported by whoever made a tensor."""
    global _torch_module
    if _torch_module is None:
        from .._torch import measures

        _torch_module = measures
    return _torch_module


def for_jax() -> Any:
    """_arrays/jax_measures.py, likewise."""
    global _jax_module
    if _jax_module is None:
        from .._arrays import jax_measures

        _jax_module = jax_measures
    return _jax_module


def require_tensor(operation: str, name: str, value: Any) -> None:
    if not is_of("torch", "Tensor", value):
        got = type(value).__name__
        raise TypeError(f"{operation}: {name} is a {got}; it must be a torch.Tensor")


def refuse_jax(operation: str, name: str, array: Any) -> None:
    if not is_of("torch", "Tensor", array) and is_of("jax", "Array", array):
        raise TypeError(
            f"{operation}: {name} is JAX's, which has no float64 by default; give NumPy's"
        )


def without_gradient(array: Any) -> Any:
    return array.detach() if is_of("torch", "Tensor", array) else array


class WithGradient:
    """In the place of x: value_and_gradient()'s wish, which so passes through every measure."""

    def __init__(self, x: Any, of_x: bool, of_y: bool) -> None:
        self.image, self.of_x, self.of_y = x, of_x, of_y
        self.ndim = getattr(x, "ndim", 4)


def spatial(x: Any) -> int:
    """How many axes a window has; 2 also for what will be refused."""
    rank = x.ndim if is_of("torch", "Tensor", x) else getattr(x, "ndim", 4)
    return 3 if rank == 5 else 2


def evaluate(
    operation: str,
    text: str,
    x: Any,
    y: Any,
    mask: Any = None,
    valid_mask: Any = None,
    names: tuple[str, str] = ("x", "y"),
) -> Any:
    """names: of the function's first two arguments."""
    if is_of("torch", "Tensor", x):
        return for_torch().evaluate(operation, text, x, y, mask, valid_mask, names=names)
    if is_of("jax", "Array", x):
        return for_jax().evaluate(operation, text, x, y, mask, valid_mask)
    if isinstance(x, WithGradient):
        kind = kind_of(operation, x.image)
        return numpy_cupy.evaluate(operation, text, kind, x.image, y, mask, valid_mask, x.of_x, x.of_y)
    kind = kind_of(operation, x, names[0])
    return numpy_cupy.evaluate(operation, text, kind, x, y, mask, valid_mask, names=names)[0]


if _module("torch"):  # torch.compile then finds the operators while it traces
    for_torch()

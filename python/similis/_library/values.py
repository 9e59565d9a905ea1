# SPDX-License-Identifier: Apache-2.0
"""Numbers, flags and words that functions are given: what is no such thing is refused."""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Sequence
from typing import Any, Union

from .refusals import type_name

DataRange = Union[None, float, Sequence[float], Any]  # Any: a tensor or array without axes


def shown(value: Any) -> str:
    """The value in one line, or the type of an array."""
    return f"of type {type_name(value)}" if hasattr(value, "ndim") else repr(value)


def number(operation: str, name: str, value: Any) -> float:
    """A plain number; a tensor is refused, as its value may lie on a GPU."""
    if not isinstance(value, (int, float, numbers.Real)) or isinstance(value, bool):
        is_one_number = math.prod(getattr(value, "shape", ())) == 1 and hasattr(value, "item")
        hint = f", such as {name}.item()" if is_one_number else ""
        raise TypeError(f"{operation}: {name} is {shown(value)}; it must be a number{hint}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{operation}: {name} is above float64's largest number") from None


def unlimited_integer(operation: str, name: str, value: Any) -> int:
    """An integer of Python or NumPy, or a traced size, which becomes a constant of the graph."""
    is_integer = isinstance(value, (int, numbers.Integral)) or (
        type(value).__name__ == "SymInt" and hasattr(value, "__index__")
    )
    if not is_integer or isinstance(value, bool):
        raise TypeError(f"{operation}: {name} is {shown(value)}; it must be an integer")
    return operator.index(value)


def integer(operation: str, name: str, value: Any, bits: int = 31) -> int:
    """The same, if its magnitude has at most so many bits."""
    result = unlimited_integer(operation, name, value)
    if abs(result) >= 2**bits:
        raise ValueError(f"{operation}: {name} is {value!r}; it must be below {2**bits}")
    return result


def flag(operation: str, name: str, value: Any) -> int:
    if not isinstance(value, bool):
        raise TypeError(f"{operation}: {name} is {shown(value)}; it must be True or False")
    return int(value)


def listed(words: Sequence[str]) -> str:
    """ "valid, same or renormalize" """
    return f"{', '.join(words[:-1])} or {words[-1]}"


def one_of(operation: str, name: str, value: Any, words: Sequence[str]) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{operation}: {name} is {shown(value)}; it must be a string")
    if value not in words:
        raise ValueError(f"{operation}: {name} is {value!r}; it must be {listed(words)}")
    return value


def plain_range(operation: str, given: DataRange) -> Any:
    """A data_range as one number: (low, high) is high - low, and a tensor or array without axes on
    the CPU is its value. Anything else is left for the option's own check."""
    if isinstance(given, (int, float, str)):
        return given
    if not isinstance(given, (tuple, list)):
        return _item(given)
    if len(given) != 2:
        raise ValueError(
            f"{operation}: data_range has {len(given)} numbers; it must be a number above 0, or "
            "(smallest value, largest value)"
        )
    low, high = (number(operation, "data_range", _item(each)) for each in given)
    if not low < high:
        raise ValueError(
            f"{operation}: data_range is ({low:g}, {high:g}); the second must be above the first"
        )
    return high - low


def _item(given: Any) -> Any:
    """The number in a tensor or array without axes; one on a GPU stays, as number() says, since
    reading it would wait."""
    is_on_gpu = not getattr(given, "is_cpu", True) or type(given).__module__.startswith("cupy")
    if getattr(given, "ndim", None) != 0 or is_on_gpu or not hasattr(given, "item"):
        return given
    return given.item()

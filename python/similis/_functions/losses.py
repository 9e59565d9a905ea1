# SPDX-License-Identifier: Apache-2.0
"""Losses, which take the arguments of the measure that they minimise."""

from __future__ import annotations

from types import FunctionType
from typing import Any, Callable, ParamSpec, TypeVar

from .._library import values
from .dispatch import options_of
from .unknown_options import refuse_options

P = ParamSpec("P")
Result = TypeVar("Result")
Measure = TypeVar("Measure", bound=Callable[..., Any])


class Options:
    """The options of a measure by name, completed by its defaults."""

    def __init__(self, measure: Callable[..., Any]) -> None:
        self.measure = measure
        defaults: dict[str, Any] = measure.__kwdefaults__ or {}
        self.defaults = {name: defaults[name] for name in options_of(measure)}
        self.values = tuple(self.defaults.values())

    def completed(self, loss: str, given: dict[str, Any]) -> tuple[Any, ...]:
        """The values of all options in the order of the measure's signature."""
        if not given:
            return self.values
        options = {**self.defaults, **given}
        if given.get("data_range") is not None:
            options["data_range"] = values.plain_range(loss, options["data_range"])
        if len(options) != len(self.defaults):
            refuse_options(loss, given, self.measure)
        return tuple(options.values())


_TAKES_ANY_NAME = 0x08  # inspect.CO_VARKEYWORDS; the import of inspect takes 10 ms


def _show(function: Any, as_this: Callable[..., Any]) -> None:
    """Gives a function the signature of another, without its **unknown, for inspect and help(),
    which follow __wrapped__. The function itself is called, so a call takes no longer."""
    code, own = as_this.__code__, function.__code__
    shown = FunctionType(
        code.replace(
            co_flags=code.co_flags & ~_TAKES_ANY_NAME,
            co_filename=own.co_filename,
            co_firstlineno=own.co_firstlineno,
            co_name=own.co_name,
        ),
        function.__globals__,
    )
    shown.__defaults__ = as_this.__defaults__
    shown.__kwdefaults__ = as_this.__kwdefaults__
    shown.__annotations__ = {
        name: hint for name, hint in as_this.__annotations__.items() if name != "unknown"
    }
    function.__wrapped__ = shown


def without_unknown(function: Measure) -> Measure:
    """Hides the options that a function takes only to refuse them from inspect and from help()."""
    _show(function, function)
    return function


def loss_of(measure: Callable[P, Result]) -> Callable[[Callable[..., Any]], Callable[P, Result]]:
    """Gives a loss the signature of its measure, for inspect, editors and type checkers."""

    def decorate(loss: Callable[..., Any]) -> Callable[P, Result]:
        _show(loss, measure)
        loss.__annotations__ = dict(measure.__annotations__)
        return loss

    return decorate

# SPDX-License-Identifier: Apache-2.0
"""Losses, which take the arguments of the measure that they minimise."""

from __future__ import annotations

import inspect
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


def without_unknown(function: Measure) -> Measure:
    """Hides the options that a function takes only to refuse them from inspect and from help()."""
    signature = inspect.signature(function)
    named = [each for each in signature.parameters.values() if each.kind != each.VAR_KEYWORD]
    function.__signature__ = signature.replace(parameters=named)  # type: ignore[attr-defined]
    return function


def loss_of(measure: Callable[P, Result]) -> Callable[[Callable[..., Any]], Callable[P, Result]]:
    """Gives a loss the signature of its measure, for inspect, editors and type checkers.

    The loss itself is called, so a call takes no longer.
    """

    def decorate(loss: Callable[..., Any]) -> Callable[P, Result]:
        loss.__signature__ = inspect.signature(measure)  # type: ignore[attr-defined]
        loss.__annotations__ = dict(measure.__annotations__)
        return loss

    return decorate

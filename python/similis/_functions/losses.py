# SPDX-License-Identifier: Apache-2.0
"""Losses, which take the arguments of the measure that they minimise."""

from __future__ import annotations

import inspect
from typing import Any, Callable, ParamSpec, TypeVar

from .._library import values
from .dispatch import options_of

P = ParamSpec("P")
Result = TypeVar("Result")


class Options:
    """The options of a measure by name, completed by its defaults."""

    def __init__(self, measure: Callable[..., Any]) -> None:
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
            name = next(name for name in given if name not in self.defaults)
            raise TypeError(f"{loss}() got an unexpected keyword argument {name!r}")
        return tuple(options.values())


def loss_of(measure: Callable[P, Result]) -> Callable[[Callable[..., Any]], Callable[P, Result]]:
    """Gives a loss the signature of its measure, for inspect, editors and type checkers.

    The loss itself is called, so a call takes no longer.
    """

    def decorate(loss: Callable[..., Any]) -> Callable[P, Result]:
        loss.__signature__ = inspect.signature(measure)  # type: ignore[attr-defined]
        loss.__annotations__ = dict(measure.__annotations__)
        return loss

    return decorate

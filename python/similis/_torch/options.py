# SPDX-License-Identifier: Apache-2.0
"""Classes that call a function with options which are given once: the modules and the metrics."""

from __future__ import annotations

import inspect
from typing import Any, Callable, TypeVar

from .._functions.dispatch import takes_array
from .._functions.unknown_options import refuse_options
from .._library.measures import check_options

Class = TypeVar("Class", bound=type)

_NO_TABLE = ("vmaf",)  # what it takes is known where a clip is


def option_parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The options of a measure without its masks and other arrays, which belong to a call."""
    named = inspect.signature(function).parameters.values()
    return [
        each for each in named if each.kind == each.KEYWORD_ONLY and not takes_array(each.name)
    ]


def require_options(
    called: str, function: Callable[..., Any], options: dict[str, Any]
) -> None:
    """Raises for a name or a value that the function would refuse whatever the images are."""
    names = [each.name for each in option_parameters(function)]
    if any(name not in names for name in options):
        refuse_options(called, options, function)
    operation = function.__name__.removesuffix("_loss")
    if operation not in _NO_TABLE:
        check_options(called, operation, options)


def signature_of_init(
    function: Callable[..., Any],
    positional: tuple[str, ...],
    left_out: tuple[str, ...] = (),
    further: tuple[inspect.Parameter, ...] = (),
) -> inspect.Signature:
    """The options of the function, of which some may come without a name."""
    own = {each.name: each for each in option_parameters(function) if each.name not in left_out}
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    first = [own.pop(name).replace(kind=kind) for name in positional]
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    return inspect.Signature([itself, *first, *own.values(), *further])


def with_options_of(
    function: Callable[..., Any],
    *positional: str,
    left_out: tuple[str, ...] = (),
    further: tuple[inspect.Parameter, ...] = (),
) -> Callable[[Class], Class]:
    """Gives a class the function that it calls, and a constructor with the function's options.

    inspect and help() see each option and its default; nn.pyi and metrics.pyi tell editors.
    """
    signature = signature_of_init(function, positional, left_out, further)

    def decorate(made: Class) -> Class:
        base: Any = made.__bases__[0]

        def initialise(self: Any, *given: Any, **options: Any) -> None:
            if len(given) > len(positional):
                raise TypeError(
                    f"{made.__name__}: {len(given)} options came without a name; it takes "
                    f"{len(positional)}, and the others by name"
                )
            for name, value in zip(positional, given):
                if name in options:
                    raise TypeError(f"{made.__name__}: {name} is given twice")
                options[name] = value
            base.__init__(self, **options)

        initialise.__name__ = "__init__"
        initialise.__qualname__ = f"{made.__qualname__}.__init__"
        initialise.__signature__ = signature  # type: ignore[attr-defined]
        made.__init__ = initialise  # type: ignore[misc]
        made.function = staticmethod(function)  # type: ignore[attr-defined]
        return made

    return decorate

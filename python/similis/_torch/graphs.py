# SPDX-License-Identifier: Apache-2.0
"""Functions that torch.compile puts into its graphs without reading them.

Telling torch so imports torch._dynamo, which takes longer than torch itself: it is told when somebody
else imports it.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Optional

import torch

_COMPILER = "torch._dynamo"


class _AfterTheCompiler(importlib.abc.MetaPathFinder):
    """Runs a function once torch's compiler has been imported."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function

    def find_spec(
        self, name: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        if name != _COMPILER or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)  # the search goes on without it
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_run(module: ModuleType) -> None:
            execute(module)
            self._function()

        setattr(spec.loader, "exec_module", execute_and_run)
        return spec


def allow_in_graph(*functions: Callable[..., Any]) -> None:
    """torch.compiler.allow_in_graph, now if torch's compiler is imported, or else once it is."""

    def allow() -> None:
        for function in functions:
            torch.compiler.allow_in_graph(function)

    if _COMPILER in sys.modules:
        allow()
    else:
        sys.meta_path.insert(0, _AfterTheCompiler(allow))

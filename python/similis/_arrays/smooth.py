# SPDX-License-Identifier: Apache-2.0
"""Smoothing NumPy's and CuPy's arrays."""

from __future__ import annotations

from typing import Any

from .._library import smooth as library
from .kinds import kind_of, require_kind
from .transforms import require_array


def smooth(x: Any, call: str) -> Any:
    kind = kind_of("smooth", x)
    require_kind("smooth", kind, "x", x)
    require_array("smooth", "x", x)
    held = kind.prepared(x)
    result = kind.empty(held.shape, "same", like=held)
    library.run(call, kind.describe(held), kind.describe(result), kind.stream())
    return result

# SPDX-License-Identifier: Apache-2.0
"""The warning about float images far outside data_range, such as values up to 255 taken for 0 to 1.

Values are looked at on the CPU alone, in images whose measure takes five times as long as the look,
and until an operation has warned.
"""

from __future__ import annotations

import warnings
from typing import Any, Callable, Final, Union

from . import measures

LOOK_FROM: Final = 16384  # elements of an image: SSIM takes 0.15 ms, the look 10 µs
OPERATIONS: Final = frozenset(("ssim", "l1_ssim", "ms_ssim", "ssimulacra2"))
_warned: set[str] = set()


def wants_look(operation: str, elements: int, dtype: str) -> bool:
    return (
        elements >= LOOK_FROM
        and operation in OPERATIONS
        and operation not in _warned
        and "float" in dtype
    )


def look(
    operation: str, described: Union[str, float], largest: Callable[[Any], float], **images: Any
) -> None:
    """Warns if an image holds a value above twice the range of the described measure.

    largest: a function of an image. images: by their names in the function's signature.
    """
    if isinstance(described, str):
        value_range = float(measures.parse(described).data_range or 1.0)
    else:
        value_range = described
    for name, image in images.items():
        value = largest(image)
        if value > 2 * value_range:  # not for NaN
            hint = "give data_range, the largest minus the smallest value that a pixel can take"
            if operation == "ssimulacra2":
                hint = "floats span 0 to 1: divide by the largest value that a sample can take"
            warn(
                operation,
                f"{name} holds {value:g}, above twice data_range, {value_range:g}; {hint}",
            )
            return


def look_at_psnr(smallest: float, data_range: float) -> None:
    """Below 0 dB the squared error is above data_range², which no pixel within it can have."""
    if smallest < 0:
        warn(
            "psnr",
            f"{smallest:.1f} dB is below 0, so x or y exceeds data_range, {data_range:g}; give "
            "data_range, the largest minus the smallest value that a pixel can take",
        )


def psnr_wants_look(elements: int, dtype: str) -> bool:
    return elements >= LOOK_FROM and "psnr" not in _warned and "float" in dtype


def warn(operation: str, words: str) -> None:
    if operation not in _warned:
        _warned.add(operation)
        warnings.warn(f"{operation}: {words}", stacklevel=level_of_caller())


def level_of_caller() -> int:
    """The stacklevel of warn() that names the first frame outside this package."""
    import sys

    package = __name__.split(".")[0]
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == package:
        frame, level = frame.f_back, level + 1
    return level

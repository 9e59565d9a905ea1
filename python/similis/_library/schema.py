# SPDX-License-Identifier: Apache-2.0
"""The measures' options as the library declares them, read when this module is first imported.

TABLES has for each operation its options, their values and their places in the C struct, from
similis_schema(), which include/similis/c/core.h describes.
"""

from __future__ import annotations

import ctypes
import json
import struct
from typing import Any, Final

from . import values
from .c_abi import LIBRARY

_FORMATS: Final = {"double": "d", "int32": "i", "int64": "q", "uint64": "Q", "pointer": "P"}
_BITS: Final = {"int32": 31, "int64": 63, "uint64": 64}


class Option:
    """A member of the C struct, and the values that it takes."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.name: str = row["name"]
        self.type: str = row["type"]
        self.c_type: str = row["c_type"]
        self.offset: int = row["offset"]
        self.is_per_axis: bool = row["c_count"] == 3
        self.may_be_empty: bool = row["may_be_empty"]
        self.words: list[str] = [choice["word"] for choice in row["choices"]]
        self.taken: list[str] = [c["word"] for c in row["choices"] if c["is_taken"]]
        # The end of the words is about the program: "…, or one per axis: y,x or z,y,x".
        self.takes: str = row["takes"].partition(", or ")[0]
        self.least: float = -float("inf") if row["least"] is None else row["least"]
        self.most: float = float("inf") if row["most"] is None else row["most"]
        self.is_above_least: bool = row["above_least"]
        self.is_odd: bool = row["odd"]
        self.default: Any = row["default"]

    def text(self, operation: str, value: Any, axes: int) -> str:
        """A checked value as text; axes: how many numbers it may have if it is one per axis."""
        if self.type == "choice":
            return values.one_of(operation, self.name, value, self.taken)
        if self.type == "flag":
            return str(values.flag(operation, self.name, value))
        if self.type == "range":
            return self._text_of_range(operation, value)
        if value is None and self.may_be_empty:
            return self._text_of_none()
        if self.type == "numbers":
            return self._text_of_list(operation, value)
        if self.is_per_axis:
            return self._text_of_axes(operation, value, axes)
        return self._text_of_number(operation, value)

    def _text_of_range(self, operation: str, value: Any) -> str:
        """A word, or two numbers, which are options of their own in C and in text."""
        if isinstance(value, (tuple, list)) and len(value) == 2:
            low, high = [values.number(operation, self.name, each) for each in value]
            return f"fixed low={low!r} high={high!r}"
        if isinstance(value, str) and value in self.taken:
            return value
        raise ValueError(
            f"{operation}: {self.name} is {value!r}; it must be {', '.join(self.taken)} or (low, high)"
        )

    def _text_of_none(self) -> str:
        """0 in C leaves a number to the library; a list is written as its default."""
        if self.type == "numbers":
            return ",".join([repr(float(each)) for each in self.default])
        return "0.0" if self.c_type == "double" else "0"

    def _text_of_list(self, operation: str, value: Any) -> str:
        if not isinstance(value, (tuple, list)):
            raise TypeError(
                f"{operation}: {self.name} is {values.shown(value)}; it must be a tuple or list of "
                "numbers"
            )
        return ",".join([self._text_of_number(operation, each) for each in value])

    def _text_of_axes(self, operation: str, value: Any, axes: int) -> str:
        """Three numbers, along z, y and x."""
        if not isinstance(value, (tuple, list)):
            return ",".join([self._text_of_number(operation, value)] * 3)
        if len(value) != axes:
            raise ValueError(
                f"{operation}: {self.name} has {len(value)} numbers; it takes one, or one for each "
                f"of the {axes} axes"
            )
        given = [self._text_of_number(operation, each) for each in value]
        return ",".join([given[0]] * (3 - axes) + given)

    def _text_of_number(self, operation: str, value: Any) -> str:
        of_floats = self.c_type in ("double", "pointer")  # a list points to doubles
        convert = values.number if of_floats else values.unlimited_integer
        result = convert(operation, self.name, value)
        is_taken = self.least <= result <= self.most and abs(result) < float("inf")
        if (self.is_above_least and result == self.least) or (self.is_odd and result % 2 == 0):
            is_taken = False
        if not is_taken:
            finite = " and finite" if abs(result) == float("inf") else ""
            raise ValueError(
                f"{operation}: {self.name} is {value!r}; it must be {self.takes}{finite}"
            )
        if not of_floats:
            values.integer(operation, self.name, result, _BITS[self.c_type])
        return f"{result!r}"  # torch.compile makes a constant of it here, and traces no repr()

    def read(self, text: str) -> Any:
        """The value that the text spells: a word, a flag, a number, or a list of numbers."""
        if self.words:
            return text
        if self.type == "flag":
            return text == "1"
        kind: Any = float if self.c_type in ("double", "pointer") else int
        if self.is_per_axis or self.type == "numbers":
            return [kind(each) for each in text.split(",") if each]
        return kind(text)

    @property
    def _format(self) -> str:
        return (3 if self.is_per_axis else 1) * _FORMATS[self.c_type]

    def pack(self, value: Any, into: Any) -> Any:
        """Writes a value that was read into the C struct. Returns what must outlive the struct."""
        if self.type == "numbers":
            numbers = (ctypes.c_double * max(1, len(value)))(*value)
            struct.pack_into("PN", into, self.offset, ctypes.addressof(numbers), len(value))
            return numbers
        packed = value if self.is_per_axis else [self.words.index(value) if self.words else value]
        struct.pack_into(self._format, into, self.offset, *packed)
        return None

    def unpack(self, c_struct: bytes) -> Any:
        """The value in a C struct, as read() returns it; that of a list is the default."""
        if self.type == "numbers":
            return self.default
        numbers = list(struct.unpack_from(self._format, c_struct, self.offset))
        if self.is_per_axis:
            return numbers
        if self.type == "flag":
            return numbers[0] != 0
        return self.words[numbers[0]] if self.words else numbers[0]


class Table:
    """An operation's options by name, its C struct, and its results."""

    def __init__(self, row: dict[str, Any]) -> None:
        options = [Option(each) for each in row["options"] + row["request"]]
        self.options: dict[str, Option] = {each.name: each for each in options}
        self.own: list[str] = [each["name"] for each in row["options"]]  # not the call's
        self.c_defaults = bytes.fromhex(row["c_defaults"])
        self.defaults = {each.name: each.unpack(self.c_defaults) for each in options}
        self.outputs: list[str] = row["outputs"]
        self.shape: str = row["shape"]


def _tables() -> dict[str, Table]:
    LIBRARY.similis_schema.restype = ctypes.c_char_p
    schema = json.loads(LIBRARY.similis_schema())
    return {row["name"]: Table(row) for row in schema["operations"]}


TABLES: Final = _tables()

# SPDX-License-Identifier: Apache-2.0
"""The operations' options as the library declares them, read when this module is first imported.

TABLES has for each operation its options, their values and their places in the C struct, from
similis_schema(), which include/similis/c/core.h describes.
"""

from __future__ import annotations

import ctypes
import struct
from typing import Any, Final, Optional

from . import values
from .c_abi import schema

_FORMATS: Final = {"double": "d", "int32": "i", "int64": "q", "uint64": "Q", "pointer": "P"}
_BITS: Final = {"int32": 31, "int64": 63, "uint64": 64}


class Option:
    """A member of the C struct, and the values that it takes."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.name: str = row["name"]
        self.type: str = row["type"]
        self.c_type: str = row["c_type"]
        self.offset: int = row["offset"]
        self.count_offset: Optional[int] = row["count_offset"]
        self.is_list: bool = row["type"] in ("numbers", "extents", "coordinates", "interval")
        self.is_per_axis: bool = row["c_count"] == 3 and not self.is_list
        self.may_be_empty: bool = row["may_be_empty"]
        self.words: list[str] = [choice["word"] for choice in row["choices"]]
        self.taken: list[str] = [c["word"] for c in row["choices"] if c["is_taken"]]
        # The end of the words is about the program: "…, or one per axis: y,x or z,y,x".
        self.takes: str = row["takes"].partition(", or ")[0]
        self.least: float = -float("inf") if row["least"] is None else row["least"]
        self.most: float = float("inf") if row["most"] is None else row["most"]
        self.is_above_least: bool = row["above_least"]
        self.is_odd: bool = row["odd"]
        self.is_finite: bool = row["finite"]
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
        if self.type == "interval":
            return self._text_of_interval(operation, value)
        if self.is_list:
            return self._text_of_point(operation, value)
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
        if self.is_list or self.count_offset is not None:
            return ""
        return "0.0" if self.c_type == "double" else "0"

    def _text_of_list(self, operation: str, value: Any) -> str:
        if not isinstance(value, (tuple, list)):
            raise TypeError(
                f"{operation}: {self.name} is {values.shown(value)}; it must be a tuple or list of "
                "numbers"
            )
        return ",".join([self._text_of_number(operation, each) for each in value])

    def _text_of_point(self, operation: str, value: Any) -> str:
        """Coordinates, or extents, along 2 or 3 axes."""
        if not isinstance(value, (tuple, list)):
            raise TypeError(
                f"{operation}: {self.name} is {values.shown(value)}; it must be a tuple or a list"
            )
        if len(value) not in (2, 3):
            raise ValueError(f"{operation}: {self.name} has {len(value)} numbers; it takes 2 or 3")
        if self.type == "coordinates":
            numbers = [values.number(operation, self.name, each) for each in value]
            return ",".join([f"{each!r}" for each in numbers])
        extents = [values.integer(operation, self.name, each) for each in value]
        for each in extents:
            if each < self.least:
                raise ValueError(
                    f"{operation}: {self.name} holds {each!r}; every extent must be at least 1"
                )
        return ",".join([f"{each!r}" for each in extents])

    def _text_of_interval(self, operation: str, value: Any) -> str:
        if not isinstance(value, (tuple, list)) or len(value) != 2:
            raise TypeError(
                f"{operation}: {self.name} is {values.shown(value)}; it must be {self.takes}"
            )
        first, second = [values.integer(operation, self.name, each) for each in value]
        if second < self.least:
            raise ValueError(
                f"{operation}: the extent of {self.name} is {second}; it must be at least 1"
            )
        return f"{first},{second}"

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
        if not self.is_finite:
            return f"{result!r}"
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
        """The value that the text spells: a word, a flag, a number, or a list of numbers; None for
        one that is left out."""
        if self.words:
            return text
        if text == "" and self.type != "numbers":
            return None
        if self.type == "flag":
            return text == "1"
        kind: Any = float if self.c_type in ("double", "pointer") else int
        if self.is_per_axis or self.is_list:
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
        if value is None:
            return None  # the defaults' bytes say so
        if self.count_offset is not None:
            count = len(value) if self.type == "extents" else 1
            struct.pack_into("i", into, self.count_offset, count)
        if self.is_list:
            struct.pack_into(len(value) * _FORMATS[self.c_type], into, self.offset, *value)
            return None
        packed = value if self.is_per_axis else [self.words.index(value) if self.words else value]
        struct.pack_into(self._format, into, self.offset, *packed)
        return None

    def unpack(self, c_struct: bytes) -> Any:
        """The value in a C struct, as read() returns it; that of a list is the default."""
        if self.type == "numbers":
            return self.default
        if self.type == "interval":
            ends = struct.unpack_from("2q", c_struct, self.offset)
            return list(ends) if any(ends) else None
        if self.count_offset is not None:
            (count,) = struct.unpack_from("i", c_struct, self.count_offset)
            if count == 0:
                return None
            if self.is_list:
                row = struct.unpack_from(3 * _FORMATS[self.c_type], c_struct, self.offset)
                return list(row[:count] if self.type == "extents" else row)
        numbers = list(struct.unpack_from(self._format, c_struct, self.offset))
        if self.is_per_axis:
            return numbers
        if self.type == "flag":
            return numbers[0] != 0
        return self.words[numbers[0]] if self.words else numbers[0]


class Table:
    """An operation's options by name, its C struct, its tensors and results, and its position in
    the library's list."""

    def __init__(self, index: int, row: dict[str, Any]) -> None:
        self.index = index
        options = [Option(each) for each in row["options"] + row["request"]]
        self.options: dict[str, Option] = {each.name: each for each in options}
        self.own: list[str] = [each["name"] for each in row["options"]]  # not the call's
        self.c_struct: str = row["c_struct"]
        self.c_defaults = bytes.fromhex(row["c_defaults"])
        self.defaults = {each.name: each.unpack(self.c_defaults) for each in options}
        for each in row["request"]:
            self.options[each["name"]].default = self.defaults[each["name"]]
        self.operands: list[str] = row["operands"]
        self.masks: list[str] = [each.name for each in options if each.type == "tensor"]
        self.outputs: list[str] = row["outputs"]
        self.shape: str = row["shape"]


def _tables() -> dict[str, Table]:
    return {row["name"]: Table(i, row) for i, row in enumerate(schema()["operations"])}


TABLES: Final = _tables()

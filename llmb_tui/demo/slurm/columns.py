"""Columns of `squeue` and `sinfo`: `-o "%.18i %T"` and `-O "JobID:30,State:|"`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Row = TypeVar("Row")

_PERCENT = re.compile(r"%(?P<right>\.)?(?P<width>\d+)?(?P<code>.)")
_LONG = re.compile(r"(?P<name>[^:]+)(?::(?P<right>\.)?(?P<width>\d+)?(?P<suffix>.*))?")
LONG_WIDTH = 20


@dataclass(frozen=True)
class Field(Generic[Row]):
    """One thing that can be printed of a row."""

    code: str
    """Letter of `-o`; empty where there is none."""
    name: str
    """Name for `-O`, lower case."""
    header: str
    value: Callable[[Row], str]


@dataclass(frozen=True)
class Column(Generic[Row]):
    """One column of the output: a field with its width, or plain text."""

    text: str
    field: Field[Row] | None = None
    width: int | None = None
    right: bool = False

    def cell(self, value: str) -> str:
        """The value in this column's width, cut where it is too long, and the text behind it."""
        if self.width is not None:
            value = value[: self.width]
            value = value.rjust(self.width) if self.right else value.ljust(self.width)
        return value + self.text


def percent_columns(pattern: str, fields: Sequence[Field[Row]]) -> tuple[list[Column[Row]], list[str]]:
    """The columns of an `-o` pattern, and the codes that no field has; those stay in the output as they are."""
    by_code = {field.code: field for field in fields if field.code}
    columns: list[Column[Row]] = []
    unknown: list[str] = []
    position = 0
    for found in _PERCENT.finditer(pattern):
        columns.append(Column(pattern[position : found.start()]))
        position = found.end()
        field = by_code.get(found["code"])
        if field is None:
            unknown.append(found["code"])
            columns.append(Column(found[0]))
        else:
            columns.append(Column("", field, int(found["width"]) if found["width"] else None, bool(found["right"])))
    return [*columns, Column(pattern[position:])], unknown


def long_columns(pattern: str, fields: Sequence[Field[Row]]) -> tuple[list[Column[Row]], list[str]]:
    """The columns of an `-O` pattern, and the names that no field has.

    `name` is 20 wide, `name:30` is 30 wide, `name:|` is as wide as its value with a `|` behind it.
    """
    by_name = {field.name: field for field in fields}
    columns: list[Column[Row]] = []
    unknown: list[str] = []
    words = pattern.split(",")
    for word in words:
        found = _LONG.fullmatch(word)
        field = by_name.get(found["name"].lower()) if found else None
        if found is None or field is None:
            unknown.append(word)
            continue
        width = int(found["width"]) if found["width"] else (LONG_WIDTH if found["suffix"] is None else None)
        columns.append(Column(found["suffix"] or "", field, width, bool(found["right"])))
    return columns, unknown


def line(columns: Sequence[Column[Row]], row: Row) -> str:
    """One line of output."""
    return "".join(column.cell(column.field.value(row) if column.field else "") for column in columns)


def header(columns: Sequence[Column[Row]]) -> str:
    """The line above the rows."""
    return "".join(column.cell(column.field.header if column.field else "") for column in columns)

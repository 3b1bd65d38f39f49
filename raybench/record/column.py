"""A column as data: the Arrow schema, the README's table and the readers are all made from these."""

from __future__ import annotations

import dataclasses
import typing
from dataclasses import dataclass
from datetime import datetime
from types import NoneType

KINDS: dict[type, str] = {str: "string", int: "int64", float: "double", bool: "bool", datetime: "timestamp"}


@dataclass(frozen=True)
class Column:
    """One column of a table.

    `kind` is `string`, `int64`, `double`, `bool` or `timestamp` (UTC, microseconds); `unit` is `""` for names and
    counts; `over_ranks` says how the values of the ranks become one (`sum`, `max`, ...), `""` where there is nothing
    to reduce; `null` says when the value is null, `never` where it may not be.
    """

    name: str
    kind: str
    unit: str
    meaning: str
    over_ranks: str
    null: str

    @property
    def nullable(self) -> bool:
        """Whether null is an allowed value."""
        return self.null != "never"


def column(meaning: str, *, unit: str = "", over_ranks: str = "", null: str = "never") -> typing.Any:
    """A field of a record type; its name and type come from the field itself. Nullable fields default to None."""
    metadata = {"meaning": meaning, "unit": unit, "over_ranks": over_ranks, "null": null}
    if null == "never":
        return dataclasses.field(metadata=metadata)
    return dataclasses.field(default=None, metadata=metadata)


def columns(record_type: type) -> tuple[Column, ...]:
    """The columns of a record type (a frozen dataclass made of `column()` fields), in order."""
    hints = typing.get_type_hints(record_type)
    return tuple(
        Column(name=field.name, kind=_kind(hints[field.name]), **field.metadata)
        for field in dataclasses.fields(record_type)
    )


def _kind(hint: object) -> str:
    """`int | None` and `int` are both `int64`: nullability is the column's own statement, checked by a test."""
    (plain,) = [part for part in (typing.get_args(hint) or (hint,)) if part is not NoneType]
    return KINDS[plain]

"""Tables that fit."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from raybench.report.columns import Shown, table
from raybench.report.numbers import count

ROWS: list[dict[str, Any]] = [
    {"name": "first of two", "speed": 123456, "steps": 20, "note": "a rather long remark", "same": 1, "nothing": None},
    {"name": "second", "speed": 7, "steps": 30, "note": "", "same": 1, "nothing": None},
]
COLUMNS = (
    Shown("name", "name", align="left"),
    Shown("speed", "speed", count),
    Shown("steps", "steps", count, priority=2),
    Shown("same", "same", priority=1, if_varied=True),
    Shown("nothing", "nothing", priority=1),
    Shown("note", "note", align="left", priority=1, least=8),
)


def drawn(width: int) -> str:
    """The table at that width as lines without trailing blanks."""
    console = Console(file=io.StringIO(), width=width)
    console.print(table(COLUMNS, ROWS, width))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().replace("\u202f", "_").splitlines()
    assert max(map(len, lines)) <= width
    return "\n".join(line.rstrip() for line in lines)


def test_a_wide_table_shows_all_that_says_something() -> None:
    """The column without a value and the one that never varies are gone."""
    assert drawn(80) == (
        "name            speed  steps  note\n"
        f"{'─' * 50}\n"
        "first of two  123_456     20  a rather long remark\n"
        "second              7     30"
    )


def test_words_give_way_before_columns_do() -> None:
    """At 40 the remark is cut, no figure is."""
    assert drawn(40) == (
        "name            speed  steps  note\n"
        f"{'─' * 39}\n"
        "first of two  123_456     20  a rather…\n"
        "second              7     30"
    )


def test_the_least_important_column_goes_first() -> None:
    """At 34 the steps (priority 2) make room for the remark (priority 1); at 22 that is gone too."""
    assert drawn(34).splitlines()[2] == "first of two  123_456  a rather l…"
    assert drawn(22).splitlines()[2] == "first of two  123_456"


def test_columns_that_can_be_spared_go_where_nothing_else_helps() -> None:
    """6 for the shortest name, 7 for the speed and a gap are 15: at 16 the spare column has gone, at 30 it is there."""
    columns = (Shown("name", "name", least=6), Shown("speed", "speed", count, spare=True), Shown("steps", "steps"))
    for width, headers in ((30, 3), (16, 2)):
        assert len(table(columns, ROWS, width).columns) == headers


def test_words_that_wrap_are_all_there() -> None:
    """On several lines, none of them longer than the table."""
    drawn_to = io.StringIO()
    columns = (Shown("name", "name", align="left"), Shown("note", "note", align="left", least=8, wraps=True))
    Console(file=drawn_to, width=24).print(table(columns, ROWS, 24))
    words = drawn_to.getvalue().split()
    assert [word for word in words if word in ("a", "rather", "long", "remark")] == ["a", "rather", "long", "remark"]

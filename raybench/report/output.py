"""Printing to standard output: tables for people, one JSON object a line for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from rich.console import RenderableType

from raybench.report.console import console_on
from raybench.report.json_lines import json_line, json_lines
from raybench.report.pipe import reader_may_leave
from raybench.report.tables import counted

if TYPE_CHECKING:
    import pandas as pd

TABLE_ROWS: Final = 200      # more than that nobody reads, and laying it out takes seconds


def stdout_width() -> int:
    """Cells that a line of output may have."""
    return console_on().width


def print_parts(*parts: RenderableType) -> None:
    """Tables and texts, one after the other. Plain strings are never wrapped."""
    console = console_on()
    with reader_may_leave():
        for part in parts:
            console.print(part, soft_wrap=isinstance(part, str))


def print_left(rows: int, command: str = "--all") -> None:
    """How many rows a table left out, and what shows them; nothing where it left out none."""
    if rows > 0:
        print_parts(f"... and {counted(rows, 'row')} more: {command} shows them, --json has every column")


def print_rows(rows: Iterable[Mapping[str, Any]]) -> None:
    """Each row as one JSON object on a line."""
    _print_lines(map(json_line, rows))


def print_frame(frame: pd.DataFrame) -> None:
    """Each row of a frame as one JSON object on a line."""
    _print_lines(json_lines(frame))


def _print_lines(lines: Iterable[str]) -> None:
    with reader_may_leave():
        for line in lines:
            sys.stdout.write(line + "\n")
